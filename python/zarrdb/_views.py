"""Versions and sessions as keys and bytes, read and written through the server.

Arrays, stores and mappings need nothing else of a version or session. `Snapshot` and `Session` stand above them.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

from . import _engine
from . import _wire as w
from ._client import RECONNECTS, Client
from ._errors import ChangedError, ConnectionLostError, InvalidError, NotFoundError, ZarrdbError
from ._seen import Seen

T = TypeVar("T")
PAGE = 5000


class View:
    """Keys and bytes. Safe for threads; works on after the server was replaced."""

    def __init__(self, client: Client, link: w.Link, handle: int) -> None:
        self._client, self._link, self._handle = client, link, handle
        self._opening = threading.RLock()
        self._within: tuple[_engine.Handle, _engine.Handle] | None = None  # the database and this view in the library
        client.views[id(self)] = self

    def _forked(self) -> None:
        """In a child: other threads, which may have held locks, are not there any more."""
        self._opening = threading.RLock()

    def __del__(self, ends: Callable[[], bool] = sys.is_finalizing) -> None:
        if not ends():  # else modules may be empty already, and the end of the process closes the view
            self._let_go()

    def _let_go(self) -> None:
        """Have the server close the view, at once or with the next request. Finalizers call it at any time."""
        link = getattr(self, "_link", None)
        self._within = None
        if link is not None and link.over is None and link.pid == os.getpid():
            if self._handle:
                link.unused.append(self._handle)
            with suppress(ZarrdbError):
                link.close_views(wait=False)

    def _leased(self) -> str:
        """See `Viewer`."""
        return ""

    def _renewed(self, link: w.Link, handle: int | None) -> None:
        raise NotImplementedError

    def _reopen(self) -> tuple[w.Link, int]:
        raise NotImplementedError

    @property
    def read_only(self) -> bool:
        """Whether the contents never change: true for a version."""
        raise NotImplementedError

    def _rev(self) -> str:
        """The revision that names it."""
        raise NotImplementedError

    def _writable(self) -> WritableView:
        """This view to write to. A version is an error."""
        raise InvalidError(f"{self!r} is a version and cannot be written; begin a session with repo.writable_session()")

    def _target(self, path: str = "") -> tuple[str, ...]:
        """Words of a command line that name a node."""
        raise NotImplementedError

    def __dask_tokenize__(self) -> Any:
        """The name of the contents for dask."""
        raise NotImplementedError

    def _at(self) -> tuple[w.Link, int]:
        link = self._link
        if link.over is None and link.pid == os.getpid():
            return link, self._handle
        with self._opening:
            if self._link.over is not None or self._link.pid != os.getpid():
                self._link, self._handle = self._reopen()
            return self._link, self._handle

    def _again(self, fn: Callable[[w.Link, int], T]) -> T:
        for n in range(RECONNECTS + 1):
            try:
                link, handle = self._at()
                return fn(link, handle)
            except ConnectionLostError:
                if n == RECONNECTS:
                    raise
        raise AssertionError

    def _inside(self, fn: Callable[[_engine.Handle], T]) -> T:
        """Run fn with this view as the library of this process has it open."""
        for n in range(RECONNECTS + 1):
            try:
                self._at()
                engine, within = self._client.engine(), self._within
                if within is None or within[0] is not engine:
                    with self._opening:
                        within = self._within
                        if within is None or within[0] is not engine:
                            within = self._within = engine, _engine.Handle(_engine.VIEW, engine, self._rev())
                return fn(within[1])
            except ZarrdbError as e:
                if n == RECONNECTS or not isinstance(e, ConnectionLostError) and e.code not in ("view_closed", "closed"):
                    raise
                if not isinstance(e, ConnectionLostError):  # another thread has closed it, or the database
                    self._within = None
                    continue
                self._client.query(w.DATABASES, {})  # finds the next process that has the database open, or starts one
        raise AssertionError

    def _close_inside(self, wait: bool) -> None:
        within, self._within = self._within, None
        if within is not None:
            within[1].close(wait)

    def _fetch(self, op: int, meta: Callable[[int], bytes], flags: int = 0) -> tuple[bytes | bytearray | None, int, bytes]:
        def ask(link: w.Link, handle: int) -> tuple[bytes | bytearray | None, int, bytes]:
            return link.value(link.call(op, meta(handle), flags=flags), handle)

        return self._again(ask)

    def _read(self, key: str, kind: int = w.ALL, off: int = 0, n: int = 0, by_key: bool = False) -> tuple[bytes | bytearray, int, bytes]:
        """Bytes of a value, the size of the whole and its id. For by_key see `Seen`."""
        k = key.encode()
        try:
            out, size, id = self._fetch(w.GET, lambda h: w.get_meta(h, k, kind, off, n))
            if out is None:
                out, size, id = self._fetch(w.GET, lambda h: w.get_meta(h, k, kind, off, n), w.BYTES)
        except InvalidError as e:
            if e.code != "too_large" or kind != w.ALL:
                raise
            return self._read_pieces(k)
        assert out is not None
        return out, size, id

    def _read_pieces(self, k: bytes) -> tuple[bytearray, int, bytes]:
        _, size, id = self._fetch(w.STAT, lambda h: w.stat_meta(h, k))
        out = bytearray()
        while len(out) < size:
            off, n = len(out), min(64 << 20, self._at()[0].max_body, size - len(out))
            part, size2, id2 = self._fetch(w.GET, lambda h: w.get_meta(h, k, w.SPAN, off, n), w.BYTES)  # noqa: B023
            if part is None or (size, id) != (size2, id2):
                raise ChangedError(f"{k.decode()}: the value changed while it was read", k.decode())
            out += part
        return out, size, id

    def get(self, key: str) -> bytes | None:
        """The bytes of a key, None if there is no value."""
        try:
            return bytes(self._read(key)[0])
        except NotFoundError:
            return None

    def get_part(self, key: str, start: int | None = None, stop: int | None = None, last: int | None = None) -> bytes | None:
        """A part of a value: from `start`, up to `stop`, or the `last` bytes. Bytes beyond the end
        are left out."""
        return self._get_part(key, start, stop, last, False)

    def _get_part(self, key: str, start: int | None, stop: int | None, last: int | None, by_key: bool) -> bytes | None:
        if last is not None:
            kind, off, n = w.LAST, 0, last
        elif stop is None:
            kind, off, n = w.FROM, start or 0, 0
        else:
            kind, off, n = w.SPAN, start or 0, max(0, stop - (start or 0))
        try:
            return bytes(self._read(key, kind, off, n, by_key)[0])
        except NotFoundError:
            return None
        except InvalidError as e:
            if e.code != "range":
                raise
        if last is not None:
            return self.get(key)
        size = self.size(key)
        if size is None or off >= size:
            return None if size is None else b""
        return self._get_part(key, off, size if stop is None else min(stop, size), None, by_key)

    def size(self, key: str) -> int | None:
        """The length of a value in bytes, None if there is none."""
        k = key.encode()
        try:
            return self._fetch(w.STAT, lambda h: w.stat_meta(h, k))[1]
        except NotFoundError:
            return None

    def keys(self, prefix: str = "") -> Iterator[str]:
        """The keys that begin with prefix, in order."""
        return self._pages(w.LIST, prefix)

    def children(self, prefix: str = "") -> Iterator[str]:
        """The names directly below a prefix; one that is a prefix ends in a slash."""
        return self._pages(w.LIST_DIR, prefix)

    def _pages(self, op: int, prefix: str) -> Iterator[str]:
        p, after, is_prefix = prefix.encode(), b"", False
        while True:
            frame = self._again(lambda l, h: l.call(op, w.list_meta(h, p, after, is_prefix, PAGE)))  # noqa: B023
            names = bytes(frame.body).split(b"\0")[:-1]
            for name in names:
                yield name.decode()
            if not names or not frame.meta or not frame.meta[0]:
                return
            after, is_prefix = names[-1], False
            if op == w.LIST_DIR and after.endswith(b"/"):
                after, is_prefix = after[:-1], True


class WritableView(View):
    """Keys and bytes of a session, which can be written."""

    def __init__(self, client: Client, link: w.Link, handle: int) -> None:
        super().__init__(client, link, handle)
        self._seen = Seen()
        self._dirty = 0  # writes since the last savepoint
        self._keys: dict[int, threading.Lock] = {}

    def _forked(self) -> None:
        super()._forked()
        self._keys = {}

    @property
    def id(self) -> str:
        raise NotImplementedError

    @property
    def read_only(self) -> bool:
        return False

    def _rev(self) -> str:
        return "~" + self.id

    def _writable(self) -> WritableView:
        return self

    def _key(self, key: str) -> threading.Lock:
        n = hash(key) % 64
        return self._keys.get(n) or self._keys.setdefault(n, threading.Lock())

    def _read(self, key: str, kind: int = w.ALL, off: int = 0, n: int = 0, by_key: bool = False) -> tuple[bytes | bytearray, int, bytes]:
        with self._key(key):
            try:
                out = super()._read(key, kind, off, n)
            except NotFoundError:
                self._seen.read(key, w.ZERO, by_key)
                raise
            self._seen.read(key, out[2], by_key)
            return out

    def set(self, key: str, value: Any, absent: bool = False) -> None:
        """Store bytes. With `absent`, only if there is no value yet."""
        self._set(key, value, absent, False)

    def delete(self, key: str) -> None:
        """Remove a key, which may be missing."""
        self._delete(key, False)

    def _set(self, key: str, value: Any, absent: bool, by_key: bool) -> None:
        value = memoryview(value).cast("B") if not isinstance(value, bytes | bytearray) else value
        with self._key(key):
            id = self._write(w.SET, key, value, w.ZERO if absent else self._seen.expected(key, by_key))
            self._dirty += 1
            self._seen.wrote(key, id, by_key)

    def _delete(self, key: str, by_key: bool) -> None:
        with self._key(key):
            self._write(w.DELETE, key, b"", self._seen.expected(key, by_key))
            self._dirty += 1
            self._seen.wrote(key, w.ZERO, by_key)

    def _write(self, op: int, key: str, value: Any, want: bytes | None) -> bytes:
        k, tries = key.encode(), 0
        expect = 0 if want is None else 1 if want == w.ZERO else 2

        def send(link: w.Link, handle: int) -> bytes:
            nonlocal tries
            tries += 1
            return link.call(op, w.set_meta(handle, k, expect, want or w.ZERO), value).meta

        try:
            return self._again(send)
        except ChangedError:
            if tries == 1 or op != w.SET:
                raise
            there, _, id = super()._read(key)  # perhaps the first try was carried out
            if there != bytes(value):
                raise
            return id

    def delete_prefix(self, prefix: str) -> None:
        """Remove all keys that begin with prefix."""
        p = prefix.encode()
        self._again(lambda l, h: l.call(w.DELETE_PREFIX, w.stat_meta(h, p)))
        self._dirty += 1
        self._seen.deleted(prefix, w.ZERO)
