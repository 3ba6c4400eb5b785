"""Chunks that are stored as their elements, without a codec.

    selection of a version ──▶ its chunks ──▶ places in files that the server has passed
                                                  │
    numpy array ◀──────────copied from the map────┘

The server compares the checksum of a chunk before it says where the chunk is. A version
never changes, so a place is asked for once. The open file keeps the chunk where it is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _wire as w
from ._chunks import pieces_of
from ._errors import ConnectionLostError, NotFoundError
from ._selection import Selection
from ._views import Snapshot

Numbers = np.ndarray[Any, Any]
Place = tuple[int, int, int]

# Shorter chunks come as bytes, and are decoded by the server in larger parts.
SHORTEST = 32 << 10
# A selection of more chunks is decoded by the server, which works on several at a time.
MOST = 4
# The server also decodes selections of less than this part of chunks that it has not compared before.
PART = 4
REMEMBERED = 1 << 16


class PlainChunks:
    """The chunks of an array in a version. keys says under which keys they are; unit is
    the shape of all of them."""

    __slots__ = ("_dtype", "_known", "_nbytes", "_prefix", "_separator", "_unit", "_view")

    def __init__(self, view: Snapshot, keys: dict[str, str], unit: Sequence[int], dtype: np.dtype[Any]) -> None:
        self._view, self._unit, self._dtype = view, tuple(unit), dtype
        self._prefix, self._separator = keys["prefix"], keys["separator"]
        self._nbytes = math.prod(unit) * dtype.itemsize
        self._known: tuple[w.Link, dict[tuple[int, ...], Place]] | None = None  # places of a connection

    def read(self, sel: Selection, out: Numbers | None) -> Numbers | None:
        """The elements of a selection, in out if that is given. None if the server is to
        decode them."""
        if self._nbytes < SHORTEST:
            return None
        pieces, n = [], 1
        for k, u in zip(sel.items, self._unit, strict=True):
            found = pieces_of(k, u)
            if found is None or n * len(found) > MOST:
                return None
            n *= len(found)
            pieces.append(found)
        link, handle = self._view._at()
        known = self._known
        if known is None or known[0] is not link:
            known = self._known = (link, {})
        places = known[1]
        parts = [(tuple([p[0] for p in piece]), piece) for piece in itertools.product(*pieces)]
        shape = sel.shape
        if math.prod(shape) * self._dtype.itemsize * PART < n * self._nbytes and any(at not in places for at, _ in parts):
            return None
        into = out
        for at, piece in parts:
            try:
                chunk = self._chunk(link, handle, places, at)
            except (ConnectionLostError, NotFoundError):
                return None
            if chunk is None:
                return None
            if into is None:
                into = np.empty(shape, self._dtype)
            into[tuple([p[2] for p in piece if p[2] is not None])] = chunk[tuple([p[1] for p in piece])]
        return into

    def _chunk(self, link: w.Link, handle: int, places: dict[tuple[int, ...], Place], at: tuple[int, ...]) -> Numbers | None:
        """A chunk that is not to be written to. None if it is not what an array has, or in
        a file that was closed for others."""
        place = places.get(at)
        body: Any = None
        if place is None:
            key = self._prefix + self._separator.join(map(str, at))
            frame = link.call(w.GET, w.get_meta(handle, key.encode()))
            place = link.place(frame)
            if place is None:
                body, place = frame.body, (0, 0, len(frame.body))
            elif len(places) < REMEMBERED:
                places[at] = place
        number, off, n = place
        if n != self._nbytes:
            return None
        if body is None:
            body = link.mapped(number, off, n)
        if body is None:
            places.pop(at, None)
            return None
        return np.frombuffer(body, self._dtype, n // self._dtype.itemsize, off).reshape(self._unit)
