"""Other programs on the work of bench, one part in each process:

    peers.py PART key=value ...

prints a line of JSON for each figure. Times are those of what a user calls; what
only this script needs is left out.
"""
import json
import os
import random
import statistics
import sys
import time

part = sys.argv[1]
args = dict(a.split("=", 1) for a in sys.argv[2:])


def emit(variant, metric, value, unit, system, better):
    print(json.dumps({"workload": args["workload"], "variant": variant, "metric": metric, "value": value,
                      "unit": unit, "system": system, "better": better}), flush=True)


def peak_mib():
    """The most memory that this program had; the kernel counts in KiB."""
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    raise OSError("no VmHWM")


def p50(fn, items):
    times = []
    for item in items:
        start = time.perf_counter()
        fn(item)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def keys(n, count):
    rng = random.Random(3)
    for _ in range(count):
        i = rng.randrange(n)
        yield f"t/{i // 1000}.{i % 1000}"


def fsspec_json():
    import fsspec
    n, variant, system = int(args["n"]), args["variant"], "fsspec"
    start = time.perf_counter()
    fs = fsspec.filesystem("reference", fo=args["set"], remote_protocol="memory", skip_instance_cache=True)
    took = time.perf_counter() - start
    emit(variant, "import rate", n / took / 1e6, "M/s", system, "more")
    emit(variant, "import peak memory", peak_mib(), "MiB", system, "less")
    emit(variant, "open", took * 1e3, "ms", system, "less")
    emit(variant, "look-up again p50", p50(fs.references.__getitem__, keys(n, 10_000)), "us", system, "less")
    start = time.perf_counter()
    count = sum(1 for _ in fs.references)
    emit(variant, "keys", count / (time.perf_counter() - start) / 1e6, "M/s", system, "more")


def fsspec_parquet():
    import fsspec
    n, variant, system = int(args["n"]), args["variant"], "fsspec (lazy)"
    start = time.perf_counter()
    fs = fsspec.filesystem("reference", fo=args["set"], remote_protocol="memory", lazy=True, skip_instance_cache=True)
    emit(variant, "open", (time.perf_counter() - start) * 1e3, "ms", system, "less")
    some = list(keys(n, 300))
    emit(variant, "look-up p50", p50(fs.references.__getitem__, some), "us", system, "less")
    emit(variant, "look-up again p50", p50(fs.references.__getitem__, some[-1:] * 1000), "us", system, "less")
    emit(variant, "import peak memory", peak_mib(), "MiB", system, "less")


def kerchunk():
    import kerchunk.df
    out = args["set"] + ".kerchunk"
    start = time.perf_counter()
    kerchunk.df.refs_to_dataframe(args["set"], out)
    emit(args["variant"], "export rate", int(args["n"]) / (time.perf_counter() - start) / 1e6, "M/s", "kerchunk", "more")


def virtualizarr():
    import obstore.store
    import virtualizarr as vz
    from virtualizarr.parsers import KerchunkJSONParser
    try:
        from obspec_utils.registry import ObjectStoreRegistry
    except ImportError:
        from virtualizarr.registry import ObjectStoreRegistry
    registry = ObjectStoreRegistry({"file://": obstore.store.LocalStore(), "s3://archive": obstore.store.MemoryStore()})
    n, variant, system = int(args["n"]), args["variant"], f"virtualizarr ({int(args['n']):,})"
    start = time.perf_counter()
    vz.open_virtual_dataset("file://" + args["set"], registry=registry, parser=KerchunkJSONParser(), loadable_variables=[])
    emit(variant, "import rate", n / (time.perf_counter() - start) / 1e6, "M/s", system, "more")
    emit(variant, "import peak memory", peak_mib(), "MiB", system, "less")


