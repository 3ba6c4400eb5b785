"""Compares zarrdb with tifffile, imagecodecs, tensorstore and Pillow on TIFF files and images.

    formats_images.py --bin ./zarrdb [-k SUBSTRING]

tiff     files of tifffile in varied settings are read by zarrdb to the values that
         tifffile reads: in place, and linked into a database; and to those that
         tensorstore reads, where it reads them
pages    so are the arrays of pages, of pyramids and of OME-TIFF
png …    images of Pillow and imagecodecs are read to what imagecodecs and tensorstore
         decode
exports  arrays that zarrdb exports with the bytes of their tiles as they are, are read
         by zarr-python with the codecs of imagecodecs, where the release has them
"""
import io, json, os

import imagecodecs, numpy as np, tensorstore as ts, tifffile
from PIL import Image

from formats_common import main, same

H, W = 75, 98


def picture(dtype, samples=1, h=H, w=W):
    """A smooth picture that uses the range of its type."""
    y, x = np.mgrid[:h, :w]
    a = np.stack([x * (3 + s) + y * (7 - s) for s in range(samples)], -1)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return (a / 7 - 30).astype(dtype)
    if dtype.kind == "c":
        return (a / 7 - 1j * a).astype(dtype)
    if dtype == bool:
        return a % 3 == 0
    return (a.astype("i8") * max(1, np.iinfo(dtype).max // 1000)).astype(dtype)


# name, picture, options of tifffile, how much values may differ
TIFFS = [
    ("strips", picture("u1"), dict(rowsperstrip=16), 0),
    ("one strip", picture("i2"), dict(rowsperstrip=H), 0),
    ("big-endian", picture("u2", 3), dict(rowsperstrip=11, byteorder=">"), 0),
    ("BigTIFF", picture("i8"), dict(tile=(32, 16), bigtiff=True), 0),
    ("BigTIFF, big-endian", picture("f8"), dict(tile=(32, 16), bigtiff=True, byteorder=">"), 0),
    ("planar tiles", picture("u2", 3), dict(tile=(16, 32), planarconfig="separate"), 0),
    ("planar strips", picture("f4", 3), dict(rowsperstrip=20, planarconfig="separate", compression="deflate"), 0),
    ("bilevel", picture(bool), dict(rowsperstrip=30), 0),
    ("bilevel, packbits", picture(bool), dict(compression="packbits"), 0),
    ("4 bits", picture("u1") & 15, dict(bitspersample=4), 0),
    ("12 bits", picture("u2") & 0xFFF, dict(bitspersample=12, rowsperstrip=16), 0),
    ("complex", picture("c16"), dict(tile=(16, 16)), 0),
    *[(f"lzw, predictor 2, {t}", picture(t, 3), dict(tile=(16, 32), compression="lzw", predictor=2), 0) for t in ["u1", "u2", "i4", "u8"]],
    *[(f"deflate, predictor 3, {t} {o}", picture(t), dict(rowsperstrip=16, compression="adobe_deflate", predictor=3, byteorder=o), 0)
      for t in ["f2", "f4", "f8"] for o in "<>"],
    ("deflate, predictor 3, two samples", picture("f4", 2), dict(tile=(16, 16), compression="deflate", predictor=3, planarconfig="contig", extrasamples=["unspecified"]), 0),
    ("old deflate", picture("u4"), dict(compression=32946, rowsperstrip=30), 0),
    ("zstd", picture("u2"), dict(compression="zstd", predictor=2, tile=(64, 64)), 0),
    ("lzma", picture("u1", 3), dict(compression="lzma", tile=(64, 64)), 0),
    ("packbits", picture("i1"), dict(compression="packbits", rowsperstrip=9), 0),
    ("png", picture("u2"), dict(compression="png", tile=(32, 32)), 0),
    ("webp", picture("u1", 3), dict(compression="webp", tile=(32, 32), compressionargs={"lossless": True}), 0),
    ("webp, alpha", picture("u1", 4), dict(compression="webp", tile=(32, 32), compressionargs={"lossless": True}, extrasamples=["unassalpha"]), 0),
    ("jpeg, grey", picture("u1") // 2, dict(compression="jpeg", rowsperstrip=16), 4),
    ("jpeg, YCbCr", picture("u1", 3) // 2, dict(compression="jpeg", tile=(32, 32), subsampling=(1, 1)), 4),
    ("jpeg, YCbCr 4:2:0", picture("u1", 3) // 2, dict(compression="jpeg", tile=(32, 32), subsampling=(2, 2)), 6),
    ("jpeg, RGB", picture("u1", 3) // 2, dict(compression="jpeg", tile=(32, 32), compressionargs={"outcolorspace": "rgb"}), 4),
]


def shaped(file, want):
    """What tifffile reads, as [y, x, channel]."""
    got = tifffile.imread(file)
    if got.shape != want.shape and got.shape == want.shape[-1:] + want.shape[:-1]:
        got = np.moveaxis(got, 0, -1)
    return np.ascontiguousarray(got.reshape(want.shape))


def write(file, a, byteorder=None, bigtiff=None, **kw):
    data = a[..., 0] if a.shape[-1] == 1 else a
    if kw.get("planarconfig") == "separate":
        data = np.moveaxis(a, -1, 0)
    kw.setdefault("photometric", "rgb" if a.shape[-1] > 2 else "minisblack")
    with tifffile.TiffWriter(file, byteorder=byteorder, bigtiff=bool(bigtiff)) as t:
        t.write(data, metadata=None, **kw)


def tiff(r, a, kw, tolerance):
    file = r.path("a.tif")
    write(file, a, **kw)
    want = shaped(file, a)
    both(r, file, want, tolerance)


def tiff_tensorstore(r, a, kw, tolerance):
    """What tensorstore reads, whose driver takes strips of uint8."""
    file = r.path("a.tif")
    write(file, a, **kw)
    r.check(file, decoded("tiff", file).reshape(a.shape), "tensorstore", tolerance)


def both(r, file, want, tolerance):
    r.check(file, want, "in place", tolerance)
    r.check(f"{r.link(file, '--to', 'x')}:x", want, "linked", tolerance)


def decoded(format, file):
    return ts.open({"driver": format, "kvstore": f"file://{file}"}).result().read().result()


def exports(r, a, kw, tolerance):
    import zarr
    from imagecodecs.zarr import register_codecs

    register_codecs(verbose=False)
    file, db, out = r.path("a.tif"), r.path("a.zdb"), r.path("a.zarr")
    write(file, a, **kw)
    want = shaped(file, a)
    r.run("import", db, file)
    r.run("export", db, out, "--format", "zarr3")
    same(want, zarr.open_array(out, mode="r")[...], "zarr-python", tolerance)


def pages(r):
    list = [picture("u1"), picture("u2", 3), picture("f4", 1, 20, 30)]
    file = r.path("a.tif")
    with tifffile.TiffWriter(file) as t:
        for a in list:
            t.write(a if a.shape[-1] == 3 else a[..., 0], photometric="rgb" if a.shape[-1] == 3 else "minisblack", metadata=None)
    db = r.link(file)
    for i, a in enumerate(list):
        r.check(f"file://{file}|tiff:{i}", a, f"page {i}")
        r.check(f"{db}:{i}", a, f"page {i}, linked")


def pyramid(r, subifds):
    base = picture("u1", 3, 128, 160)
    levels = [base, base[::2, ::2], base[::4, ::4]]
    file = r.path("a.tif")
    with tifffile.TiffWriter(file, bigtiff=True) as t:
        for i, a in enumerate(levels):
            t.write(np.ascontiguousarray(a), subifds=2 if subifds and i == 0 else None, subfiletype=min(i, 1), tile=(32, 32), compression="deflate", photometric="rgb", metadata=None)
    for i, a in enumerate(levels):
        r.check(f"file://{file}|tiff:{i}", np.ascontiguousarray(a), f"level {i}")


def ome(r, axes, shape, levels, samples):
    rnd = np.random.default_rng(len(axes))
    a = rnd.integers(0, 250, shape, "u1")
    file = r.path("a.ome.tif")
    photometric = "rgb" if samples > 1 else "minisblack"
    with tifffile.TiffWriter(file, ome=True, bigtiff=True) as t:
        t.write(a, metadata={"axes": axes, "PhysicalSizeX": 0.5, "PhysicalSizeXUnit": "nm"}, photometric=photometric, tile=(16, 16), subifds=levels, compression="zlib")
        for i in range(levels):
            step = 2 << i
            b = a[..., ::step, ::step, :] if samples > 1 else a[..., ::step, ::step]
            t.write(np.ascontiguousarray(b), subfiletype=1, photometric=photometric, tile=(16, 16), compression="zlib")
    with tifffile.TiffFile(file) as t:
        for i, level in enumerate(t.series[0].levels):
            have = dict(zip(level.axes, level.shape))
            want = level.asarray().transpose([level.axes.index(x) for x in "TCZYXS" if x in have])
            want = want.reshape([have.get(x, 1) for x in "TCZYX"] + ([have["S"]] if "S" in have else []))
            r.check(f"file://{file}|tiff:{i if levels else ''}", np.ascontiguousarray(want), f"level {i}")
    info = json.loads(r.run("info", f"file://{file}|tiff:{0 if levels else ''}", "--json"))
    if info["attributes"]["axes"][4] != {"name": "x", "type": "space", "unit": "nanometer"}:
        raise AssertionError(f"axes {info['attributes']['axes']}")


def pillow(format, a, mode=None, quantize=0, **kw):
    img = Image.fromarray(a[..., 0] if a.shape[-1] == 1 else a)
    if quantize:
        img = img.quantize(quantize)
    if mode:
        img = img.convert(mode)
    b = io.BytesIO()
    img.save(b, format, **kw)
    return b.getvalue()


def images():
    """Format, name, bytes, how much values may differ, whether tensorstore reads it."""
    grey, rgb, rgba = picture("u1") // 2, picture("u1", 3) // 2, picture("u1", 4) // 2
    la = np.ascontiguousarray(rgba[..., :2])
    for name, a, kw in [
        ("grey", grey, {}), ("RGB", rgb, {}), ("RGBA", rgba, {}), ("one pixel", rgb[:1, :1], {}), ("bilevel", grey, dict(mode="1")),
        ("palette", rgb, dict(quantize=30)), ("palette of 4 bits", rgb, dict(quantize=16, bits=4)), ("palette of 2 bits", rgb, dict(quantize=4, bits=2)),
        ("palette, transparent", rgb, dict(quantize=30, transparency=2)), ("grey, transparent", grey, dict(transparency=5)),
        ("RGB, transparent", rgb, dict(transparency=(3, 7, 11))), ("uncompressed", rgb, dict(compress_level=0)),
    ]:
        yield "png", name, pillow("png", a, **kw), 0, not any(k in kw for k in ("quantize", "transparency", "mode"))
    yield "png", "grey and alpha", imagecodecs.png_encode(la), 0, True
    for samples in 1, 2, 3, 4:
        yield "png", f"16 bits, {samples} samples", imagecodecs.png_encode(np.squeeze(picture("u2", samples))), 0, False
    for name, a, kw in [
        ("grey", grey, {}), ("grey, progressive", grey, dict(progressive=True)), ("subsampling 0", rgb, dict(subsampling=0)), ("subsampling 1", rgb, dict(subsampling=1)),
        ("subsampling 2", rgb, dict(subsampling=2)), ("progressive", rgb, dict(progressive=True)), ("CMYK", rgb, dict(mode="CMYK", subsampling=0)),
        ("quality 100", rgb, dict(quality=100)), ("quality 30", rgb, dict(quality=30)), ("own Huffman codes", rgb, dict(optimize=True)),
        ("restarts", rgb, dict(restart_marker_blocks=3)), ("RGB", rgb, dict(keep_rgb=True)), ("8x8", rgb[:8, :8], {}), ("one pixel", rgb[:1, :1], {}),
    ]:
        yield "jpeg", name, pillow("jpeg", a, **{"quality": 90, **kw}), 6, "mode" not in kw
    for name, a, kw in [
        ("lossy", rgb, dict(quality=85)), ("lossy, quality 20", rgb, dict(quality=20)), ("lossy, quality 100", rgb, dict(quality=100)),
        ("lossy, method 0", rgb, dict(method=0)), ("lossy, method 6", rgb, dict(method=6)), ("lossy, alpha", rgba, dict(quality=85)),
        ("lossy, lossy alpha", rgba, dict(quality=85, alpha_quality=40)), ("lossless", rgba, dict(lossless=True)), ("lossless RGB", rgb, dict(lossless=True)),
        ("lossless, few colours", rgb // 40 * 40, dict(lossless=True, method=6)), ("lossless, fast", rgb, dict(lossless=True, quality=0, method=0)),
        ("lossless, one pixel", rgb[:1, :1], dict(lossless=True)),
    ]:
        yield "webp", name, pillow("webp", a, **kw), 0 if "lossless" in name else 6, True
    for width in 98, 97, 96, 95, 1:
        yield "bmp", f"grey, {width} wide", pillow("bmp", grey[:, :width]), 0, True
        yield "bmp", f"RGB, {width} wide", pillow("bmp", rgb[:, :width]), 0, True
    yield "bmp", "palette", pillow("bmp", rgb, quantize=30), 0, False
    yield "bmp", "bilevel", pillow("bmp", grey, mode="1"), 0, False
    yield "bmp", "RGBA", pillow("bmp", rgba), 0, False


def image(r, format, data, tolerance, tensorstore):
    file = r.path(f"a.{format}")
    with open(file, "wb") as f:
        f.write(data)
    if format == "bmp":  # imagecodecs does not read palettes
        img = Image.open(io.BytesIO(data))
        want = np.asarray(img.convert({"1": "L", "P": "RGB"}.get(img.mode, img.mode)))
    else:
        want = {"png": imagecodecs.png_decode, "jpeg": imagecodecs.jpeg8_decode, "webp": imagecodecs.webp_decode}[format](data)
    h, w = Image.open(io.BytesIO(data)).size[::-1]
    both(r, file, np.ascontiguousarray(want.reshape(h, w, -1)), tolerance)
    if tensorstore:
        got = decoded(format, file)
        r.check(file, got.reshape(h, w, -1), "tensorstore", tolerance)


def cases():
    for name, *args in TIFFS:
        yield "tiff", name, tiff, *args
    for compression in None, "lzw", "deflate", "packbits", "zstd":
        for samples in 1, 3:
            yield "tiff", f"tensorstore, {compression}, {samples} samples", tiff_tensorstore, picture("u1", samples), dict(rowsperstrip=16, compression=compression), 0
    yield "tiff", "pages", pages
    yield "tiff", "pyramid of sub-directories", pyramid, True
    yield "tiff", "pyramid of pages", pyramid, False
    for args in [("TCZYX", (2, 3, 2, 40, 50), 0, 1), ("ZYX", (3, 64, 64), 2, 1), ("CYX", (4, 40, 50), 0, 1), ("YXS", (40, 50, 3), 0, 3), ("TYXS", (2, 64, 48, 3), 1, 3)]:
        yield "tiff", f"ome {args[0]} with {args[2]} levels", ome, *args
    # zarr-python has codecs of imagecodecs from 2026.4 on, and no grid of several lengths.
    if os.path.exists(os.path.join(os.path.dirname(imagecodecs.__file__), "zarr.py")):
        for name, data, kw, tolerance in TIFFS:
            if not H % kw.get("rowsperstrip", H):
                yield "tiff", f"exports {name}", exports, data, kw, tolerance
    for format, name, *args in images():
        yield format, name, image, format, *args


main(__doc__, cases())
