from __future__ import annotations

import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import xarray as xr
import zarr
from conftest import end

import zarrdb
from zarrdb._target import parse

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning", "error::UserWarning")


def dataset(n: int = 6, start: str = "2020-01-01") -> xr.Dataset:
    time = np.datetime64(start, "ns") + np.arange(n) * np.timedelta64(1, "D")
    t2m = np.random.default_rng(n).normal(size=(n, 4, 5)).astype("f4")
    return xr.Dataset(
        {"t2m": (("time", "lat", "lon"), t2m, {"units": "K"})},
        coords={"time": time, "lat": np.linspace(0, 3, 4), "lon": np.arange(5.0)},
    )


@pytest.fixture
def written(repo: zarrdb.Repository) -> xr.Dataset:
    ds = dataset()
    c = zarrdb.to_zarrdb(ds, repo, message="first")
    assert c.message == "first"
    return ds


def test_round_trip(repo: zarrdb.Repository, path: Path, written: xr.Dataset) -> None:
    for target in (path, str(path), f"zarrdb://{path}@main", repo, repo.at("main"), repo.at("main").store):
        for chunks in (None, {}):
            with xr.open_dataset(target, engine="zarrdb", chunks=chunks) as ds:
                xr.testing.assert_identical(ds.load(), written)
    xr.testing.assert_identical(xr.open_dataset(repo), written)  # it is guessed
    xr.testing.assert_identical(xr.open_zarr(repo.at("main").store), written)
    lazy = pickle.loads(pickle.dumps(xr.open_dataset(path, engine="zarrdb")))
    xr.testing.assert_identical(lazy.load(), written)


def test_append_and_region(repo: zarrdb.Repository, path: Path, written: xr.Dataset) -> None:
    more = dataset(3, "2020-01-07")
    zarrdb.to_zarrdb(more, path, append_dim="time")
    both = xr.concat([written, more], "time")
    xr.testing.assert_equal(xr.open_dataset(path, engine="zarrdb"), both)
    xr.testing.assert_identical(xr.open_dataset(f"{path}@main~1", engine="zarrdb"), written)
    s = repo.writable_session()
    part = (more.isel(time=slice(0, 2)) * 0).drop_vars(["lat", "lon", "time"])
    zarrdb.to_zarrdb(part, s, region={"time": slice(4, 6)}, mode="r+")
    s.commit("region")
    assert float(abs(xr.open_dataset(path, engine="zarrdb").t2m[4:6]).max()) == 0
    before = repo.lookup_branch("main")
    with pytest.raises(ValueError):
        zarrdb.to_zarrdb(more.rename(lat="y"), path, append_dim="time")
    assert repo.lookup_branch("main") == before and repo.sessions() == []


def test_chunks_that_are_written_later(repo: zarrdb.Repository, written: xr.Dataset) -> None:
    lazy = written.chunk(time=1)
    before = repo.lookup_branch("main")
    with pytest.raises(zarrdb.InvalidError, match="session"):
        zarrdb.to_zarrdb(lazy, repo, group="later", compute=False)
    assert repo.lookup_branch("main") == before and repo.sessions() == []
    s = repo.writable_session()
    later = zarrdb.to_zarrdb(lazy, s, group="later", compute=False)
    assert np.isnan(s.array("later/t2m")[:]).all()
    later.compute()
    s.commit("later")
    xr.testing.assert_identical(xr.open_dataset(repo, engine="zarrdb", group="later"), written)


def test_groups(repo: zarrdb.Repository, path: Path) -> None:
    ds = dataset()
    zarrdb.to_zarrdb(ds, repo, group="a/b")
    for target, group in ((path, "a/b"), (f"{path}@main:a/b", None), (f"{path}:a", "b")):
        xr.testing.assert_identical(xr.open_dataset(target, engine="zarrdb", group=group), ds)
    tree = xr.open_datatree(repo.at("main"), engine="zarrdb")
    xr.testing.assert_identical(tree["a/b"].to_dataset(), ds)


def test_versions_are_not_mixed_by_dask(repo: zarrdb.Repository, written: xr.Dataset) -> None:
    old = xr.open_dataset(repo.at("main"), engine="zarrdb", chunks={})
    zarrdb.to_zarrdb(written + 1, repo, mode="a")
    new = xr.open_dataset(repo.at("main"), engine="zarrdb", chunks={})
    np.testing.assert_allclose((new.t2m - old.t2m).compute(), 1, rtol=1e-5)


