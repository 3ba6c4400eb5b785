"""Writes chunks as filters of HDF5 encode them: python generate.py (h5py 3.16, hdf5plugin 7.1, imagecodecs 2026.3.6)"""
import io, json
import h5py, hdf5plugin, imagecodecs, numpy as np

smooth = np.round(np.sin(np.arange(301) / 40) * 1000)
noise = np.random.default_rng(1).integers(0, 1 << 60, 301)
cases = []


def add(codecs, dtype, data, encoded):
    cases.append({"codecs": codecs, "dtype": np.dtype(dtype).name, "data": data.hex(), "encoded": bytes(encoded).hex()})


def chunk(codecs, dtype, values=smooth, **how):
    a = values.astype(dtype)
    f = h5py.File(io.BytesIO(), "w")
    d = f.create_dataset("d", data=a, chunks=a.shape, **how)
    mask, encoded = d.id.read_direct_chunk((0,))
    assert mask == 0
    add(codecs, dtype, a.tobytes(), encoded)


def c(name, **conf):
    return {"name": name, "configuration": conf}


def shuffle(n):
    return c("numcodecs.shuffle", elementsize=n)


zlib, fletcher = c("numcodecs.zlib", level=4), c("numcodecs.fletcher32")
chunk([shuffle(4), zlib], "<f4", shuffle=True, compression="gzip")
chunk([fletcher], "<i2", fletcher32=True)
chunk([fletcher], "<i1", values=smooth % 7, fletcher32=True)  # an odd number of bytes
chunk([shuffle(8), zlib, fletcher], "<f8", shuffle=True, compression="gzip", fletcher32=True)
for lzf in "<i4", "<f8":
    chunk([c("imagecodecs_lzf", header=False)], lzf, compression="lzf")
chunk([shuffle(4), c("imagecodecs_lzf", header=False)], "<i4", shuffle=True, compression="lzf")
for values, dtype in (smooth, "<i4"), (noise, "<i8"):
    for n in 0, 512:
        chunk([c("imagecodecs_lz4h5")], dtype, values, **hdf5plugin.LZ4(nbytes=n))
for dtype in "<i1", "<i2", "<f4", "<f8":
    n = np.dtype(dtype).itemsize
    for blocks in 0, 64:
        chunk([c("imagecodecs_bitshuffle", itemsize=n, blocksize=blocks)], dtype, **hdf5plugin.Bitshuffle(nelems=blocks, cname="none"))
        for cname in "lz4", "zstd":
            chunk([c("numcodecs.bshuf", itemsize=n, cname=cname)], dtype, **hdf5plugin.Bitshuffle(nelems=blocks, cname=cname))
chunk([c("zstd", level=3, checksum=False)], "<i4", **hdf5plugin.Zstd())
chunk([c("imagecodecs_bz2")], "<i4", **hdf5plugin.BZip2())
chunk([c("blosc", cname="lz4", clevel=5, shuffle="shuffle", typesize=4, blocksize=0)], "<i4", **hdf5plugin.Blosc(cname="lz4", clevel=5, shuffle=1))

# A checksum before the shuffle leaves bytes that are no element.
p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
p.set_chunk((301,)), p.set_fletcher32(), p.set_shuffle(), p.set_deflate(4)
f = h5py.File(io.BytesIO(), "w")
d = h5py.h5d.create(f.id, b"d", h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple((301,)), p)
d.write(h5py.h5s.ALL, h5py.h5s.ALL, smooth)
add([fletcher, shuffle(8), zlib], "<f8", smooth.tobytes(), d.read_direct_chunk((0,))[1])

text = b"a" * 300 + bytes(range(200)) + b"ab" * 3000 + bytes(range(100))
for name, encode, conf in (("lzf", imagecodecs.lzf_encode, {"header": True}), ("lz4h5", imagecodecs.lz4h5_encode, {"blocksize": 100})):
    add([c("imagecodecs_" + name, **conf)], "u1", text, encode(text, **conf))
json.dump({"cases": cases}, open("chunks.json", "w"), indent=0)
