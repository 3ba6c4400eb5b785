"""zarrdb: a versioned database for Zarr arrays.

`zarrdb.open(path)` opens a database through the process of this machine that has it
open, and starts one where there is none.

    >>> import zarrdb
    >>> repo = zarrdb.open("example.zdb", create=True)
    >>> s = repo.writable_session()
    >>> s.set("notes", b"first")
    >>> s.commit("add notes").message
    'add notes'
    >>> repo.at("main").get("notes")
    b'first'

Examples of this package have a `repo` with an array t2m of 4 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._accessor import register as _register
from ._changes import ArrayChange, Change, Changes, Commit, Values
from ._errors import (
    ChangedError,
    Conflict,
    ConflictError,
    ConnectionLostError,
    CorruptError,
    DeniedError,
    ExistsError,
    InvalidError,
    LockedError,
    MovedError,
    NotFoundError,
    SessionClosedError,
    SessionLostError,
    UnsupportedError,
    VersionError,
    ZarrdbError,
)
from ._guard import install as _protect
from ._icechunk import VirtualChunkSpec
from ._progress import Progress, progress_bar
from ._repository import Repository, clone, open
from ._session import Choice, Ours, Session, Theirs
from ._snapshot import Snapshot

if TYPE_CHECKING:
    from ._array import Array as Array
    from ._store import ZarrdbStore as ZarrdbStore
    from ._xarray import to_zarrdb as to_zarrdb

__all__ = [
    "ArrayChange", "Change", "ChangedError", "Changes", "Choice", "Commit", "Conflict", "ConflictError",
    "ConnectionLostError", "CorruptError", "DeniedError", "ExistsError", "InvalidError", "LockedError", "MovedError",
    "NotFoundError", "Ours", "Progress", "Repository", "Session", "SessionClosedError", "SessionLostError", "Snapshot", "Theirs",
    "UnsupportedError", "Values", "VersionError", "VirtualChunkSpec", "ZarrdbError",
    "array", "clone", "open", "progress_bar",
]  # fmt: skip

_protect()
_register()


def array(view: Session | Snapshot, path: str) -> Array:
    """The array at a path of a version or session, decoded in this process."""
    return view.array(path)


def __getattr__(name: str) -> object:
    if name == "ZarrdbStore":  # zarr-python, xarray and numpy are imported only where they are used
        from ._store import ZarrdbStore

        return ZarrdbStore
    if name == "Array":
        from ._array import Array

        return Array
    if name == "to_zarrdb":
        from ._xarray import to_zarrdb

        return to_zarrdb
    raise AttributeError(f"module 'zarrdb' has no attribute {name!r}")
