"""What to_zarrdb refuses to append."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import xarray as xr

import zarrdb
from zarrdb._append import check
from zarrdb._store import ZarrdbStore

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zarrdb.Repository]:
    with zarrdb.open(tmp_path_factory.mktemp("append") / "w.zdb", create=True) as repo:
        yield repo


def days(first: str, n: int = 2, step: Any = "1D") -> Any:
    return np.datetime64(first, "ns") + np.arange(n) * np.timedelta64(step[:-1], step[-1])


def data(time: Any, x: Any = (1, 2, 3), **coords: Any) -> xr.Dataset:
    return xr.Dataset({"pr": (("time", "x"), np.zeros((len(time), len(x))))}, coords={"time": time, "x": list(x), **coords})


def span(*hours: float) -> Any:
    return (np.array(hours) * 3600e9).astype("m8[ns]")


FIRST = {
    "numbers": data([0, 1]), "one": data([5]), "down": data([4.0, 2.0]), "labels": data(["a", "b"]), "times": data(days("2020-01-01")),
    "int8": data(np.array([1, 2], "i1")), "bounds": data(days("2020-01-01")).assign(bound=("time", days("2020-01-02"))),
    "mask": data([0, 1]).assign(mask=("x", [True, False, True])), "units": data([0, 1]).assign(t=("time", [1.0, 2.0], {"units": "K"})),
    "nan": data([0, 1], (1.0, np.nan)), "spans": data(span(0, 24)), "months": data(xr.date_range("2020-01-01", periods=2, freq="D", calendar="noleap", use_cftime=True)),
    "scalar": data([0, 1], height=2.0),
}  # fmt: skip
ENCODED = {"days in i4": ("days since 2020-01-01", "i4"), "days in f4": ("days since 1850-01-01", "f4"), "hours in f8": ("hours since 1850-01-01", "f8"), "ns": ("nanoseconds since 1970-01-01", "i8")}
for key, (unit, kind) in ENCODED.items():
    FIRST[key] = data(days("2020-01-01"))
    FIRST[key].time.encoding = {"units": unit, "dtype": kind}


@pytest.mark.parametrize(
    ("first", "more", "why"),
    [
        ("numbers", data([0, 1]), "time: 0 is there already"),
        ("numbers", data([1, 2]), "time: 1 is there already"),
        ("numbers", data([3, 2]), "2 does not follow"),
        ("numbers", data([-2, -1]), "-2 does not follow"),
        ("one", data([6, 5]), "5 is there already"),
        ("down", data([3.0]), "3.0 does not follow"),
        ("numbers", data([2, np.nan]), "time: it cannot be stored as int64"), ("down", data([1, np.nan]), "nan does not follow"),
        ("numbers", data([2.5]), "time: it cannot be stored as int64"), ("numbers", data([2], (1.2, 2, 3)), "x: it cannot be stored"),
        ("int8", data([2**32 + 3]), "time: it cannot be stored as int8"), ("int8", data(np.array([200], "u1")), "cannot be stored as int8"),
        ("labels", data(["c", "a"]), "'a' is there already"),
        ("times", data(days("2020-01-02")), "2020-01-02.* is there already"),
        ("times", data(days("2019-01-02")), "2019-01-02.* does not follow"),
        ("months", data(xr.date_range("2020-01-02", periods=2, freq="D", calendar="noleap", use_cftime=True)), "2020-01-02.* is there already"),
        ("numbers", data([2, 3], (7, 8, 9)), "x: it differs"),
        ("times", data(days("2020-01-02"), (7, 8, 9)), "is there already.*x: it differs|x: it differs.*is there already"),
        ("nan", data([2], (1.0, 2.0)), "x: it differs"),
        ("scalar", data([2], height=3.0), "height: it differs"),
        ("mask", data([2]).assign(mask=("x", [True, True, True])), "mask: it differs"),
        ("numbers", data([2]).drop_vars("time"), "time: the dataset does not have it"),
        ("bounds", data(days("2020-01-03")), "bound: the dataset does not have it"),
        ("numbers", data([2]).assign(other=("time", [1])), "other: the stored dataset does not have it"),
        ("numbers", data([2]).assign(x=("x", [1, 2, 3])).assign(pr=("time", [1])), "pr: it has the dimensions"),
        ("units", data([2]).assign(t=("time", [1.0], {"units": "degC"})), "t: its units are 'degC', and 'K'"),
        ("times", data(days("2020-01-03", step="6h")), "time: its times cannot be stored as int64 of 'days since 2020-01-01"),
        ("days in i4", data(days("2020-01-03T12")), "cannot be stored as int32"),
        ("days in f4", data(days("2020-01-03T00:00:07")), "cannot be stored as float32"),
        ("bounds", data(days("2020-01-03")).assign(bound=("time", days("2020-01-04T01"))), "bound: its times cannot be stored"),
        ("spans", data(span(48, 60)), "time: its times cannot be stored as int64 of 'days'"),
        ("months", data(xr.date_range("2020-01-04T06", periods=2, freq="D", calendar="noleap", use_cftime=True)), "its times cannot be stored"),
    ],
)  # fmt: skip
def test_refused(shared: zarrdb.Repository, first: str, more: xr.Dataset, why: str) -> None:
    repo = shared
    before = zarrdb.to_zarrdb(FIRST[first], repo, group="g", mode="w")
    session = repo.writable_session()
    for target in (repo, f"{repo.path}@main:g", session):
        with pytest.raises(zarrdb.InvalidError, match=f"append along time: nothing was written. .*({why})"):
            zarrdb.to_zarrdb(more, target, group=None if isinstance(target, str) else "g", append_dim="time")
    assert not session.has_uncommitted_changes
    assert repo.lookup_branch("main") == before.id
    if "there already" in why or "follow" in why and "nan" not in why:
        zarrdb.to_zarrdb(more.assign_coords(x=FIRST[first].x), repo, group="g", append_dim="time", any_order=True)
        assert xr.open_dataset(repo, group="g").sizes["time"] == FIRST[first].sizes["time"] + more.sizes["time"]


@pytest.mark.parametrize(
    ("first", "more"),
    [
        ("numbers", data([2, 4])), ("one", data([4, 3])), ("one", data([6, 7])), ("int8", data([3.0, 4.0])), ("down", data([1.5, 1.0])), ("labels", data(["d", "c"])),
        ("times", data(days("2020-01-03"))), ("times", data(days("2020-01-03")).transpose("x", "time")), ("numbers", data([3]).drop_vars("x")),
        ("bounds", data(days("2020-01-03")).assign(bound=("time", [np.datetime64("NaT", "ns"), np.datetime64("2020-05-01", "ns")]))),
        ("mask", data([2]).assign(mask=("x", [True, False, True]))), ("units", data([2]).assign(t=("time", [1.0], {"units": "K"}))),
        ("nan", data([2], (1.0, np.nan))), ("spans", data(span(48, 72))), ("scalar", data([2], height=2.0)),
        ("months", data(xr.date_range("2020-01-04", periods=2, freq="D", calendar="noleap", use_cftime=True))),
        ("days in i4", data(days("2020-01-03"))), ("hours in f8", data(days("2020-01-03T00:20", step="10m"))), ("hours in f8", data(days("2020-01-03T00:00:07"))),
        ("ns", data(days("2020-01-03T00:00:07.000000001"))), ("days in f4", data(days("2020-01-03"))),
    ],
)  # fmt: skip
def test_appended(shared: zarrdb.Repository, first: str, more: xr.Dataset) -> None:
    repo, was = shared, FIRST[first]
    zarrdb.to_zarrdb(was, repo, mode="w")
    zarrdb.to_zarrdb(more, repo, append_dim="time")
    got = xr.open_dataset(repo, engine="zarrdb", decode_timedelta=True)
    for name in ("time", "x", "bound"):
        if name in got:
            parts = [d[name].values for d in (was, more) if name in d]
            want = np.concatenate(parts) if name != "x" else parts[0]
            if first == "hours in f8" and name == "time":
                assert (abs(got[name].values - want) < np.timedelta64(1, "us")).all()
            else:
                np.testing.assert_array_equal(got[name].values, want)


def test_what_xarray_refuses(repo: zarrdb.Repository) -> None:
    """Where nothing is yet, or not along the dimension, the error is that of xarray."""
    for dim in ("time", "nope"):
        with pytest.raises(ValueError, match="append_dim"):
            zarrdb.to_zarrdb(data([0]), repo, group="a/b", append_dim=dim)
        zarrdb.to_zarrdb(data([0]).rename(time="t"), repo, group="a/b", mode="w")


def test_append_reads_the_ends_of_labels(repo: zarrdb.Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a check reads does not grow with what was appended before."""
    get, read = ZarrdbStore._get, []

    def noted(self: ZarrdbStore, key: str, *args: Any) -> Any:
        read.append(key)
        return get(self, key, *args)

    monkeypatch.setattr(ZarrdbStore, "_get", noted)
    counts = []
    for n in (20, 200):
        s = repo.writable_session()
        data(np.arange(n)).chunk(time=1).to_zarr(s.store, mode="w", consolidated=False, encoding={"time": {"chunks": (1,)}})
        read.clear()
        check(data([n]), s, None, {"append_dim": "time"}, False)
        counts.append(len([k for k in read if k.startswith("time/c")]))
    assert counts[0] == counts[1] <= 4
