"""Writes decode.json: what xarray shows of arrays with CF attributes.

    pip install xarray==2026.9.0 zarr==3.1.6 numpy==2.4.6 cftime==1.6.6.1
    python decode.py > decode.json

A case is an array of one dimension as zarr-python stores it: its documents, its
elements as stored in hexadecimal, and the data type and values that
xarray.open_zarr gives. Times are ISO 8601, missing ones null; spans are nanoseconds.
"""

import itertools
import json
import tempfile
import warnings

import cftime
import numpy as np
import xarray as xr
import zarr
from xarray.backends.zarr import FillValueCoder

warnings.simplefilter("ignore")
cases = []


def shown(values):
    out = []
    for v in np.asarray(values).ravel().tolist() if values.dtype.kind not in "mM" else values.ravel():
        if isinstance(v, cftime.datetime):
            v = v.isoformat()
        elif isinstance(v, np.datetime64):
            v = None if np.isnat(v) else str(v.astype("datetime64[us]")).removesuffix(".000000")
        elif isinstance(v, np.timedelta64):
            v = None if np.isnat(v) else int(v.astype("timedelta64[ns]").astype("int64"))
        elif isinstance(v, float):
            v = repr(v)
        out.append(v)
    return out


def add(values, dtype, attrs, fill=None, version=3):
    data = np.array(values, dtype)
    with tempfile.TemporaryDirectory() as d:
        group = zarr.open_group(d, mode="w", zarr_format=version)
        names = {"dimension_names": ["x"]} if version == 3 else {}
        a = group.create_array("v", shape=data.shape, dtype=data.dtype, chunks=data.shape, fill_value=fill, attributes=attrs, **names)
        a[:] = data
        if version == 2:
            a.attrs["_ARRAY_DIMENSIONS"] = ["x"]
            if fill is None:  # zarr-python 3 has a default, zarr-python 2 wrote null
                path = f"{d}/v/.zarray"
                doc = json.load(open(path))
                doc["fill_value"] = None
                json.dump(doc, open(path, "w"))
        docs = {}
        for name in ["zarr.json", ".zarray", ".zattrs"]:
            try:
                docs[name] = json.load(open(f"{d}/v/{name}"))
            except FileNotFoundError:
                pass
        try:
            got = xr.open_zarr(d, consolidated=False).v
            want = {"type": str(got.dtype), "values": shown(got.values)}
        except Exception as e:
            want = {"error": type(e).__name__}
        cases.append({"docs": docs, "stored": data.tobytes().hex(), **want})


def missing(v, dtype, version):
    return FillValueCoder.encode(v, np.dtype(dtype)) if version == 3 else v


for version in (2, 3):
    for dtype in ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float16", "float32", "float64"]:
        values = [0, 1, 7, 100] if dtype[0] != "f" else [0, 1, float("nan"), 100.5]
        for fill, fv, mv in itertools.product([None, 0, 7], [None, 1, 0], [None, 100, [1, 100]]):
            attrs = {}
            if fv is not None:
                attrs["_FillValue"] = missing(fv, dtype, version)
            if mv is not None:
                attrs["missing_value"] = mv
            if version == 3 and fill is None and dtype[0] == "f":
                continue
            add(values, dtype, attrs, fill, version)
        for packing in [{"scale_factor": 0.1}, {"add_offset": 10.5}, {"scale_factor": 0.01, "add_offset": 273.15}]:
            add(values, dtype, packing, 0, version)
            add(values, dtype, {**packing, "_FillValue": missing(1, dtype, version)}, None, version)
    for dtype, name, packing in itertools.product(["int16", "uint8", "float32"], ["_FillValue", "missing_value"], [{}, {"scale_factor": 0.5}]):
        for v in ["5", "", [], [None, 5], [5, "x"], [[5], [1]], True, 5.5, 1e20, "NaN", ["AAAAAAAAFEA="]]:
            add([0, 1, 5, 255 if dtype[0] == "u" else -99], dtype, {name: v, **packing}, None, version)
    for unsigned, dtype in [("true", "int8"), ("true", "int16"), ("false", "uint8")]:
        add([0, 1, 127, -1 if dtype[0] == "i" else 255], dtype, {"_Unsigned": unsigned}, None, version)
        add([0, 1, 127, -1 if dtype[0] == "i" else 255], dtype, {"_Unsigned": unsigned, "_FillValue": missing(1, dtype, version)}, None, version)
    for dtype, sign, name, v in itertools.product(["int8", "int16", "uint8", "uint16", "int32", "uint32"], [None, "true", "false"], ["_FillValue", "missing_value"], [-1, 255, 65535, -99999, [-1, 100]]):
        if name == "_FillValue" and isinstance(v, list):
            continue
        greatest = np.iinfo(dtype).max
        add([0, 1, 100, greatest if dtype[0] == "u" else -1], dtype, {name: v} | ({"_Unsigned": sign} if sign else {}), None, version)
    for calendar in [None, "standard", "gregorian", "proleptic_gregorian", "noleap", "365_day", "360_day", "julian", "all_leap", "366_day"]:
        extra = {} if calendar is None else {"calendar": calendar}
        for units in ["days since 2001-02-27", "hours since 1900-1-1 00:00:0.0", "days since 0001-01-01", "seconds since 1970-01-01T06:00"]:
            for dtype, values in [("int32", [0, 1, 59, 366, 730000]), ("float64", [0, 0.25, 59.5, 70000.125])]:
                if dtype[0] == "f" and calendar not in (None, "standard", "proleptic_gregorian", "noleap"):
                    continue
                add(values, dtype, {"units": units, **extra}, -5 if dtype == "int32" else float("nan"), version)
    add([0, 1, -(2**63)], "int64", {"units": "days since 2020-01-01"}, None, version)
    add([0, 1, 9], "int64", {"units": "days since 2020-01-01", "_FillValue": 9}, None, version)
    add([0, 0.3, float("nan")], "float64", {"units": "hours since 2020-01-01"}, float("nan"), version)
    for unit, kind in itertools.product(["days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds", "weeks"], ["timedelta64[s]", "timedelta64[us]", "timedelta64[ns]", "timedelta64[D]", None]):
        attrs = {"units": unit} | ({"dtype": kind} if kind else {})
        big = 1 if unit in ("days", "hours", "minutes", "seconds", "weeks") else 10**9
        add([0, big, 36 * big], "int64", attrs, None, version)
        add([0, 1.5, -0.1, 1 / 3, float("nan")], "float64", attrs, float("nan"), version)
    add([0, 1, 2], "int8", {"dtype": "bool"}, None, version)
    add([0, 1, 0], "int8", {"dtype": "bool"}, 0, version)

print(json.dumps({"made_with": {m.__name__: m.__version__ for m in (xr, zarr, np, cftime)}, "cases": cases}, separators=(",", ":")).replace('{"docs"', '\n{"docs"'))
