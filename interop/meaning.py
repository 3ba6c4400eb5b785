"""Compares what the readers of others show before and after zarrdb: fill values, units,
labels and types, for data sets of several writers through every door.

A source is a store that another program wrote. A door is a way through zarrdb: an import
and an export to a format, a linked reference set, a decoded read, an HTTP view. The same
reader shows the source and what came out of the door; each variable is one comparison. A
conversion that is refused by name counts as refused, and is listed.

    python interop/meaning.py --bin ./zarrdb [--old PYTHON] [-k SUBSTRING] [--fast]

--old is a Python with zarr 2.18, which reads what goes out in v2.
"""

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import xarray as xr
import zarr
from xarray.backends.zarr import FillValueCoder

warnings.simplefilter("ignore")
zarr.config.set({"array.write_empty_chunks": False})


# Sources ------------------------------------------------------------------------------


def plain(path, version, fast):
    """Arrays of zarr-python: every type with every fill value and attribute."""
    g = zarr.open_group(path, mode="w", zarr_format=version)
    n = 0

    def add(name, values, fill, attrs, chunks=2, missing=False):
        data = np.asarray(values)
        names = {"dimension_names": [f"x{n}" for n in data.shape]} if version == 3 else {}
        a = g.create_array(name, shape=data.shape, dtype=data.dtype, chunks=(chunks,) * data.ndim, fill_value=fill, attributes=attrs, **names)
        if version == 2:
            a.attrs["_ARRAY_DIMENSIONS"] = [f"x{n}" for n in data.shape]
            if fill is None:
                null_fill(f"{path}/{name}/.zarray")
        if missing:
            a[:chunks] = data[:chunks]
        else:
            a[...] = data

    def attribute(v, dtype):
        return FillValueCoder.encode(v, np.dtype(dtype)) if version == 3 else v

    kinds = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
    if fast:
        kinds = ["i2", "i8", "u1", "f4", "f8"]
    for kind in kinds:
        floats = kind[0] == "f"
        values = np.array([0, 1, np.nan if floats else 2, 7, 100.5 if floats else 100, 0], kind)
        fills = [None, 0, 7] + ([np.nan, np.inf] if floats else []) + ([1e20] if kind in ("f4", "f8") else [])
        if version == 3:
            fills = fills[1:]
        for fill, fv, missing in itertools.product(fills, [None, 1, 0] + ([np.nan, 1e20] if kind in ("f4", "f8") else []), [False, True]):
            if missing and fill is None:
                continue  # what is there is not defined
            attrs = {} if fv is None else {"_FillValue": attribute(fv, kind)}
            if version == 2 and fv is not None and fv != fv:
                continue
            n += 1
            add(f"{kind}_{n}", values, fill, attrs, missing=missing)
        for attrs in [{"missing_value": 1}, {"scale_factor": 0.5}, {"add_offset": -10.5}, {"scale_factor": 0.1, "add_offset": 273.15, "_FillValue": attribute(7, kind)}]:
            n += 1
            add(f"{kind}_{n}", values, 0 if version == 3 else None, attrs)
    for unsigned, kind in [("true", "i1"), ("false", "u1")]:
        n += 1
        add(f"unsigned_{n}", np.array([0, 1, -1 if kind == "i1" else 255], kind), 0 if version == 3 else None, {"_Unsigned": unsigned, "_FillValue": attribute(1, kind)})
    for calendar in ["standard", "gregorian", "proleptic_gregorian", "noleap", "360_day", "julian", "all_leap"]:
        n += 1
        add(f"time_{n}", np.array([0, 31, 59, 400], "i4"), -1, {"units": "days since 2001-01-01", "calendar": calendar})
        n += 1
        add(f"time_{n}", np.array([0.25, 31.5, 59, 400]), np.nan, {"units": "hours since 1900-01-01", "calendar": calendar})
    for fill in ([0] if version == 3 else [0, None]):
        for value, attrs in [(0, {"units": "days since 2020-01-01"}), (5, {"units": "K"}), (0, {}), (3, {"units": "hours", "dtype": "timedelta64[ns]"})]:
            n += 1
            add(f"scalar_{n}", np.int64(value), fill, attrs)
    for kind, fills in [("timedelta64[s]", [0])]:
        n += 1
        add(f"span_{n}", np.array([0, 6, 12, 18], "i4"), -1, {"units": "hours", "dtype": kind})
    add("flag", np.array([0, 1, 1, 0], "i1"), 0 if version == 3 else None, {"dtype": "bool"})
    add("truth", np.array([False, True, True]), False, {})
    add("complex", np.array([0, 1 + 2j, -1j], "c8"), 0, {})
    add("big", np.array([0, 1, 7], ">i4"), 7, {})
    if version == 2:
        add("text", np.array(["", "a", "ab"], "<U2"), "", {})
    add("attrs", np.array([1.0]), 0.0, {"nan": float("nan"), "inf": float("inf"), "list": [1, None, "x"], "big": 2**60})


