"""Arrays without zarr-python: the server decodes and encodes."""

from __future__ import annotations

import ast
import json
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _wire as w
from ._errors import InvalidError
from ._memory import AVAILABLE, Block
from ._views import Session, View

# Results that are longer come through memory that both processes map.
MAPPED = 256 << 10

# Names of metadata documents.
DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")

Numbers = np.ndarray[Any, Any]


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

    @classmethod
    def of(cls, items: list[int | range]) -> _Selection:
        """The selection of an item for each dimension, all inside the array."""
        s = object.__new__(cls)
        s.items, s.final = items, [len(r) for r in items if isinstance(r, range)]
        return s

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
            part = _Selection.of(self.items[:dim] + [r[lo : lo + step]] + self.items[dim + 1 :])
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


def variable(body: Any, n: int, kind: str, parts: np.dtype[Any] | None) -> Numbers:
    """n elements of variable length from the layout of the server: n + 1 offsets, then bytes."""
    ends = np.frombuffer(body, "<u4", n + 1).tolist()
    data = bytes(memoryview(body)[4 * (n + 1) :])
    pieces = [data[a:b] for a, b in zip(ends, ends[1:], strict=False)]
    if kind == "string":
        return np.array([p.decode() for p in pieces], text_type())
    out = np.empty(n, object)
    if parts is not None:
        out[:] = [np.frombuffer(p, parts).copy() for p in pieces]
    elif kind == "json":
        out[:] = [json.loads(p) for p in pieces]
    else:
        out[:] = pieces
    return out


def packed(values: Numbers, kind: str, parts: np.dtype[Any] | None) -> bytes:
    """The layout of the server for elements of variable length."""
    as_bytes: Callable[[Any], bytes]
    if kind == "string":
        as_bytes = lambda v: str(v).encode()
    elif parts is not None:
        as_bytes = lambda v: np.asarray(v, parts).tobytes()
    elif kind == "json":
        as_bytes = lambda v: json.dumps(v).encode()
    else:
        as_bytes = bytes
    pieces = [as_bytes(v) for v in values.reshape(-1)]
    ends = np.zeros(len(pieces) + 1, "<u4")
    np.cumsum([len(p) for p in pieces], out=ends[1:])
    return ends.tobytes() + b"".join(pieces)


def text_type() -> Any:
    """numpy's type for text of variable length, objects before numpy 2."""
    strings = getattr(np.dtypes, "StringDType", None)
    return strings() if strings else np.dtype(object)


def element_type(numpy: str) -> np.dtype[Any]:
    """The type that the server names."""
    named: np.dtype[Any] = np.dtype(ast.literal_eval(numpy))
    return named


def _ask(view: View, op: int, ask: dict[str, Any], n: int, check: Callable[[dict[str, Any]], None]) -> Any:
    """The n bytes that a request for elements of a fixed size gives. check gets what the server says of them."""

    def through_socket(link: w.Link, handle: int) -> Any:
        frame = link.call(op, w.to_json({"view": handle, **ask}))
        check(json.loads(frame.meta))
        return frame.body or bytearray()

    def through_memory(link: w.Link, handle: int) -> Any:
        block = Block(n)
        try:
            check(link.ask(op, {"view": handle, **ask}, fds=(block.fd,)))
        except BaseException:
            block.abandon()
            raise
        return block.map()

    return view._again(through_memory if AVAILABLE and n >= MAPPED else through_socket)


def _other_shape(path: str, want: Any, got: Any) -> InvalidError:
    return InvalidError(f"/{path} has another shape by now: the selection is {got}, not {want}; refresh or open it again", "selection")


def read_part(view: View, path: str, sel: _Selection, dtype: np.dtype[Any], check: Callable[[dict[str, Any]], None]) -> Numbers:
    """One request for the elements of a selection, which have a fixed size."""
    shape = sel.shape

    def same(o: dict[str, Any]) -> None:
        check(o)
        if tuple(o.get("shape") or ()) != shape:
            raise _other_shape(path, shape, o.get("shape"))

    n = math.prod(shape)
    body = _ask(view, w.READ, {"path": path, "select": sel.text()}, n * dtype.itemsize, same)
    return np.frombuffer(body, dtype, n).reshape(shape) if n else np.empty(shape, dtype)


def read_parts(view: View, path: str, sels: Sequence[_Selection], dtype: np.dtype[Any], check: Callable[[dict[str, Any]], None]) -> list[Numbers]:
    """One request for the elements of several selections. All share their memory."""
    shapes = [s.shape for s in sels]
    sizes = [math.prod(s) for s in shapes]

    def same(o: dict[str, Any]) -> None:
        check(o)
        if [tuple(s or ()) for s in o["shapes"]] != shapes:
            raise _other_shape(path, shapes, o["shapes"])

    total = sum(sizes)
    if not total:
        return [np.empty(s, dtype) for s in shapes]
    body = _ask(view, w.READ_MANY, {"path": path, "selects": [s.text() for s in sels]}, total * dtype.itemsize, same)
    values, out, at = np.frombuffer(body, dtype, total), [], 0
    for shape, n in zip(shapes, sizes, strict=True):
        out.append(values[at : at + n].reshape(shape))
        at += n
    return out


