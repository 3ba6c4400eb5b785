"""An append every night. It may overlap with a late run, with readers and with gc."""

import datetime as dt

import xarray as xr
from airflow.decorators import dag, task

import zarrdb


@task(retries=3)
def append(day: str):
    repo = zarrdb.open("forecast.zdb", wait="10m")
    new = xr.open_zarr(f"in/{day}.zarr")
    for attempt in repo.retry(5):  # a fresh session after a conflict
        with attempt as s:
            have = xr.open_zarr(s.store, consolidated=False)
            if new.time.values[0] in have.time.values:
                print("already there")
                return repo.lookup_branch("main")
            s.guard("time")  # what was read must still hold
            new.to_zarr(s.store, append_dim="time", consolidated=False)
            return s.commit(f"forecast {day}", metadata={"source": "gfs"}).id


@task
def check(commit: str, day: str):
    ds = xr.open_zarr(zarrdb.open("forecast.zdb").at(commit).store, consolidated=False)
    last = ds.t2m.sel(time=day)
    if last.isnull().any() or not 180 < float(last.mean()) < 330:
        raise ValueError("implausible")


@task(trigger_rule="one_failed")
def roll_back(day: str):
    repo = zarrdb.open("forecast.zdb")
    repo.reset_branch("main", f"main@{{{day} 00:00}}")  # nothing is lost: undo() takes it back


@task
def care():
    repo = zarrdb.open("forecast.zdb")
    repo.expire(older_than="90d")
    print(repo.gc())  # beside readers and writers
    repo.backup("backup/forecast.zdb")


@dag(schedule="0 3 * * *", start_date=dt.datetime(2026, 1, 1), catchup=False)
def nightly():
    ok = check(append("{{ ds }}"), "{{ ds }}")
    ok >> [roll_back("{{ ds }}"), care()]


nightly()
