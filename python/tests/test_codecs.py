"""Values through the pipeline are those of zarr-python, for every codec and type that it writes."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
import zarr.codecs as zc
from zarr.core.buffer import default_buffer_prototype
from zarr.dtype import VariableLengthBytes
from zarr.storage import MemoryStore

import zarrdb
from zarrdb import _elements, codecs

pytestmark = pytest.mark.filterwarnings("ignore")

DTYPES = [
    "?", "i1", "u1", "<i2", ">i2", "<u2", "<i4", ">i4", "<u4", "<i8", ">u8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "<c8", ">c8", "<c16",
    "S5", "<U3", ">U3", "V4", "<M8[s]", ">M8[ns]", "<M8[10us]", "<m8[ms]", "<M8[D]", "struct", "struct big", "str", "bytes",
]  # fmt: skip
NUMBERS = ["i1", "<i2", "<u4", "<i8", "<f4", ">f8"]

# Codecs of Zarr v3, with those types that zarr-python writes with them.
COMPRESSORS: dict[str, Any] = {
    "none": None, "gzip": zc.GzipCodec(level=1), "zstd": zc.ZstdCodec(level=3), "zstd+checksum": zc.ZstdCodec(checksum=True),
    "crc32c": zc.Crc32cCodec(), "zstd, crc32c": [zc.ZstdCodec(), zc.Crc32cCodec()],
    **{f"blosc {n} {s}": zc.BloscCodec(cname=n, shuffle=s, typesize=4) for n in ("lz4", "zstd", "blosclz", "lz4hc", "zlib") for s in ("shuffle", "noshuffle")},  # type: ignore[arg-type]
    "blosc zstd bitshuffle": zc.BloscCodec(cname="zstd", shuffle="bitshuffle", typesize=4),
}  # fmt: skip


def of_numcodecs(name: str, **options: Any) -> Any:
    from zarr.codecs import numcodecs as wrapped

    return getattr(wrapped, name)(**options)


WRAPPED_COMPRESSORS = [
    ("BZ2", {"level": 1}), ("LZ4", {}), ("LZMA", {}), ("Zlib", {}), ("GZip", {}), ("Zstd", {}), ("Blosc", {"cname": "lz4"}), ("Shuffle", {"elementsize": 4}),
    ("CRC32", {}), ("CRC32C", {}), ("Adler32", {}), ("Fletcher32", {}), ("JenkinsLookup3", {}),
]  # fmt: skip
WRAPPED_FILTERS = [
    ("Delta", {"dtype": "<i4"}, "<i4"), ("BitRound", {"keepbits": 8}, "<f4"), ("FixedScaleOffset", {"offset": 0, "scale": 10, "dtype": "<f8", "astype": "<i4"}, "<f8"),
    ("Quantize", {"digits": 2, "dtype": "<f4"}, "<f4"), ("PackBits", {}, "?"), ("AsType", {"encode_dtype": "<i8", "decode_dtype": "<i4"}, "<i4"),
]  # fmt: skip
V2_CODECS: dict[str, Any] = {
    "none": None, "blosc": numcodecs.Blosc(), "zlib": numcodecs.Zlib(), "gzip": numcodecs.GZip(), "bz2": numcodecs.BZ2(), "lz4": numcodecs.LZ4(),
    "lzma": numcodecs.LZMA(), "zstd": numcodecs.Zstd(),
}  # fmt: skip


def values(dtype: str, shape: tuple[int, ...] = (7, 9)) -> np.ndarray[Any, Any]:
    n = int(np.prod(shape))
    rng = np.random.default_rng(5)
    if dtype.startswith("struct"):
        x = "<f8" if dtype == "struct" else ">f8"
        return np.array([(i, i / 3, b"ab") for i in range(n)], dtype=[("i", "<i4"), ("x", x), ("s", "S3")]).reshape(shape)
    if dtype == "str":
        return np.array([f"ö{i}" * (i % 4) for i in range(n)], dtype=np.dtypes.StringDType()).reshape(shape)
    if dtype == "bytes":
        out = np.empty(n, object)
        out[:] = [b"x" * (i % 5) for i in range(n)]
        return out.reshape(shape)
    d = np.dtype(dtype)
    if d.kind in "fc":
        x = rng.normal(size=n).astype(d)
        x[::11] = np.nan
        x[5] = -0.0
        return x.reshape(shape)
    if d.kind in "Mm":
        x = rng.integers(0, 10**9, n).astype("<i8").astype(d)
        x[3] = "NaT"
        return x.reshape(shape)
    if d.kind in "SU":
        return np.array([f"{i % 100}" for i in range(n)]).astype(d).reshape(shape)
    if d.kind == "V":
        return rng.integers(0, 255, n * d.itemsize).astype("u1").view(d).reshape(shape)
    return rng.integers(0, 100, n).astype(d).reshape(shape)


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zarrdb.Repository]:
    """One database for all: there are many cases."""
    import os
    import signal

    from conftest import holder

    path = tmp_path_factory.mktemp("codecs") / "c.zdb"
    yield zarrdb.open(path, create=True)
    pid = holder(path)
    if pid:
        os.kill(pid, signal.SIGTERM)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The operations with which elements were asked for."""
    seen: list[int] = []
    call = _elements.Elements._call
    monkeypatch.setattr(_elements.Elements, "_call", lambda self, op, *args, **more: (seen.append(op), call(self, op, *args, **more))[1])
    return seen