def icechunk():
    """The references are computed, not read: that is the least it can take."""
    import icechunk as ic
    import zarr
    n, per_file, variant, system = int(args["n"]), int(args["per_file"]), args["variant"], "icechunk"
    steps = n // 1000
    where = args["dir"]
    repo = ic.Repository.create(ic.local_filesystem_storage(where))
    session = repo.writable_session("main")
    zarr.create_array(session.store, name="t", shape=(steps, 100_000), chunks=(1, 100), dtype="float32", compressors=None, filters=None)
    took, offset, file = 0.0, 8192, -1
    for step in range(0, steps, 100):
        if took > 40:  # enough to tell the rate
            n = step * 1000
            break
        specs = []
        for i in range(step * 1000, min(step + 100, steps) * 1000):
            if i // per_file != file:
                file, offset = i // per_file, 8192
            length = 40_000 + i * 7919 % 16_381
            specs.append(ic.VirtualChunkSpec([i // 1000, i % 1000], f"s3://archive/model/run-{file // 10_000:03d}/output-{file:08d}.nc", offset, length))
            offset += length
        start = time.perf_counter()
        session.store.set_virtual_refs("t", specs, validate_containers=False)
        took += time.perf_counter() - start
    start = time.perf_counter()
    session.commit("import")
    took += time.perf_counter() - start
    if n < int(args["n"]):
        system += f" ({n:,})"
    emit(variant, "import rate", n / took / 1e6, "M/s", system, "more")
    emit(variant, "import peak memory", peak_mib(), "MiB", system, "less")
    size = sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(where) for f in files)
    emit(variant, "size of a reference", size / n, "B", system, "less")
    times = []
    for i in range(3):
        start = time.perf_counter()
        session = repo.writable_session("main")
        session.store.set_virtual_refs("t", [ic.VirtualChunkSpec([i, 7], "s3://archive/other.nc", i, 100)], validate_containers=False)
        session.commit("change")
        times.append(time.perf_counter() - start)
    emit(variant, "commit of 1 changed p50", statistics.median(times) * 1e3, "ms", system, "less")
    start = time.perf_counter()
    repo = ic.Repository.open(ic.local_filesystem_storage(where))
    repo.readonly_session("main")
    emit(variant, "open", (time.perf_counter() - start) * 1e3, "ms", system, "less")


def best_rate(fn, size):
    best = 0.0
    for _ in range(3):
        start = time.perf_counter()
        fn()
        best = max(best, size / (time.perf_counter() - start) / 1e9)
    return best


def numcodecs():
    """What reads NetCDF-4 in Python: inflate, then shuffle, a chunk at a time."""
    import numcodecs
    with open(args["set"]) as f:
        refs = json.load(f)
    data = open(args["file"], "rb").read()
    chunks = [data[o:o + n] for key, (_, o, n) in ((k, v) for k, v in refs.items() if isinstance(v, list))]
    zlib, shuffle = numcodecs.Zlib(), numcodecs.Shuffle(4)
    emit(args["variant"], "decode, 1 thread", best_rate(lambda: [shuffle.decode(zlib.decode(c)) for c in chunks], int(args["bytes"])), "GB/s", "numcodecs", "more")


def zarr_read():
    import fsspec
    import zarr
    fs = fsspec.filesystem("reference", fo=args["set"], remote_protocol="file", asynchronous=True, skip_instance_cache=True, remote_options={"asynchronous": True})
    g = zarr.open_group(zarr.storage.FsspecStore(fs, read_only=True), mode="r", zarr_format=2, use_consolidated=False)
    a = g["t"]
    system = "zarr over fsspec"
    emit(args["variant"], "read", best_rate(lambda: a[:], a.nbytes), "GB/s", system, "more")
    rng = random.Random(4)
    shape, chunks = a.shape, a.chunks
    boxes = [tuple(slice(c * rng.randrange(s // c), None) for s, c in zip(shape, chunks)) for _ in range(200)]
    boxes = [tuple(slice(b.start, b.start + c) for b, c in zip(box, chunks)) for box in boxes]
    emit(args["variant"], "chunk p50", p50(lambda b: a[b], boxes), "us", system, "less")


def hdf5_paths():
    d, n = args["dir"], int(args["files"])
    return [f"{d}/part{i:04}.nc" for i in range(n)], f"{d}/large.nc", f"{d}/slab.nc"


def hdf5_files():
    """Files as netCDF-C writes them: a record a chunk, dimensions with scales."""
    import h5py
    import numpy as np
    parts, large, slab = hdf5_paths()

    def write(path, first, n, **how):
        with h5py.File(path, "w") as f:
            t = f.create_dataset("time", data=np.arange(first, first + n, dtype="f8"), chunks=(n,), maxshape=(None,))
            t.attrs["units"] = "days since 1900-01-01"
            t.make_scale("time")
            v = f.create_dataset("v", (n, 4), "f4", chunks=(1, 4), maxshape=(None, 4), compression="gzip", shuffle=True)
            v[...] = np.arange(4 * n, dtype="f4").reshape(n, 4)
            v.dims[0].attach_scale(t)

    for i, path in enumerate(parts):
        write(path, i * int(args["chunks"]), int(args["chunks"]))
    write(large, 0, int(args["large"]))
    rng = np.random.default_rng(0)
    data = np.cumsum(rng.standard_normal((int(args["planes"]), 512, 512), dtype="f4") * 0.1, axis=2, dtype="f4").round(1)
    with h5py.File(slab, "w") as f:
        f.create_dataset("v", data=data, chunks=(1, 512, 512), compression="gzip", shuffle=True)


def cpu(variant, system, fn, rounds=3):
    best = None
    for _ in range(rounds):
        start = time.process_time()
        fn()
        took = time.process_time() - start
        best = took if best is None else min(best, took)
    emit(variant, "CPU", best, "s", system, "less")


def hdf5_both(system, join, one, rounds=3):
    parts, large, _ = hdf5_paths()
    cpu(f"{args['files']} files of {args['chunks']} chunks, joined", system, lambda: join(parts), rounds)
    cpu(f"a file of {args['large']} chunks", system, lambda: one(large), rounds)


def hdf5_chunk_iter():
    """Where the chunks are, joined to nothing."""
    import h5py

    def one(path):
        with h5py.File(path) as f:
            for name in f:
                found = []
                f[name].id.chunk_iter(found.append)

    hdf5_both("h5py chunk_iter", lambda parts: [one(p) for p in parts], one)


def hdf5_kerchunk():
    from kerchunk.combine import MultiZarrToZarr
    from kerchunk.hdf import SingleHdf5ToZarr

    def one(path):
        return SingleHdf5ToZarr(path, inline_threshold=0).translate()

    hdf5_both("kerchunk", lambda parts: MultiZarrToZarr([one(p) for p in parts], remote_protocol="file", concat_dims=["time"]).translate(), one, 1)


def hdf5_virtualizarr():
    import warnings
    warnings.filterwarnings("ignore")  # of zarr-python, that others may not know a codec
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr import open_virtual_dataset
    from virtualizarr.parsers import HDFParser
    import xarray as xr
    registry = ObjectStoreRegistry({"file://": LocalStore()})

    def one(path):
        return open_virtual_dataset(f"file://{path}", registry=registry, parser=HDFParser(), loadable_variables=["time"], decode_times=False)

    hdf5_both("VirtualiZarr", lambda parts: xr.concat([one(p) for p in parts], dim="time", coords="minimal", compat="override"), one, 1)


def hdf5_read():
    import h5py
    import numpy as np
    with h5py.File(hdf5_paths()[2]) as f:
        out = np.empty(f["v"].shape, "f4")
        cpu(f"read {args['planes']} MiB, shuffle and deflate", "h5py", lambda: f["v"].read_direct(out))


{f.__name__: f for f in (fsspec_json, fsspec_parquet, kerchunk, virtualizarr, icechunk, numcodecs, zarr_read,
                              hdf5_files, hdf5_chunk_iter, hdf5_kerchunk, hdf5_virtualizarr, hdf5_read)}[part]()
