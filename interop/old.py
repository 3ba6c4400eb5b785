"""zarr-python 2 reads what zarrdb writes in formats that newer ones have not:
Zarr v1, whose metadata it migrates to those of v2 first, and the early draft of
v3 with an entry document, which it has as an experiment.

    old.py --bin ./zarrdb [--out verified.json] [-k SUBSTRING]
"""
import os

os.environ["ZARR_V3_EXPERIMENTAL_API"] = "1"
import zarr
from zarr.storage import DirectoryStore, migrate_1to2

import peers

NUMBERS = [o + d for o in "<>" for d in ["i2", "i4", "i8", "u2", "u4", "u8", "f4", "f8"]] + ["|b1", "|i1", "|u1"]
OTHERS = ["<f2", ">f2", "<c8", ">c16", "|S5", "<U3", ">U3", "<M8[s]", ">m8[ns]"]
NULL_FILL = "cSMm"  # the migration takes no other fill value of these


def cases(fmt, version, compressors, layout):
    for dtype in NUMBERS + OTHERS:
        fill = ("null fill", ["--fill", "null"]) if version == 1 and dtype[1] in NULL_FILL else (layout, [])
        yield peers.Case(fmt, version, dtype, "zlib", peers.compressor("zlib"), fill[0], extra=fill[1])
    for codec in compressors:
        for dtype in ["<i4", ">f8", "|u1"]:
            yield peers.Case(fmt, version, dtype, codec, peers.compressor(codec), layout)


def read(store, case):
    if case.version == 1:
        array = DirectoryStore(store / case.path)
        migrate_1to2(array)
        return zarr.open_array(array, mode="r")[...]
    return zarr.open(str(store), mode="r", zarr_version=3, path=case.path)[...]


if __name__ == "__main__":
    peers.compare("zarr-python " + zarr.__version__, [
        list(cases("1", 1, ["none", "bz2", "lzma", "blosc"], "plain")),
        list(cases("3-draft-root", "3-draft", ["none", "gzip", "bz2", "zstd", "lz4", "lzma", "blosc"], "entry document")),
    ], read)
