"""What the smaller comparisons share: arrays that zarrdb makes, one reader, and
its lines in verified.json. Needs numpy alone, since each reader has packages of
its own."""
import argparse, json, os, pathlib, re, subprocess, sys, tempfile, warnings

import numpy as np

warnings.filterwarnings("ignore")
SHAPE, CHUNKS = (13, 11), (5, 4)  # chunks at the edges stick out
FULL = {
    "none": None, "zlib": dict(level=5), "gzip": dict(level=5), "bz2": dict(level=1), "zstd": dict(level=3), "lz4": dict(acceleration=1),
    "lzma": dict(format=1, check=-1, preset=None, filters=None), "blosc": dict(cname="lz4", clevel=5, shuffle=1, blocksize=0),
}


def compressor(name):
    """A compressor as v2 has it."""
    return None if name == "none" else {"id": name, **FULL[name]}


def values(dtype, shape=SHAPE):
    rng, dt = np.random.default_rng(7), np.dtype(dtype)
    if dt.kind == "b":
        return rng.integers(0, 2, shape).astype(dt)
    if dt.kind in "SU":
        return np.array([f"v{i}" for i in rng.integers(0, 100, int(np.prod(shape)))], dt).reshape(shape)
    if dt.kind in "fc":
        out = (rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dt.kind == "c" else 0)).astype(dt)
        out.reshape(-1)[:2] = [np.nan, np.inf]
        return out
    return np.abs(np.cumsum(rng.integers(-3, 4, shape), axis=-1)).astype("i8").astype(dt)


class Case:
    """An array: its format as `create --format` and as verified.json call it, a
    data type, codecs by name and as they are given to create, what is special
    about it, and more arguments of create."""
    def __init__(self, fmt, version, dtype, codec, codecs, layout="plain", data=None, extra=()):
        self.fmt, self.version, self.dtype, self.codec, self.codecs = fmt, version, dtype, codec, codecs
        self.layout, self.extra = layout, extra
        self.data = values(dtype) if data is None else data
        self.path = ""

    def __str__(self):
        return f"v{self.fmt}/{self.dtype}/{self.codec}/{self.layout}"


def make(binary, tmp, cases):
    """Stores the arrays in one database, and exports it to tmp/out."""
    def run(*args):
        p = subprocess.run([os.path.abspath(binary), *map(str, args)], capture_output=True, text=True)
        if p.returncode:
            raise SystemExit(f"exit {p.returncode}: zarrdb {' '.join(map(str, args))}: {p.stderr}")
    run("init", tmp / "a.zdb")
    for i, c in enumerate(cases):
        c.path = f"a{i:03d}"
        target = f"{tmp}/a.zdb:{c.path}"
        np.save(tmp / "in.npy", c.data)
        run("create", target, "--shape", ",".join(map(str, c.data.shape)), "--chunks", ",".join(map(str, CHUNKS)), "--dtype", c.dtype,
            "--format", c.fmt, "--codecs", json.dumps(c.codecs), *c.extra)
        run("write", target, "-i", tmp / "in.npy", "-m", "values")
    run("export", tmp / "a.zdb", tmp / "out")
    return tmp / "out"


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and np.array_equal(a, b.astype(a.dtype), equal_nan=a.dtype.kind in "fc")


def compare(impl, groups, read, gaps={}):
    """Lets read(store, case) read every array. Each of groups is a list of
    cases that share a store. gaps are what impl is known not to do: a regular
    expression for the array and its error, and the reason. One that nothing
    stands behind any more fails the comparison."""
    ap = argparse.ArgumentParser()
    ap.add_argument("--bin", required=True)
    ap.add_argument("--out", type=pathlib.Path)
    ap.add_argument("-k", default="")
    a = ap.parse_args()
    lines, failed, seen = [], 0, set()
    for group in groups:
        todo = [c for c in group if a.k in str(c)]
        with tempfile.TemporaryDirectory() as tmp:
            store = todo and make(a.bin, pathlib.Path(tmp), todo)
            for c in todo:
                try:
                    error = "" if same(c.data, read(store, c)) else "other values"
                except Exception as e:
                    error = f"{type(e).__name__}: {str(e)[:300]}"
                known = {g for g in gaps if error and re.match(g, f"{c}: {error}")}
                seen |= known
                if not error:
                    lines.append({"impl": impl, "zarr_format": c.version, "data_type": c.dtype, "codec": c.codec, "layout": c.layout, "reads_ours": True})
                elif not known:
                    failed += 1
                    print(f"FAIL {impl} reads {c}: {error}")
    closed = [] if a.k else [g for g in gaps if g not in seen]
    for g in closed:
        print(f"FAIL nothing is behind a gap of {impl} any more: {g}: {gaps[g]}")
    print(f"{impl}: {len(lines)} arrays equal, {failed} failed")
    if failed or closed or not (lines or a.k):
        sys.exit(1)
    if a.out and not a.k:
        merge(a.out, impl, lines)


def merge(path, impl, lines):
    """Puts the lines of impl in the place of those of its releases with the same
    major number."""
    package = impl.rsplit(" ", 1)[0] + " " + impl.rsplit(" ", 1)[1].split(".")[0] + "."
    kept = [line for line in json.loads(path.read_text()) if not line["impl"].startswith(package)]
    order = lambda l: [str(l[k]) for k in ("impl", "zarr_format", "data_type", "codec", "layout")]
    out = [json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in sorted(kept + lines, key=order)]
    path.write_text("[\n" + ",\n".join(out) + "\n]\n")
