"""Compares zarrdb with tifffile, imagecodecs and Pillow on TIFF files and images.

    formats_images.py --bin ./zarrdb [-k SUBSTRING]

tiff    files of tifffile in varied settings are read by zarrdb to the values that
        tifffile reads: in place, and linked into a database
pages   so are the arrays of pages, of pyramids and of OME-TIFF
image   images of Pillow and imagecodecs are read to what imagecodecs decodes
codecs  arrays that zarrdb exports with the bytes of their tiles as they are, are read
        by zarr-python with the codecs of imagecodecs, where the release has them
"""
import argparse, io, json, os, subprocess, sys, tempfile, traceback

import imagecodecs, numpy as np, tifffile
from PIL import Image

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


class Runner:
    def __init__(self, a, tmp):
        self.bin, self.tmp, self.n = os.path.abspath(a.bin), tmp, 0

    def path(self, suffix):
        self.n += 1
        return f"{self.tmp}/{self.n}{suffix}"

    def run(self, *args):
        p = subprocess.run([self.bin, *map(str, args)], capture_output=True)
        if p.returncode:
            raise RuntimeError(f"exit {p.returncode}: {' '.join(map(str, args))}: {p.stderr.decode()}")
        return p.stdout

    def read(self, target, like):
        return np.frombuffer(self.run("read", target, "-o", "-"), like.dtype.newbyteorder("<")).reshape(like.shape)

    def check(self, target, want, tolerance, what):
        got = self.read(target, want)
        if tolerance:
            worst = int(np.abs(want.astype("i4") - got).max())
            if worst > tolerance:
                raise AssertionError(f"{what}: values differ by up to {worst}")
        elif want.astype(got.dtype).tobytes() != got.tobytes():
            raise AssertionError(f"{what}: other values")

    def link(self, file):
        db = self.path(".zdb")
        self.run("init", db)
        self.run("import", db, file, "--link", "--to", "x", "-m", "link")
        return db


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
    file = r.path(".tif")
    write(file, a, **kw)
    want = shaped(file, a)
    r.check(file, want, tolerance, "in place")
    r.check(f"{r.link(file)}:x", want, tolerance, "linked")


def codecs(r, a, kw, tolerance):
    import zarr
    from imagecodecs.zarr import register_codecs

    register_codecs(verbose=False)
    file, out = r.path(".tif"), r.path(".zarr")
    write(file, a, **kw)
    want = shaped(file, a)
    db = r.path(".zdb")
    r.run("init", db)
    r.run("import", db, file, "-m", "copy")
    r.run("export", db, out, "--format", "zarr3")
    got = zarr.open_array(out, mode="r")[...]
    worst = np.abs(got.astype("f8") - want).max() if tolerance else float((got != want).any())
    if worst > tolerance:
        raise AssertionError(f"zarr-python reads other values, by {worst}")


def pages(r):
    list = [picture("u1"), picture("u2", 3), picture("f4", 1, 20, 30)]
    file = r.path(".tif")
    with tifffile.TiffWriter(file) as t:
        for a in list:
            t.write(a if a.shape[-1] == 3 else a[..., 0], photometric="rgb" if a.shape[-1] == 3 else "minisblack", metadata=None)
    db = r.link(file)
    for i, a in enumerate(list):
        r.check(f"file://{file}|tiff:{i}", a, 0, f"page {i}")
        r.check(f"{db}:x/{i}", a, 0, f"page {i}, linked")


def pyramid(r, subifds):
    base = picture("u1", 3, 128, 160)
    levels = [base, base[::2, ::2], base[::4, ::4]]
    file = r.path(".tif")
    with tifffile.TiffWriter(file, bigtiff=True) as t:
        for i, a in enumerate(levels):
            t.write(np.ascontiguousarray(a), subifds=2 if subifds and i == 0 else None, subfiletype=min(i, 1), tile=(32, 32), compression="deflate", photometric="rgb", metadata=None)
    for i, a in enumerate(levels):
        r.check(f"file://{file}|tiff:{i}", np.ascontiguousarray(a), 0, f"level {i}")


