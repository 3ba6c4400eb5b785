"""Selections by indexing, as the library takes them."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from ._errors import InvalidError


class Selection:
    """The selection of numpy's basic indexing in a shape."""

    __slots__ = ("final", "items", "shape")

    items: list[int | range]  # one for each dimension
    shape: tuple[int, ...]
    final: tuple[int, ...]  # the shape with new dimensions

    def __init__(self, key: Any, shape: tuple[int, ...]) -> None:
        items = list(key) if isinstance(key, tuple) else [key]
        if len(items) <= len(shape):  # most often; the same as below in less time
            simple: list[int | range] = []
            for k, n in zip(items, shape, strict=False):
                if type(k) is slice:
                    simple.append(range(*k.indices(n)))
                elif type(k) is int and 0 <= k < n:
                    simple.append(k)
                else:
                    break
            else:
                simple += map(range, shape[len(items) :])
                self.items = simple
                self.final = self.shape = _shape(simple)
                return
        dots = [i for i, k in enumerate(items) if k is Ellipsis]
        whole = len(shape) - sum(k is not None and k is not Ellipsis for k in items)
        if len(dots) > 1 or whole < 0:
            raise IndexError(f"{key!r} has too many items for an array of {len(shape)} dimensions")
        at = dots[0] if dots else len(items)
        items[at : at + len(dots)] = [slice(None)] * whole
        self.items, final = [], list[int]()
        for k in items:
            if k is None:
                final.append(1)
                continue
            n = shape[len(self.items)]
            if isinstance(k, slice):
                r = range(*k.indices(n))
                self.items.append(r)
                final.append(len(r))
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
        self.shape, self.final = _shape(self.items), tuple(final)

    @classmethod
    def of(cls, items: list[int | range]) -> Selection:
        """The selection of an item for each dimension, all inside the array."""
        s = object.__new__(cls)
        s.items = items
        s.shape = s.final = _shape(items)
        return s

    def ints(self) -> list[int]:
        """The selection as the library takes it."""
        out = [len(self.items)]
        for k in self.items:
            if type(k) is range:
                out += (k.start, len(k), k.step)
            else:
                out += (k, -1, 1)
        return out

    def halves(self) -> Iterator[tuple[Selection, tuple[slice, ...]]]:
        """The selection in two parts along its longest dimension, with where they go."""
        axes = [i for i, k in enumerate(self.items) if isinstance(k, range)]
        axis = max(axes, key=lambda i: len(self.items[i]))  # type: ignore[arg-type]
        whole = self.items[axis]
        assert isinstance(whole, range)
        middle = len(whole) // 2
        for part in (slice(0, middle), slice(middle, len(whole))):
            items = list(self.items)
            items[axis] = whole[part]
            yield Selection.of(items), tuple([part if i == axis else slice(None) for i in axes])


def _shape(items: list[int | range]) -> tuple[int, ...]:
    return tuple([len(r) for r in items if type(r) is range])