SELECTIONS: list[tuple[str, Any]] = [
    ("basic", ...), ("basic", (slice(1, 6, 2), slice(None))), ("basic", (3, slice(2, 8))), ("basic", (6, 8)), ("basic", (slice(6, 6), 0)),
    ("oindex", ([0, 3, 6], slice(1, 9, 3))), ("oindex", (slice(2, 5), [8, 1])), ("oindex", (2, [0, 5])), ("vindex", ([0, 6, 2], [8, 0, 3])),
    ("mask", None), ("blocks", (0, slice(0, 1))),
]  # fmt: skip


def same(a: Any, b: Any) -> None:
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype and a.shape == b.shape
    if a.dtype.hasobject or a.dtype.kind == "T":
        assert a.tolist() == b.tolist()
    else:
        assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def pick(z: Any, how: str, sel: Any) -> Any:
    if how == "basic":
        return z[sel]
    if how == "mask":
        mask = np.zeros(z.shape, bool)
        mask[::2, 1::3] = True
        return z.get_mask_selection(mask)
    return getattr(z, how)[sel]


def check(repo: zarrdb.Repository, x: np.ndarray[Any, Any], **options: Any) -> None:
    """Write with zarr-python to memory, and with the pipeline to a session; then all read all."""
    options = {"chunks": (3, 4), **options}
    memory = MemoryStore()
    try:
        zarr.create_array(memory, name="a", shape=x.shape, **options)[...] = x
        reference = zarr.open_array(memory, path="a")  # v3 does not keep the byte order
        want = reference[...]
    except Exception as e:  # zarr-python cannot do that itself
        pytest.skip(f"zarr-python: {e}")
    if (x.dtype.kind == "T" or x.dtype.names) and want.tolist() != x.tolist():
        pytest.skip("zarr-python does not read back what it wrote itself")
    s = repo.writable_session()
    zarr.create_array(s.store, name="plain", shape=x.shape, **options)[...] = x
    same(zarr.open_array(s.store, path="plain")[...], want)
    with codecs.use():
        read = zarr.open_array(s.store, path="plain", mode="r+")
        for how, sel in SELECTIONS:
            same(pick(read, how, sel), pick(reference, how, sel))
        written = zarr.create_array(s.store, name="written", shape=x.shape, **options)
        written[...] = x
        written[2:5, 3:] = x[2:5, 3:]
        same(zarr.open_array(s.store, path="written")[...], want)
    # zarr-python decodes what the server has encoded.
    same(zarr.open_array(s.store, path="written", mode="r")[...], want)
    s.discard()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("format", [2, 3])
def test_types(repo: zarrdb.Repository, requests: list[int], format: int, dtype: str) -> None:
    x = values(dtype)
    kind = VariableLengthBytes() if dtype == "bytes" else x.dtype
    check(repo, x, dtype=kind, zarr_format=format)
    assert bool(requests) == (dtype not in ("str", "bytes"))


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("codec", COMPRESSORS)
def test_compressors(repo: zarrdb.Repository, requests: list[int], codec: str, dtype: str) -> None:
    check(repo, values(dtype), dtype=dtype, compressors=COMPRESSORS[codec])
    assert requests