@pytest.mark.parametrize("kind", ["target", "path", "url", "repository", "store", "group", "tree", "session"])
def test_lazy_openings_of_a_branch(repo: zarrdb.Repository, path: Path, kind: str) -> None:
    """Two openings of a branch, between which it moves, are not one for dask; each reads its own version."""
    da = pytest.importorskip("dask.array")
    ds = xr.Dataset({"v": ("x", np.arange(6.0)), "n": ("x", np.arange(6, dtype="i2"), {"scale_factor": 0.5})})
    session = repo.writable_session()

    def write(more: int) -> None:
        if kind == "session":
            (ds + more).to_zarr(session.store, group="g", mode="w", consolidated=False)
        else:
            zarrdb.to_zarrdb(ds + more, repo, group="g", mode="w")

    def read() -> xr.Dataset:
        if kind == "tree":
            return xr.open_datatree(f"{path}@main", engine="zarrdb", chunks={})["g"].to_dataset()
        if kind in ("store", "session"):
            store = session.store if kind == "session" else repo.at("main").store
            return xr.open_zarr(store, group="g", chunks={}, consolidated=False)
        target: Any = {"target": f"{path}@main:g", "path": path, "url": f"zarrdb://{path}@main:g", "repository": repo, "group": f"{path}@main"}[kind]
        group = None if kind in ("target", "url") else "g"
        return xr.open_dataset(target, engine="zarrdb", group=group, chunks={})

    write(0)
    old = read()
    for name in ("v", "n"):
        assert isinstance(old[name].data, da.Array) and type(old[name].variable) is xr.Variable
    if kind != "session":
        assert read().v.data.name == old.v.data.name  # of the same version, they are one
    write(10)
    new = read()
    if kind != "session":
        assert float((new.v - old.v).min()) == 10
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(old)).n, ds.n * 0.5)
    assert new.v.data.name != old.v.data.name and new.n.data.name != old.n.data.name
    np.testing.assert_array_equal(new.v, ds.v + 10)


def test_names_for_dask(repo: zarrdb.Repository, written: xr.Dataset) -> None:
    """Contents have names that every process computes alike, and that change with the contents."""
    dask = pytest.importorskip("dask")
    from dask.base import tokenize

    v, s = repo.at("main"), repo.writable_session()
    with dask.config.set({"tokenize.ensure-deterministic": True}):
        for make in (lambda v: v, lambda v: v.store, lambda v: v.array("t2m"), lambda v: v.mapping):
            assert tokenize(make(v)) == tokenize(make(repo.at(v.commit.id))) == tokenize(pickle.loads(pickle.dumps(make(v))))
            before = tokenize(make(s))
            s.set("k", os.urandom(4))
            assert len({tokenize(make(v)), tokenize(make(s)), before}) == 3
        zarrdb.to_zarrdb(written + 1, repo, mode="a")
        assert tokenize(repo.at("main").store) != tokenize(v.store)
    assert v.commit.id in str(v.store) and v.commit.id in v.__dask_tokenize__()


def test_fsspec(repo: zarrdb.Repository, path: Path, written: xr.Dataset) -> None:
    url = f"zarrdb://{path}@main"
    xr.testing.assert_identical(xr.open_zarr(url, consolidated=False), written)
    z = zarr.open_array(f"{url}:t2m", mode="r")
    np.testing.assert_array_equal(z[:], written.t2m)
    fs, root = fsspec.url_to_fs(url)
    assert sorted(n.rpartition("/")[2] for n in fs.ls(root, detail=False)) == ["lat", "lon", "t2m", "time", "zarr.json"]
    document = fs.cat_file(f"{root}/zarr.json")
    assert fs.cat_file(f"{root}/zarr.json", 2, 10) == document[2:10] and fs.cat_file(f"{root}/zarr.json", -5) == document[-5:]
    assert fs.info(f"{root}/t2m")["type"] == "directory" and fs.exists(f"{root}/zarr.json") and not fs.exists(f"{root}/nope")
    with fs.open(f"{root}/zarr.json") as f:
        assert f.read() == document
    assert f"{root}/zarr.json" in fs.find(root)
    for missing in (f"{root}/nope", f"{path}@nope/zarr.json", f"{path}.nope/zarr.json"):
        assert not fs.exists(missing)
        with pytest.raises(FileNotFoundError):
            fs.cat_file(missing)
    with pytest.raises(PermissionError):
        fs.open(f"{root}/zarr.json", "wb")


