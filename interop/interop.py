"""Compares zarrdb with zarr-python and tensorstore on the same arrays.

    interop.py --bin ./zarrdb [-k SUBSTRING]

theirs  zarr-python writes; zarrdb imports, reads and exports; the export is read
        by zarr-python and tensorstore, and export -> import -> export is
        byte-identical
ours    zarrdb creates and writes; zarr-python and tensorstore read the export
"""
import argparse, filecmp, json, os, pathlib, subprocess, sys, tempfile, warnings

import numcodecs, numpy as np, tensorstore as ts, zarr
from numcodecs import BZ2, LZ4, Blosc, Delta, GZip, Shuffle, Zlib, Zstd
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

warnings.filterwarnings("ignore")

NUMBERS = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


class Bin:
    def __init__(self, path):
        self.path = os.path.abspath(path)

    def __call__(self, *args, stdin=None):
        p = subprocess.run([self.path, *map(str, args)], input=stdin, capture_output=True)
        if p.returncode:
            raise RuntimeError(f"exit {p.returncode}: zarrdb {' '.join(map(str, args))}: {p.stderr.decode()}")
        return p.stdout


def values(dtype, shape, seed=1):
    rng = np.random.default_rng(seed)
    dt = np.dtype(dtype)
    if dt.kind == "b":
        return rng.integers(0, 2, shape).astype(dt)
    if dt.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dt)
    if dt.kind == "f":
        return rng.standard_normal(shape).round(2).astype(dt)
    if dt.kind in "SU":
        return np.array([f"v{i}" for i in rng.integers(0, 1000, int(np.prod(shape)))], dt).reshape(shape)
    return np.cumsum(rng.integers(-3, 4, shape), axis=-1).astype(dt)


def read_ts(path, fmt):
    return ts.open({"driver": "zarr" if fmt == 2 else "zarr3", "kvstore": {"driver": "file", "path": str(path) + "/"}}, open=True).result().read().result()


def same(a, b, what):
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or not np.array_equal(a, b.astype(a.dtype), equal_nan=a.dtype.kind in "fc"):
        raise AssertionError(f"{what}: other values")


def same_tree(a, b):
    left = sorted(p.relative_to(a) for p in pathlib.Path(a).rglob("*") if p.is_file())
    right = sorted(p.relative_to(b) for p in pathlib.Path(b).rglob("*") if p.is_file())
    if left != right:
        raise AssertionError(f"other files: {set(left) ^ set(right)}")
    _, differ, errors = filecmp.cmpfiles(a, b, left, shallow=False)
    if differ or errors:
        raise AssertionError(f"other bytes: {differ + errors}")


def check_theirs(run, store, data, fmt, tmp, tensor=True):
    """A store of theirs goes in and comes out the same."""
    run("import", f"{tmp}/a.zdb", store, "-m", "in")
    got = np.frombuffer(run("read", f"{tmp}/a.zdb", "-o", "-"), data.dtype.newbyteorder("<")).reshape(data.shape)
    same(data, got, "zarrdb read")
    run("export", f"{tmp}/a.zdb", f"{tmp}/out")
    same(data, zarr.open_array(f"{tmp}/out", mode="r", zarr_format=fmt)[...], "zarr-python reads the export")
    if tensor:
        same(data, read_ts(f"{tmp}/out", fmt), "tensorstore reads the export")
    run("import", f"{tmp}/b.zdb", f"{tmp}/out", "-m", "again")
    run("export", f"{tmp}/b.zdb", f"{tmp}/out2")
    same_tree(f"{tmp}/out", f"{tmp}/out2")
    same_tree(store, f"{tmp}/out")


def check_ours(run, data, fmt, codecs, tmp, dtype, tensor=True, chunks=(8, 16), extra=()):
    """An array of ours is read by the others."""
    np.save(f"{tmp}/in.npy", data)
    args = ["--codecs", json.dumps(codecs)] if codecs is not None else []
    run("init", f"{tmp}/o.zdb")
    run("create", f"{tmp}/o.zdb:a", "--shape", ",".join(map(str, data.shape)), "--chunks", ",".join(map(str, chunks)), "--dtype", dtype, "--format", fmt, *args, *extra)
    run("write", f"{tmp}/o.zdb:a", "-i", f"{tmp}/in.npy", "-m", "all")
    run("export", f"{tmp}/o.zdb:a", f"{tmp}/out")
    same(data, zarr.open_array(f"{tmp}/out", mode="r", zarr_format=fmt)[...], "zarr-python")
    if tensor:
        same(data, read_ts(f"{tmp}/out", fmt), "tensorstore")


