"""Chunks without codecs are copied from files of the database."""

from __future__ import annotations

import gc
import json
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from conftest import end

import zarrdb
from zarrdb import _plain
from zarrdb import _wire as w

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
    elements = a._elements
    assert elements is not None and (elements.plain is not None) == (name in ("a", "dots"))
    for _ in range(2):
        for sel in SELECTIONS:
            np.testing.assert_array_equal(a[sel], x[sel])
            out = np.zeros(x[sel].shape, "f8")
            np.testing.assert_array_equal(a.read(sel, out=out), x[sel])
    got = a[:32, :32]
    got[:] = 0  # it is the caller's
    np.testing.assert_array_equal(a[:32, :32], x[:32, :32])


def count(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """How many requests of each kind are sent from here on."""
    asked: dict[int, int] = {}
    start, lock = w.Link.start, threading.Lock()

    def counted(self: w.Link, op: int, *args: Any, **more: Any) -> int | None:
        with lock:
            asked[op] = asked.get(op, 0) + 1
        return start(self, op, *args, **more)

    monkeypatch.setattr(w.Link, "start", counted)
    return asked


def test_a_chunk_is_asked_for_once(snap: zarrdb.Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    a = snap.array("a")
    asked = count(monkeypatch)
    for _ in range(3):
        np.testing.assert_array_equal(a[64:96, 32:64], x[64:96, 32:64])
    assert asked == {w.GET: 1}
    for _ in range(3):  # there is no value of that one
        np.testing.assert_array_equal(a[32:64, :32], x[32:64, :32])
    assert asked[w.READ] == 3
    monkeypatch.setattr(_plain, "SHORTEST", 1 << 20)
    np.testing.assert_array_equal(a[64:96, 32:64], x[64:96, 32:64])
    assert asked[w.READ] == 4


def test_files_that_were_closed(snap: zarrdb.Snapshot) -> None:
    a = snap.array("a")
    a[:32, :32]
    link, _ = snap._at()
    numbers = list(link._files)
    link._files.clear()
    link._dropped.extend(numbers)
    for _ in range(2):
        np.testing.assert_array_equal(a[:32, :32], x[:32, :32])
    assert link._files  # it was passed again


def test_another_server(snap: zarrdb.Snapshot) -> None:
    a = snap.array("a")
    a[:32, :32]
    end(snap._client.dir)
    np.testing.assert_array_equal(a[:32, :32], x[:32, :32])
    np.testing.assert_array_equal(a[64:96, :32], x[64:96, :32])


def test_without_files(snap: zarrdb.Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that passes no files sends bytes."""
    call = w.Link.call
    monkeypatch.setattr(w.Link, "call", lambda self, op, meta, body=b"", flags=0, fds=(): call(self, op, meta, body, flags | w.BYTES * (op == w.GET), fds))
    a = snap.array("a")
    for _ in range(2):
        np.testing.assert_array_equal(a[:32, :32], x[:32, :32])


def test_collected_beside_a_reader(repo: zarrdb.Repository, snap: zarrdb.Snapshot) -> None:
    """What a version has stays readable from its map while its space is to be given back."""
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


@pytest.mark.parametrize("threads", [1, 4])
def test_many_chunks(snap: zarrdb.Snapshot, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    """Threads copy what is stored, the server decodes the rest."""
    monkeypatch.setattr(_plain, "LONG", 1)
    monkeypatch.setattr(_plain, "FEW", 1)
    monkeypatch.setattr(_plain, "THREADS", threads)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(4)), raising=False)
    for name in ("a", "dots"):
        a = snap.array(name)
        asked = count(monkeypatch)
        for sel in SELECTIONS:
            np.testing.assert_array_equal(a[sel], x[sel])
            out = np.zeros(x[sel].shape, "i4")
            assert a.read(sel, out=out) is out
            np.testing.assert_array_equal(out, x[sel])
        assert asked[w.GET] >= 12 and asked[w.READ] > 0


def test_through_zarr_python(snap: zarrdb.Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_plain, "LONG", 1)
    with zarrdb.codecs.use():
        for name in ("a", "dots", "big", "zstd"):
            z = zarr.open_array(snap.store, path=name, mode="r")
            asked = count(monkeypatch)
            for _ in range(2):
                np.testing.assert_array_equal(z[...], x)
                np.testing.assert_array_equal(z[:32, :32], x[:32, :32])
            assert (asked.get(w.GET, 0) > 0) == (name in ("a", "dots")) and asked.get(w.ARRAY, 0) <= 1


def test_an_error_ends_all_threads(snap: zarrdb.Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_plain, "LONG", 1)
    a = snap.array("a")

    def fail(*args: Any) -> None:
        raise KeyboardInterrupt

    before = threading.active_count()
    with monkeypatch.context() as m:
        m.setattr(_plain.PlainChunks, "_chunk", fail)
        with pytest.raises(KeyboardInterrupt):
            a[...]
    assert threading.active_count() <= before
    np.testing.assert_array_equal(a[...], x)


def test_linked_chunks(repo: zarrdb.Repository, path: Path) -> None:
    """Chunks in other files come as bytes once, and are decoded by the server then."""
    (path.parent / "raw.bin").write_bytes(x[:96].tobytes())
    array = {"zarr_format": 2, "shape": [96, 70, 30], "chunks": [32, 70, 30], "dtype": "<i4", "compressor": None, "fill_value": 0, "order": "C", "filters": None}
    refs = {"a/.zarray": json.dumps(array), **{f"a/{i}.0.0": [str(path.parent / "raw.bin"), i * 32 * 8400, 32 * 8400] for i in range(3)}}
    (path.parent / "refs.json").write_text(json.dumps({"version": 1, "refs": {".zgroup": '{"zarr_format":2}', **refs}}))
    repo.link(path.parent / "refs.json", allow=[str(path.parent)])
    a = repo.at("main").array("a")
    for _ in range(2):
        np.testing.assert_array_equal(a[:40], x[:40])
        np.testing.assert_array_equal(a[...], x[:96])
    assert a._elements is not None and a._elements.plain is not None and a._elements.plain._elsewhere


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
