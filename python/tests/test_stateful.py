"""zarr-python's random histories of a store and of a hierarchy."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis.stateful
import hypothesis.strategies as st
import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, settings
from hypothesis.stateful import precondition, rule
from zarr.abc.store import Store
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


    @precondition(lambda self: bool(self.all_arrays))
    @rule(data=st.data())
    def resize_array(self, data: st.DataObject) -> None:
        super().resize_array(data)
        for path in self.all_arrays:
            self.drop_fill_chunks(path)

    def drop_fill_chunks(self, path: str) -> None:
        """A session resets the elements outside a new shape, and removes a chunk that then holds fill
        values alone. The model keeps such a chunk."""
        kept, there = (self.keys(store, f"{path}/c") for store in (self.model, self.store))
        if kept > there:
            model, ours = (zarr.open_array(path=path, store=store)[...] for store in (self.model, self.store))
            np.testing.assert_array_equal(model, ours)
            for key in kept - there:
                self._sync(self.model.delete(key))

    def keys(self, store: Store, prefix: str = "") -> set[str]:
        return set(self._sync_iter(store.list_prefix(prefix)))


def test_resize_that_leaves_fill_values(repo: zarrdb.Repository) -> None:
    """The case that random histories seldom meet."""
    machine = Hierarchy(ZarrdbStore(repo.writable_session()))
    machine.init_store()
    values = np.array([[1, 1, 0, 1], [1, 1, 1, 1], [1, 1, 1, 1]], "int8")
    for store in (machine.model, machine.store):
        zarr.create_array(store, name="a", data=values, chunks=(3, 2), fill_value=0).resize((1, 3))
    assert machine.keys(machine.model, "a/c") - machine.keys(machine.store, "a/c") == {"a/c/0/1"}
    machine.drop_fill_chunks("a")
    assert machine.keys(machine.model) == machine.keys(machine.store)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("machine", [ZarrStoreStateMachine, Hierarchy])
def test_random_histories(repo: zarrdb.Repository, path: Path, machine: type) -> None:
    def start() -> hypothesis.stateful.RuleBasedStateMachine:
        return machine(ZarrdbStore(repo.writable_session()))

    hypothesis.stateful.run_state_machine_as_test(
        start, settings=settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    )
