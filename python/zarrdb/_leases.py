"""Versions that this process has open, for processes that have the database open later.

    this process ──visit──▶ process that serves it ──makes and locks──▶ peers/NAME ──▶ this process
                                                                            ▲
    version opened or closed ──────────────────── written ─────────────────┘

The file is locked while this process lives. A collection keeps the versions in a locked file, also if another process collects that
this process was never connected to.
"""

from __future__ import annotations

import fcntl
import itertools
import os
from collections import deque

from ._fd import Fd
from ._wire import by_system

LINE = 41  # of an id of a version


class Peer:
    """The file of this process at one database. It needs no locks: finalizers and signal handlers may come at any statement."""

    __slots__ = ("_at", "_fd", "_free", "_lines", "name")

    def __init__(self, name: str, fd: Fd) -> None:
        self.name, self._fd = name, fd
        self._at = os.fstat(fd.fileno()).st_size + 1
        self._lines = itertools.count()
        self._free: deque[int] = deque()
        self._write(self._at - 1, b"\n")

    def hold(self, id: str) -> int:
        """Note a version. Returns its line."""
        try:
            line = self._free.pop()
        except IndexError:
            line = next(self._lines)
        self._write(self._at + line * LINE, id.encode() + b"\n")
        return line

    def drop(self, line: int) -> None:
        """Take the note of a version back."""
        self._write(self._at + line * LINE, b" " * (LINE - 1))
        self._free.append(line)

    def _write(self, at: int, text: bytes) -> None:
        if self._at < 0:
            return
        try:
            os.pwrite(self._fd.fileno(), text, at)
        except OSError as e:
            if not by_system(e):
                raise
            # The disk is full. Without a list, collections wait for this process.
            os.ftruncate(self._fd.fileno(), self._at - 1)
            self._at = -1

    def end(self) -> None:
        """Unlock the file, because this process does not use the database any more."""
        fcntl.flock(self._fd.fileno(), fcntl.LOCK_UN)