@pytest.mark.parametrize("dtype", ["<i4", ">f8"])
@pytest.mark.parametrize(("codec", "options"), WRAPPED_COMPRESSORS, ids=lambda v: v if isinstance(v, str) else "")
def test_compressors_of_numcodecs(repo: zarrdb.Repository, codec: str, options: dict[str, Any], dtype: str) -> None:
    check(repo, values(dtype), dtype=dtype, compressors=of_numcodecs(codec, **options))


@pytest.mark.parametrize(("codec", "options", "dtype"), WRAPPED_FILTERS, ids=lambda v: v if isinstance(v, str) else "")
def test_filters_of_numcodecs(repo: zarrdb.Repository, codec: str, options: dict[str, Any], dtype: str) -> None:
    x = values("<i4").astype(dtype)
    check(repo, x, dtype=dtype, filters=of_numcodecs(codec, **options))


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("codec", V2_CODECS)
def test_compressors_of_v2(repo: zarrdb.Repository, requests: list[int], codec: str, dtype: str) -> None:
    check(repo, values(dtype), dtype=dtype, zarr_format=2, compressors=V2_CODECS[codec])
    assert requests


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("filters", [None, [numcodecs.Delta("<i4")], [numcodecs.Shuffle(4)]], ids=str)
def test_filters_of_v2(repo: zarrdb.Repository, order: str, filters: Any) -> None:
    check(repo, values("<i4"), dtype="<i4", zarr_format=2, filters=filters, order=order)


@pytest.mark.parametrize("dtype", ["?", "<i4", ">f8", "S5", "str"])
@pytest.mark.parametrize("options", [
    {"shards": (6, 8)}, {"shards": (6, 8), "compressors": zc.GzipCodec()}, {"serializer": zc.BytesCodec(endian="big")},
    {"filters": zc.TransposeCodec(order=(1, 0))}, {"shards": (6, 8), "filters": zc.TransposeCodec(order=(1, 0))},
    {"chunk_key_encoding": {"name": "default", "separator": "."}}, {"chunk_key_encoding": {"name": "v2", "separator": "/"}},
    {"chunk_key_encoding": {"name": "v2", "separator": "."}}, {"chunks": (7, 9)}, {"chunks": (1, 100)}, {"fill_value": None}, {"config": {"write_empty_chunks": True}},
], ids=str)  # fmt: skip
def test_layouts(repo: zarrdb.Repository, options: dict[str, Any], dtype: str) -> None:
    x = values(dtype)
    if dtype in ("S5", "str") and "serializer" in options:
        pytest.skip("these have a serializer of their own")
    check(repo, x, dtype=x.dtype, **options)


def test_missing_chunks(repo: zarrdb.Repository, requests: list[int]) -> None:
    s = repo.writable_session()
    with codecs.use():
        z = zarr.create_array(s.store, name="a", shape=(10, 4), chunks=(2, 2), dtype="f4", fill_value=np.nan)
        assert np.isnan(z[...]).all()
        z[0] = 1
        z[4:6] = np.nan
        z[8, 3] = 2
    assert requests
    assert sorted(k for k in s.keys("a/c")) == ["a/c/0/0", "a/c/0/1", "a/c/4/1"]
    s.discard()


def test_scalars(repo: zarrdb.Repository) -> None:
    s = repo.writable_session()
    with codecs.use():
        z = zarr.create_array(s.store, name="g/zero", shape=(), dtype="i4")
        z[...] = 5
        assert z[()] == 5 and zarr.open_array(s.store, path="g/zero")[...] == 5
        v2 = zarr.create_array(s.store, name="v2", shape=(), dtype="i4", zarr_format=2)
        v2[...] = 6
        assert v2[()] == 6
        root = zarr.create_array(repo.writable_session().store, data=np.arange(5), chunks=(2,))
        assert root[1:4].tolist() == [1, 2, 3] and int(root[3]) == 3
    s.discard()


