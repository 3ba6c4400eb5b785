"""Compares zarrdb with tensorstore and zarr-python 2 on N5 containers.

    formats_n5.py --bin ./zarrdb [-k SUBSTRING]

tensorstore  its containers, of each data type and compression, with edges and gaps,
             are read by zarrdb to the same values, in place and as links
zarr         so are those of zarr-python's N5Store, whose dimensions are reversed
"""
import json, os

import numcodecs, numpy as np, tensorstore as ts, zarr
from zarr.n5 import N5Store

from formats_common import main

DTYPES = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64"]
COMPRESSIONS = [
    {"type": "raw"}, {"type": "gzip", "level": 1}, {"type": "gzip", "useZlib": True}, {"type": "bzip2", "blockSize": 1},
    {"type": "xz", "preset": 2}, {"type": "zstd", "level": 5}, {"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
    {"type": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 2},
]
SHAPES = [([20], [7]), ([33, 21], [8, 8]), ([9, 10, 11], [4, 5, 6]), ([5, 6, 3, 4], [5, 6, 3, 4]), ([3, 3], [8, 8])]
COMPRESSORS = [
    None, numcodecs.GZip(3), numcodecs.Zlib(2), numcodecs.BZ2(2), numcodecs.LZMA(preset=1), numcodecs.Zstd(4), numcodecs.LZ4(),
    numcodecs.Blosc("lz4", 5, numcodecs.Blosc.SHUFFLE), numcodecs.Blosc("zstd", 3, numcodecs.Blosc.BITSHUFFLE),
    numcodecs.Blosc("blosclz", 9, numcodecs.Blosc.AUTOSHUFFLE),
]


def values(dtype, shape, seed):
    r = np.random.default_rng(seed)
    if dtype.startswith("f"):
        a = r.standard_normal(shape).astype(dtype)
    else:
        info = np.iinfo(dtype)
        a = r.integers(info.min, info.max, shape, dtype, endpoint=True)
    a[r.random(shape) < 0.5] = 0
    return a


def check(r, container, path, want):
    """In place by both spellings, and as links of a database."""
    r.check(f"file://{container}|n5:{path}", want, "read")
    r.check(f"{container}/{path}", want, "read of the folder")
    r.check(f"{r.link(container)}:{path}", want, "read of the links")


def open_tensorstore(container, path, metadata=None, labels=None):
    spec = {"driver": "n5", "kvstore": {"driver": "file", "path": f"{container}/{path}/"}}
    if metadata:
        spec |= {"metadata": metadata, "create": True}
    return ts.open(spec).result()


def tensorstore_cases():
    n = 0
    for i, compression in enumerate(COMPRESSIONS):
        for dtype in DTYPES[i % 2::2]:
            shape, block = SHAPES[n % len(SHAPES)]
            yield f"tensorstore {dtype} {json.dumps(compression)} {shape}", dtype, compression, shape, block
            n += 1


def tensorstore_container(r, i, dtype, compression, shape, block):
    container = r.path("ts")
    os.makedirs(f"{container}/g/a")
    with open(f"{container}/attributes.json", "w") as f:
        json.dump({"n5": "2.0.0"}, f)
    want = values(dtype, shape, i)
    want[: block[0]] = 0  # blocks that are missing
    metadata = {"dimensions": shape, "blockSize": block, "dataType": dtype, "compression": compression}
    if i % 2:
        metadata["axes"] = [f"axis{d}" for d in range(len(shape))]
    open_tensorstore(container, "g/a", metadata).write(want).result()
    return container, want


def from_tensorstore(r, *args):
    container, want = tensorstore_container(r, *args)
    check(r, container, "g/a", want)


def from_zarr(r, i, compressor):
    container = r.path("zarr")
    store = N5Store(container)
    want = values(DTYPES[i % len(DTYPES)], [19, 14, 5], i)
    g = zarr.group(store, overwrite=True).create_group("g")
    g.attrs["unit"] = "nm"
    a = g.create_dataset("a", data=want, chunks=(6, 5, 5), compressor=compressor)
    a.attrs["scale"] = [1, 2, 3]
    check(r, container, "g/a", want.T)
    info = json.loads(r.run("info", f"file://{container}|n5:g/a", "--json"))
    if info["attributes"] != {"scale": [1, 2, 3]}:
        raise AssertionError(f"attributes {info['attributes']}")


def cases():
    for i, (name, *args) in enumerate(tensorstore_cases()):
        yield "n5", name, from_tensorstore, i, *args
    for i, compressor in enumerate(COMPRESSORS):
        yield "n5", f"zarr {compressor}", from_zarr, i, compressor


main(__doc__, cases())
