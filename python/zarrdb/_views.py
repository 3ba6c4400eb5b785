"""Versions and sessions: keys and bytes, read and written through the server."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from . import _wire as w
from ._client import RECONNECTS, Client
from ._errors import (
    ChangedError,
    ConnectionLostError,
    InvalidError,
    NotFoundError,
    SessionClosedError,
    SessionLostError,
    ZarrdbError,
)
from ._seen import Seen

if TYPE_CHECKING:
    from ._array import Array
    from ._mapping import Mapping
    from ._store import ZarrdbStore

T = TypeVar("T")
PAGE = 5000


def parse_time(s: str) -> datetime:
    return datetime.fromisoformat(s)


@dataclass(frozen=True)
class Commit:
    """A version."""

    id: str
    parents: tuple[str, ...] = ()
    author: str = ""
    time: datetime | None = None
    message: str = ""
    properties: dict[str, str] = field(default_factory=dict, hash=False)

    @classmethod
    def _of(cls, o: dict[str, Any]) -> Commit:
        return cls(
            o["id"], tuple(o.get("parents") or ()), o.get("author", ""), parse_time(o["time"]) if o.get("time") else None,
            o.get("message", ""), o.get("properties") or {},
        )  # fmt: skip

    @property
    def written_at(self) -> datetime | None:
        return self.time

    def __str__(self) -> str:
        return self.id

    def _repr_html_(self) -> str:
        from . import _html as h

        rows = [["commit", h.code(self.id)], ["author", h.text(self.author)], ["time", str(self.time or "")], ["message", h.text(self.message)]]
        return h.table(rows + [[h.text(k), h.text(v)] for k, v in self.properties.items()])

    def __repr__(self) -> str:
        when = f" {self.time:%Y-%m-%d %H:%M}" if self.time else ""
        return f"<Commit {self.id[:10]}{when} {self.message!r}>"


@dataclass(frozen=True)
class Change:
    """A key that differs. `old` or `new` is None where there is no value."""

    key: str
    array: str = ""
    chunk: tuple[int, ...] | None = None
    old: dict[str, Any] | None = None
    new: dict[str, Any] | None = None

    @classmethod
    def _of(cls, o: dict[str, Any]) -> Change:
        chunk = o.get("chunk")
        return cls(o["key"], o.get("array", ""), None if chunk is None else tuple(chunk), o.get("old"), o.get("new"))


@dataclass(frozen=True)
class Values:
    """How the values of an array differ between two versions, or a part of it: the box of `shape`
    from `start` on. `min`, `max` and `mean` are of newer minus older, over `numbers` elements where that
    is a number. `incomparable` says why nothing was compared."""

    path: str
    count: int = 0
    start: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    numbers: int = 0
    min: float = 0
    max: float = 0
    mean: float = 0
    incomparable: str = ""

    @classmethod
    def _of(cls, o: dict[str, Any]) -> Values:
        return cls(
            o["path"], o["count"], tuple(o.get("start") or ()), tuple(o.get("shape") or ()), o["numbers"], o["min"], o["max"], o["mean"],
            o.get("incomparable", ""),
        )  # fmt: skip

    def _and(self, o: Values) -> Values:
        """Both parts together."""
        if o.incomparable or not self.count:
            return o
        start = tuple(map(min, self.start, o.start))
        ends = [max(a + n, b + m) for a, n, b, m in zip(self.start, self.shape, o.start, o.shape, strict=True)]
        n = self.numbers + o.numbers
        if self.numbers and o.numbers:
            least, most, mean = min(self.min, o.min), max(self.max, o.max), self.mean + (o.mean - self.mean) * (o.numbers / n)
        else:
            counted = self if self.numbers else o
            least, most, mean = counted.min, counted.max, counted.mean
        return Values(self.path, self.count + o.count, start, tuple(e - s for e, s in zip(ends, start, strict=True)), n, least, most, mean)


@dataclass(frozen=True)
class ArrayChange:
    """What differs in an array."""

    path: str
    chunks: int
    _compare: Callable[[str], list[Values]] | None = field(default=None, repr=False, compare=False)

    @property
    def parts(self) -> list[Values]:
        """The parts with values that differ, each within a chunk. The server decodes both versions for it."""
        if self._compare is None:
            raise InvalidError(f"/{self.path}: values are compared between commits; commit the session first")
        return self._compare(self.path)

    @property
    def values(self) -> Values:
        """How many values differ, where and by how much. The server decodes both versions for it."""
        out = Values(self.path)
        for part in self.parts:
            out = out._and(part)
        return out


class Changes(list[Change]):
    """What differs between two versions."""

    def __init__(self, changes: Iterable[Change] = (), compare: Callable[[str], list[Values]] | None = None) -> None:
        super().__init__(changes)
        self._compare = compare

    @property
    def arrays(self) -> dict[str, ArrayChange]:
        """The arrays with chunks that differ, by path."""
        chunks: dict[str, int] = {}
        for c in self:
            if c.chunk is not None:
                chunks[c.array] = chunks.get(c.array, 0) + 1
        return {path: ArrayChange(path, n, self._compare) for path, n in chunks.items()}

    @property
    def values(self) -> dict[str, Values]:
        """How the values of these arrays differ, by path. The server decodes both versions for it."""
        return {path: a.values for path, a in self.arrays.items()}

    def __reduce__(self) -> Any:
        return Changes, (list(self), self._compare)

    def __repr__(self) -> str:
        lines = [f"<Changes: {len(self)} keys>"] + [f"  {a.path or '/'}: {a.chunks} chunks" for _, a in sorted(self.arrays.items())]
        return "\n".join(lines + [f"  {c.key}" for c in self if c.chunk is None][:20])

    def _repr_html_(self) -> str:
        from . import _html as h

        rows = [[h.text(a.path or "/"), f"{a.chunks} chunks"] for _, a in sorted(self.arrays.items())]
        return f"<div><b>{len(self)} keys differ</b>{h.table(rows + [[h.text(c.key), ''] for c in self if c.chunk is None])}</div>"


def all_pages(page: Callable[[int], dict[str, Any]]) -> Iterator[Change]:
    skip = 0
    while True:
        out = page(skip)
        changes = out.get("changes") or []
        for c in changes:
            yield Change._of(c)
        skip += len(changes)
        if not out.get("more") or not changes:
            return


class View:
    """Keys and bytes. Safe for threads; works on after the server was replaced."""

    def __init__(self, client: Client, link: w.Link, handle: int) -> None:
        self._client, self._link, self._handle = client, link, handle
        self._opening = threading.RLock()
        link.hold()
        client.views[id(self)] = self

    def _forked(self) -> None:
        """In a child: other threads, which may have held locks, are not there any more."""
        self._opening = threading.RLock()

    def __del__(self) -> None:
        link = getattr(self, "_link", None)
        if link is not None and link.over is None and link.pid == os.getpid():
            link.unused.append(self._handle)

    def _reopen(self) -> tuple[w.Link, int]:
        raise NotImplementedError

    def __dask_tokenize__(self) -> Any:
        """What names the contents for dask."""
        raise NotImplementedError

    def _at(self) -> tuple[w.Link, int]:
        link = self._link
        if link.over is None and link.pid == os.getpid():
            return link, self._handle
        with self._opening:
            if self._link.over is not None or self._link.pid != os.getpid():
                link, self._handle = self._reopen()
                link.hold()
                self._link = link
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

    def _fetch(self, op: int, meta: Callable[[int], bytes], flags: int = 0) -> tuple[bytes | bytearray | None, int, bytes]:
        def ask(link: w.Link, handle: int) -> tuple[bytes | bytearray | None, int, bytes]:
            return link.value(link.call(op, meta(handle), flags=flags))

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
        """A part of a value: from `start`, up to `stop`, or the `last` bytes. What lies
        beyond the end is left out."""
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

    def array(self, path: str) -> Array:
        """The array at a path, decoded by the server; see `Array`.

        >>> repo.at("main").array("t2m")[1, ::3].tolist()
        [280.0, 280.0]
        """
        from ._array import Array

        return Array(self, path)

    @property
    def mapping(self) -> Mapping:
        """Keys and bytes as a `MutableMapping`: a store for zarr-python 2."""
        from ._mapping import Mapping

        return Mapping(self)


class Snapshot(View):
    """A version. It never changes. It pickles by its commit."""

    def __init__(self, client: Client, rev: str) -> None:
        def open(link: w.Link) -> tuple[w.Link, dict[str, Any]]:
            return link, link.ask(w.OPEN, {"rev": rev})

        link, out = client.again(open)
        super().__init__(client, link, out["view"])
        if "commit" not in out:
            raise InvalidError(f"{rev} is a session")
        self.commit = Commit._of(out["commit"])

    def _reopen(self) -> tuple[w.Link, int]:
        link = self._client.link()
        return link, link.ask(w.OPEN, {"rev": self.commit.id})["view"]

    @property
    def snapshot_id(self) -> str:
        return self.commit.id

    @property
    def read_only(self) -> bool:
        return True

    @property
    def store(self) -> ZarrdbStore:
        """A store for zarr-python and xarray."""
        from ._store import ZarrdbStore

        return ZarrdbStore(self)

    def __reduce__(self) -> Any:
        return _snapshot, (self._client.dir, self.commit.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and (self._client.dir, self.commit.id) == (other._client.dir, other.commit.id)

    def __hash__(self) -> int:
        return hash((self._client.dir, self.commit.id))

    def __dask_tokenize__(self) -> Any:
        return self._client.dir, self.commit.id

    def __repr__(self) -> str:
        return f"<Snapshot {self.commit.id[:10]} of {os.path.basename(self._client.dir)}: {self.commit.message!r}>"

    def _repr_html_(self) -> str:
        from ._html import tree

        return tree(self, f"{self._client.dir}@{self.commit.id}")


def _snapshot(dir: str, id: str) -> Snapshot:
    return Snapshot(Client.of(dir), id)


class Session(View):
    """A transaction. It lives in the server; processes share it by its id, by pickling it.

    A key that was read is written only if it still holds what was read; otherwise the
    error is `ChangedError`, and nothing is lost in silence. This holds between threads, too.

    >>> import pickle
    >>> s = repo.writable_session()
    >>> other = pickle.loads(pickle.dumps(s))  # perhaps in another process
    >>> s.set("n", b"1")
    >>> s.get("n"), other.get("n")
    (b'1', b'1')
    >>> other.set("n", b"2")
    >>> s.set("n", b"3")
    Traceback (most recent call last):
    zarrdb._errors.ChangedError: set n: another value was written since this one was read; read again
    """

    def __init__(self, client: Client, op: int, request: dict[str, Any], was: dict[str, Any] | None = None) -> None:
        def open(link: w.Link) -> tuple[w.Link, dict[str, Any]]:
            return link, link.ask(op, request)

        try:
            link, out = client.again(open)
        except NotFoundError as e:
            if was is None or was["saved"] is not None or e.code != "no_ref":
                raise
            id = request["rev"][1:]
            raise SessionLostError(f"session {id}: the process that had it open has ended, and it was never stored", id) from e
        if "session" not in out:
            raise InvalidError(f"{request.get('rev')} is no session")
        super().__init__(client, link, out["view"])
        self._info: dict[str, Any] = out["session"]
        self._seen = Seen()
        self._dirty, self._shared, self._ended = 0, False, False
        self._lost: SessionLostError | None = None
        self._server = _server_of(link)
        self._keys = [threading.Lock() for _ in range(64)]
        if was is not None:
            self._shared = True
            saved = self.saved
            if was["server"] != self._server and (was["saved"] is None or saved is None or saved <= was["saved"]):
                self._lost = self._is_lost("it has ended")

    def _forked(self) -> None:
        super()._forked()
        self._keys = [threading.Lock() for _ in range(64)]
        self._shared = True  # parent and child both write

    # --- what it is

    @property
    def id(self) -> str:
        return str(self._info["id"])

    @property
    def branch(self) -> str:
        return str(self._info["branch"])

    @property
    def base(self) -> str:
        """The commit that the session began from."""
        return str(self._info["base"])

    @property
    def label(self) -> str:
        return str(self._info.get("label", ""))

    @property
    def saved(self) -> datetime | None:
        """When the last savepoint was that this client knows of; None before the first."""
        at = parse_time(self._info["saved"])
        return None if at.year == 1 else at

    @property
    def read_only(self) -> bool:
        return False

    def __repr__(self) -> str:
        state = "ended" if self._ended else "lost" if self._lost else "open"
        return f"<Session {self.id} on {self.branch} of {os.path.basename(self._client.dir)}, {state}>"

    def _repr_html_(self) -> str:
        from ._html import tree

        return tree(self, self._client.dir, "--session", self.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Session) and (self._client.dir, self.id) == (other._client.dir, other.id)

    def __hash__(self) -> int:
        return hash((self._client.dir, self.id))

    @property
    def store(self) -> ZarrdbStore:
        """A store for zarr-python and xarray."""
        from ._store import ZarrdbStore

        return ZarrdbStore(self)

    def __dask_tokenize__(self) -> Any:
        return self._client.dir, self.id, self._dirty  # what is read after a write is another thing

    def __reduce__(self) -> Any:
        self._shared = True  # from now on others write as well
        if not (self.saved or self._dirty or self._ended):
            try:
                self.savepoint()  # else it ends with this client, which may be before another one opens it
            except ZarrdbError:
                pass  # the one that opens it gets the error
        return _session, (self._client.dir, self.id, {"server": self._server, "saved": self.saved})

    # --- connections

    def _reopen(self) -> tuple[w.Link, int]:
        """Open the session on another connection, unless something is lost."""
        if self._lost is not None:
            raise self._lost
        saved = self.id in self._link.saved
        link = self._client.link()
        server = _server_of(link)
        if server != self._server and not saved and (self._dirty or self._shared):
            self._lost = self._is_lost(str(self._link.over))
            raise self._lost
        try:
            out = link.ask(w.OPEN, {"rev": "~" + self.id})
        except NotFoundError as e:
            if e.code != "no_ref" or self.saved is not None:
                raise
            # The server was killed before it stored the session, in which nothing was written.
            again = {"branch": self.branch, "label": self.label, "unsaved": True, "id": self.id, "base": self.base}
            out = link.ask(w.BEGIN, again)
        if server != self._server:
            self._dirty, self._server = 0, server
        self._info = out["session"]
        return link, out["view"]

    def _is_lost(self, why: str) -> SessionLostError:
        return SessionLostError(
            f"session {self.id}: the process that had it open has ended, and what was written to it may be lost; {self._from_there()}: {why}",
            self.id, self.saved,
        )  # fmt: skip

    def _from_there(self) -> str:
        if self.saved is None:
            return "it had no savepoint"
        return f"repo.session(id) goes on from the savepoint of {self.saved:%Y-%m-%d %H:%M:%S}"

    def _at(self) -> tuple[w.Link, int]:
        if self._ended:
            raise SessionClosedError(f"session {self.id} was committed or discarded", "session_closed")
        if self._lost is not None:
            raise self._lost
        return super()._at()

    # --- keys

    def _key(self, key: str) -> threading.Lock:
        return self._keys[hash(key) % 64]

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

    def move(self, source: str, dest: str) -> None:
        """Rename an array or group with all below it. No chunk is copied.

        >>> s = repo.writable_session()
        >>> s.move("t2m", "surface/t2m")
        >>> s.array("surface/t2m").shape
        (4, 6)
        """
        link, handle = self._at()
        try:
            link.ask(w.MOVE, {"view": handle, "from": source.strip("/"), "to": dest.strip("/")})
        except ConnectionLostError as e:
            raise self._unknown("a rename", e) from e
        self._dirty += 1
        self._forget()

    def _forget(self) -> None:
        """Many keys have changed in the server: what was read of them is no condition of a write any more."""
        self._seen.clear()

    # --- the transaction

    def guard(self, *paths: str) -> None:
        """Rely on what was read at and below paths: the commit is a `ConflictError` if somebody
        else has changed it meanwhile, even if this session does not write it.

        >>> s, other = repo.writable_session(), repo.writable_session()
        >>> s.guard("t2m")
        >>> s.set("mean", str(s.array("t2m")[...].mean()).encode())
        >>> other.array("t2m")[0] = 0
        >>> c = other.commit("zero")
        >>> try:
        ...     s.commit("mean")
        ... except zarrdb.ConflictError as e:
        ...     print([(c.path, c.kind) for c in e.conflicts])
        [('t2m/c/0/0', 'guard')]
        """
        clean = [p.strip("/") for p in paths]
        self._again(lambda l, h: l.ask(w.GUARD, {"view": h, "paths": clean}))
        self._dirty += 1

    def rebase(self, *choices: Choice) -> None:
        """Take in what others committed to the branch meanwhile. A conflict is a `ConflictError`, and
        nothing has changed then; choices decide: `rebase(Ours("t2m"), Theirs())`.

        >>> s = repo.writable_session()
        >>> with repo.transaction(message="by another one") as store:
        ...     store.session.set("k", b"1")
        >>> s.get("k") is None
        True
        >>> s.rebase()
        >>> s.get("k")
        b'1'
        """
        link, handle = self._at()
        try:
            self._info = link.ask(w.REBASE, {"view": handle, "choices": _choices(choices)})
        except ConnectionLostError as e:
            raise self._unknown("a rebase", e) from e
        self._dirty += 1
        self._forget()

    def fork(self, label: str = "") -> Session:
        """A session that begins with everything that this one has written. Neither sees what
        the other writes from then on, until `merge`. It pickles like any session.

        >>> s = repo.writable_session()
        >>> forks = [s.fork() for _ in range(2)]
        >>> for i, f in enumerate(forks):
        ...     f.array("t2m")[i] = i
        >>> s.merge(*forks)
        >>> s.array("t2m")[:, 0].tolist()
        [0.0, 1.0, 280.0, 280.0]
        """
        dir, id = self._client.dir, self._again(lambda l, h: l.ask(w.FORK, {"view": h, "label": label}))["session"]["id"]
        return _session(dir, id, None)

    def merge(self, *forks: Session, choices: Sequence[Choice] = ()) -> None:
        """Take in what forks of this session have written, and end them. Where this session, or
        another fork, has changed the same, the error is a `ConflictError`; the forks before that one
        are merged. With choices, `Ours` is this session and `Theirs` the fork."""
        for f in forks:
            link, handle = self._at()
            if f._lost is not None:
                raise f._lost
            try:
                link.ask(w.JOIN, {"view": handle, "session": f.id, "choices": _choices(choices)})
            except ConnectionLostError as e:
                raise self._unknown("a merge", e) from e
            f._ended = True
            self._dirty += 1
            self._forget()

    def _unknown(self, what: str, e: ConnectionLostError) -> SessionLostError:
        self._lost = SessionLostError(
            f"session {self.id}: the connection ended during {what}, which took place or did not; {self._from_there()}: {e}",
            self.id, self.saved,
        )  # fmt: skip
        return self._lost

    def changes(self, prefix: str = "") -> Changes:
        """What the session changed since its base.

        >>> s = repo.writable_session()
        >>> s.array("t2m")[0] = 0
        >>> s.changes().arrays["t2m"].chunks
        1
        """

        def page(skip: int) -> dict[str, Any]:
            ask = {"prefix": prefix, "skip": skip, "limit": PAGE}
            return dict(self._again(lambda l, h: l.ask(w.CHANGES, {"view": h, **ask})))

        return Changes(all_pages(page))

    status = changes

    @property
    def has_uncommitted_changes(self) -> bool:
        return bool(self._again(lambda l, h: l.ask(w.CHANGES, {"view": h, "limit": 1})).get("changes"))

    def savepoint(self) -> datetime:
        """Make everything written so far survive the end of the server."""
        dirty = self._dirty
        self._info = self._again(lambda l, h: l.ask(w.SAVEPOINT, {"view": h}))
        self._dirty -= min(dirty, self._dirty)
        return parse_time(self._info["saved"])

    def commit(
        self,
        message: str = "",
        metadata: dict[str, str] | None = None,
        *,
        author: str = "",
        ours: str | Sequence[str] = (),
        theirs: str | Sequence[str] = (),
        rebase_with: Choice | Sequence[Choice] = (),
        allow_empty: bool = False,
        dry_run: bool = False,
    ) -> Commit:
        """Publish the session as one commit on its branch.

        What others committed meanwhile is merged. Where both changed the same, the error is
        `ConflictError`, and the session goes on; `ours` says for which paths
        ("/" for all) what the branch has is kept, `theirs` for which what the session wrote is taken.
        `rebase_with=Theirs()` says the same.
        """
        decide = list(rebase_with) if isinstance(rebase_with, Sequence) else [rebase_with]
        for kind, paths in ((Ours, ours), (Theirs, theirs)):
            decide += [kind(p) for p in ([paths] if isinstance(paths, str) else paths)]
        choices = _choices(decide)
        link, handle = self._at()
        ask = {
            "view": handle, "message": message, "author": author, "properties": metadata or {},
            "allow_empty": allow_empty, "dry_run": dry_run, "choices": choices,
        }  # fmt: skip
        try:
            out = link.ask(w.COMMIT, ask)
        except ConnectionLostError as e:
            self._lost = SessionLostError(
                f"session {self.id}: the connection ended during a commit; see the log of {self.branch} whether it took place: {e}",
                self.id, self.saved, True,
            )  # fmt: skip
            raise self._lost from e
        if not dry_run:
            self._ended, self._handle = True, 0  # the server has closed it
        return Commit._of(out)

    def discard_changes(self) -> None:
        """Take everything back that was written; the session goes on from its base, without savepoint.
        Processes that have it as well must open it again: `repo.session(id)`.

        >>> s = repo.writable_session()
        >>> s.set("k", b"1")
        >>> s.discard_changes()
        >>> s.has_uncommitted_changes
        False
        """
        link, handle = self._at()
        again = {"branch": self.branch, "label": self.label, "unsaved": True, "id": self.id, "base": self.base}
        try:
            link.ask(w.DISCARD, {"view": handle})
            out = link.ask(w.BEGIN, again)
        except ConnectionLostError as e:
            raise self._unknown("a discard", e) from e
        self._handle, self._info, self._dirty = out["view"], out["session"], 0
        self._forget()

    def discard(self) -> None:
        """End the session without a trace."""
        if self._ended:
            return
        try:
            self._again(lambda l, h: l.ask(w.DISCARD, {"view": h}))
        except (SessionClosedError, SessionLostError):
            pass
        self._ended, self._handle = True, 0  # the server has closed it


@dataclass(frozen=True, init=False)
class Choice:
    """Which side of conflicts at and below paths is taken; no path is all. See `Ours`, `Theirs`."""

    paths: tuple[str, ...]
    _take: ClassVar[str] = ""

    def __init__(self, *paths: str) -> None:
        object.__setattr__(self, "paths", paths or ("/",))


class Ours(Choice):
    """Keep what the branch has, or in a merge of forks what the session has."""

    _take = "ours"


class Theirs(Choice):
    """Take what the session wrote, or in a merge of forks what the fork wrote."""

    _take = "theirs"


def _choices(choices: Sequence[Choice]) -> list[dict[str, str]]:
    return [{"path": p.strip("/"), "take": c._take} for c in choices for p in c.paths]


def _session(dir: str, id: str, was: dict[str, Any] | None) -> Session:
    return Session(Client.of(dir), w.OPEN, {"rev": "~" + id}, was)


def _server_of(link: w.Link) -> str:
    """Names the process at the other end."""
    pid = link.hello.get("pid")
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            return f"{pid} {f.read().rpartition(b')')[2].split()[19].decode()}"  # when it began
    except (OSError, IndexError):
        return str(pid)


__all__ = ["Change", "Changes", "Choice", "Commit", "Ours", "Theirs", "Session", "Snapshot", "View", "ZarrdbError"]
