"""Appends of datasets that leave gaps or overlap, as `zarrdb import` has them."""

import warnings

import numpy as np
import pytest
import xarray as xr

import zarrdb


def days(first: int, count: int, value: float, step: int = 1) -> xr.Dataset:
    time = np.datetime64("2024-01-01", "ns") + np.arange(first, first + count * step, step) * np.timedelta64(1, "D")
    return xr.Dataset({"t": (("time", "x"), np.full((count, 2), value, "f4"))}, {"time": time, "x": [1, 2]}, {"name": "series"})


@pytest.fixture
def repo(tmp_path):
    with zarrdb.open(tmp_path / "a.zdb", create=True) as repo:
        encoding = {"time": {"units": "hours since 2024-01-01", "dtype": "i8"}}
        zarrdb.to_zarrdb(days(0, 8, 0), repo, encoding=encoding)
        yield repo


def values(repo: zarrdb.Repository, group: str = "") -> list[float]:
    return xr.open_dataset(repo, engine="zarrdb", group=group).t.values[:, 0].tolist()


def test_gap(repo):
    head = repo.lookup_branch("main")
    with pytest.raises(zarrdb.InvalidError, match=r"/time: 216 in the dataset follows 168: that is 2 steps"):
        zarrdb.to_zarrdb(days(9, 2, 1), repo, append_dim="time", strict=True)
    assert repo.lookup_branch("main") == head
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zarrdb.to_zarrdb(days(8, 1, 1), repo, append_dim="time", strict=True)
        zarrdb.to_zarrdb(days(20, 2, 1), repo, append_dim="time", any_order=True)
    with pytest.warns(UserWarning, match="a gap: /time: 576 in the dataset follows"):
        zarrdb.to_zarrdb(days(24, 2, 1), repo, append_dim="time")
    for options, why in (({"strict": True}, "append_dim"), ({"overlap": "x", "append_dim": "time"}, "replace"), ({"strict": True, "any_order": True, "append_dim": "time"}, "exclude")):
        with pytest.raises(zarrdb.InvalidError, match=why):
            zarrdb.to_zarrdb(days(26, 1, 1), repo, **options)


@pytest.mark.parametrize("lazy", [False, True])
def test_replace(repo, lazy):
    ds = days(6, 4, 1).chunk() if lazy else days(6, 4, 1)
    options = {"append_dim": "time", "overlap": "replace"}
    zarrdb.to_zarrdb(ds, repo, strict=True, **options)
    assert values(repo) == [0.0] * 6 + [1.0] * 4
    zarrdb.to_zarrdb(days(1, 2, 2, step=3), repo, **options)  # all are there, apart from each other
    assert values(repo) == [0.0, 2.0, 0.0, 0.0, 2.0, 0.0] + [1.0] * 4
    with pytest.raises(zarrdb.InvalidError, match="steps"):
        zarrdb.to_zarrdb(days(9, 2, 3, step=5), repo, strict=True, **options)
    with pytest.raises(zarrdb.InvalidError, match="x: it differs"):
        zarrdb.to_zarrdb(days(3, 1, 3).assign_coords(x=[1, 3]), repo, **options)
    with pytest.raises(zarrdb.InvalidError, match="twice"):
        zarrdb.to_zarrdb(days(3, 1, 3).isel(time=[0, 0]), repo, **options)
    with pytest.raises(zarrdb.InvalidError, match="does not follow"):
        zarrdb.to_zarrdb(days(-1, 2, 3), repo, **options)
    assert values(repo) == [0.0, 2.0, 0.0, 0.0, 2.0, 0.0] + [1.0] * 4


def test_tree(repo):
    tree = lambda *args: xr.DataTree.from_dict({"/a": days(*args), "/b": days(*args)})
    zarrdb.to_zarrdb(tree(0, 8, 0), repo, group="tree", append_dim="time")
    with pytest.raises(zarrdb.InvalidError, match="/tree/a/time"):
        zarrdb.to_zarrdb(tree(10, 1, 1), repo, group="tree", append_dim="time", strict=True)
    zarrdb.to_zarrdb(tree(7, 2, 1), repo, group="tree", append_dim="time", overlap="replace")
    assert values(repo, "tree/a") == values(repo, "tree/b") == [0.0] * 7 + [1.0] * 2


def test_location_is_allowed(repo, tmp_path):
    import zarr

    (tmp_path / "n.bin").write_bytes(np.full(6, 7, "f4").tobytes())
    s = repo.writable_session()
    zarr.create_array(s.store, name="far", shape=(6,), chunks=(6,), dtype="f4", compressors=None)
    at = {"location": str(tmp_path / "n.bin"), "offset": 0, "length": 24}
    with pytest.raises(zarrdb.ZarrdbError, match="allow"):
        s.store.set_virtual_ref("far/c/0", **at)
    assert s.get("far/c/0") is None
    s.store.set_virtual_ref("far/c/0", validate_container=False, **at)
    repo.allow(str(tmp_path))
    s.store.set_virtual_ref("far/c/0", **at)
    assert s.array("far")[:].tolist() == [7.0] * 6
    s.discard()
