"""Writes the golden frames of this folder: python generate.py

A frame is named by what made it: writer version, compressor, level, shuffle,
type size, block size and the data, which golden_test.go makes again.
"""
import numcodecs, numpy
from numcodecs import blosc

blosc.use_threads = False
writer = f"numcodecs{numcodecs.__version__}"


def ramp(n):
    """int32 values that grow by 0 to 3."""
    x, v, out = 12345, 0, numpy.empty(n // 4, "<i4")
    for i in range(n // 4):
        x = (x * 1103515245 + 12345) % 2**31
        v += (x >> 16) % 4
        out[i] = v
    return out.tobytes()


def noise(n):
    x, out = 1, bytearray(n)
    for i in range(n):
        x = (x * 1103515245 + 12345) % 2**31
        out[i] = x >> 16 & 255
    return bytes(out)


data = {
    "ramp": ramp(8000),
    "noise": noise(600),
    "zeros": bytes(5000),
    "tiny": ramp(60),
    "mixed": ramp(2000) + noise(1000) + ramp(1000),
}


def write(cname, level, shuffle, size, block, name):
    raw = data[name]
    raw = numpy.frombuffer(raw[: len(raw) // size * size], f"V{size}")
    frame = blosc.compress(raw, cname.encode(), level, shuffle, block)
    open(f"{writer}-{cname}-{level}-{shuffle}-{size}-{block}-{name}", "wb").write(frame)


for cname in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]:
    for shuffle in [0, 1, 2]:
        write(cname, 5, shuffle, 4, 0, "ramp")
    write(cname, 9, 1, 8, 1024, "ramp")
    write(cname, 1, 2, 2, 1000, "mixed")
    write(cname, 5, 1, 4, 512, "mixed")
    write(cname, 5, 2, 12, 2000, "ramp")
    write(cname, 5, 1, 17, 0, "ramp")
    write(cname, 5, 0, 4, 0, "zeros")
write("lz4", 5, 1, 4, 0, "noise")
write("lz4", 5, 1, 4, 0, "tiny")
write("lz4", 0, 1, 4, 0, "ramp")
