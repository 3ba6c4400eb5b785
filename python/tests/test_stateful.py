"""zarr-python's random histories of a store and of a hierarchy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import hypothesis.stateful
import hypothesis.strategies as st
import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, settings
from hypothesis.stateful import precondition, rule
from zarr.abc.store import Store
from zarr.core.buffer import default_buffer_prototype
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
        """A session resets the elements outside a new shape, and removes a chunk that then holds fill values alone. The model
        keeps both: elements are there again when the array grows."""
        before = {path: zarr.open_array(path=path, store=self.model)[...] for path in self.all_arrays}
        super().resize_array(data)
        for path, values in before.items():
            self.resized(path, np.asarray(values))

    def resized(self, path: str, values: np.ndarray[Any, Any]) -> None:
        """Compare an array that had these values, and give the model the same chunks."""
        ours = zarr.open_array(path=path, store=self.store)
        want = np.full(ours.shape, ours.fill_value, values.dtype)
        both = tuple(slice(min(a, b)) for a, b in zip(values.shape, ours.shape, strict=True))
        want[both] = values[both]
        np.testing.assert_array_equal(np.asarray(ours[...]), want)
        for key in self.keys(self.model, f"{path}/c") | self.keys(self.store, f"{path}/c"):
            value = self._sync(self.store.get(key, default_buffer_prototype()))
            self._sync(self.model.delete(key) if value is None else self.model.set(key, value))

    def keys(self, store: Store, prefix: str = "") -> set[str]:
        return set(self._sync_iter(store.list_prefix(prefix)))


def test_resize_that_leaves_fill_values(repo: zarrdb.Repository) -> None:
    """The case that random histories seldom meet."""
    machine = Hierarchy(ZarrdbStore(repo.writable_session()))
    machine.init_store()
    values = np.array([[1, 1, 0, 1], [1, 1, 1, 1], [1, 1, 1, 1]], "int8")
    for store in (machine.model, machine.store):
        a = zarr.create_array(store, name="a", data=values, chunks=(3, 2), fill_value=0)
        a.resize((1, 3))
        assert ("a/c/0/1" in machine.keys(store)) == (store is machine.model)
        a.resize((2, 4))
    machine.resized("a", values[:1, :3])
    assert machine.keys(machine.model) == machine.keys(machine.store)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("machine", [ZarrStoreStateMachine, Hierarchy])
def test_random_histories(repo: zarrdb.Repository, path: Path, machine: type) -> None:
    def start() -> hypothesis.stateful.RuleBasedStateMachine:
        return machine(ZarrdbStore(repo.writable_session()))

    hypothesis.stateful.run_state_machine_as_test(
        start, settings=settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    )
