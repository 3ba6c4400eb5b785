"""Stores that other programs write, as sources of meaning.py, and what their arrays mean."""

import itertools
import json
import os

import numpy as np
import xarray as xr
import zarr
from xarray.backends.zarr import FillValueCoder

zarr.config.set({"array.write_empty_chunks": False})
CALENDARS = ["standard", "gregorian", "proleptic_gregorian", "noleap", "365_day", "360_day", "julian", "all_leap", "366_day"]
UNITS = ["days", "hours", "minutes", "seconds", "milliseconds", "microseconds"]


def null_fill(path):
    with open(path) as f:
        doc = json.load(f)
    doc["fill_value"] = None
    with open(path, "w") as f:
        json.dump(doc, f)


class Group:
    """A group of zarr-python that gets arrays."""

    def __init__(self, path, version):
        self.path, self.version = path, version
        self.group, self.n = zarr.open_group(path, mode="w", zarr_format=version), 0

    def add(self, name, values, fill, attrs, dims=None, chunks=2, missing=False):
        data = np.asarray(values)
        dims = [f"x{n}" for n in data.shape] if dims is None else dims
        names = {"dimension_names": dims} if self.version == 3 and dims else {}
        a = self.group.create_array(name, shape=data.shape, dtype=data.dtype, chunks=(chunks,) * data.ndim, fill_value=fill, attributes=attrs, **names)
        if self.version == 2:
            if dims or not data.ndim:
                a.attrs["_ARRAY_DIMENSIONS"] = dims
            if fill is None:
                null_fill(f"{self.path}/{name}/.zarray")
        if missing:
            a[:chunks] = data[:chunks]
        else:
            a[...] = data

    def next(self, name, *args, **more):
        self.n += 1
        self.add(f"{name}_{self.n}", *args, **more)

    def attribute(self, v, dtype):
        return FillValueCoder.encode(v, np.dtype(dtype)) if self.version == 3 else v

    @property
    def no_fill(self):
        """What stands for no fill value: null, or in v3 zero."""
        return 0 if self.version == 3 else None


def plain(path, version, fast):
    """Arrays of zarr-python: every type with every fill value and attribute."""
    g = Group(path, version)
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
            attrs = {} if fv is None else {"_FillValue": g.attribute(fv, kind)}
            if version == 2 and fv is not None and fv != fv:
                continue
            g.next(kind, values, fill, attrs, missing=missing)
        for attrs in [{"missing_value": 1}, {"missing_value": 7, "_FillValue": g.attribute(7, kind)}, {"valid_range": [0, 50]}, {"scale_factor": 0.5}, {"add_offset": -10.5}]:
            g.next(kind, values, g.no_fill, attrs)
        g.next(kind, values, g.no_fill, {"scale_factor": 0.1, "add_offset": 273.15, "_FillValue": g.attribute(7, kind)})
    for unsigned, kind in [("true", "i1"), ("false", "u1")]:
        g.next("unsigned", np.array([0, 1, -1 if kind == "i1" else 255], kind), g.no_fill, {"_Unsigned": unsigned, "_FillValue": g.attribute(1, kind)})
    for calendar in CALENDARS:
        g.next("time", np.array([0, 31, 58, 400], "i4"), -1, {"units": "days since 2001-01-01", "calendar": calendar})
        g.next("time", np.array([0.25, 31.5, 59, 400]), np.nan, {"units": "hours since 1900-01-01", "calendar": calendar})
    for unit in UNITS:
        g.next("unit", np.array([0, 1, 59, 86400], "i8"), -1, {"units": f"{unit} since 2001-01-01 06:00:00"})
        g.next("span", np.array([0, 6, 12, 18], "i4"), -1, {"units": unit, "dtype": "timedelta64[ns]"})
    for fill in ([0] if version == 3 else [0, None]):
        for value, attrs in [(0, {"units": "days since 2020-01-01"}), (5, {"units": "K"}), (0, {}), (3, {"units": "hours", "dtype": "timedelta64[ns]"})]:
            g.next("scalar", np.int64(value), fill, attrs)
    g.next("span", np.array([0, 6, 12, 18], "i4"), -1, {"units": "hours", "dtype": "timedelta64[s]"})
    g.add("flag", np.array([0, 1, 1, 0], "i1"), g.no_fill, {"dtype": "bool"})
    g.add("truth", np.array([False, True, True]), False, {})
    g.add("complex", np.array([0, 1 + 2j, -1j], "c8"), 0, {})
    g.add("big", np.array([0, 1, 7], ">i4"), 7, {})
    g.add("moment", np.array(["2020-01-01", "2021-01-01", "NaT"], "M8[s]"), np.datetime64("NaT", "s"), {})
    if version == 2:
        g.add("text", np.array(["", "a", "ab"], "<U2"), "", {})
        g.add("bytes", np.array([b"", b"a", b"ab"], "S2"), b"", {})
    image = np.arange(12, dtype="f4").reshape(3, 4)
    g.add("image", image, -1, {"_FillValue": g.attribute(-1, "f4")})
    g.add("x6", np.array([45, 45.1, 45.2, 45.3, 45.4, 45.5], "f4"), np.nan, {}, chunks=6)
    g.add("x4", np.array([10, 20, 30, 40], "i4"), -1, {}, chunks=4)
    g.add("x3", np.array([0.1, 0.2, 0.3]), np.nan, {}, chunks=3)


