"""Memory that the server decodes into, and this process maps.

    memfd, sealed ──fd──▶ server: maps it and decodes into it
          │
          └─ private map ──▶ numpy array

The map is private: what is written to the array changes no page that a child or
another array sees. When the array is gone its pages may serve the next one, unless
this process was forked meanwhile: a child may still read them.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

if sys.platform == "linux":
    import fcntl

    AVAILABLE = hasattr(os, "memfd_create")
else:
    AVAILABLE = False

# Pages that are kept for the next result, and the longest result that they are kept of.
KEPT = 64 << 20
LONGEST = 16 << 20

_lock = threading.RLock()  # a map may end anywhere, also where the lock is held
_free: dict[int, list[int]] = {}  # descriptors by size
_kept = 0
_forks = 0  # of this process so far


class Block:
    """n bytes that can be passed to the server once, and then be mapped once."""

    __slots__ = ("_forks", "fd", "size")

    def __init__(self, n: int) -> None:
        global _kept
        size = _rounded(n)
        self.size, self.fd = size, -1
        with _lock:
            self._forks = _forks
            same = _free.get(size)
            if same:
                self.fd = same.pop()
                _kept -= size
        if self.fd < 0:
            self.fd = _sealed(size)

    def map(self) -> mmap.mmap:
        """The bytes. The block must not be used any more, except that it is given back
        when the map and all that uses it are gone."""
        fd, size, forks = self.fd, self.size, self._forks
        self.fd = -1
        try:
            m = mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        except BaseException:
            os.close(fd)
            raise
        if size > LONGEST:
            os.close(fd)
        else:
            _watch(m, lambda: _give(fd, size, forks))
        return m

    def abandon(self) -> None:
        """Give the bytes up. The server may still write to them."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _sealed(size: int) -> int:
    """Memory that can be neither cut off nor made longer."""
    if sys.platform != "linux":
        raise NotImplementedError
    fd = os.memfd_create("zarrdb", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _rounded(n: int) -> int:
    """Sizes that are kept are few: powers of two, and halves between them."""
    if n > LONGEST:
        return -(-n // mmap.PAGESIZE) * mmap.PAGESIZE
    size = mmap.PAGESIZE
    while size < n:
        size *= 2
    return size * 3 // 4 if size * 3 // 4 >= n and size > 4 * mmap.PAGESIZE else size


def _give(fd: int, size: int, forks: int) -> None:
    """Keep the pages of a block, if nobody can have them any more."""
    global _kept
    with _lock:
        if forks == _forks and size <= LONGEST and _kept + size <= KEPT:
            _free.setdefault(size, []).append(fd)
            _kept += size
            return
    os.close(fd)


_watched: dict[int, weakref.ref[Any]] = {}


def _watch(m: mmap.mmap, gone: Callable[[], None]) -> None:
    """Call gone when nobody has m any more. At exit it does not matter."""
    key = id(m)

    def ended(_: Any) -> None:
        _watched.pop(key, None)
        gone()

    _watched[key] = weakref.ref(m, ended)


def _forget() -> None:
    """Give no page to another result that a parent or child may read."""
    global _forks, _kept
    _forks += 1
    _kept = 0
    for fds in _free.values():
        for fd in fds:
            os.close(fd)
    _free.clear()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    _forget()


if AVAILABLE:
    # The lock is held while the process is copied, so that what it guards is whole.
    os.register_at_fork(before=lambda: _lock.acquire(), after_in_parent=lambda: (_forget(), _lock.release()), after_in_child=_after_fork_in_child)  # type: ignore[func-returns-value]
