"""Chunks with and without codecs are read in this process."""

from __future__ import annotations

import gc
import json
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from conftest import end

import zarrdb
import zarrdb.codecs

x = np.arange(100 * 70 * 30, dtype="<i4").reshape(100, 70, 30)
x[32:64, :32] = 5  # the fill value: that chunk is not stored

SELECTIONS: list[Any] = [
    np.s_[:32, :32, :], np.s_[32:64, :32], np.s_[96:, 64:], np.s_[20:50, 10:60, 3:29], np.s_[70, 32:64], np.s_[3:30, 40:60, 7],
    np.s_[..., 0], np.s_[:31, None, :30], np.s_[30::-1, :32], np.s_[:32:2, :32], np.s_[1:2, 2:3, 3:4], np.s_[64:96, 0:32], np.s_[:],
]  # fmt: skip


@pytest.fixture
def snap(repo: zarrdb.Repository) -> zarrdb.Snapshot:
    variants: dict[str, Any] = {
        "a": {},
        "dots": {"chunk_key_encoding": {"name": "v2", "separator": "."}},
        "big": {"serializer": zarr.codecs.BytesCodec(endian="big")},
        "zstd": {"compressors": zarr.codecs.ZstdCodec()},
    }
    with repo.transaction() as store:
        g = zarr.create_group(store)
        for name, more in variants.items():
            z = g.create_array(name, shape=x.shape, chunks=(32, 32, 30), dtype="<i4", fill_value=5, **{"compressors": None, **more})
            z[...] = x
    return repo.at("main")


@pytest.mark.parametrize("name", ["a", "dots", "big", "zstd"])
def test_elements(snap: zarrdb.Snapshot, name: str) -> None:
    a = snap.array(name)
    for _ in range(2):
        for sel in SELECTIONS:
            np.testing.assert_array_equal(a[sel], x[sel])
            out = np.zeros(x[sel].shape, "f8")
            np.testing.assert_array_equal(a.read(sel, out=out), x[sel])
    got = a[:32, :32]
    got[:] = 0  # it is the caller's
    np.testing.assert_array_equal(a[:32, :32], x[:32, :32])


def test_another_server(snap: zarrdb.Snapshot) -> None:
    a = snap.array("a")
    a[:32, :32]
    end(snap._client.dir)
    np.testing.assert_array_equal(a[:32, :32], x[:32, :32])
    np.testing.assert_array_equal(a[64:96, :32], x[64:96, :32])


def test_collected_beside_a_reader(repo: zarrdb.Repository, snap: zarrdb.Snapshot) -> None:
    """What a version has stays readable while its space is to be given back."""
    a = snap.array("a")
    a[:32, :32]
    s = repo.writable_session()
    for name in ("a", "dots", "big", "zstd"):
        s.array(name)[...] = 5
    s.commit("clear")
    repo.expire(keep=1)
    repo.gc()
    for _ in range(2):
        np.testing.assert_array_equal(a[:32, :32], x[:32, :32])
        np.testing.assert_array_equal(a[64:96, 32:64], x[64:96, 32:64])


def test_linked_chunks(repo: zarrdb.Repository, path: Path) -> None:
    """Chunks in other files are read from there."""
    (path.parent / "raw.bin").write_bytes(x[:96].tobytes())
    array = {"zarr_format": 2, "shape": [96, 70, 30], "chunks": [32, 70, 30], "dtype": "<i4", "compressor": None, "fill_value": 0, "order": "C", "filters": None}
    refs = {"a/.zarray": json.dumps(array), **{f"a/{i}.0.0": [str(path.parent / "raw.bin"), i * 32 * 8400, 32 * 8400] for i in range(3)}}
    (path.parent / "refs.json").write_text(json.dumps({"version": 1, "refs": {".zgroup": '{"zarr_format":2}', **refs}}))
    repo.link(path.parent / "refs.json", allow=[str(path.parent)])
    a = repo.at("main").array("a")
    for _ in range(2):
        np.testing.assert_array_equal(a[:40], x[:40])
        np.testing.assert_array_equal(a[...], x[:96])


def test_versions_are_closed(repo: zarrdb.Repository, snap: zarrdb.Snapshot) -> None:
    gone = []
    with zarrdb.codecs.use():
        for _ in range(3):
            v = repo.at("main")
            np.testing.assert_array_equal(zarr.open_array(v.store, path="a", mode="r")[...], x)
            v.array("a")[...]
            gone.append(weakref.ref(v))
    del v
    deadline = time.monotonic() + 60
    while any(g() is not None for g in gone) and time.monotonic() < deadline:  # zarr-python's thread lets go a moment later
        gc.collect()
        time.sleep(0.001)
    assert [g() for g in gone] == [None] * 3
