"""Compares zarrdb with fsspec, kerchunk, VirtualiZarr and xarray on reference sets.

    refs.py --bin ./zarrdb --refset ./refset [-k SUBSTRING]

files   HDF5 files, exported as sets without a database between, have the ranges that
        kerchunk finds, and are read to their values
theirs  kerchunk, fsspec and VirtualiZarr write sets of HDF5 files; zarrdb reads
        each array to the values that are in the files
ours    the same sets, written anew by zarrdb as JSON of version 0 and 1 and as
        parquet, are read to these values through fsspec and zarr-python, through
        xarray, and by the readers of kerchunk and VirtualiZarr
append  sets of single files, joined by zarrdb in two commits, with an array copied
        in; exported in each form, they are read to the values of all files
v3      a Zarr v3 store, exported as sets of Zarr v2 in each form and as one of
        Zarr v3, is read to the values by xarray's engines kerchunk and zarr
codecs  arrays of Zarr v3 with each codec, exported as sets, are read by zarr-python
tools   sets that zarrdb wrote, joined, renamed and filled in by kerchunk
text    sets with URLs and values that are awkward to spell
"""
import argparse, json, os, pathlib, random, string, subprocess, sys, tempfile, traceback, warnings

import fsspec, h5py, numpy as np, xarray as xr, zarr
from fsspec.implementations.reference import LazyReferenceMapper, ReferenceFileSystem
from kerchunk.combine import MultiZarrToZarr
from kerchunk.df import refs_to_dataframe
from kerchunk.hdf import SingleHdf5ToZarr
from kerchunk.utils import inline_array, rename_target

warnings.filterwarnings("ignore")

FORMATS = {
    "v0": ["-format", "v0"], "v1": ["-format", "v1"], "v1-plain": ["-format", "v1-plain"],
    "parquet": ["-format", "parquet"], "parquet-small": ["-format", "parquet", "-records", 7],
}


class Tools:
    def __init__(self, a):
        self.bin, self.refset = os.path.abspath(a.bin), os.path.abspath(a.refset)

    def run(self, *args):
        p = subprocess.run([str(a) for a in args], capture_output=True)
        if p.returncode:
            raise RuntimeError(f"exit {p.returncode}: {' '.join(map(str, args))}: {p.stderr.decode()}")
        return p.stdout

    def convert(self, src, dest, format):
        self.run(self.refset, *FORMATS[format], src, dest)
        return str(dest)

    def read(self, src, name, like):
        raw = self.run(self.bin, "read", f"file://{src}|kerchunk:{name}", "-o", "-")
        return np.frombuffer(raw, like.dtype.newbyteorder("<")).reshape(like.shape)


def same(want, got, what):
    want, got = np.asarray(want), np.asarray(got)
    if want.shape != got.shape or not np.array_equal(want, got.astype(want.dtype), equal_nan=want.dtype.kind == "f"):
        raise AssertionError(f"{what}: other values")


def write_hdf5(path, first=0, n=25, varying=False):
    """Returns the values; varying leaves out what has no time."""
    rng = np.random.default_rng(first)
    out = {
        "time": np.arange(first, first + n, dtype="i8"),
        "lat": np.linspace(-1, 1, 10),
        "temp": rng.standard_normal((n, 10, 15)).round(2).astype("f4"),
        "count": rng.integers(-9, 9, (n, 10)).astype("i2"),
        "hole": np.full((40, 40), -1, "i4"),
        "scale": np.float64(2.5),
    }
    out["hole"][8:16, 0:8] = 7
    if varying:
        del out["hole"], out["scale"]
    with h5py.File(path, "w") as f:
        for name in ("time", "lat"):
            f.create_dataset(name, data=out[name]).make_scale(name)
        f.create_dataset("lon", data=np.arange(15, dtype="f8")).make_scale("lon")
        f.create_dataset("temp", data=out["temp"], chunks=(5, 4, 15), compression="gzip", shuffle=True)
        f.create_dataset("count", data=out["count"], chunks=(1, 10))
        if not varying:
            f.create_dataset("hole", shape=(40, 40), dtype="i4", chunks=(8, 8), fillvalue=-1)[8:16, 0:8] = 7
            f.create_dataset("scale", data=out["scale"])
        for name, dims in {"temp": ("time", "lat", "lon"), "count": ("time", "lat")}.items():
            for i, d in enumerate(dims):
                f[name].dims[i].attach_scale(f[d])
    return out