def null_fill(path):
    with open(path) as f:
        doc = json.load(f)
    doc["fill_value"] = None
    with open(path, "w") as f:
        json.dump(doc, f)


def dataset():
    rng = np.random.default_rng(1)
    t = rng.random((4, 3, 5), "f4")
    t[0, 0, :2] = np.nan
    ds = xr.Dataset(
        {
            "t": (("time", "lat", "lon"), t, {"units": "K"}),
            "n": (("time",), np.array([0, 1, 2, 0], "i2")),
            "flag": (("lat",), np.array([True, False, True])),
            "name": (("lat",), np.array(["", "a", "längst"])),
            "lead": (("time",), np.array([0, 6, 12, 18], "timedelta64[h]").astype("timedelta64[ns]")),
            "crs": ((), np.int32(0), {"grid_mapping_name": "latitude_longitude"}),
            "run": ((), np.datetime64("2020-01-01", "ns")),
        },
        {
            "time": np.array(["2020-01-01", "2020-01-02", "2020-02-01", "2020-03-01"], "datetime64[ns]"),
            "lat": np.array([45.0, 45.1, 45.2], "f4"),
            "lon": np.arange(5.0),
        },
    )
    return ds


ENCODINGS = {
    "plain": {},
    "packed": {"t": {"dtype": "i2", "scale_factor": 0.001, "add_offset": 0.5, "_FillValue": -32768}},
    "filled": {"t": {"_FillValue": 1e20}, "n": {"_FillValue": 0}},
    "none": {"t": {"_FillValue": None}, "time": {"units": "hours since 1900-01-01", "dtype": "f8"}},
}


def from_xarray(path, version, encoding):
    ds = dataset()
    if version == 3:
        ds = ds.drop_vars("name")  # zarr-python has no stable form of text in v3
    ds.to_zarr(path, zarr_format=version, encoding=ENCODINGS[encoding], consolidated=False)


def netcdf_references(path, engine):
    """A reference set of kerchunk over a netCDF file."""
    import kerchunk.hdf
    import kerchunk.netCDF3

    nc = path + ".nc"
    ds = dataset().drop_vars(["flag", "name"])
    encoding = {"t": {"_FillValue": 1e20, "chunksizes": (2, 3, 5)}, "n": {"_FillValue": 0}} if engine != "scipy" else {"t": {"_FillValue": 1e20}}
    ds.to_netcdf(nc, engine=engine, format="NETCDF3_64BIT" if engine == "scipy" else None, encoding=encoding)
    if engine == "scipy":
        refs = kerchunk.netCDF3.NetCDF3ToZarr(nc, inline_threshold=0).translate()
    else:
        refs = kerchunk.hdf.SingleHdf5ToZarr(nc, inline_threshold=0).translate()
    with open(path, "w") as f:
        json.dump(refs, f)


def sources(dir, fast):
    for v in (2, 3):
        yield f"zarr-python-v{v}", lambda p, v=v: plain(p, v, fast), ".zarr"
    for v, e in itertools.product((2, 3), ENCODINGS):
        yield f"xarray-v{v}-{e}", lambda p, v=v, e=e: from_xarray(p, v, e), ".zarr"
    if not fast:
        for engine in ("netcdf4", "h5netcdf", "scipy"):
            yield f"kerchunk-{engine}", lambda p, e=engine: netcdf_references(p, e), ".json"


# Readers ------------------------------------------------------------------------------


