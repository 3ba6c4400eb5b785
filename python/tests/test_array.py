from __future__ import annotations

import datetime
import json
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import zarr

import zarrdb
from zarrdb import InvalidError

x = np.arange(5 * 7 * 11, dtype="f4").reshape(5, 7, 11)

SELECTIONS: list[Any] = [
    ..., 2, -1, (1, 2, 3), slice(None), slice(None, None, -1), slice(4, None, -2), (slice(1, 4), 3), (..., 0), (0, ..., 1),
    (None, 2, None), slice(3, 3), (slice(None), slice(6, 0, -3), slice(2, 100, 4)), np.int64(2), (0, 0, 0, None), slice(-2, None),
]  # fmt: skip


@pytest.fixture
def snap(repo: zarrdb.Repository) -> zarrdb.Snapshot:
    with repo.transaction() as store:
        g = zarr.create_group(store)
        z = g.create_array("a", data=x, chunks=(2, 3, 4), dimension_names=("time", "lat", "lon"))
        z.attrs["units"] = "K"
        g.create_array("big", data=np.arange(1 << 18, dtype="<i8"), chunks=(1 << 14,))
        g.create_array("scalar", shape=(), dtype="i2", fill_value=7)
        g.create_array("flags", data=np.array([True, False]))
        g.create_array("text", shape=(2,), dtype=str)
        g.create_array("times", data=np.array(["2020-01-01", "NaT"], dtype="M8[s]"))
    return repo.at("main")


@pytest.mark.parametrize("sel", SELECTIONS, ids=str)
def test_selections_are_those_of_numpy(snap: zarrdb.Snapshot, sel: Any) -> None:
    a = snap.array("a")
    np.testing.assert_array_equal(a[sel], x[sel])
    assert np.shape(a[sel]) == np.shape(x[sel]) and type(a[sel]) is type(x[sel])
    want = np.empty(x[sel].shape, "f4")
    np.testing.assert_array_equal(a.read(sel, out=want), x[sel])


def test_long_reads(snap: zarrdb.Snapshot) -> None:
    want, a = np.arange(1 << 18), snap.array("big")
    np.testing.assert_array_equal(a[:], want)
    got = a[5:200000]
    got[0] = 1  # it is the caller's
    np.testing.assert_array_equal(a[::-3], want[::-3])
    np.testing.assert_array_equal(np.asarray(a, "f8"), want)


@pytest.mark.parametrize("sel", SELECTIONS, ids=str)
def test_memory_of_any_layout(snap: zarrdb.Snapshot, sel: Any) -> None:
    a, want = snap.array("a"), np.asarray(x[sel])
    for whole, at in (
        (np.full([2 * n + 1 for n in want.shape], -1.0, "f4"), tuple([slice(1, None, 2)] * want.ndim)),
        (np.full(want.shape[::-1], -1.0, "f4").T, tuple([slice(None, None, -1)] * want.ndim)),
        (np.full(want.shape, -1.0, "f8"), ...),
    ):
        out = whole[(*at, ...)] if at != ... else whole
        assert a.read(sel, out=out) is out
        np.testing.assert_array_equal(out, want)
        assert (whole != -1).sum() == want.size
    fixed = np.zeros(want.shape, "f4")
    fixed.flags.writeable = False
    if want.size:
        with pytest.raises(ValueError):
            a.read(sel, out=fixed)
        assert not fixed.any()


def test_long_reads_at_the_end_of_the_interpreter(snap: zarrdb.Snapshot) -> None:
    code = f"import atexit, zarrdb; a = zarrdb.open({snap._client.dir!r}).at('main').array('big'); atexit.register(lambda: print(a[:].sum()))"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert out.stdout.split() == [str((1 << 18) * ((1 << 18) - 1) // 2)] and not out.stderr


def test_what_it_is(snap: zarrdb.Snapshot) -> None:
    a = snap.array("/a")
    assert (a.shape, a.dtype, a.dims, a.chunks, a.attrs) == ((5, 7, 11), "f4", ("time", "lat", "lon"), (2, 3, 4), {"units": "K"})
    assert (a.ndim, a.size, a.nbytes, len(a)) == (3, 385, 1540, 5)
    assert repr(a) == "<Array /a (time: 5, lat: 7, lon: 11) float32, chunks (2, 3, 4)>" and "units" in a._repr_html_()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(a))[1], x[1])
    assert snap.array("scalar")[()] == 7 and snap.array("scalar")[...].shape == ()
    assert snap.array("flags")[:].tolist() == [True, False]
    assert np.isnat(snap.array("times")[1]) and str(snap.array("times")[0]) == "2020-01-01T00:00:00"


