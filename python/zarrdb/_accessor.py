"""The accessor `zarrdb` of xarray's objects. It is there when this package is imported after xarray, or has opened or written something for it."""

from __future__ import annotations

from typing import Any

import xarray


class Accessor:
    """Writes a Dataset, DataArray or DataTree to a database."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def to(self, target: Any, **options: Any) -> Any:
        """Write to a repository, the directory of one, DB@BRANCH:GROUP, or a session: `to_zarrdb`, with its options.

        >>> import xarray as xr, zarrdb._accessor
        >>> ds = xr.Dataset({"pr": ("time", [1.0, 2.0])})
        >>> ds.zarrdb.to(repo, group="rain", message="two days").message
        'two days'
        """
        from ._xarray import to_zarrdb

        return to_zarrdb(self._data, target, **options)


xarray.register_dataset_accessor("zarrdb")(Accessor)
xarray.register_dataarray_accessor("zarrdb")(Accessor)
xarray.register_datatree_accessor("zarrdb")(Accessor)
