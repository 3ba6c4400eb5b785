"""xarray's own tests of its Zarr backend, with sessions as stores and through engine="zarrdb".

xarray ships them. Those that cannot hold are taken out below, each with the reason.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import xarray as xr
from xarray.tests.test_backends import TestDataArrayToZarr as DataArrays
from xarray.tests.test_backends import TestZarrRegionAuto as RegionAuto
from xarray.tests.test_backends import ZarrBase, default_zarr_format

import zarrdb
from zarrdb import codecs

__all__ = ["default_zarr_format"]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zarrdb.Repository]:
    with zarrdb.open(tmp_path_factory.mktemp("xarray") / "suite.zdb", create=True) as repo:
        yield repo


@pytest.fixture
def tmp_store(database: zarrdb.Repository) -> Iterator[Any]:
    """In the place of xarray's, which is a directory or a zip file."""
    s = database.writable_session()
    yield s.store
    s.discard()


# Chunks of dask share chunks of the array here. The tests want no error, whatever is lost. With our pipeline
# nothing is lost; without it, as for arrays of v2 without fill value, it is a ChangedError.
UNSAFE = ("test_shard_encoding_with_dask", "test_chunk_encoding_with_dask", "test_zarr_region_chunk_partial_offset")


class Sessions:
    @pytest.fixture(autouse=True)
    def _database(self, database: zarrdb.Repository) -> None:
        self.repo = database

    @pytest.fixture(autouse=True)
    def _pipeline(self, request: pytest.FixtureRequest) -> Iterator[None]:
        unsafe = request.node.originalname in UNSAFE
        if unsafe and request.node.callspec.params.get("default_zarr_format") == 2:
            pytest.skip("writes of dask to the same chunk are refused")
        with codecs.use() if unsafe else contextlib.nullcontext():
            yield

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
