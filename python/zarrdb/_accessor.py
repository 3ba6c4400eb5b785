"""The accessor `zarrdb` of xarray's objects. It is there when this package was imported after xarray, or has opened a database since."""

from __future__ import annotations

import sys
from typing import Any


class Accessor:
    """Writes a Dataset, DataArray or DataTree to a database."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def to(self, target: Any, **options: Any) -> Any:
        """Write to a repository, the directory of one, DB@BRANCH:GROUP, or a session: `to_zarrdb`, with its options.

        >>> import xarray as xr
        >>> ds = xr.Dataset({"pr": ("time", [1.0, 2.0])})
        >>> ds.zarrdb.to(repo, group="rain", message="two days").message
        'two days'
        """
        import zarrdb

        return zarrdb.to_zarrdb(self._data, target, **options)


def register() -> None:
    """Register the accessor if xarray is imported."""
    xarray: Any = sys.modules.get("xarray")
    if hasattr(xarray, "register_datatree_accessor") and not hasattr(xarray.Dataset, "zarrdb"):
        for of in (xarray.register_dataset_accessor, xarray.register_dataarray_accessor, xarray.register_datatree_accessor):
            of("zarrdb")(Accessor)
