"""The library in the process: how it is loaded, what it knows of the process, and what it gives back."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zarrdb
from zarrdb import _engine


@pytest.fixture
def a(repo: zarrdb.Repository) -> Any:
    with repo.transaction() as store:
        zarr.create_array(store, name="a", data=np.arange(60.0).reshape(3, 4, 5), chunks=(1, 4, 5))
    return repo.at("main").array("a")


@pytest.mark.parametrize("key", [
    (1, 2, 3), (0, 0, 0), (2, 3, 4), (-1, -1, -1), (1, 2), 1, (), np.s_[::2, 1], np.s_[::-1], np.s_[..., -1], np.s_[None, 1, :, None], np.s_[:, 3:1], np.s_[:: 10**30],
    (np.int64(1), 2, np.int32(3)), np.s_[2:0:-1, ::3, 4:1:-2],
])  # fmt: skip
def test_selections(a: Any, key: Any) -> None:
    x = np.arange(60.0).reshape(3, 4, 5)
    got = a[key]
    np.testing.assert_array_equal(got, x[key])
    assert np.shape(got) == np.shape(x[key])
    if np.ndim(got) == 0:
        assert type(got) is type(x[key])


@pytest.mark.parametrize("key", [(3, 0, 0), (0, 0, -6), (0, 0, 0, 0)])
def test_outside(a: Any, key: Any) -> None:
    with pytest.raises(IndexError):
        a[key]


@pytest.mark.parametrize("key", [(True, 0, 0), (1.0, 0, 0)])
def test_other_selections(a: Any, key: Any) -> None:
    with pytest.raises(zarrdb.InvalidError, match="numbers, slices"):
        a[key]


def test_elements_of_many_threads(a: Any) -> None:
    wrong: list[Any] = []

    def reads() -> None:
        for i in range(500):
            at = i % 3, i % 4, i % 5
            if a[at] != at[0] * 20 + at[1] * 5 + at[2]:
                wrong.append(at)

    threads = [threading.Thread(target=reads) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.parametrize("how", ["list", "buffer", "dlpack", "transposed"])
def test_read_into_memory_of_others(a: Any, how: str) -> None:
    x = np.arange(60.0).reshape(3, 4, 5)
    memory = np.zeros((5, 4, 3) if how == "transposed" else x.shape)
    if how == "list":
        with pytest.raises(zarrdb.InvalidError, match="memory of out, list"):
            a.read(out=memory.tolist())
        return

    class Lends:
        def __init__(self) -> None:
            if how == "buffer":
                self.__array_interface__ = memory.__array_interface__

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return memory

    out: Any = memory.T if how == "transposed" else Lends()
    assert a.read(out=out) is out
    np.testing.assert_array_equal(memory.T if how == "transposed" else memory, x)


@pytest.mark.skipif(sys.platform != "linux", reason="bounds memory")
def test_one_value_is_written_without_copies(repo: zarrdb.Repository, path: Path) -> None:
    """The values of a broadcast, or with strides, are not laid out in memory first."""
    with repo.transaction() as store:
        zarr.create_array(store, name="big", shape=(1 << 16, 1 << 16), chunks=(1 << 12, 1 << 16), dtype="i8", fill_value=7)
        zarr.create_array(store, name="small", shape=(16, 32), chunks=(5, 6), dtype="i8", fill_value=7)
    s = repo.writable_session()
    s.array("big")[:] = 7  # 32 GiB
    x = np.arange(16, dtype="i8")
    s.array("small")[4:12:2, 16:0:-1] = np.broadcast_to(x, (4, 16))[:, ::-1]
    want = np.full((16, 32), 7)
    want[4:12:2, 1:17] = x
    np.testing.assert_array_equal(s.array("small")[:], want)
    s.discard()


RUNS = {
    "a module that is loaded again": """
import importlib
a = zarrdb.open(sys.argv[1]).at("main").array("a")
first = a[1, 2, 3]
importlib.reload(sys.modules["zarrdb._engine"])
check(a)
for name in [n for n in sys.modules if n.startswith("zarrdb")]:
    del sys.modules[name]
import zarrdb
b = zarrdb.open(sys.argv[1]).at("main").array("a")
check(a, b)
child(lambda: check(b))
""",
    "a module that a child loads again": """
a = zarrdb.open(sys.argv[1]).at("main").array("a")
a[:]
def again():
    for name in [n for n in sys.modules if n.startswith("zarrdb")]:
        del sys.modules[name]
    import zarrdb
    b = zarrdb.open(sys.argv[1]).at("main").array("a")
    check(b)
    child(lambda: check(b))
child(again)
check(a)
""",
    "values that were mapped before fork": """
repo = zarrdb.open(sys.argv[1])
snap = repo.at("main")
snap.array("a")[:]
assert len(snap.get("k")) == 1 << 20
def reads():
    more = [bytearray(1 << 20) for _ in range(64)]
    check(snap.array("a"))
    assert snap.get("k") == bytes(1 << 20) and not any(map(any, more))
for _ in range(3):
    child(reads)
""",
}


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="a child needs files in memory")
@pytest.mark.parametrize("what", RUNS)
def test_process(repo: zarrdb.Repository, path: Path, a: Any, what: str) -> None:
    with repo.transaction() as store:
        store.session.set("k", bytes(1 << 20))
    program = """
import os, sys
import numpy as np
import zarrdb
def check(*arrays):
    for a in arrays:
        assert (a[:] == np.arange(60.0).reshape(3, 4, 5)).all() and a[1, 2, 3] == 33
def child(fn):
    pid = os.fork()
    if pid == 0:
        import signal, traceback
        signal.alarm(60)
        try:
            fn()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
"""
    p = subprocess.run([sys.executable, "-c", program + RUNS[what], path], capture_output=True, text=True, check=False, timeout=120)
    assert p.returncode == 0, p.stderr


def test_a_library_of_another_version(a: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    a[:]
    monkeypatch.setattr(_engine, "_library", None)
    monkeypatch.setattr(_engine, "VERSION", -1)
    with pytest.raises(zarrdb.UnsupportedError, match="make it again"):
        _engine._load()


def test_memory_that_a_handler_left(a: Any) -> None:
    """It is let go by the next call."""
    _engine._held[-1] = np.zeros(1)
    a[:]
    a.view._inside(lambda v: _engine.Opened(v, "a"))
    assert not _engine._held
