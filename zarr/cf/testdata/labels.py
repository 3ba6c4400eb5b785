"""Writes labels.json: what xarray's sel selects by labels.

    pip install xarray==2026.9.0 pandas==2.3.3 numpy==2.4.6 cftime==1.6.6.1
    python labels.py > labels.json

A case is a coordinate as it is stored (data type, attributes, values), the two
ends of a range or one label, and what came of it: the selected elements, null if
xarray raised KeyError. "one" says that sel dropped the dimension.
"""

import json
import random

import cftime
import numpy as np
import pandas as pd
import xarray as xr

rng = random.Random(1)
cases = []


def stored(values, dtype, attrs):
    """The coordinate as xr.decode_cf gives it."""
    var = xr.Variable(("x",), np.array(values, dtype), attrs)
    return xr.decode_cf(xr.Dataset({"v": (("x",), np.arange(len(values))), "x": var}))


def run(ds, key):
    try:
        out = ds.v.sel(x=key)
    except KeyError:
        return None, False
    return np.atleast_1d(out.values).tolist(), out.ndim == 0


def add(values, dtype, attrs, labels, number=None):
    ds = stored(values, dtype, attrs)
    result = []
    for label in labels:
        parse = number or (lambda s: s)
        if isinstance(label, tuple):
            key = slice(*(None if s is None else parse(s) for s in label))
        else:
            key = parse(label)
        got, one = run(ds, key)
        result.append({"label": label, "want": got, "one": one})
    plain = ["NaN" if v != v else v for v in values]
    cases.append({"dtype": dtype, "attrs": attrs, "values": plain, "labels": result})


def pairs(texts, n):
    out = [(None, None)]
    for _ in range(n):
        a, b = rng.choice(texts), rng.choice(texts)
        out.append((a, b))
    for t in rng.sample(texts, min(len(texts), 4)):
        out += [(t, None), (None, t)]
    return out + rng.sample(texts, min(len(texts), 6))


# Numbers: up, down, repeated, in no order, empty, of one element.
for dtype in ["float32", "float64", "int16", "int64", "uint8"]:
    for shape in ["up", "down", "up2", "down2", "none", "none2", "one", "empty"]:
        grid = [0.1, 0.2, 0.3, 0.7, 1.1, 2.5, 45, 50.25, 60] if dtype[0] == "f" else [1, 2, 5, 7, 9, 50, 100, 120]
        vals = sorted(rng.sample(grid, 6))
        if shape.endswith("2"):
            vals = sorted(vals + vals[2:4])
        if shape.startswith("down"):
            vals.reverse()
        if shape.startswith("none"):
            rng.shuffle(vals)
        vals = {"one": vals[:1], "empty": []}.get(shape, vals)
        texts = [repr(v) for v in grid] + ["0", "-1", "0.15", "55", "1000", "2.6"]
        add(vals, dtype, {}, pairs(texts, 12), float)
add([0.5, 1.5, float("nan"), 3.5], "float64", {}, [("0.5", "3.5"), ("1.5", None), ("1", "2"), "1.5"], float)
# Packed: a scale factor of a power of two is exact.
add([360, 300, 240, 180, 0, -360], "int16", {"scale_factor": 0.25}, pairs(["90", "75", "60", "50", "45", "0", "-90", "-91"], 12), float)

# Times as numpy has them.
texts = ["2019", "2020", "2020-01", "2020-02", "2020-03", "2020-02-01", "2020-02-29", "2020-03-01T00:00:00", "2020-02-01T06", "2020-02-01T06:30", "2021"]
for units, step in [("days since 2020-01-01", 1), ("hours since 2020-01-30", 6), ("minutes since 2020-02-01", 15)]:
    for shape in ["up", "up2", "monthly"]:
        vals = [step * i for i in range(0, 60, 3)]
        if shape == "up2":
            vals = sorted(vals + vals[4:6])
        if shape == "monthly":
            vals = [0, 31, 60, 91]
        add(vals, "int32", {"units": units}, pairs(texts, 14) + ["2020-02-01"])
# Times of other calendars, up and down.
for calendar in ["noleap", "360_day"]:
    for shape in ["up", "down"]:
        vals = list(range(0, 90, 5))
        if shape == "down":
            vals.reverse()
        ranges = [p for p in pairs([t for t in texts if t != "2020-02-29"], 14) if isinstance(p, tuple)]
        add(vals, "int32", {"units": "days since 2020-01-01", "calendar": calendar}, ranges)
# Spans of time, and floats that have a missing value.
spans = ["0h", "6h", "6 hours", "06:00:00", "1 days 00:00:00", "1D", "90min", "1 day", "36h", "1 day 12:00:00", "100d", "-1h", "12h"]
for kind in ["timedelta64[ns]", "timedelta64[s]"]:
    add([0, 6, 12, 18, 24, 36], "int32", {"units": "hours", "dtype": kind}, pairs(spans, 16))
    add([0, 30, 90, 360, 391, 720], "int64", {"units": "minutes", "dtype": kind}, pairs(spans, 16))
for dtype in ["float32", "float64"]:
    texts = ["45", "45.1", "45.2", "45.3", "45.5", "45.7", "46", "45.15"]
    add([45.0, 45.1, 45.2, 45.3, 45.5, 45.7], dtype, {"missing_value": 1e20}, pairs(texts, 12), float)
    add([45.7, 45.5, 45.3, 45.2, 45.1, 45.0], dtype, {"_FillValue": -999.0}, pairs(texts, 12), float)
# Spans between two counts.
add([0, 1, 2, 3, 4], "int32", {"units": "seconds", "dtype": "timedelta64[s]"}, ["2s", "1500ms", "2000ms", "2500us", "1.5s", (None, "1500ms")])
add([0, 1, 2, 3, 4], "int32", {"units": "days", "dtype": "timedelta64[s]"}, ["1D", "36h", "500ms", ("36h", "84h")])

print(json.dumps({
    "made_with": {m.__name__: m.__version__ for m in (xr, pd, np, cftime)},
    "cases": cases,
}).replace('{"dtype"', '\n{"dtype"'))
