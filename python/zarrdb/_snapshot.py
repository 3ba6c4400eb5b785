"""Versions and sessions as arrays, mappings and stores, and versions themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

from . import _engine
from ._changes import Commit
from ._client import Client
from ._errors import InvalidError, NotFoundError, ZarrdbError
from ._target import directory, named
from ._views import PAGE, View

if TYPE_CHECKING:  # numpy and zarr-python are imported only where they are used
    from ._array import Array
    from ._mapping import Mapping
    from ._store import ZarrdbStore


class Contents(View):
    """The forms in which a version or a session gives its contents."""

    def array(self, path: str) -> Array:
        """The array at a path, decoded in this process; see `Array`.

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

    @property
    def store(self) -> ZarrdbStore:
        """A store for zarr-python and xarray."""
        from ._store import ZarrdbStore

        return ZarrdbStore(self)

    def _history(self) -> Iterator[Commit]:
        """The commits that are shown in a notebook."""
        return iter(())

    def _repr_html_(self) -> str:
        from . import _html as h

        shown = h.tree(self)
        try:
            past = h.table([h.code(c.id[:10]), f"{c.time:%Y-%m-%d %H:%M}" if c.time else "", h.text(c.message)] for c in self._history())
        except ZarrdbError:  # a copy may lack old versions
            past = ""
        return f"<div>{shown}{past}</div>"


class Snapshot(Contents):
    """A version. It never changes. It pickles by its commit. It is held, so that `gc` leaves its data, until it is closed
    or nothing refers to it, its arrays and its stores any more.

    >>> with repo.at("main") as snap:
    ...     float(snap.array("t2m")[1, 2])
    280.0
    """

    _closed = False

    def __init__(self, client: Client, rev: str) -> None:
        super().__init__(client, "at", rev)
        self.commit = Commit._of(self._about)

    def _leased(self) -> bool:
        return not self._closed

    def _reopen(self, engine: _engine.Database) -> None:
        self._enter(engine, "at", self.commit.id)

    def _check(self) -> None:
        if self._closed:
            raise InvalidError(f"{self!r} is closed; open the version again with repo.at({self.commit.id[:10]!r})")

    def close(self) -> None:
        """Let the version go at once. Its arrays and stores then raise InvalidError; closing again does nothing."""
        with self._opening:
            self._closed = True
            self._close_inside()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def snapshot_id(self) -> str:
        return self.commit.id

    @property
    def read_only(self) -> bool:
        return True

    def _rev(self) -> str:
        return self.commit.id

    def __reduce__(self) -> Any:
        return _snapshot, (named(self._client.dir), self.commit.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and (self._client.dir, self.commit.id) == (other._client.dir, other.commit.id)

    def __hash__(self) -> int:
        return hash((self._client.dir, self.commit.id))

    def __dask_tokenize__(self) -> Any:
        return named(self._client.dir), self.commit.id

    def __repr__(self) -> str:
        return f"<Snapshot {self.commit.id[:10]} of {os.path.basename(self._client.dir)}: {self.commit.message!r}>"

    def _history(self) -> Iterator[Commit]:
        return ancestry(self._client, self.commit.id, limit=5)

    def _target(self, path: str = "") -> tuple[str, ...]:
        return (f"{self._client.dir}@{self.commit.id}" + (f":{path}" if path else ""),)


def _snapshot(name: str, id: str) -> Snapshot:
    if "://" not in name:
        return Snapshot(Client.at(name), id)
    try:
        return Snapshot(Client.of(directory(name, known=True)), id)
    except NotFoundError:  # it is newer than the cache of this machine
        return Snapshot(Client.of(directory(name)), id)


def ancestry(client: Client, rev: str, path: str = "", limit: int | None = None) -> Iterator[Commit]:
    """A version and its ancestors; see `Repository.ancestry`."""
    skip = 0
    while limit is None or skip < limit:
        out = client.ask("log", {"rev": rev, "path": path, "skip": skip, "limit": PAGE if limit is None else min(PAGE, limit - skip)})
        commits = [Commit._of(c) for c in out["list"] or []]
        yield from commits
        if not commits or not out["more"]:
            return
        if skip == 0 and not path:
            rev = commits[0].id  # a branch may move before the next page
        skip += len(commits)
