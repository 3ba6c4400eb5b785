"""Databases in memory, progress, and the accessor of xarray."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import zarrdb

USE = """
import os, signal, sys, zarrdb
repo = zarrdb.open(":memory:")
s = repo.writable_session()
s.set("k", b"1")
s.commit("one")
print(os.path.dirname(repo.path), flush=True)
if sys.argv[1] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_memory() -> None:
    with zarrdb.open(":memory:") as repo, zarrdb.open(":memory:") as other:
        s = repo.writable_session()
        zarrdb.open(repo.path).close()
        del repo  # it stays
        s.set("k", bytes(1000))
        s.commit("one")
        repo = zarrdb.open(s._client.dir)
        assert repo.run("get", repo.path, "k") == "\0" * 1000 and repo != other
        assert pickle.loads(pickle.dumps(repo)).at("main").get("k") == bytes(1000)
        path = repo.path
        child = subprocess.run([sys.executable, "-c", "import sys, zarrdb; print(len(zarrdb.open(sys.argv[1]).at('main').get('k')))", path], capture_output=True, text=True, check=True)
        assert child.stdout == "1000\n"
        if (pid := os.fork()) == 0:
            os._exit(0 if zarrdb.open(path).at("main").get("k") else 1)
        assert os.waitpid(pid, 0)[1] == 0
    folder = Path(path).parent
    assert not folder.exists()
    # It goes with a process that ends; what a process that was killed has left goes with the next one.
    for how in ("end", "kill"):
        p = subprocess.run([sys.executable, "-c", USE, how], capture_output=True, text=True, check=False)
        folder = Path(p.stdout.strip())
        assert folder.exists() == (how == "kill"), p.stderr
    zarrdb.open(":memory:").close()
    assert not folder.exists()


def test_progress(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zarrdb.open(":memory:") as repo, zarrdb.open(tmp_path / "new.zdb", create=True) as new:
        ds = xr.Dataset({"v": (("t", "x"), np.arange(4000.0).reshape(100, 40))})
        ds.chunk(t=1).zarrdb.to(repo, message="many")
        ds.v.zarrdb.to(repo, group="one")
        repo.export(tmp_path / "a.zarr")
        seen: list[zarrdb.Progress] = []
        new.import_(tmp_path / "a.zarr", progress=seen.append)
        assert seen[-1].ended and all(p.unit == "keys" for p in seen if p.what == "importing")  # a short one may have no other report
        zarrdb.clone(repo, tmp_path / "c.zdb", progress=(seen := []).append).close()
        assert seen[-1].ended and len(seen) > 1
        for how in (lambda p: repo.push(tmp_path / "c.zdb", progress=p), lambda p: repo.pull(tmp_path / "c.zdb", progress=p)):
            seen = []
            how(seen.append)
            assert seen[-1].ended
        new.import_(tmp_path / "a.zarr", overwrite=True, progress=zarrdb.progress_bar)  # quiet without a terminal
        with pytest.raises(zarrdb.ZarrdbError, match="no-such"):
            new.import_(tmp_path / "no-such", progress=seen.append)
        with pytest.raises(RuntimeError):
            new.import_(tmp_path / "a.zarr", to="again", progress=stop)
    assert capsys.readouterr() == ("", "")


def stop(p: zarrdb.Progress) -> None:
    raise RuntimeError


def test_histories_and_virtualizarr(tmp_path: Path) -> None:
    with zarrdb.open(":memory:") as repo, zarrdb.open(":memory:") as copy:
        for n in range(3):
            xr.Dataset({"v": ("t", [n])}).zarrdb.to(repo, mode="w", message=f"step {n}")
        repo.run("export", repo.path, str(tmp_path / "ice"), "--format", "icechunk", "--history")
        copy.import_(f"{tmp_path / 'ice'}|icechunk:", history=True)
        assert [c.message for c in copy.ancestry()][:3] == ["step 2", "step 1", "step 0"]
        np.arange(3.0).tofile(tmp_path / "bytes")
        meta = {"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "<f8", "compressor": None, "fill_value": 0, "order": "C", "filters": None}

        class Virtual:
            @property
            def virtualize(self) -> Virtual:
                return self

            def to_kerchunk(self, format: str) -> object:
                return {"version": 1, "refs": {".zgroup": {"zarr_format": 2}, "a/.zarray": meta, "a/.zattrs": {"_ARRAY_DIMENSIONS": ["x"]}, "a/0": [str(tmp_path / "bytes"), 0, 24]}}

        assert copy.link(Virtual(), to="far", allow=str(tmp_path)).message == "link references"
        assert copy.at("main").array("far/a")[:].tolist() == [0, 1, 2]
        # 0 is a value in a dataset of VirtualiZarr, not a missing one.
        assert xr.open_dataset(copy.at("main").store, engine="zarr", group="far", consolidated=False)["a"].values.tolist() == [0, 1, 2]
