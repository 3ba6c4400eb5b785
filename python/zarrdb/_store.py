"""A version or session as a store of zarr-python 3."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype

from . import _icechunk
from ._array import cut_off
from ._errors import ChangedError, NotFoundError
from ._views import View, WritableView

# Values that are longer are sent by a thread, so that other values are compressed meanwhile.
INLINE = 256 << 10


@contextmanager
def _hint() -> Iterator[None]:
    try:
        yield
    except ChangedError as e:
        e.add_note(
            "Another thread or process has written to the same chunk meanwhile. Let each write whole chunks, "
            "or use zarrdb.codecs.use(): then the server merges writes to parts of a chunk."
        )
        raise


def _without_copies(key: str, b: Any) -> Any:
    """A value without consolidated metadata, which is out of date as soon as the session changes a node."""
    if key.endswith(".zmetadata"):
        return None
    if not key.endswith("zarr.json") or b'"consolidated_metadata"' not in b:
        return b
    try:
        doc = json.loads(bytes(b))
        doc.pop("consolidated_metadata", None)
        return json.dumps(doc).encode()
    except (ValueError, AttributeError):
        return b


class ZarrdbStore(Store):
    """A store. The store of a version is read only. It pickles by the commit or the session.

    Requests take some microseconds, so most run in the event loop itself.

    >>> import zarr
    >>> zarr.open_array(repo.at("main").store, path="t2m")[0, :2].tolist()
    [280.0, 280.0]
    """

    supports_partial_writes: Any = False

    @property
    def supports_writes(self) -> bool:
        return True

    @property
    def supports_deletes(self) -> bool:
        return True

    @property
    def supports_listing(self) -> bool:
        return True

    @property
    def supports_consolidated_metadata(self) -> bool:
        """Whether `zarr.consolidate_metadata` may write it: into a session. It is not read through a store, see `_get`, since
        metadata is read as fast without; a version shows it, corrected, to other readers."""
        return not self.session.read_only and not self.read_only

    def __init__(self, view: View, *, read_only: bool | None = None) -> None:
        if read_only is False:
            view._writable()
        super().__init__(read_only=view.read_only if read_only is None else read_only)
        self.session = view

    @property
    def _writer(self) -> WritableView:
        self._check_writable()
        return self.session._writable()

    def with_read_only(self, read_only: bool = False) -> ZarrdbStore:
        return type(self)(self.session, read_only=read_only)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ZarrdbStore) and self.session == other.session and self.read_only == other.read_only

    def __hash__(self) -> int:
        return hash((self.session, self.read_only))

    def __str__(self) -> str:
        return f"zarrdb://{self.session._client.dir}@{self.session._rev()}"

    def __repr__(self) -> str:
        return f"ZarrdbStore('{self}')"

    def __dask_tokenize__(self) -> Any:
        return self.session.__dask_tokenize__()

    def __getstate__(self) -> dict[str, Any]:
        return {"view": self.session, "read_only": self.read_only}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["view"], read_only=state["read_only"])  # type: ignore[misc]

    # --- values

    def _get(self, key: str, prototype: BufferPrototype | None, byte_range: ByteRequest | None) -> Buffer | None:
        v = self.session
        try:
            match byte_range:
                case None:
                    b: Any = v._read(key, by_key=True)[0]
                case RangeByteRequest(start, end):
                    b = v._get_part(key, start, end, None, True)
                case OffsetByteRequest(offset):
                    b = v._get_part(key, offset, None, None, True)
                case SuffixByteRequest(suffix):
                    b = v._get_part(key, None, None, suffix, True)
                case _:
                    raise ValueError(f"Unexpected byte_range, got {byte_range}.")
        except NotFoundError as e:
            if e.code == "not_found":
                return None
            raise
        if byte_range is None and b is not None and self.supports_consolidated_metadata:
            b = _without_copies(key, b)
        return None if b is None else (prototype or default_buffer_prototype()).buffer.from_bytes(b)

    def get_sync(
        self, key: str, *, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        return self._get(key, prototype, byte_range)

    def _set(self, key: str, value: Buffer) -> None:
        if not isinstance(value, Buffer):
            raise TypeError(f"ZarrdbStore.set(): `value` must be a Buffer instance. Got an instance of {type(value)} instead.")
        data = value.as_numpy_array()
        if key.endswith(("zarr.json", ".zarray")):
            cut_off(self._writer, key, data, True, False)
        with _hint():
            self._writer._set(key, data, False, True)

    def set_sync(self, key: str, value: Buffer) -> None:
        self._set(key, value)

    def delete_sync(self, key: str) -> None:
        with _hint():
            self._writer._delete(key, True)

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        await self._ensure_open()
        return self._get(key, prototype, byte_range)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        return [await self.get(key, prototype, part) for key, part in key_ranges]

    async def exists(self, key: str) -> bool:
        return self.session.size(key) is not None

    async def set(self, key: str, value: Buffer) -> None:
        self._check_writable()
        await self._ensure_open()
        if isinstance(value, Buffer) and len(value) > INLINE:
            await asyncio.to_thread(self._set, key, value)
        else:
            self._set(key, value)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        await self._ensure_open()
        try:
            self._writer._set(key, value.as_numpy_array(), True, True)
        except ChangedError:
            pass

    async def delete(self, key: str) -> None:
        self.delete_sync(key)

    async def delete_dir(self, prefix: str) -> None:
        self._writer.delete_prefix(prefix if not prefix or prefix.endswith("/") else prefix + "/")

    async def clear(self) -> None:
        self._writer.delete_prefix("")

    async def getsize(self, key: str) -> int:
        size = self.session.size(key)
        if size is None:
            raise FileNotFoundError(key)
        return size

    # --- names

    async def is_empty(self, prefix: str) -> bool:
        if prefix and not prefix.endswith("/"):
            prefix += "/"
        return next(self.session.keys(prefix), None) is None

    async def list(self) -> AsyncIterator[str]:
        for key in self.session.keys(""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        for key in self.session.keys(prefix):
            yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        prefix = prefix.rstrip("/")
        last = None
        for name in self.session.children(prefix + "/" if prefix else ""):
            name = name.removesuffix("/")
            if name != last:
                yield name
            last = name

    # --- as Icechunk's store

    set_virtual_ref = _icechunk.set_virtual_ref
    set_virtual_refs = _icechunk.set_virtual_refs