def cases():
    shape, chunks = (20, 33), (8, 16)
    v3 = {
        "raw": dict(compressors=None), "big": dict(compressors=None, serializer=BytesCodec(endian="big")),
        "gzip": dict(compressors=GzipCodec(level=5)), "zstd": dict(compressors=ZstdCodec(level=3)),
        "zstd-ck": dict(compressors=ZstdCodec(level=3, checksum=True)), "crc32c": dict(compressors=Crc32cCodec()),
        "transpose": dict(filters=TransposeCodec(order=(1, 0)), compressors=None),
    }
    for c in ["lz4", "lz4hc", "blosclz", "zlib", "zstd"]:
        for s in ["noshuffle", "shuffle", "bitshuffle"]:
            v3[f"blosc-{c}-{s}"] = dict(compressors=BloscCodec(cname=c, shuffle=s, clevel=5))
    for name, kw in v3.items():
        for dt in (NUMBERS if name in ("raw", "zstd", "blosc-lz4-shuffle") else ["i2", "f8"]):
            def theirs(run, tmp, kw=kw, dt=dt):
                data = values(dt, shape)
                zarr.create_array(f"{tmp}/s", data=data, chunks=chunks, **kw)
                check_theirs(run, f"{tmp}/s", data, 3, tmp)
            yield f"theirs/v3/{name}/{dt}", theirs
    for name, sh in {"shard": {}, "shard-zstd": dict(compressors=ZstdCodec())}.items():
        def theirs(run, tmp, sh=sh):
            data = values("f4", (64, 64))
            zarr.create_array(f"{tmp}/s", data=data, chunks=(8, 8), shards=(32, 32), **sh)
            check_theirs(run, f"{tmp}/s", data, 3, tmp)
        yield f"theirs/v3/{name}", theirs
    v2 = {"raw": (None, None), "zlib": (Zlib(5), None), "gzip": (GZip(5), None), "zstd": (Zstd(3), None), "lz4": (LZ4(), None), "bz2": (BZ2(), None),
          "shuffle": (Zlib(1), [Shuffle(8)]), "delta": (Zstd(1), [Delta("i8")])}
    for c in ["lz4", "lz4hc", "blosclz", "zlib", "zstd", "snappy"]:
        if c in numcodecs.blosc.list_compressors():
            for s in [0, 1, 2, -1]:
                v2[f"blosc-{c}-{s}"] = (Blosc(c, 5, s), None)
    for name, (comp, filters) in v2.items():
        if name == "raw" or name == "blosc-lz4-1":
            dts = ["<" + d if d[1:] != "1" else "|" + d for d in NUMBERS] + [">i4", ">f8", ">c16", "S5", "<U3", ">U3"]
        else:
            dts = ["<i8"] if filters else ["<i2", ">f8"]
        for dt in dts:
            for order in ("C", "F") if name == "raw" else ("C",):
                def theirs(run, tmp, comp=comp, filters=filters, dt=dt, order=order):
                    data = values(dt, shape)
                    a = zarr.create_array(f"{tmp}/s", shape=shape, dtype=dt, chunks=chunks, zarr_format=2, compressors=comp, filters=filters, order=order)
                    a[...] = data
                    tensor = np.dtype(dt).kind not in "SU" and not filters and "snappy" not in repr(comp) and not isinstance(comp, (GZip, LZ4))
                    check_theirs(run, f"{tmp}/s", data, 2, tmp, tensor)
                yield f"theirs/v2/{name}/{dt}/{order}", theirs
    le = {"name": "bytes", "configuration": {"endian": "little"}}
    ours = {"default": None, "raw": [le], "big": [{"name": "bytes", "configuration": {"endian": "big"}}],
            "gzip": [le, {"name": "gzip", "configuration": {"level": 5}}],
            "zstd": [le, {"name": "zstd", "configuration": {"level": 3, "checksum": False}}],
            "crc32c": [le, {"name": "crc32c"}],
            "transpose": [{"name": "transpose", "configuration": {"order": [1, 0]}}, le]}
    for c in ["lz4", "lz4hc", "blosclz", "zlib", "zstd"]:
        for s in ["noshuffle", "shuffle", "bitshuffle"]:
            ours[f"blosc-{c}-{s}"] = [le, {"name": "blosc", "configuration": {"cname": c, "clevel": 5, "shuffle": s, "typesize": 8, "blocksize": 0}}]
    names = {"b1": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}
    for name, codecs in ours.items():
        for dt in (NUMBERS if name in ("default", "raw") else ["f8"]):
            d3 = "bool" if dt == "b1" else names[dt[0]] + str(8 * int(dt[1:]))
            def ours3(run, tmp, codecs=codecs, dt=dt, d3=d3):
                check_ours(run, values(dt, shape), 3, codecs, tmp, d3)
            yield f"ours/v3/{name}/{dt}", ours3
    shard = [{"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 8], "codecs": [le, {"name": "zstd", "configuration": {"level": 1, "checksum": True}}],
              "index_codecs": [le, {"name": "crc32c"}], "index_location": "end"}}]
    yield "ours/v3/shard/f4", lambda run, tmp: check_ours(run, values("f4", shape), 3, shard, tmp, "float32")
    for name, comp in {"raw": None, "zlib": Zlib(5), "gzip": GZip(5), "zstd": Zstd(3), "lz4": LZ4(), "bz2": BZ2(), "blosc": Blosc("lz4", 5, 1), "blosc-bit": Blosc("zstd", 5, 2)}.items():
        for dt in ["<i4", ">f8", "|u1", "<c8"]:
            def ours2(run, tmp, comp=comp, dt=dt):
                tensor = not isinstance(comp, (GZip, LZ4))
                conf = comp and comp.get_config()
                if conf and conf["id"] == "zstd":
                    del conf["checksum"]  # numcodecs' default, which tensorstore does not know
                check_ours(run, values(dt, shape), 2, conf, tmp, dt, tensor)
            yield f"ours/v2/{name}/{dt}", ours2


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--bin", required=True)
    ap.add_argument("-k", default="")
    a = ap.parse_args()
    run, passed, failed = Bin(a.bin), 0, 0
    for name, case in cases():
        if a.k not in name:
            continue
        with tempfile.TemporaryDirectory() as tmp:
            try:
                case(run, tmp)
                passed += 1
            except Exception as e:
                failed += 1
                print(f"FAIL {name}: {type(e).__name__}: {str(e)[:400]}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not (passed or a.k) else 0)


if __name__ == "__main__":
    main()
