"""Transactions, which are in the process that has the database open."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from . import _engine
from ._changes import Changes, Commit, all_pages, parse_time
from ._client import Client, exit_error
from ._errors import NotFoundError, SessionClosedError, SessionLostError, ZarrdbError
from ._snapshot import Contents, Snapshot
from ._views import PAGE, View, WritableView

T = TypeVar("T")


class Session(Contents, WritableView):
    """A transaction. It lives in the server; a pickled session is its id, by which processes share it.

    A key that was read is written only if it still holds the value read; otherwise the error is
    `ChangedError`, and nothing is lost in silence. This holds between threads, too.

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

    def __init__(self, client: Client, name: str, arg: Any, stored: bool = True) -> None:
        self._ended = False
        self._lost: SessionLostError | None = None
        try:
            super().__init__(client, name, arg)
        except NotFoundError as e:
            if stored or e.code != "no_ref":
                raise
            raise SessionLostError(f"session {arg}: the process that had it open has ended, and it was never stored", arg) from e

    # --- state

    @property
    def id(self) -> str:
        return str(self._about["id"])

    @property
    def branch(self) -> str:
        return str(self._about["branch"])

    @property
    def base(self) -> str:
        """The commit that the session began from."""
        return str(self._about["base"])

    @property
    def snapshot_id(self) -> str:
        """The base, as Icechunk names it."""
        return self.base

    @property
    def label(self) -> str:
        return str(self._about.get("label", ""))

    @property
    def saved(self) -> datetime | None:
        """When the last savepoint was that this client knows of; None before the first."""
        at = parse_time(self._about["saved"])
        return None if at.year == 1 else at

    def __repr__(self) -> str:
        state = "ended" if self._ended else "lost" if self._lost else "open"
        return f"<Session {self.id} on {self.branch} of {os.path.basename(self._client.dir)}, {state}>"

    def _target(self, path: str = "") -> tuple[str, ...]:
        return f"{self._client.dir}:{path}" if path else self._client.dir, "--session", self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Session) and (self._client.dir, self.id) == (other._client.dir, other.id)

    def __hash__(self) -> int:
        return hash((self._client.dir, self.id))

    def __dask_tokenize__(self) -> Any:
        # No two tokens are alike: another process may have written between them.
        return self._client.dir, self.id, uuid.uuid4().hex

    def __reduce__(self) -> Any:
        if not (self.saved or self._dirty or self._ended):
            try:
                self.savepoint()  # else it ends with this client, which may be before another one opens it
            except ZarrdbError:
                pass  # the one that opens it gets the error
        return _session, (self._client.dir, self.id, self.saved is not None)

    # --- the library

    def _reopen(self, engine: _engine.Database) -> None:
        try:
            self._about = self._enter(engine, "resume", self.id)
        except NotFoundError as e:
            if e.code != "no_ref" or self.saved is not None or self._dirty:
                raise
            self._about = self._begin_again(engine)  # it has ended before it was stored, and nothing was written in it

    def _begin_again(self, engine: _engine.Database) -> Any:
        return self._enter(engine, "begin", {"branch": self.branch, "label": self.label, "id": self.id, "base": self.base})

    def _check(self) -> None:
        if self._ended:
            raise SessionClosedError(f"session {self.id} was committed or discarded", "session_closed")
        if self._lost is not None:
            raise self._lost

    def _inside(self, fn: Callable[[_engine.Handle], T]) -> T:
        try:
            return super()._inside(fn)
        except SessionLostError as e:
            if not e.committing:  # else another commit asks what has become of the first one
                self._lost = e
            raise

    # --- the transaction

    def drop_front(self, dim: str, first: object, *, path: str = "") -> None:
        """Drop the steps along a dimension before `first`, an index or a label such as a date: from all arrays with the
        dimension in the group at `path` and below. Chunks that stay keep their bytes; arrays that are open have the
        new shape after `refresh`. Where the steps end inside a chunk of a large array, it is an `InvalidError` that names
        the steps that are possible.

        >>> s = repo.writable_session()
        >>> a = zarr.create_array(s.store, name="rain", data=np.arange(4), chunks=(1,), dimension_names=["day"])
        >>> s.drop_front("day", 2)
        >>> s.array("rain")[:].tolist()
        [2, 3]
        """
        self._at()  # it is an error if it was committed
        target = f"{self._client.dir}:{path.strip('/')}"
        code, _, err = self._client.run("resize", target, f"--drop-front={dim}={first}", "--session", self.id)
        self._dirty += 1
        self._forget()
        if code != 0:
            raise exit_error(code, err)

    def move(self, source: str, dest: str) -> None:
        """Rename an array or group with all below it. No chunk is copied.

        >>> s = repo.writable_session()
        >>> s.move("t2m", "surface/t2m")
        >>> s.array("surface/t2m").shape
        (4, 6)
        """
        self._ask("move", {"from": source.strip("/"), "to": dest.strip("/")})
        self._dirty += 1
        self._forget()

    def _forget(self) -> None:
        """Many keys have changed in the server: values read before are no condition of a write any more."""
        self._seen.clear()

    def guard(self, *paths: str) -> None:
        """Rely on the values at and below paths: the commit is a `ConflictError` if another commit
        has changed them meanwhile, even if this session does not write them.

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
        self._guard([p.strip("/") for p in paths])

    def _guard(self, paths: list[str]) -> None:
        """Guard paths and keys. One that ends in a slash is a group of which the members are guarded."""
        self._ask("guard", paths)
        self._dirty += 1

    def rebase(self, *choices: Choice) -> None:
        """Merge the commits that were made to the branch meanwhile. A conflict is a `ConflictError`,
        and nothing has changed then; choices decide: `rebase(Ours("t2m"), Theirs())`.

        >>> s = repo.writable_session()
        >>> with repo.transaction(message="by another one") as store:
        ...     store.session.set("k", b"1")
        >>> s.get("k") is None
        True
        >>> s.rebase()
        >>> s.get("k")
        b'1'
        """
        self._about = self._ask("rebase", _choices(choices))
        self._dirty += 1
        self._forget()

    def fork(self, label: str = "") -> Session:
        """A session that begins with all writes of this session. Neither sees later writes of the
        other, until `merge`. A `commit` of the fork has the changes that were made in the fork, and
        leaves out the writes before it. A fork pickles like any session.

        >>> s = repo.writable_session()
        >>> forks = [s.fork() for _ in range(2)]
        >>> for i, f in enumerate(forks):
        ...     f.array("t2m")[i] = i
        >>> s.merge(*forks)
        >>> s.array("t2m")[:, 0].tolist()
        [0.0, 1.0, 280.0, 280.0]
        """
        opened = _engine.Handle()
        made = self._inside(lambda view: _engine.ask(view, "fork", label, opened))
        return Session(self._client, "resume", made["id"])

    def merge(self, *forks: Session, choices: Sequence[Choice] = ()) -> None:
        """Take in the writes of forks of this session, and end the forks. Where this session, or
        another fork, has changed the same, the error is a `ConflictError`; the forks before that one
        are merged. With choices, `Ours` is this session and `Theirs` the fork."""
        decide = _choices(choices)
        for f in forks:
            join = lambda fork: self._ask("join", {"fork": fork.number, "choices": decide})
            f._inside(join)
            f._ended = True
            self._dirty += 1
            self._forget()

    def changes(self, prefix: str = "") -> Changes:
        """The changes of the session since its base.

        >>> s = repo.writable_session()
        >>> s.array("t2m")[0] = 0
        >>> s.changes().arrays["t2m"].chunks
        1
        """

        def page(skip: int) -> dict[str, Any]:
            return dict(self._ask("changes", {"prefix": prefix, "skip": skip, "limit": PAGE}))

        return Changes(all_pages(page), None, self._document)

    def _document(self, key: str, old: bool) -> bytes | None:
        if old:
            return Snapshot(self._client, self.base).get(key)
        return bytes(View._read(self, key)[0])  # no condition of later writes

    status = changes

    @property
    def has_uncommitted_changes(self) -> bool:
        return bool(self._ask("changes", {"limit": 1})["list"])

    def savepoint(self) -> datetime:
        """Make everything written so far survive the end of the server."""
        self._about = self._ask("savepoint")
        return parse_time(self._about["saved"])

    def commit(
        self,
        message: str = "",
        metadata: dict[str, str] | None = None,
        *,
        author: str = "",
        ours: str | Sequence[str] = (),
        theirs: str | Sequence[str] = (),
        rebase_with: Choice | Sequence[Choice] | None = None,
        rebase_tries: int = 1000,
        allow_empty: bool = False,
        dry_run: bool = False,
    ) -> Commit:
        """Publish the session as one commit on its branch.

        Commits made meanwhile are merged. Where both changed the same, the error is `ConflictError`,
        and the session goes on; `ours` are the paths ("/" for all) where the value of the branch is
        kept, `theirs` the paths where the value of the session is taken. `rebase_with=Theirs()`
        says the same. `rebase_tries` is not used: a commit has one turn, in which the branch stays.
        """
        for name, value in (metadata or {}).items():
            if not isinstance(value, str):
                raise TypeError(f"metadata {name!r} is of type {type(value).__name__}: metadata has texts only; json.dumps makes one of any value")
        decide = list(rebase_with) if isinstance(rebase_with, Sequence) else [rebase_with] if rebase_with else []
        for kind, paths in ((Ours, ours), (Theirs, theirs)):
            decide += [kind(p) for p in ([paths] if isinstance(paths, str) else paths)]
        out = self._ask("commit", {
            "message": message, "author": author, "properties": metadata or {},
            "allow_empty": allow_empty, "dry_run": dry_run, "choices": _choices(decide),
        })  # fmt: skip
        if not dry_run:
            self._ended, self._within = True, None
        for text in out.get("warnings", ()):
            warnings.warn(text, RuntimeWarning, stacklevel=2)
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
        self._ask("discard")
        self._about, self._dirty = self._client.using(self._begin_again), 0
        self._forget()

    def discard(self) -> None:
        """End the session without a trace."""
        if self._ended:
            return
        try:
            self._ask("discard")
        except (SessionClosedError, SessionLostError):
            pass
        self._ended, self._within = True, None


@dataclass(frozen=True, init=False)
class Choice:
    """Which side of conflicts at and below paths is taken; no path is all. See `Ours`, `Theirs`."""

    paths: tuple[str, ...]
    _take: ClassVar[str] = ""

    def __init__(self, *paths: str) -> None:
        object.__setattr__(self, "paths", paths or ("/",))


class Ours(Choice):
    """Keep the value of the branch, or in a merge of forks the value of the session."""

    _take = "ours"


class Theirs(Choice):
    """Take the value of the session, or in a merge of forks the value of the fork."""

    _take = "theirs"


def _choices(choices: Sequence[Choice]) -> list[dict[str, str]]:
    return [{"path": p.strip("/"), "take": c._take} for c in choices for p in c.paths]


def _session(dir: str, id: str, stored: bool) -> Session:
    return Session(Client.at(dir), "resume", id, stored)