def open_xarray(path, decode):
    kwargs = {} if decode else {"decode_cf": False}
    if path.endswith((".json", ".parq")):
        import fsspec

        fs = fsspec.filesystem("reference", fo=path, asynchronous=True, remote_protocol="file", **({"lazy": True} if path.endswith(".parq") else {}))
        return xr.open_zarr(zarr.storage.FsspecStore(fs, read_only=True, path=""), consolidated=False, **kwargs)
    if path.startswith("http"):
        return xr.open_zarr(zarr.storage.FsspecStore.from_url(path, read_only=True), consolidated=False, chunks=None, **kwargs)
    return xr.open_zarr(path, consolidated=False, chunks=None, **kwargs)


def shown(path, decode):
    """What xarray shows of each variable: its type and values, or the error."""
    out = {}
    try:
        ds = open_xarray(path, decode)
    except Exception as e:
        return e
    with ds:
        for name in ds.variables:
            v = ds[name]
            try:
                out[name] = (v.dims, np.asarray(v.values))
            except Exception as e:
                out[name] = e
    return out


# What a format cannot say, by the name of the variable.
KNOWN = {
    "text": "xarray takes the fill value of v2 text for a missing value, and cannot read that in v3: an empty text is NaN in v2 and empty in v3",
}


def stored(path):
    """The elements of each array as zarr-python reads them."""
    g = zarr.open_group(path, mode="r")
    return {name: (None, np.asarray(a[...])) for name, a in g.arrays()}


def same(a, b):
    if isinstance(a, Exception) or isinstance(b, Exception):
        return isinstance(a, Exception) and isinstance(b, Exception)
    if a[0] != b[0] or a[1].shape != b[1].shape:
        return False
    x, y = a[1], b[1]
    if x.dtype == object or y.dtype == object or x.dtype.kind in "USTO":
        return x.ravel().astype(object).astype(str).tolist() == y.ravel().astype(object).astype(str).tolist()
    if x.dtype.kind in "mM":
        return x.dtype.kind == y.dtype.kind and bool(((x == y) | (np.isnat(x) & np.isnat(y))).all())
    if x.dtype.kind in "fc":
        return bool(((x == y) | ((x != x) & (y != y))).all())
    return bool((x == y).all())


OLD = """
import sys, json, zarr, numpy as np
junk = [np.full(6, 77, dtype=t) for t in ("i2", "u1", "f4", "f8", "i8") for _ in range(50)]
del junk
g, out = zarr.open(sys.argv[1], "r"), {}
for name, a in g.arrays():
    v = np.asarray(a[...])
    out[name] = [repr(x) for x in v.ravel().tolist()]
print(json.dumps(out))
"""


# Doors --------------------------------------------------------------------------------


