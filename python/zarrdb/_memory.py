"""Memory that the server decodes into.

    Block ──descriptor, once──▶ server maps it, and decodes results into it
      │ ▲                                   │
      │ └─────────── reply ─────────────────┘
      └─copy─▶ numpy array

Fresh pages that two processes share cost ten times what copying costs. So both sides
keep blocks mapped, for one result after the other, and results are copied into plain
memory, while the server decodes what comes next.
"""

from __future__ import annotations

import itertools
import mmap
import os
import sys
from collections import deque

if sys.platform == "linux":
    import fcntl

    AVAILABLE = hasattr(os, "memfd_create")
else:
    AVAILABLE = False

# The sizes of blocks that are kept, and how many bytes of them a connection keeps. What
# is longer than the longest gets a block of its own, up to that of a result. There are so many
# at a time, and others while the server is told of those that are gone.
SIZES = (256 << 10, 2 << 20, 8 << 20, 32 << 20, 64 << 20, 128 << 20)
KEPT = 256 << 20
LONGEST = 256 << 20
MOST = 32


class Fd(int):
    """A descriptor, which is closed when nothing refers to it."""

    __slots__ = ()

    def __del__(self) -> None:
        os.close(self)


class Block:
    """Memory that both sides map. lost gets the number of one that is gone."""

    __slots__ = ("_lost", "fd", "map", "number", "size")

    def __init__(self, number: int, size: int, lost: deque[int]) -> None:
        self._lost, self.number, self.size = lost, number, size
        self.fd: Fd | None = _sealed(size)  # open until the server has it
        self.map = memoryview(mmap.mmap(self.fd, size))

    def sent(self) -> None:
        """The server has the descriptor."""
        self.fd = None

    def __del__(self) -> None:
        self._lost.append(self.number)


class Blocks:
    """The blocks of a connection that no request uses. Safe for threads."""

    def __init__(self, limit: int) -> None:
        """limit is how many bytes the server takes."""
        self._limit = limit
        self.known: dict[int, int] = {}  # sizes, until the server is told to forget
        self._free: dict[int, list[Block]] = {size: [] for size in SIZES}
        self._numbers = itertools.count(1)
        self.lost: deque[int] = deque()  # those that the server is to forget

    def take(self, n: int) -> Block | None:
        """A block of at least n bytes, None if there are too many. One that is not given back
        is lost: the server may still write to it."""
        size = next((s for s in SIZES if s >= n), -(-n // mmap.PAGESIZE) * mmap.PAGESIZE)
        try:
            return self._free[size].pop()
        except (KeyError, IndexError):
            pass
        known = list(self.known.values())
        if len(known) >= MOST or sum(known) + size > self._limit // 2:
            return None
        number = next(self._numbers)
        try:
            self.known[number] = size
            return Block(number, size, self.lost)
        except BaseException:
            self.known.pop(number, None)  # the server does not know it
            raise

    def give(self, block: Block) -> None:
        """Keep a block for the next request."""
        if block.size not in self._free:
            return
        if sum(list(self.known.values())) > KEPT and sum(size * len(free) for size, free in self._free.items()) + block.size > KEPT:
            return
        self._free[block.size].append(block)


def _sealed(size: int) -> Fd:
    """Memory that can be neither cut off nor made longer."""
    if sys.platform != "linux":
        raise NotImplementedError
    fd = Fd(os.memfd_create("zarrdb", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return fd
