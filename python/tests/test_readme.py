from __future__ import annotations

import doctest
import os
from pathlib import Path

import pytest

import zarrdb


def test_readme(tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = Path(zarrdb.__file__).parent.parent / "README.md"
    monkeypatch.chdir(tmp_path)
    os.symlink(path.name, "weather.zdb")
    zarrdb.open(path, create=True)
    failed, ran = doctest.testfile(str(readme), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert failed == 0 and ran > 10
