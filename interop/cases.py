"""The arrays of the comparison: metadata documents and the values to store.

Every data type goes with every codec that takes it in plain chunks, and with
every layout. Documents are those of a Zarr store: what is under test is which
bytes belong to them.
"""
import base64, dataclasses, itertools, json, re

import ml_dtypes, numpy as np

SHAPE, CHUNKS = (13, 11), (5, 4)  # chunks at the edges stick out


@dataclasses.dataclass
class Case:
    zarr_format: int
    data_type: str
    codec: str  # names of the codecs; "none" for plain bytes
    layout: str
    doc: dict
    data: np.ndarray
    path: str = ""
    setting: str = ""

    def key(self):
        return self.zarr_format, self.data_type, self.codec, self.layout

    def __str__(self):
        return f"v{self.zarr_format}/{self.data_type}/{self.codec}{self.setting and '(' + self.setting + ')'}/{self.layout}"


def values(dt, shape):
    """Values that are not alike, and compress."""
    rng, dt = np.random.default_rng(7), np.dtype(dt)
    n = int(np.prod(shape))
    if dt.names:
        out = np.zeros(shape, dt)
        for name in dt.names:
            sub = dt[name].subdtype
            out[name] = values(sub[0], tuple(shape) + sub[1]) if sub else values(dt[name], shape)
        return out
    if dt.kind == "O":
        raise ValueError("objects have values of their own")
    if dt.kind == "b":
        return rng.integers(0, 2, shape).astype(dt)
    if dt.kind == "c":
        out = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dt)
    elif dt.kind == "f" or dt in SMALL_FLOATS:
        out = rng.standard_normal(shape).round(1).astype(dt)
        if dt.kind == "f" and n > 3:
            out.reshape(-1)[:3] = [np.nan, np.inf, -np.inf]
        return out
    elif dt.kind in "SU":
        return np.array([("é" if dt.kind == "U" else "e") + str(i) for i in rng.integers(0, 100, n)], dt).reshape(shape)
    elif dt.kind == "V" and dt not in SMALL:
        return np.frombuffer(rng.integers(0, 256, n * dt.itemsize, np.uint8).tobytes(), dt).reshape(shape)
    elif dt.kind in "mM":
        out = (np.cumsum(rng.integers(0, 9, n)).reshape(shape)).astype("i8").astype(dt)
        if n > 3:
            out.reshape(-1)[1] = "NaT"
        return out
    elif dt in SMALL:
        return rng.integers(0, 2, shape).astype(dt)
    else:
        out = np.cumsum(rng.integers(-3, 4, n)).reshape(shape)
        return np.abs(out).astype(dt) if dt.kind == "u" else out.astype(dt)
    return out


