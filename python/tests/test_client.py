from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from conftest import holder

import zarrdb
from zarrdb import _client, _errors


def commit(repo: zarrdb.Repository, **values: bytes) -> zarrdb.Commit:
    s = repo.writable_session()
    for key, value in values.items():
        s.set(key, value)
    return s.commit("set " + " ".join(values))


def kill(path: Path, sig: int = signal.SIGKILL) -> None:
    pid = holder(path)
    assert pid
    os.kill(pid, sig)
    gone(pid)


def gone(pid: int) -> None:
    """Wait for the end of a process that the library has started."""
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.kill(pid, 0)
            time.sleep(0.001)


def test_values(repo: zarrdb.Repository) -> None:
    big = os.urandom(3 << 20)
    commit(repo, small=b"abc", big=big, empty=b"")
    v = repo.at("main")
    assert v.get("small") == b"abc" and v.get("big") == big and v.get("empty") == b"" and v.get("none") is None
    assert v.size("big") == len(big) and v.size("none") is None
    assert v.get_part("big", 5, 40000) == big[5:40000] and v.get_part("big", last=10) == big[-10:]
    assert v.get_part("small", 1, 100) == b"bc" and v.get_part("small", last=100) == b"abc" and v.get_part("small", 9) == b""
    assert list(v.keys()) == ["big", "empty", "small"] and list(v.keys("s")) == ["small"]


def test_memory_of_values(repo: zarrdb.Repository) -> None:
    """What has bytes is stored, in the order of C; the rest is an error, and removes nothing."""
    s = repo.writable_session()
    numbers = np.arange(24, dtype=">i4").reshape(4, 6)
    fixed = numbers.copy()
    fixed.flags.writeable = False
    for value in (numbers, numbers[::2, 1:], np.asfortranarray(numbers), numbers[::-1], fixed, fixed[:, ::3], np.empty((0, 3)), np.empty((3, 0)), numbers[0, 0]):
        s.set("k", value)
        assert s.get("k") == value.tobytes()
    s.set("k", b"1")
    wrong: list[Any] = [None, "text", 1, [1], np.array([object()])]
    for value in wrong:
        with pytest.raises(TypeError):
            s.set("k", value)
    assert s.get("k") == b"1"


