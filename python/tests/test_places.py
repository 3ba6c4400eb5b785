"""Where the process that has a database open is found, and by which users."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr
from conftest import end

import zarrdb


def test_long_path_of_sockets(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("long" * 30)
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    assert zarrdb.open(path, create=True).list_branches() == ["main"]


def test_socket_was_removed(path: Path) -> None:
    first = zarrdb.open(path, create=True)
    s = first.writable_session("main")
    s.set("key", b"value")
    s.commit("key")
    Path(json.loads((path / "index" / "HOLDER").read_text())["socket"]).unlink()
    code = "import sys, zarrdb; print(zarrdb.open(sys.argv[1]).at('main').get('key'))"
    got = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert got.stdout == "b'value'\n", got.stderr


def test_database_of_another_user(path: Path, tmp_path: Path) -> None:
    """It opens for reading by itself, and its user writes meanwhile."""
    if not hasattr(os, "getuid") or os.getuid() != 0:
        pytest.skip("only root can start a process of another user")
    for dir in (tmp_path, *tmp_path.parents[:2]):
        dir.chmod(0o755)
    own = zarrdb.open(path, create=True)
    s = own.writable_session("main")
    s.set("key", b"old")
    s.commit("old")
    own.close()
    end(path)
    # Another user may have no permission for the folders of Python, from which all must be loaded first.
    code = """
import os, sys, zarrdb
with zarrdb.open(sys.argv[2], create=True) as warm:
    warm.at("main"), warm.writable_session("main").discard()
os.setgid(65534), os.setuid(65534)
repo = zarrdb.open(sys.argv[1])
print(repo.at("main").get("key"), flush=True)
sys.stdin.readline()
print(repo.at("main").get("key"), flush=True)
try:
    repo.writable_session("main")
except zarrdb.ZarrdbError as e:
    print("refused", e)
"""
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    tmp.chmod(0o1777)
    reader = subprocess.Popen(
        [sys.executable, "-c", code, str(path), str(tmp_path / "warm.zdb")], cwd="/", text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp), "HOME": "/nonexistent"},
    )  # fmt: skip
    assert reader.stdin and reader.stdout
    assert reader.stdout.readline() == "b'old'\n"
    s = own.writable_session("main")
    s.set("key", b"new")
    s.commit("new")
    out, _ = reader.communicate("\n")
    assert out.startswith("b'new'\nrefused serve: denied"), out


def test_another_folder_for_temporary_files(repo: zarrdb.Repository, tmp_path: Path) -> None:
    """A process that has one finds the socket, also with the library."""
    with repo.transaction() as store:
        zarr.create_array(store, name="a", data=np.arange(5))
    code = f"import zarrdb; print(zarrdb.open({repo._client.dir!r}).at('main').array('a')[:].sum())"
    p = subprocess.run([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=False, timeout=120)
    assert p.stdout == "10\n", p.stderr
