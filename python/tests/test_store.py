from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.core.buffer import Buffer, cpu
from zarr.testing.store import StoreTests

import zarrdb
from zarrdb._store import ZarrdbStore


class TestZarrdbStore(StoreTests[ZarrdbStore, cpu.Buffer]):
    store_cls = ZarrdbStore
    buffer_cls = cpu.Buffer

    @pytest.fixture
    def store_kwargs(self, repo: zarrdb.Repository) -> dict[str, Any]:
        return {"view": repo.writable_session()}

    async def set(self, store: ZarrdbStore, key: str, value: Buffer) -> None:
        store.session.set(key, value.to_bytes())  # type: ignore[union-attr]

    async def get(self, store: ZarrdbStore, key: str) -> Buffer:
        b = store.session.get(key)
        assert b is not None
        return self.buffer_cls.from_bytes(b)

    def test_store_repr(self, store: ZarrdbStore) -> None:
        assert repr(store) == f"ZarrdbStore('{store}')" and str(store).startswith("zarrdb:///")

    def test_store_supports_writes(self, store: ZarrdbStore) -> None:
        assert store.supports_writes

    def test_store_supports_listing(self, store: ZarrdbStore) -> None:
        assert store.supports_listing


def test_arrays(repo: zarrdb.Repository) -> None:
    x = np.arange(6000, dtype="f4").reshape(60, 100)
    with repo.transaction(message="first") as store:
        g = zarr.create_group(store)
        g.create_array("a", data=x, chunks=(7, 30))
        g.create_array("b/c", data=x, chunks=(20, 50), shards=(40, 100))
        g["a"].attrs["units"] = "K"
    v = repo.at("main")
    g = zarr.open_group(v.store, mode="r")
    assert sorted(g.keys()) == ["a", "b"] and g["a"].attrs["units"] == "K"
    np.testing.assert_array_equal(g["a"][:], x)
    np.testing.assert_array_equal(g["b/c"][3:50, 7:90], x[3:50, 7:90])
    z = pickle.loads(pickle.dumps(g["a"]))
    np.testing.assert_array_equal(z[5], x[5])
    with pytest.raises(ValueError):
        z[0] = 0
    assert repo.fsck(full=True)["problems"] == []


def test_blame(repo: zarrdb.Repository) -> None:
    with repo.transaction() as store:
        zarr.create_array(store, name="a", data=np.ones(4, "i4"), chunks=(2,))
    s = repo.writable_session()
    s.array("a")[0] = 5
    c = s.commit("five")
    assert [b["commit"] == c.id for b in repo.blame("a")] == [True, False]
    assert len(repo.blame("a", select="0")) == 1


def test_a_transaction_that_fails_leaves_nothing(repo: zarrdb.Repository) -> None:
    with pytest.raises(RuntimeError), repo.transaction() as store:
        zarr.create_group(store)
        raise RuntimeError
    assert list(repo.at("main").keys()) == [] and repo.sessions() == []


def test_lost_update_of_a_chunk(repo: zarrdb.Repository) -> None:
    s = repo.writable_session()
    zarr.create_array(s.store, name="a", shape=(4,), chunks=(4,), dtype="i4")
    z = zarr.open_array(s.store, path="a")
    z[:] = 1
    other = zarr.open_array(pickle.loads(pickle.dumps(s)).store, path="a")
    other[0] = 5
    assert z[0] == 5
    other[1] = 6
    with pytest.raises(zarrdb.ChangedError):
        z.store.session.set("a/c/0", b"")  # it does not know of the 6
    z[2] = 7  # reads the chunk first
    assert z[:].tolist() == [5, 6, 7, 1]


def test_conflict_names_the_chunk(repo: zarrdb.Repository, path: Path) -> None:
    with repo.transaction() as store:
        zarr.create_array(store, name="a", shape=(4, 4), chunks=(2, 2), dtype="i4")
    a, b = repo.writable_session(), repo.writable_session()
    zarr.open_array(a.store, path="a")[3, 3] = 1
    zarr.open_array(b.store, path="a")[2, 2] = 2
    zarr.open_array(b.store, path="a")[0, 0] = 2
    assert b.status().arrays["a"].chunks == 2
    a.commit("a")
    with pytest.raises(zarrdb.ConflictError) as e:
        b.commit("b")
    assert [(c.path, c.chunk, c.kind) for c in e.value.conflicts] == [("a/c/1/1", (1, 1), "chunk")]


def test_a_choice_brings_nothing_back(repo: zarrdb.Repository) -> None:
    """main renames a group, a branch makes an array in it: the array goes into the renamed group."""
    with repo.transaction() as store:
        zarr.create_group(store, path="g")
        zarr.create_array(store, name="g/b", data=np.ones(4, "i4"))
    repo.create_branch("f", "main")
    s = repo.writable_session()
    s.move("g", "h")
    s.commit("rename")
    with repo.transaction("f") as store:
        zarr.create_array(store, name="g/n", data=np.ones(2, "i1"))
    with pytest.raises(zarrdb.ConflictError) as e:
        repo.merge("f")
    assert [(c.kind, c.path, c.also) for c in e.value.conflicts] == [("ancestor", "g/n", ("h/n",))]
    repo.merge("f", theirs=["h/n"])
    keys = list(repo.at("main").keys())
    assert "h/n/zarr.json" in keys and sum(k.endswith("/b/zarr.json") for k in keys) == 1
    assert not any(k.startswith("g/") for k in keys)


def test_blame_of_a_huge_grid(repo: zarrdb.Repository) -> None:
    with repo.transaction() as store:
        zarr.create_array(store, name="a", shape=(2**40,), chunks=(1,), dtype="i1")
    s = repo.writable_session()
    s.array("a")[5] = 1
    s.commit("five")
    assert [(b["chunk"], b["chunks"], b["message"] == "five") for b in repo.blame("a")] == [
        ([0], [5], False), ([5], [1], True), ([6], [2**40 - 6], False),
    ]  # fmt: skip