@pytest.mark.parametrize("size", [0, 100, 1 << 20])
def test_values_in_all_forms(repo: zarrdb.Repository, size: int) -> None:
    s, want = repo.writable_session(), os.urandom(size)
    fixed = np.frombuffer(want, "u1")
    assert not fixed.flags.writeable
    for value in (want, bytearray(want), memoryview(want), memoryview(bytearray(want)), fixed, fixed.copy(), fixed[: size // 4 * 4].view("f4")):
        s.set("k", value)
        assert s.get("k") == bytes(memoryview(value).cast("B"))


def test_lost_session() -> None:
    e = _errors.failure({"code": "lost", "message": "m", "session": "id", "saved": "2026-01-31T12:00:00Z", "committing": True})
    assert isinstance(e, zarrdb.SessionLostError) and (e.session, e.saved and e.saved.year, e.committing) == ("id", 2026, True)
    e = _errors.failure({"code": "lost", "message": "m", "session": "id", "saved": "0001-01-01T00:00:00Z"})
    assert isinstance(e, zarrdb.SessionLostError) and (e.saved, e.committing) == (None, False)


def test_commit_warns(path: Path) -> None:
    """Of background work that failed before."""
    with zarrdb.open(path, create=True) as repo:
        commit(repo, k=b"1")
    (path / "checkpoints").mkdir(exist_ok=True)
    (path / "checkpoints" / "ERROR").write_text("no room")
    with pytest.warns(RuntimeWarning, match="checkpoint: no room"):
        commit(zarrdb.open(path), k=b"2")


def test_listing_has_pages(repo: zarrdb.Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    s = repo.writable_session()
    names = sorted(f"d{i % 3}/{i:05}" for i in range(300))
    for name in names:
        s.set(name, b"x")
    monkeypatch.setattr(zarrdb._views, "PAGE", 7)
    monkeypatch.setattr(zarrdb._session, "PAGE", 7)
    assert list(s.keys()) == names
    assert list(s.children()) == ["d0/", "d1/", "d2/"]
    assert list(s.children("d1/")) == [n[3:] for n in names if n.startswith("d1/")]
    assert len(s.changes()) == 300


def test_threads_share_a_connection(repo: zarrdb.Repository) -> None:
    values = {f"k{i}": os.urandom(1 << i) for i in range(20)}
    commit(repo, **values)
    v, bad = repo.at("main"), []

    def read() -> None:
        for _ in range(20):
            bad.extend(k for k, b in values.items() if v.get(k) != b)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not bad


def child(v: zarrdb.Snapshot, out: object) -> None:
    out.put(v.get("k"))  # type: ignore[attr-defined]


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_other_processes(repo: zarrdb.Repository, how: str) -> None:
    commit(repo, k=b"abc")
    v = repo.at("main")
    assert v.get("k") == b"abc"
    ctx = multiprocessing.get_context(how)
    out = ctx.Queue()
    ps = [ctx.Process(target=child, args=(v, out)) for _ in range(3)]
    for p in ps:
        p.start()
    assert [out.get(timeout=600) for _ in ps] == [b"abc"] * 3
    for p in ps:
        p.join()
    assert v.get("k") == b"abc"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_while_threads_read(repo: zarrdb.Repository) -> None:
    commit(repo, k=b"abc", big=bytes(1 << 20))
    s, v, stop = repo.writable_session(), repo.at("main"), threading.Event()

    def work() -> None:
        while not stop.is_set():
            assert v.get("big") == bytes(1 << 20) and s.get("k") == b"abc"

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for _ in range(10):
        pid = os.fork()
        if pid == 0:
            os._exit(0 if v.get("k") == b"abc" and s.get("k") == b"abc" and v.size("big") == 1 << 20 else 1)
        assert os.waitpid(pid, 0)[1] == 0
    stop.set()
    for t in threads:
        t.join()
    assert v.get("k") == b"abc"


@contextlib.contextmanager
def interrupts() -> Iterator[Callable[[float], None]]:
    """A function that has KeyboardInterrupt raised after a time: once, however long this process
    then takes to handle it. It is raised again if a finalizer got it, which nothing can handle."""
    armed, late = False, 0.0

    def hit(*_: object) -> None:
        nonlocal armed
        if armed:
            armed = False
            raise KeyboardInterrupt
        assert time.monotonic() < late, "an interrupt was lost"

    def lost(u: sys.UnraisableHookArgs) -> None:
        nonlocal armed
        if u.exc_type is KeyboardInterrupt:
            armed = True
        else:
            hook(u)

    def arm(after: float) -> None:
        nonlocal armed, late
        armed, late = True, time.monotonic() + 600
        signal.setitimer(signal.ITIMER_REAL, after, 0.05)

    hook, sys.unraisablehook = sys.unraisablehook, lost
    old = signal.signal(signal.SIGALRM, hit)
    try:
        yield arm
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
        sys.unraisablehook = hook


def test_interrupts(repo: zarrdb.Repository) -> None:
    """Ctrl-C at any point leaves a client that works, and values that are whole."""
    values = {"a": bytes(100), "b": os.urandom(2 << 20)}
    commit(repo, **values)
    v, s = repo.at("main"), repo.writable_session()
    for k, b in values.items():
        s.set(k, b)
    with interrupts() as arm:
        for i in range(60):
            with pytest.raises(KeyboardInterrupt):
                arm(0.0005 + i * 0.0001)
                while True:
                    for k, b in values.items():
                        assert v.get(k) == b and s.get(k) == b
                        s.set(k, b)
    for k, b in values.items():
        assert v.get(k) == b and s.get(k) == b
    assert len(list(s.keys())) == 2


def test_interrupts_of_all_requests(repo: zarrdb.Repository, path: Path) -> None:
    """The same for arrays, commits and commands."""
    x = np.arange(1 << 18, dtype="i4").reshape(512, 512)
    with repo.transaction() as store:
        zarr.create_array(store, name="a", data=x, chunks=(64, 512))
    a, s = repo.at("main").array("a"), repo.writable_session()
    mine, commits = s.array("a"), 0

    def publish() -> None:
        nonlocal commits
        t = repo.writable_session()
        t.set(f"k{commits}", b"x")
        commits += 1
        t.commit("one more")

    requests: list[Callable[[], object]] = [
        lambda: a[:], lambda: a[3:400, 5], lambda: a.read_many([(i, slice(0, 100)) for i in range(50)]), lambda: mine.write(slice(0, 100), x[:100]),
        publish, lambda: list(repo.ancestry(limit=3)), lambda: repo.run("log", repo.path), lambda: repo.blame("a"), lambda: s.fork().discard(),
        lambda: zarrdb.open(path).at("main").get("a/zarr.json"),
    ]  # fmt: skip
    with interrupts() as arm:
        for request in requests:
            for i in range(10):
                with pytest.raises(KeyboardInterrupt):
                    arm(0.0005 + i * 0.0007)
                    while True:
                        request()
            request()
    assert (a[:] == x).all() and (mine[:] == x).all() and repo.fsck(full=True)["problems"] == []
    s.commit("the same", allow_empty=True)
    assert len([c for c in repo.ancestry() if c.message == "one more"]) <= commits


def test_reads_go_on_when_the_server_is_killed(repo: zarrdb.Repository, path: Path) -> None:
    commit(repo, k=b"abc", big=bytes(1 << 20))
    v = repo.at("main")
    assert v.get("big") == bytes(1 << 20)
    for sig in (signal.SIGKILL, signal.SIGTERM):
        kill(path, sig)
        assert v.get("k") == b"abc" and v.get("big") == bytes(1 << 20)
        assert v.size("other") is None and repo.list_branches() == ["main"]  # which another process answers


def test_commands_run_whoever_has_the_database_open(repo: zarrdb.Repository, path: Path) -> None:
    """A command is a process of its own: it joins the server, or the next one."""
    commit(repo, k=b"abc")
    assert "main" in repo.run("branch", repo.path)
    kill(path, signal.SIGKILL)
    repo.run("tag", repo.path, "v1")
    assert repo.list_tags() == ["v1"]


def test_threads_read_on_while_servers_are_killed(repo: zarrdb.Repository, path: Path) -> None:
    values = {"k": b"abc", "big": os.urandom(1 << 20)}
    commit(repo, **values)
    v, stop, bad, done = repo.at("main"), threading.Event(), [], [0] * 4

    def work(i: int) -> None:
        try:
            while not stop.is_set():
                assert all(v.get(k) == b for k, b in values.items())
                done[i] += 1
        except (AssertionError, zarrdb.ZarrdbError) as e:
            bad.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for _ in range(5):
        before = list(done)
        while not bad and any(a == b for a, b in zip(before, done, strict=True)):
            stop.wait(0.01)
        kill(path)
        repo.list_branches()  # one is there again
    stop.set()
    for t in threads:
        t.join()
    assert not bad


def test_session_goes_on_when_the_server_is_killed(repo: zarrdb.Repository, path: Path) -> None:
    s = repo.writable_session()
    s.set("a", b"1")
    s.savepoint()
    kill(path)
    assert s.get("a") == b"1"
    s.set("b", b"2")
    pickled = pickle.dumps(s)
    kill(path)
    assert pickle.loads(pickled).get("b") == b"2"
    s.set("c", b"3")
    kill(path)
    s.commit("x")
    now = repo.at("main")
    assert [now.get(k) for k in "abc"] == [b"1", b"2", b"3"]


def test_session_without_a_savepoint(repo: zarrdb.Repository, path: Path) -> None:
    s = repo.writable_session(label="l")
    assert s.saved is None and s.get("a") is None
    kill(path)
    s.set("a", b"1")  # nothing was written before: the next server begins it again
    assert (s.label, s.saved) == ("l", None)
    pickled = pickle.dumps(s)
    kill(path)
    assert s.get("a") == b"1" and s.label == "l"
    assert pickle.loads(pickled).get("a") == b"1"
    s.discard()
    with pytest.raises(zarrdb.NotFoundError):
        repo.session(s.id)


@contextlib.contextmanager
def served(path: Path) -> Iterator[int]:
    """A process that serves a database, and stays when this one leaves. Its id."""
    zarrdb.open(path, create=True).close()
    with subprocess.Popen([_client.binary(), "serve", path, "--local"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        while holder(path) != server.pid:
            time.sleep(0.001)
        try:
            yield server.pid
        finally:
            server.kill()


def test_a_session_that_wrote_what_was_there(path: Path) -> None:
    """It goes on after its connection has ended, as any session in which something was written."""
    with served(path):
        repo = zarrdb.open(path)
        commit(repo, k=b"1")
        s = repo.writable_session()
        s.set("k", b"2")
        s.set("k", b"1")
        repo.close()
        assert s.get("k") == b"1"
        s.set("k", b"3")
        s.commit("three")
        assert repo.at("main").get("k") == b"3"


def test_others_close_the_database(path: Path) -> None:
    """Each call takes place once, before the database is closed or after it was opened again."""
    zarrdb.open(path, create=True).close()
    over, wrong = threading.Event(), list[BaseException]()

    def opens() -> None:
        try:
            while not over.is_set():
                with zarrdb.open(path) as repo:
                    repo.at("main").get("k")
        except BaseException as e:
            wrong.append(e)

    threads = [threading.Thread(target=opens) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        for n in range(100):
            repo = zarrdb.open(path)
            s = repo.writable_session()
            s.set("k", b"x")
            repo.close()
            s.set("k", b"%d" % n)
            assert s.get("k") == b"%d" % n
            s.commit(str(n))
    finally:
        over.set()
        for t in threads:
            t.join()
    assert not wrong
    assert [c.message for c in zarrdb.open(path).ancestry()][:-1] == [str(n) for n in reversed(range(100))]


def test_what_is_gone_is_not_a_missing_key(repo: zarrdb.Repository, path: Path) -> None:
    s = repo.writable_session()
    s.set("k", b"1")
    s.savepoint()
    reads: list[Callable[[], Any]] = [
        lambda: s.get("k"), lambda: s.get_part("k", 0, 1), lambda: s.size("k"), lambda: s.mapping["k"], lambda: "k" in s.mapping,
    ]  # fmt: skip
    assert [read() for read in reads] == [b"1", b"1", 1, b"1", True]
    repo.close()
    subprocess.run([_client.binary(), "session", "abort", path, s.id], check=True, capture_output=True)
    for read in reads:
        with pytest.raises(zarrdb.NotFoundError) as failed:
            read()
        assert failed.value.code == "no_ref"


def test_pickled_session_outlives_its_client(repo: zarrdb.Repository) -> None:
    s = repo.writable_session()
    pickled = pickle.dumps(s)
    del s
    other = pickle.loads(pickled)
    other.set("a", b"1")
    other.commit("a")
    assert repo.at("main").get("a") == b"1"


def test_guard_survives_a_lost_connection(repo: zarrdb.Repository, path: Path) -> None:
    commit(repo, a=b"1")
    s = repo.writable_session()
    s.guard("a")
    kill(path)
    commit(repo, a=b"2")
    s.set("b", b"1")
    with pytest.raises(zarrdb.ConflictError):
        s.commit("b")


def test_shared_session_is_stored(repo: zarrdb.Repository, path: Path) -> None:
    s = repo.writable_session()
    s.set("a", b"1")
    other = repo.session(s.id)  # more than one client has it now
    assert other.get("a") == b"1"
    kill(path)
    assert repo.session(s.id).get("a") == b"1"


def test_session_that_others_wrote_goes_on(repo: zarrdb.Repository, path: Path) -> None:
    s = repo.writable_session()
    other = pickle.loads(pickle.dumps(s))
    other.set("a", b"1")
    kill(path)
    s.commit("x")
    assert repo.at("main").get("a") == b"1"


def test_session_goes_on_after_an_orderly_end(repo: zarrdb.Repository, path: Path) -> None:
    s = repo.writable_session()
    s.set("a", b"1")
    kill(path, signal.SIGTERM)
    s.set("b", b"2")
    assert [c.key for c in s.changes()] == ["a", "b"]
    s.commit("x")
    assert repo.at("main").get("a") == b"1"


def test_lost_update_raises(repo: zarrdb.Repository) -> None:
    commit(repo, k=b"0")
    s = repo.writable_session()
    other = pickle.loads(pickle.dumps(s))
    assert s.get("k") == other.get("k") == b"0"
    s.set("k", b"1")
    s.set("k", b"2")
    with pytest.raises(zarrdb.ChangedError) as e:
        other.set("k", b"3")
    assert e.value.key == "k"
    assert other.get("k") == b"2"
    other.set("k", b"3")
    with pytest.raises(zarrdb.ChangedError):
        s.delete("k")


def test_two_starters(path: Path) -> None:
    _client.create(str(path))
    code = f"import zarrdb; print(len(list(zarrdb.open({str(path)!r}).ancestry())))"
    ps = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(4)]
    assert [p.communicate()[0].strip() for p in ps] == [b"1"] * 4


def test_no_database(path: Path) -> None:
    with pytest.raises(zarrdb.NotFoundError, match="create=True"):
        zarrdb.open(path)


def test_without_an_environment(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = _client.binary()
    monkeypatch.setattr(_client, "binary", lambda: program)
    for name in list(os.environ):
        monkeypatch.delenv(name)
    with zarrdb.open(path, create=True) as repo:
        assert repo.list_branches() == ["main"]


def test_socket_left_behind(repo: zarrdb.Repository, path: Path) -> None:
    kill(path)
    assert zarrdb.open(path).list_branches() == ["main"]


def test_many_views(repo: zarrdb.Repository) -> None:
    for _ in range(1100):
        assert repo.at("main").get("none") is None


EXITS = {
    "with a session and arrays": "s = repo.writable_session(); s.set('k', b'1'); a = v.array('a'); x = a[:]",
    "with a cycle": "class C: pass\nc = C(); c.c, c.s, c.a = c, repo.writable_session(), v.array('a'); c.x = c.a[:]",
    "held by a module that goes last": "os.held = v, v.array('a')",
    "in a transaction": "with repo.transaction() as store:\n    sys.exit()",
    "while threads read": """
def read():
    a = v.array("a")
    while True:
        assert a[5] == 5 and a[:][7] == 7 and v.get("a/c/0")
for _ in range(4):
    threading.Thread(target=read, daemon=True).start()
time.sleep(0.2)
""",
    "before threads have read": "for _ in range(4): threading.Thread(target=lambda: [v.array('a')[:] for _ in range(20)]).start()",
    "and reads in the end": "atexit.register(lambda: v.array('a')[:][5] == 5 or print('wrong'))",
    "of a child": "v.array('a')[:]\npid = os.fork()\nif pid: sys.exit(os.waitpid(pid, 0)[1])\nv.array('a')[:]",
}


@pytest.mark.parametrize("how", EXITS)
def test_exit(repo: zarrdb.Repository, path: Path, how: str) -> None:
    """A program ends at once and silently."""
    with repo.transaction() as store:
        zarr.create_array(store, name="a", data=np.arange(1 << 18), chunks=(1 << 14,))
    code = f"import atexit, os, sys, threading, time, zarrdb\nrepo = zarrdb.open({str(path)!r})\nv = repo.at('main')\n{EXITS[how]}"
    p = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=False, timeout=600)
    assert (p.returncode, p.stdout, p.stderr) == (0, "", "")
    assert repo.fsck(full=True)["problems"] == []


def _helper(tmp_path: Path, kills: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first processes that a client starts for a database be killed before they serve it."""
    program = tmp_path / "program"
    left = tmp_path / "left"
    left.write_text("x" * kills)
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = serve ] && [ -s "{left}" ]; then\n'
        f'read -r s < "{left}"; printf %s "${{s#x}}" > "{left}"; kill -9 $$\nfi\nexec "{zarrdb._client.binary()}" "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("ZARRDB_BINARY", str(program))


def test_helper_is_killed_while_it_starts(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _helper(tmp_path, 2, monkeypatch)
    with zarrdb.open(path, create=True) as repo:
        assert repo.list_branches() == ["main"]


def test_helper_is_killed_again_and_again(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _helper(tmp_path, 100, monkeypatch)
    with pytest.raises(zarrdb.ZarrdbError, match="killed by signal 9 before it did"):
        zarrdb.open(path, create=True).list_branches()


def test_creation_on_full_disk(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is that of the disk, and the same call makes the database when there is room."""
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\nmkdir -p "{path}/index"; touch "{path}/index/LOCK"\necho "zarrdb: {path}: no space left on device" >&2; exit 1\n')
    program.chmod(0o755)
    with monkeypatch.context() as m:
        m.setenv("ZARRDB_BINARY", str(program))
        with pytest.raises(zarrdb.ZarrdbError, match="no space left"):
            zarrdb.open(path, create=True)
    with zarrdb.open(path, create=True) as repo:
        assert repo.list_branches() == ["main"]


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the system has no files in memory")
def test_no_temporary_directory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **__: object) -> str:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr("tempfile.gettempdir", none)
    monkeypatch.setattr("tempfile._get_default_tempdir", none)
    monkeypatch.setattr("tempfile.TemporaryFile", none)
    with zarrdb.open(path, create=True) as repo:
        assert repo.list_branches() == ["main"]


def test_pause_of_holder(path: Path) -> None:
    """`wait` is for processes that do not serve the database. Without it, a request still waits out a pause of the server."""
    with zarrdb.open(path, create=True, wait=0) as repo:
        head = repo.resolve("main")
        pid = holder(path)
        assert pid
        os.kill(pid, signal.SIGSTOP)
        goes_on = threading.Timer(3, os.kill, (pid, signal.SIGCONT))
        goes_on.start()
        assert repo.resolve("main") == head
        goes_on.join()


def test_stopped_holder(path: Path) -> None:
    """While the process that has the database open is stopped, every call ends and names the process."""
    repo = zarrdb.open(path, create=True)
    commit(repo, k=b"v" * 100)
    pid = holder(path)
    assert pid
    snap, session = repo.at("main"), repo.writable_session()
    session.set("k", b"w")
    repo._client.bound(3)  # not before: a busy machine may let a process that runs wait as long
    calls: dict[str, Callable[[], Any]] = {
        "resolve": lambda: repo.resolve("main~1"),
        "open": lambda: repo.at("main~1"),
        "read": lambda: snap.get("other"),
        "write": lambda: session.set("k", b"x"),
        "long": lambda: session.set("l", bytes(8 << 20)),
        "commit": lambda: session.commit("m"),
    }
    os.kill(pid, signal.SIGSTOP)
    while os.path.exists("/proc/self/stat") and b") T " not in Path(f"/proc/{pid}/stat").read_bytes():
        time.sleep(0.001)  # threads that run answer until then
    try:
        for _ in range(2):  # the second time the connection has ended
            with ThreadPoolExecutor(2 * len(calls)) as pool:
                for name, done in [(name, pool.submit(call)) for name, call in calls.items() for _ in range(2)]:
                    error = done.exception()
                    assert isinstance(error, zarrdb.ZarrdbError), name
                    assert f"kill -CONT {pid}" in str(error), (name, error)
    finally:
        os.kill(pid, signal.SIGCONT)
    while True:
        with contextlib.suppress(zarrdb.LockedError):  # it is not asked again for a second
            assert repo.at("main").get("k") in (b"v" * 100, b"w", b"x")
            made = session.commit("m")  # by now, or by the commit that was not answered
            assert made.id in [c.id for c in repo.ancestry()]
            return
