"""Names of Icechunk for what means the same here, as methods of `Repository` and `ZarrdbStore`. The table in
docs/guide/coming-from.md, with the names that are the same from the start, is run against Icechunk."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from . import _engine
from ._changes import Commit
from ._errors import UnsupportedError


def lookup_snapshot(self: Any, snapshot_id: str | Commit) -> Commit:
    """The commit with an id, as `resolve`.

    >>> repo.lookup_snapshot(repo.lookup_branch("main")).message
    'first'
    """
    commit: Commit = self.resolve(snapshot_id)
    return commit


def garbage_collect(self: Any, delete_object_older_than: datetime | None = None, *, dry_run: bool = False) -> Any:
    """The same as `gc`. The age is not needed and not used: gc knows what sessions and readers use.

    >>> repo.garbage_collect()["stopped"]
    False
    """
    return self.gc(dry_run=dry_run)


def expire_snapshots(
    self: Any, older_than: datetime, *, delete_expired_branches: bool = False, delete_expired_tags: bool = False
) -> Any:
    """The same as `expire`, which returns counts. Heads of branches, and tags, stay.

    >>> from datetime import datetime, timezone
    >>> repo.expire_snapshots(datetime.now(timezone.utc))["expired"]
    1
    """
    if delete_expired_branches or delete_expired_tags:
        raise UnsupportedError("expire keeps branches and tags: delete those that are old with delete_branch and delete_tag first")
    return self.expire(older_than)


@dataclass(frozen=True)
class VirtualChunkSpec:
    """A chunk that is bytes of a file or object elsewhere, see `ZarrdbStore.set_virtual_refs`."""

    index: Sequence[int]
    location: str
    offset: int
    length: int
    etag_checksum: str | None = None
    last_updated_at_checksum: datetime | None = None


def set_virtual_ref(
    self: Any, key: str, location: str, *, offset: int, length: int, checksum: str | datetime | None = None, validate_container: bool = True
) -> None:
    """Let the value of a key be bytes of a file or object, which stay where they are. Reading them must be allowed, see
    `Repository.allow`; only without `validate_container` a location is taken that is not. If the bytes change later, which an
    entity tag or a time as `checksum` tells, reading is an error.

    >>> n = open("numbers.bin", "wb").write(np.full(6, 7, "f4").tobytes())
    >>> s = repo.writable_session()
    >>> a = zarr.create_array(s.store, name="far", shape=(6,), chunks=(6,), dtype="f4", compressors=None)
    >>> repo.allow(os.getcwd())
    >>> s.store.set_virtual_ref("far/c/0", os.path.abspath("numbers.bin"), offset=0, length=24)
    >>> s.array("far")[:2].tolist()
    [7.0, 7.0]
    """
    _refer(self, [(key, location, offset, length, checksum)], validate_container)


def set_virtual_refs(self: Any, array_path: str, chunks: Iterable[Any], *, validate_containers: bool = True) -> None:
    """`set_virtual_ref` for chunks of an array, which are each a `VirtualChunkSpec` of this package or of Icechunk."""
    import zarr

    name = zarr.open_array(self, path=array_path.strip("/"), mode="r").metadata.encode_chunk_key
    below = array_path.strip("/") + "/" if array_path.strip("/") else ""
    refs = [(below + name(tuple(c.index)), c.location, c.offset, c.length, c.etag_checksum or c.last_updated_at_checksum) for c in chunks]
    _refer(self, refs, validate_containers)


def _refer(store: Any, refs: list[tuple[str, str, int, int, str | datetime | None]], allowed: bool) -> None:
    session, items = store._writer, []
    for key, url, offset, length, check in refs:
        how = {"modified": check.timestamp()} if isinstance(check, datetime) else {"etag": check or ""}
        items.append({"key": key, "url": url, "offset": offset, "length": length, "anywhere": not allowed, **how})
    session._inside(lambda view: _engine.call(_engine.SET_VIRTUAL, view.number, b"", json.dumps(items).encode()))
    session._dirty += 1
    for key, *_ in refs:
        session._seen.pop(key, None)