def write_part(session: Session, path: str, sel: _Selection, body: Any) -> None:
    """One request that writes the elements of a selection."""
    session._again(lambda l, h: l.call(w.WRITE, w.to_json({"view": h, "path": path, "select": sel.text()}), body))
    session._dirty += 1


def write_elements(session: Session, path: str, sel: _Selection, values: Numbers) -> None:
    """Write elements of a fixed size, little-endian, in as many requests as are needed."""
    link, _ = session._at()
    for part, where in sel.parts(max(1, link.max_body // max(1, values.dtype.itemsize))):
        write_part(session, path, part, np.ascontiguousarray(values[where]).reshape(-1).view("u1").data)


class Array:
    """An array of a version or session. Indexing reads, and in a session writes.

    It pickles with its version or session. The shape is that of the moment when it was
    opened, or when `refresh` was called. numpy, and what takes DLPack, read all of it:
    `np.asarray(a)`, `torch.from_dlpack(a)`.
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
        self._parts: np.dtype[Any] | None = None  # of elements of variable length
        self._fixed: np.dtype[Any] | None = None
        named = element_type(o["numpy"]) if o.get("numpy") else None
        if o.get("item_size"):
            self._fixed = named
        else:
            self._parts = named

    @property
    def dtype(self) -> np.dtype[Any]:
        """numpy's type of the elements. Text is `StringDType`; other elements of variable length are objects."""
        if self._fixed is not None:
            return self._fixed
        return np.dtype(text_type() if self.type == "string" else object)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes; those of variable length count as pointers."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __reduce__(self) -> Any:
        return Array, (self.view, self.path)

    def __dask_tokenize__(self) -> Any:
        return "zarrdb.Array", self.view.__dask_tokenize__(), self.path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Array) and (self.view, self.path) == (other.view, other.path)

    def __hash__(self) -> int:
        return hash((self.view, self.path))

    def __repr__(self) -> str:
        dims = ", ".join(f"{d}: {n}" if d else str(n) for d, n in zip(self.dims, self.shape, strict=True))
        return f"<Array /{self.path} ({dims}) {self._fixed or self.type}, chunks {self.chunks}>"

    def _repr_html_(self) -> str:
        import html

        rows = "".join(f"<tr><td>{html.escape(str(k))}</td><td>{html.escape(str(v))}</td></tr>" for k, v in self.attrs.items())
        return f"<div><code>{html.escape(repr(self))}</code><table>{rows}</table></div>"

    # --- elements

    def __getitem__(self, key: Any) -> Any:
        sel = _Selection(key, self.shape)
        got = self._read(sel).reshape(sel.final)
        return got if sel.final else got[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        if copy is False:
            raise ValueError("an array of a database cannot be used without a copy")
        got = self._read(_Selection(Ellipsis, self.shape))
        return got if dtype is None else got.astype(dtype, copy=False)

    def __dlpack__(self, **options: Any) -> Any:
        return self.__array__().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the memory of the processor

    def __buffer__(self, flags: int) -> memoryview:
        values: Any = self.__array__()
        return memoryview(values)

    def read(self, sel: Any = Ellipsis, out: Numbers | None = None) -> Numbers:
        """Read a selection, into `out` if it is given."""
        s = _Selection(sel, self.shape)
        if out is None:
            return self._read(s).reshape(s.final)
        if out.shape != tuple(s.final):
            raise InvalidError(f"/{self.path}: the selection has shape {tuple(s.final)}, out has {out.shape}")
        out[...] = self._read(s).reshape(s.final)
        return out

    def read_many(self, sels: Sequence[Any], out: Numbers | None = None) -> Numbers:
        """Read selections of the same shape with one request: an array with one more
        dimension, the first one, for the selections."""
        found = [_Selection(sel, self.shape) for sel in sels]
        final = tuple(found[0].final) if found else ()
        for s in found:
            if tuple(s.final) != final:
                raise InvalidError(f"/{self.path}: selections of shapes {final} and {tuple(s.final)} do not go into one array; read them one by one")
        shape = (len(found), *final)
        if out is not None and out.shape != shape:
            raise InvalidError(f"/{self.path}: the selections have shape {shape}, out has {out.shape}")
        got = self._read_many(found, shape)
        if out is None:
            return got
        out[...] = got
        return out

    def _read_many(self, sels: list[_Selection], shape: tuple[int, ...]) -> Numbers:
        if self._fixed is None:
            one = [self._read(s) for s in sels]
            return np.stack(one).reshape(shape) if one else np.empty(shape, self.dtype)
        each = math.prod(shape[1:])
        n = max(1, self._most() // max(1, each))
        if len(sels) > n:
            out = np.empty(shape, self.dtype)
            for i in range(0, len(sels), n):
                out[i : i + n] = self._read_many(sels[i : i + n], out[i : i + n].shape)
            return out
        if each > self._most() or not sels:
            return np.stack([self._read(s) for s in sels]).reshape(shape) if sels else np.empty(shape, self.dtype)
        parts = read_parts(self.view, self.path, sels, self.dtype, self._same)
        base = parts[0].base
        return np.asarray(base).reshape(shape) if base is not None and base.shape == (math.prod(shape),) else np.stack(parts).reshape(shape)

    def indices(self, **labels: Any) -> tuple[int | slice, ...]:
        """What labels of coordinates select, as the key for `a[...]`: one value, or a slice
        of them, for dimensions by name. Both ends of a slice are selected. A part of a time
        is all that begins so: time="2020-02"."""
        items = []
        for name, value in labels.items():
            if isinstance(value, slice):
                if value.step is not None:
                    raise InvalidError(f"{name}: a range of labels has no step here")
                items.append(f"{name}={_label(value.start)}:{_label(value.stop)}")
            else:
                items.append(f"{name}={_label(value)}")
        out = self.view._again(lambda l, h: l.ask(w.SELECT, {"view": h, "path": self.path, "select": ",".join(items)}))
        return _numbers(out["select"], len(self.shape))

    def sel(self, **labels: Any) -> Any:
        """The elements that labels of coordinates select: `a.sel(time="2020-02", lat=slice(50, 45))`. See `indices`."""
        return self[self.indices(**labels)]

    def _most(self) -> int:
        """How many elements go with one request."""
        link, _ = self.view._at()
        if link.takes_memory and AVAILABLE:
            return 1 << 62
        return max(1, link.max_body // max(1, self.dtype.itemsize))

    def _read(self, sel: _Selection) -> Numbers:
        if self._fixed is None:
            return self._read_variable(sel)
        most = self._most()
        if math.prod(sel.shape) <= most:
            return self._read_part(sel)
        out = np.empty(sel.shape, self._fixed)
        for part, where in sel.parts(most):
            out[where] = self._read_part(part).reshape(out[where].shape)
        return out

    def _read_part(self, sel: _Selection) -> Numbers:
        assert self._fixed is not None
        return read_part(self.view, self.path, sel, self._fixed, self._same)

    def _same(self, o: dict[str, Any]) -> None:
        """Compare with what the server says of the elements: in a session the array may be another by now."""
        if o["item_size"] != self.dtype.itemsize or (o.get("numpy") and element_type(o["numpy"]) != self._fixed):
            raise InvalidError(f"/{self.path} has another type by now, {o.get('numpy')}; open it again")

    def _read_variable(self, sel: _Selection) -> Numbers:
        n = math.prod(sel.shape)
        ask = {"path": self.path, "select": sel.text()}
        try:
            body = self.view._again(lambda l, h: l.call(w.READ, w.to_json({"view": h, **ask}))).body
        except InvalidError as e:
            if e.code not in ("too_large", "zarr_too_large") or n <= 1:
                raise
            out = np.empty(sel.shape, self.dtype)
            for part, where in sel.parts(-(-n // 2)):
                out[where] = self._read_variable(part).reshape(out[where].shape)
            return out
        return variable(body, n, self.type, self._parts).reshape(sel.shape)

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
        if self._fixed is not None:
            write_elements(session, self.path, s, values)
        else:
            self._write_variable(session, s, values)
        below = self.path + "/" if self.path else ""
        for key in [k for k in session._seen if k.startswith(below) and not k.endswith(DOCUMENTS)]:
            session._seen.pop(key, None)  # it is another value by now

    def _write_variable(self, session: Session, sel: _Selection, values: Numbers) -> None:
        body = packed(values, self.type, self._parts)
        link, _ = session._at()
        if len(body) <= link.max_body or values.size <= 1:
            return write_part(session, self.path, sel, body)
        for part, where in sel.parts(-(-values.size // 2)):
            self._write_variable(session, part, values[where].reshape(part.shape))


def _label(v: Any) -> str:
    """A label as a selection has it."""
    if v is None:
        return ""
    text = v.isoformat() if hasattr(v, "isoformat") else str(v)
    if "'" not in text:
        return f"'{text}'"
    if '"' not in text:
        return f'"{text}"'
    raise InvalidError(f"{text}: a label with quotes of both kinds cannot be selected")


def _numbers(text: str, ndim: int) -> tuple[int | slice, ...]:
    """A selection by numbers as Python has it."""
    out: list[int | slice] = []
    for item in text.split(",") if text else []:
        parts = item.strip().split(":")
        out.append(int(parts[0]) if len(parts) == 1 else slice(*(int(p) if p else None for p in parts)))
    return tuple(out) + (slice(None),) * (ndim - len(out))