def test_refusals(snap: zarrdb.Snapshot) -> None:
    a = snap.array("a")
    for sel in (5, (0, 0, 0, 0), (..., ...)):
        with pytest.raises(IndexError):
            a[sel]
    for bad in (1.5, True, "x"):
        with pytest.raises(zarrdb.InvalidError):
            a[bad]
    with pytest.raises(zarrdb.InvalidError, match="version"):
        a[0] = 1
    with pytest.raises(zarrdb.InvalidError, match="shape"):
        a.read(0, out=np.empty(3))
    with pytest.raises(zarrdb.NotFoundError):
        snap.array("nope")


def test_writes(repo: zarrdb.Repository, snap: zarrdb.Snapshot) -> None:
    s = repo.writable_session()
    a, want = s.array("a"), x.copy()
    for i, sel in enumerate(SELECTIONS):
        a[sel] = want[sel] = i
        np.testing.assert_array_equal(a[...], want)
    a[1, :, 2] = want[1, :, 2] = np.arange(7)
    a.write((slice(None, None, -1), 0), x[:, 1])
    want[::-1, 0] = x[:, 1]
    np.testing.assert_array_equal(zarr.open_array(s.store, path="a")[:], want)
    with pytest.raises(ValueError):
        a[0] = np.zeros(3)
    s.commit("write")
    np.testing.assert_array_equal(repo.at("main").array("a")[:], want)
    np.testing.assert_array_equal(snap.array("a")[:], x)


def test_parts_of_a_chunk_are_not_lost(repo: zarrdb.Repository, snap: zarrdb.Snapshot) -> None:
    s = repo.writable_session()
    arrays = [pickle.loads(pickle.dumps(s)).array("big") for _ in range(4)]
    for i, a in enumerate(arrays):
        a[i:100:4] = -i
    assert s.array("big")[:100].tolist() == [-(i % 4) for i in range(100)]


def test_read_many(snap: zarrdb.Snapshot) -> None:
    a, sels = snap.array("a"), [(i % 5, slice(i % 3, i % 3 + 4), slice(None, None, -2)) for i in range(50)]
    want = np.stack([x[s] for s in sels])
    got = a.read_many(sels)
    np.testing.assert_array_equal(got, want)
    got[:] = 0  # it is the caller's
    out = np.empty_like(want)
    assert a.read_many(sels, out=out) is out
    np.testing.assert_array_equal(out, want)
    assert a.read_many([]).shape == (0,) and a.read_many([(0, 0, 0), (4, 6, 10)]).tolist() == [x[0, 0, 0], x[4, 6, 10]]
    assert a.read_many([slice(0, 0)] * 2).shape == (2, 0, 7, 11)
    big = snap.array("big")
    np.testing.assert_array_equal(big.read_many([slice(i, i + 60_000) for i in range(3)])[2], np.arange(2, 60_002))
    np.testing.assert_array_equal(a.read_many([..., ...])[1], x)
    with pytest.raises(zarrdb.InvalidError, match="one by one"):
        a.read_many([0, (0, 0)])
    with pytest.raises(zarrdb.InvalidError, match="out"):
        a.read_many([0], out=np.empty(3))
    assert snap.array("text").read_many([0, slice(1, 2)][:1]).tolist() == [""]


def test_labels_of_spans(repo: zarrdb.Repository) -> None:
    with repo.transaction() as store:
        g = zarr.create_group(store)
        g.create_array("v", data=np.arange(4), dimension_names=("lead",))
        g.create_array("lead", data=np.arange(0, 24, 6), dimension_names=("lead",)).attrs.update(units="hours", dtype="timedelta64[ns]")
        g.create_array("w", data=np.arange(3), dimension_names=("lat",))
        g.create_array("lat", data=np.array([45, 45.1, 45.2], "f4"), dimension_names=("lat",)).attrs["missing_value"] = 1e20
    v = repo.at("main").array("v")
    for label in ("6h", np.timedelta64(6, "h"), datetime.timedelta(hours=6), np.timedelta64(6 * 3600 * 10**9, "ns")):
        assert v.sel(lead=label) == 1
    assert v.sel(lead=slice("6h", "12h")).tolist() == [1, 2]
    assert v.sel(lead=[np.timedelta64(12, "h"), np.timedelta64(0, "h")]).tolist() == [2, 0]
    w = repo.at("main").array("w")
    assert w.sel(lat=slice(45.1, 45.2)).tolist() == [1, 2] and w.sel(lat=np.float32(45.2)) == 2


