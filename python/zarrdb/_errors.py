"""What can go wrong. Every failure of the database is a `ZarrdbError`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


class ZarrdbError(Exception):
    """A failure. `code` is a code of docs/protocol.md."""

    def __init__(self, message: str, code: str = "internal") -> None:
        super().__init__(message)
        self.code = code

    def __str__(self) -> str:
        return str(self.args[0])


class NotFoundError(ZarrdbError, LookupError):
    """There is no such database, branch, tag, version, session, array or group."""


class ExistsError(ZarrdbError):
    """The name is taken."""


class DeniedError(ZarrdbError, PermissionError):
    """This user may not do that, or it is never allowed."""


class InvalidError(ZarrdbError, ValueError):
    """The request makes no sense as it is."""


class UnsupportedError(ZarrdbError, NotImplementedError):
    """The process that has the database open cannot do that."""


class CorruptError(ZarrdbError):
    """Stored bytes are damaged."""


class LockedError(ZarrdbError):
    """Another process has the database open and does not serve it."""


class MovedError(ZarrdbError):
    """The directory of the database was moved, removed or replaced while it was open. Open it again."""


class VersionError(ZarrdbError):
    """The process that has the database open speaks another protocol."""


class ConnectionLostError(ZarrdbError, ConnectionError):
    """The connection has ended, and the result of the request is not known."""


class SessionClosedError(ZarrdbError):
    """The session was committed or discarded."""


class SessionLostError(ZarrdbError):
    """Writes to a session after its last savepoint are lost, since a server of an
    earlier version was killed, or it is not known whether a commit has taken place.

    `session` is its id, `saved` the time of the savepoint. `committing` says that a
    commit was under way: it is in the log of the branch, or it is not.
    """

    def __init__(self, message: str, session: str = "", saved: Any = None, committing: bool = False) -> None:
        super().__init__(message, "lost")
        self.session, self.saved, self.committing = session, saved, committing

    def __reduce__(self) -> Any:
        return type(self), (self.args[0], self.session, self.saved, self.committing)


@dataclass(frozen=True)
class Conflict:
    """One reason why a commit or merge was refused."""

    kind: str
    path: str
    chunk: tuple[int, ...] | None = None
    field: str = ""
    base: str = ""
    ours: str = ""
    theirs: str = ""
    same: bool = False
    also: tuple[str, ...] = ()
    """Other paths of the same thing; a choice for any of them decides the conflict."""

    @classmethod
    def _of(cls, o: dict[str, Any]) -> Conflict:
        chunk = o.get("chunk", o.get("coords"))
        return cls(
            o["kind"], o["path"], None if chunk is None else tuple(chunk), o.get("field", ""),
            o.get("base", ""), o.get("ours", ""), o.get("theirs", ""), o.get("same", False),
            tuple(o.get("also") or ()),
        )  # fmt: skip


class ConflictError(ZarrdbError):
    """The branch has gone on, and both sides changed the same: see `conflicts`."""

    def __init__(self, message: str, conflicts: list[Conflict] | None = None, branch: str = "") -> None:
        super().__init__(message, "conflict")
        self.conflicts, self.branch = conflicts or [], branch

    def __reduce__(self) -> Any:
        return type(self), (self.args[0], self.conflicts, self.branch)


class ChangedError(ZarrdbError):
    """Somebody else has written `key` since this client read it; nothing was written."""

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message, "changed")
        self.key = key

    def __reduce__(self) -> Any:
        return type(self), (self.args[0], self.key)


_kinds: dict[str, type[ZarrdbError]] = {
    **dict.fromkeys(("not_found", "no_database", "no_ref", "expired", "shallow", "no_node"), NotFoundError),
    **dict.fromkeys(("ref_exists", "node_exists"), ExistsError),
    **dict.fromkeys(("denied", "read_only", "protected", "forbidden"), DeniedError),
    **dict.fromkeys(("corrupt", "corrupt_data", "metadata"), CorruptError),
    **dict.fromkeys(
        ("ref_name", "node_kind", "range", "too_large", "zarr_too_large", "invalid_key", "path", "selection", "type", "invalid"),
        InvalidError,
    ),
    "unsupported": UnsupportedError,
    "version": VersionError,
    "moved": MovedError,
    "gone": ConnectionLostError,
    "locked": LockedError,
    "session_closed": SessionClosedError,
}


def failure(meta: dict[str, Any]) -> ZarrdbError:
    """The exception for a failure that the other side sent."""
    code, message = meta.get("code", "internal"), meta.get("message", "")
    if code == "conflict":
        return ConflictError(message, [Conflict._of(c) for c in meta.get("conflicts") or []], meta.get("branch", ""))
    if code == "changed":
        key = meta.get("key", "")
        return ChangedError(message or f"{key}: somebody else has written it meanwhile", key)
    if code == "lost":
        saved = datetime.fromisoformat(meta.get("saved") or "0001-01-01")
        return SessionLostError(message, meta.get("session", ""), saved if saved.year > 1 else None, meta.get("committing", False))
    if code == "forbidden":
        message += " (see Repository.allow)"
    return _kinds.get(code, ZarrdbError)(message, code)