def odd_attributes(path, version):
    """Arrays with attributes that strict JSON does not have."""
    g = Group(path, version)
    g.add("attrs", np.array([1.0, 2.0]), np.nan, {"nan": float("nan"), "inf": float("inf"), "list": [1, None, "x"], "big": 2**60})
    g.add("x2", np.array([10.0, 20.0]), np.nan, {"nan": float("nan")})


def coordinates(path, version):
    """Arrays whose coordinates are times of every calendar and unit, spans, numbers and text."""
    g = Group(path, version)

    def pair(values, fill, attrs):
        g.n += 1
        dim, values = f"c{g.n}", np.asarray(values)
        g.add(dim, values, fill, attrs, dims=[dim], chunks=len(values))
        g.add(f"of_{dim}", np.arange(len(values), dtype="i2"), -1, {}, dims=[dim])

    for calendar, unit in itertools.product(CALENDARS, UNITS[:4]):
        pair(np.array([0, 40, 58, 800], "i8"), -1, {"units": f"{unit} since 2001-01-01", "calendar": calendar})
    for unit in UNITS[4:]:
        pair(np.array([0, 10**6, 10**9, 10**12]), -1, {"units": f"{unit} since 2001-01-01"})
    for unit in UNITS:
        pair(np.array([0, 6, 12, 18], "i4"), -1, {"units": unit, "dtype": "timedelta64[ns]"})
    for kind in ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]:
        pair(np.array([1, 2, 4, 8], kind), 0, {})
    for kind in ["f2", "f4", "f8"]:
        pair(np.array([45, 45.1, 45.2, 45.3], kind), np.nan, {})
    pair(np.array([450, 451, 452, 453], "i2"), -1, {"scale_factor": 0.1})
    if version == 2:
        pair(np.array(["a", "b", "ab", "c d"], "<U4"), "-", {})


def unnamed(path, version):
    """Arrays without names of dimensions, which xarray does not open."""
    g = Group(path, version)
    for kind in ["i2", "f4", "f8"]:
        for fill in [0, 7] + ([np.nan] if kind[0] == "f" else []):
            g.next(kind, np.array([0, 1, 7, 0], kind), fill, {"_FillValue": g.attribute(1, kind)}, dims=[])
            g.next(kind, np.array([0, 1, 7, 0], kind), fill, {}, dims=[], missing=True)


