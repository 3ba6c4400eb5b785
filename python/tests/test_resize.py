"""What was cut off is gone, whoever shrinks an array."""

from __future__ import annotations

import asyncio
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.storage import MemoryStore

import zarrdb

X = np.arange(60, dtype="i4").reshape(10, 6) + 1
WANT = np.full((10, 6), -1, "i4")
WANT[:5, :5] = X[:5, :5]


def make(session: zarrdb.Session, **options: Any) -> Any:
    z = zarr.create_array(session.store, name="g/a", shape=X.shape, chunks=(4, 4), dtype="i4", fill_value=-1, **options)
    z[:] = X
    return z


KINDS: dict[str, dict[str, Any]] = {"v3": {}, "v2": {"zarr_format": 2}, "shards": {"shards": (8, 4)}, "dots": {"chunk_key_encoding": {"name": "v2", "separator": "."}}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["array", "zarr"])
def test_shrink_and_grow(repo: zarrdb.Repository, kind: str, how: str) -> None:
    s = repo.writable_session()
    z = make(s, **KINDS[kind])
    for shape in ((5, 5), (10, 6)):
        z.resize(shape) if how == "zarr" else s.array("g/a").resize(shape)
        assert s.array("g/a").shape == shape
    np.testing.assert_array_equal(s.array("g/a")[:], WANT)
    z = zarr.open_array(s.store, path="g/a")
    np.testing.assert_array_equal(z[:], WANT)
    z[4:7, 3:] = 7  # chunks that were read before, and changed by the server
    z.attrs["units"] = "K"
    s.commit("resized")
    want = WANT.copy()
    want[4:7, 3:] = 7
    np.testing.assert_array_equal(zarr.open_array(repo.at("main").store, path="g/a")[:], want)
    assert repo.at("main").array("g/a").attrs == {"units": "K"}
    assert repo.fsck(full=True)["problems"] == []


def test_resize_of_arrays(repo: zarrdb.Repository) -> None:
    s = repo.writable_session()
    with pytest.raises(zarrdb.NotFoundError):
        s.array("g/a")
    make(s)
    a = s.array("g/a")
    a.resize((5, 5), keep_chunks=True)
    assert a.shape == (5, 5) and a[:].shape == (5, 5)
    a.resize(X.shape)
    np.testing.assert_array_equal(a[:], X)
    for bad in ((5,), (5, -1), 5):
        with pytest.raises(zarrdb.ZarrdbError):
            a.resize(bad)
        assert a.shape == X.shape
    zarr.create_array(s.store, name="line", data=np.arange(5), chunks=(2,))
    line = s.array("line")
    line.resize(3)
    line.resize([np.int64(5)])  # type: ignore[list-item]
    assert line[:].tolist() == [0, 1, 2, 0, 0]
    s.commit("arrays")
    with pytest.raises(zarrdb.SessionClosedError):
        a.resize((1, 1))
    with pytest.raises(zarrdb.InvalidError, match="writable_session"):
        repo.at("main").array("line").resize(3)
    empty = repo.writable_session()  # in which nothing was written
    empty.array("line").resize(2)
    empty.commit("shorter")
    assert repo.at("main").array("line")[:].tolist() == [0, 1] and repo.at("main~1").array("line").shape == (5,)


def test_chunks_that_zarr_is_to_keep(repo: zarrdb.Repository) -> None:
    s = repo.writable_session()
    z = make(s)
    asyncio.run(z.async_array.resize((5, 5), delete_outside_chunks=False))
    z = zarr.open_array(s.store, path="g/a")
    z.resize(X.shape)
    np.testing.assert_array_equal(z[:], X)


@pytest.mark.parametrize("version", [2, 3])
def test_copies_key_by_key_are_no_resize(repo: zarrdb.Repository, version: int) -> None:
    """A copy replaces chunks before the document; those are of another compressor than the old document says."""
    s = repo.writable_session()
    gzip: Any = numcodecs.GZip() if version == 2 else zarr.codecs.GzipCodec()
    zarr.create_array(s.store, name="a", data=X[:, 0].copy(), chunks=(4,), compressors=gzip, zarr_format=version)
    other: dict[str, Any] = {}
    zarr.create_array(MemoryStore(other), name="a", data=X[:9, 1].copy(), chunks=(4,), zarr_format=version)
    for key in sorted(other, key=lambda k: k.endswith(("zarr.json", ".zarray"))):
        asyncio.run(s.store.set(key, other[key]))
    np.testing.assert_array_equal(zarr.open_array(s.store, path="a")[:], X[:9, 1])
