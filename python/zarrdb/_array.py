"""Arrays without zarr-python: the server decodes and encodes."""

from __future__ import annotations

import ast
import html
import math
import mmap
import operator
import os
from typing import Any

import numpy as np

from . import _wire as w
from ._errors import InvalidError, UnsupportedError
from ._views import Session, View

# Results that are longer come through memory that both processes map.
MAPPED = 256 << 10


class _Selection:
    """What numpy's basic indexing selects of a shape."""

    def __init__(self, key: Any, shape: tuple[int, ...]) -> None:
        items = list(key) if isinstance(key, tuple) else [key]
        dots = [i for i, k in enumerate(items) if k is Ellipsis]
        whole = len(shape) - sum(k is not None and k is not Ellipsis for k in items)
        if len(dots) > 1 or whole < 0:
            raise IndexError(f"{key!r} has too many items for an array of {len(shape)} dimensions")
        at = dots[0] if dots else len(items)
        items[at : at + len(dots)] = [slice(None)] * whole
        self.items: list[int | range] = []  # one for each dimension
        self.final: list[int] = []  # the shape with new dimensions
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
                raise InvalidError(f"{k!r}: an array is selected from by numbers, slices, ... and None; for others use zarr") from None
            if not -n <= i < n:
                raise IndexError(f"index {i} lies outside dimension {len(self.items)}, which has length {n}")
            self.items.append(i + n if i < 0 else i)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(r) for r in self.items if isinstance(r, range))

    def text(self) -> str:
        """The selection as on the command line."""
        return ",".join(_text(k) for k in self.items)

    def parts(self, most: int) -> list[tuple[_Selection, tuple[slice, ...]]]:
        """The selection in parts of at most so many elements, with where they go."""
        if math.prod(self.shape) <= most:
            return [(self, ())]
        axis = next(i for i, n in enumerate(self.shape) if n > 1)  # the first one, so that parts are runs
        dim = [i for i, k in enumerate(self.items) if isinstance(k, range)][axis]
        r = self.items[dim]
        assert isinstance(r, range)
        rest = math.prod(self.shape[axis + 1 :])
        step = max(1, most // rest)
        out = []
        for lo in range(0, len(r), step):
            part = object.__new__(_Selection)
            part.items = self.items[:dim] + [r[lo : lo + step]] + self.items[dim + 1 :]
            part.final = []
            where = (slice(None),) * axis + (slice(lo, lo + step),)
            for inner, within in part.parts(most):
                out.append((inner, _within(where, within, len(self.shape))))
        return out


def _within(outer: tuple[slice, ...], inner: tuple[slice, ...], ndim: int) -> tuple[slice, ...]:
    """A part of a part; they are cut along different dimensions or not at all."""
    pad = (slice(None),) * ndim
    a, b = (outer + pad)[:ndim], (inner + pad)[:ndim]
    return tuple(y if x == slice(None) else x for x, y in zip(a, b, strict=True))


def _text(k: int | range) -> str:
    if isinstance(k, int):
        return str(k)
    if len(k) == 0:
        return "0:0"
    stop = k[-1] + (1 if k.step > 0 else -1)
    return f"{k[0]}:{stop if stop >= 0 else ''}:{k.step}"


class Array:
    """An array of a version or session. Indexing reads, and in a session writes.

    It pickles with its version or session. The shape is that of the moment when it was
    opened, or when `refresh` was called.
    """

    def __init__(self, view: View, path: str) -> None:
        self.view, self.path = view, path.strip("/")
        self.refresh()

    def refresh(self) -> None:
        """Read shape and attributes again."""
        o = self.view._again(lambda l, h: l.ask(w.ARRAY, {"view": h, "path": self.path}))
        self.shape: tuple[int, ...] = tuple(o.get("shape") or ())
        self.chunks: tuple[int, ...] | None = tuple(o["chunks"]) if o.get("chunks") else None if self.shape else ()
        self.dims: tuple[str | None, ...] = tuple(n or None for n in o.get("dimensions") or [""] * len(self.shape))
        self.attrs: dict[str, Any] = o.get("attributes") or {}
        self.format: int = o["format"]
        self.type: str = o["type"]
        self._dtype: np.dtype[Any] | None = np.dtype(ast.literal_eval(o["numpy"])) if o.get("numpy") and o.get("item_size") else None

    @property
    def dtype(self) -> np.dtype[Any]:
        if self._dtype is None:
            raise UnsupportedError(f"/{self.path}: numpy has no form of fixed size for the type {self.type}; open it with zarr")
        return self._dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __reduce__(self) -> Any:
        return Array, (self.view, self.path)

    def __repr__(self) -> str:
        dims = ", ".join(f"{d}: {n}" if d else str(n) for d, n in zip(self.dims, self.shape, strict=True))
        return f"<Array /{self.path} ({dims}) {self._dtype or self.type}, chunks {self.chunks}>"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{html.escape(str(k))}</td><td>{html.escape(str(v))}</td></tr>" for k, v in self.attrs.items())
        return f"<div><code>{html.escape(repr(self))}</code><table>{rows}</table></div>"

    # --- elements

    def __getitem__(self, key: Any) -> Any:
        sel = _Selection(key, self.shape)
        got = self._read(sel).reshape(sel.final)
        return got if sel.final else got[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("an array of a database cannot be used without a copy")
        got = self._read(_Selection(Ellipsis, self.shape))
        return got if dtype is None else got.astype(dtype, copy=False)

    def read(self, sel: Any = Ellipsis, out: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
        """Read a selection, into `out` if it is given."""
        s = _Selection(sel, self.shape)
        if out is None:
            return self._read(s).reshape(s.final)
        if out.shape != tuple(s.final):
            raise InvalidError(f"/{self.path}: the selection has shape {tuple(s.final)}, out has {out.shape}")
        out[...] = self._read(s).reshape(s.final)
        return out

    def _most(self) -> int:
        """How many elements go with one request."""
        link, _ = self.view._at()
        return max(1, link.max_body // max(1, self.dtype.itemsize))

    def _read(self, sel: _Selection) -> np.ndarray[Any, Any]:
        most = self._most()
        if math.prod(sel.shape) <= most:
            return self._read_part(sel)
        out = np.empty(sel.shape, self.dtype)
        for part, where in sel.parts(most):
            out[where] = self._read_part(part).reshape(out[where].shape)
        return out

    def _read_part(self, sel: _Selection) -> np.ndarray[Any, Any]:
        n = math.prod(sel.shape) * self.dtype.itemsize
        ask = {"path": self.path, "select": sel.text()}
        body: Any
        if n >= MAPPED and hasattr(os, "memfd_create"):
            fd = os.memfd_create("zarrdb", os.MFD_CLOEXEC)
            try:
                self.view._again(lambda l, h: l.ask(w.READ, {"view": h, **ask}, fds=(fd,)))
                body = mmap.mmap(fd, n)  # it lives as long as the result
            finally:
                os.close(fd)
        else:
            body = self.view._again(lambda l, h: l.call(w.READ, w.to_json({"view": h, **ask}))).body or bytearray()
        return np.frombuffer(body, self.dtype).reshape(sel.shape)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.write(key, value)

    def write(self, sel: Any, value: Any) -> None:
        """Write a selection in a session. Elements of the same chunks that others write at the
        same time stay."""
        session = self.view
        if not isinstance(session, Session):
            raise InvalidError(f"{session!r} is a version and cannot be written; begin a session with repo.writable_session()")
        s = _Selection(sel, self.shape)
        values = np.broadcast_to(np.asarray(value, self.dtype), s.final).reshape(s.shape)
        if values.size == 0:
            return
        for part, where in s.parts(self._most()):
            body = np.ascontiguousarray(values[where]).reshape(-1).view("u1").data
            ask = {"path": self.path, "select": part.text()}
            session._again(lambda l, h: l.call(w.WRITE, w.to_json({"view": h, **ask}), body))  # noqa: B023
            session._dirty += 1
