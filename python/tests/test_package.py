"""What is in a wheel and in a source distribution, and what import loads."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import zarrdb

FOLDER = Path(zarrdb.__file__).parent.parent
MODULES = {f"zarrdb/{f.name}" for f in (FOLDER / "zarrdb").iterdir() if f.suffix == ".py"} | {"zarrdb/py.typed"}


def build(kind: str, out: Path, **env: str) -> list[Path]:
    without = {k: v for k, v in os.environ.items() if not k.startswith("ZARRDB_WHEEL")}
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(out)]
    p = subprocess.run(command, cwd=FOLDER, env={**without, **env}, capture_output=True, text=True, check=False)
    assert p.returncode == 0, p.stderr
    return list(out.iterdir())


def test_wheel(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"program")
    (wheel,) = build("wheel", tmp_path / "with", ZARRDB_WHEEL_BINARY=str(program), ZARRDB_WHEEL_PLATFORM="linux_x86_64")
    with zipfile.ZipFile(wheel) as z:
        assert wheel.name.endswith("-py3-none-linux_x86_64.whl") and set(z.namelist()) >= MODULES
        (name,) = (n for n in z.namelist() if n.endswith("/scripts/zarrdb"))
        assert z.read(name) == b"program"
    (wheel,) = build("wheel", tmp_path / "without", ZARRDB_WHEEL_BINARY="")
    with zipfile.ZipFile(wheel) as z:
        assert wheel.name.endswith("-py3-none-any.whl") and set(z.namelist()) >= MODULES


def test_source_distribution(tmp_path: Path) -> None:
    if not (FOLDER.parent / "go.mod").exists():
        pytest.skip("it is made in the repository")
    (sdist,) = build("sdist", tmp_path)
    with tarfile.open(sdist) as t:
        names = {n.partition("/")[2] for n in t.getnames()}
    assert names >= MODULES | {"LICENSE", "go/go.mod", "go/go.sum", "go/cmd/zarrdb/main.go", "go/internal/cli/demo/climate.zip"}
    assert not [n for n in names if n.endswith("_test.go") or "testdata" in n or "__pycache__" in n]


LOADED = """
import sys
before = set(sys.modules)
import zarrdb
print(*sorted(m for m in set(sys.modules) - before if not m.startswith("zarrdb")))
"""


def test_import_is_light() -> None:
    """Everything that is not needed by all is loaded where it is used; a module more is some milliseconds."""
    p = subprocess.run([sys.executable, "-S", "-c", LOADED], env={**os.environ, "PYTHONPATH": str(FOLDER)}, capture_output=True, text=True, check=True)
    heavy = {"numpy", "zarr", "xarray", "fsspec", "asyncio", "subprocess", "tempfile", "hashlib", "multiprocessing", "html", "logging", "unittest", "email"}
    assert not heavy & set(p.stdout.split())