def sets(tmp):
    """Yields sets of others: what wrote it, where it is, the values."""
    data = write_hdf5(f"{tmp}/a.h5")
    one = SingleHdf5ToZarr(f"{tmp}/a.h5", inline_threshold=100).translate()
    pathlib.Path(f"{tmp}/kerchunk.json").write_text(json.dumps(one))
    yield "kerchunk-json", f"{tmp}/kerchunk.json", data
    pathlib.Path(f"{tmp}/kerchunk0.json").write_text(json.dumps(one["refs"]))
    yield "kerchunk-v0", f"{tmp}/kerchunk0.json", data
    refs_to_dataframe(one, f"{tmp}/kerchunk.parq", record_size=10)
    yield "kerchunk-parquet", f"{tmp}/kerchunk.parq", data
    parts, each = [], []
    for i in range(4):
        each.append(write_hdf5(f"{tmp}/p{i}.h5", 25 * i, varying=True))
        parts.append(SingleHdf5ToZarr(f"{tmp}/p{i}.h5", inline_threshold=0).translate())
    joined = {name: np.concatenate([e[name] for e in each]) for name in ("time", "temp", "count")}
    combine = dict(remote_protocol="file", concat_dims=["time"], identical_dims=["lat", "lon"])
    multi = MultiZarrToZarr(parts, **combine).translate()
    pathlib.Path(f"{tmp}/multi.json").write_text(json.dumps(multi))
    yield "kerchunk-multi", f"{tmp}/multi.json", joined
    lazy = LazyReferenceMapper.create(f"{tmp}/lazy.parq", record_size=11)
    for key in sorted(multi["refs"], key=lambda k: ".z" not in k):
        lazy[key] = multi["refs"][key]
    lazy.flush()
    yield "fsspec-lazy", f"{tmp}/lazy.parq", joined
    yield from virtualizarr(tmp, data)


def virtualizarr(tmp, data):
    from obstore.store import LocalStore
    from virtualizarr import open_virtual_dataset
    from virtualizarr.parsers import HDFParser
    from obspec_utils.registry import ObjectStoreRegistry

    registry = ObjectStoreRegistry({"file://": LocalStore()})
    vds = open_virtual_dataset(f"file://{tmp}/a.h5", registry=registry, parser=HDFParser(drop_variables=["hole"]), loadable_variables=[])
    named = {k: v for k, v in data.items() if k != "hole"}
    vds.vz.to_kerchunk(f"{tmp}/vz.json", format="json")
    yield "virtualizarr-json", f"{tmp}/vz.json", named
    del named["scale"]
    vds.drop_vars("scale").vz.to_kerchunk(f"{tmp}/vz.parq", format="parquet", record_size=9)
    yield "virtualizarr-parquet", f"{tmp}/vz.parq", named


def open_fsspec(path):
    """The set as zarr-python sees it through fsspec."""
    fo = path if os.path.isdir(path) else json.loads(pathlib.Path(path).read_text())
    fs = fsspec.filesystem("reference", fo=fo, remote_protocol="file", asynchronous=True, skip_instance_cache=True)
    return zarr.open_group(zarr.storage.FsspecStore(fs, read_only=True), mode="r", zarr_format=2)


def references(path):
    """What fsspec makes of a set: key -> bytes, or [URL], or [URL, offset, size]."""
    if os.path.isdir(path):
        lazy = LazyReferenceMapper(path)
        return {k: lazy[k] for k in lazy if k != ".zmetadata"}
    fs = ReferenceFileSystem(json.loads(pathlib.Path(path).read_text()), remote_protocol="file", skip_instance_cache=True, simple_templates=False)
    # VirtualiZarr lacks the "0" of the one chunk of a scalar.
    return {k + "0" if k.endswith("/") else k: v for k, v in fs.references.items()}


