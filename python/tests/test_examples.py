"""The programs in examples run, each in a process and a folder of its own."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from conftest import end

import zarrdb

EXAMPLES = Path(__file__).parent.parent / "examples"


def dataset(n: int, start: str, size: int = 4) -> xr.Dataset:
    t2m = 280 + np.random.default_rng(n).normal(size=(n, size, size)).astype("f4")
    return xr.Dataset(
        {"t2m": (("time", "lat", "lon"), t2m)},
        coords={"time": np.datetime64(start, "ns") + np.arange(n) * np.timedelta64(1, "D"), "lat": np.linspace(0, 3, size), "lon": np.arange(float(size))},
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for db in tmp_path.glob("*.zdb"):
        end(db)


def run(name: str, code: str = "") -> str:
    """Run a program, or code after it was imported, with the stand-ins."""
    path = os.pathsep.join([str(Path(__file__).parent / "standins"), str(EXAMPLES), os.environ.get("PYTHONPATH", "")])
    args = [str(EXAMPLES / f"{name}.py")] if not code else ["-c", f"from {name} import *\n{code}"]
    p = subprocess.run([sys.executable, *args], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=600, check=False)
    assert p.returncode == 0, p.stderr
    return p.stdout


def test_notebook(folder: Path) -> None:
    repo = zarrdb.open("weather.zdb", create=True)
    first = dataset(40, "2020-01-20")
    zarrdb.to_zarrdb(first, repo, message="January", encoding={"t2m": {"chunks": (1, 4, 4)}})
    zarrdb.to_zarrdb(dataset(20, "2020-02-29"), repo, append_dim="time", message="March")
    out = run("notebook")
    assert "t2m/c/0/0/0 (0, 0, 0) chunk" in out and "count=16" in out and "January" in out
    assert repo.list_tags() == ["v1.0"] and [c.message for c in repo.ancestry(limit=1)] == ["fix units"]
    got = xr.open_dataset(repo.at("experiment"), engine="zarrdb")
    np.testing.assert_allclose(got.t2m[0], first.t2m[0] - 273.15, rtol=1e-3)
    assert got.t2m.attrs["units"] == "K" and got.sizes["time"] == 60


def test_dask_writer(folder: Path) -> None:
    ds = dataset(50, "2020-01-01")
    ds.to_zarr("in.zarr", consolidated=False, encoding={"t2m": {"chunks": (1, 4, 4)}})
    run("dask_writer")
    repo = zarrdb.open("era5.zdb")
    assert [c.message for c in repo.ancestry(limit=4)] == ["ones", "refill", "anomalies", "load era5"]
    got = xr.open_dataset(repo.at("main"), engine="zarrdb")
    np.testing.assert_array_equal(got.t2m, ds.t2m)
    np.testing.assert_allclose(got.anom, ds.t2m - ds.t2m.mean("time"), atol=1e-3)
    assert (repo.at("main").array("ones")[:] == 1).all() and repo.fsck()["problems"] == []


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_training(folder: Path, how: str) -> None:
    repo = zarrdb.open("era5.zdb", create=True)
    ds = dataset(3, "2020-01-01", 40)
    zarrdb.to_zarrdb(ds, repo)
    repo.create_tag("v1.0")
    zarrdb.to_zarrdb(ds * 0, repo, mode="a")
    code = f"""
import numpy as np, torch.utils.data as data, zarrdb
data.START = {how!r}
if __name__ == "__main__":
    want, seen = zarrdb.open("era5.zdb").at("v1.0").array("t2m")[:], []
    def step(batch):
        for patch in batch:
            assert patch.shape == (16, 16) and (patch > 200).all()
            seen.append(patch)
    main(step, epochs=2, size=16)
    assert len(seen) == 2 * 3 * 64
    ds = Patches("era5.zdb", "v1.0", "t2m", 16)
    assert all((ds[i] == want[ds.selection(i)]).all() for i in range(50))
    print("fine")
"""
    script = folder / "train.py"
    script.write_text(f"from training import *\n{code}")
    path = os.pathsep.join([str(Path(__file__).parent / "standins"), str(EXAMPLES), os.environ.get("PYTHONPATH", "")])
    p = subprocess.run([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=600, check=False)
    assert p.returncode == 0 and p.stdout.endswith("fine\n"), p.stderr
    assert repo.lookup_tag("v1.0") in p.stdout


def test_nightly(folder: Path) -> None:
    repo = zarrdb.open("forecast.zdb", create=True)
    (folder / "backup").mkdir()
    zarrdb.to_zarrdb(dataset(3, "2026-01-01"), repo)
    dataset(1, "2026-01-04").to_zarr("in/2026-01-04.zarr", consolidated=False)
    dataset(1, "2026-01-05").to_zarr("in/2026-01-05.zarr", consolidated=False)
    (dataset(1, "2026-01-06") * 0).to_zarr("in/2026-01-06.zarr", consolidated=False)
    out = run("nightly", """
import zarrdb
first = nightly_run("2026-01-04")
assert nightly_run("2026-01-04") == first     # it is there already
second = nightly_run("2026-01-05")
assert second != first
try:
    nightly_run("2026-01-06")
except ValueError as e:
    print("refused:", e)
""".replace("nightly_run", "airflow.decorators.RUNS[0]").replace("import zarrdb", "import airflow.decorators"))
    assert "already there" in out and "refused: implausible" in out
    got = xr.open_dataset(repo.at("main"), engine="zarrdb")
    assert got.sizes["time"] == 6
    s = repo.writable_session()  # a commit in the middle of an append is a conflict, and there is another attempt
    assert zarr.open_group(s.store)["t2m"].shape[0] == 6
    backup = zarrdb.open(folder / "backup" / "forecast.zdb")
    assert backup.at("main").array("t2m").shape[0] >= 4
    end(folder / "backup" / "forecast.zdb")


def test_tour(folder: Path) -> None:
    """The cells of the notebook run one after the other, and what each ends in can be shown."""
    shown: list[str] = []
    space: dict[str, Any] = {}
    for cell in json.loads((EXAMPLES / "tour.ipynb").read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "tour.ipynb", "exec"), space)
        if last is not None:
            assert isinstance(last, ast.Expr)
            value = eval(compile(ast.Expression(last.value), "tour.ipynb", "eval"), space)
            shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
    assert "1 February" in shown[0] and "v1" in shown[0]
    assert "<code>&lt;Array /t2m (time: 32, lat: 30, lon: 40) float32" in shown[1]
    assert shown[3] == "31" and "1 chunks" in shown[4] and "count=80" in shown[6]
    assert "kind='chunk'" in shown[7] and shown[8] == "['by b', 'by a', 'zero two rows']"
