"""Writes files of netCDF4 and index.json, what netCDF4 reads of them: python generate.py (netCDF4 1.7.5, netcdf-c 4.10.1)"""
import hashlib, json, sys
import netCDF4, numpy as np

NUMBERS = {"NETCDF3_CLASSIC": "i1 i2 i4 f4 f8", "NETCDF3_64BIT_OFFSET": "i1 i2 i4 f4 f8", "NETCDF3_64BIT_DATA": "i1 u1 i2 u2 i4 u4 i8 u8 f4 f8"}
index = {}


def fill(v, n):
    a = (np.arange(n) * 7 % 251 - (0 if np.dtype(v.dtype).kind == "u" else 99))
    v[:] = a.astype(v.dtype).reshape(v.shape if v.shape[0] else (-1,) + v.shape[1:])


def made(name, form, write):
    with netCDF4.Dataset(name, "w", format=form) as f:
        f.set_fill_off()
        write(f)
    read(name)


def special(x):
    x = float(x)
    return "NaN" if x != x else "Infinity" if x == np.inf else "-Infinity" if x == -np.inf else x


def plain(v):
    if isinstance(v, (str, bytes)):
        return v if isinstance(v, str) else v.decode()
    a = np.asarray(v)
    values = [special(x) if a.dtype.kind == "f" else int(x) for x in a.ravel()]
    return values[0] if a.ndim == 0 else values


def read(name):
    with netCDF4.Dataset(name) as f:
        f.set_auto_maskandscale(False)
        f.set_auto_chartostring(False)
        arrays = {}
        for n, v in f.variables.items():
            a = np.asarray(v[...])
            a = a.astype(a.dtype.newbyteorder("<"))
            arrays[n] = {"shape": list(a.shape), "dims": list(v.dimensions), "dtype": a.dtype.str[1:], "sha256": hashlib.sha256(a.tobytes()).hexdigest(),
                         "attributes": {k: plain(v.getncattr(k)) for k in v.ncattrs() if k != "_FillValue" or a.dtype.kind != "S"}}
        index[name] = {"attributes": {k: plain(f.getncattr(k)) for k in f.ncattrs()}, "arrays": arrays}


for form, types in NUMBERS.items():
    short = {"NETCDF3_CLASSIC": "cdf1", "NETCDF3_64BIT_OFFSET": "cdf2", "NETCDF3_64BIT_DATA": "cdf5"}[form]

    def mixed(f):
        f.createDimension("time", None), f.createDimension("y", 3), f.createDimension("x", 5), f.createDimension("n", 7)
        f.title, f.empty, f.numbers = "höhe", "", np.array([1, -2, 3], "i2")
        f.setncattr("f", np.float32(0.01)), f.setncattr("odd", np.array([np.nan, np.inf, -np.inf, 1e-300]))
        for t in types.split():
            v = f.createVariable("fixed_" + t, t, ("y", "x"), fill_value=np.array(9, t))
            v.setncattr("valid_range", np.array([1, 100], t))
            fill(v, 15)
            fill(f.createVariable("rec_" + t, t, ("time", "x")), 20)
        f.createVariable("scalar", "f8", ())[...] = 2.5
        c = f.createVariable("chars", "S1", ("time", "n"), fill_value=b"x")
        c[0:4] = np.frombuffer(b"one\0\0\0\0twotwo\0three\0\0fourfou", "S1").reshape(4, 7)
        c.text = "a\0b"

    made(short + "_mixed.nc", form, mixed)

    def records(f):  # of 4 KiB and more, with padding between
        f.createDimension("time", None), f.createDimension("y", 2), f.createDimension("x", 1025)
        fill(f.createVariable("a", "i2", ("time", "y", "x")), 3 * 2050)
        fill(f.createVariable("b", "i1", ("time", "x")), 3 * 1025)
        fill(f.createVariable("c", "f4", ("time", "x")), 3 * 1025)

    made(short + "_records.nc", form, records)


def single(f):
    f.createDimension("n", None), f.createDimension("x", 3)
    fill(f.createVariable("b", "i1", ("n", "x")), 33)
    fill(f.createVariable("x", "f8", ("x",)), 3)


def nothing(f):
    f.createDimension("n", None), f.createDimension("x", 3)
    f.createVariable("a", "i2", ("n", "x")), f.createVariable("b", "i1", ("n",))


made("single.nc", "NETCDF3_CLASSIC", single)
made("no_records.nc", "NETCDF3_CLASSIC", nothing)
made("empty.nc", "NETCDF3_64BIT_DATA", lambda f: None)
# A writer of streams does not know the number of records.
for name, at in ("cdf1_mixed", 4), ("cdf5_records", 8), ("single", 4):
    b = bytearray(open(name + ".nc", "rb").read())
    b[4 : 4 + at] = b"\xff" * at
    open(name + "_stream.nc", "wb").write(b)
    index[name + "_stream.nc"] = index[name + ".nc"]
json.dump(index, open("index.json", "w"), indent=0)
