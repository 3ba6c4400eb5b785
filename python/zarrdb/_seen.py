"""The values that were read in a session, so that a write loses no value that was not seen.

    reader      get          set
    thread 1    k is #1 ──▶  k must be #1: stored, it is #2 now
    thread 2    k is #1 ──▶  k must be #1: ChangedError, although thread 1 shares the session

Writes of zarr-python to a part of a chunk run side by side in one thread. It reads and
then writes with the same `str` object as the key, another one for each write, so that
this object tells them apart.
"""

from __future__ import annotations

import itertools
import sys
import threading
from contextlib import suppress

from ._errors import ChangedError

MISSING = bytes(20)  # the id of no value

# The ids of so many keys are remembered, which takes some 120 MB.
MOST = 1 << 19
# Bits of the set of keys that were forgotten, a power of two.
BITS = 1 << 26
# So many reads of zarr-python are remembered before ended ones are looked for.
MANY = 1024


class Seen(dict[str, bytes]):
    """The id of the value that this process has read or written last, by key; for a key that
    was not read, there is none. A key that was forgotten, because very many other keys were read, is not written until
    it is
    read again. Calls for one key must not run at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self._threads = threading.local()
        self._reads: dict[int, tuple[str, bytes]] = {}  # by id() of the key, which is kept with it
        self._most = MANY
        self._gone: bytearray | None = None  # a Bloom filter, two bits for each key
        self._deleted: list[str] = []  # prefixes that were deleted since keys are forgotten

    def clear(self) -> None:
        super().clear()
        self._gone = None
        self._deleted = []

    def _forget_some(self, of: dict[str, bytes]) -> None:
        """Forget the keys that were noted first."""
        gone = self._gone = self._gone or bytearray(BITS // 8)
        with suppress(RuntimeError):  # another thread notes a key meanwhile; the next read forgets some
            for key in list(itertools.islice(of, MOST // 8)):
                for bit in _bits(key):
                    gone[bit >> 3] |= 1 << (bit & 7)
                of.pop(key, None)

    def _forgot(self, key: str) -> bytes | None:
        """The condition for a key that was not read, or is forgotten: that is a ChangedError."""
        gone = self._gone
        if gone is None or not all(gone[bit >> 3] >> (bit & 7) & 1 for bit in _bits(key)):
            return None
        if any(key.startswith(p) for p in self._deleted):
            return MISSING
        raise ChangedError(
            f"set {key}: it was read before {MOST} other keys were, so that its value is forgotten; read it again, or commit and begin another session", key
        )

    @property
    def _mine(self) -> dict[str, bytes]:
        """The same for the reads of this thread."""
        try:
            mine: dict[str, bytes] = self._threads.seen
        except AttributeError:
            mine = self._threads.seen = {}
        return mine

    def read(self, key: str, value: bytes, by_key: bool) -> None:
        """Note the id of a value that was read. With by_key the object `key` names the reader, else the thread does."""
        if by_key:
            self._reads[id(key)] = key, value
            if len(self._reads) > self._most:
                self._purge()
        else:
            mine = self._mine
            mine[key] = value
            if len(mine) > MOST:
                self._forget_some(mine)
        if key not in self:
            if len(self) >= MOST:
                self._forget_some(self)
            key = key[:1] + key[1:]  # another object, see _purge
        self[key] = value

    def expected(self, key: str, by_key: bool) -> bytes | None:
        """The id of the value that a write may replace; None is any."""
        if by_key:
            read = self._reads.get(id(key))
            if read is not None:
                return read[1]
        last = self.get(key)
        if self._gone is not None and (last is None or not by_key and key not in self._mine):
            return self._forgot(key) or last
        return last if last is None or by_key else self._mine.get(key, last)

    def wrote(self, key: str, value: bytes, by_key: bool) -> None:
        """Note the id of a value that a write has stored."""
        if key in self:
            self[key] = value
        if by_key:
            self._reads.pop(id(key), None)
        elif key in self._mine:
            self._mine[key] = value

    def deleted(self, prefix: str, value: bytes) -> None:
        """Note that all keys with a prefix were deleted; value is the id of a missing value."""
        for seen in (self, self._mine):
            for key in [k for k in list(seen) if k.startswith(prefix)]:
                seen[key] = value
        if self._gone is not None and prefix not in self._deleted:
            self._deleted.append(prefix)
        for n, (key, _) in list(self._reads.items()):
            if key.startswith(prefix):
                self._reads.pop(n, None)

    def _purge(self) -> None:
        """Forget reads with keys that nothing else refers to: no write follows them."""
        for n in [n for n, count in _counts(self._reads) if count <= _ALONE]:
            self._reads.pop(n, None)
        self._most = max(MANY, 2 * len(self._reads))


def _bits(key: str) -> tuple[int, int]:
    h = hash(key)
    return h & (BITS - 1), h >> 32 & (BITS - 1)


def _counts(reads: dict[int, tuple[str, bytes]]) -> list[tuple[int, int]]:
    """How many references there are to each key."""
    return [(n, sys.getrefcount(key)) for n, (key, _) in list(reads.items())]


# References to a key that only `reads` has. The number depends on the version of Python.
_ALONE = _counts({0: ("-".join("ab"), b"")})[0][1]
