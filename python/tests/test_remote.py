"""A remote that is opened by its URL."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import fsspec  # type: ignore[import-untyped]
import numpy as np
import pytest
import xarray as xr
from conftest import end

import zarrdb
from zarrdb._xarray import ZarrdbBackendEntrypoint


def test_open_by_url(repo: zarrdb.Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    zarrdb.to_zarrdb(xr.Dataset({"t": (("time", "x"), np.arange(4000.0).reshape(40, 100))}), repo)
    repo.create_tag("v1")
    url = f"file://{tmp_path}/remote"
    repo.push(url, all=True, tags=True)
    remote = zarrdb.open(url)
    assert remote.at("v1").array("t")[3, 4] == 304
    assert pickle.loads(pickle.dumps(remote)) == remote
    ds = xr.open_dataset(url + "@v1", engine="zarrdb", chunks={})
    assert pickle.loads(pickle.dumps(ds)).t.sum().values == 7998000
    fs, root = fsspec.url_to_fs(f"zarrdb://{url}@v1:t")
    assert [name.rpartition("/")[2] for name in fs.ls(root, detail=False)] == ["c", "zarr.json"]
    assert xr.open_zarr(f"zarrdb://{url}@v1", consolidated=False).t.sum().values == 7998000
    with pytest.raises(zarrdb.DeniedError, match="clone .* --lazy"):
        remote.writable_session()
    s = repo.writable_session()
    s.array("t")[0] = 7
    s.commit("more")
    repo.push(url)
    assert xr.open_dataset(url, engine="zarrdb").t[0, 0] == 7
    assert remote.pull() is not None
    assert remote.at("main").array("t")[0, 0] == 7
    lazy = zarrdb.clone(url, tmp_path / "lazy.zdb", lazy=True)
    assert lazy.fetch_payloads("main", "t")["fetched"] > 0
    assert lazy.fetch_payloads("main")["fetched"] == 0
    assert lazy.at("main").array("t")[0, 0] == 7

    # A worker reads the version that was pickled, with a cache of its own on another machine, and does not follow the remote.
    def worker(pickled: object, cache: str) -> str:
        code = "import pickle, sys; print((lambda o: getattr(o, 'at', lambda _: o)('main').commit.id)(pickle.load(sys.stdin.buffer)))"
        env = os.environ | {"XDG_CACHE_HOME": str(tmp_path / cache)}
        return subprocess.run([sys.executable, "-c", code], input=pickle.dumps(pickled), capture_output=True, check=True, env=env).stdout.decode().strip()

    pinned = remote.at("main")
    s = repo.writable_session()
    s.array("t")[1] = 8
    s.commit("later")
    repo.push(url)
    assert worker(remote, "cache") == worker(pinned, "cache") == worker(pinned, "other") == pinned.commit.id
    assert worker(remote, "other") != pinned.commit.id
    assert not ZarrdbBackendEntrypoint().guess_can_open(url)
    for wrong in (url + "@v1", f"file://{tmp_path}/nothing"):
        with pytest.raises(zarrdb.InvalidError):
            zarrdb.open(wrong)
    Path(tmp_path / "remote").rename(tmp_path / "gone")
    with pytest.warns(UserWarning, match="what is known of the remote is shown"):
        assert zarrdb.open(url).at("main").array("t")[0, 0] == 7
    for r in (remote, lazy):
        r.close()
        end(r.path)


def test_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """A remote may lie below another one."""
    from zarrdb import _target

    monkeypatch.setattr(_target, "_remotes", {"s3://b/w": "/w", "s3://b/w/sub": "/sub"})
    for text, want in {
        "s3://b/w/sub@main:t": ("/sub", "main", "t"),
        "s3://b/w/sub": ("/sub", "main", ""),
        "s3://b/w@v1:sub/t": ("/w", "v1", "sub/t"),
    }.items():
        assert _target.parse(text, again=False) == want
