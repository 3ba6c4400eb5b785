"""A version or session as a mapping from keys to bytes, which zarr-python 2 takes as a store."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from ._array import cut_off
from ._views import View


class Mapping(MutableMapping[str, bytes]):
    """Keys and bytes. The mapping of a version cannot be written. It pickles with its version or
    session.

    >>> list(repo.at("main").mapping)[:2]
    ['t2m/c/0/0', 't2m/c/1/0']
    >>> s = repo.writable_session()
    >>> s.mapping["k"] = b"1"
    >>> s.mapping["k"]
    b'1'
    """

    def __init__(self, view: View) -> None:
        self.view = view

    def __getitem__(self, key: str) -> bytes:
        value = self.view.get(_checked(key))
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        session = self.view._writable()
        if _checked(key).endswith(".zarray"):
            cut_off(session, key, value, False, True)
        session.set(key, value)

    def __delitem__(self, key: str) -> None:
        if _checked(key) not in self:
            raise KeyError(key)
        self.view._writable().delete(key)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key != "" and self.view.size(key) is not None

    def __iter__(self) -> Iterator[str]:
        return self.view.keys()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def clear(self) -> None:
        self.view._writable().delete_prefix("")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self.view == other.view

    def __hash__(self) -> int:
        return hash(self.view)

    def __dask_tokenize__(self) -> Any:
        return "zarrdb.Mapping", self.view.__dask_tokenize__()

    def __repr__(self) -> str:
        return f"<Mapping of {self.view!r}>"


def _checked(key: str) -> str:
    if not isinstance(key, str) or not key:
        raise KeyError(key)
    return key
