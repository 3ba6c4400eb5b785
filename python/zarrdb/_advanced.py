"""Indexing by lists and masks. Elements are read as one box of each chunk that has some of them, and written in runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ._errors import InvalidError
from ._fit import cast

Numbers = np.ndarray[Any, Any]
Array: TypeAlias = Any  # that of _array
Items: TypeAlias = list[Any]  # of an index: a number, a slice or an array of numbers for each dimension

# A box of more elements is read in parts.
BOX = 1 << 22


class Index:
    """An array to be indexed as `Array.oindex` or `Array.vindex`."""

    def __init__(self, array: Array, outer: bool) -> None:
        self._array, self._outer = array, outer

    def __getitem__(self, key: Any) -> Any:
        if self._outer:
            return _outer(self._array, _outer_items(self._array, key))[()]
        return take(self._array, key, True)

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._outer:
            a, items = self._array, _outer_items(self._array, key)
            _write_outer(a, items, np.broadcast_to(_cast(a, value), _rest(items, a.shape)))
        else:
            put(self._array, key, value, True)


def take(a: Array, key: Any, first: bool = False) -> Any:
    """The elements that numpy selects by a key with lists or masks. With `first` their dimensions come first in any case."""
    items, shape, front, rest = _points(a, key, first)
    plain, dims, coords = _apart(items)
    got = _gather(plain, dims, coords, a, lambda key: a.read(tuple(key))).reshape(shape + rest)
    return np.moveaxis(got, range(len(shape)), range(front, front + len(shape)))[()]


def put(a: Array, key: Any, value: Any, first: bool = False) -> None:
    """Write these elements."""
    items, shape, front, rest = _points(a, key, first)
    plain, dims, coords = _apart(items)
    values = np.broadcast_to(_cast(a, value), rest[:front] + shape + rest[front:])
    values = np.moveaxis(values, range(front, front + len(shape)), range(len(shape)))
    _scatter(plain, dims, coords, values.reshape(math.prod(shape), *_rest(plain, a.shape)), a.write)


def _cast(a: Array, value: Any) -> Numbers:
    return cast(value, a.dtype, f"/{a.path}: nothing was written")


def _items(a: Array, key: Any) -> Items:
    """A key with an item for each dimension, and None for new ones. Masks are the numbers of what they select."""
    given: Items = [k if k is None or k is Ellipsis or isinstance(k, slice) else np.asarray(k) for k in (key if isinstance(key, tuple) else (key,))]
    spans = [0 if k is None or k is Ellipsis else k.ndim if isinstance(k, np.ndarray) and k.dtype == bool else 1 for k in given]
    whole, dots = len(a.shape) - sum(spans), [i for i, k in enumerate(given) if k is Ellipsis]
    if whole < 0 or len(dots) > 1:
        raise IndexError(f"{key!r} has too many items for an array of {len(a.shape)} dimensions")
    at = dots[0] if dots else len(given)
    items: Items = []
    for k in (*given[:at], *[slice(None)] * whole, *given[at + 1 :]):
        dim = sum(i is not None for i in items)
        if k is None or isinstance(k, slice):
            items.append(k)
        elif k.dtype == bool and k.ndim:
            if k.shape != a.shape[dim : dim + k.ndim]:
                raise IndexError(f"a mask of shape {k.shape} does not fit dimensions {dim} and on, which have {a.shape[dim : dim + k.ndim]}")
            items += k.nonzero()
        else:
            items.append(_inside(k, dim, a.shape[dim]))
    return items


def _inside(k: Numbers, dim: int, n: int) -> Any:
    """Numbers from the start of a dimension."""
    if k.dtype.kind not in "iu" and k.size:
        raise InvalidError(f"{k!r}: the index of an array may have numbers, slices, ..., None, and lists and masks")
    k = k.astype("i8")
    if (wrong := (k < -n) | (k >= n)).any():
        raise IndexError(f"index {k[wrong][0]} lies outside dimension {dim}, which has length {n}")
    k = np.where(k < 0, k + n, k)
    return k if k.ndim else int(k)


def _points(a: Array, key: Any, first: bool) -> tuple[Items, tuple[int, ...], int, tuple[int, ...]]:
    """The items of the dimensions, the shape of their lists, where it stands in the result, and the shape of the rest."""
    items = _items(a, key)
    lists = [i for i, k in enumerate(items) if isinstance(k, int | np.ndarray)]
    shape = np.broadcast_shapes(*[k.shape for k in items if isinstance(k, np.ndarray)])
    together = not first and bool(lists) and lists[-1] - lists[0] == len(lists) - 1
    dims = [k for k in items if k is not None]
    lengths, lone = iter(_rest([k for k in dims if isinstance(k, slice)], [n for k, n in zip(dims, a.shape, strict=True) if isinstance(k, slice)])), []
    for k in items:
        if k is None or isinstance(k, slice):
            lone.append(1 if k is None else next(lengths))
    front = sum(k is None or isinstance(k, slice) for k in items[: lists[0]]) if together else 0
    return [np.broadcast_to(k, shape).reshape(math.prod(shape)) if isinstance(k, np.ndarray) else k for k in dims], shape, front, tuple(lone)


def _apart(items: Items) -> tuple[Items, list[int], list[Numbers]]:
    """The items, in which lists are None, where the lists stand, and the lists."""
    dims = [i for i, k in enumerate(items) if isinstance(k, np.ndarray)]
    return [None if i in dims else k for i, k in enumerate(items)], dims, [items[i] for i in dims]


def _rest(items: Items, shape: Sequence[int]) -> tuple[int, ...]:
    """The shape that slices and lists select."""
    both = [(k, n) for k, n in zip(items, shape, strict=True) if isinstance(k, slice | np.ndarray)]
    return tuple([len(range(*k.indices(n))) if isinstance(k, slice) else len(k) for k, n in both])


def _outer_items(a: Array, key: Any) -> Items:
    for k in key if isinstance(key, tuple) else (key,):
        if k is None or not isinstance(k, slice) and k is not Ellipsis and np.ndim(k) > 1:
            raise InvalidError(f"{k!r}: oindex takes a number, a slice, a list or a mask for each dimension")
    return _items(a, key)


def _outer(a: Array, items: Items) -> Numbers:
    dim = next((i for i, k in enumerate(items) if isinstance(k, np.ndarray)), None)
    if dim is None:
        return np.asarray(a.read(tuple(items)))
    plain = [*items[:dim], None, *items[dim + 1 :]]
    got = _gather(plain, [dim], [items[dim]], a, lambda key: _outer(a, key))
    return np.moveaxis(got, 0, sum(not isinstance(k, int) for k in items[:dim]))


def _write_outer(a: Array, items: Items, values: Numbers) -> None:
    dim = next((i for i, k in enumerate(items) if isinstance(k, np.ndarray)), None)
    if dim is None:
        a.write(tuple(items), values)
        return
    plain = [*items[:dim], None, *items[dim + 1 :]]
    values = np.moveaxis(values, sum(not isinstance(k, int) for k in items[:dim]), 0)
    _scatter(plain, [dim], [items[dim]], values, lambda key, v: _write_outer(a, list(key), v))


def _gather(items: Items, dims: list[int], coords: list[Numbers], a: Array, read: Callable[[Items], Any]) -> Numbers:
    """The elements at coordinates in some dimensions: an array of which the first dimension is that of the coordinates."""
    if not dims:
        return np.asarray(read(items))
    rest, at = _rest(items, a.shape), np.array(coords)
    out = np.empty((at.shape[1], *rest), a.dtype)
    lengths = np.array([(a.chunks or a.shape)[d] for d in dims])[:, None]
    chunks = at // np.maximum(lengths, 1)
    order = np.lexsort((*at[::-1], *chunks[::-1]))
    todo = np.split(order, (np.diff(chunks[:, order]) != 0).any(0).nonzero()[0] + 1)
    while todo:
        where = todo.pop()
        if not where.size:
            continue
        low, high = at[:, where].min(1), at[:, where].max(1)
        if where.size > 1 and math.prod(high - low + 1) * math.prod(rest) > BOX and (low != high).any():
            todo += np.split(where, 2) if where.size % 2 == 0 else [where[:1], where[1:]]
            continue
        key = list(items)
        for d, lo, hi in zip(dims, low.tolist(), high.tolist(), strict=True):
            key[d] = slice(lo, hi + 1)
        axes = [sum(not isinstance(k, int) for k in key[:d]) for d in dims]
        out[where] = np.moveaxis(read(key), axes, range(len(axes)))[tuple(at[:, where] - low[:, None])]
    return out


def _scatter(items: Items, dims: list[int], coords: list[Numbers], values: Numbers, write: Callable[[Any, Numbers], None]) -> None:
    """Write values at coordinates. Those that follow each other in the last of these dimensions are written at once."""
    if not dims:
        write(tuple(items), values[0])
        return
    at = np.array(coords)
    step = np.zeros((len(dims), 1), int)
    step[-1] = 1
    ends = [0, *((np.diff(at) != step).any(0).nonzero()[0] + 1).tolist(), at.shape[1]]
    for lo, hi in zip(ends, ends[1:], strict=False):
        if lo == hi:
            continue
        key = list(items)
        for d, i in zip(dims, at[:, lo].tolist(), strict=True):
            key[d] = i
        key[dims[-1]] = slice(key[dims[-1]], key[dims[-1]] + hi - lo)
        write(tuple(key), np.moveaxis(values[lo:hi], 0, sum(not isinstance(k, int) for k in key[: dims[-1]])))