def test_fsspec_keeps_versions(repo: zarrdb.Repository, path: Path) -> None:
    """Instances have names of their own, and a worker reads the version of the one that it is sent."""
    da = pytest.importorskip("dask.array")
    from dask.base import tokenize

    zarrdb.to_zarrdb(xr.Dataset({"v": ("x", np.zeros(4))}), repo)
    url = f"zarrdb://{path}@main"
    old, mapper = zarr.open_array(f"{url}:v", mode="r"), fsspec.get_mapper(url)
    assert mapper["zarr.json"]
    before = fsspec.url_to_fs(url)[0].ukey(f"{path}@main:zarr.json")
    sent = pickle.dumps((old, mapper))
    zarrdb.to_zarrdb(xr.Dataset({"v": ("x", np.ones(4))}, attrs={"more": 1}), repo, mode="w")
    new = zarr.open_array(f"{url}:v", mode="r")
    assert float((da.from_array(new) - da.from_array(old)).min()) == 1
    assert tokenize(fsspec.get_mapper(url)) != tokenize(mapper) and fsspec.get_mapper(url).fs != mapper.fs
    assert fsspec.url_to_fs(url)[0].ukey(f"{path}@main:zarr.json") != before
    then, mapped = pickle.loads(sent)
    assert mapped.fs == mapper.fs and tokenize(mapped) == tokenize(mapper)
    assert then[0] == 0 and mapped["zarr.json"] == mapper["zarr.json"] != fsspec.get_mapper(url)["zarr.json"]


