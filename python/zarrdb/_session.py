"""Transactions, which are written through the server."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from . import _wire as w
from ._changes import Changes, Commit, all_pages, parse_time
from ._client import Client, exit_error
from ._errors import (
    ConflictError,
    ConnectionLostError,
    InvalidError,
    NotFoundError,
    SessionClosedError,
    SessionLostError,
    ZarrdbError,
)
from ._snapshot import Contents, Snapshot
from ._views import PAGE, View, WritableView


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
            raise InvalidError(f"{request.get('rev')} is not a session")
        super().__init__(client, link, out["view"])
        self._info: dict[str, Any] = out["session"]
        self._shared, self._ended = False, False
        self._committing = False  # a commit was sent and not answered
        self._lost: SessionLostError | None = None
        self._server = _server_of(link)
        if was is not None:
            self._shared = True
            saved = self.saved
            if was["server"] != self._server and not was["logged"] and (was["saved"] is None or saved is None or saved <= was["saved"]):
                self._lost = self._is_lost("it has ended")

    def _forked(self) -> None:
        super()._forked()
        self._shared = True  # parent and child both write

    # --- state

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
    def snapshot_id(self) -> str:
        """The base, as Icechunk names it."""
        return self.base

    @property
    def label(self) -> str:
        return str(self._info.get("label", ""))

    @property
    def saved(self) -> datetime | None:
        """When the last savepoint was that this client knows of; None before the first."""
        at = parse_time(self._info["saved"])
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
        self._shared = True  # from now on other processes write as well
        if not (self.saved or self._dirty or self._ended):
            try:
                self.savepoint()  # else it ends with this client, which may be before another one opens it
            except ZarrdbError:
                pass  # the one that opens it gets the error
        return _session, (self._client.dir, self.id, {"server": self._server, "saved": self.saved, "logged": self._logged})

    # --- connections

    def _reopen(self) -> tuple[w.Link, int]:
        """Open the session on another connection, unless something is lost."""
        if self._lost is not None:
            raise self._lost
        saved = self.id in self._link.saved
        link = self._client.link()
        server = _server_of(link)
        written = server != self._server and not saved and (self._dirty or self._shared)
        if written and not self._logged:
            self._lost = self._is_lost(str(self._link.over))
            raise self._lost
        try:
            out = link.ask(w.OPEN, {"rev": self._rev()})
        except NotFoundError as e:
            if e.code != "no_ref" or self.saved is not None:
                raise
            if written and self._dirty or self._committing:
                self._lost = self._is_lost(str(self._link.over))
                raise self._lost from e
            # The server was killed before it stored the session, in which nothing was written.
            again = {"branch": self.branch, "label": self.label, "unsaved": True, "id": self.id, "base": self.base}
            out = link.ask(w.BEGIN, again)
        if server != self._server:
            self._dirty, self._server = 0, server
        self._info = out["session"]
        return link, out["view"]

    @property
    def _logged(self) -> bool:
        """Whether acknowledged writes survive when the server is killed. A server of an earlier version does not say."""
        return bool(self._info.get("logged"))

    def _is_lost(self, why: str) -> SessionLostError:
        return SessionLostError(
            f"session {self.id}: the process that had it open has ended, and writes to it may be lost; {self._from_there()}: {why}",
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

    # --- the transaction

    def drop_front(self, dim: str, first: object, *, path: str = "") -> None:
        """Drop the steps along a dimension before `first`, an index or a label such as a date: from all arrays with the
        dimension in the group at `path` and below. Chunks that stay keep their bytes; arrays that are open have the
        new shape after `refresh`. Where the steps end inside a chunk of a large array, it is an `InvalidError` that names
        the steps that are possible.

        >>> s = repo.writable_session()
        >>> s.drop_front("lat", 2)
        >>> s.array("t2m").shape
        (2, 6)
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
        link, handle = self._at()
        try:
            link.ask(w.MOVE, {"view": handle, "from": source.strip("/"), "to": dest.strip("/")})
        except ConnectionLostError as e:
            raise self._unknown("a rename", e) from e
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
        self._again(lambda l, h: l.ask(w.GUARD, {"view": h, "paths": paths}))
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
        link, handle = self._at()
        try:
            self._info = link.ask(w.REBASE, {"view": handle, "choices": _choices(choices)})
        except ConnectionLostError as e:
            raise self._unknown("a rebase", e) from e
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
        dir, id = self._client.dir, self._again(lambda l, h: l.ask(w.FORK, {"view": h, "label": label}))["session"]["id"]
        return _session(dir, id, None)

    def merge(self, *forks: Session, choices: Sequence[Choice] = ()) -> None:
        """Take in the writes of forks of this session, and end the forks. Where this session, or
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
        """The changes of the session since its base.

        >>> s = repo.writable_session()
        >>> s.array("t2m")[0] = 0
        >>> s.changes().arrays["t2m"].chunks
        1
        """

        def page(skip: int) -> dict[str, Any]:
            ask = {"prefix": prefix, "skip": skip, "limit": PAGE}
            return dict(self._again(lambda l, h: l.ask(w.CHANGES, {"view": h, **ask})))

        return Changes(all_pages(page), None, self._document)

    def _document(self, key: str, old: bool) -> bytes | None:
        if old:
            return Snapshot(self._client, self.base).get(key)
        return bytes(View._read(self, key)[0])  # no condition of later writes

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
        decide = list(rebase_with) if isinstance(rebase_with, Sequence) else [rebase_with]
        for kind, paths in ((Ours, ours), (Theirs, theirs)):
            decide += [kind(p) for p in ([paths] if isinstance(paths, str) else paths)]
        choices = _choices(decide)
        link, handle = self._at()
        ask = {
            "message": message, "author": author, "properties": metadata or {},
            "allow_empty": allow_empty, "dry_run": dry_run, "choices": choices,
        }  # fmt: skip
        try:
            out = link.ask(w.COMMIT, ask | {"view": handle})
        except ConnectionLostError:
            try:  # a session that is still there was not committed
                self._committing = not dry_run
                link, handle = self._at()
                out = link.ask(w.COMMIT, ask | {"view": handle})
            except ConflictError:
                self._committing = False
                raise
            except ZarrdbError as again:
                if dry_run:
                    raise
                out = self._committed(again)
        if not dry_run:
            self._ended, self._handle = True, 0  # the server has closed it
        for text in out.get("warnings", ()):
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        return Commit._of(out)

    def _committed(self, e: ZarrdbError) -> dict[str, Any]:
        """The commit that the session has made, of which no answer came; e is why it cannot be made again."""
        known = False
        try:
            ask = {"Session": self.id, "Branch": self.branch, "Base": self.base}
            found = self._client.query(w.ASK, {"name": "committed", "in": ask})
        except ZarrdbError as unknown:
            known = unknown.code == "no_ref"
        else:
            with suppress(ZarrdbError):
                return dict(self._client.query(w.RESOLVE, {"rev": found["ID"]}))
        self._committing = False
        if known and not isinstance(e, (NotFoundError, SessionClosedError, SessionLostError)):
            raise e  # the session is there
        result = "it did not take place" if known else f"see the log of {self.branch} whether it took place"
        self._lost = SessionLostError(f"session {self.id}: the connection ended during a commit; {result}: {e}", self.id, self.saved, not known)
        raise self._lost from e

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
        self._close_inside(True)
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
    """Keep the value of the branch, or in a merge of forks the value of the session."""

    _take = "ours"


class Theirs(Choice):
    """Take the value of the session, or in a merge of forks the value of the fork."""

    _take = "theirs"


def _choices(choices: Sequence[Choice]) -> list[dict[str, str]]:
    return [{"path": p.strip("/"), "take": c._take} for c in choices for p in c.paths]


def _session(dir: str, id: str, was: dict[str, Any] | None) -> Session:
    return Session(Client.at(dir), w.OPEN, {"rev": "~" + id}, was)


def _server_of(link: w.Link) -> str:
    """Names the process at the other end."""
    if not link.server:
        pid = link.hello.get("pid")
        try:
            with open(f"/proc/{pid}/stat", "rb") as f:
                link.server = f"{pid} {f.read().rpartition(b')')[2].split()[19].decode()}"  # when it began
        except (OSError, IndexError):
            link.server = str(pid)
    return link.server
