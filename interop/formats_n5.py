"""Compares zarrdb with tensorstore and zarr-python 2 on N5 containers.

    formats_n5.py --bin ./zarrdb [-k SUBSTRING]

tensorstore  its containers, of each data type and compression, with edges and gaps,
             are read by zarrdb to the same values, in place and as links
zarr         so are those of zarr-python's N5Store, whose dimensions are reversed
ours         containers that zarrdb exports with each compression are read to the same
             values by tensorstore and by N5Store
"""
import argparse, json, os, subprocess, sys, tempfile, traceback, warnings

import numcodecs, numpy as np, tensorstore as ts, zarr
from zarr.n5 import N5Store

warnings.filterwarnings("ignore")

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


class Runner:
    def __init__(self, a, tmp):
        self.bin, self.tmp = os.path.abspath(a.bin), tmp

    def run(self, *args):
        p = subprocess.run([self.bin, *map(str, args)], capture_output=True)
        if p.returncode:
            raise RuntimeError(f"exit {p.returncode}: {' '.join(map(str, args))}: {p.stderr.decode()}")
        return p.stdout

    def read(self, target, like):
        return np.frombuffer(self.run("read", target, "-o", "-"), like.dtype.newbyteorder("<")).reshape(like.shape)

    def same(self, want, got, what):
        if want.shape != got.shape or want.astype(want.dtype.newbyteorder("<")).tobytes() != got.astype(want.dtype.newbyteorder("<")).tobytes():
            raise AssertionError(f"{what}: other values")

    def check(self, container, path, want):
        """In place by both spellings, and as links of a database."""
        self.same(want, self.read(f"file://{container}|n5:{path}", want), "read")
        self.same(want, self.read(f"{container}/{path}", want), "read of the folder")
        db = container + ".zdb"
        self.run("import", "--link", db, container)
        self.same(want, self.read(f"{db}:{path}", want), "read of the links")


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


def from_tensorstore(r, i, dtype, compression, shape, block):
    container = f"{r.tmp}/ts{i}"
    os.makedirs(f"{container}/g/a")
    with open(f"{container}/attributes.json", "w") as f:
        json.dump({"n5": "2.0.0"}, f)
    want = values(dtype, shape, i)
    want[: block[0]] = 0  # blocks that are missing
    metadata = {"dimensions": shape, "blockSize": block, "dataType": dtype, "compression": compression}
    if i % 2:
        metadata["axes"] = [f"axis{d}" for d in range(len(shape))]
    open_tensorstore(container, "g/a", metadata).write(want).result()
    r.check(container, "g/a", want)
    return container, want


def from_zarr(r, i, compressor):
    container = f"{r.tmp}/zarr{i}"
    store = N5Store(container)
    want = values(DTYPES[i % len(DTYPES)], [19, 14, 5], i)
    g = zarr.group(store, overwrite=True).create_group("g")
    g.attrs["unit"] = "nm"
    a = g.create_dataset("a", data=want, chunks=(6, 5, 5), compressor=compressor)
    a.attrs["scale"] = [1, 2, 3]
    r.check(container, "g/a", want.T)
    info = json.loads(r.run("info", f"file://{container}|n5:g/a", "--json"))
    if info["attributes"] != {"scale": [1, 2, 3]}:
        raise AssertionError(f"attributes {info['attributes']}")


def ours(r, i, compression, container, want):
    out = f"{r.tmp}/ours{i}-{compression}"
    r.run("export", f"{container}.zdb", out, "--format", "n5", "--compression", compression)
    r.same(want, r.read(f"{out}/g/a", want), "zarrdb reads its own")
    if compression == "lz4":  # that of lz4-java, which neither reads
        return
    r.same(want, open_tensorstore(out, "g/a").read().result(), "tensorstore")
    r.same(want.T, zarr.open_group(N5Store(out), mode="r")["g/a"][...], "N5Store")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bin", required=True)
    p.add_argument("-k", default="")
    a = p.parse_args()
    passed = failed = 0

    def case(name, fn, *args):
        nonlocal passed, failed
        if a.k not in name:
            return None
        try:
            out = fn(*args)
            passed += 1
            return out
        except Exception:
            failed += 1
            print(f"FAIL {name}")
            traceback.print_exc()

    with tempfile.TemporaryDirectory() as tmp:
        r = Runner(a, tmp)
        for i, (name, *args) in enumerate(tensorstore_cases()):
            made = case(name, from_tensorstore, r, i, *args)
            for compression in ["raw", "gzip", "bzip2", "xz", "lz4", "zstd", "blosc"][i % 7 :: 3] if made else []:
                case(f"ours {compression} of {name}", ours, r, i, compression, *made)
        for i, compressor in enumerate(COMPRESSORS):
            case(f"zarr {compressor}", from_zarr, r, i, compressor)
    print(f"n5: {passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
