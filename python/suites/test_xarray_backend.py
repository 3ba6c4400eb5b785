"""xarray's own tests of its Zarr backend, with sessions as stores and through engine="zarrdb".

xarray ships them. Those that cannot hold are taken out below, each with the reason.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import xarray as xr
from xarray.tests.test_backends import TestDataArrayToZarr as DataArrays
from xarray.tests.test_backends import TestZarrRegionAuto as RegionAuto
from xarray.tests.test_backends import ZarrBase, default_zarr_format

import zarrdb

__all__ = ["default_zarr_format"]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zarrdb.Repository]:
    repo = zarrdb.open(tmp_path_factory.mktemp("xarray") / "suite.zdb", create=True)
    yield repo
    os.kill(repo._client.link().hello["pid"], signal.SIGTERM)


@pytest.fixture
def tmp_store(database: zarrdb.Repository) -> Iterator[Any]:
    """In the place of xarray's, which is a directory or a zip file."""
    s = database.writable_session()
    yield s.store
    s.discard()


class Sessions:
    @pytest.fixture(autouse=True)
    def _database(self, database: zarrdb.Repository) -> None:
        self.repo = database

    @contextlib.contextmanager
    def create_zarr_target(self) -> Iterator[Any]:
        s = self.repo.writable_session()
        try:
            yield s.store
        finally:
            s.discard()


class TestStore(Sessions, ZarrBase):
    # They write a directory, not the store.
    test_append_write: Any = None
    test_append_overwrite_values: Any = None


class TestStoreRegionAuto(Sessions, RegionAuto):
    pass


class TestStoreDataArrays(DataArrays):
    pass


class TestEngine(TestStore):
    """Read through engine="zarrdb"."""

    @contextlib.contextmanager
    def open(self, path: Any, **kwargs: Any) -> Iterator[xr.Dataset]:
        with xr.open_dataset(path, engine="zarrdb", **kwargs, **self.version_kwargs) as ds:
            yield ds
