"""Chunks that are stored as their elements, without a codec.

    selection of a version ──▶ its chunks ──▶ places in files that the server has passed
                                                  │
    numpy array ◀──────────copied from the map────┘   by several threads if there are many

The server compares the checksum of a chunk before it says where the chunk is. A version
never changes, so a place is asked for once. The open file keeps the chunk where it is.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from . import _wire as w
from ._chunks import pieces_of
from ._errors import ConnectionLostError, NotFoundError
from ._selection import Selection
from ._views import View

Numbers = np.ndarray[Any, Any]
Place = tuple[int, int, int]

# Shorter chunks come as bytes, and are decoded by the server in larger parts.
SHORTEST = 32 << 10
# Longer chunks too: parts of them are read.
LONGEST = 64 << 20
# A selection of more chunks than FEW is decoded by the server, which needs fewer requests,
# unless they are LONG. Then several threads copy, at most THREADS.
FEW, LONG = 4, 512 << 10
THREADS = 4
# The server also decodes selections of less than this part of chunks that it has not compared before.
PART = 4
REMEMBERED = 1 << 16

# A chunk: its number in each dimension, the selection in it, and its place in the result.
Piece = tuple[tuple[int, Any, slice | None], ...]
# Elements that the server is to decode: their numbers in the array, and their place in the result.
Left = tuple[Selection, tuple[slice, ...]]


class PlainChunks:
    """The chunks of an array in a version. keys says under which keys they are; unit is
    the shape of all of them."""

    __slots__ = ("_dtype", "_elsewhere", "_known", "_nbytes", "_prefix", "_separator", "_unit")

    def __init__(self, keys: dict[str, str], unit: Sequence[int], dtype: np.dtype[Any]) -> None:
        self._unit, self._dtype = tuple(unit), dtype
        self._prefix, self._separator = keys["prefix"], keys["separator"]
        self._nbytes = math.prod(unit) * dtype.itemsize
        self._known: tuple[w.Link, dict[tuple[int, ...], Place]] | None = None  # places of a connection
        self._elsewhere = False  # a chunk came as bytes: it is not in a file of the database, or that is not passed

    def read(self, view: View, sel: Selection, out: Numbers | None) -> tuple[Numbers, list[Left]] | None:
        """The elements of a selection, in out if that is given, without elements of chunks that
        have no value here. None if the server is to decode all."""
        if self._elsewhere or not SHORTEST <= self._nbytes <= LONGEST:
            return None
        pieces, n = [], 1
        for k, u in zip(sel.items, self._unit, strict=True):
            found = pieces_of(k, u, REMEMBERED)
            if found is None:
                return None
            n *= len(found)
            pieces.append(found)
        if n > (FEW if self._nbytes < LONG else REMEMBERED):
            return None
        link, handle = view._at()
        known = self._known
        if known is None or known[0] is not link:
            known = self._known = (link, {})
        places = known[1]
        shape = sel.shape
        little = math.prod(shape) * self._dtype.itemsize * PART < n * self._nbytes
        if little and any(tuple([p[0] for p in piece]) not in places for piece in itertools.product(*pieces)):
            return None
        into = np.empty(shape, self._dtype) if out is None else out
        todo: Iterator[Piece] = itertools.product(*pieces)
        left: list[Left] = []

        def copy(piece: Piece) -> None:
            where = tuple([p[2] for p in piece if p[2] is not None])
            chunk = self._chunk(link, handle, places, tuple([p[0] for p in piece]))
            if chunk is not None:
                into[where] = chunk[tuple([p[1] for p in piece])]
                return
            if len(left) > n // PART:
                raise _MostAreMissing
            items = [k if isinstance(k, int) else k[p[2] or slice(None)] for k, p in zip(sel.items, piece, strict=True)]
            left.append((Selection.of(items), where))

        try:
            _all(copy, todo, 1 if n <= FEW else THREADS)
        except (ConnectionLostError, _MostAreMissing):
            return None
        return into, left

    def _chunk(self, link: w.Link, handle: int, places: dict[tuple[int, ...], Place], at: tuple[int, ...]) -> Numbers | None:
        """A chunk that is not to be written to. None if it has no value or one of another length,
        or is in a file that was closed to make room."""
        place = places.get(at)
        body: Any = None
        if place is None:
            key = self._prefix + self._separator.join(map(str, at))
            try:
                frame = link.call(w.GET, w.get_meta(handle, key.encode()))
            except NotFoundError:
                return None
            place = link.place(frame)
            if place is None:
                self._elsewhere = True
                body, place = frame.body, (0, 0, len(frame.body))
            elif len(places) < REMEMBERED:
                places[at] = place
        number, off, n = place
        if n != self._nbytes:
            return None
        if body is None:
            body = link.mapped(number, off, n, handle)
        if body is None:
            places.pop(at, None)
            return None
        return np.frombuffer(body, self._dtype, n // self._dtype.itemsize, off).reshape(self._unit)


class _MostAreMissing(Exception):
    pass


def _all(fn: Callable[[Piece], None], todo: Iterator[Piece], threads: int) -> None:
    """Call fn with each piece, in several threads. The first exception ends all of them."""
    threads = min(threads, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    lock = threading.Lock()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            while not failed:
                with lock:
                    piece = next(todo, None)
                if piece is None:
                    return
                fn(piece)
        except BaseException as e:
            failed.append(e)

    others = [threading.Thread(target=run, daemon=True) for _ in range(threads - 1)]
    try:
        with contextlib.suppress(RuntimeError):  # there are too many threads
            for t in others:
                t.start()
        run()
    except BaseException as e:  # a signal may raise anywhere
        failed.append(e)
    finally:
        for t in others:
            if t.ident is not None:
                t.join()
    if failed:
        try:
            raise next((e for e in failed if not isinstance(e, Exception)), failed[0])
        finally:
            failed.clear()  # its traceback refers to this frame
