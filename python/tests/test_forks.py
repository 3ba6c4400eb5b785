"""The library of the package in processes that fork, end and are interrupted: the table of docs/design/python.md in short."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zarrdb
from zarrdb import _engine

ROUNDS = int(os.environ.get("ROUNDS", "3"))
ROWS = 64


def row(i: int) -> np.ndarray[Any, Any]:
    return (np.arange(4096, dtype="i4") * 7 + i * 1000).astype("i4")


@pytest.fixture
def snap(repo: zarrdb.Repository) -> zarrdb.Snapshot:
    with repo.transaction() as store:
        zarr.create_array(store, name="a", data=np.stack([row(i) for i in range(ROWS)]), chunks=(1, 4096))
    return repo.at("main")


def reads(snap: zarrdb.Snapshot, n: int) -> int:
    """Read n rows, and compare them."""
    a, some = snap.array("a"), random.Random()
    for _ in range(n):
        i = some.randrange(ROWS)
        assert (a[i] == row(i)).all()
    return n


@contextmanager
def readers(snap: zarrdb.Snapshot, n: int = 4) -> Iterator[None]:
    over, wrong = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            while not over.is_set():
                reads(snap, 5)
        except BaseException as e:
            wrong.append(e)

    threads = [threading.Thread(target=run) for _ in range(n)]
    for t in threads:
        t.start()
    try:
        yield
    finally:
        over.set()
        for t in threads:
            t.join()
    assert not wrong


def forked(fn: Any) -> None:
    """Run fn in a child, which has a minute."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(60)
            fn()
            code = 0
        except BaseException as e:
            print(repr(e), file=sys.stderr)
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


def test_fork_while_threads_read(repo: zarrdb.Repository, snap: zarrdb.Snapshot) -> None:
    def child() -> None:
        reads(snap, 20)
        s = repo.writable_session()
        s.array("a")[0, 0] = os.getpid()
        assert s.array("a")[0, 0] == os.getpid()
        s.discard()
        forked(lambda: reads(snap, 10))

    with readers(snap):
        for _ in range(ROUNDS):
            forked(child)
    reads(snap, 10)


def test_a_child_gives_back_what_its_parent_has_open(snap: zarrdb.Snapshot) -> None:
    reads(snap, 1)
    here = snap._client.dir

    def child() -> None:
        open_files = [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")]
        assert not [f for f in open_files if f.startswith(here)]
        assert f"{here}/packs" not in Path("/proc/self/maps").read_text()

    if os.path.isdir("/proc/self/fd"):
        forked(child)


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_pools(snap: zarrdb.Snapshot, how: str) -> None:
    reads(snap, 2)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(how)) as pool:
        assert list(pool.map(reads, [snap] * 4, [10] * 4, timeout=120)) == [10] * 4


def test_ends(snap: zarrdb.Snapshot) -> None:
    """By itself while daemon threads read, and by SIGTERM."""
    code = (
        f"import sys, threading, time; sys.path.insert(0, {os.path.dirname(__file__)!r}); import test_forks as t, zarrdb\n"
        f"snap = zarrdb.open({snap._client.dir!r}).at('main')\n"
        "for _ in range(3): threading.Thread(target=t.reads, args=(snap, 10**9), daemon=True).start()\n"
        "t.reads(snap, 3); print(1, flush=True); time.sleep(float(sys.argv[1]))"
    )
    for i in range(ROUNDS):
        p = subprocess.run([sys.executable, "-c", code, str(i / 50)], capture_output=True, text=True, timeout=60, check=False)
        assert (p.returncode, p.stdout) == (0, "1\n"), p.stderr
        with subprocess.Popen([sys.executable, "-c", code, "60"], stdout=subprocess.PIPE) as q:
            assert q.stdout is not None
            q.stdout.readline()
            q.terminate()
            assert q.wait(30) == -signal.SIGTERM


def test_signals_reach_the_main_thread(snap: zarrdb.Snapshot) -> None:
    """A thread to which Go sends a signal could take one that was meant for the main thread, which would sleep on."""
    assert b"asyncpreemptoff=1" in Path(_engine.path()).read_bytes()

    class Sent(Exception):
        pass

    def handler(*_: object) -> None:
        raise Sent

    was = signal.signal(signal.SIGUSR1, handler)
    try:
        with readers(snap, 2):
            for _ in range(10 * ROUNDS):
                timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGUSR1))
                with pytest.raises(Sent):
                    timer.start()
                    time.sleep(60)
                timer.join()
    finally:
        signal.signal(signal.SIGUSR1, was)


def test_ctrl_c(repo: zarrdb.Repository) -> None:
    """It ends a long read soon, and the memory is in use no more."""
    s = repo.writable_session()
    zarr.create_array(s.store, name="long", shape=(1 << 24,), chunks=(1 << 16,), dtype="i4", fill_value=1)
    s.array("long")[: 1 << 22] = 5
    s.commit("long")
    a = repo.at("main").array("long")
    for _ in range(ROUNDS):
        sent: list[float] = []
        timer = threading.Timer(0.05, lambda sent: (sent.append(time.monotonic()), os.kill(os.getpid(), signal.SIGINT)), [sent])
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            while True:
                a[:]
        print(f"Ctrl-C after {time.monotonic() - sent[0]:.3f} s")
        timer.join()
    assert a[0] == 5 and a[-1] == 1
