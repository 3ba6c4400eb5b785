"""Many processes of a dask cluster write, and it is one commit."""

import dask.array as da
import xarray as xr
import zarr
from dask.distributed import Client, LocalCluster

import zarrdb


def main() -> None:
    with LocalCluster(n_workers=4, threads_per_worker=1) as cluster, Client(cluster):
        repo = zarrdb.open("era5.zdb", create=True)
        src = xr.open_zarr("in.zarr", chunks={"time": 1})
        s = repo.writable_session("main", label="era5 load")
        src.to_zarr(s.store, mode="w", consolidated=False)  # the session pickles
        print(s.status())
        s.savepoint()  # what is written so far survives a crash
        s.commit("load era5")

        # Read and write the same session in one graph.
        s = repo.writable_session("main")
        ds = xr.open_zarr(s.store, chunks={}, consolidated=False)
        (ds.t2m - ds.t2m.mean("time")).to_dataset(name="anom").to_zarr(s.store, mode="a", consolidated=False)
        s.commit("anomalies", metadata={"job": "42"})

        # Regions that do not touch each other. Parts of one chunk that two write are an error, never lost.
        s = repo.writable_session("main")
        for lo in range(0, src.sizes["time"], 24):
            part = src.isel(time=slice(lo, lo + 24)).drop_vars(["lat", "lon"])
            part.to_zarr(s.store, region={"time": slice(lo, lo + part.sizes["time"])}, consolidated=False)
        s.commit("refill", allow_empty=True)

        # With forks a part of the work can be thrown away.
        s = repo.writable_session("main")
        zarr.create_array(s.store, name="ones", shape=(1000, 64), chunks=(100, 64), dtype="f8", dimension_names=("i", "j"))
        f = s.fork()
        da.store(da.ones((1000, 64), chunks=(100, 64)), zarrdb.array(f, "ones"))
        s.merge(f)
        s.commit("ones", rebase_with=zarrdb.Theirs())


if __name__ == "__main__":
    main()
