"""Other programs on the stores of formats.go, one in each process:

    formats.py PART key=value ...

prints a line of JSON for each figure: the whole array into memory that is new, and
random chunks one at a time, all from the page cache.
"""
import hashlib
import json
import os
import random
import statistics
import sys
import time
import warnings

part = sys.argv[1]
args = dict(a.split("=", 1) for a in sys.argv[2:])


def emit(metric, value, unit, system, better):
    print(json.dumps({"workload": args["workload"], "variant": args["variant"], "metric": metric, "value": value,
                      "unit": unit, "system": system, "better": better}), flush=True)


def measure(system, whole, box):
    """whole returns all values, box those of an index of slices."""
    a = whole()
    if hashlib.sha256(a.tobytes()).hexdigest() != args["sha256"]:
        sys.exit(f"{system} reads other values")
    shape, size = a.shape, a.nbytes
    del a
    best = 0.0
    for _ in range(3):
        start = time.perf_counter()
        a = whole()
        best = max(best, size / (time.perf_counter() - start) / 1e9)
        del a
    emit("read", best, "GB/s", system, "more")
    chunk = [int(n) for n in args["chunk"].split()]
    rng, times = random.Random(7), []
    for _ in range(int(args["reads"])):
        low = [rng.randrange(s // c) * c for s, c in zip(shape, chunk)]
        index = tuple(slice(l, l + c) for l, c in zip(low, chunk))
        start = time.perf_counter()
        box(index)
        times.append(time.perf_counter() - start)
    emit("chunk p50", statistics.median(times) * 1e6, "us", system, "less")


def icechunk():
    os.environ.setdefault("ICECHUNK_LOG", "error")
    import icechunk as ic
    import zarr
    credentials = None
    if "files" in args:
        files = f"file://{os.path.dirname(args['path'])}/{args['files']}/"
        warnings.filterwarnings("ignore")  # version 2 has another way, and takes this one
        credentials = ic.containers_credentials({files: None})
    repo = ic.Repository.open(ic.local_filesystem_storage(args["path"]), authorize_virtual_chunk_access=credentials)
    a = zarr.open_array(repo.readonly_session("main").store, mode="r")
    measure("icechunk", lambda: a[...], lambda index: a[index])


def tensorstore():
    import tensorstore as ts
    context = ts.Context({"cache_pool": {"total_bytes_limit": 2 << 20}})  # indexes of shards are in it
    a = ts.open({"driver": "neuroglancer_precomputed", "kvstore": f"file://{args['path']}/"}, context=context).result()
    measure("tensorstore", lambda: a.read().result(), lambda index: a[index].read().result())


def tifffile():
    import tifffile as tf
    with tf.TiffFile(args["path"]) as file:
        page = file.pages[0]
        across, (h, w) = -(-page.imagewidth // page.tilewidth), (page.tilelength, page.tilewidth)

        def tile(index):
            i = index[0].start // h * across + index[1].start // w
            file.filehandle.seek(page.dataoffsets[i])
            return page.decode(file.filehandle.read(page.databytecounts[i]), i)

        measure("tifffile", lambda: page.asarray(maxworkers=os.cpu_count()), tile)


{f.__name__: f for f in (icechunk, tensorstore, tifffile)}[part]()
