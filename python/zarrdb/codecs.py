"""A codec pipeline for zarr-python 3: the library in this process decodes and encodes.

    with zarrdb.codecs.use():  # or for good: zarrdb.codecs.use()
        zarr.open_array(snapshot.store, path="t2m")[:]

    z[:] ──▶ zarr-python: chunks and selections ──▶ one call ──▶ library decodes into numpy's memory

Stores that are not of zarrdb, and arrays that the library cannot decode, go through
zarr-python's own pipeline. Values are the same either way. The library merges writes to parts of
chunks, so that processes which write to the same chunk lose nothing.
"""

from __future__ import annotations

import asyncio
import copy
import math
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from zarr.core.array import create_codec_pipeline
from zarr.core.buffer import NDBuffer
from zarr.core.buffer.cpu import NDBuffer as CPUBuffer
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.core.config import config
from zarr.registry import register_ndbuffer, register_pipeline

from ._array import element_type
from ._elements import Elements
from ._errors import ConnectionLostError, SessionClosedError, SessionLostError, ZarrdbError
from ._selection import Selection
from ._store import ZarrdbStore
from ._views import View, WritableView

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec

Numbers = np.ndarray[Any, Any]
Batch = list[tuple[Any, "ArraySpec", Any, Any, bool]]

# Requests for more bytes run in a thread, so that the event loop goes on meanwhile.
INLINE = 4 << 20
# Chunks that are read to select single elements from them are read so many bytes at a time.
AT_ONCE = 64 << 20

# Arrays that the library cannot decode, by view.
_refused: weakref.WeakKeyDictionary[View, set[str]] = weakref.WeakKeyDictionary()
# Arrays that are open in the library, by view, then by path and type.
_opened: weakref.WeakKeyDictionary[View, dict[tuple[Any, ...], Any]] = weakref.WeakKeyDictionary()


class _Refused(Exception):
    """The pipeline of zarr-python has to do it."""


class LazyNDBuffer(CPUBuffer):
    """Memory for a result, which is made at the first use, or is the memory into which the library decoded."""

    _array: Numbers | None
    _wanted: tuple[tuple[int, ...], np.dtype[Any], str]

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: Any, order: Any = "C") -> LazyNDBuffer:
        out = cls.__new__(cls)
        out._array, out._wanted = None, (tuple(shape), np.dtype(dtype), order)
        return out

    @property
    def _data(self) -> Any:
        if self._array is None:
            shape, dtype, order = self._wanted
            self._array = np.empty(shape, dtype, order)  # type: ignore[call-overload]
        return self._array

    @_data.setter
    def _data(self, array: Any) -> None:
        self._array = array

    def adopt(self, array: Numbers) -> bool:
        """Use an array as the memory, if it is as wanted and nothing has been written yet."""
        if self._array is not None or self._wanted != (array.shape, array.dtype, "C"):
            return False
        self._array = array
        return True


@dataclass(frozen=True)
class ZarrdbCodecPipeline(BatchedCodecPipeline):
    """zarr-python's pipeline, with the library in its place where it can be."""

    metadata: Any = None  # of the array; None inside a shard

    @classmethod
    def from_array_metadata_and_store(cls, array_metadata: Any, store: Any) -> ZarrdbCodecPipeline:
        if not isinstance(store, ZarrdbStore):
            raise NotImplementedError  # zarr-python makes it of the codecs then
        made = create_codec_pipeline(array_metadata)
        if not isinstance(made, ZarrdbCodecPipeline):
            raise NotImplementedError
        return made._of(array_metadata)

    def _of(self, metadata: Any) -> ZarrdbCodecPipeline:
        made = copy.copy(self)
        object.__setattr__(made, "metadata", metadata)
        return made

    def evolve_from_array_spec(self, array_spec: ArraySpec) -> ZarrdbCodecPipeline:
        return super().evolve_from_array_spec(array_spec)._of(self.metadata)

    async def read(self, batch_info: Iterable[Any], out: NDBuffer, drop_axes: tuple[int, ...] = ()) -> Any:
        batch: Batch = list(batch_info)
        if batch and self.metadata is not None:
            try:
                return await self._read(batch, out, drop_axes)
            except _Refused:
                pass
        return await super().read(batch, out, drop_axes)

    async def write(self, batch_info: Iterable[Any], value: NDBuffer, drop_axes: tuple[int, ...] = ()) -> None:
        batch: Batch = list(batch_info)
        if batch and self.metadata is not None:
            try:
                await self._write(batch, value)
                return
            except _Refused:
                pass
        await super().write(batch, value, drop_axes)

    async def _read(self, batch: Batch, out: NDBuffer, drop_axes: tuple[int, ...]) -> Any:
        chunks = _Chunks(self.metadata, batch)
        box = chunks.box()
        if box is None:
            await _run(chunks.size(), lambda: chunks.read_parts(batch, out, drop_axes))
        else:
            n = math.prod(box.shape)
            shape = _shape(out)
            if n != math.prod(shape):
                raise _Refused
            into = _memory(out, box.shape, chunks.little)
            got: Numbers = await _run(n * chunks.dtype.itemsize, lambda: chunks.ask(lambda: chunks.elements().read(box, into)))
            got = got.reshape(shape)
            if into is None and not (isinstance(out, LazyNDBuffer) and out.adopt(got)):
                out[...] = batch[0][1].prototype.nd_buffer.from_numpy_array(got)
        return ({"status": "present"},) * len(batch)  # for zarr-python 3.2 and later

    async def _write(self, batch: Batch, value: NDBuffer) -> None:
        chunks = _Chunks(self.metadata, batch)
        session, spec = chunks.view, batch[0][1]
        box = chunks.box()
        if box is None or not isinstance(session, WritableView) or spec.config.write_empty_chunks or spec.fill_value is None:
            raise _Refused
        if batch[0][0].store.read_only:
            raise _Refused  # with the error of zarr-python
        values = np.asarray(value.as_numpy_array())
        if values.ndim and values.size != math.prod(box.shape):
            raise _Refused
        values = values.astype(chunks.little, copy=False)
        values = np.broadcast_to(values, box.shape) if values.ndim == 0 else values.reshape(box.shape)
        write = lambda: chunks.ask(lambda: chunks.elements().write(box, values))
        await _run(values.size * chunks.dtype.itemsize, write)
        for where, *_ in batch:
            session._seen.pop(where.path, None)  # it is another value by now


