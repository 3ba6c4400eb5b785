"""The folder of a database that others take for a store of zarr-python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import fsspec
import numpy as np
import pytest
import xarray as xr
import zarr

import zarrdb

DATA = xr.Dataset({"v": ("x", np.arange(3.0))})
DELETE: dict[str, Callable[[str], object]] = {
    "to_zarr": lambda p: DATA.to_zarr(p, mode="w"),
    "open": lambda p: zarr.open(p, mode="w"),
    "open_group": lambda p: zarr.open_group(p, mode="w"),
    "overwrite": lambda p: zarr.create_array(p, shape=(2,), dtype="i4", overwrite=True),
    "array named index": lambda p: zarr.create_array(p, name="index", shape=(2,), dtype="i4", overwrite=True),
    "url": lambda p: zarr.open_group(f"file://{os.path.abspath(p)}", mode="w"),
    "fsspec": lambda p: fsspec.filesystem("file").rm(p, recursive=True),
}


def files(path: Path) -> set[str]:
    """The files that stay: the process that has the database open compacts the index and makes checkpoints."""
    return {f.name for f in (path / "packs").iterdir()} | {f.name for f in path.iterdir() if f.name in ("FORMAT", "index", "checkpoints")}


@pytest.mark.parametrize("how", DELETE)
def test_zarr_does_not_delete_a_database(repo: zarrdb.Repository, path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    zarrdb.to_zarrdb(DATA, repo)
    before = files(path)
    for name in (str(path), f"{path}/", "w.zdb"):
        monkeypatch.chdir(path.parent)
        with pytest.raises(zarrdb.DeniedError, match="nothing was deleted"):
            DELETE[how](name)
    assert before <= files(path) and repo.fsck(full=True)["problems"] == []
    assert xr.open_dataset(f"{path}@main").v.values.tolist() == [0, 1, 2]


def test_what_may_be_deleted(repo: zarrdb.Repository, path: Path, tmp_path: Path) -> None:
    """Stores are deleted as before, one with an array called index too, and so are databases by their owner."""
    zarrdb.to_zarrdb(DATA, repo)
    store = tmp_path / "plain.zarr"
    for _ in range(2):
        DATA.rename(x="index").assign_coords(index=[1, 2, 3]).to_zarr(store, mode="w")
        assert xr.open_dataset(store).index.values.tolist() == [1, 2, 3]
    moved = store.rename(tmp_path / "plain")
    with pytest.raises(ValueError, match="did not find a match"):
        xr.open_dataset(moved)
    zarr.open_group(moved, mode="w")
    repo.close()
    copy = shutil.copytree(path, tmp_path / "copy.zdb")
    with zarrdb.open(copy) as other:
        assert len(list(other.ancestry())) == 2
    shutil.rmtree(copy)
    assert not os.path.exists(copy) and path.exists()


LATER = """
import sys
import xarray as xr
{first}
import zarr
try:
    xr.Dataset().to_zarr(sys.argv[1], mode="w")
except PermissionError as e:
    assert "zarrdb" in str(e)
    sys.exit(7)
"""


@pytest.mark.parametrize("first", ["import zarrdb", "xr.open_dataset(sys.argv[1])", "xr.open_dataset(sys.argv[1] + '@main').load()"])
def test_protection_does_not_depend_on_imports(repo: zarrdb.Repository, path: Path, first: str) -> None:
    """It begins where xarray opened a database by itself too, and before zarr-python is imported."""
    zarrdb.to_zarrdb(DATA, repo)
    p = subprocess.run([sys.executable, "-c", LATER.format(first=first), str(path)], check=False, capture_output=True, text=True)
    assert p.returncode == 7, p.stderr
    assert xr.open_dataset(path).v.values.tolist() == [0, 1, 2]


@pytest.mark.parametrize("mode", ["w", "a", "r+"])
def test_urls_say_how_to_write(repo: zarrdb.Repository, path: Path, mode: str) -> None:
    zarrdb.to_zarrdb(DATA, repo)
    for url in (f"zarrdb://{path}", f"zarrdb://{path}@main"):
        with pytest.raises(PermissionError, match=r"zarrdb\.to_zarrdb\(ds, .*@main'\).*writable_session\('main'\)\.store"):
            zarr.open_group(url, mode=mode).create_array("n", shape=(1,), dtype="i4")  # type: ignore[arg-type]
        with pytest.raises(PermissionError, match=r"zarrdb\.to_zarrdb"):
            DATA.to_zarr(url, mode=mode, consolidated=False)  # type: ignore[call-overload]
    assert len(list(repo.ancestry())) == 2


def test_engine_is_guessed(repo: zarrdb.Repository, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zarrdb.to_zarrdb(DATA, repo, group="g")
    zarrdb.to_zarrdb(DATA + 1, repo, group="g", mode="w")
    repo.create_tag("v1", "main~1")
    monkeypatch.chdir(path.parent)
    for target, first in ((f"{path}@main:g", 1), ("w.zdb@v1:g", 0), ("w.zdb:g", 1), (Path("w.zdb@main~1:g"), 0), ("zarrdb://w.zdb@main:g", 1)):
        assert xr.open_dataset(target).v.values[0] == first
        assert xr.open_datatree(target)["v"].values[0] == first
    assert xr.open_mfdataset(["w.zdb@v1:g"]).v.values[0] == 0
    with pytest.raises(zarrdb.NotFoundError):
        xr.open_dataset("w.zdb@nope")
    (path / "x.txt").write_text("")
    with pytest.raises(ValueError, match="did not find a match"):
        xr.open_dataset("w.zdb/x.txt")