SMALL_FLOATS = [np.dtype(getattr(ml_dtypes, n)) for n in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz")]
SMALL = [np.dtype(getattr(ml_dtypes, n)) for n in ("int2", "int4", "uint2", "uint4")]


def objects(kind, shape):
    n = int(np.prod(shape))
    out = np.empty(n, object)
    for i in range(n):
        out[i] = {
            "text": lambda: "é" * (i % 4) + f"t{i}" if i % 5 else "",
            "bytes": lambda: bytes(range(i % 7)),
            "json": lambda: [i, f"j{i}", None, {"a": i / 2}][i % 4],
            "ragged": lambda: np.arange(i % 4, dtype="<i4"),
        }[kind]()
    return out.reshape(shape)


def stored(case, array):
    """The bytes that zarrdb reads for an array: packed and little-endian, or lines of JSON."""
    a = np.asarray(array, case.data.dtype if np.ndim(array) == 0 else None)
    if a.dtype.kind in "OT":
        if case.codec.startswith("vlen-bytes") or case.data_type == "variable_length_bytes":
            one = lambda v: json.dumps("base64:" + base64.b64encode(bytes(v)).decode())
        elif case.codec.startswith("vlen-array"):
            one = lambda v: json.dumps([int(x) for x in v], separators=(",", ":"))
        else:
            one = lambda v: json.dumps(v, ensure_ascii=False, separators=(",", ":"))
        return "".join(one(v) + "\n" for v in a.reshape(-1)).encode()
    if a.dtype in SMALL:
        a = a.astype("i1")
    if a.dtype.names:
        a = a.astype(packed(a.dtype))
    elif a.dtype.kind in "biufcSUmM":
        a = a.astype(a.dtype.newbyteorder("<"))
    return np.ascontiguousarray(a).tobytes()


def packed(dt):
    """A structured type without padding, little-endian throughout."""
    if dt.subdtype:
        return np.dtype((packed(dt.subdtype[0]), dt.subdtype[1]))
    if not dt.names:
        return dt.newbyteorder("<")
    return np.dtype([(n, packed(dt[n])) for n in dt.names])


# Zarr v3 -----------------------------------------------------------------------

NUMBERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128"]


def conf(name, **configuration):
    return {"name": name, "configuration": configuration}


STRUCT = np.dtype([("x", "<i4"), ("y", "<f8"), ("f", "?")])
TYPES3 = {n: (n, np.dtype(n), False if n == "bool" else [1.5, "NaN"] if n.startswith("c") else "NaN" if n.startswith("f") else 7) for n in NUMBERS}
TYPES3 |= {
    **{d.name: (d.name, d, 0.0) for d in SMALL_FLOATS},
    **{d.name: (d.name, d, 1) for d in SMALL},
    "string": ("string", "text", "fill"),
    "variable_length_bytes": ("variable_length_bytes", "bytes", "aGk="),
    "fixed_length_utf32": (conf("fixed_length_utf32", length_bytes=12), np.dtype("<U3"), "ü"),
    "null_terminated_bytes": (conf("null_terminated_bytes", length_bytes=5), np.dtype("S5"), "aGk="),
    "r16": ("r16", np.dtype("V2"), [1, 255]),
    "raw_bytes": (conf("raw_bytes", length_bytes=3), np.dtype("V3"), "AAH/"),
    "numpy.datetime64": (conf("numpy.datetime64", unit="s", scale_factor=10), np.dtype("<M8[10s]"), "NaT"),
    "numpy.timedelta64": (conf("numpy.timedelta64", unit="ns", scale_factor=1), np.dtype("<m8[ns]"), 0),
    "structured": (conf("structured", fields=[["x", "int32"], ["y", "float64"], ["f", "bool"]]), STRUCT, base64.b64encode(bytes(13)).decode()),
}
BLOSC = list(itertools.product(["lz4", "lz4hc", "blosclz", "zlib", "zstd"], ["noshuffle", "shuffle", "bitshuffle"]))


def serializer(name, endian="little"):
    data_type, dt, _ = TYPES3[name]
    if dt in ("text", "bytes"):
        return {"name": "vlen-utf8" if dt == "text" else "vlen-bytes"}
    if name == "structured" or dt.itemsize > 1 and dt not in SMALL and dt.kind not in "SV" or name == "bfloat16":
        return conf("bytes", endian=endian)
    return {"name": "bytes"}


def chains3(name):
    """Every chain of codecs that takes a type: name, setting, codecs before and after the serializer."""
    _, dt, _ = TYPES3[name]
    size = 1 if isinstance(dt, str) else dt.itemsize
    yield "none", "", [], []
    for level in (1, 9):
        yield "gzip", str(level), [], [conf("gzip", level=level)]
    for check in (False, True):
        yield "zstd", "checksum" if check else "", [], [conf("zstd", level=3, checksum=check)]
    for c, s in BLOSC:
        yield "blosc", f"{c} {s}", [], [conf("blosc", cname=c, clevel=5, shuffle=s, typesize=size, blocksize=0)]
    yield "crc32c", "", [], [{"name": "crc32c"}]
    for n, kw in {"zlib": dict(level=5), "bz2": dict(level=1), "lz4": dict(acceleration=1), "lzma": {}, "zstd": dict(level=1),
                  "blosc": dict(cname="lz4", clevel=5, shuffle=1, blocksize=0), "gzip": dict(level=1), "shuffle": dict(elementsize=size),
                  "adler32": {}, "crc32": {}, "crc32c": {}, "fletcher32": {}, "jenkins_lookup3": dict(initval=1)}.items():
        yield "numcodecs." + n, "", [], [conf("numcodecs." + n, **kw)]
    if isinstance(dt, str):
        return
    native = dt.str
    if dt.kind in "iu":
        yield "numcodecs.delta", "", [conf("numcodecs.delta", dtype=native)], []
        if dt.itemsize > 1:
            yield "numcodecs.astype", "", [conf("numcodecs.astype", encode_dtype="<i8", decode_dtype=native)], []
    if name in ("float16", "float32", "float64"):
        yield "numcodecs.fixedscaleoffset", "", [conf("numcodecs.fixedscaleoffset", scale=4, offset=0, dtype=native, astype=native)], []
        yield "numcodecs.quantize", "", [conf("numcodecs.quantize", digits=1, dtype=native)], []
        yield "numcodecs.bitround", "", [conf("numcodecs.bitround", keepbits=8)], []
    if name in ("int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "float32", "float64"):
        yield "numcodecs.pcodec", "", "pcodec", []
    if dt.kind == "b":
        yield "numcodecs.packbits", "", [conf("numcodecs.packbits")], []


def document3(name, chain, layout="plain"):
    """The document of a layout, and its shape."""
    data_type, _, fill = TYPES3[name]
    before, after = chain
    body = [*before, serializer(name, "big" if layout == "big-endian" else "little"), *after]
    if before == "pcodec":
        body = [conf("numcodecs.pcodec", level=8, mode_spec="auto", delta_spec="auto", delta_encoding_order=None, equal_pages_up_to=262144)]
    shape, chunks, keys = SHAPE, CHUNKS, conf("default", separator="/")
    index = [conf("bytes", endian="little"), {"name": "crc32c"}]
    shard = lambda inner, codecs, index=index, where="end": conf("sharding_indexed", chunk_shape=inner, codecs=codecs, index_codecs=index, index_location=where)
    transpose = conf("transpose", order=[1, 0])
    if layout == "0-d":
        shape, chunks = (), ()
    elif layout == "empty":
        shape = (0, 11)
    elif layout == "one chunk":
        chunks = (20, 20)
    elif layout == "3-d":
        shape, chunks = (5, 4, 7), (2, 3, 3)
    elif layout == "dot keys":
        keys = conf("default", separator=".")
    elif layout == "v2 keys":
        keys = conf("v2", separator=".")
    elif layout == "transpose":
        body = [transpose, *body]
    elif layout.startswith("shard"):
        chunks = (10, 8)
        body = {
            "shard": lambda: [shard((5, 4), body)],
            "shard, index first": lambda: [shard((5, 4), body, where="start")],
            "shard, plain index": lambda: [shard((5, 4), body, index[:1])],
            "shard, transposed": lambda: [shard((5, 4), [transpose, *body])],
            "shard of shards": lambda: [shard((5, 4), [shard((5, 2), body)])],
        }[layout]()
    return {"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type,
            "chunk_grid": conf("regular", chunk_shape=chunks), "chunk_key_encoding": keys,
            "fill_value": fill, "codecs": body, "attributes": {}}, shape


LAYOUTS3 = ["big-endian", "0-d", "empty", "one chunk", "3-d", "dot keys", "v2 keys", "transpose",
            "shard", "shard, index first", "shard, plain index", "shard, transposed", "shard of shards"]


def cases3():
    for name, (_, dt, _) in TYPES3.items():
        def case(codec, setting, chain, layout):
            doc, shape = document3(name, chain, layout)
            data = objects(dt, shape) if isinstance(dt, str) else values(dt, shape)
            return Case(3, name, codec, layout, doc, lossless(codec, data), setting=setting)
        for codec, setting, before, after in chains3(name):
            yield case(codec, setting, (before, after), "plain")
        for layout in LAYOUTS3:
            if layout != "big-endian" or "configuration" in serializer(name):
                yield case("zstd", "", ([], [conf("zstd", level=1, checksum=False)]), layout)
    for fill in ("Infinity", "-Infinity", "0x7fc00001", 1e300):
        for name in ("float32", "float64"):
            if fill == 1e300 and name == "float32" or fill == "0x7fc00001" and name == "float64":
                continue
            doc, shape = document3(name, ([], []))
            data = np.full(shape, np.nan if fill == "0x7fc00001" else np.float64(fill), name)
            if fill == "0x7fc00001":
                data = np.full(shape, 0x7FC00001, "<u4").view("<f4")
            data[:5] = 1
            yield Case(3, name, "none", f"fill {fill}", {**doc, "fill_value": fill}, data)


def lossless(codec, data):
    """Values that a lossy codec keeps as they are."""
    if re.search("quantize|bitround|fixedscaleoffset", codec):
        return np.round(np.nan_to_num(data, nan=1, posinf=2, neginf=3) * 4).astype(data.dtype) + data.dtype.type(0)  # no negative zeros
    return data


# Zarr v2 -----------------------------------------------------------------------

TYPES2 = {d: None for d in ["|b1", "|i1", "|u1"]}
TYPES2 |= {o + d: None for o in "<>" for d in ["i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "M8[10s]", "m8[ns]", "U3"]}
TYPES2 |= {"|S5": None, "|V3": None, "|V16": None}


def fill2(dtype):
    kind = dtype[1]
    return {"b": False, "f": "NaN", "c": None, "M": 0, "m": 0, "U": "", "S": "aGkAAAA="}.get(kind, 7)


def chains2(dtype):
    dt = np.dtype(dtype)
    yield "none", "", None, None
    for n, kw in {"zlib": dict(level=5), "gzip": dict(level=5), "bz2": dict(level=1), "zstd": dict(level=3), "lz4": dict(acceleration=1),
                  "lzma": dict(format=1, check=-1, preset=None, filters=None)}.items():
        yield n, "", {"id": n, **kw}, None
    yield "lzma", "alone", {"id": "lzma", "format": 2, "check": -1, "preset": 1, "filters": None}, None
    yield "lzma", "raw", {"id": "lzma", "format": 3, "check": -1, "preset": None, "filters": [{"id": 3, "dist": 4}, {"id": 33, "preset": 1}]}, None
    for c, s in itertools.product(["lz4", "lz4hc", "blosclz", "zlib", "zstd"], [0, 1, 2, -1]):
        yield "blosc", f"{c} {s}", {"id": "blosc", "cname": c, "clevel": 5, "shuffle": s, "blocksize": 0}, None
    for n, kw in {"shuffle": dict(elementsize=dt.itemsize), "adler32": {}, "crc32": {}, "crc32c": {}, "fletcher32": {},
                  "jenkins_lookup3": dict(initval=0), "base64": {}}.items():
        yield f"{n}+zlib", "", {"id": "zlib", "level": 1}, [{"id": n, **kw}]
    if dt.kind in "iu":
        yield "delta+zlib", "", {"id": "zlib", "level": 1}, [{"id": "delta", "dtype": dtype, "astype": dtype}]
        yield "astype+zlib", "", {"id": "zlib", "level": 1}, [{"id": "astype", "encode_dtype": "<i8", "decode_dtype": dtype}]
    if dt.kind == "f":
        yield "fixedscaleoffset+zlib", "", {"id": "zlib", "level": 1}, [{"id": "fixedscaleoffset", "scale": 4, "offset": 0, "dtype": dtype, "astype": dtype}]
        yield "quantize+zlib", "", {"id": "zlib", "level": 1}, [{"id": "quantize", "digits": 1, "dtype": dtype, "astype": dtype}]
        yield "bitround+zlib", "", {"id": "zlib", "level": 1}, [{"id": "bitround", "keepbits": 8}]
    if dt.kind == "b":
        yield "packbits+zlib", "", {"id": "zlib", "level": 1}, [{"id": "packbits"}]
    if dtype in ("<i2", "<i4", "<i8", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"):
        yield "pcodec", "", {"id": "pcodec", "level": 8, "mode_spec": "auto", "delta_spec": "auto", "delta_encoding_order": None, "paging_spec": "equal_pages_up_to", "equal_pages_up_to": 262144}, None
    if dt.kind == "U":
        yield "categorize+zlib", "", {"id": "zlib", "level": 1}, [{"id": "categorize", "dtype": dtype, "astype": "|u1", "labels": sorted({str(v) for v in values(dt, SHAPE).reshape(-1)})}]


def document2(dtype, compressor, filters, layout="plain"):
    shape, chunks, extra = SHAPE, CHUNKS, {}
    if layout == "0-d":
        shape, chunks = (), ()
    elif layout == "empty":
        shape = (0, 11)
    elif layout == "3-d F":
        shape, chunks = (5, 4, 7), (2, 3, 3)
    elif layout == "slash keys":
        extra = {"dimension_separator": "/"}
    fill = None if layout == "null fill" or not isinstance(dtype, str) or dtype == "|O" else fill2(dtype)
    if dtype[1] == "V":
        fill = base64.b64encode(bytes(range(np.dtype(dtype).itemsize))).decode()
    return {"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype, "compressor": compressor, "filters": filters,
            "order": "F" if layout.endswith("F") else "C", "fill_value": fill, **extra}, shape


LAYOUTS2 = ["F", "3-d F", "slash keys", "0-d", "empty", "null fill"]
STRUCTS2 = {
    "struct": [["x", "<i4"], ["y", "<f8"], ["s", "|S3"]],
    "struct, big-endian": [["x", ">i4"], ["y", ">f8"], ["u", ">U2"]],
    "struct, nested": [["a", [["p", "<i2"], ["q", "|u1"]]], ["b", "<f4"]],
    "struct, subarray": [["m", "<f4", [2, 3]], ["n", "|i1"]],
}


def numpy_type(d):
    if isinstance(d, str):
        return d
    return np.dtype([(f[0], numpy_type(f[1]), *map(tuple, f[2:])) for f in d])


def cases2():
    zlib = {"id": "zlib", "level": 1}
    for dtype in TYPES2:
        for codec, setting, compressor, filters in chains2(dtype):
            doc, shape = document2(dtype, compressor, filters)
            yield Case(2, dtype, codec, "plain", doc, lossless(codec, values(dtype, shape)), setting=setting)
        for layout in LAYOUTS2:
            doc, shape = document2(dtype, zlib, None, layout)
            yield Case(2, dtype, "zlib", layout, doc, values(dtype, shape))
    for fill in ("NaN", "Infinity", "-Infinity"):
        for dtype in ("<f2", ">f4", "<f8"):
            doc, shape = document2(dtype, None, None)
            data = np.full(shape, float(fill), dtype)
            data[:5] = 1
            yield Case(2, dtype, "none", f"fill {fill}", {**doc, "fill_value": fill}, data)
    for dtype, fill in ("<c8", [1.5, "NaN"]), (">c16", ["-Infinity", 2.5]):
        doc, shape = document2(dtype, None, None)
        data = values(dtype, shape)
        data[5:] = complex(*map(float, fill))
        yield Case(2, dtype, "none", f"fill {fill}", {**doc, "fill_value": fill}, data)
    for name, fields in STRUCTS2.items():
        for comp, layout in itertools.product([None, zlib, {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}], ["plain", "F"]):
            doc, shape = document2(fields, comp, None, layout)
            yield Case(2, name, comp["id"] if comp else "none", layout, doc, values(numpy_type(fields), shape))
    for kind, flt, setting in [("text", {"id": "vlen-utf8"}, ""), ("bytes", {"id": "vlen-bytes"}, ""), ("ragged", {"id": "vlen-array", "dtype": "<i4"}, ""),
                               ("json", {"id": "json2", "encoding": "utf-8", "skipkeys": False, "ensure_ascii": True, "check_circular": True, "allow_nan": True,
                                         "sort_keys": True, "indent": None, "separators": [",", ":"], "strict": True}, ""),
                               ("json", {"id": "msgpack2", "raw": False, "use_single_float": False, "use_bin_type": True}, "")]:
        for comp, layout in itertools.product([None, zlib], ["plain", "F", "slash keys", "0-d", "empty"]):
            doc, shape = document2("|O", comp, [flt], layout)
            doc["fill_value"] = "" if kind in ("text", "bytes") else None
            yield Case(2, "|O", flt["id"] + ("+zlib" if comp else ""), layout, doc, objects(kind, shape))


def cases():
    for i, c in enumerate(itertools.chain(cases2(), cases3())):
        c.path = f"v{c.zarr_format}/{i:05d}"
        yield c
