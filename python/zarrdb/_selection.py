"""Selections by indexing, as the library takes them."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ._errors import InvalidError


class Selection:
    """The selection of numpy's basic indexing in a shape."""

    __slots__ = ("final", "ints", "shape")

    # The selection as the library takes it: the number of dimensions, then for each one the first element, how many
    # there are, or -1 for one without a dimension in the result, and the step.
    ints: list[int]
    shape: tuple[int, ...]
    final: tuple[int, ...]  # the shape with new dimensions

    def __init__(self, key: Any, shape: tuple[int, ...]) -> None:
        items: Sequence[Any] = key if type(key) is tuple else (key,)
        if not self._take(items, shape):
            items, new = _plain(key, items, shape)
            self._take(items, shape)
            final = list(self.shape)
            for axis in new:
                final.insert(axis, 1)
            self.final = tuple(final)

    def _take(self, items: Sequence[Any], shape: tuple[int, ...]) -> bool:
        """Take slices, and numbers inside the shape; false if there are other items."""
        ints, counts = [len(shape)], []
        if len(items) > len(shape):
            return False
        for k, n in zip(items, shape, strict=False):
            if type(k) is int and 0 <= k < n:
                ints += (k, -1, 1)
            elif type(k) is slice:
                r = range(*k.indices(n))
                count = len(r)
                ints += (r.start, count, r.step if count > 1 else 1)  # any step may be longer than an integer of the library
                counts.append(count)
            else:
                return False
        for n in shape[len(items) :]:
            ints += (0, n, 1)
            counts.append(n)
        self.ints = ints
        self.shape = self.final = tuple(counts)
        return True

    @classmethod
    def of(cls, items: Sequence[int | range]) -> Selection:
        """The selection of an item for each dimension, all inside the array."""
        s = object.__new__(cls)
        s.ints = [len(items)]
        for k in items:
            s.ints += (k.start, len(k), k.step) if isinstance(k, range) else (k, -1, 1)
        s.shape = s.final = tuple([len(r) for r in items if isinstance(r, range)])
        return s

    def halves(self) -> Iterator[tuple[Selection, tuple[slice, ...]]]:
        """The selection in two parts along its longest dimension, with where they go."""
        items = [at if n < 0 else range(at, at + n * step, step) for at, n, step in zip(*[iter(self.ints[1:])] * 3, strict=True)]
        axes = [i for i, k in enumerate(items) if isinstance(k, range)]
        axis = max(axes, key=lambda i: len(items[i]))
        whole = items[axis]
        assert isinstance(whole, range)
        middle = len(whole) // 2
        for part in (slice(0, middle), slice(middle, len(whole))):
            items[axis] = whole[part]
            yield Selection.of(items), tuple([part if i == axis else slice(None) for i in axes])


def _plain(key: Any, items: Sequence[Any], shape: tuple[int, ...]) -> tuple[list[int | slice], list[int]]:
    """Items as a slice or a number inside the shape for each dimension, and the places of new dimensions in the result."""
    dots = [i for i, k in enumerate(items) if k is Ellipsis]
    whole = len(shape) - sum(k is not None and k is not Ellipsis for k in items)
    if len(dots) > 1 or whole < 0:
        raise IndexError(f"{key!r} has too many items for an array of {len(shape)} dimensions")
    at = dots[0] if dots else len(items)
    out, new, axes = list[int | slice](), list[int](), 0
    for k in (*items[:at], *[slice(None)] * whole, *items[at + len(dots) :]):
        if k is None:
            new.append(axes)
            axes += 1
            continue
        if isinstance(k, slice):
            out.append(k)
            axes += 1
            continue
        try:
            if isinstance(k, bool | np.bool_):
                raise TypeError
            i = operator.index(k)
        except TypeError:
            raise InvalidError(f"{k!r}: the index of an array may have numbers, slices, ... and None here; a[...] takes lists and masks, too") from None
        n = shape[len(out)]
        if not -n <= i < n:
            raise IndexError(f"index {i} lies outside dimension {len(out)}, which has length {n}")
        out.append(i + n if i < 0 else i)
    return out, new