def test_what_cannot_be_in_memory(repo: zarrdb.Repository) -> None:
    huge = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [2**62],
        "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1000]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 7,
        "codecs": [{"name": "bytes"}],
    }
    s = repo.writable_session()
    s.set("huge/zarr.json", json.dumps(huge).encode())
    s.commit("an array without chunks")
    a = repo.at("main").array("huge")
    for read in (lambda: a[:], lambda: a[:: 2**10], lambda: a.read_many([slice(0, 2**50), slice(2**50, 2**51)])):
        with pytest.raises(zarrdb.InvalidError, match="bytes of memory; select less"):
            read()
    assert a[-3:].tolist() == [7, 7, 7] and a[:: 2**61].tolist() == [7, 7]


def test_labels(repo: zarrdb.Repository) -> None:
    with repo.transaction() as store:
        g = zarr.create_group(store)
        g.create_array("t2m", data=np.arange(12.0).reshape(4, 3), chunks=(2, 3), dimension_names=("time", "lat"))
        g.create_array("time", data=np.array([0, 24, 48, 72]), dimension_names=("time",)).attrs["units"] = "hours since 2020-01-30"
        g.create_array("lat", data=np.array([50.0, 47.5, 45.0]), dimension_names=("lat",))
    a = repo.at("main").array("t2m")
    assert a.indices(time="2020-02") == (slice(2, 4), slice(None))
    assert a.sel(time="2020-02").tolist() == [[6, 7, 8], [9, 10, 11]]
    assert a.sel(time="2020-01-31", lat=47.5) == 4
    assert a.sel(lat=slice(50, 47)).tolist() == [[0, 1], [3, 4], [6, 7], [9, 10]]
    assert a.sel(time=np.datetime64("2020-02-01", "s")).tolist() == [6, 7, 8]
    assert a.sel(time=slice(None, "2020-01")).shape == (2, 3) and a.sel(time=slice("2021", None)).shape == (0, 3)
    assert a.sel(lat=[45, 50], time="2020-02").tolist() == [[8, 6], [11, 9]]
    assert a.sel(lat=np.array([47.5], "f4"), time=["2020-02-01", "2020-01-30"]).tolist() == [[7], [1]]
    assert a.sel(lat=[], time="2020-02-01").shape == (0,)
    with pytest.raises(zarrdb.InvalidError, match="one element"):
        a.sel(time=["2020-02"])
    with pytest.raises(zarrdb.NotFoundError):
        a.sel(time=[np.datetime64("2020-02-01T06", "h")])
    with pytest.raises(zarrdb.NotFoundError):
        a.sel(time="2021")
    with pytest.raises(zarrdb.NotFoundError):
        a.sel(lon=3)
    with pytest.raises(zarrdb.InvalidError):
        a.sel(lat=slice(50, 45, 2))
    with pytest.raises(zarrdb.InvalidError):
        a.sel(lat="'\"")


