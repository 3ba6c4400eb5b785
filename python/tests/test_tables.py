"""Files of tables are read by the programs that they are for, which show what xarray shows."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import zarrdb

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")


def dataset() -> xr.Dataset:
    time = np.array(["2020-01-31", "2020-02-29T06:00", "2020-03-01"], dtype="datetime64[ns]")
    t = np.arange(12, dtype="f4").reshape(3, 2, 2)
    t[1, 1, 0] = np.nan
    out = xr.Dataset(
        {"t": (("time", "lat", "station"), t), "n": (("time", "lat", "station"), np.arange(12, dtype="u4").reshape(3, 2, 2) + 2**31)},
        {"time": time, "lat": np.array([50.0, 40.5]), "station": np.array(["Kiel", "Ulm"])},
    )
    out.t.encoding = {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -1}
    return out


@pytest.fixture(params=[".parquet", ".arrow"])
def file(request: pytest.FixtureRequest, repo: zarrdb.Repository, path: Path, tmp_path: Path) -> Path:
    zarrdb.to_zarrdb(dataset(), repo)
    out = tmp_path / f"t{request.param}"
    program = os.environ.get("ZARRDB_BINARY", "zarrdb")
    subprocess.run([program, "read", f"{path}:t", "--also", "n", "--decode-cf", "-o", out], check=True)
    return out


def want() -> Any:
    return dataset().to_dataframe(dim_order=["time", "lat", "station"]).reset_index()


def same(got: Any) -> None:
    frame = want()
    assert list(got.columns) == ["time", "lat", "station", "t", "n"]
    for name in frame:
        left, right = got[name].tolist(), frame[name].tolist()
        if name == "time":
            left, right = [pd.Timestamp(x) for x in left], [pd.Timestamp(x) for x in right]
        for x, y in zip(left, right, strict=True):
            assert x == y or pd.isna(x) and pd.isna(y), name


def test_pyarrow(file: Path) -> None:
    reader = pytest.importorskip("pyarrow.parquet" if file.suffix == ".parquet" else "pyarrow.feather")
    table = reader.read_table(file)
    table.validate(full=True)
    assert table.schema.field("time").type.tz is None and table.schema.field("n").type == pa.uint32()
    assert table.column("t").null_count == 1
    same(table.to_pandas())


def test_pandas(file: Path) -> None:
    same(pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_feather(file))


def test_polars(file: Path) -> None:
    pl = pytest.importorskip("polars")
    same((pl.read_parquet(file) if file.suffix == ".parquet" else pl.read_ipc(file)).to_pandas())


def test_duckdb(file: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    if file.suffix != ".parquet":
        pytest.skip("DuckDB reads Arrow files by an extension")
    same(duckdb.sql(f"select * from '{file}'").df())
    rows = duckdb.sql(f"select avg(t), count(*) from '{file}' where time < '2020-03-01' and station = 'Kiel'").fetchall()
    assert rows == [(2, 4)]
