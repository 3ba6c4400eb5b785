"""What is in a wheel and in a source distribution, and what import loads."""

from __future__ import annotations

import ast
import graphlib
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
    library = tmp_path / "library"
    library.write_bytes(b"library")
    (wheel,) = build("wheel", tmp_path / "with", ZARRDB_WHEEL_BINARY=str(program), ZARRDB_WHEEL_LIBRARY=str(library), ZARRDB_WHEEL_PLATFORM="linux_x86_64")
    with zipfile.ZipFile(wheel) as z:
        assert wheel.name.endswith("-py3-none-linux_x86_64.whl") and set(z.namelist()) >= MODULES
        (name,) = (n for n in z.namelist() if n.endswith("/scripts/zarrdb"))
        assert z.read(name) == b"program"
        (name,) = (n for n in z.namelist() if n.startswith("zarrdb/libzarrdb."))
        assert z.read(name) == b"library"
    (wheel,) = build("wheel", tmp_path / "without", ZARRDB_WHEEL_BINARY="")
    with zipfile.ZipFile(wheel) as z:
        assert wheel.name.endswith("-py3-none-any.whl") and set(z.namelist()) >= MODULES


def test_source_distribution(tmp_path: Path) -> None:
    if not (FOLDER.parent / "go.mod").exists():
        pytest.skip("it is made in the repository")
    (sdist,) = build("sdist", tmp_path)
    with tarfile.open(sdist) as t:
        names = {n.partition("/")[2] for n in t.getnames()}
    assert names >= MODULES | {"LICENSE", "go/go.mod", "go/go.sum", "go/cmd/zarrdb/main.go", "go/python/lib/main.go"}
    form = "{{$dir := .Dir}}{{range .EmbedFiles}}{{$dir}}/{{.}}\n{{end}}"
    p = subprocess.run(["go", "list", "-deps", "-f", form, "./cmd/zarrdb"], cwd=FOLDER.parent, capture_output=True, text=True, check=True)
    embedded = {"go/" + os.path.relpath(f, FOLDER.parent) for f in p.stdout.split() if Path(f).is_relative_to(FOLDER.parent)}
    assert "go/internal/cli/demo/climate.zip" in embedded and names >= embedded
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


ALONE = """
import importlib, sys, types
package = types.ModuleType("zarrdb")  # without its own imports, which come first otherwise
package.__path__ = [sys.argv[1]]
sys.modules["zarrdb"] = package
importlib.import_module("zarrdb." + sys.argv[2])
"""


@pytest.mark.parametrize("name", sorted(Path(m).stem for m in MODULES if m.endswith(".py") and "__init__" not in m))
def test_modules_import_alone(name: str) -> None:
    p = subprocess.run([sys.executable, "-c", ALONE, str(FOLDER / "zarrdb"), name], capture_output=True, text=True, check=False)
    assert p.returncode == 0, p.stderr


def imported(file: Path) -> set[str]:
    """The modules of the package that a module imports: at its top, in functions, and for types."""
    out = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            out |= {node.module} if node.module else {alias.name for alias in node.names}
    return out


def test_imports_have_no_circle() -> None:
    graph = {f.stem: imported(f) for f in (FOLDER / "zarrdb").glob("*.py")}
    assert graph["_array"] >= {"_elements", "_engine"}
    order = list(graphlib.TopologicalSorter(graph).static_order())  # a circle is an error that names its modules
    assert set(order) == set(graph)
