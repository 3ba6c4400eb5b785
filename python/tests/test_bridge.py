"""Without Unix sockets the client goes through a process of the program."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import zarr
from conftest import end, holder

import zarrdb
from zarrdb import _client, codecs

# What Windows lacks, or more.
WITHOUT = """
import os, mmap, socket, sys
platform, sys.platform = sys.platform, "win32"
for module, names in (
    (os, "register_at_fork fork getuid getgid memfd_create sched_getaffinity"),
    (socket, "AF_UNIX CMSG_SPACE CMSG_LEN SCM_RIGHTS SO_PEERCRED MSG_CTRUNC MSG_DONTWAIT MSG_CMSG_CLOEXEC send_fds recv_fds"),
    (mmap, "PROT_READ PROT_WRITE MAP_PRIVATE MAP_SHARED"),
):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
class Socket(socket.socket):
    recvmsg = recvmsg_into = sendmsg = property(lambda self: self.missing)
socket.socket = Socket
sys.modules["fcntl"] = None
import zarrdb
from zarrdb import _array, _chunks, _elements, _plain
sys.platform = platform  # the standard library of this system goes on
"""


@pytest.fixture(autouse=True)
def bridged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_client, "_bridged", True)


def test_values_and_arrays(repo: zarrdb.Repository) -> None:
    big = np.arange(3 << 20, dtype="i4").reshape(3, 1 << 20)
    with repo.transaction(message="arrays") as store:
        zarr.create_array(store, name="big", data=big, chunks=(1, 1 << 18))
        zarr.create_array(store, name="plain", data=big, chunks=(1, 1 << 18), compressors=None)
    assert repo._client.link().blocks is None and not repo._client.link().files
    s = repo.writable_session()
    for name in "big", "plain":
        a = repo.at("main").array(name)
        assert np.array_equal(a[...], big) and np.array_equal(a[1, ::1000], big[1, ::1000]) and a[2, 7] == big[2, 7]
        s.array(name)[1] = 5
    with codecs.use():
        assert np.array_equal(zarr.open_array(s.store, path="big")[0], big[0])
    s.set("long", bytes(40 << 20))
    s.commit("fives")
    v = repo.at("main")
    assert v.get("long") == bytes(40 << 20) and (v.array("plain")[1] == 5).all()


def test_commands(repo: zarrdb.Repository, path: Path, tmp_path: Path) -> None:
    with repo.transaction() as store:
        zarr.create_array(store, name="a", data=np.arange(10))
    repo.create_branch("b")
    repo.export(tmp_path / "out.zarr")
    assert zarr.open_group(tmp_path / "out.zarr", mode="r")["a"][3] == 3
    repo.import_(tmp_path / "out.zarr", to="copy", branch="b")
    repo.merge("b")
    assert repo.at("main").array("copy/a")[4] == 4
    assert repo.fsck()["problems"] == [] and repo.run("log", str(path)).startswith("commit ")
    other = tmp_path / "other.zdb"
    repo.backup(other)
    with zarrdb.open(other).transaction() as store:
        zarr.create_array(store, name="b", data=np.arange(3))
    try:
        repo.pull(other)
        assert repo.at("main").array("b")[2] == 2
    finally:
        end(other)
    with pytest.raises(zarrdb.NotFoundError):
        repo.run("ls", f"{path}:nothing")
    with pytest.raises(zarrdb.ZarrdbError, match="without its standard input"):
        repo.run("put", str(path), "key")


def bridges(path: Path) -> list[int]:
    """The processes that are bridges to a database."""
    if sys.platform != "linux":
        out = subprocess.run(["ps", "-eww", "-o", "pid,args"], capture_output=True, text=True, check=True).stdout
        return [int(line.split()[0]) for line in out.splitlines() if f" bridge {path} " in line and "<defunct>" not in line]
    found = []
    for p in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            if f"\0bridge\0{path}\0".encode() in p.read_bytes():
                found.append(int(p.parent.name))
    return found


def until(what: object) -> None:
    begun = time.monotonic()
    while not what():  # type: ignore[operator]
        assert time.monotonic() < begun + 60
        time.sleep(0.01)


def test_servers_and_clients_that_are_killed(repo: zarrdb.Repository, path: Path) -> None:
    s = repo.writable_session()
    s.set("k", b"1")
    s.commit("1")
    v = repo.at("main")
    pid = holder(path)
    assert pid
    os.kill(pid, signal.SIGKILL)
    assert v.get("k") == b"1"
    code = f"import zarrdb, time; from zarrdb import _client; _client._bridged = True; v = zarrdb.open({str(path)!r}).at('main'); print(v.get('k'), flush=True); time.sleep(600)"
    p = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert p.stdout is not None and p.stdout.readline() == b"b'1'\n"
    until(lambda: len(bridges(path)) == 2)
    p.kill()
    p.wait()
    p.stdout.close()
    until(lambda: len(bridges(path)) == 1)
    repo._client.close()
    until(lambda: not bridges(path))


def test_another_program_is_not_taken_for_the_bridge(repo: zarrdb.Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """It connects first, and does not know the token."""
    start = _client._start
    strangers = []

    def late(*args: str, input: bytes = b"") -> object:
        host, port = args[-1].split(":")
        s = socket.create_connection((host, int(port)))
        s.sendall(bytes(32))
        strangers.append(s)
        return start(*args, input=input)

    monkeypatch.setattr(_client, "_start", late)
    s = _client._bridge(repo.path)
    assert s is not None and len(strangers) == 1
    assert strangers[0].recv(1) == b""
    strangers[0].close()
    s.close()


def test_fork_and_threads(repo: zarrdb.Repository) -> None:
    s = repo.writable_session()
    s.set("k", bytes(1 << 20))
    s.commit("k")
    v = repo.at("main")
    wrong: list[object] = []
    threads = [threading.Thread(target=lambda: [wrong.append(1) for _ in range(20) if v.get("k") != bytes(1 << 20)]) for _ in range(4)]
    for t in threads:
        t.start()
    pid = os.fork()
    if pid == 0:
        os._exit(0 if v.get("k") == bytes(1 << 20) else 1)
    assert os.waitpid(pid, 0)[1] == 0
    for t in threads:
        t.join()
    assert not wrong


def test_a_system_like_windows(path: Path) -> None:
    code = WITHOUT + """
repo = zarrdb.open(sys.argv[1], create=True)
s = repo.writable_session()
s.set("k", bytes(1 << 20))
s.commit("k")
assert repo.at("main").get("k") == bytes(1 << 20)
repo.create_branch("b")
print(repo.run("branch", repo.path).split())
"""  # fmt: skip
    p = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert "'b'" in p.stdout and "'main'" in p.stdout, p.stderr


def test_no_database(path: Path) -> None:
    with pytest.raises(zarrdb.NotFoundError):
        zarrdb.open(path)
