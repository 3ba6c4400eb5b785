"""Compares zarrdb with h5py and netCDF4 on HDF5 and NetCDF files.

    formats_netcdf.py --bin ./zarrdb [-k SUBSTRING]

hdf5     files of h5py: each version of the format with each layout and index of chunks,
         and in each of them data types, fill values and missing chunks; each filter; files
         that h5repack makes of them, where it is installed; and those that come with h5py
netcdf4  files of netCDF4, with groups, dimensions, texts and fill values
netcdf3  files of netCDF4 in each classic format, and nccopy's, where it is installed

The values of every array are equal to those that h5py or netCDF4 reads, to the bit: in
place, linked into a database, copied into one, and those of some arrays of each file over
HTTP.
"""
import glob, http.server, itertools, json, os, re, shutil, subprocess, threading

import h5py, hdf5plugin, netCDF4, numpy as np

from formats_common import main

VERSIONS = ["earliest", "v108", "v110", "v112", "v114", "v200", "latest"]
SHAPE = (13, 7)
NUMBERS = ["<i1", "<i2", ">i4", "<i8", "<u1", ">u2", "<u4", ">u8", "<f2", ">f4", "<f8"]


def picture(dtype, shape=SHAPE):
    """Numbers that use some of the range of their type, and texts."""
    dtype, n = np.dtype(dtype), int(np.prod(shape))
    i = np.arange(n).reshape(shape)
    if dtype.kind == "S":
        return np.array([b"text %d" % k for k in range(n)], dtype).reshape(shape)
    if dtype.kind == "V" and dtype.names is None:
        return np.frombuffer(np.arange(n * dtype.itemsize, dtype="u1").tobytes(), dtype).reshape(shape)
    if dtype.names:
        a = np.zeros(shape, dtype)
        for k, name in enumerate(dtype.names):
            a[name] = (i * (k + 3) % 100).astype(dtype[name])
        return a
    if dtype.kind == "c":
        return (i / 7 - 1j * i).astype(dtype)
    if dtype.kind == "f":
        return (i / 7 - 3).astype(dtype)
    if dtype == bool:
        return i % 3 == 0
    return (i * 3 % 120 - (0 if dtype.kind == "u" else 50)).astype(dtype)


TYPES = [*NUMBERS, "?", "<c8", ">c16", "S9", "V5", [("a", "<i4"), ("b", "<f8"), ("c", "<i2")]]

# How the elements lie, with what create_dataset says of it: one index of chunks each.
LAYOUTS = {
    "contiguous": dict(),
    "one chunk": dict(chunks=SHAPE),
    "chunks": dict(chunks=(4, 3)),
    "unlimited": dict(chunks=(4, 3), maxshape=(None, 7)),
    "unlimited last": dict(chunks=(4, 3), maxshape=(13, None)),
    "both unlimited": dict(chunks=(4, 3), maxshape=(None, None)),
    "far": dict(chunks=(1, 2), maxshape=(10**6, 9)),
    "one chunk, deflate": dict(chunks=SHAPE, compression="gzip"),
    "both unlimited, deflate": dict(chunks=(4, 3), maxshape=(None, None), compression="gzip", shuffle=True),
    "deflate": dict(chunks=(4, 3), compression="gzip", shuffle=True),
    "deflate, unlimited": dict(chunks=(2, 7), maxshape=(None, 7), compression="gzip", fletcher32=True),
}