def dataset():
    rng = np.random.default_rng(1)
    t = rng.random((4, 3, 5), "f4")
    t[0, 0, :2] = np.nan
    return xr.Dataset(
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


def netcdf(path, engine, drop=("flag", "name")):
    encoding = {"t": {"_FillValue": 1e20, "chunksizes": (2, 3, 5)}, "n": {"_FillValue": 0}} if engine != "scipy" else {"t": {"_FillValue": 1e20}}
    dataset().drop_vars(list(drop)).to_netcdf(path, engine=engine, format="NETCDF3_64BIT" if engine == "scipy" else None, encoding=encoding)


def by_kerchunk(path, engine):
    """A reference set of kerchunk over a netCDF file."""
    import kerchunk.hdf
    import kerchunk.netCDF3

    nc = path + ".nc"
    netcdf(nc, engine)
    if engine == "scipy":
        refs = kerchunk.netCDF3.NetCDF3ToZarr(nc, inline_threshold=0).translate()
    else:
        refs = kerchunk.hdf.SingleHdf5ToZarr(nc, inline_threshold=0).translate()
    with open(path, "w") as f:
        json.dump(refs, f)


def by_virtualizarr(path, form):
    """A reference set or a repository of VirtualiZarr over a netCDF file."""
    import virtualizarr
    from obstore.store import LocalStore
    from virtualizarr.parsers import HDFParser
    from virtualizarr.registry import ObjectStoreRegistry

    nc = path + ".nc"
    # Its parquet sets cannot have arrays without dimensions.
    netcdf(nc, "h5netcdf", ["flag", "name"] + (["crs", "run"] if form == "parquet" else []))
    vds = virtualizarr.open_virtual_dataset("file://" + nc, registry=ObjectStoreRegistry({"file://": LocalStore()}), parser=HDFParser(), loadable_variables=[])
    if form != "icechunk":
        vds.vz.to_kerchunk(path, format=form)
        return
    repo = icechunk_repository(path, create=True)
    session = repo.writable_session("main")
    vds.vz.to_icechunk(session.store)
    session.commit("virtual")


def icechunk_repository(path, create=False):
    """A repository of icechunk, whose virtual chunks lie beside it or below the folder of meaning.py."""
    import icechunk

    config, above = icechunk.RepositoryConfig.default(), f"file://{os.environ['MEANING']}/"
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(above, store=icechunk.local_filesystem_store(above[7:])))
    how = icechunk.Repository.create if create else icechunk.Repository.open
    return how(icechunk.local_filesystem_storage(path), config=config, authorize_virtual_chunk_access={above: None})


def by_nczarr(path):
    """A store of netCDF-C's NCZarr."""
    import netCDF4

    with netCDF4.Dataset(f"file://{path}#mode=nczarr,file", "w") as d:
        for name, n in [("y", 3), ("x", 4)]:
            d.createDimension(name, n)
            d.createVariable(name, "f8", (name,))[:] = np.arange(n)
        for kind, fill in [("i2", -1), ("i4", False), ("f4", 1e20), ("f8", None)]:
            v = d.createVariable(f"v_{kind}", kind, ("y", "x"), fill_value=fill)
            v.units = "K"
            v[:] = np.arange(12).reshape(3, 4)
        p = d.createVariable("packed", "i2", ("x",), fill_value=-9)
        p.scale_factor, p.add_offset = 0.5, 10.0
        p[:] = [10, 11, 12, 13]


def by_zarrdb(path, version, zarrdb):
    """A store that zarrdb makes of arrays that its commands create and write."""
    db = path + ".zdb"
    zarrdb("init", db)
    for i, (dtype, fill, attrs, values) in enumerate([
        ("<i2", "-1", {}, [0, 1, -1, 7]), ("<f4", "NaN", {"units": "K"}, [0, np.nan, 2, 3]), ("<f8", "0", {}, [0, 1, np.nan, 3]),
        ("<i4", "0", {"units": "days since 2020-01-01"}, [1, 2, 3, 4]), ("|u1", "255", {"scale_factor": 0.5}, [0, 255, 2, 4]), ("|b1", "false", {}, [True, False, True, True]),
    ]):
        at = f"{db}:a{i}"
        zarrdb("create", at, "--shape", "4", "--chunks", "2", "--dtype", dtype, "--fill", fill, "--dims", "x4", "--attrs", json.dumps(attrs), "--format", str(version))
        np.save(f"{path}.npy", np.array(values, dtype))
        zarrdb("write", at, "-i", f"{path}.npy")
    zarrdb("create", f"{db}:hole", "--shape", "4", "--chunks", "2", "--dtype", "<f4", "--fill", "1", "--dims", "x4", "--format", str(version))
    zarrdb("export", db, path)


