"""Folders that are checked out: zarr-python writes to them."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import zarr

import zarrdb


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_python_writes_into_a_folder(path: Path, tmp_path: Path, version: int) -> None:
    repo = zarrdb.open(path, create=True)
    with repo.transaction(message="begin") as store:
        root = zarr.open_group(store, mode="w", zarr_format=version)
        root.create_array("old", shape=(8,), chunks=(2,), dtype="i4")[:] = 1
        root.create_array("gone", shape=(2,), chunks=(2,), dtype="i4")[:] = 1
        zarr.consolidate_metadata(store)
    dir = tmp_path / "w.zarr"
    repo.checkout(dir)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Object at")  # of a file that belongs to no node
        root = zarr.open_group(dir, mode="a", use_consolidated=False)
        assert sorted(root.array_keys()) == ["gone", "old"]
        root["old"][2:4] = 7
        root["old"].resize((10,))
        del root["gone"]
        root.create_array("g/new", shape=(3,), chunks=(3,), dtype="f4")[:] = 1.5
        zarr.consolidate_metadata(dir)
    with repo.transaction(message="others") as store:
        zarr.open_array(store, path="old")[0:2] = 5
    assert repo.folder_status(dir)["gone/0" if version == 2 else "gone/c/0"] == "removed"
    assert repo.commit_folder(dir, "tool").message == "tool"
    for of in (repo.at("main").store, dir):
        root = zarr.open_group(of, mode="r", use_consolidated=False)
        assert sorted(k for k, _ in root.members()) == ["g", "old"]
        np.testing.assert_array_equal(root["old"][:], [5, 5, 7, 7, 1, 1, 1, 1, 0, 0])
        np.testing.assert_array_equal(root["g/new"][:], [1.5] * 3)
    assert repo.folder_status(dir) == {}

    # A tool that begins by removing the directory.
    root = zarr.open_group(dir, mode="w", zarr_format=version)
    root.create_array("other", shape=(3,), chunks=(3,), dtype="f4")[:] = 2
    repo.commit_folder(dir, "replaced")
    assert [k for k, _ in zarr.open_group(repo.at("main").store, mode="r").members()] == ["other"]

    with repo.transaction(message="others") as store:
        zarr.open_array(store, path="other")[:] = 5
    zarr.open_array(dir, path="other")[:] = 6
    with pytest.raises(zarrdb.ConflictError):
        repo.commit_folder(dir, "clash")
    repo.checkout(dir, discard="other")
    np.testing.assert_array_equal(zarr.open_array(dir, path="other", mode="r")[:], [5] * 3)