def test_other_stores_and_codecs_that_the_server_lacks(repo: zarrdb.Repository, requests: list[int], tmp_path: Path) -> None:
    x = values("<f4")
    s = repo.writable_session()
    with codecs.use():
        z = zarr.create_array(tmp_path / "local.zarr", data=x, chunks=(3, 4))
        same(z[...], x)
        assert not requests
        z = zarr.create_array(s.store, name="pc", shape=x.shape, chunks=(3, 4), dtype="<f4", compressors=None, filters=of_numcodecs("BitRound", keepbits=8))
        z[...] = x
        first = len(requests)
        # A document that names a codec that only this process knows.
        doc = s.get("pc/zarr.json")
        assert doc is not None and first
        s.set("pc/zarr.json", doc.replace(b"numcodecs.bitround", b"numcodecs.bitround_of_mine"))
        with pytest.raises(Exception, match="of_mine|nknown"):
            zarr.open_array(s.store, path="pc")
        with pytest.raises(zarrdb.ZarrdbError):
            s.array("pc")
        same(z[...], z[...])  # zarr-python goes on with what it had parsed
        once = len(requests)
        same(z[...], z[...])
        assert len(requests) == once  # the server is not asked again
    s.discard()


def test_structs_by_field(repo: zarrdb.Repository) -> None:
    x = values("struct")
    s = repo.writable_session()
    with codecs.use():
        z = zarr.create_array(s.store, name="a", data=x, chunks=(3, 4))
        same(z[...], x)
    s.discard()


def test_parts_of_chunks_by_many(repo: zarrdb.Repository) -> None:
    """Threads write interleaved elements of the same chunks; nothing is lost."""
    from concurrent.futures import ThreadPoolExecutor

    s = repo.writable_session()
    with codecs.use():
        zarr.create_array(s.store, name="a", shape=(400,), chunks=(64,), dtype="i4")
        arrays = [zarr.open_array(pickle.loads(pickle.dumps(s)).store, path="a") for _ in range(4)]

        def write(i: int) -> None:
            for at in range(i * 5, 400, 20):
                arrays[i][at : at + 5] = np.arange(at, at + 5)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
        assert zarr.open_array(s.store, path="a")[:].tolist() == list(range(400))
    s.discard()


def test_large_results_are_not_copied(repo: zarrdb.Repository) -> None:
    x = np.arange(1 << 18, dtype="<i8").reshape(512, 512)
    s = repo.writable_session()
    with codecs.use():
        z = zarr.create_array(s.store, name="a", data=x, chunks=(100, 100))
        got = z[...]
        same(got, x)
        assert got.base is not None and got.flags.writeable
        got[0] = 0
        same(z[...], x)
        same(z.oindex[[0, 511], :], x[[0, 511]])
    s.discard()


@pytest.mark.parametrize("compressors", [None, zc.ZstdCodec(level=1)])
def test_results_come_into_memory_of_the_caller(repo: zarrdb.Repository, compressors: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(40 * 50 * 60, dtype="<f4").reshape(40, 50, 60)
    with codecs.use():
        s = repo.writable_session()
        zarr.create_array(s.store, name="into", shape=x.shape, chunks=(8, 25, 30), dtype="<f4", compressors=compressors, overwrite=True)[:] = x
        s.commit("x")
        a: Any = zarr.open_array(repo.at("main").store, path="into", mode="r")
        wrap = default_buffer_prototype().nd_buffer.from_numpy_array
        into: list[Any] = []
        read = _elements.Elements.read

        def noted(self: Any, sel: Any, out: Any = None) -> Any:
            into.append(out)
            return read(self, sel, out)

        monkeypatch.setattr(_elements.Elements, "read", noted)
        out = np.ones(x.shape, "<f4")
        a.get_basic_selection(..., out=wrap(out))
        np.testing.assert_array_equal(out, x)
        assert all(np.shares_memory(o, out) for o in into) and into  # no copy is made
        part = np.ones((5, 20), "<f4")
        a.get_basic_selection((slice(3, 8), 7, slice(30, 50)), out=wrap(part))
        np.testing.assert_array_equal(part, x[3:8, 7, 30:50])
        for other in (np.ones((40, 50, 120), "<f4")[:, :, ::2], np.ones(x.shape, "<f4", order="F"), np.ones(x.shape, ">f4")):
            a.get_basic_selection(..., out=wrap(other))
            np.testing.assert_array_equal(other, x)


def test_use_is_a_context() -> None:
    before = zarr.config.get("codec_pipeline.path")
    with codecs.use():
        assert zarr.config.get("codec_pipeline.path").startswith("zarrdb.")
    assert zarr.config.get("codec_pipeline.path") == before
    warnings.resetwarnings()