class Ranges(http.server.BaseHTTPRequestHandler):
    """Serves files of this machine under their path, whole and in ranges."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        try:
            data = open(self.path, "rb").read()
        except OSError:
            return self.send_error(404)
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        lo, hi = 0, len(data)
        if asked and asked[1]:
            lo, hi = int(asked[1]), min(len(data), int(asked[2] or hi) + 1)
        elif asked:
            lo = max(0, len(data) - int(asked[2]))
        self.send_response(416 if lo >= hi and asked else 206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {lo}-{hi - 1}/{len(data)}" if lo < hi else f"bytes */{len(data)}")
        self.send_header("ETag", f'"{os.stat(self.path).st_mtime_ns}"')
        self.send_header("Content-Length", str(max(0, hi - lo)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data[lo:hi])

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ranges)
threading.Thread(target=server.serve_forever, daemon=True).start()


def targets(r, file, scheme):
    """The file in place, linked, copied and over HTTP, as functions from a path to a target."""
    db = r.path("copy.zdb")
    shutil.rmtree(db, ignore_errors=True)
    r.run("import", db, file)
    linked = r.link(file)
    return {"in place": lambda n: f"{file}|{scheme}:{n}", "linked": lambda n: f"{linked}:{n}", "copied": lambda n: f"{db}:{n}",
            "HTTP": lambda n: f"http://127.0.0.1:{server.server_port}{file}|{scheme}:{n}"}


def texts(r, target):
    return [json.loads(line) for line in r.run("read", target, "-o", "-").decode().splitlines()]


def plain(v):
    """An attribute of h5py or netCDF4 as JSON."""
    if isinstance(v, bytes):
        return v.decode()
    if isinstance(v, str):
        return v
    a = np.asarray(v)
    if a.dtype.kind in "OSU":
        list = [x.decode() if isinstance(x, bytes) else x for x in a.ravel()]
        return list if a.ndim else list[0]
    if a.dtype.kind == "c":
        a = np.stack([a.real, a.imag], -1)  # as Zarr has complex numbers
        return a.tolist()
    list = [bool(x) if a.dtype.kind == "b" else float(x) if a.dtype.kind == "f" else int(x) for x in a.ravel()]
    return list[0] if a.size == 1 else list


def attributes(r, target, want, what):
    have = json.loads(r.run("info", target, "--json")).get("attributes") or {}
    for k, v in want.items():
        if k not in ("_FillValue", "CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST") and have.get(k) != v:
            raise AssertionError(f"{what}: attribute {k}: {have.get(k)!r}, not {v!r}")


def check_hdf5(r, file):
    """Compares every array of a file that has a form with what h5py reads."""
    checked = 0
    with h5py.File(file) as f:
        arrays = {}
        f.visititems(lambda n, d: arrays.update({n: d}) if isinstance(d, h5py.Dataset) and d.shape is not None else None)
        places = targets(r, file, "hdf5")
        for i, (n, d) in enumerate(arrays.items()):
            kind = d.dtype.kind
            if kind == "O" and not h5py.check_string_dtype(d.dtype):
                continue  # references, and sequences
            for what, place in places.items():
                if what == "HTTP" and i % 4:
                    continue
                what = f"{n} {what}"
                if kind == "O":
                    want = [x.decode(errors="replace") if isinstance(x, bytes) else x for x in np.asarray(d[()]).ravel()]
                    got = texts(r, place(n))
                    if got != want:
                        raise AssertionError(f"{what}: {got[:3]}, not {want[:3]}")
                else:
                    r.check(place(n), np.asarray(d[()]), what)
                checked += 1
            attributes(r, places["in place"](n), {k: plain(v) for k, v in d.attrs.items()}, n)
    if not checked:
        raise AssertionError("no array was compared")


def fill(d, a, dtype):
    if d.chunks:
        d[: SHAPE[0] // 2] = a[: SHAPE[0] // 2]  # the other chunks are missing
    else:
        d[...] = a
    d.attrs["units"], d.attrs["range"], d.attrs["scale"] = "K", np.array([1, 2], "<i2"), np.float32(0.01)


def types(r, version, layout):
    file, how = r.path("a.h5"), LAYOUTS[layout]
    with h5py.File(file, "w", libver=(version, "latest")) as f:
        for k, t in enumerate(TYPES):
            dtype = np.dtype(t)
            value = {} if dtype.kind in "SV" else {"fillvalue": np.array(7, dtype)[()]}
            fill(f.create_dataset(f"t{k}", SHAPE, dtype, **value, **how), picture(dtype), dtype)
        colours = h5py.enum_dtype({"red": 1, "blue": 2}, "<i2")
        fill(f.create_dataset("enum", SHAPE, colours, **how), picture("<i2") % 3, colours)
        fill(f.create_dataset("array", SHAPE, np.dtype(("<i2", (2, 3))), **how), picture("<i2", SHAPE + (2, 3)), None)
        words = f.create_dataset("words", SHAPE, h5py.string_dtype(), **{k: v for k, v in how.items() if k not in ("fletcher32",)})
        words[:6] = np.array([f"wört {i}" for i in range(42)], object).reshape(6, 7)
        f["scalar"], f["group/inner"] = 2.5, np.arange(5)
    check_hdf5(r, file)


def special(r, version, kind):
    file = r.path("a.h5")
    with h5py.File(file, "w", libver=(version, "latest"), userblock_size=1024 if kind == "user block" else 0,
                   track_order=kind == "order") as f:
        if kind == "compact":
            p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            p.set_layout(h5py.h5d.COMPACT)
            h5py.h5d.create(f.id, b"a", h5py.h5t.IEEE_F32BE, h5py.h5s.create_simple((40,)), p).write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(40.0))
        elif kind == "implicit":
            p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            p.set_chunk((4, 3)), p.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            h5py.h5d.create(f.id, b"a", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((13, 7)), p).write(h5py.h5s.ALL, h5py.h5s.ALL, picture("<i4"))
        elif kind == "many groups":
            for i in range(200):
                f[f"g{i:03}/a"] = np.arange(i % 7 + 1)
        elif kind == "many attributes":
            d = f.create_dataset("a", data=np.arange(9))
            for i in range(60):
                d.attrs[f"a{i}"] = f"text {i}" * (i % 9)
        elif kind == "empty":
            f["zero"], f["a"] = np.zeros((0, 3)), np.arange(3)
            f.create_dataset("never", (5, 4), "<i4", fillvalue=9)
            f.create_dataset("null", data=h5py.Empty("f4"))
            f.create_dataset("resizable", (0, 4), "<i4", maxshape=(None, 4))
        elif kind == "many chunks":
            f.create_dataset("a", data=np.arange(6000, dtype="<i4"), chunks=(2,), maxshape=(None,))
            f.create_dataset("b", data=np.arange(6000, dtype="<i4"), chunks=(2,), compression="gzip")
            f.create_dataset("c", data=np.arange(6000, dtype="<i4").reshape(60, 100), chunks=(2, 3), maxshape=(None, None))
            f.create_dataset("d", data=np.arange(6000, dtype="<i4").reshape(60, 100), chunks=(3, 2), maxshape=(60, None))
        elif kind == "masks":
            d = f.create_dataset("a", (16,), "<i4", chunks=(4,), compression="gzip", shuffle=True)
            d[...] = np.arange(16)
            d.id.write_direct_chunk((4,), np.arange(4, dtype="<i4").tobytes(), 3)
        else:
            f["a"] = picture("<f8")
            f["soft"], f["hard"] = h5py.SoftLink("/a"), f["a"]
    check_hdf5(r, file)


B, P = hdf5plugin, lambda **kw: kw
FILTERS = {
    "lzf": P(compression="lzf"), "shuffle, lzf": P(compression="lzf", shuffle=True), "deflate 9": P(compression="gzip", compression_opts=9),
    "shuffle": P(shuffle=True), "fletcher32": P(fletcher32=True), "all": P(compression="gzip", shuffle=True, fletcher32=True),
    "lz4": B.LZ4(), "lz4, blocks": B.LZ4(nbytes=128), "zstd": B.Zstd(clevel=5), "bzip2": B.BZip2(),
    **{f"bitshuffle {c}": B.Bitshuffle(cname=c) for c in ("none", "lz4", "zstd")}, "bitshuffle, blocks": B.Bitshuffle(nelems=16),
    **{f"blosc {c} {s}": B.Blosc(cname=c, shuffle=s) for c in ("blosclz", "lz4", "lz4hc", "zlib", "zstd") for s in (0, 1, 2)},
    "shuffle, zstd, fletcher32": P(shuffle=True, fletcher32=True, **B.Zstd()),
}


def filters(r, how):
    file = r.path("a.h5")
    with h5py.File(file, "w") as f:
        for t in "<i2", ">f4", "<f8", "<u1":
            f.create_dataset(t.strip("<>"), data=picture(t, (37, 29)), chunks=(16, 16), **how)
    check_hdf5(r, file)


def repacked(r, *how):
    file, other = r.path("a.h5"), r.path("b.h5")
    with h5py.File(file, "w") as f:
        for k, t in enumerate(NUMBERS):
            f.create_dataset(f"a{k}", data=picture(t, (40, 30)), chunks=(8, 8))
    subprocess.run(["h5repack", *how, file, other], check=True, capture_output=True)
    check_hdf5(r, other)


def shipped(r, file):
    copy = r.path("shipped.h5")
    shutil.copy(file, copy)
    check_hdf5(r, copy)


def check_netcdf(r, file, scheme):
    places = targets(r, file, scheme)

    def group(g, prefix):
        for i, (n, v) in enumerate(g.variables.items()):
            v.set_auto_maskandscale(False)
            v.set_auto_chartostring(False)
            want = np.asarray(v[...])
            for what, place in places.items():
                if what == "HTTP" and i % 4:
                    continue
                what = f"{prefix}{n} {what}"
                if v.dtype is str:
                    if (got := texts(r, place(prefix + n))) != list(want.ravel()):
                        raise AssertionError(f"{what}: {got[:3]}, not {want.ravel()[:3]}")
                    continue
                r.check(place(prefix + n), want, what)
            info = json.loads(r.run("info", places["in place"](prefix + n), "--json"))
            if (info.get("dimension_names") or []) != list(v.dimensions):
                raise AssertionError(f"{prefix}{n}: dimensions {info.get('dimension_names')}, not {v.dimensions}")
            attributes(r, places["linked"](prefix + n), {k: plain(v.getncattr(k)) for k in v.ncattrs()}, prefix + n)
        for n, child in g.groups.items():
            group(child, f"{prefix}{n}/")

    with netCDF4.Dataset(file) as f:
        group(f, "")


def netcdf(r, form, options):
    """Coordinates, records, fill values and texts; groups where the format has them."""
    file, four = r.path("a.nc"), form.startswith("NETCDF4")
    types = "i1 i2 i4 f4 f8" + (" u1 u2 u4 i8 u8" if form in ("NETCDF4", "NETCDF3_64BIT_DATA") else "")
    with netCDF4.Dataset(file, "w", format=form) as f:
        for name, n in ("time", None), ("y", 5), ("x", 1100 if options == "large" else 6), ("n", 8), ("bare", 2):
            f.createDimension(name, n)
        how = dict(zlib=True, shuffle=True, fletcher32=options == "checked") if options in ("deflate", "checked") and four else {}
        t = f.createVariable("time", "f8", ("time",))
        t.units = "days since 2000-01-01"
        t[:] = np.arange(3)
        f.createVariable("x", "f4", ("x",))[:] = np.arange(f.dimensions["x"].size)
        for k in types.split():
            v = f.createVariable("v_" + k, k, ("time", "y", "x"), fill_value=np.array(9, k), **how)
            v.scale_factor, v.note = 0.5, "größe"
            v[0:3] = picture(k, (3, 5, f.dimensions["x"].size))
            f.createVariable("fixed_" + k, k, ("y", "bare"), **how)[...] = picture(k, (5, 2))
        f.createVariable("chars", "S1", ("y", "n"))[...] = np.frombuffer(b"one     two     three   four    five    ", "S1").reshape(5, 8)
        f.createVariable("scalar", "i4", ())[...] = 4
        f.createVariable("short", "i2", ("time", "n"))[0:1] = picture("i2", (1, 8))
        if form == "NETCDF4":
            f.createVariable("words", str, ("y",))[:] = np.array(["a", "", "bé", "c", "dd"], object)
            g = f.createGroup("inner")
            g.createDimension("z", 3)
            g.createVariable("z", "f4", ("z",))[:] = [1, 2, 3]
            g.createVariable("a", "i2", ("z", "x"), **how)[...] = picture("i2", (3, f.dimensions["x"].size))
            g.createVariable("x", "i2", ("z", "y"))[...] = picture("i2", (3, 5))
    if options == "nccopy":
        subprocess.run(["nccopy", "-k", "nc6" if four else "nc4", file, r.path("b.nc")], check=True)
        file, four = r.path("b.nc"), True
    check_netcdf(r, file, "hdf5" if four else "netcdf3")


def cases():
    for version, layout in itertools.product(VERSIONS, LAYOUTS):
        yield "hdf5", f"{version}, {layout}", types, version, layout
    for version, kind in itertools.product(["earliest", "v110", "v200", "latest"], ["compact", "implicit", "many groups", "many attributes", "empty", "many chunks", "masks", "user block", "order", "links"]):
        yield "hdf5", f"{version}, {kind}", special, version, kind
    for name, how in FILTERS.items():
        yield "hdf5", name, filters, how
    if shutil.which("h5repack"):
        for how in ["-f", "GZIP=4"], ["-f", "SHUF", "-f", "GZIP=1"], ["-l", "CONTI"], ["-l", "CHUNK=5x5"], ["-L"], ["-f", "FLET"], ["-S", "PAGE"]:
            yield "hdf5", "h5repack " + " ".join(how), repacked, *how
    for file in sorted(glob.glob(os.path.join(os.path.dirname(h5py.__file__), "tests", "data_files", "*.h5"))):
        yield "hdf5", os.path.basename(file), shipped, file
    for form in "NETCDF4", "NETCDF4_CLASSIC":
        for options in "plain", "deflate", "checked", "large":
            yield "netcdf4", f"{form}, {options}", netcdf, form, options
    for form in "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA":
        for options in "plain", "large", *(["nccopy"] if shutil.which("nccopy") else []):
            yield "netcdf3", f"{form}, {options}", netcdf, form, options


if __name__ == "__main__":
    main(__doc__, cases())
