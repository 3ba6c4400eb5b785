"""Puts the program zarrdb into wheels, and its source into source distributions.

    go.mod, cmd, engine, …  ──▶  sdist: go/go.mod, go/cmd, …  ──▶  wheel: zarrdb built with Go
    $ZARRDB_WHEEL_BINARY    ─────────────────────────────────────▶ wheel with that program

A wheel that is made in the repository or from a source distribution has a program and a library (python/lib) that
Go compiles for this machine; the library needs a C compiler. $ZARRDB_WHEEL_BINARY names another program,
$ZARRDB_WHEEL_LIBRARY another library, and $ZARRDB_WHEEL_PLATFORM their platform; if the first two are empty, the wheel has neither and is for any
platform. An editable installation has the library in its folder.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARY = "libzarrdb.shared"  # with the name of an extension module, Python would try to import it
LDFLAGS = "-s -X=runtime.godebugDefault=asyncpreemptoff=1"  # for this and for the tag, see the Makefile
MODULE = "module github.com/zarrdb/zarrdb\n"
# Folders of the repository that the program is not built from.
EMBEDDED = (".bin", ".css", ".html", ".js", ".txt", ".zip")  # what the program is built from beside code
OTHER = {"bench", "docs", "examples", "interop", "python", "scripts", "testdata"}


def module(root: Path) -> Path | None:
    """The folder with the Go module: that of the repository, or of a source distribution."""
    for folder in (root / "go", root.parent):
        mod = folder / "go.mod"
        if mod.is_file() and mod.read_text(encoding="utf-8").startswith(MODULE):
            return folder
    return None


def version() -> str:
    """The version of the Go module, which that of the package is."""
    source = module(Path(__file__).parent)
    number = None
    if source is not None:
        number = re.search(r'^const Number = "(.*)"$', Path(source, "serve/local/version.go").read_text(encoding="utf-8"), re.M)
    if number is None:
        raise RuntimeError("there is no source of zarrdb above this folder, and so no version: serve/local/version.go has it")
    return number[1]


class ProgramHook(BuildHookInterface):  # type: ignore[type-arg]
    _made: str | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name == "sdist":
            self._add_source(build_data)
        elif version == "standard":
            self._add_program(build_data)
        elif "ZARRDB_LIBRARY" not in os.environ:
            self._compile_library(Path(self.root, "zarrdb", LIBRARY))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)

    def _source(self) -> Path | None:
        return module(Path(self.root))

    def _add_source(self, build_data: dict[str, Any]) -> None:
        source = self._source()
        if source is None:
            raise RuntimeError("a source distribution is made in the repository: the Go module of zarrdb is not above this folder")
        if source.name != "go":  # otherwise it is a source distribution already
            build_data["force_include"].update({str(source / f): f"go/{f}" for f in files(source)})
            build_data["force_include"][str(source / "LICENSE")] = "LICENSE"

    def _add_program(self, build_data: dict[str, Any]) -> None:
        program = os.environ.get("ZARRDB_WHEEL_BINARY")
        platform = os.environ.get("ZARRDB_WHEEL_PLATFORM") or sysconfig.get_platform().replace("-", "_").replace(".", "_")
        library = os.environ.get("ZARRDB_WHEEL_LIBRARY")
        if program is None:
            program = self._compile()
            library = library or self._compile_library(Path(str(self._made), LIBRARY))
        elif bool(program) != bool(library):
            raise RuntimeError("a wheel has the program and the library, or neither: ZARRDB_WHEEL_BINARY and ZARRDB_WHEEL_LIBRARY name both")
        if program:
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform}"
            build_data["shared_scripts"] = {program: "zarrdb"}
        if library:
            build_data["force_include"][library] = f"zarrdb/{LIBRARY}"

    def _compile(self) -> str:
        source, go = self._source(), shutil.which("go")
        if source is None or go is None:
            raise RuntimeError(
                "the program zarrdb is built with Go, which was not found: put go on PATH, or the path of a zarrdb "
                "program into ZARRDB_WHEEL_BINARY; if that is empty, the package is made without one"
                if source is not None
                else "there is no source of the program zarrdb; put the path of one into ZARRDB_WHEEL_BINARY, or nothing for none"
            )
        self._made = tempfile.mkdtemp()
        program = os.path.join(self._made, "zarrdb")
        subprocess.run(
            [go, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s", "-o", program, "./cmd/zarrdb"],
            cwd=source, env={**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}, check=True,
        )  # fmt: skip
        return program

    def _compile_library(self, library: Path) -> str:
        if "musl" in str(sysconfig.get_config_var("SOABI")):
            raise RuntimeError("the library of the package does not work with musl, such as on Alpine; the program zarrdb does: zarrdb serve serves databases by HTTP and S3")
        source, go = self._source(), shutil.which("go")
        cc = subprocess.run([go, "env", "CC"], capture_output=True, text=True, check=True).stdout.split() if go else []
        compiler = shutil.which(cc[0]) if cc else None
        if source is None or go is None or compiler is None:
            missing = f"a C compiler ({' '.join(cc)})" if source is not None and go is not None else "Go" if source is not None else "the source of zarrdb"
            raise RuntimeError(
                f"the library of the package is built with Go and a C compiler, and {missing} was not found: install it (Debian: apt install gcc libc6-dev; "
                "macOS: xcode-select --install), or put the path of a library into ZARRDB_WHEEL_LIBRARY, for an editable installation into ZARRDB_LIBRARY"
            )
        subprocess.run(
            [go, "build", "-buildmode=c-shared", "-tags=pebblegozstd", "-trimpath", "-buildvcs=false", f"-ldflags={LDFLAGS}", "-o", str(library), "./python/lib"],
            cwd=source, env={**os.environ, "CGO_ENABLED": "1", "GOWORK": "off"}, check=True,
        )  # fmt: skip
        library.with_suffix(".h").unlink(missing_ok=True)
        return str(library)


def files(source: Path) -> Iterator[str]:
    """What the program and the library are built from, as paths in the repository."""
    for folder, folders, names in os.walk(source):
        inside = Path(folder).relative_to(source)
        if inside == Path("python"):
            folders[:] = ["lib"]
            continue
        kept = OTHER - {"python"} if not inside.parts else OTHER
        folders[:] = sorted(f for f in folders if f not in kept and not f.startswith((".", "_")) and not f.endswith(".zdb"))
        for name in sorted(names):
            is_module = not inside.parts and name in ("go.mod", "go.sum", "LICENSE")
            is_code = name.endswith((".go", ".s", ".h", *EMBEDDED)) and not name.endswith("_test.go") and (inside.parts or name.endswith(".go"))
            if is_module or is_code:
                yield (inside / name).as_posix()
