"""Memory that the server decodes into.

    Block ──descriptor, once──▶ server maps it, and decodes results into it
      │ ▲                                   │
      │ └─────────── reply ─────────────────┘
      └─copy─▶ numpy array

Fresh pages that two processes share cost ten times what copying costs. So both sides
keep blocks mapped, for one result after the other, and results are copied into plain
memory, while the server decodes the next part.
"""

from __future__ import annotations

import itertools
import mmap
import os
import select
import sys
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

if sys.platform == "linux":
    import fcntl

    AVAILABLE = hasattr(os, "memfd_create")
else:
    AVAILABLE = False

# The sizes of blocks that are kept, and how many bytes of them a connection keeps. A longer result
# gets a block of its own, up to LONGEST. There are at most MOST blocks at a time, and more while
# the server is still to forget old ones.
SIZES = (256 << 10, 2 << 20, 8 << 20, 32 << 20, 64 << 20, 128 << 20)
KEPT = 256 << 20
LONGEST = 256 << 20
MOST = 32


class Fd(Protocol):
    """A descriptor, which is closed when nothing refers to it."""

    def fileno(self) -> int: ...


class _Fd:
    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def __del__(self) -> None:
        os.close(self._fd)


# In C where there is such an object: a signal handler that raises in a finalizer would leave the descriptor open.
own: Callable[[int], Fd] = select.epoll.fromfd if sys.platform == "linux" else _Fd


class Block:
    """Memory that both sides map."""

    __slots__ = ("__weakref__", "fd", "map", "number", "size")

    def __init__(self, number: int, size: int) -> None:
        self.number, self.size = number, size
        self.fd: Fd | None = _sealed(size)  # open until the server has it
        self.map = memoryview(mmap.mmap(self.fd.fileno(), size))

    def sent(self) -> None:
        """The server has the descriptor."""
        self.fd = None


class Known(weakref.ref[Block]):
    """A reference to a block that the server may know. It is added to `Blocks.lost` when nothing else refers to the block, also in C code."""

    __slots__ = ("number", "size")
    number: int
    size: int


class Blocks:
    """The blocks of a connection that no request uses. Safe for threads."""

    def __init__(self, limit: int) -> None:
        """limit is how many bytes the server takes."""
        self._limit = limit
        self.known: dict[int, Known] = {}  # until the server is asked to forget
        self._free: dict[int, list[Block]] = {size: [] for size in SIZES}
        self._numbers = itertools.count(1)
        self.lost: deque[Known] = deque()  # that the server is to forget

    def take(self, n: int) -> Block | None:
        """A block of at least n bytes, None if there are too many. One that is not given back
        is lost: the server may still write to it."""
        size = next((s for s in SIZES if s >= n), -(-n // mmap.PAGESIZE) * mmap.PAGESIZE)
        with suppress(KeyError, IndexError):
            return self._free[size].pop()
        if len(self.known) >= MOST or self._bytes() + size > self._limit // 2:
            return None
        block = Block(next(self._numbers), size)
        known = Known(block, self.lost.append)
        known.number, known.size = block.number, size
        self.known[block.number] = known
        return block

    def _bytes(self) -> int:
        return sum([k.size for k in list(self.known.values())])

    def give(self, block: Block) -> None:
        """Keep a block for the next request."""
        if block.size not in self._free:
            return
        if self._bytes() > KEPT and sum(size * len(free) for size, free in self._free.items()) + block.size > KEPT:
            return
        self._free[block.size].append(block)


def _sealed(size: int) -> Fd:
    """Memory that can be neither cut off nor made longer."""
    if sys.platform != "linux":
        raise NotImplementedError
    fd: Fd = own(os.memfd_create("zarrdb", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
    os.ftruncate(fd.fileno(), size)
    fcntl.fcntl(fd.fileno(), fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return fd
