"""zarr-python 2 on a mapping. It runs in an environment of its own: scripts/python.sh."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import zarr
from conftest import holder
from numcodecs import Blosc, Delta, GZip

import zarrdb

assert zarr.__version__.startswith("2.")


def test_mapping(repo: zarrdb.Repository) -> None:
    s = repo.writable_session()
    m = s.mapping
    m["a/b"] = b"1"
    m.update({"a/c": b"2", "d": bytearray(b"3")})
    assert dict(m) == {"a/b": b"1", "a/c": b"2", "d": b"3"} and len(m) == 3 and "a" not in m and "d" in m
    with pytest.raises(KeyError):
        m["a"]
    with pytest.raises(KeyError):
        del m["a"]
    del m["d"]
    assert m.pop("a/c") == b"2" and m.get("a/c") is None
    again = pickle.loads(pickle.dumps(m))
    assert again == m and dict(again) == {"a/b": b"1"}
    s.commit("x")
    v = repo.at("main").mapping
    assert list(v) == ["a/b"]
    with pytest.raises(zarrdb.InvalidError):
        v["k"] = b""
    s = repo.writable_session()
    s.mapping.clear()
    assert not s.mapping


@pytest.mark.parametrize("compressor", [None, Blosc(), GZip()], ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays(repo: zarrdb.Repository, compressor: object, order: str) -> None:
    x = np.arange(6000, dtype="<i4").reshape(60, 100)
    s = repo.writable_session()
    g = zarr.group(s.mapping)
    z = g.create_dataset("g/x", data=x, chunks=(7, 30), compressor=compressor, order=order, filters=[Delta("<i4")])
    z.attrs["units"] = "K"
    z[3:9, ::2] = -1
    x[3:9, ::2] = -1
    g.create_dataset("text", data=np.array(["a", "bb"], dtype=object), dtype=str)
    zarr.consolidate_metadata(s.mapping)
    s.commit("arrays")
    v = repo.at("main")
    for root in (zarr.open(v.mapping, mode="r"), zarr.open_consolidated(v.mapping, mode="r")):
        np.testing.assert_array_equal(root["g/x"][:], x)
        np.testing.assert_array_equal(root["g/x"].oindex[[1, 5], :], x[[1, 5]])
        assert root["g/x"].attrs["units"] == "K" and root["text"][:].tolist() == ["a", "bb"] and list(root) == ["g", "text"]
    np.testing.assert_array_equal(v.array("g/x")[:], x)  # the server decodes the same
    z = pickle.loads(pickle.dumps(zarr.open(v.mapping, path="g/x", mode="r")))
    np.testing.assert_array_equal(z[5], x[5])
    assert repo.fsck(full=True)["problems"] == []


def test_resize_and_delete(repo: zarrdb.Repository) -> None:
    s = repo.writable_session()
    z = zarr.create(shape=(10,), chunks=(2,), store=s.mapping, path="x", dtype="f8", fill_value=np.nan)
    z[:] = 1
    z.resize(5)
    assert sorted(k for k in s.mapping if not k.endswith(".zarray")) == [".zgroup", "x/0", "x/1", "x/2"]
    z.append(np.zeros(3))
    assert z[:].tolist()[:5] == [1] * 5 and z.shape == (8,)
    del zarr.open_group(s.mapping)["x"]
    assert list(s.mapping) == [".zgroup"]


def test_two_sessions(repo: zarrdb.Repository, path: Path) -> None:
    s = repo.writable_session()
    zarr.create(shape=(4,), chunks=(2,), store=s.mapping, path="x", dtype="i4")[:] = 1
    s.commit("x")
    a, b = repo.writable_session(), repo.writable_session()
    zarr.open(a.mapping)["x"][0] = 2
    zarr.open(b.mapping)["x"][1] = 3
    a.commit("a")
    with pytest.raises(zarrdb.ConflictError) as e:
        b.commit("b")
    assert [(c.path, c.chunk, c.kind) for c in e.value.conflicts] == [("x/0", (0,), "chunk")] and holder(path)


def test_zarr_does_not_delete_a_database(repo: zarrdb.Repository, path: Path) -> None:
    repo.writable_session().commit("more", allow_empty=True)
    for delete in (
        lambda: zarr.open_group(str(path), mode="w"),
        lambda: zarr.open_array(str(path), mode="w", shape=(2,)),
        lambda: zarr.create((2,), store=str(path), overwrite=True),
        lambda: zarr.DirectoryStore(str(path)).clear(),
    ):
        with pytest.raises(zarrdb.DeniedError, match="nothing was deleted"):
            delete()
    assert len(list(repo.ancestry())) == 2 and repo.fsck()["problems"] == []


@pytest.mark.parametrize("separator", [".", "/"])
def test_what_resize_cuts_off_is_gone(repo: zarrdb.Repository, separator: str) -> None:
    x = np.arange(60, dtype="i4").reshape(10, 6) + 1
    s = repo.writable_session()
    z = zarr.group(s.mapping).create_dataset("g/x", data=x, chunks=(4, 4), fill_value=-1, dimension_separator=separator)
    z.resize(5, 5)
    z.resize(10, 6)
    x[5:], x[:, 5:] = -1, -1
    np.testing.assert_array_equal(z[:], x)
    z.append(x)
    s.commit("resized")
    np.testing.assert_array_equal(repo.at("main").array("g/x")[:], np.concatenate([x, x]))
