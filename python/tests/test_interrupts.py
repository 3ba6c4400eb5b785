"""A signal handler that raises at any statement leaves descriptors and locks right."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

import zarrdb
from zarrdb import _client, _engine, _session, _snapshot, _views

FILES = {m.__file__ for m in (_client, _engine, _session, _snapshot, _views)}
N = 1 << 16


class Stop(BaseException):
    """What the handler raises."""


def _start_of(code: CodeType, line: int) -> int:
    return min(start for start, _, at in code.co_lines() if at == line)


@contextlib.contextmanager
def tracing(on_line: Callable[[tuple[str, int]], None]) -> Iterator[None]:
    """Call a function before each statement of the modules. The end of a with statement is left out, which only gives a lock back:
    no signal is handled there. So are finalizers, of which Python prints exceptions."""

    def line(frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if event == "line" and (source(code, frame.f_lineno)[:5] != "with " or frame.f_lasti <= _start_of(code, frame.f_lineno)):
            on_line((code.co_filename, frame.f_lineno))
        return line

    def call(frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        return line if code.co_filename in FILES and not finalizes(frame) else None

    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(None)


def finalizes(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename.startswith(os.path.dirname(_engine.__file__)):
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


_sources: dict[str, list[str]] = {}


def source(code: CodeType, line: int) -> str:
    lines = _sources.get(code.co_filename)
    if lines is None:
        lines = _sources[code.co_filename] = [s.strip() for s in Path(code.co_filename).read_text().splitlines()]
    return lines[line - 1]


def work(path: Path, n: int) -> None:
    """Open, read, write, commit and close."""
    with zarrdb.open(path) as repo:
        snap = repo.at("main")
        assert len(set(snap.array("a")[:].tolist())) == 1
        assert len(set(snap.get("k") or b"x")) == 1
        s = repo.writable_session()
        s.array("a")[:] = n
        s.set("k", bytes([n % 256]) * 100_000)
        s.commit(str(n))
        repo.at("main").array("a")[:10]
        snap.close()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def check(path: Path, n: int) -> None:
    """The same client works, or says that it is closed and a new one works, with right values."""
    for again in (False, True):
        try:
            repo = zarrdb.open(path)
            s = repo.writable_session()
            s.array("a")[:] = n
            assert (s.array("a")[:] == n).all()
            s.discard()
            assert len(set(repo.at("main").array("a")[:].tolist())) == 1
            break
        except zarrdb.ZarrdbError:
            if again:
                raise
    locks: list[Any] = [repo._client._lock, _client._shared_lock, _engine._loading]
    assert not _engine._held and not any(lock._is_owned() for lock in locks)


def test_a_handler_that_uses_the_session(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may come in the middle of a read or write of the same key, and while its thread opens the database."""
    repo = zarrdb.open(path, create=True)
    s = repo.writable_session()
    s.set("k", b"1")
    n = 0

    def handler(*_: object) -> None:
        nonlocal n
        n += 1
        s.set("k", b"%d" % n)
        assert zarrdb.open(path).session(s.id).get("k") == b"%d" % n

    def hangs(*_: object) -> None:
        raise AssertionError("it hangs")

    def sends(fn: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            monkeypatch.undo()
            signal.raise_signal(signal.SIGUSR1)
            return fn(*args)

        return run

    was = {number: signal.signal(number, fn) for number, fn in ((signal.SIGUSR1, handler), (signal.SIGALRM, hangs))}
    signal.alarm(60)
    try:
        monkeypatch.setattr(_engine, "get", sends(_engine.get))
        assert s.get("k") == b"1"
        monkeypatch.setattr(_engine, "Database", sends(_engine.Database))
        repo.close()
        assert s.get("k") == b"2"
    finally:
        signal.alarm(0)
        for number, fn in was.items():
            signal.signal(number, fn)
    assert n == 2 and s.get("k") == b"2"


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
def test_a_handler_that_raises(path: Path) -> None:
    """At the first time that a statement runs, of some statements; with EACH=1 of all, at the last time, too."""
    with zarrdb.open(path, create=True) as repo, repo.transaction() as store:
        store.session.set("k", b"1" * 100_000)
        import zarr

        zarr.create_array(store, name="a", data=np.zeros(N, "i4"), chunks=(N,))
    del repo, store
    server = subprocess.Popen([_client.binary(), "serve", path, "--local"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def hangs(*_: object) -> None:
        raise AssertionError("it hangs")

    was = signal.signal(signal.SIGALRM, hangs)
    try:
        check(path, 1)
        gc.collect()
        before = descriptors()
        seen: dict[tuple[str, int], int] = {}

        def count(at: tuple[str, int]) -> None:
            seen[at] = seen.get(at, 0) + 1

        with tracing(count):
            work(path, 2)
        assert len(seen) > 150
        wrong = []
        for i, (at, times) in enumerate(sorted(seen.items())):
            each = os.environ.get("EACH")
            for visit in {1, times} if each else {1} if i % 5 == 0 else ():
                kind = (Stop, TimeoutError)[(i + visit) % 2]
                gc.collect()
                left = visit

                def stop(here: tuple[str, int], at: tuple[str, int] = at, kind: type[BaseException] = kind) -> None:
                    nonlocal left
                    left -= here == at
                    if left == 0 and here == at:
                        raise kind("stop")

                where = f"{os.path.basename(at[0])}:{at[1]} at visit {visit} of {times}"
                signal.setitimer(signal.ITIMER_REAL, 120)
                try:
                    with tracing(stop):
                        work(path, i % 250)
                    if left <= 0:
                        wrong.append(f"{where}: what was raised was lost")
                except kind as e:
                    if str(e) != "stop":
                        wrong.append(f"{where}: {e!r}")
                except BaseException as e:
                    wrong.append(f"{where}: {type(e).__name__}: {e}")
                try:
                    check(path, i % 250)
                    gc.collect()
                    if descriptors() > before:
                        wrong.append(f"{where}: {descriptors() - before} descriptors are left")
                        before = descriptors()
                except BaseException as e:
                    wrong.append(f"{where}: then {type(e).__name__}: {e}")
                signal.setitimer(signal.ITIMER_REAL, 0)
        assert not wrong, "\n".join(wrong)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, was)
        server.terminate()
        server.wait()
