"""Progress of commands of the program."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Progress:
    """How far a command is: `done` of `total` things, which is 0 if it is not known. `ended` is set in the last report."""

    what: str
    done: int = 0
    total: int = 0
    unit: str = ""
    ended: bool = False


Report: TypeAlias = Callable[[Progress], object]


def progress_bar(p: Progress) -> None:
    """Show a bar on a terminal, and nothing elsewhere: `repo.import_("a.zarr", progress=zarrdb.progress_bar)`.

    >>> repo.export("old.zarr")
    >>> seen = []
    >>> c = repo.import_("old.zarr", to="copy", progress=seen.append)
    >>> seen[-1].ended
    True
    """
    if not sys.stderr.isatty():
        return
    n = 30 * min(p.done, p.total) // p.total if p.total else 0
    bar = f" [{'#' * n}{'.' * (30 - n)}] {p.done} of {p.total}" if p.total else f" {p.done}"
    sys.stderr.write("\r\033[K" if p.ended else f"\r\033[K{p.what}{bar} {p.unit}")
    sys.stderr.flush()


def run(program: str, args: tuple[str, ...], report: Report) -> tuple[int, bytes, str]:
    """Run a command line, and report its progress. Returns the exit code and the output."""
    import subprocess
    import tempfile

    messages, last = [], Progress(args[0])
    with tempfile.TemporaryFile() as out:
        with subprocess.Popen([program, "--progress-lines", *args], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE) as p:
            try:
                for line in p.stderr or ():
                    if line.startswith(b"\x1e"):
                        last = Progress(**json.loads(line[1:]))
                        report(last)
                    else:
                        messages.append(line.decode(errors="replace"))
            except BaseException:
                p.terminate()
                raise
            finally:
                report(Progress(last.what, last.done, last.total, last.unit, True))
        out.seek(0)
        return p.returncode, out.read(), "".join(messages)
