"""zarr-python's random histories of a store and of a hierarchy."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis.stateful
import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import precondition, rule
from zarr.testing.stateful import ZarrHierarchyStateMachine, ZarrStoreStateMachine

import zarrdb
from zarrdb._store import ZarrdbStore

EXAMPLES = int(os.environ.get("EXAMPLES", "10"))


class Hierarchy(ZarrHierarchyStateMachine):
    @precondition(lambda self: bool(self.all_arrays) or bool(self.all_groups))
    @rule(data=st.data())
    def delete_dir(self, data: st.DataObject) -> None:
        """That of zarr-python 3.1 also forgets nodes whose names begin with that of the directory."""
        before = {nodes: set(getattr(self, nodes)) for nodes in ("all_groups", "all_arrays")}
        super().delete_dir(data)
        for nodes, paths in before.items():
            for path in paths - getattr(self, nodes):
                if self._sync(self.model.exists(f"{path}/zarr.json")):
                    getattr(self, nodes).add(path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("machine", [ZarrStoreStateMachine, Hierarchy])
def test_random_histories(repo: zarrdb.Repository, path: Path, machine: type) -> None:
    def start() -> hypothesis.stateful.RuleBasedStateMachine:
        return machine(ZarrdbStore(repo.writable_session()))

    hypothesis.stateful.run_state_machine_as_test(
        start, settings=settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    )
