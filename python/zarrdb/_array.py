"""Arrays without zarr-python: the library in this process decodes and encodes."""

from __future__ import annotations

import ast
import datetime
import functools
import json
import math
import operator
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _advanced, _engine
from ._client import exit_error
from ._elements import Elements
from ._errors import InvalidError, NotFoundError, ZarrdbError
from ._fit import cast
from ._selection import Selection
from ._views import View, WritableView

# Names of metadata documents.
DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")

Numbers = np.ndarray[Any, Any]
# Elements of variable length of more bytes are written in parts.
LONG = 256 << 20


def variable(body: Any, n: int, kind: str, parts: np.dtype[Any] | None) -> Numbers:
    """n elements of variable length from the layout of the library: n + 1 offsets, then bytes."""
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
    """The layout of the library for elements of variable length."""
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
    ends = np.zeros(len(pieces) + 1, "<u8")
    np.cumsum([len(p) for p in pieces], out=ends[1:])
    return ends.astype("<u4").tobytes() + b"".join(pieces)  # longer ones are written in parts


def text_type() -> Any:
    """numpy's type for text of variable length, objects before numpy 2."""
    strings = getattr(np.dtypes, "StringDType", None)
    return strings() if strings else np.dtype(object)


@functools.lru_cache
def element_type(numpy: str) -> np.dtype[Any]:
    """The type that the library names."""
    named: np.dtype[Any] = np.dtype(ast.literal_eval(numpy))
    return named


def _same(path: str, size: int, numpy: str | None) -> Callable[[dict[str, Any]], None]:
    """A check of the description of an array that is opened again: in a session it may have been replaced."""

    def check(o: dict[str, Any]) -> None:
        if (o["item_size"], o.get("numpy")) != (size, numpy):
            raise InvalidError(f"/{path} has another type by now, {o.get('numpy')}; open it again")

    return check