def test_names_that_mean_something_else(tmp_path: Path, repo: zarrdb.Repository, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """URLs and places in a database never become folders."""
    monkeypatch.chdir(tmp_path)
    before = set(os.listdir())
    ds = xr.Dataset({"v": ("x", np.arange(3.0))})
    zarrdb.to_zarrdb(ds, repo)
    for name, word in [
        ("s3://bucket/w.zdb", "directory of this machine"), ("zarrdb://z.zdb", "write z.zdb"), ("new.zdb@main", "new.zdb"),
        ("new.zdb:grp", "new.zdb"), ("w.zdb@main", "place in a database"), ("w.zdb@main:grp", "place in a database"),
    ]:  # fmt: skip
        for make in (lambda n: zarrdb.open(n, create=True), lambda n: zarrdb.Repository(n, True)):
            with pytest.raises(zarrdb.InvalidError, match=word):
                make(name)
    for name in ("s3://bucket/w.zdb", "zarrdb://s3://w.zdb", "new.zdb@main:grp", "zarrdb://new.zdb@main"):
        with pytest.raises(zarrdb.InvalidError):
            zarrdb.to_zarrdb(ds, name)
    for dest in ("x.nc", "x.csv", "zarrdb://x", "w.zdb@main:g"):
        with pytest.raises(zarrdb.InvalidError):
            repo.export(dest)
    for call in (repo.backup, lambda n: repo.run("clone", str(path), n)):
        for name in ("s3://b/c.zdb", "c.zdb@main"):
            with pytest.raises(zarrdb.InvalidError):
                call(name)
    assert set(os.listdir()) == before


def test_to_zarrdb_takes_targets(path: Path, repo: zarrdb.Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    ds = xr.Dataset({"v": ("x", np.arange(3.0))})
    repo.create_branch("side")
    zarrdb.to_zarrdb(ds, "w.zdb@side:a", group="b")
    zarrdb.to_zarrdb(ds + 1, "zarrdb://w.zdb:c")
    assert xr.open_dataset("w.zdb@side:a/b", engine="zarrdb").identical(ds)
    assert xr.open_dataset(path, engine="zarrdb", group="c").identical(ds + 1)
    assert set(os.listdir()) == {"w.zdb"}
    with pytest.raises(zarrdb.InvalidError, match="branch="):
        zarrdb.to_zarrdb(ds, "w.zdb@side", branch="other")
    repo.create_tag("v1", "side")
    with pytest.raises(zarrdb.ZarrdbError):
        zarrdb.to_zarrdb(ds, "w.zdb@v1")
    zarrdb.to_zarrdb(ds, "zarrdb://made.zdb")
    assert xr.open_dataset("zarrdb://made.zdb@main", engine="zarrdb").identical(ds)
    end("made.zdb")


def test_targets(repo: zarrdb.Repository, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    for text, rev, node in [
        ("", "main", ""), ("@v1:a/b", "v1", "a/b"), ("@main~3/a/zarr.json", "main~3", "a/zarr.json"), (":a", "main", "a"),
        ("@main@{2026-01-31 12:00}:a", "main@{2026-01-31 12:00}", "a"), ("@feature%2Fx/a", "feature/x", "a"), ("/a", "main", "a"),
    ]:  # fmt: skip
        for start in (f"{path}", f"zarrdb://{path}", "w.zdb", "zarrdb://w.zdb"):
            assert parse(start + text) == (str(path), rev, node)
    with pytest.raises(zarrdb.NotFoundError):
        parse("zarrdb://nope.zdb")


def test_dask_processes_write_one_commit(repo: zarrdb.Repository) -> None:
    distributed = pytest.importorskip("distributed")
    import dask.array as da

    values = np.arange(40 * 30, dtype="f8").reshape(40, 30)
    warnings.simplefilter("ignore")  # of the cluster
    cluster: Any
    with distributed.LocalCluster(n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None) as cluster, \
            distributed.Client(cluster):  # fmt: skip
        s = repo.writable_session(label="load")
        ds = xr.Dataset({"x": (("i", "j"), da.from_array(values, chunks=(4, 10)))})
        ds.to_zarr(s.store, consolidated=False)
        assert s.status().arrays["x"].chunks == 30
        again = xr.open_zarr(s.store, chunks={})
        (again.x * 2).to_dataset(name="y").to_zarr(s.store, mode="a", consolidated=False)
        before = len(list(repo.ancestry()))
        s.commit("load")
    assert len(list(repo.ancestry())) == before + 1
    got = xr.open_dataset(repo.at("main"), engine="zarrdb")
    np.testing.assert_array_equal(got.x, values)
    np.testing.assert_array_equal(got.y, values * 2)
    assert repo.fsck(full=True)["problems"] == []


def test_array_without_a_name(repo: zarrdb.Repository) -> None:
    """xarray gives it a name that Zarr v3 reserves."""
    s = repo.writable_session()
    xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("y", "x")).to_zarr(s.store, group="unnamed", zarr_format=3, consolidated=False)
    assert s.array("unnamed/__xarray_dataarray_variable__")[1].tolist() == [3.0, 4.0, 5.0]
    s.commit("unnamed")
    assert xr.open_dataarray(repo.at("main").store, group="unnamed", engine="zarr", consolidated=False)[1, 2] == 5


def test_labels_are_those_of_xarray(repo: zarrdb.Repository) -> None:
    lat = np.arange(-45, 45.1, 0.1, "f4")
    time, lead = dataset().time.values, (np.arange(4) * 6).astype("m8[h]").astype("m8[ns]")
    ds = xr.Dataset({"v": (("time", "lead", "lat"), np.arange(6 * 4 * len(lat)).reshape(6, 4, len(lat)))}, {"time": time, "lead": lead, "lat": lat})
    zarrdb.to_zarrdb(ds, repo)
    want, got = xr.open_dataset(repo, decode_timedelta=True).v, repo.at("main").array("v")
    labels: list[dict[str, Any]] = [
        {"lat": lat[7]}, {"lat": lat[[3, 100, 900]]}, {"lat": list(lat[[900, 3]])}, {"lat": [float(lat[1]), lat[0]]}, {"lat": slice(lat[4], lat[8])},
        {"lat": slice(-44.9, -44.5)}, {"lat": slice(None, float(lat[3]))}, {"time": time[2]}, {"time": time[[4, 1]]}, {"time": list(time[:2])},
        {"time": time[3].astype("M8[s]")}, {"time": time[[1, 2]].astype("M8[D]")}, {"time": [np.datetime64("2020-01-05T00", "h")]},
        {"time": slice(time[1], time[3])}, {"time": slice(np.datetime64("2020-01-02"), "2020-01-04")}, {"lead": lead[1]}, {"lead": lead[[3, 0]]},
        {"lead": lead[2].astype("m8[h]")}, {"lead": list(lead[:3].astype("m8[m]"))}, {"lead": slice(lead[1], np.timedelta64(12, "h"))},
        {"time": time[[0, 5]], "lat": lat[[8, 2]]}, {"time": time[1], "lead": [lead[1]], "lat": slice(lat[0], lat[2])},
    ]  # fmt: skip
    for label in labels:
        np.testing.assert_array_equal(got.sel(**label), want.sel(label), err_msg=str(label))
    for missing in ({"lat": np.float32(0.05)}, {"lat": [lat[0], 0.05]}, {"time": np.datetime64("2020-01-05T01", "h")}, {"lead": np.timedelta64(1, "h")}):
        with pytest.raises(zarrdb.NotFoundError):
            got.sel(**missing)
