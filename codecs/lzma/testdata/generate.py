"""Writes the golden files of this folder: python generate.py"""
import lzma, platform

x, v, data = 12345, 0, b""
for i in range(1500):
    x = (x * 1103515245 + 12345) % 2**31
    v += (x >> 16) % 4
    data += v.to_bytes(4, "little")
open("data", "wb").write(data)
delta, lzma2 = {"id": lzma.FILTER_DELTA, "dist": 4}, {"id": lzma.FILTER_LZMA2, "preset": 6}
lzma1 = {"id": lzma.FILTER_LZMA1, "preset": 6}
odd = {"id": lzma.FILTER_LZMA2, "preset": 9, "lc": 0, "lp": 4, "pb": 3}
x86 = {"id": lzma.FILTER_X86}


def write(name, **kw):
    body = lzma.compress(data, **kw)
    open(f"liblzma-py{platform.python_version()}-{name}", "wb").write(body)
    return body


one = write("crc64.xz")
write("none.xz", check=lzma.CHECK_NONE, preset=0)
write("crc32.xz", check=lzma.CHECK_CRC32, preset=9)
write("sha256.xz", check=lzma.CHECK_SHA256)
write("delta.xz", filters=[delta, lzma2])
write("odd.xz", filters=[{"id": 3, "dist": 1}, delta, odd])
write("x86.xz", filters=[x86, lzma2])
write("alone.lzma", format=lzma.FORMAT_ALONE)
write("plain.raw1", format=lzma.FORMAT_RAW, filters=[lzma1])
write("plain.raw2", format=lzma.FORMAT_RAW, filters=[lzma2])
write("delta4.raw2", format=lzma.FORMAT_RAW, filters=[delta, lzma2])
open(f"liblzma-py{platform.python_version()}-twice.xz", "wb").write(one + bytes(8) + one)