@functools.cache
def _memory() -> int:
    """The bytes of memory of this machine, or of the address space where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return sys.maxsize


class Array:
    """An array of a version or session. Indexing reads, and in a session writes.

    It pickles with its version or session. The shape is as of opening, or of the last `refresh`, also after
    pickling. numpy, and libraries that take DLPack, read the whole array: `np.asarray(a)`,
    `torch.from_dlpack(a)`.

    >>> a = repo.at("main").array("t2m")
    >>> a
    <Array /t2m (time: 4, x: 6) float32, chunks (1, 6)>
    >>> float(a[1, 2]), a[:, :2].shape
    (280.0, (4, 2))
    """

    def __init__(self, view: View, path: str) -> None:
        self.view, self.path = view, path.strip("/")
        self.refresh()

    def refresh(self) -> None:
        """Read shape and attributes again."""
        view, opened = self.view._inside(lambda v: (v, _engine.Opened(v, self.path)))
        self._describe(opened.info, (view, opened))

    def _describe(self, o: dict[str, Any], opened: tuple[_engine.Handle, _engine.Opened] | None = None) -> None:
        """Set the description of the array."""
        self._info = o
        self.shape: tuple[int, ...] = tuple(o.get("shape") or ())
        self.chunks: tuple[int, ...] | None = tuple(o["chunks"]) if o.get("chunks") else None if self.shape else ()
        self.dims: tuple[str | None, ...] = tuple(n or None for n in o.get("dimensions") or [""] * len(self.shape))
        self.attrs: dict[str, Any] = o.get("attributes") or {}
        self.format: int = o["format"]
        self.type: str = o["type"]
        self._parts: np.dtype[Any] | None = None  # of elements of variable length
        named = element_type(o["numpy"]) if o.get("numpy") else None
        self._fixed = bool(o.get("item_size"))
        check = _same(self.path, o["item_size"], o.get("numpy"))
        dtype = named if self._fixed else np.dtype(text_type() if self.type == "string" else object)
        assert dtype is not None
        self._elements = Elements(self.view, self.path, dtype, check, opened)
        if not self._fixed:
            self._parts = named

    @property
    def dtype(self) -> np.dtype[Any]:
        """numpy's type of the elements. Text is `StringDType`; other elements of variable length are objects."""
        return self._elements.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes; elements of variable length count as pointers."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __reduce__(self) -> Any:
        return _unpickled, (self.view, self.path, self._info)

    def __dask_tokenize__(self) -> Any:
        return "zarrdb.Array", self.view.__dask_tokenize__(), self.path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Array) and (self.view, self.path) == (other.view, other.path)

    def __hash__(self) -> int:
        return hash((self.view, self.path))

    def __repr__(self) -> str:
        dims = ", ".join(f"{d}: {n}" if d else str(n) for d, n in zip(self.dims, self.shape, strict=True))
        return f"<Array /{self.path} ({dims}) {self.dtype if self._fixed else self.type}, chunks {self.chunks}>"

    def _repr_html_(self) -> str:
        from . import _html as h

        rows = [[h.text(str(k)), h.text(str(v))] for k, v in self.attrs.items()]
        return f"<div>{h.code(repr(self))}{h.table(rows)}{h.picture(self.view._client, *self.view._target(self.path))}</div>"

    # --- elements

    def __getitem__(self, key: Any) -> Any:
        if type(key) is tuple and len(key) == len(self.shape) and self._fixed:
            for k, n in zip(key, self.shape):  # noqa: B905 - in less time
                if type(k) is not int or not 0 <= k < n:
                    break
            else:
                return self._elements.element(key)
        try:
            sel = Selection(key, self.shape)
        except InvalidError:
            return _advanced.take(self, key)
        got = self._read(sel)
        return got.reshape(sel.final) if sel.final else got[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        if copy is False:
            raise ValueError("an array of a database cannot be used without a copy")
        got = self._read(Selection(Ellipsis, self.shape))
        return got if dtype is None else got.astype(dtype, copy=False)

    def __dlpack__(self, **options: Any) -> Any:
        return self.__array__().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the memory of the processor

    def __buffer__(self, flags: int) -> memoryview:
        values: Any = self.__array__()
        return memoryview(values)

    def read(self, sel: Any = Ellipsis, out: Any = None) -> Any:
        """Read a selection, into `out` if it is given: an array of numpy, or of another library that lends its memory to numpy, such
        as a tensor of PyTorch in pinned memory. After Ctrl-C elements may still be put there for a moment.

        >>> out = np.empty((2, 6), "f4")
        >>> repo.at("main").array("t2m").read(np.s_[:2], out=out) is out
        True
        """
        try:
            s = Selection(sel, self.shape)
        except InvalidError:
            got = _advanced.take(self, sel)
            if out is None:
                return got
            out[...] = got
            return out
        if out is None:
            return self._read(s).reshape(s.final)
        into = out if isinstance(out, np.ndarray) else np.asarray(out)
        if into is not out and into.size and not np.may_share_memory(into, np.asarray(out)):
            raise InvalidError(f"/{self.path}: numpy cannot write to the memory of out, {type(out).__name__}")
        if into.shape != s.final:
            raise InvalidError(f"/{self.path}: the selection has shape {s.final}, out has {into.shape}")
        if not self._fixed or into.shape != s.shape:
            into[...] = self._read(s).reshape(s.final)
        else:
            self._elements.read(s, into)
        return out

    def read_many(self, sels: Sequence[Any], out: Numbers | None = None) -> Numbers:
        """Read selections of the same shape, many with one request: an array with one more
        dimension, the first one, for the selections.

        >>> repo.at("main").array("t2m").read_many([np.s_[0, :3], np.s_[3, 3:]]).shape
        (2, 3)
        """
        found = [Selection(sel, self.shape) for sel in sels]
        final = found[0].final if found else ()
        for s in found:
            if s.final != final:
                raise InvalidError(f"/{self.path}: selections of shapes {final} and {s.final} do not go into one array; read them one by one")
        shape = (len(found), *final)
        if out is not None and out.shape != shape:
            raise InvalidError(f"/{self.path}: the selections have shape {shape}, out has {out.shape}")
        if out is None:
            self._check(shape)
        if not found:
            got = np.empty(shape, self.dtype)
        elif not self._fixed:
            got = np.stack([self._read(s) for s in found]).reshape(shape)
        else:
            parts = self._elements.read_many(found)
            got = np.asarray(parts[0].base).reshape(shape)
        if out is None:
            return got
        out[...] = got
        return out

    @property
    def oindex(self) -> _advanced.Index:
        """Index each dimension for itself, by numbers, slices, lists and masks, as in zarr-python.

        >>> a = repo.writable_session().array("t2m")
        >>> a.oindex[[0, 3], [1, 2, 5]] = 1
        >>> a[[0, 0, 3], [0, 1, 5]].tolist()  # as in numpy
        [280.0, 1.0, 1.0]
        >>> a.oindex[np.array([True, False, False, True]), -1].tolist()
        [1.0, 1.0]
        """
        return _advanced.Index(self, True)

    @property
    def vindex(self) -> _advanced.Index:
        """Index single elements by lists of their coordinates, or a mask, as numpy does; the dimensions of the lists come first.

        >>> repo.at("main").array("t2m").vindex[[0, 3], :, None].shape
        (2, 6, 1)
        """
        return _advanced.Index(self, False)

    def isel(self, **numbers: Any) -> Any:
        """The elements that numbers, slices, lists or masks select in dimensions by name.

        >>> repo.at("main").array("t2m").isel(x=[0, -1], time=2).tolist()
        [280.0, 280.0]
        """
        if wrong := numbers.keys() - set(self.dims):
            raise NotFoundError(f"/{self.path} has no dimension {min(wrong)!r}, it has {self.dims}")
        return self.oindex[tuple([slice(None) if d is None else numbers.get(d, slice(None)) for d in self.dims])]

    def indices(self, method: str | None = None, **labels: Any) -> tuple[int | slice, ...]:
        """The key for `a[...]` that labels of coordinates select: one value, or a slice
        of them, for dimensions by name. Both ends of a slice are selected. A part of a time
        is all that begins so: time="2020-02". With method="nearest" a value is the nearest label.

        >>> with repo.transaction(message="coordinate") as store:
        ...     x = zarr.create_array(store, name="x", data=np.arange(0, 60, 10), dimension_names=("x",))
        >>> repo.at("main").array("t2m").indices(x=slice(10, 30))
        (slice(None, None, None), slice(1, 4, None))
        """
        items = []
        for name, value in labels.items():
            if isinstance(value, slice):
                if value.step is not None:
                    raise InvalidError(f"{name}: a range of labels has no step here")
                items.append(f"{name}={_label(value.start)}:{_label(value.stop)}")
            else:
                items.append(f"{name}={_label(value)}")
        if method not in (None, "nearest"):
            raise InvalidError(f"method={method!r}: it is None or 'nearest'")
        return _numbers(self._elements.select(",".join(items), method is not None), len(self.shape))

    def sel(self, method: str | None = None, **labels: Any) -> Any:
        """The elements that labels of coordinates select: `a.sel(time="2020-02", lat=slice(50, 45))`.
        A list of labels selects one element for each. See `indices`.

        >>> with repo.transaction(message="coordinate") as store:
        ...     x = zarr.create_array(store, name="x", data=np.arange(0, 60, 10), dimension_names=("x",))
        >>> repo.at("main").array("t2m").sel(x=[11, 38], method="nearest").shape
        (4, 2)
        """
        lists = {n: v for n, v in labels.items() if isinstance(v, list | tuple | np.ndarray) and np.ndim(v) == 1}
        if wrong := lists.keys() - set(self.dims):
            raise NotFoundError(f"/{self.path} has no dimension {min(wrong)!r}, it has {self.dims}")
        key: list[Any] = list(self.indices(method, **{n: v for n, v in labels.items() if n not in lists}))
        for name, values in lists.items():
            dim = self.dims.index(name)
            key[dim] = [self.indices(method, **{name: v})[dim] for v in values]
            if any(isinstance(k, slice) for k in key[dim]):
                raise InvalidError(f"{name}: a label in a list must name one element; select several with a slice")
        return self.oindex[tuple(key)] if lists else self[tuple(key)]

    def _check(self, shape: Sequence[int]) -> None:
        """Refuse a result that cannot be in memory: a selection of an array without chunks can have any size."""
        n, most = math.prod(shape) * self.dtype.itemsize, _memory()
        if n > most:
            raise InvalidError(f"/{self.path}: a selection of shape {tuple(shape)} takes {n} bytes, and this machine has {most} bytes of memory; select less", "too_large")

    def _read(self, sel: Selection) -> Numbers:
        self._check(sel.shape)
        return self._elements.read(sel) if self._fixed else self._read_variable(sel)

    def _read_variable(self, sel: Selection) -> Numbers:
        n = math.prod(sel.shape)
        try:
            body = self._elements.read_variable(sel)
        except InvalidError as e:
            if e.code not in ("too_large", "zarr_too_large") or n <= 1:
                raise
            out = np.empty(sel.shape, self.dtype)
            for part, where in sel.halves():
                out[where] = self._read_variable(part).reshape(out[where].shape)
            return out
        return variable(body, n, self.type, self._parts).reshape(sel.shape)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.write(key, value)

    def write(self, sel: Any, value: Any) -> None:
        """Write a selection in a session. Elements of the same chunks that other writers change at the same time
        stay. Floats are rounded to the type of the array; other values that it cannot hold, which numpy cuts or
        wraps, are an InvalidError.

        >>> s = repo.writable_session()
        >>> s.array("t2m")[2, :3] = 300
        >>> s.commit("warmer").message
        'warmer'
        >>> repo.at("main").array("t2m")[2].tolist()
        [300.0, 300.0, 300.0, 280.0, 280.0, 280.0]
        """
        session = self.view._writable()
        try:
            s = Selection(sel, self.shape)
        except InvalidError:
            _advanced.put(self, sel, value)
            return
        values = np.broadcast_to(cast(value, self.dtype, f"/{self.path}: nothing was written"), s.final).reshape(s.shape)
        if values.size == 0:
            return
        if self._fixed:
            self._elements.write(s, values)
        else:
            self._write_variable(s, values)
        self._forget_chunks(session)

    def _write_variable(self, sel: Selection, values: Numbers) -> None:
        body = packed(values, self.type, self._parts)
        if len(body) <= LONG or values.size <= 1:
            self._elements.write_variable(sel, body)
            return
        del body
        for part, where in sel.halves():
            self._write_variable(part, values[where])

    def _forget_chunks(self, session: WritableView) -> None:
        """Forget the values that were read of chunks, because the library has written the chunks: later writes are not compared with these values."""
        below = self.path + "/" if self.path else ""
        for key in [k for k in session._seen if k.startswith(below) and not k.endswith(DOCUMENTS)]:
            session._seen.pop(key, None)

    def resize(self, shape: int | Sequence[int], *, keep_chunks: bool = False) -> None:
        """Change the shape in a session. New elements hold the fill value, also where the array had elements before it
        shrank. With `keep_chunks` chunks are left as they are, and the elements come back when the array grows again.

        >>> a = repo.writable_session().array("t2m")
        >>> a.resize((3, 4))
        >>> a.shape
        (3, 4)
        """
        session = self.view._writable()
        lengths = ",".join(str(operator.index(n)) for n in np.atleast_1d(shape))
        args = ["resize", f"{session._client.dir}:{self.path}", f"--shape={lengths}", "--session", session.id]
        session._check()  # it is an error if it was committed
        code, _, err = session._client.run(*args, *["--keep-chunks"] * keep_chunks)
        session._dirty += 1
        self._forget_chunks(session)
        if code != 0:
            raise exit_error(code, err)
        session._seen.pop((self.path + "/" if self.path else "") + ("zarr.json" if self.format == 3 else ".zarray"), None)
        self.refresh()

    def _has_chunks_outside(self, shape: Sequence[int]) -> bool:
        """Whether chunks are stored of which no element is in the shape. Lists the chunks."""
        unit, below = self._info.get("unit") or self.chunks or (), self.path + "/" if self.path else ""
        for key in self.view.keys(below):
            at = [int(n) for n in re.findall(r"\d+", key[len(below) :])][-len(shape) :]
            if len(at) == len(unit) and not key.endswith(DOCUMENTS) and any(i * u >= n for i, u, n in zip(at, unit, shape, strict=True)):
                return True
        return False


def _coded(doc: dict[str, Any]) -> list[Any]:
    """The codecs of a document, without the members of their configurations that programs write in different words."""
    out: list[Any] = []
    codecs: list[Any] = [*(doc.get("codecs") or []), doc.get("compressor"), *(doc.get("filters") or [])]
    for codec in filter(None, codecs):
        c: Any = {"name": codec} if isinstance(codec, str) else codec
        inner = c.get("configuration") or {}
        out.append((c.get("name"), c.get("id"), inner.get("chunk_shape"), _coded(inner)))
    return out


def cut_off(session: WritableView, key: str, value: Any, by_key: bool, chunks_go: bool) -> None:
    """Before zarr-python writes the document of an array with a shorter shape, reset the elements outside the new shape, as `resize` does.
    zarr-python leaves these elements in the chunks at the edge, and shows them when the array grows again. If chunks outside the
    new shape still exist, zarr-python was asked to keep them; then all elements are kept, unless `chunks_go`."""
    path, _, name = key.rpartition("/")
    if name not in ("zarr.json", ".zarray"):
        return
    try:
        new, (raw, _, id) = json.loads(bytes(value)), View._read(session, key)
        old, want = json.loads(bytes(raw)), session._seen.expected(key, by_key)
        shape = [min(n, m) for n, m in zip(new["shape"], old["shape"], strict=True)]
        same = all(old.get(k) == new.get(k) for k in ("chunk_grid", "chunks", "data_type", "dtype", "order")) and _coded(old) == _coded(new)
        if not same or shape == old["shape"] or want not in (None, id):  # if another has changed it, the write is an error
            return
        a = Array(session, path)
    except (ValueError, KeyError, TypeError, AttributeError, ZarrdbError):  # there is no array, or none that the server reads
        return
    if not chunks_go and a._has_chunks_outside(shape):
        return
    a.resize(shape)
    session._seen.wrote(key, View._read(session, key)[2], by_key)


def _unpickled(view: View, path: str, info: dict[str, Any]) -> Array:
    a = object.__new__(Array)
    a.view, a.path = view, path
    a._describe(info)
    return a


def _label(v: Any) -> str:
    """A label as a selection has it."""
    if v is None:
        return ""
    if isinstance(v, datetime.timedelta):
        v = np.timedelta64(v)
    if isinstance(v, np.datetime64) and np.datetime_data(v.dtype)[0] in ("h", "m", "s", "ms"):
        v = v.astype("datetime64[us]")  # one moment, and not all that begin so
    isoformat: Any = getattr(v, "isoformat", None)
    if isoformat and hasattr(v, "hour"):
        text = isoformat(timespec="nanoseconds" if hasattr(v, "nanosecond") else "microseconds")
    else:
        text = isoformat() if isoformat else str(v)
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
