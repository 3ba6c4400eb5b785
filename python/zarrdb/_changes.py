"""Commits, and what changed between versions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ._errors import InvalidError


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
    def metadata(self) -> dict[str, str]:
        """The properties, as Icechunk names them."""
        return self.properties

    @property
    def parent_id(self) -> str | None:
        """The first parent."""
        return self.parents[0] if self.parents else None

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


class _Nodes:
    """The paths of arrays or groups of which the metadata are in the older version, in the newer one, or in both."""

    def __init__(self, kind: str, old: bool, new: bool) -> None:
        self._kind, self._where = kind, (old, new)

    def __get__(self, changes: Changes, _: object) -> set[str]:
        found = (c for c in changes or () if c.chunk is None and (c.old is not None, c.new is not None) == self._where)
        return {"/" + c.key.rpartition("/")[0] for c in found if changes._kind(c.key, c.new is None) == self._kind}


class Changes(list[Change]):
    """What differs between two versions."""

    def __init__(
        self, changes: Iterable[Change] = (), compare: Callable[[str], list[Values]] | None = None, read: Callable[[str, bool], bytes | None] | None = None
    ) -> None:
        super().__init__(changes)
        self._compare = compare
        self._read = read  # reads a key of the newer version, or with True of the older one

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

    new_arrays, new_groups = _Nodes("array", False, True), _Nodes("group", False, True)
    deleted_arrays, deleted_groups = _Nodes("array", True, False), _Nodes("group", True, False)
    updated_arrays, updated_groups = _Nodes("array", True, True), _Nodes("group", True, True)  # with other metadata

    @property
    def updated_chunks(self) -> dict[str, list[list[int]]]:
        """The chunks that differ, by path. This and the sets of nodes have a slash before each path, as in Icechunk.

        >>> s = repo.writable_session()
        >>> a = zarr.create_array(s.store, name="new", shape=(2,), dtype="i4")
        >>> s.array("t2m")[0] = 0
        >>> d = s.status()
        >>> d.new_arrays, d.updated_chunks, d.is_empty()
        ({'/new'}, {'/t2m': [[0, 0]]}, False)
        """
        out: dict[str, list[list[int]]] = {}
        for c in self:
            if c.chunk is not None:
                out.setdefault("/" + c.array, []).append(list(c.chunk))
        return out

    def is_empty(self) -> bool:
        return not self

    def _kind(self, key: str, old: bool) -> str:
        """Whether a metadata document is of an array or a group. `zarr.json` is read for it."""
        name = key.rpartition("/")[2]
        if name != "zarr.json" or self._read is None:
            return {".zarray": "array", ".zgroup": "group"}.get(name, "")
        doc = self._read(key, old)
        return str(json.loads(doc).get("node_type")) if doc else ""

    def __reduce__(self) -> Any:
        return Changes, (list(self), self._compare, self._read)

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
        changes = out["list"] or []
        for c in changes:
            yield Change._of(c)
        skip += len(changes)
        if not out["more"] or not changes:
            return
