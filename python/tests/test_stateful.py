"""zarr-python's random histories of a store and of a hierarchy."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis.stateful
import pytest
from hypothesis import HealthCheck, settings
from zarr.testing.stateful import ZarrHierarchyStateMachine, ZarrStoreStateMachine

import zarrdb
from zarrdb._store import ZarrdbStore

EXAMPLES = int(os.environ.get("EXAMPLES", "10"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("machine", [ZarrStoreStateMachine, ZarrHierarchyStateMachine])
def test_random_histories(repo: zarrdb.Repository, path: Path, machine: type) -> None:
    def start() -> hypothesis.stateful.RuleBasedStateMachine:
        return machine(ZarrdbStore(repo.writable_session()))

    hypothesis.stateful.run_state_machine_as_test(
        start, settings=settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    )
