"""What was read of the keys of a session, so that a write loses nothing that was not seen.

    reader      get          set
    thread 1    k is #1 ──▶  k must be #1: stored, it is #2 now
    thread 2    k is #1 ──▶  k must be #1: ChangedError, although thread 1 shares the session

Writes of zarr-python to a part of a chunk run side by side in one thread. It reads and
then writes with the same `str` object as the key, another one for each write, so that
this object tells them apart.
"""

from __future__ import annotations

import sys
import threading

# So many reads of zarr-python are remembered before those that have ended are looked for.
MANY = 1024


class Seen(dict[str, bytes]):
    """The id of the value that this process has read or written last, by key; for a key that
    was not read, there is none. Calls for one key must not run at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self._threads = threading.local()
        self._reads: dict[int, tuple[str, bytes]] = {}  # by id() of the key, which is kept with it
        self._most = MANY

    @property
    def _mine(self) -> dict[str, bytes]:
        """The same for what this thread has read."""
        try:
            mine: dict[str, bytes] = self._threads.seen
        except AttributeError:
            mine = self._threads.seen = {}
        return mine

    def read(self, key: str, value: bytes, by_key: bool) -> None:
        """Note the id of what was read. With by_key the object `key` names the reader, else the thread does."""
        if by_key:
            self._reads[id(key)] = key, value
            if len(self._reads) > self._most:
                self._purge()
        else:
            self._mine[key] = value
        if key not in self:
            key = key[:1] + key[1:]  # another object, see _purge
        self[key] = value

    def expected(self, key: str, by_key: bool) -> bytes | None:
        """The id of the value that a write may replace; None is any."""
        if by_key:
            read = self._reads.get(id(key))
            return self.get(key) if read is None else read[1]
        last = self.get(key)
        return None if last is None else self._mine.get(key, last)

    def wrote(self, key: str, value: bytes, by_key: bool) -> None:
        """Note the id of what a write has stored."""
        if key in self:
            self[key] = value
        if by_key:
            self._reads.pop(id(key), None)
        elif key in self._mine:
            self._mine[key] = value

    def deleted(self, prefix: str, value: bytes) -> None:
        """Note that all keys with a prefix were deleted; value is the id of what is missing."""
        for seen in (self, self._mine):
            for key in [k for k in list(seen) if k.startswith(prefix)]:
                seen[key] = value
        for n, (key, _) in list(self._reads.items()):
            if key.startswith(prefix):
                self._reads.pop(n, None)

    def _purge(self) -> None:
        """Forget reads with keys that nothing else refers to: no write follows them."""
        for n in [n for n, count in _counts(self._reads) if count <= _ALONE]:
            self._reads.pop(n, None)
        self._most = max(MANY, 2 * len(self._reads))


def _counts(reads: dict[int, tuple[str, bytes]]) -> list[tuple[int, int]]:
    """How many references there are to each key."""
    return [(n, sys.getrefcount(key)) for n, (key, _) in list(reads.items())]


# References to a key that only `reads` has. The number depends on the version of Python.
_ALONE = _counts({0: ("-".join("ab"), b"")})[0][1]