def ome(r, axes, shape, levels, samples):
    rnd = np.random.default_rng(len(axes))
    a = rnd.integers(0, 250, shape, "u1")
    file = r.path(".ome.tif")
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
            r.check(f"file://{file}|tiff:{i if levels else ''}", np.ascontiguousarray(want), 0, f"level {i}")
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
    grey, rgb, rgba = picture("u1") // 2, picture("u1", 3) // 2, picture("u1", 4) // 2
    la = np.ascontiguousarray(rgba[..., :2])
    yield "png grey", "png", pillow("png", grey), 0
    yield "png RGB", "png", pillow("png", rgb), 0
    yield "png RGBA", "png", pillow("png", rgba), 0
    yield "png grey and alpha", "png", imagecodecs.png_encode(la), 0
    yield "png 16 bits", "png", imagecodecs.png_encode(picture("u2", 3)), 0
    yield "png palette", "png", pillow("png", rgb, quantize=30), 0
    yield "png palette, transparent", "png", pillow("png", rgb, quantize=30, transparency=2), 0
    yield "jpeg grey", "jpeg", pillow("jpeg", grey), 4
    for sub in 0, 1, 2:
        yield f"jpeg subsampling {sub}", "jpeg", pillow("jpeg", rgb, subsampling=sub, quality=90), 6
    yield "jpeg progressive", "jpeg", pillow("jpeg", rgb, progressive=True, quality=90), 6
    yield "jpeg CMYK", "jpeg", pillow("jpeg", rgb, mode="CMYK", quality=90, subsampling=0), 6
    yield "webp lossy", "webp", pillow("webp", rgb, quality=85), 6
    yield "webp lossy, alpha", "webp", pillow("webp", rgba, quality=85), 6
    yield "webp lossless", "webp", pillow("webp", rgba, lossless=True), 0
    yield "bmp grey", "bmp", pillow("bmp", grey), 0
    yield "bmp RGB", "bmp", pillow("bmp", rgb), 0
    yield "bmp palette", "bmp", pillow("bmp", rgb, quantize=30), 0


def image(r, format, data, tolerance):
    file = r.path(f".{format}")
    with open(file, "wb") as f:
        f.write(data)
    if format == "bmp":  # imagecodecs does not read palettes
        img = Image.open(io.BytesIO(data))
        want = np.asarray(img.convert("L" if img.mode == "L" else "RGB"))
    else:
        want = {"png": imagecodecs.png_decode, "jpeg": imagecodecs.jpeg8_decode, "webp": imagecodecs.webp_decode}[format](data)
    want = np.ascontiguousarray(want.reshape(H, W, -1))
    r.check(file, want, tolerance, "in place")
    r.check(f"{r.link(file)}:x", want, tolerance, "linked")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bin", required=True)
    p.add_argument("-k", default="")
    a = p.parse_args()
    passed = failed = skipped = 0

    def case(name, fn, *args):
        nonlocal passed, failed
        if a.k not in name:
            return
        try:
            fn(*args)
            passed += 1
        except Exception:
            failed += 1
            print(f"FAIL {name}")
            traceback.print_exc()

    with tempfile.TemporaryDirectory() as tmp:
        r = Runner(a, tmp)
        for name, data, kw, tolerance in TIFFS:
            case(f"tiff {name}", tiff, r, data, kw, tolerance)
        case("pages", pages, r)
        case("pyramid of sub-directories", pyramid, r, True)
        case("pyramid of pages", pyramid, r, False)
        for args in [("TCZYX", (2, 3, 2, 40, 50), 0, 1), ("ZYX", (3, 64, 64), 2, 1), ("CYX", (4, 40, 50), 0, 1), ("YXS", (40, 50, 3), 0, 3), ("TYXS", (2, 64, 48, 3), 1, 3)]:
            case(f"ome {args[0]} with {args[2]} levels", ome, r, *args)
        for name, *args in images():
            case(f"image {name}", image, r, *args)
        for name, data, kw, tolerance in TIFFS:
            # zarr-python has codecs of imagecodecs from 2026.4 on, and no grid of several lengths.
            if not os.path.exists(os.path.join(os.path.dirname(imagecodecs.__file__), "zarr.py")) or H % kw.get("rowsperstrip", H):
                skipped += 1
                continue
            case(f"codecs {name}", codecs, r, data, kw, tolerance)
    print(f"images: {passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(failed > 0)


main()