def test_variable_length(repo: zarrdb.Repository) -> None:
    words = np.array([f"wört {i}" * (i % 3) for i in range(30)], dtype=np.dtypes.StringDType()).reshape(5, 6)
    blobs = np.empty(4, object)
    blobs[:] = [b"", b"\0\1", b"x" * 1000, b"y"]
    with repo.transaction() as store:
        g = zarr.create_group(store)
        g.create_array("text", data=words, chunks=(2, 4))
        g.create_array("blobs", shape=(4,), dtype="variable_length_bytes", chunks=(3,))[:] = blobs
    s = repo.writable_session()
    t, b = s.array("text"), s.array("blobs")
    assert (t.dtype, b.dtype, t.type) == (words.dtype, np.dtype(object), "string")
    for sel in (..., 3, (slice(None, None, -2), slice(1, 5)), (2, 2), slice(0, 0)):
        assert t[sel].tolist() == words[sel].tolist() if np.ndim(words[sel]) else t[sel] == words[sel]
    assert b[:].tolist() == blobs.tolist() and b[2] == b"x" * 1000
    t[1:3, ::2] = "neu"
    words[1:3, ::2] = "neu"
    b[1:3] = np.array([b"a", b"bb"], object)
    assert t[...].tolist() == words.tolist() and b[:].tolist() == [b"", b"a", b"bb", b"y"]
    assert zarr.open_array(s.store, path="text")[:].tolist() == words.tolist()
    t[:] = words[::-1]
    assert t[:].tolist() == words[::-1].tolist()
    assert np.asarray(t).shape == (5, 6)


def test_protocols(snap: zarrdb.Snapshot) -> None:
    a = snap.array("a")
    np.testing.assert_array_equal(np.from_dlpack(a), x)
    assert a.__dlpack_device__() == (1, 0)
    np.testing.assert_array_equal(np.asarray(a.__buffer__(0)), x)
    assert a == snap.array("a") and a != snap.array("big") and len({a, snap.array("a")}) == 1


def test_an_array_that_has_changed(repo: zarrdb.Repository, snap: zarrdb.Snapshot) -> None:
    s = repo.writable_session()
    a, big = s.array("a"), s.array("big")
    zarr.open_array(s.store, path="big").resize((1000,))
    with pytest.raises(zarrdb.InvalidError, match="refresh"):
        big[:]
    big.refresh()
    assert big[:].tolist() == list(range(1000))
    zarr.create_array(s.store, name="a", data=x.astype("i4"), overwrite=True)
    with pytest.raises(zarrdb.InvalidError, match="type"):
        a[0]


def test_write_to_an_array_that_has_changed(repo: zarrdb.Repository) -> None:
    """It is refused, not written to other places or as another type."""
    s = repo.writable_session()
    z = zarr.create_array(s.store, name="b", shape=(10, 10), dtype="i4", chunks=(5, 5))
    a = s.array("b")
    z.resize((10, 5))
    with pytest.raises(InvalidError):
        a[:] = np.ones((10, 10), "i4")
    zarr.create_array(s.store, name="b", shape=(10, 10), dtype="i8", chunks=(5, 5), overwrite=True)
    with pytest.raises(InvalidError):
        a[:] = np.ones((10, 10), "i4")
    assert not s.array("b")[:].any()


def test_pickled_array_is_as_it_was_opened(repo: zarrdb.Repository, snap: zarrdb.Snapshot) -> None:
    """Tasks of dask unpickle it, each for itself."""
    s = repo.writable_session()
    zarr.create_array(s.store, name="b", shape=(4,), dtype="i4")
    a = pickle.dumps(s.array("b"))
    zarr.open_array(s.store, path="b").resize((8,))
    b = pickle.loads(a)
    assert b.shape == (4,)
    b.refresh()
    assert b.shape == (8,)
    b[5] = 3
    assert pickle.loads(pickle.dumps(b))[5] == 3


def test_a_write_is_no_change_by_somebody_else(repo: zarrdb.Repository, snap: zarrdb.Snapshot) -> None:
    s = repo.writable_session()
    z = zarr.open_array(s.store, path="a")
    assert z[0, 0, 0] == 0  # the store has read the chunk
    s.array("a")[0, 0, 0] = 5
    z[:2, :3, :4] = 6
    assert s.array("a")[0, 0, 0] == 6


def test_a_write_follows_what_the_session_has_done(repo: zarrdb.Repository, snap: zarrdb.Snapshot) -> None:
    """The library has the session open beside the connection, and is not late."""
    s = repo.writable_session()
    a = s.array("big")
    for n in range(20):
        assert a[0] == (n and 1000 + n - 1)
        s.delete("big/c/0")
        assert a[0] == 0
        a[: 1 << 14] = 1000 + n  # a whole chunk, which nobody reads first
    s.discard_changes()
    assert a[0] == 0
    a[0] = 5
    s.commit("write")
    with pytest.raises(zarrdb.SessionClosedError):
        a[0]
    assert repo.at("main").array("big")[:2].tolist() == [5, 1]