def normal(value):
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        if value.startswith(b"base64:"):
            import base64
            value = base64.b64decode(value[7:])
        try:
            return json.dumps(json.loads(value), sort_keys=True)
        except ValueError:
            return value
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    return [str(value[0]), *(int(v) for v in value[1:])]


def same_references(a, b):
    a, b = {k: normal(v) for k, v in a.items()}, {k: normal(v) for k, v in b.items()}
    if a != b:
        differ = [k for k in sorted(set(a) | set(b)) if a.get(k) != b.get(k)]
        raise AssertionError(f"{len(differ)} references differ, such as {differ[0]}: {a.get(differ[0])!r}, {b.get(differ[0])!r}")


def check_set(tools, path, data):
    tmp = path.replace(".", "-") + "-"  # beside the files that it refers to
    for name, want in data.items():
        same(want, tools.read(path, name, want), f"zarrdb reads {name}")
    want = references(path)
    for format in FORMATS:
        ours = tools.convert(path, f"{tmp}ours-{format}", format)
        same_references(want, references(ours))
        group = open_fsspec(ours)
        for name, values in data.items():
            same(values, group[name][...], f"{format}: zarr-python reads {name} through fsspec")
            same(values, tools.read(ours, name, values), f"{format}: zarrdb reads {name}")
        check_kerchunk(ours, data, tmp, format)
        # VirtualiZarr knows neither version 0, nor templates, nor inline values.
        if os.path.basename(path).startswith("vz") and format not in ("v0", "v1"):
            check_virtualizarr(ours, data, format)
        for back in ("v0", "parquet-small"):
            tools.convert(ours, f"{tmp}back-{format}-{back}", back)
            same_references(want, references(f"{tmp}back-{format}-{back}"))


def check_kerchunk(ours, data, tmp, format):
    with xr.open_dataset(ours if os.path.isdir(ours) else json.loads(pathlib.Path(ours).read_text()), engine="kerchunk", decode_times=False, mask_and_scale=False) as ds:
        for name, values in data.items():
            same(values, ds[name].values, f"{format}: xarray's engine kerchunk reads {name}")
    if format in ("v0", "v1-plain"):  # refs_to_dataframe knows no templates
        refs_to_dataframe(ours, f"{tmp}theirs-{format}", record_size=13)
        group = open_fsspec(f"{tmp}theirs-{format}")
        for name, values in data.items():
            same(values, group[name][...], f"{format}: {name} of what kerchunk makes of it")


def check_virtualizarr(ours, data, format):
    from obstore.store import LocalStore
    from virtualizarr.parsers import KerchunkJSONParser, KerchunkParquetParser
    from obspec_utils.registry import ObjectStoreRegistry

    registry = ObjectStoreRegistry({"file://": LocalStore()})
    parser = KerchunkParquetParser() if os.path.isdir(ours) else KerchunkJSONParser()
    store = parser(url=f"file://{ours}", registry=registry)
    with xr.open_zarr(store, consolidated=False, zarr_format=3, decode_times=False, mask_and_scale=False) as ds:
        for name, values in data.items():
            if values.ndim == 0:  # it fails on those of its own, too
                continue
            same(values, ds.variables[name].to_numpy(), f"{format}: VirtualiZarr reads {name}")


def check_files(tools, tmp):
    data = write_hdf5(f"{tmp}/a.h5")
    theirs = SingleHdf5ToZarr(f"{tmp}/a.h5", inline_threshold=0).translate()["refs"]
    ranges = {k.replace("/", "."): [str(v[0]).removeprefix("file://"), *v[1:]] for k, v in theirs.items() if isinstance(v, list)}
    for name, flags in EXPORTS.items():
        tools.run(tools.bin, "export", f"{tmp}/a.h5", f"{tmp}/{name}", *flags)
        if "--inline-threshold" not in flags:
            ours = {k.replace("/", "."): [str(v[0]).removeprefix("file://"), *map(int, v[1:])] for k, v in references(f"{tmp}/{name}").items() if isinstance(v, (list, tuple))}
            if ours != ranges:
                raise AssertionError(f"{name}: other ranges: {sorted(set(map(str, ours.items())) ^ set(map(str, ranges.items())))[:4]}")
        group = open_fsspec(f"{tmp}/{name}")
        for key, values in data.items():
            same(values, group[key][...], f"{name}: zarr-python reads {key} through fsspec")
            same(values, tools.read(f"{tmp}/{name}", key, values), f"{name}: zarrdb reads {key}")