class Run:
    def __init__(self, o, dir):
        self.o, self.dir = o, dir
        self.compared, self.refused, self.failed = 0, [], []

    def zarrdb(self, *args, check=True):
        p = subprocess.run([self.o.bin, *args], capture_output=True, text=True, timeout=300)
        if check and p.returncode:
            raise RuntimeError(f"zarrdb {' '.join(args)}: {p.stderr.strip()}")
        return p

    def compare(self, what, want, got):
        if isinstance(got, Exception):
            self.failed.append(f"{what}: {type(got).__name__}: {got}")
            return
        for name in sorted(want):
            self.compared += 1
            if name in KNOWN and " zarr2, " not in what and (" zarr" in what or "HTTP v3" in what):
                continue
            if name not in got:
                self.failed.append(f"{what}: {name} is missing")
            elif not same(want[name], got[name]):
                self.failed.append(f"{what}: {name}: {want[name]!r} became {got[name]!r}")
        for name in sorted(set(got) - set(want)):
            self.failed.append(f"{what}: {name} came from nowhere")

    def export(self, what, source, dest, format, *more):
        p = self.zarrdb("export", source, dest, "--format", format, *more, check=False)
        if p.returncode == 1 and "cannot be converted" in p.stderr:
            self.refused.append(f"{what}: {p.stderr.strip()}")
        elif p.returncode:
            self.failed.append(f"{what}: {p.stderr.strip()}")
        return p.returncode == 0

    def source(self, name, path):
        w = os.path.join(self.dir, name)
        os.makedirs(w)
        decoded, raw = shown(path, True), stored(path) if path.endswith(".zarr") else {}
        if isinstance(decoded, Exception):
            raise decoded
        db = f"{w}/db.zdb"
        self.zarrdb("import", db, path)
        sets = {"copied": db}
        if path.endswith(".json"):
            linked = f"{w}/linked.zdb"
            self.zarrdb("import", linked, path, "--link")
            sets["linked"] = linked
        for how, at in sets.items():
            outs = [("zarr2", "zarr2", ".zarr"), ("zarr3", "zarr3", ".zarr"), ("json", "kerchunk-json", ".json"), ("parquet", "kerchunk-parquet", ".parq")]
            if self.o.fast:
                outs = outs[:3]
            for short, format, ext in outs:
                what, out = f"{name} {how} {short}", f"{w}/{how}-{short}{ext}"
                if not self.export(what, at, out, format, *(["--inline"] if ext != ".zarr" else [])):
                    continue
                self.compare(what + ", xarray", decoded, shown(out, True))
                if short == "zarr2" and self.o.old:
                    self.old(what, path, out, raw)
                if short in ("zarr2", "zarr3"):  # there and back again
                    back, other = f"{w}/{how}-{short}-back.zdb", {"zarr2": "zarr3", "zarr3": "zarr2"}[short]
                    self.zarrdb("import", back, out)
                    if self.export(what + " back", back, f"{w}/{how}-{short}-back.zarr", other):
                        self.compare(f"{what} and back, xarray", decoded, shown(f"{w}/{how}-{short}-back.zarr", True))
            self.reads(f"{name} {how}", at, decoded)
        self.server(name, db, decoded)
        shutil.rmtree(w)

    def old(self, what, path, out, raw):
        p = subprocess.run([self.o.old, "-c", OLD, out], capture_output=True, text=True, timeout=300)
        if p.returncode:
            self.failed.append(f"{what}, zarr-python 2: {p.stderr.strip().splitlines()[-1]}")
            return
        for name, got in json.loads(p.stdout).items():
            if name not in raw or isinstance(raw[name], Exception):
                continue
            self.compared += 1
            want = [repr(x) for x in raw[name][1].ravel().tolist()]
            fills = {"nan"}  # missing chunks of an array that is filled with NaN are missing elements in another form
            if got != want and not all(g == w or w in fills for g, w in zip(got, want)):
                self.failed.append(f"{what}, zarr-python 2: {name}: {want} became {got}")

    def reads(self, what, at, decoded):
        """Decoded reads of the program, as .npy, against xarray."""
        for name, want in decoded.items():
            if isinstance(want, Exception) or want[1].dtype.kind in "OUST":
                continue
            out = f"{self.dir}/read.npy"
            p = self.zarrdb("read", f"{at}:{name}", "--decode-cf", "-o", out, check=False)
            self.compared += 1
            if p.returncode:
                self.failed.append(f"{what} read: {name}: {p.stderr.strip()}")
                continue
            got = (want[0], np.load(out))
            os.remove(out)
            if not same(want, got):
                self.failed.append(f"{what} read: {name}: {want!r} became {got!r}")

    def server(self, what, db, decoded):
        p = subprocess.Popen([self.o.bin, "serve", db, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            url = ""
            for line in p.stdout:
                if "http://" in line:
                    url = line[line.index("http://") :].split()[0].rstrip("/")
                    break
            if not url:
                raise RuntimeError("the server names no address")
            base = url[: url.index("/", 8)] if url.count("/") > 2 else url
            for version in ("v2", "v3"):
                at = f"{base}/db.zdb/{version}/main"
                self.compare(f"{what} HTTP {version}", decoded, shown(at, True))
        finally:
            p.terminate()
            p.wait(60)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bin", required=True)
    p.add_argument("--old")
    p.add_argument("-k", default="")
    p.add_argument("--fast", action="store_true")
    o = p.parse_args()
    o.bin = os.path.abspath(o.bin)
    with tempfile.TemporaryDirectory() as dir:
        os.environ["XDG_CONFIG_HOME"] = f"{dir}/config"
        run, began = Run(o, dir), time.time()
        for name, write, ext in sources(dir, o.fast):
            if o.k in name:
                path = f"{dir}/{name}{ext}"
                write(path)
                run.source(name, path)
        for line in run.refused:
            print("refused:", line[:300])
        for line in run.failed:
            print("FAILED:", line[:600])
        print(f"{run.compared} comparisons in {time.time() - began:.0f} s, {len(run.refused)} conversions refused by name")
        print(f"{run.compared - len(run.failed)} passed, {len(run.failed)} failed")
        sys.exit(1 if run.failed or not run.compared else 0)


if __name__ == "__main__":
    main()
