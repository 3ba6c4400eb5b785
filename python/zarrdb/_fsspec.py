"""Versions as a file system of fsspec: zarrdb://DB@REV:NODE. It is read only.

    >>> import fsspec
    >>> fs, root = fsspec.url_to_fs(f"zarrdb://{repo.path}@main:t2m")
    >>> [name.rpartition("/")[2] for name in fs.ls(root, detail=False)]
    ['c', 'zarr.json']
"""

from __future__ import annotations

import uuid
from typing import Any

from fsspec.spec import AbstractFileSystem  # type: ignore[import-untyped]

from ._client import Client
from ._errors import NotFoundError
from ._snapshot import Snapshot
from ._target import SCHEME, parse


class ZarrdbFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Files are the keys of a version. A branch is resolved once for each instance, also when it is
    unpickled elsewhere; a remote is asked for what is new when an instance reads first.

    `xr.open_zarr(url, chunks=…)` names the arrays of dask by the URL alone: if the URL has a branch, give
    `xr.open_dataset(…, engine="zarrdb")` the target instead.
    """

    protocol = "zarrdb"
    cachable = False  # a branch moves

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._versions: dict[tuple[str, str], Snapshot] = {}
        self._id = uuid.uuid4().hex

    # Instances that have resolved a branch at different times are not equal. One that is unpickled
    # reads the same versions, and is equal.

    def __reduce__(self) -> Any:
        return _unpickled, (type(self), self.storage_options, self._versions, self._id)

    @property
    def _fs_token(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._id

    def __repr__(self) -> str:  # fsspec names wrappers by this
        return f"<ZarrdbFileSystem {self._id}>"

    __str__ = __repr__

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(p) for p in path]
        return str(path).removeprefix(SCHEME).rstrip("/")

    def unstrip_protocol(self, name: str) -> str:
        return f"{SCHEME}{self._strip_protocol(name)}"

    def _at(self, path: str) -> tuple[Snapshot, str]:
        try:
            dir, rev, key = parse(self._strip_protocol(path), again=not self._versions)
            if (dir, rev) not in self._versions:
                self._versions[dir, rev] = Snapshot(Client.of(dir), rev)
        except NotFoundError as e:
            raise FileNotFoundError(str(e)) from e
        return self._versions[dir, rev], key

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        v, key = self._at(path)
        if (start or 0) < 0 or (end or 0) < 0:
            size = self.info(path)["size"]
            start, end = (n + size if n is not None and n < 0 else n for n in (start, end))
        out = v.get(key) if start is None and end is None else v.get_part(key, start, end)
        if out is None:
            raise FileNotFoundError(path)
        return out

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        v, key = self._at(path)
        size = v.size(key) if key else None
        if size is not None:  # fsspec names contents by all of this
            return {"name": path, "size": size, "type": "file", "commit": v.commit.id}
        if not key or next(v.keys(key + "/"), None) is not None:
            return {"name": path, "size": 0, "type": "directory", "commit": v.commit.id}
        raise FileNotFoundError(path)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip_protocol(path)
        v, key = self._at(path)
        names = list(v.children(key + "/" if key else ""))
        if not names and key:
            return [self.info(path)] if detail else [self.info(path)["name"]]
        full = [f"{path}/{n.removesuffix('/')}" for n in names]
        if not detail:
            return full
        return [
            {"name": f, "size": 0, "type": "directory", "commit": v.commit.id} if n.endswith("/") else self.info(f) for n, f in zip(names, full, strict=True)
        ]

    def _open(self, path: str, mode: str = "rb", block_size: Any = None, autocommit: Any = True, cache_options: Any = None, **_: Any) -> Any:
        import io

        if mode != "rb":
            raise _read_only(path)
        return io.BytesIO(self.cat_file(path))

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        raise _read_only(path)

    def _rm(self, path: Any) -> None:
        raise _read_only(path)


def _read_only(path: Any) -> PermissionError:
    """The error of a write or deletion below a URL. It says how to write there."""
    target = str(path).removeprefix(SCHEME)
    try:
        dir, rev, _ = parse(target, again=False)
    except NotFoundError:
        dir, rev = target, "main"
    return PermissionError(
        f"{target}: versions are read only. Write a dataset with zarrdb.to_zarrdb(ds, {f'{dir}@{rev}'!r}), with mode=\"w\" to replace the stored one, "
        f"or other things into zarrdb.open({dir!r}).writable_session({rev!r}).store, and commit the session"
    )


def _unpickled(kind: type[ZarrdbFileSystem], options: dict[str, Any], versions: dict[tuple[str, str], Snapshot], id: str) -> ZarrdbFileSystem:
    fs = kind(**options)
    fs._versions, fs._id = versions, id
    return fs
