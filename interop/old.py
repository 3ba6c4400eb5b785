"""zarr-python 2 reads what zarrdb writes in a format that newer ones have not:
Zarr v1, whose metadata it migrates to those of v2 first.

    old.py --bin ./zarrdb [--out verified.json] [-k SUBSTRING]
"""
import zarr
from zarr.storage import DirectoryStore, migrate_1to2

import peers

NUMBERS = [o + d for o in "<>" for d in ["i2", "i4", "i8", "u2", "u4", "u8", "f4", "f8"]] + ["|b1", "|i1", "|u1"]
OTHERS = ["<f2", ">f2", "<c8", ">c16", "|S5", "<U3", ">U3", "<M8[s]", ">m8[ns]"]
NULL_FILL = "cSMm"  # the migration takes no other fill value of these


def cases():
    for dtype in NUMBERS + OTHERS:
        layout, extra = ("null fill", ["--fill", "null"]) if dtype[1] in NULL_FILL else ("plain", [])
        yield peers.Case("1", 1, dtype, "zlib", peers.compressor("zlib"), layout, extra=extra)
    for codec in ["none", "bz2", "lzma", "blosc"]:
        for dtype in ["<i4", ">f8", "|u1"]:
            yield peers.Case("1", 1, dtype, codec, peers.compressor(codec))


def read(store, case):
    array = DirectoryStore(store / case.path)
    migrate_1to2(array)
    return zarr.open_array(array, mode="r")[...]


if __name__ == "__main__":
    peers.compare("zarr-python " + zarr.__version__, [list(cases())], read)
