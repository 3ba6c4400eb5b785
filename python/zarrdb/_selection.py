"""Selections by indexing, as the server takes them, and in parts."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ._errors import InvalidError


class Selection:
    """The selection of numpy's basic indexing in a shape."""

    items: list[int | range]  # one for each dimension
    final: list[int]  # the shape with new dimensions

    def __init__(self, key: Any, shape: tuple[int, ...]) -> None:
        if type(key) is tuple and len(key) == len(shape):  # most often; the same as below in less time
            simple: list[int | range] = []
            for k, n in zip(key, shape, strict=True):
                if type(k) is slice:
                    simple.append(range(*k.indices(n)))
                elif type(k) is int and 0 <= k < n:
                    simple.append(k)
                else:
                    break
            else:
                self.items, self.final = simple, [len(r) for r in simple if isinstance(r, range)]
                return
        items = list(key) if isinstance(key, tuple) else [key]
        dots = [i for i, k in enumerate(items) if k is Ellipsis]
        whole = len(shape) - sum(k is not None and k is not Ellipsis for k in items)
        if len(dots) > 1 or whole < 0:
            raise IndexError(f"{key!r} has too many items for an array of {len(shape)} dimensions")
        at = dots[0] if dots else len(items)
        items[at : at + len(dots)] = [slice(None)] * whole
        self.items, self.final = [], []
        for k in items:
            if k is None:
                self.final.append(1)
                continue
            n = shape[len(self.items)]
            if isinstance(k, slice):
                r = range(*k.indices(n))
                self.items.append(r)
                self.final.append(len(r))
                continue
            try:
                if isinstance(k, bool | np.bool_):
                    raise TypeError
                i = operator.index(k)
            except TypeError:
                raise InvalidError(f"{k!r}: the index of an array may have numbers, slices, ... and None; for other selections use zarr") from None
            if not -n <= i < n:
                raise IndexError(f"index {i} lies outside dimension {len(self.items)}, which has length {n}")
            self.items.append(i + n if i < 0 else i)

    @classmethod
    def of(cls, items: list[int | range]) -> Selection:
        """The selection of an item for each dimension, all inside the array."""
        s = object.__new__(cls)
        s.items, s.final = items, [len(r) for r in items if isinstance(r, range)]
        return s

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple([len(r) for r in self.items if isinstance(r, range)])

    def text(self) -> str:
        """The selection as on the command line."""
        return ",".join([_text(k) for k in self.items])

    def parts(self, most: int, unit: Sequence[int] = ()) -> Iterator[tuple[Selection, tuple[slice, ...]]]:
        """The selection in parts of at most so many elements, with where they go, in C order.
        They end where units do, the chunks of the array. So a part may be as long as a unit."""
        axes = [i for i, k in enumerate(self.items) if isinstance(k, range)]
        ranges = [r for r in self.items if isinstance(r, range)]
        units = [unit[i] if unit else 1 for i in axes]
        lengths = [len(r) for r in ranges]
        total = math.prod(lengths)
        for axis, (r, u) in enumerate(zip(ranges, units, strict=True)):
            if total <= most:
                break
            rest = total // lengths[axis]
            one = max(1, u // abs(r.step))
            lengths[axis] = min(len(r), max(one, most // rest // one * one))
            total = rest * lengths[axis]
        cuts = [_cuts(r, n, u) for r, n, u in zip(ranges, lengths, units, strict=True)]
        for where in itertools.product(*cuts):
            items = list(self.items)
            for i, r, at in zip(axes, ranges, where, strict=True):
                items[i] = r[at]
            yield Selection.of(items), where


def _cuts(r: range, n: int, unit: int) -> list[slice]:
    """A range in pieces of about n elements, that end where units do."""
    if n >= len(r):
        return [slice(0, len(r))]
    out, lo = [], 0
    each = max(1, n * abs(r.step) // unit)  # units of a piece
    while lo < len(r):
        if r.step > 0:
            end = (r[lo] // unit + each) * unit  # in the array
            hi = -((r[0] - end) // r.step)
        else:
            end = (r[lo] // unit - each + 1) * unit - 1
            hi = -((end - r[0]) // -r.step)
        hi = min(max(hi, lo + 1), len(r))
        out.append(slice(lo, hi))
        lo = hi
    return out


def _text(k: int | range) -> str:
    if isinstance(k, int):
        return str(k)
    if len(k) == 0:
        return "0:0"
    if k.step == 1:
        return f"{k.start}:{k.stop}:1"
    stop = k[-1] + (1 if k.step > 0 else -1)
    return f"{k[0]}:{stop if stop >= 0 else ''}:{k.step}"
