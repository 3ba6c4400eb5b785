"""A database that was moved, removed or replaced is never taken for another."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import end, holder

import zarrdb
from zarrdb import _client


def put(repo: zarrdb.Repository, value: bytes) -> None:
    s = repo.writable_session()
    s.set("notes", value)
    s.commit(value.decode())


def remove(path: Path) -> None:
    """Remove a database, which a process may be using."""
    deadline = time.monotonic() + 30
    while True:
        try:
            shutil.rmtree(path)
            return
        except FileNotFoundError:
            if not path.exists():
                return
        except OSError:
            if time.monotonic() > deadline:
                raise


def in_another(path: Path, code: str) -> str:
    """What another program prints that has the database open as `repo`."""
    program = f"import zarrdb; repo = zarrdb.open({str(path)!r}); {code}"
    out = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return out.stdout.strip()


def test_moved(path: Path) -> None:
    backup = path.with_name("backup.zdb")
    put(zarrdb.open(path, create=True), b"ORIGINAL")
    old = zarrdb.open(path)
    os.rename(path, backup)
    fresh = zarrdb.open(path, create=True)
    put(fresh, b"FRESH")
    try:
        assert in_another(backup, "print(repo.at('main').get('notes'))") == "b'ORIGINAL'"
        in_another(backup, "s = repo.writable_session(); s.set('more', b''); s.commit('more')")
        assert zarrdb.open(backup).at("main").get("more") == b""
        assert fresh.at("main").get("more") is None
        assert in_another(path, "print(repo.at('main').get('notes'))") == "b'FRESH'"
        with pytest.raises(zarrdb.MovedError):
            old.at("main")
        with pytest.raises(zarrdb.MovedError):
            put(old, b"lost")
    finally:
        end(backup)


def test_copied_and_replaced(path: Path) -> None:
    other = path.with_name("other.zdb")
    first = zarrdb.open(path, create=True)
    put(first, b"one")
    first.close()
    shutil.copytree(path, other)
    try:
        put(zarrdb.open(other), b"two")
        assert zarrdb.open(path).at("main").get("notes") == b"one"
        remove(path)
        end(other)
        os.rename(other, path)
        assert zarrdb.open(path).at("main").get("notes") == b"two"
        with pytest.raises(zarrdb.MovedError):
            first.at("main")
    finally:
        end(other)


@pytest.mark.parametrize("again", ["create", "import", "nothing"])
def test_removed(path: Path, tmp_path: Path, again: str) -> None:
    repo = zarrdb.open(path, create=True)
    put(repo, b"old")
    store = tmp_path / "a.zarr"
    store.mkdir()
    (store / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    remove(path)
    if again == "nothing":
        with pytest.raises(zarrdb.NotFoundError):
            zarrdb.open(path)
        with pytest.raises((zarrdb.NotFoundError, zarrdb.MovedError)):
            put(repo, b"ghost")
        assert not path.exists()
        return
    if again == "import":
        subprocess.run([_client.binary(), "import", path, store], check=True, capture_output=True)
    fresh = zarrdb.open(path, create=True)
    assert "old" not in [c.message for c in fresh.ancestry()]
    put(fresh, b"new")
    assert in_another(path, "print([c.message for c in repo.ancestry()][0])") == "new"
    with pytest.raises(zarrdb.MovedError):
        repo.at("main")


def test_loop(path: Path) -> None:
    for n in range(8):
        repo = zarrdb.open(path, create=True)
        put(repo, str(n).encode())
        assert repo.at("main").get("notes") == str(n).encode()
        remove(path)
    repo = zarrdb.open(path, create=True)
    put(repo, b"last")
    del repo
    log = subprocess.run([_client.binary(), "log", path, "--json"], check=True, capture_output=True, text=True)
    assert len(log.stdout.splitlines()) == 2 and "last" in log.stdout


# Opens and commits again and again, removes now and then, and prints what was committed
# and when it began to remove.
program = """
import os, shutil, sys, time, zarrdb
path, removes = sys.argv[1], sys.argv[2] == "removes"
for n in range(30):
    try:
        if removes and n % 3 == 0 and n < 27:
            while os.path.exists(path):
                shutil.rmtree(path, ignore_errors=True)
            print("removed", time.monotonic_ns(), "", flush=True)
        repo = zarrdb.open(path, create=True)
        s = repo.writable_session()
        key = f"{os.getpid()}-{n}"
        s.set(key, b"x")
        begun = time.monotonic_ns()
        s.commit(key)
        print("committed", begun, key, flush=True)
    except (zarrdb.ZarrdbError, OSError):
        time.sleep(0.01)
"""


def test_loop_of_programs(path: Path) -> None:
    """Each commit that began after the last removal had ended is there."""
    args = [[sys.executable, "-c", program, str(path), kind] for kind in ("removes", "commits", "commits")]
    running = [subprocess.Popen(a, stdout=subprocess.PIPE, text=True) for a in args]
    lines = [line.split(" ") for p in running for line in p.communicate()[0].splitlines()]
    last = max(int(at) for what, at, _ in lines if what == "removed")
    want = {key for what, at, key in lines if what == "committed" and int(at) > last}
    assert want
    have = set(zarrdb.open(path).at("main").keys())
    assert want <= have, want - have


@pytest.mark.parametrize("leave", [lambda r: r.close(), lambda r: r.__exit__(None, None, None)])
def test_close_ends_the_process(path: Path, leave: Callable[[zarrdb.Repository], None]) -> None:
    repo, other = zarrdb.open(path, create=True), zarrdb.open(path)
    pid = holder(path)
    assert pid
    put(repo, b"x")
    s = repo.writable_session()
    s.set("saved", b"y")
    leave(repo)
    assert holder(path) == pid  # the other one uses it
    leave(other)
    assert holder(path) is None
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        raise AssertionError("the process goes on")
    assert s.get("saved") == b"y"  # a savepoint was made
    s.commit("saved")
    assert zarrdb.open(path).at("main").get("notes") == b"x"


def test_close_beside_another_program(path: Path) -> None:
    repo = zarrdb.open(path, create=True)
    pid = holder(path)
    code = f"import sys, zarrdb; repo = zarrdb.open({str(path)!r}); print('open', flush=True); sys.stdin.read(); repo.at('main')"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        assert p.stdout and p.stdout.readline() == b"open\n"
        repo.close()
        assert holder(path) == pid
        assert p.stdin
        p.stdin.close()
    assert p.returncode == 0


def test_temporary_directory() -> None:
    for n in range(5):
        with tempfile.TemporaryDirectory() as tmp, zarrdb.open(os.path.join(tmp, "w.zdb"), create=True) as repo:
            put(repo, str(n).encode())
        assert not os.path.exists(tmp)
