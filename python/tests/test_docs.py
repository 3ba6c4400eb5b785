"""The examples of the README and of docstrings are as they say."""

from __future__ import annotations

import datetime
import doctest
import importlib
import os
import pkgutil
from pathlib import Path

import names
import numpy as np
import pytest
import zarr
from conftest import end

import zarrdb
from zarrdb import codecs

MODULES = [importlib.import_module(f"zarrdb.{m.name}") for m in pkgutil.iter_modules(zarrdb.__path__)]
EXAMPLES = [t for m in (zarrdb, *MODULES) for t in doctest.DocTestFinder(recurse=True).find(m) if t.examples]


@pytest.mark.parametrize("above", ["README.md", "../README.md"])
def test_readme(above: str, tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = (Path(zarrdb.__file__).parent.parent / above).resolve()
    monkeypatch.chdir(tmp_path)
    os.symlink(path.name, "weather.zdb")
    zarrdb.open(path, create=True)
    failed, ran = doctest.testfile(str(readme), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert failed == 0 and ran > (10 if above == "README.md" else 6)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda t: t.name)
def test_docstring(example: doctest.DocTest, repo: zarrdb.Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with repo.transaction(message="first") as store:
        zarr.create_array(store, name="t2m", data=np.full((4, 6), 280, "f4"), chunks=(1, 6), dimension_names=("time", "x"))
    example.globs = {"zarrdb": zarrdb, "repo": repo, "np": np, "os": os, "zarr": zarr, "use": codecs.use}
    got: list[str] = []
    failed = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=got.append).failed
    for db in tmp_path.glob("*.zdb"):
        end(db)
    assert not failed, "".join(got)


@pytest.mark.skipif(not names.PAGE.exists(), reason="the page is in the repository")
def test_names_of_icechunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The column of the table for this package runs; interop/names.py compares it with Icechunk."""
    monkeypatch.chdir(tmp_path)
    np.full(4, 7, "f4").tofile("numbers.bin")
    here = {"zarrdb": zarrdb, "zarr": zarr, "datetime": datetime, "os": os}
    lines = [ours for _, ours in names.rows()]
    for line in lines:
        names.run(line, here)
    assert len(lines) > 50 and here["repo"].at("main").array("far")[:].tolist() == [7, 7, 7, 7]
    here["repo"].close()


def test_what_has_examples() -> None:
    assert len(EXAMPLES) > 25
