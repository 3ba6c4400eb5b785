"""Numbers that the stored type cannot hold, and appends beside other commits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import zarrdb

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
DAYS = np.arange("2020-01-01", "2020-01-09", dtype="M8[D]").astype("M8[ns]")
PACKED = {
    "t": {"dtype": "i2", "scale_factor": 0.5, "add_offset": 200.0, "chunks": (4, 2)},
    "time": {"chunks": (4,), "units": "days since 2020-01-01"},
}


@pytest.fixture
def repo(tmp_path: Any) -> Any:
    with zarrdb.open(tmp_path / "w.zdb", create=True) as r:
        yield r


def month(i: int) -> xr.Dataset:
    values = np.arange(8.0).reshape(4, 2) + 270 + 10 * i
    return xr.Dataset({"t": (("time", "lat"), values)}, {"time": DAYS[4 * i : 4 * i + 4], "lat": [10.0, 20.0]})


def packing(st: Any) -> None:
    v: Any = zarr.open_array(st, path="t")
    raw = v[:]
    v.attrs["scale_factor"] = 0.25
    v[:] = raw * 2


def units(st: Any) -> None:
    v: Any = zarr.open_array(st, path="time")
    raw = v[:]
    v.attrs["units"] = "hours since 2020-01-01"
    v[:] = raw * 24


def flip(st: Any) -> None:
    lat: Any = zarr.open_array(st, path="lat")
    v: Any = zarr.open_array(st, path="t")
    lat[:] = lat[:][::-1]
    v[:] = v[:][:, ::-1]


def variable(st: Any) -> None:
    month(0).rename(t="rh").to_zarr(st, mode="a", consolidated=False)


@pytest.mark.parametrize("other", [packing, units, flip, variable])
def test_append_conflicts_with_what_it_compared(repo: zarrdb.Repository, other: Callable[[Any], None]) -> None:
    zarrdb.to_zarrdb(month(0), repo, encoding=PACKED)
    s = repo.writable_session()
    zarrdb.to_zarrdb(month(1), s, append_dim="time")
    with repo.transaction(message="other") as st:
        other(st)
    with pytest.raises(zarrdb.ConflictError):
        s.commit("append")
    s.discard()
    d = xr.open_zarr(repo.at("main").store, consolidated=False).load()
    assert np.array_equal(d.time, month(0).time)
    assert np.array_equal(d.t.sel(lat=[10.0, 20.0]), month(0).t)


@pytest.mark.parametrize("dtype, values", [("i1", [200]), ("i4", [2.5]), ("i4", [np.nan]), ("u1", [-1]), ("f4", [1e300]), ("f4", np.array([2**24 + 1]))])
def test_array_refuses_what_its_type_cannot_hold(repo: zarrdb.Repository, dtype: str, values: Any) -> None:
    s = repo.writable_session()
    zarr.create_array(s.store, name="a", shape=(1,), dtype=dtype, chunks=(1,))
    with pytest.raises(zarrdb.InvalidError, match="cannot be stored as"):
        s.array("a")[:] = np.asarray(values)


@pytest.mark.parametrize("dtype, values", [("i1", [100]), ("i4", [2.0]), ("f4", [0.1]), ("f4", [np.nan]), ("f4", [np.inf]), ("u1", [255])])
def test_array_takes_what_its_type_holds(repo: zarrdb.Repository, dtype: str, values: Any) -> None:
    s = repo.writable_session()
    zarr.create_array(s.store, name="a", shape=(1,), dtype=dtype, chunks=(1,))
    s.array("a")[:] = np.asarray(values)
    assert np.array_equal(s.array("a")[:], np.asarray(values).astype(dtype), equal_nan=dtype == "f4")


@pytest.mark.parametrize("dtype, value", [("i2", 40000), ("i2", 1.5), ("u1", -1), ("f4", 1e300)])
@pytest.mark.parametrize("dask", [False, True])
def test_append_refuses_what_the_stored_type_cannot_hold(repo: zarrdb.Repository, dtype: str, value: float, dask: bool) -> None:
    zarrdb.to_zarrdb(xr.Dataset({"v": ("x", np.ones(2, dtype))}), repo)
    ds = xr.Dataset({"v": ("x", np.array([value]))})
    with pytest.raises(zarrdb.InvalidError, match="v: it cannot be stored as"):
        zarrdb.to_zarrdb(ds.chunk() if dask else ds, repo, append_dim="x")
    assert repo.at("main").array("v").shape == (2,)


@pytest.mark.parametrize("name", [None, "t"])
def test_data_array(repo: zarrdb.Repository, name: str | None) -> None:
    a = month(0).t.rename(name)
    zarrdb.to_zarrdb(a, repo)
    back = xr.open_dataarray(repo.at("main").store, engine="zarr", consolidated=False)
    assert np.array_equal(back, a)


def test_consolidated(repo: zarrdb.Repository) -> None:
    for consolidated in (None, False, True):
        zarrdb.to_zarrdb(month(0), repo, mode="w", consolidated=consolidated)
    with repo.transaction(message="consolidate") as st:
        month(1).to_zarr(st, append_dim="time", consolidated=False)
        zarr.consolidate_metadata(st)
    assert xr.open_zarr(repo.at("main").store, consolidated=False).sizes["time"] == 8


def test_append_names_another_calendar(repo: zarrdb.Repository) -> None:
    zarrdb.to_zarrdb(month(0), repo)
    with pytest.raises(zarrdb.InvalidError, match="its calendar is 'noleap', and"):
        zarrdb.to_zarrdb(month(1).convert_calendar("noleap"), repo, append_dim="time")


TIMES = np.array(["2020-01-01T06", "2020-01-01T13", "NaT"], "M8[ns]")


@pytest.mark.parametrize(
    "values, encoding, fits",
    [
        (np.array([1, 2]), {"dtype": "i1"}, True),
        (np.array([1, 300]), {"dtype": "i1"}, False),
        (np.array([1.4, np.nan]), {"dtype": "i4", "_FillValue": -9}, True),
        (np.array([1.4, np.nan]), {"dtype": "i4"}, False),
        (np.array([1.5, np.inf]), {"dtype": "f4"}, True),
        (np.array([1.5, np.inf]), {"dtype": "i2", "scale_factor": 0.1, "_FillValue": -1}, False),
        (np.array([0.0, -327.68]), {"dtype": "i2", "scale_factor": 0.01, "_FillValue": -32768}, False),
        (TIMES, {"dtype": "i8", "units": "hours since 2020-01-01", "_FillValue": -1}, True),
        (TIMES[:2], {"dtype": "i1", "units": "seconds since 2020-01-01"}, False),
        (TIMES[:2] - TIMES[0], {"dtype": "i2", "units": "hours"}, True),
    ],
)
def test_new_variables(repo: zarrdb.Repository, values: Any, encoding: dict[str, Any], fits: bool) -> None:
    s = repo.writable_session()
    ds = xr.Dataset({"a": ("n", values)})
    for data in (ds, ds.chunk(n=1)):
        if fits:
            zarrdb.to_zarrdb(data, s, encoding={"a": encoding}, mode="w")
            assert xr.open_dataset(s, engine="zarrdb", decode_timedelta=True).a.isnull().equals(ds.a.isnull())
        else:
            with pytest.raises(zarrdb.InvalidError, match="give it another encoding"):
                zarrdb.to_zarrdb(data, s, encoding={"a": encoding}, mode="w")


def test_trees(repo: zarrdb.Repository) -> None:
    tree = xr.DataTree.from_dict({"/": xr.Dataset({"x": ("t", [1, 2])}, {"t": [10, 20]}), "/g": xr.Dataset({"y": ("m", [1.0, 300.0])}), "/g/h": xr.Dataset({"z": ("t", [5, 6])})})
    for how in ({}, {"mode": "w"}, {"mode": "a"}, {"mode": "w", "write_inherited_coords": True}):
        zarrdb.to_zarrdb(tree, repo, **how)
        assert xr.open_datatree(repo, engine="zarrdb").load().identical(tree)
    for wrong in ({"encoding": {"/g": {"y": {"dtype": "i1"}}}, "mode": "w"}, {"append_dim": "t"}, {"group": "sub"}):
        with pytest.raises(zarrdb.InvalidError):
            zarrdb.to_zarrdb(tree, repo, **wrong)
    assert xr.open_datatree(repo, engine="zarrdb").load().identical(tree) and not repo.sessions()


def test_append_again(repo: zarrdb.Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree is appended group by group, a conflict is tried again, and stores are appended with labels that replace."""
    day = lambda t: xr.DataTree.from_dict({"/": xr.Dataset({"x": ("t", [t])}, {"t": [t]}), "/g": xr.Dataset({"y": ("m", [1.0])}), "/g/h": xr.Dataset({"z": ("t", [-t])})})
    zarrdb.to_zarrdb(day(1), repo)
    zarrdb.to_zarrdb(day(2), repo, append_dim="t")
    commit, others = zarrdb.Session.commit, iter([3, 4])

    def beaten(s: zarrdb.Session, message: str) -> Any:
        monkeypatch.setattr(zarrdb.Session, "commit", commit)
        zarrdb.to_zarrdb(day(next(others)), repo, append_dim="t")
        return commit(s, message)

    monkeypatch.setattr(zarrdb.Session, "commit", beaten)
    with pytest.raises(zarrdb.ConflictError):
        zarrdb.to_zarrdb(day(5), repo, append_dim="t")
    monkeypatch.setattr(zarrdb.Session, "commit", beaten)
    zarrdb.to_zarrdb(day(5), repo, append_dim="t", retries=1)
    tree = xr.open_datatree(repo, engine="zarrdb").load()
    assert tree.x.values.tolist() == [1, 2, 3, 4, 5] and tree["g/h"].z.values.tolist() == [-1, -2, -3, -4, -5]
    with pytest.raises(zarrdb.InvalidError, match="differs"):
        other = day(6)
        other["g/y"] = ("m", [2.0])
        zarrdb.to_zarrdb(other, repo, append_dim="t")

    # All groups are compared before the first is written; groups that are not there are written.
    s = repo.writable_session()
    for path, wrong in {"/g": xr.Dataset({"y": ("m", [2.0])}), "/g/h": xr.Dataset({"z": ("t", ["text"])}), "/n": xr.Dataset({"w": ("t", [6])})}.items():
        with pytest.raises(zarrdb.InvalidError):
            zarrdb.to_zarrdb(xr.DataTree.from_dict({node.path: node.to_dataset(inherit=False) for node in day(6).subtree} | {path: wrong}), s, append_dim="t")
    assert not s.has_uncommitted_changes or not [c for c in s.changes() if c.new]
    new = xr.DataTree.from_dict({node.path: node.to_dataset(inherit=False) for node in day(6).subtree} | {"/m/o": xr.Dataset({"y": 1.0})})
    zarrdb.to_zarrdb(new, s, append_dim="t")
    grown = xr.open_datatree(s, engine="zarrdb").load()
    assert (grown.x.sizes["t"], grown["m/o"].y.item()) == (6, 1.0)
    zarrdb.to_zarrdb(new, (empty := zarrdb.open(tmp_path / "empty.zdb", create=True)), append_dim="t")
    assert xr.open_datatree(empty, engine="zarrdb").load().identical(new)
    empty.close()
    s.discard()

    for name, days in {"a": range(4), "b": [3, 4], "c": [9]}.items():
        xr.Dataset({"v": ("t", [10.0 * d + len(days) for d in days])}, {"t": list(days)}).to_zarr(tmp_path / name, consolidated=False)
    repo.import_(tmp_path / "a", to="s", append_dim="t")
    with pytest.raises(zarrdb.ZarrdbError, match="there already|does not follow"):
        repo.import_(tmp_path / "b", to="s", append_dim="t")
    repo.import_(tmp_path / "b", to="s", append_dim="t", overlap="replace")
    assert repo.at("main").array("s/v")[:].tolist() == [4.0, 14.0, 24.0, 32.0, 42.0]
    with pytest.raises(zarrdb.ZarrdbError, match="steps"):
        repo.import_(tmp_path / "c", to="s", append_dim="t", strict=True)
    with pytest.warns(UserWarning, match="a gap: /t: 9"):
        repo.import_(tmp_path / "c", to="s", append_dim="t")
    assert repo.erase("s/v")["rewritten"] == 3
