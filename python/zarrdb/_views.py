"""Versions and sessions as keys and bytes.

Arrays, stores and mappings need nothing else of a version or session. `Snapshot` and `Session` stand above them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from . import _engine as e
from ._client import CLOSED, Client, again
from ._errors import InvalidError, NotFoundError, ZarrdbError
from ._seen import MISSING, Seen

T = TypeVar("T")
PAGE = 5000


def _only_missing(failed: NotFoundError) -> None:
    """Raise an error that says more than that a key has no value: that the version or session itself is gone."""
    if failed.code != "not_found":
        raise failed


class View:
    """Keys and bytes. Safe for threads; works on after the server was replaced."""

    def __init__(self, client: Client, name: str, arg: Any) -> None:
        """Open it by a function of the library."""
        self._client = client
        self._opening = threading.RLock()
        self._within: tuple[e.Database, e.Handle] | None = None  # the database and this view in the library
        self._about: Any = client.using(lambda engine: self._enter(engine, name, arg))  # what the library said of it
        client.views[id(self)] = self

    def _enter(self, engine: e.Database, name: str, arg: Any) -> Any:
        handle = e.Handle()
        about = e.ask(engine, name, arg, handle)
        self._within = engine, handle
        return about

    def _forked(self) -> None:
        """In a child: other threads, which may have held locks, are not there any more."""
        self._opening = threading.RLock()

    def _leased(self) -> bool:
        """See `Viewer`."""
        return False

    def _reopen(self, engine: e.Database) -> None:
        """Open it anew: in a child, or after the database was closed."""
        raise NotImplementedError

    def _check(self) -> None:
        """Raise why it cannot be used."""

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

    def _at(self) -> e.Handle:
        """The view in the library."""
        self._check()
        engine, within = self._client.engine(), self._within
        if within is None or within[0] is not engine or not within[1].number:
            with self._opening:
                within = self._within
                if within is None or within[0] is not engine or not within[1].number:
                    self._check()
                    self._reopen(engine)
                    within = self._within
                    assert within is not None
        return within[1]

    def _inside(self, fn: Callable[[e.Handle], T]) -> T:
        """Run fn with this view as the library of this process has it open."""
        return again(lambda: self._try(fn))

    def _try(self, fn: Callable[[e.Handle], T]) -> T:
        handle = self._at()
        try:
            return fn(handle)
        except ZarrdbError as failed:
            within = self._within
            if failed.code in CLOSED and within is not None and within[1] is handle:
                self._within = None
            raise

    def _ask(self, name: str, arg: Any = None) -> Any:
        """Call a function of the library about this view."""
        return self._inside(lambda view: e.ask(view, name, arg))

    def _close_inside(self) -> None:
        within, self._within = self._within, None
        if within is not None:
            within[1].close()

    def _read(self, key: str, kind: int = e.ALL, off: int = 0, n: int = 0, by_key: bool = False) -> tuple[bytes, int, bytes]:
        """Bytes of a value, the size of the whole and its id. For by_key see `Seen`."""
        k = key.encode()
        return self._inside(lambda view: e.get(view, k, kind, off, n))

    def get(self, key: str) -> bytes | None:
        """The bytes of a key, None if there is no value."""
        try:
            return self._read(key)[0]
        except NotFoundError as failed:
            _only_missing(failed)
            return None

    def get_part(self, key: str, start: int | None = None, stop: int | None = None, last: int | None = None) -> bytes | None:
        """A part of a value: from `start`, up to `stop`, or the `last` bytes. Bytes beyond the end
        are left out."""
        return self._get_part(key, start, stop, last, False)

    def _get_part(self, key: str, start: int | None, stop: int | None, last: int | None, by_key: bool) -> bytes | None:
        if last is not None:
            kind, off, n = e.LAST, 0, last
        elif stop is None:
            kind, off, n = e.FROM, start or 0, 0
        else:
            kind, off, n = e.SPAN, start or 0, max(0, stop - (start or 0))
        try:
            return self._read(key, kind, off, n, by_key)[0]
        except NotFoundError as failed:
            _only_missing(failed)
            return None
        except InvalidError as failed:
            if failed.code != "range":
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
            return self._inside(lambda view: e.get(view, k, e.NONE, 0, 0))[1]
        except NotFoundError as failed:
            _only_missing(failed)
            return None

    def keys(self, prefix: str = "") -> Iterator[str]:
        """The keys that begin with prefix, in order."""
        return self._pages(False, prefix)

    def children(self, prefix: str = "") -> Iterator[str]:
        """The names directly below a prefix; one that is a prefix ends in a slash."""
        return self._pages(True, prefix)

    def _pages(self, children: bool, prefix: str) -> Iterator[str]:
        p, after, is_prefix, more = prefix.encode(), b"", False, True
        while more:
            names, more = self._inside(lambda view: e.names(view, children, PAGE, p, after, is_prefix))  # noqa: B023
            for name in names:
                yield name.decode()
            if names:
                after, is_prefix = names[-1], False
                if children and after.endswith(b"/"):
                    after, is_prefix = after[:-1], True


class WritableView(View):
    """Keys and bytes of a session, which can be written."""

    def __init__(self, client: Client, name: str, arg: Any) -> None:
        super().__init__(client, name, arg)
        self._seen = Seen()
        self._dirty = 0  # writes
        self._keys: dict[int, threading.RLock] = {}  # a signal handler may come to a key whose lock its thread has

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

    def _key(self, key: str) -> threading.RLock:
        n = hash(key) % 64
        return self._keys.get(n) or self._keys.setdefault(n, threading.RLock())

    def _read(self, key: str, kind: int = e.ALL, off: int = 0, n: int = 0, by_key: bool = False) -> tuple[bytes, int, bytes]:
        with self._key(key):
            try:
                out = super()._read(key, kind, off, n)
            except NotFoundError as failed:
                _only_missing(failed)
                self._seen.read(key, MISSING, by_key)
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
        if value is None:
            raise TypeError(f"set {key}: a value is bytes, not None; delete removes a key")
        with self._key(key):
            id = self._write(key, value, MISSING if absent else self._seen.expected(key, by_key))
            self._seen.wrote(key, id, by_key)

    def _delete(self, key: str, by_key: bool) -> None:
        with self._key(key):
            self._write(key, None, self._seen.expected(key, by_key))
            self._seen.wrote(key, MISSING, by_key)

    def _write(self, key: str, value: Any, want: bytes | None) -> bytes:
        k, expect = key.encode(), 0 if want is None else 1 if want == MISSING else 2
        id = self._inside(lambda view: e.put(view, k, expect, want or MISSING, value))
        self._dirty += 1
        return id

    def delete_prefix(self, prefix: str) -> None:
        """Remove all keys that begin with prefix."""
        self._ask("delete_prefix", prefix)
        self._dirty += 1
        self._seen.deleted(prefix, MISSING)