EXPORTS = {
    "v0": ["--format", "kerchunk-json"], "v1": ["--format", "kerchunk-json-v1"], "parquet": ["--format", "kerchunk-parquet"],
    "inline": ["--format", "kerchunk-json", "--inline"], "threshold": ["--format", "kerchunk-parquet", "--inline-threshold", 300],
}


def content(path):
    """All bytes of a set, but not of the packs that it refers to."""
    path = pathlib.Path(path)
    return {str(f.relative_to(path.parent)): f.read_bytes() for f in [path, *path.rglob("*")] if f.is_file()}


def check_append(tools, tmp):
    each, parts = [], []
    for i in range(4):
        each.append(write_hdf5(f"{tmp}/p{i}.h5", 25 * i, varying=True))
        parts.append(f"{tmp}/p{i}.json")
        pathlib.Path(parts[-1]).write_text(json.dumps(SingleHdf5ToZarr(f"{tmp}/p{i}.h5", inline_threshold=100 * i).translate()))
    joined = {name: np.concatenate([e[name] for e in each]) for name in ("time", "temp", "count")}
    joined["lat"] = each[0]["lat"]
    db = f"{tmp}/w.zdb"
    for some in (parts[:3], parts[3:]):
        tools.run(tools.bin, "import", db, *some, "--link", "--append-dim", "time", "--to", "all", "--allow", tmp)
    tools.run(tools.bin, "refs", "localize", f"{db}:all/temp")
    for name, flags in EXPORTS.items():
        out = f"{tmp}/{name}" + (".parq" if "kerchunk-parquet" in flags else ".json")
        tools.run(tools.bin, "export", f"{db}:all", out, *flags)
        first = content(out)
        for path in (out, out + ".packs"):
            subprocess.run(["rm", "-r", "-f", path], check=True)
        tools.run(tools.bin, "export", f"{db}:all", out, *flags)
        if content(out) != first:
            raise AssertionError(f"{name}: exported twice, other bytes")
        group = open_fsspec(out)
        for array, values in joined.items():
            same(values, group[array][...], f"{name}: zarr-python reads {array} through fsspec")
            same(values, tools.read(out, array, values), f"{name}: zarrdb reads {array}")
        with xr.open_dataset(out if os.path.isdir(out) else json.loads(pathlib.Path(out).read_text()), engine="kerchunk", decode_times=False, mask_and_scale=False) as ds:
            for array, values in joined.items():
                same(values, ds[array].values, f"{name}: xarray's engine kerchunk reads {array}")


def check_v3(tools, tmp):
    """A set of a Zarr v3 database opens with engine kerchunk, which reads Zarr v2 only."""
    data = {
        "temp": np.random.default_rng(3).standard_normal((25, 10, 15)).round(2).astype("f4"),
        "time": np.datetime64("2020-02-01") + np.arange(25), "lat": np.linspace(-1, 1, 10), "scale": np.float64(2.5),
    }
    made = xr.Dataset({"temp": (("time", "lat", "lon"), data["temp"], {"units": "K"}), "scale": data["scale"]}, {"time": data["time"], "lat": data["lat"]})
    for consolidated in (False, True):
        db, store = f"{tmp}/{consolidated}.zdb", f"{tmp}/{consolidated}.zarr"
        made.to_zarr(store, zarr_format=3, consolidated=consolidated, encoding={"temp": {"chunks": (5, 10, 15)}})
        with xr.open_zarr(store, consolidated=consolidated) as ds:
            want = ds.load()
        tools.run(tools.bin, "import", db, store)
        for name, flags in EXPORTS.items():
            out = f"{tmp}/{consolidated}-{name}" + (".parq" if "kerchunk-parquet" in flags else ".json")
            tools.run(tools.bin, "export", db, out, *flags)
            with xr.open_dataset(out, engine="kerchunk") as ds:
                xr.testing.assert_identical(ds.load(), want)
            group = open_fsspec(out)
            same(data["temp"], group["temp"][...], f"{name}: zarr-python reads temp through fsspec")
        out = f"{tmp}/{consolidated}-stored.json"
        tools.run(tools.bin, "export", db, out, "--format", "kerchunk-json", "--as-stored")
        with xr.open_dataset("reference://", engine="zarr", storage_options={"fo": out}, consolidated=consolidated) as ds:
            xr.testing.assert_identical(ds.load(), want)


