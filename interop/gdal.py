"""GDAL reads the two-dimensional arrays that zarrdb writes.

    gdal.py --bin ./zarrdb [--out verified.json] [-k SUBSTRING]
"""
import rasterio

import peers

TYPES = {"int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4", "int64": "i8", "uint64": "u8",
         "float16": "f2", "float32": "f4", "float64": "f8", "complex64": "c8", "complex128": "c16"}


def conf(name, **configuration):
    return {"name": name, "configuration": configuration}


def cases2():
    for name, code in TYPES.items():
        for order in "|" if code.endswith("1") and len(code) == 2 else "<>":
            fill = ("null fill", ["--fill", "null"]) if code[0] == "c" else ("plain", [])  # it knows no other of complex numbers
            yield peers.Case("2", 2, order + code, "zlib", peers.compressor("zlib"), fill[0], extra=fill[1])
    for codec in peers.FULL:
        for dtype in ["<i4", ">f8", "|u1"]:
            yield peers.Case("2", 2, dtype, codec, peers.compressor(codec))


def cases3():
    after = {"none": [], "gzip": [conf("gzip", level=5)], "zstd": [conf("zstd", level=3, checksum=False)],
             "blosc": [conf("blosc", cname="lz4", clevel=5, shuffle="shuffle", typesize=4, blocksize=0)], "crc32c": [{"name": "crc32c"}]}
    for name, code in TYPES.items():
        for endian in ("little", "big"):
            layout = "plain" if endian == "little" else "big-endian"
            data = peers.values("<" + code)
            yield peers.Case("3", 3, name, "gzip", [conf("bytes", endian=endian), *after["gzip"]], layout, data)
    for codec, more in after.items():
        for name in ("int32", "float64", "uint8"):
            data = peers.values("<" + TYPES[name])
            yield peers.Case("3", 3, name, codec, [conf("bytes", endian="little"), *more], "plain", data)
            yield peers.Case("3", 3, name, codec, [conf("transpose", order=[1, 0]), conf("bytes", endian="little"), *more], "transpose", data)


GAPS = {
    r"v2/[^/]*/(bz2|lz4)/.*: RasterioIOError: Decompressor (bz2|lz4) not handled": "compressors it has not",
    r"v3/.*: RasterioIOError: Unsupported codec: bytes": "it has v3 as it was before the codec got this name",
}


def read(store, case):
    with rasterio.open(store / case.path) as src:
        if src.driver != "Zarr":
            raise ValueError(f"opened by {src.driver}")
        return src.read(1)


if __name__ == "__main__":
    peers.compare("GDAL " + rasterio.__gdal_version__, [list(cases2()), list(cases3())], read, GAPS)
