"""Chunks that small selections are taken from.

    selection of a version ──all its chunks are here──▶ copied from them
         │
         └─some are not──▶ read, and noted: a chunk that is touched again and
                           again is fetched as a whole

A request takes as long as to copy some hundred kilobytes. So a chunk is fetched when the
requests for parts of it have cost about what fetching it does. Versions never change, so
nothing becomes stale. The chunks are plain memory of this process.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Numbers = np.ndarray[Any, Any]
Key = tuple[Any, ...]

# How many bytes of chunks are kept, and the longest chunk that is.
KEPT = 64 << 20
LONGEST = 8 << 20
# A selection of more chunks, or of more than this part of them, is read.
MOST = 32
PART = 4
# After so many requests for parts of a chunk it is fetched, among so many chunks that were touched last.
TOUCHES = 3
NOTED = 64

_lock = threading.Lock()
_kept: OrderedDict[Key, Numbers] = OrderedDict()
_bytes = 0
_noted: OrderedDict[Key, int] = OrderedDict()


def element(of: Key, unit: Sequence[int], at: Sequence[int]) -> Any:
    """One element, None if its chunk is not here."""
    key = (of, *[i // u for i, u in zip(at, unit, strict=True)])
    chunk = _kept.get(key)
    if chunk is None:
        return None
    _used(key)
    return chunk[tuple([i % u for i, u in zip(at, unit, strict=True)])]


def selection(of: Key, unit: Sequence[int], shape: Sequence[int], items: Sequence[int | range], dtype: np.dtype[Any], fetch: Callable[[list[range]], Numbers]) -> Numbers | None:
    """The elements that items, one for each dimension, select of an array with chunks of the shape
    unit. None if it is to be read. fetch reads a whole chunk. of tells the version, the array,
    its unit and its data type."""
    size = math.prod(unit) * dtype.itemsize
    if not 0 < size <= LONGEST or not unit:
        return None
    n, wanted = 1, []
    for k, u in zip(items, unit, strict=True):
        if isinstance(k, range):
            if k.step != 1 or not k:
                return None
            n *= (k.stop - 1) // u - k.start // u + 1
            wanted.append(len(k))
    if n > MOST or math.prod(wanted) * dtype.itemsize * PART > n * size:
        return None
    pieces = []
    for k, u in zip(items, unit, strict=True):
        found = pieces_of(k, u, MOST)
        if found is None:
            return None
        pieces.append(found)
    parts = [((of, *[p[0] for p in piece]), piece) for piece in itertools.product(*pieces)]
    chunks = [_kept.get(key) for key, _ in parts]
    if any(c is None for c in chunks):
        if not _ripe([key for (key, _), c in zip(parts, chunks, strict=True) if c is None]):
            return None
        for i, ((key, piece), c) in enumerate(zip(parts, chunks, strict=True)):
            if c is None:
                got = fetch([range(p[0] * u, min(p[0] * u + u, end)) for p, u, end in zip(piece, unit, shape, strict=True)])
                chunks[i] = got
                _keep(key, got)
    out = np.empty(wanted, dtype)
    for (key, piece), chunk in zip(parts, chunks, strict=True):
        assert chunk is not None
        out[tuple([p[2] for p in piece if p[2] is not None])] = chunk[tuple([p[1] for p in piece])]
        _used(key)
    return out


def pieces_of(k: int | range, u: int, most: int) -> list[tuple[int, Any, slice | None]] | None:
    """The chunks that an item touches: number, selection in it, and place in the result. None if
    there are more than most, or the item has a step."""
    if isinstance(k, int):
        return [(k // u, k % u, None)]
    if k.step != 1 or len(k) == 0:
        return None
    first, last = k.start // u, (k.stop - 1) // u
    if last - first >= most:
        return None
    out: list[tuple[int, Any, slice | None]] = []
    for c in range(first, last + 1):
        lo, hi = max(k.start, c * u), min(k.stop, c * u + u)
        out.append((c, slice(lo - c * u, hi - c * u), slice(lo - k.start, hi - k.start)))
    return out


def _ripe(keys: list[Key]) -> bool:
    """Note that parts of chunks are read, and report whether all of them are to be fetched."""
    with _lock:
        ripe = True
        for key in keys:
            n = _noted.pop(key, 0) + 1
            _noted[key] = n
            ripe = ripe and n >= TOUCHES
        while len(_noted) > NOTED:
            _noted.popitem(last=False)
        return ripe


def _used(key: Key) -> None:
    try:
        _kept.move_to_end(key)
    except KeyError:
        pass  # another thread has dropped it


def _keep(key: Key, chunk: Numbers) -> None:
    global _bytes
    with _lock:
        _noted.pop(key, None)
        if key in _kept:
            return
        _kept[key] = chunk
        _bytes += chunk.nbytes
        while _bytes > KEPT:
            _bytes -= _kept.popitem(last=False)[1].nbytes


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()  # another thread may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def clear() -> None:
    """Forget all chunks."""
    global _bytes
    with _lock:
        _kept.clear()
        _noted.clear()
        _bytes = 0
