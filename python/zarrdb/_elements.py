"""Elements of an array, which the library in this process decodes and encodes.

    selection ──▶ library: reads and decodes ──▶ memory of a numpy array
    numpy array ──▶ library: encodes ──▶ session
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Sequence
from ctypes import addressof, c_char
from typing import Any, TypeVar

import numpy as np

from . import _engine as e
from ._selection import Selection
from ._views import View

Numbers = np.ndarray[Any, Any]
T = TypeVar("T")


class Elements:
    """The elements of an array in a version or session. check gets the description of the array when it is opened
    in the library; it must not refer to the owner of the elements, or only the cycle collector would let the
    version go."""

    __slots__ = ("_cells", "_opened", "check", "dtype", "path", "view")

    def __init__(self, view: View, path: str, dtype: np.dtype[Any], check: Callable[[dict[str, Any]], None], opened: tuple[e.Handle, e.Opened] | None = None) -> None:
        self.view, self.path, self.dtype, self.check = view, path, dtype, check
        self._opened = opened  # the array, and the view in which it was opened
        self._cells: list[tuple[Numbers, Callable[..., bytes], int, int]] = []  # memory for one element, with its address and size

    def _call(self, op: int, ints: bytes = b"", text: bytes = b"", body: Any = None, address: int = 0, size: int = 0) -> bytes:
        return self.view._inside(lambda view: e.call(op, self._in(view)[1].number, ints, text, body, address, size))

    def _in(self, view: e.Handle) -> tuple[e.Handle, e.Opened]:
        opened = self._opened
        if opened is None or opened[0] is not view:
            opened = view, e.Opened(view, self.path)
            self.check(opened[1].info)
            self._opened = opened
        return opened

    def open(self) -> tuple[e.Handle, e.Opened]:
        """The array in the library, and the view in which it is open."""
        return self.view._inside(self._in)

    def element(self, at: tuple[int, ...]) -> Any:
        """The element at a place inside the array."""
        try:
            cell = self._cells.pop()
        except IndexError:
            value = np.empty((), self.dtype)
            cell = value, _packer(len(at) + 1), _address(value), self.dtype.itemsize
        value, pack, address, size = cell
        self._fill(pack(-len(at), *at), value, address, size)
        got = value[()]
        if self.dtype.kind != "V":  # else it is not a copy
            self._cells.append(cell)
        return got

    def _fill(self, ints: bytes, into: Numbers, address: int, size: int) -> None:
        """Read into memory in C order."""
        opened = self._opened
        if opened is None or not opened[0].number or not e.read(opened[1], ints, address, size):
            self._call(e.READ, ints, body=into, address=address, size=size)

    def read(self, sel: Selection, out: Numbers | None = None) -> Numbers:
        """The elements of a selection. With out they are written there."""
        into = out
        if out is None or out.dtype != self.dtype or not out.flags.writeable:
            into = np.empty(sel.shape, self.dtype)
        assert into is not None
        if size := into.nbytes:
            if out is None or into.flags.c_contiguous:
                self._fill(_packed(sel.ints), into, _address(into), size)
            else:
                low, high = _bounds(into)
                self._call(e.READ, _packed([*sel.ints, into.ctypes.data - low, *into.strides]), body=into, address=low, size=high - low)
        if out is not None and out is not into:
            out[...] = into
            return out
        return into

    def read_many(self, sels: Sequence[Selection]) -> list[Numbers]:
        """The elements of several selections. All share their memory."""
        shapes = [s.shape for s in sels]
        sizes = [math.prod(s) for s in shapes]
        values = np.empty(sum(sizes), self.dtype)
        if values.size and self.dtype.itemsize:
            ints = _packed([n for s, size in zip(sels, sizes, strict=True) if size for n in s.ints])
            self._call(e.READ_MANY, ints, body=values, address=values.ctypes.data, size=values.nbytes)
        out, at = [], 0
        for shape, n in zip(shapes, sizes, strict=True):
            out.append(values[at : at + n].reshape(shape))
            at += n
        return out

    def write(self, sel: Selection, values: Numbers) -> None:
        """Write elements."""
        session = self.view._writable()
        values = np.asarray(values, self.dtype)
        if values.size == 0:
            return
        low, high = _bounds(values)
        where = [values.ctypes.data - low, *values.strides]
        self._call(e.WRITE, _packed([*sel.ints, *where]), body=values, address=low, size=high - low)
        session._dirty += 1

    def read_variable(self, sel: Selection) -> bytes:
        """Elements of variable length: where they end, then their bytes."""
        return self._call(e.READ_VARIABLE, _packed(sel.ints))

    def write_variable(self, sel: Selection, body: bytes) -> None:
        """Write elements in that form."""
        session = self.view._writable()
        values = np.frombuffer(body, "u1")
        self._call(e.WRITE_VARIABLE, _packed(sel.ints), body=values, address=values.ctypes.data, size=len(body))
        session._dirty += 1

    def select(self, labels: str, nearest: bool = False) -> str:
        """A selection by labels of coordinates as one by numbers."""
        import json

        return str(json.loads(self._call(e.SELECT, _packed([nearest]), labels.encode())))


@functools.lru_cache(256)
def _packer(n: int) -> Callable[..., bytes]:
    """Packs n integers."""
    return struct.Struct(f"{n}q").pack


def _packed(ints: Sequence[int]) -> bytes:
    return _packer(len(ints))(*ints)


def _address(a: Numbers) -> int:
    """The address of the memory of an array in C order that can be written and is not empty."""
    memory: Any = a
    try:
        return addressof(c_char.from_buffer(memory))  # a.ctypes takes several times as long
    except ValueError:  # a type that the buffer protocol does not have
        return a.ctypes.data


def _bounds(a: Numbers) -> tuple[int, int]:
    """The addresses of the memory of an array that is not empty."""
    low = high = a.ctypes.data
    for n, step in zip(a.shape, a.strides, strict=True):
        low += min(0, (n - 1) * step)
        high += max(0, (n - 1) * step)
    return low, high + a.itemsize
