"""No write of a thread or process loses what another one has written meanwhile."""

from __future__ import annotations

import pickle
import sys
import threading

import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.core.buffer import cpu

import zarrdb
from zarrdb import _seen, codecs
from zarrdb._store import ZarrdbStore


def key(*parts: str) -> str:
    return "/".join(parts)  # an object of its own, as zarr-python makes one for each write


def test_threads_that_share_a_session(repo: zarrdb.Repository) -> None:
    s = repo.writable_session()
    s.set("n", b"0")
    both, errors = threading.Barrier(2), []

    def add() -> None:
        n = int(s.get("n") or b"")
        both.wait()
        try:
            s.set("n", b"%d" % (n + 1))
        except zarrdb.ChangedError as e:
            errors.append(e.key)
        assert int(s.get("n") or b"") == 1
        s.set("own", b"x")  # it was not read
        s.set("own", b"y")

    threads = [threading.Thread(target=add) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == ["n"] and s.get("n") == b"1"
    s.set("n", b"5")
    s.delete("n")
    s.set("n", b"6")


def test_writes_of_zarr_that_overlap(repo: zarrdb.Repository) -> None:
    s = repo.writable_session()
    store, value = s.store, cpu.Buffer.from_bytes
    s.set("a/c/0", b"0")
    for missing in (False, True):
        if missing:
            s.delete("a/c/0")
        one, two = key("a", "c", "0"), key("a", "c", "0")
        store.get_sync(one)
        store.get_sync(two)
        store.set_sync(one, value(b"one"))
        with pytest.raises(zarrdb.ChangedError) as e:
            store.set_sync(two, value(b"two"))
        assert "zarrdb.codecs.use()" in e.value.__notes__[0]
        with pytest.raises(zarrdb.ChangedError):
            store.delete_sync(two)
        store.set_sync(key("a", "c", "0"), value(b"whole"))  # needs not know what was there
        store.set_sync(one, value(b"again"))
        assert s.get("a/c/0") == b"again"


async def test_deleted_keys_are_no_change_by_somebody_else(repo: zarrdb.Repository) -> None:
    s = repo.writable_session()
    store, direct, k = s.store, key("a", "a"), key("a", "b")
    for clear in (store.clear, lambda: store.delete_dir("a"), lambda: store.delete_dir("a/")):
        s.set(direct, b"1")
        await store.set(k, cpu.Buffer.from_bytes(b"1"))
        assert s.get(direct) == b"1" and await store.get(k) is not None
        await clear()
        s.set(direct, b"2")
        await store.set(k, cpu.Buffer.from_bytes(b"2"))


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="needs counts of references")
def test_reads_that_no_write_follows_are_forgotten(repo: zarrdb.Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_seen, "MANY", 50)
    s = repo.writable_session()
    s._seen._most = 50
    store, kept = s.store, [key("kept", str(i)) for i in range(30)]
    for k in kept:
        store.get_sync(k)
    for i in range(1000):
        store.get_sync(key("read", str(i)))
    assert len(s._seen._reads) <= 200 and all(id(k) in s._seen._reads for k in kept)
    s.set("kept/3", b"x")
    with pytest.raises(zarrdb.ChangedError):
        store.set_sync(kept[3], cpu.Buffer.from_bytes(b"y"))


def test_very_many_keys(repo: zarrdb.Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of keys, what was read is forgotten, and no write loses what was not seen."""
    monkeypatch.setattr(_seen, "MOST", 64)
    s = repo.writable_session()
    other = pickle.loads(pickle.dumps(s))
    for i in range(400):
        assert s.get(f"k/{i}") is None
    assert len(s._seen) <= 64 and len(s._seen._mine) <= 64
    other.set("k/1", b"theirs")
    for k in ("k/1", "k/2"):
        with pytest.raises(zarrdb.ChangedError, match="read it again"):
            s.set(k, b"mine")
    assert s.get("k/1") == b"theirs" and s.get("k/2") is None
    for k in ("k/1", "k/2", "k/399", *(f"new/{i}" for i in range(100))):  # others were never read
        s.set(k, b"mine")
    other.set("k/1", b"again")
    with pytest.raises(zarrdb.ChangedError, match="another value"):
        s.set("k/1", b"mine")
    s.delete_prefix("k/")
    s.set("k/5", b"mine")  # it was forgotten, and deleted since
    other.set("k/6", b"theirs")
    with pytest.raises(zarrdb.ChangedError):
        s.set("k/6", b"mine")
    s.rebase()
    s.set("k/7", b"mine")


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("pipeline", [False, True])
def test_threads_write_parts_of_a_chunk(repo: zarrdb.Repository, pipeline: bool, sharded: bool) -> None:
    """Each element is written until it was not refused: then all of them are there."""
    s = repo.writable_session()
    zarr.create_array(s.store, name="a", shape=(64,), chunks=(8 if sharded else 64,), shards=(64,) if sharded else None, dtype="i4")
    refused = []

    def write(lo: int) -> None:
        z = zarr.open_array(s.store, path="a")
        for i in range(lo, 64, 8):
            while True:
                try:
                    z[i] = i + 1
                    break
                except zarrdb.ChangedError:
                    refused.append(i)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
    with codecs.use() if pipeline else zarr.config.set({}):
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert s.array("a")[:].tolist() == list(range(1, 65))
    assert not (pipeline and refused)  # the server merges


def test_unsafe_chunks_of_dask(repo: zarrdb.Repository) -> None:
    """Chunks of dask that share a chunk of the array: refused by xarray, or written by the
    server, or an error; never lost."""
    x = np.arange(60.0 * 50).reshape(60, 50)
    ds = xr.Dataset({"x": (("time", "i"), x)})
    zarrdb.to_zarrdb(ds, repo, encoding={"x": {"chunks": (10, 50)}})
    part = {"region": {"time": slice(0, 60)}, "mode": "r+"}
    before = repo.lookup_branch("main")
    with pytest.raises(ValueError, match="chunks"):
        zarrdb.to_zarrdb((ds + 1).chunk(time=7), repo, **part)
    assert repo.lookup_branch("main") == before and repo.sessions() == []
    for i in range(1, 6):
        try:
            zarrdb.to_zarrdb((ds + i).chunk(time=7), repo, **part, safe_chunks=False)
            np.testing.assert_array_equal(repo.at("main").array("x")[:], x + i)
        except zarrdb.ChangedError:
            assert repo.sessions() == []
    with codecs.use():
        zarrdb.to_zarrdb((ds - 1).chunk(time=7), repo, **part, safe_chunks=False)
    np.testing.assert_array_equal(repo.at("main").array("x")[:], x - 1)


def test_stores_of_one_session(repo: zarrdb.Repository) -> None:
    """Pickling does not carry over what was read."""
    s = repo.writable_session()
    k = key("a", "b")
    s.set(k, b"1")
    s.store.get_sync(k)
    other = pickle.loads(pickle.dumps(s.store))
    assert isinstance(other, ZarrdbStore)
    other.set_sync(k, cpu.Buffer.from_bytes(b"2"))
    with pytest.raises(zarrdb.ChangedError):
        s.store.set_sync(k, cpu.Buffer.from_bytes(b"3"))