def sources(fast, zarrdb):
    """Yields names of sources, what writes each to a path, and how the path ends."""
    for v in (2, 3):
        yield f"zarr-python-v{v}", lambda p, v=v: plain(p, v, fast), ".zarr"
        yield f"unnamed-v{v}", lambda p, v=v: unnamed(p, v), ".zarr"
        yield f"odd-attributes-v{v}", lambda p, v=v: odd_attributes(p, v), ".zarr"
    for v, e in itertools.product((2, 3), ENCODINGS):
        yield f"xarray-v{v}-{e}", lambda p, v=v, e=e: from_xarray(p, v, e), ".zarr"
    for v in (2, 3):
        yield f"zarrdb-v{v}", lambda p, v=v: by_zarrdb(p, v, zarrdb), ".zarr"
    if fast:
        return
    for v in (2, 3):
        yield f"coordinates-v{v}", lambda p, v=v: coordinates(p, v), ".zarr"
    yield "nczarr", by_nczarr, ".zarr"
    for engine in ("netcdf4", "h5netcdf", "scipy"):
        yield f"kerchunk-{engine}", lambda p, e=engine: by_kerchunk(p, e), ".json"
    yield "virtualizarr-json", lambda p: by_virtualizarr(p, "json"), ".json"
    yield "virtualizarr-parquet", lambda p: by_virtualizarr(p, "parquet"), ".parq"
    yield "virtualizarr-icechunk", lambda p: by_virtualizarr(p, "icechunk"), ".icechunk"


# What arrays mean ---------------------------------------------------------------------


def meanings(a):
    """What an array of zarr-python means, in words."""
    attrs, kind, out = dict(a.attrs), a.dtype.kind, set()
    if kind in "iuf":
        out.add(f"type {a.dtype.name}")
        if a.dtype.byteorder == ">":
            out.add("big-endian")
    else:
        out.add({"b": "type bool", "c": "type complex", "M": "type datetime64", "U": "text", "T": "text", "O": "text", "S": "bytes"}.get(kind, "type " + kind))
    fill = a.fill_value
    if a.metadata.zarr_format == 2 and fill is None:
        out.add("fill null")
    elif kind in "iuf":
        f = float(fill)
        out.add("fill NaN" if f != f else "fill infinite" if np.isinf(f) else "fill 0" if f == 0 else "fill 1e20" if np.float32(f) == np.float32(1e20) else "fill other")
    for name in ("_FillValue", "missing_value"):
        if name not in attrs:
            out.add(f"no {name}")
            continue
        v = attrs[name]
        if name == "_FillValue" and isinstance(v, str) and kind in "iuf":  # VirtualiZarr writes it so in v2 too
            v = FillValueCoder.decode(v, a.dtype)
        equal = fill is not None and kind in "iuf" and (float(v) == float(fill) or (v != v and fill != fill))
        out.add(f"{name} is the fill value" if equal else f"{name} other than the fill value")
    for name, word in [("scale_factor", "scale"), ("add_offset", "offset"), ("_Unsigned", "_Unsigned"), ("valid_range", "valid_range")]:
        if name in attrs:
            out.add(word)
    units = attrs.get("units", "")
    if " since " in units:
        out |= {f"times in {units.split()[0]}", f"calendar {attrs.get('calendar', 'not given')}"}
    if attrs.get("dtype", "").startswith("timedelta"):
        out.add(f"spans in {units}")
    if attrs.get("dtype") == "bool":
        out.add("dtype bool")
    if not a.shape:
        out.add("scalar")
    if a.nchunks_initialized < a.nchunks:
        out.add("chunks missing")
    if "NaN" in json.dumps(attrs) or "Infinity" in json.dumps(attrs):
        out.add("NaN among attributes")
    names = a.metadata.dimension_names if a.metadata.zarr_format == 3 else attrs.get("_ARRAY_DIMENSIONS")
    out.add("names of dimensions" if names is not None else "no names of dimensions")
    return out


def cover(tags):
    """Some of the arrays, which mean everything that all do."""
    left, chosen = set().union(*tags.values()) if tags else set(), []
    while left:
        best = max(tags, key=lambda n: len(tags[n] & left))
        chosen.append(best)
        left -= tags[best]
    return chosen