# Codecs of Zarr v3 around the bytes of int32 elements, that a set has in Zarr v2.
CODECS = {
    "zstd": ([], [{"name": "zstd", "configuration": {"level": 3, "checksum": False}}]), "checksum": ([], [{"name": "zstd", "configuration": {"level": 3, "checksum": True}}]),
    "gzip": ([], [{"name": "gzip", "configuration": {"level": 1}}]),
    "blosc": ([], [{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}}]),
    **{n: ([], [{"name": "numcodecs." + n, "configuration": c}]) for n, c in {
        "zlib": {"level": 1}, "bz2": {"level": 1}, "lz4": {"acceleration": 1}, "lzma": {}, "shuffle": {"elementsize": 4},
        "crc32": {}, "adler32": {}, "fletcher32": {}, "jenkins_lookup3": {"initval": 1}}.items()},
    "delta": ([{"name": "numcodecs.delta", "configuration": {"dtype": "<i4"}}], []),
    "shuffle, zlib": ([], [{"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}}, {"name": "numcodecs.zlib", "configuration": {"level": 1}}]),
}


def check_codecs(tools, tmp):
    """Arrays of Zarr v3 with each codec are read from sets of each kind; crc32c is refused by name."""
    data, db = np.arange(60, dtype="i4").reshape(6, 10), f"{tmp}/codecs.zdb"
    zarr.create_group(f"{tmp}/codecs.zarr", zarr_format=3)
    for name, (before, after) in [*CODECS.items(), ("crc32c", ([], [{"name": "crc32c"}]))]:
        doc = {"zarr_format": 3, "node_type": "array", "shape": [6, 10], "data_type": "int32", "fill_value": 0, "attributes": {},
               "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 4]}}, "chunk_key_encoding": {"name": "default"},
               "codecs": [*before, {"name": "bytes", "configuration": {"endian": "little"}}, *after]}
        folder = pathlib.Path(f"{tmp}/codecs.zarr/{name}")
        folder.mkdir()
        (folder / "zarr.json").write_text(json.dumps(doc))
        zarr.open_array(folder, mode="r+")[...] = data
    tools.run(tools.bin, "import", db, f"{tmp}/codecs.zarr")
    for name, flags in EXPORTS.items():
        out = f"{tmp}/codecs-{name}" + (".parq" if "kerchunk-parquet" in flags else ".json")
        tools.run(tools.bin, "export", db, out, *flags, "--skip", "crc32c")
        group = open_fsspec(out)
        for array in CODECS:
            same(data, group[array][...], f"{name}: zarr-python reads {array} through fsspec")
        if "crc32c" in group:
            raise AssertionError(f"{name}: crc32c is there")


def spelled(value):
    """Bytes as reference sets have them in JSON."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        import base64
        return "base64:" + base64.b64encode(value).decode()


def check_tools(tools, tmp):
    """kerchunk joins, renames and fills in sets of single files that zarrdb wrote."""
    each, ours = [], {"v0": [], "v1": [], "parquet": []}
    db = f"{tmp}/w.zdb"
    for i in range(3):
        each.append(write_hdf5(f"{tmp}/p{i}.h5", 25 * i, varying=True))
        pathlib.Path(f"{tmp}/p{i}.json").write_text(json.dumps(SingleHdf5ToZarr(f"{tmp}/p{i}.h5", inline_threshold=0).translate()))
        tools.run(tools.bin, "import", db, f"{tmp}/p{i}.json", "--link", "--to", f"p{i}", "--allow", tmp)
        for name, paths in ours.items():
            paths.append(f"{tmp}/{name}-{i}" + (".parq" if name == "parquet" else ".json"))
            tools.run(tools.bin, "export", f"{db}:p{i}", paths[-1], *EXPORTS[name])
    joined = {name: np.concatenate([e[name] for e in each]) for name in ("time", "temp", "count")}
    joined["lat"] = each[0]["lat"]
    for name, paths in ours.items():
        multi = MultiZarrToZarr(paths, remote_protocol="file", concat_dims=["time"], identical_dims=["lat", "lon"]).translate()
        pathlib.Path(f"{tmp}/multi-{name}.json").write_text(json.dumps(multi, default=int))
        group = open_fsspec(f"{tmp}/multi-{name}.json")
        for array, values in joined.items():
            same(values, group[array][...], f"{name}: {array} of what MultiZarrToZarr makes of it")
            same(values, tools.read(f"{tmp}/multi-{name}.json", array, values), f"{name}: zarrdb reads {array} of it")
    refs = json.loads(pathlib.Path(ours["v0"][0]).read_text())
    moved = f"{tmp}/moved.h5"
    os.rename(f"{tmp}/p0.h5", moved)
    renamed = rename_target({"version": 1, "refs": refs}, {f"file://{tmp}/p0.h5": f"file://{moved}", f"{tmp}/p0.h5": moved})
    inlined = inline_array(renamed["refs"], threshold=500, remote_options={})
    for what, result in {"rename_target": renamed, "inline_array": inlined}.items():
        pathlib.Path(f"{tmp}/{what}.json").write_text(json.dumps(result, default=spelled))
        group = open_fsspec(f"{tmp}/{what}.json")
        for array, values in each[0].items():
            same(values, group[array][...], f"{array} of what {what} makes of it")
            same(values, tools.read(f"{tmp}/{what}.json", array, values), f"zarrdb reads {array} of what {what} makes of it")


def check_text(tools, tmp, seed):
    """fsspec, whose templates are Jinja2's, reads back what went in."""
    rnd = random.Random(seed)
    words = ["{{", "}}", "{%", "{#", "{", "%", " ", "é", "漢", "\"", "\\", "'", "\n", "\u007f", "base64:", "/", "a", "x y", "0", "%05d", "s3://b/"]
    word = lambda n: "".join(rnd.choice(words) for _ in range(rnd.randrange(1, n)))
    folders = ["s3://bucket/" + "".join(rnd.choice(string.ascii_letters) for _ in range(20)) + "/" for _ in range(3)]
    refs = {".zgroup": '{"zarr_format": 2}'}
    for i in range(90):
        url = rnd.choice(folders) + f"{i % 5}.nc" if i % 3 else word(6)
        refs[f"k/{i}"] = rnd.choice([[url], [url, rnd.randrange(1 << 40), rnd.randrange(1 << 20)], "x" + word(9), "base64:AAEC/w=="])
    pathlib.Path(f"{tmp}/text.json").write_text(json.dumps(refs))
    for format in ("v0", "v1"):
        same_references(refs, references(tools.convert(f"{tmp}/text.json", f"{tmp}/{format}", format)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--bin", required=True)
    ap.add_argument("--refset", required=True)
    ap.add_argument("-k", default="")
    ap.add_argument("--trace", action="store_true")
    a = ap.parse_args()
    tools, passed, failed = Tools(a), 0, 0

    def attempt(name, case):
        nonlocal passed, failed
        if a.k not in name:
            return
        with tempfile.TemporaryDirectory() as tmp:
            try:
                case(tmp)
                passed += 1
            except Exception as e:
                failed += 1
                if a.trace:
                    traceback.print_exc()
                print(f"FAIL {name}: {type(e).__name__}: {str(e)[:600]}", flush=True)

    with tempfile.TemporaryDirectory() as tmp:
        for name, path, data in sets(tmp):
            attempt(f"sets/{name}", lambda _: check_set(tools, path, data))
    attempt("files", lambda out: check_files(tools, out))
    attempt("append", lambda out: check_append(tools, out))
    attempt("v3", lambda out: check_v3(tools, out))
    attempt("codecs", lambda out: check_codecs(tools, out))
    attempt("tools", lambda out: check_tools(tools, out))
    for seed in range(10):
        attempt(f"text/{seed}", lambda out: check_text(tools, out, seed))
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
