"""One person at a notebook: versions, a branch, a conflict, what differs, a merge.

The database weather.zdb has a dataset with t2m (time, lat, lon) and several commits.
"""

import xarray as xr
import zarr

import zarrdb

repo = zarrdb.open("weather.zdb")  # joins the process that has it open, or starts one
print(repo)
ds = xr.open_dataset("weather.zdb", engine="zarrdb", chunks={})
old = xr.open_zarr("zarrdb://weather.zdb@main~1", consolidated=False)  # through fsspec
february = ds.t2m.sel(time="2020-02").mean("time").compute()

for c in repo.ancestry(branch="main"):
    print(c.id[:10], c.written_at, c.message)

with repo.transaction("main", message="fix units") as store:
    g = zarr.open_group(store, mode="r+")
    g["t2m"].attrs["units"] = "K"  # all or nothing

repo.create_branch("experiment", repo.lookup_branch("main"))
s = repo.writable_session("experiment")
z = zarr.open_array(s.store, path="t2m")
z[0] = z[0] - 273.15
print(s.status())  # changed arrays, with how many chunks

# Somebody else writes the same day, and is faster.
with repo.transaction("experiment", message="calibrate") as store:
    zarr.open_array(store, path="t2m")[0] = 280
try:
    s.commit("to Celsius")
except zarrdb.ConflictError as e:
    for conflict in e.conflicts:
        print(conflict.path, conflict.chunk, conflict.kind)
    s.rebase(zarrdb.Theirs("t2m"))  # what this session wrote
    s.commit("to Celsius")

d = repo.diff("main", "experiment")
print(d.arrays["t2m"].values)  # how many differ, by how much
print(repo.merge("experiment", into="main", dry_run=True)["conflicts"])
repo.create_tag("v1.0", repo.lookup_branch("main"))
now = repo.readonly_session(as_of="2100-01-31 12:00")
xr.testing.assert_identical(xr.open_zarr(now.store), xr.open_zarr("zarrdb://weather.zdb@v1.0", consolidated=False))
repo.merge("experiment", into="main", message="take the experiment")
repo.undo("main")  # takes the last move of the branch back
