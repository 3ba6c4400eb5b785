from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import zarrdb

# A shell that starts a program in the background has it ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


def holder(path: Path | str) -> int | None:
    """The process that has a database open."""
    try:
        return int(json.loads((Path(path) / "index" / "HOLDER").read_text())["pid"])
    except (OSError, ValueError):
        return None


def end(path: Path | str) -> None:
    """End the process that has a database open."""
    pid = holder(path)
    if pid:
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            pass


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A place for a database. The process that serves it ends with the test."""
    db = tmp_path / "w.zdb"
    yield db
    end(db)


@pytest.fixture
def repo(path: Path) -> zarrdb.Repository:
    return zarrdb.open(path, create=True)