class _Chunks:
    """Where the chunks of a batch lie in their array."""

    def __init__(self, metadata: Any, batch: Batch) -> None:
        where, spec = batch[0][0], batch[0][1]
        store = getattr(where, "store", None)
        if not isinstance(store, ZarrdbStore) or not _regular(metadata):
            raise _Refused
        if not getattr(spec.config, "read_missing_chunks", True):
            raise _Refused  # the library does not tell which chunks are missing
        self.metadata = metadata
        self.view: View = store.session
        self.form = _Form(metadata, len(spec.shape))
        self.path = self.form.parse(where.path)[0]
        if self.path in _refused.get(self.view, ()):
            raise _Refused
        self.dtype = np.dtype(spec.dtype.to_native_dtype())
        if self.dtype.hasobject or self.dtype.kind == "T" or self.dtype.itemsize == 0:
            raise _Refused
        self.little = self.dtype.newbyteorder("<")
        self.batch = batch

    def size(self) -> int:
        return len(self.batch) * math.prod(self.batch[0][1].shape) * self.dtype.itemsize

    def elements(self) -> Elements:
        """The array as the library has it."""
        known, key = _opened.setdefault(self.view, {}), (self.path, self.little)
        made = Elements(self.view, self.path, self.little, self.check, known.get(key))
        known[key] = made.open()
        return made

    def check(self, o: dict[str, Any]) -> None:
        """Compare the library's type with zarr-python's."""
        if not o.get("numpy") or element_type(o["numpy"]).newbyteorder("<") != self.little:
            raise _Refused

    def ask(self, fn: Any) -> Any:
        """Run a call. The library may not know a codec, or see something in another way."""
        try:
            return fn()
        except (SessionLostError, SessionClosedError, ConnectionLostError):
            raise
        except (ZarrdbError, _Refused) as e:
            if isinstance(e, _Refused) or e.code in ("unsupported", "type", "metadata", "invalid"):
                _refused.setdefault(self.view, set()).add(self.path)
            raise _Refused from e

    def box(self) -> Selection | None:
        """The selection of all chunks together, if they are all that a selection by numbers and slices touches.
        Chunks come in C order, so that the first and the last one say all."""
        first, last = self.batch[0], self.batch[-1]
        _, lo = self.form.parse(first[0].path)
        path, hi = self.form.parse(last[0].path)
        if path != self.path or len(self.batch) != math.prod(b - a + 1 for a, b in zip(lo, hi, strict=True)):
            return None
        begin, end = _tuple(first[2], len(lo)), _tuple(last[2], len(lo))
        if begin is None or end is None:
            return None
        items: list[int | range] = []
        for a, b, i, j, n in zip(begin, end, lo, hi, first[1].shape, strict=True):
            if isinstance(a, slice) and isinstance(b, slice):
                start, _, step = a.indices(n)
                _, stop, other = b.indices(n)
                if step < 1 or step != other:
                    return None
                items.append(range(i * n + start, j * n + stop, step))
            elif isinstance(a, int | np.integer) and isinstance(b, int | np.integer) and i == j and a == b:
                items.append(i * n + int(a))
            else:
                return None
        return Selection.of(items)

    def read_parts(self, batch: Batch, out: NDBuffer, drop_axes: tuple[int, ...]) -> None:
        """Read the box around the selected elements of each chunk, and select in it."""
        boxes, within = [], []
        for where, spec, sel, *_ in batch:
            path, at = self.form.parse(where.path)
            items = _tuple(sel, len(at))
            if path != self.path or items is None:
                raise _Refused
            ranges: list[int | range] = []
            rest: list[Any] = []
            for k, i, n in zip(items, at, spec.shape, strict=True):
                r, inner = _around(k, n)
                ranges.append(range(i * n + r.start, i * n + r.stop))
                rest.append(inner)
            boxes.append(Selection.of(ranges))
            within.append(tuple(rest))
        i = 0
        while i < len(batch):
            j, n = i, 0
            while j < len(batch) and (j == i or n < AT_ONCE):
                n += math.prod(boxes[j].shape) * self.dtype.itemsize
                j += 1
            got = self.ask(lambda: self.elements().read_many(boxes[i:j]))  # noqa: B023
            for (_, spec, _, to, _), part, inner in zip(batch[i:j], got, within[i:j], strict=True):
                part = part[inner]
                out[to] = spec.prototype.nd_buffer.from_numpy_array(part.squeeze(axis=drop_axes) if drop_axes else part)
            i = j


