"""zarrdb: a versioned database for Zarr arrays.

`zarrdb.open(path)` opens a database through the process of this machine that has it
open, and starts one where there is none.
"""

from __future__ import annotations

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
    NotFoundError,
    SessionClosedError,
    SessionLostError,
    UnsupportedError,
    VersionError,
    ZarrdbError,
)
from ._repository import Repository, open
from ._views import Change, Changes, Commit, Session, Snapshot

__all__ = [
    "Change", "ChangedError", "Changes", "Commit", "Conflict", "ConflictError", "ConnectionLostError", "CorruptError",
    "DeniedError", "ExistsError", "InvalidError", "LockedError", "NotFoundError", "Repository", "Session",
    "SessionClosedError", "SessionLostError", "Snapshot", "UnsupportedError", "VersionError", "ZarrdbError", "open",
]  # fmt: skip


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