class _Form:
    """How the keys of an array's chunks are spelled."""

    def __init__(self, metadata: Any, ndim: int) -> None:
        if metadata.zarr_format == 2:
            name, sep = "v2", metadata.dimension_separator
        else:
            name, sep = metadata.chunk_key_encoding.name, getattr(metadata.chunk_key_encoding, "separator", None)
        if name not in ("v2", "default") or sep not in ("/", "."):
            raise _Refused
        self.ndim, self.sep, self.prefix = ndim, sep, name == "default"
        numbers = max(1, ndim) if name == "v2" else ndim
        self.parts = 1 if sep == "." else numbers + self.prefix

    def parse(self, key: str) -> tuple[str, tuple[int, ...]]:
        """The path of the array, and the place of the chunk in the grid."""
        pieces = key.rsplit("/", self.parts)
        path, pieces = (pieces[0], pieces[1:]) if len(pieces) > self.parts else ("", pieces)
        if self.sep == ".":
            pieces = pieces[0].split(".")
        return path, tuple(map(int, pieces[self.prefix :])) if self.ndim else ()


def _regular(metadata: Any) -> bool:
    return metadata.zarr_format == 2 or type(metadata.chunk_grid).__name__.startswith("RegularChunkGrid")


def _tuple(sel: Any, ndim: int) -> tuple[Any, ...] | None:
    """A selection in a chunk with an item for each dimension."""
    if isinstance(sel, slice) and ndim == 1:
        return (sel,)
    if isinstance(sel, int | np.integer) and ndim == 1:
        return (int(sel),)
    return sel if isinstance(sel, tuple) and len(sel) == ndim else None


def _around(k: Any, n: int) -> tuple[range, Any]:
    """The range around the elements that an item selects in a dimension, and the item relative to it."""
    if isinstance(k, slice):
        start, stop, step = k.indices(n)
        if step < 1:
            raise _Refused
        return range(start, max(start, stop)), slice(None, None, step)
    if isinstance(k, int | np.integer):
        return range(int(k), int(k) + 1), 0
    a = np.asarray(k)
    if a.dtype.kind not in "iu" or a.size == 0:
        raise _Refused
    low = int(a.min())
    if low < 0:
        raise _Refused
    return range(low, int(a.max()) + 1), a - low


def _memory(out: NDBuffer, shape: tuple[int, ...], dtype: Any) -> Numbers | None:
    """The memory of a result as an array of a shape, if elements of the type can be put there in C order."""
    if not isinstance(out, CPUBuffer) or isinstance(out, LazyNDBuffer) and out._array is None:
        return None
    array = out.as_ndarray_like()
    if not isinstance(array, np.ndarray) or array.dtype != dtype or not array.flags.c_contiguous or not array.flags.writeable:
        return None
    return array.reshape(shape)


def _shape(out: NDBuffer) -> tuple[int, ...]:
    if isinstance(out, LazyNDBuffer) and out._array is None:
        return out._wanted[0]
    return tuple(out.shape)


async def _run(n: int, fn: Any) -> Any:
    return fn() if n < INLINE else await asyncio.to_thread(fn)


def use() -> Any:
    """Let zarr-python use this pipeline, for good or as a context manager.

    >>> with use():
    ...     z = zarr.open_array(repo.at("main").store, path="t2m", mode="r")
    ...     z[1:3, :2].tolist()
    [[280.0, 280.0], [280.0, 280.0]]
    """
    return config.set({"codec_pipeline.path": _name(ZarrdbCodecPipeline), "ndbuffer": _name(LazyNDBuffer)})


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


register_pipeline(ZarrdbCodecPipeline)
register_ndbuffer(LazyNDBuffer)
