"""Compares what the readers of others show before and after zarrdb: fill values, units,
labels and types, for data sets of several writers through every door.

A source is a store that another program wrote (meaning_sources.py). A door is a way through
zarrdb: an import and an export to a format, a linked reference set, a decoded read, a write by
label, an HTTP view, the Python package. The same reader (meaning_readers.py) shows the source
and what came out of the door; each variable is one comparison. A conversion that is refused by
name counts as refused, and is listed. A difference that stays is a row of KNOWN, with its reason
in docs/conversions.md.

    python interop/meaning.py --bin ./zarrdb [--old PYTHON] [-k SUBSTRING] [--fast]

--old is a Python with zarr 2.18, which reads what goes out in v2.
"""

import argparse
import base64
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
import warnings

import meaning_readers as r
import meaning_sources as s
import numpy as np
import xarray as xr

warnings.simplefilter("ignore")


# What stays different -------------------------------------------------------------------


class Row:
    """A difference with a reason. text begins a row of docs/conversions.md, found says which
    comparisons it explains. full says that only a full run meets it."""

    def __init__(self, text, found, full=False):
        self.text, self.found, self.full, self.met = text, found, full, 0


KNOWN = [
    Row("v2 text or bytes whose fill value is empty", lambda source, door, reader, name, want, got: empty_is_missing(want, got)),
    Row("v2 bools that equal the fill value", lambda source, door, reader, name, want, got: door.endswith("csv") and false_is_missing(want, got)),
]


def empty_is_missing(want, got):
    """Whether only empty texts are shown, as such and as NaN."""
    if isinstance(want, Exception) or isinstance(got, Exception) or want[1].shape != got[1].shape or want[1].dtype.kind != "O":
        return False
    return all(text(w) == text(g) or w != w and text(g) == "" for w, g in zip(want[1].ravel(), got[1].ravel()))


def false_is_missing(want, got):
    """Whether bools are shown with and without NaN."""
    if isinstance(got, Exception) or want[1].dtype.kind != "O":
        return False
    return all(w != w or isinstance(w, bool) and str(w).lower() == g for w, g in zip(want[1], got[1]))


# Comparisons ----------------------------------------------------------------------------


def same(a, b, missing=None):
    """Whether two readers show the same, where missing says which elements may differ."""
    if isinstance(a, Exception) or isinstance(b, Exception):
        return isinstance(a, Exception) and isinstance(b, Exception)
    x, y = a[1], b[1]
    if a[0] is not None and b[0] is not None and a[0] != b[0] or x.shape != y.shape:
        return False
    if x.dtype.kind in "OUSTV" or y.dtype.kind in "OUSTV":
        equal = np.array([text(i) == text(j) for i, j in zip(x.ravel(), y.ravel())], bool).reshape(x.shape)
    elif x.dtype.kind in "mM":
        if x.dtype.kind != y.dtype.kind:
            return False
        equal = (x == y) | (np.isnat(x) & np.isnat(y))
    elif x.dtype.kind in "fc":
        equal = (x == y) | ((x != x) & (y != y))
    else:
        equal = x == y
    if missing is not None and missing.shape == x.shape:
        equal = equal | missing
    return bool(np.all(equal))


def text(x):
    return x.decode("utf-8", "replace").rstrip("\0") if isinstance(x, bytes) else str(x)


def missing_elements(decoded):
    """Which elements xarray shows as missing."""
    if decoded is None or isinstance(decoded, Exception):
        return None
    v = decoded[1]
    if v.dtype.kind in "mM":
        return np.isnat(v)
    return v != v if v.dtype.kind in "fc" else None


def parsed(words, like):
    """Elements that a file has as text, as those of an array."""
    t = like.dtype
    if t.kind == "b":
        out = [w == "true" for w in words]
    elif t.kind == "c":
        out = [complex(*(float(part) for part in json.loads(w))) for w in words]
    elif t.kind == "m":
        out = [np.timedelta64("NaT") if w == "NaT" else np.timedelta64(w.split()[0], {"d": "D", "min": "m"}.get(w.split()[1], w.split()[1])) for w in words]
    elif t.kind == "M":
        out = [np.datetime64(int(w), np.datetime_data(t)[0]) if re.fullmatch("-?[0-9]{5,}", w) else np.datetime64(w) for w in words]
    elif t.kind == "O" and like.size and hasattr(like.ravel()[0], "calendar"):
        first = like.ravel()[0]
        return np.array([type(first).strptime(w, "%Y-%m-%dT%H:%M:%S", calendar=first.calendar) for w in words], object).reshape(like.shape)
    elif t.kind in "iuf":
        out = [int(w) if t.kind in "iu" else float(w) for w in words]
    else:
        return np.array([base64.b64decode(w[7:]) if w.startswith("base64:") else w for w in words], object).reshape(like.shape)
    return np.array(out, t).reshape(like.shape)


def label(v):
    """A label of a coordinate as a selection has it."""
    if isinstance(v, np.timedelta64):
        n = int(v / np.timedelta64(1, "ns"))
        return f"{n}ns"
    return v.isoformat() if hasattr(v, "isoformat") else str(v)


# Doors ----------------------------------------------------------------------------------

FORMATS = {"zarr2": ".zarr", "zarr3": ".zarr", "kerchunk-json": ".json", "kerchunk-parquet": ".parq", "icechunk": ".icechunk"}
COMMANDS = ["read text", "read csv", "read jsonl", "read npy", "read by label", "write by label", "HTTP decoded"]
PYTHON = ["Python Array", "Python sel", "Python store", "Python engine"]
ONLY_V2 = {"zarr-python 2", "netCDF4", "GDAL"}  # readers that know no Zarr v3 as it is now
# What cannot come through a door: xarray shows other calendars and text as Python objects, which no .npy file
# holds, and no arrays without names; arrays that have no dimension have no labels; no writer stores text in v3.
OBJECTS = {"text", "bytes", "no names of dimensions", *(f"calendar {c}" for c in ("noleap", "365_day", "360_day", "julian", "all_leap", "366_day"))}
UNLABELLED = {"scalar", "no names of dimensions"}
WITHOUT = {
    "icechunk": {"text", "bytes", "NaN among attributes"}, "read csv": {"no names of dimensions"}, "read npy": OBJECTS, "HTTP decoded": OBJECTS,
    "read by label": UNLABELLED | {"text", "bytes"}, "write by label": UNLABELLED, "Python sel": UNLABELLED, "Python engine": {"no names of dimensions"},
}


class Run:
    def __init__(self, o, dir):
        self.o, self.dir = o, dir
        self.compared, self.refused, self.failed = 0, [], []
        self.readers = {name: read for name, read in r.readers(o.old, dir).items() if read}
        if o.fast:
            self.readers = {name: self.readers[name] for name in ("xarray", "zarr-python 3")}
        self.pairs, self.through = set(), {}  # (door, reader); meanings by door
        self.meanings = set()

    def zarrdb(self, *args, check=True):
        p = subprocess.run([self.o.bin, *args], capture_output=True, text=True, timeout=300)
        if check and p.returncode:
            raise RuntimeError(f"zarrdb {' '.join(args)}: {p.stderr.strip()}")
        return p

    def one(self, source, door, reader, name, want, got, missing=None):
        """Compares what a reader shows of a variable. door may have more words, such as "back"."""
        self.compared += 1
        kind = door.removeprefix("copied ").removeprefix("linked ")
        self.pairs.add((kind, reader))
        if kind != door:
            self.pairs.add((door.split()[0], reader))
            self.through.setdefault(door.split()[0], set()).update(self.tags.get(name, ()))
        self.through.setdefault(kind, set()).update(self.tags.get(name, ()))
        if same(want, got, missing):
            return
        for row in KNOWN:
            if row.found(source, door, reader, name, want, got):
                row.met += 1
                return
        if isinstance(got, Exception):
            got = f"{type(got).__name__}: {got}"
        self.failed.append(f"{source}, {door}, {reader}: {name} {sorted(self.tags.get(name, ()))}: {want!r} became {got!r}")

    def all(self, source, door, reader, want, read, missing=None):
        """Compares all variables that a reader shows."""
        try:
            got = read()
        except Exception as e:
            self.failed.append(f"{source}, {door}, {reader}: {type(e).__name__}: {e}")
            return
        for name in sorted(want):
            if isinstance(want[name], Exception):
                continue  # the reader does not know such variables
            if name not in got:
                self.failed.append(f"{source}, {door}, {reader}: {name} is missing")
            else:
                self.one(source, door, reader, name, want[name], got[name], (missing or {}).get(name))
        for name in sorted(set(got) - set(want)):
            self.failed.append(f"{source}, {door}, {reader}: {name} came from nowhere")

    def export(self, what, source, dest, format, *more):
        p = self.zarrdb("export", source, dest, "--format", format, *more, check=False)
        if p.returncode == 1 and "cannot be converted" in p.stderr:
            self.refused.append(f"{what}: {p.stderr.strip()}")
        elif p.returncode:
            self.failed.append(f"{what}: {p.stderr.strip()}")
        return p.returncode == 0

    def show(self, path):
        """What each reader shows of a source. Those that do not know it are left out."""
        out = {}
        for name, read in self.readers.items():
            local = path.endswith(".zarr") or name in ("xarray", "xarray raw", "zarr-python 3")
            try:
                out[name] = read(path) if local else None
            except Exception:
                out[name] = None
        return {name: shown for name, shown in out.items() if shown}

    def source(self, source, path):
        w = os.path.join(self.dir, source)
        os.makedirs(w)
        shown = self.show(path)
        stored = shown["zarr-python 3"]
        arrays = r.arrays(path)
        self.tags = {name: s.meanings(a) for name, a in arrays.items()}
        self.meanings |= set().union(*self.tags.values())
        version = 3 if any(a.metadata.zarr_format == 3 for a in arrays.values()) else 2
        missing = {name: missing_elements(v) for name, v in shown.get("xarray", {}).items()}
        url = path + "|icechunk:" if path.endswith(".icechunk") else path
        sets = {"copied": f"{w}/db.zdb"}
        self.zarrdb("import", sets["copied"], url, "--allow", self.dir + "/")
        if not path.endswith(".zarr"):
            sets["linked"] = f"{w}/linked.zdb"
            self.zarrdb("import", sets["linked"], url, "--link", "--allow", self.dir + "/")
        elif not self.o.fast and self.export(f"{source}, packs", sets["copied"], f"{w}/packs.json", "kerchunk-json"):
            sets["linked"] = f"{w}/linked.zdb"
            self.zarrdb("import", sets["linked"], f"{w}/packs.json", "--link", "--allow", self.dir + "/")

        def compare(door, out, only=None):
            for reader, read in self.readers.items():
                if only and reader not in only or reader in ONLY_V2 and os.path.exists(f"{out}/zarr.json"):
                    continue
                want = shown.get(reader)
                if want is None and reader != "xarray" and reader != "xarray raw":
                    want = stored  # the reader does not know the source: it must show the elements
                    try:
                        got = read(out)
                    except Exception:
                        continue
                    want = {name: v for name, v in want.items() if not isinstance(got.get(name, KeyError()), Exception)}
                    self.all(source, door, reader, want, lambda: {name: got[name] for name in want}, missing)
                elif want is not None:
                    self.all(source, door, reader, want, lambda: read(out), None if reader == "xarray" else missing)

        for how, at in sets.items():
            for format, ext in FORMATS.items():
                if self.o.fast and format in ("kerchunk-parquet", "icechunk"):
                    continue
                if how == "linked" and path.endswith(".zarr") and format != "zarr3":
                    continue
                door, out = f"{how} {format}", f"{w}/{how}-{format}{ext}"
                inline = ["--inline"] if format.startswith("kerchunk") else []
                if not self.export(f"{source}, {door}", at, out, format, *inline):
                    continue
                compare(door, out, None if ext == ".zarr" else ("xarray", "xarray raw", "zarr-python 3"))
                if ext == ".zarr":  # there and back again
                    back, other = f"{w}/{how}-{format}-back", {"zarr2": "zarr3", "zarr3": "zarr2"}[format]
                    self.zarrdb("import", back + ".zdb", out)
                    if self.export(f"{source}, {door} back", back + ".zdb", back + ".zarr", other):
                        compare(f"{door} back", back + ".zarr")
            if how == "copied" or not path.endswith(".zarr"):
                self.reads(source, how, at, shown)
        self.writes(source, w, sets["copied"], path, shown)
        if not self.o.fast:
            self.python(source, sets["copied"], shown)
        self.server(source, sets["copied"], shown)
        shutil.rmtree(w)

    def selections(self, shown):
        """Yields arrays of one dimension with the label of their second element, in a coordinate without other such labels."""
        decoded = shown.get("xarray", {})
        for name, v in decoded.items():
            if isinstance(v, Exception) or len(v[0]) != 1 or v[0][0] not in decoded or len(v[1]) < 2:
                continue
            labels = decoded[v[0][0]]
            if not isinstance(labels, Exception) and labels[1].dtype.kind != "b":
                yield name, v[0][0], labels[1][1]

    def reads(self, source, how, at, shown):
        """Reads of the program as files and text."""
        decoded, stored = shown.get("xarray", {}), shown["zarr-python 3"]
        chosen = s.cover(self.tags)

        def read(name, *more, ext=""):
            out = f"{self.dir}/read{ext}"
            p = self.zarrdb("read", f"{at}:{name}", *more, *(["-o", out] if ext else []), check=False)
            if p.returncode:
                return RuntimeError(p.stderr.strip())
            if not ext:
                return p.stdout
            got = np.load(out) if ext == ".npy" else open(out, newline="").read()
            os.remove(out)
            return got

        def compare(door, name, want, got, parse=lambda x: x):
            if not isinstance(got, Exception):
                try:
                    got = (None, parse(got))
                except Exception as e:
                    got = ValueError(f"{e}: {got!r}")
            self.one(source, f"{how} {door}", "itself", name, want, got)

        for name, want in decoded.items():
            if self.o.fast and name not in chosen:
                continue
            if not isinstance(want, Exception) and want[1].dtype.kind not in "OUST":
                compare("read npy", name, want, read(name, "--decode-cf", ext=".npy"))
        for name in chosen:
            if name in decoded and not isinstance(decoded[name], Exception) and decoded[name][1].ndim < 2:
                want = decoded[name]
                compare("read csv", name, want, read(name, "--decode-cf", ext=".csv"), lambda t, want=want: parsed([row[0] if row else "" for row in csv.reader(io.StringIO(t))], want[1]))
            want = stored[name]
            if isinstance(want, Exception):
                continue
            compare("read jsonl", name, want, read(name, ext=".jsonl"), lambda t, want=want: parsed([w if w[:1] == "[" else text(w if w in "truefalse" else json.loads(w) if w[:1] == '"' else w) for w in t.splitlines()], want[1]))
            compare("read text", name, want, read(name), lambda t, want=want: parsed(words(t, want[1]), want[1]))
        for name, dim, at_label in self.selections(shown):
            if name not in chosen and dim not in chosen and not name.startswith("of_"):
                continue
            want = decoded[name]
            if want[1].dtype.kind in "OUST":
                continue
            got = read(name, "-s", f"{dim}='{label(at_label)}'", "--decode-cf", ext=".npy")
            compare("read by label", name, ((), want[1][1]), got)
            self.through.setdefault("read by label", set()).update(self.tags[dim])

    def writes(self, source, w, db, path, shown):
        """Writes the first element of arrays over the second by its label, and shows all in xarray."""
        decoded, stored, want = shown.get("xarray", {}), shown["zarr-python 3"], {}
        chosen = s.cover(self.tags)
        self.zarrdb("tag", db, "source")
        for name, dim, at_label in self.selections(shown):
            if name == dim or name not in chosen and not name.startswith("of_") or isinstance(stored[name], Exception):
                continue
            values = stored[name][1]
            if values.dtype.kind in "OT":
                continue
            np.save(f"{w}/value.npy", np.array(values[0], values.dtype))
            p = self.zarrdb("write", f"{db}:{name}", "-s", f"{dim}='{label(at_label)}'", "-i", f"{w}/value.npy", check=False)
            changed = decoded[name][1].copy()
            changed[1] = changed[0]
            want[name] = (decoded[name][0], changed)
            if p.returncode:
                self.one(source, "write by label", "xarray", name, want[name], RuntimeError(p.stderr.strip()))
                del want[name]
            else:
                self.through.setdefault("write by label", set()).update(self.tags[dim])
        if not want:
            return
        self.zarrdb("export", db, f"{w}/written.zarr")
        got = r.through_xarray(f"{w}/written.zarr")
        for name in want:
            self.one(source, "write by label", "xarray", name, want[name], got[name])
        self.zarrdb("reset", db, "source")

    def python(self, source, db, shown):
        """The Python package."""
        import zarrdb
        from zarrdb._xarray import ZarrdbBackendEntrypoint

        decoded, stored = shown.get("xarray", {}), shown["zarr-python 3"]
        with zarrdb.open(db) as repo:
            view = repo.at("main")
            for name, want in stored.items():
                if isinstance(want, Exception):
                    continue
                try:
                    got = (None, np.asarray(view.array(name)[...]))
                except Exception as e:
                    got = e
                self.one(source, "Python Array", "itself", name, want, got)
            for name, dim, at_label in self.selections(shown):
                if isinstance(stored[name], Exception):
                    continue
                try:
                    got = (None, np.asarray(view.array(name).sel(**{dim: at_label})))
                except Exception as e:
                    got = e
                self.one(source, "Python sel", "itself", name, (None, stored[name][1][1]), got)
                self.through.setdefault("Python sel", set()).update(self.tags[dim])
            self.all(source, "Python store", "zarr-python 3", stored, lambda: r.through_zarr(view.store))
            if decoded:
                self.all(source, "Python store", "xarray", decoded, lambda: r.through_xarray(view.store))
                self.all(source, "Python engine", "xarray", decoded, lambda: r.through_xarray(db, engine=ZarrdbBackendEntrypoint))

    def server(self, source, db, shown):
        p = subprocess.Popen([self.o.bin, "serve", db, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            url = ""
            for line in p.stdout:
                if "http://" in line:
                    url = line[line.index("http://") :].split()[0].rstrip("/")
                    break
            if not url:
                raise RuntimeError("the server names no address")
            base = url[: url.index("/", 8)] if url.count("/") > 2 else url
            for version in ("v2", "v3"):
                at = f"{base}/db.zdb/{version}/main"
                for reader in ["xarray"] if self.o.fast else ["xarray", "zarr-python 3", "tensorstore"]:
                    if reader in shown and reader in self.readers:
                        missing = {name: missing_elements(v) for name, v in shown.get("xarray", {}).items()}
                        self.all(source, f"HTTP {version}", reader, shown[reader], lambda: self.readers[reader](at), None if reader == "xarray" else missing)
            for name in s.cover(self.tags):
                want = shown.get("xarray", {}).get(name)
                if want is None or isinstance(want, Exception) or want[1].dtype.kind in "OUST":
                    continue
                query = urllib.parse.urlencode({"db": "db.zdb", "rev": "main", "path": name, "format": "npy", "decode": "cf"})
                try:
                    with urllib.request.urlopen(f"{base}/-/api/read?{query}", timeout=60) as f:
                        got = (None, np.load(io.BytesIO(f.read())))
                except Exception as e:
                    got = e
                self.one(source, "HTTP decoded", "itself", name, want, got)
        finally:
            p.terminate()
            p.wait(60)

    def convention(self, name, write, read):
        """A convention of another program above arrays: written in one format, read in both."""
        for version in (2, 3):
            self.tags, path = {}, f"{self.dir}/{name}-v{version}.zarr"
            write(path, version)
            want, at, format = read(path), f"{self.dir}/{name}-v{version}.zdb", f"zarr{5 - version}"
            self.zarrdb("import", at, path)
            for door, to in [(format, format), (f"{format} back", f"zarr{version}")]:
                out = f"{self.dir}/{name}-v{version}-{to}-out.zarr"
                if not self.export(f"{name}-v{version}, {door}", at, out, to):
                    break
                self.all(f"{name}-v{version}", door, name, want, lambda: read(out))
                at = out

    def unmet(self):
        """What a full run must meet and did not."""
        doors = ["copied", "linked", *FORMATS, "zarr2 back", "zarr3 back", "HTTP v2", "HTTP v3", *COMMANDS, *PYTHON]
        for door in doors:
            for meaning in sorted(self.meanings - self.through.get(door, set())):
                if meaning not in WITHOUT.get(door, ()):
                    yield f"meaning {meaning!r} never came through {door}"
        v3 = [name for name in self.readers if name not in ONLY_V2]
        web, some = ["xarray", "zarr-python 3", "tensorstore"], ["xarray", "xarray raw", "zarr-python 3"]
        want = {
            "zarr2": [*self.readers, "anndata", "ome-zarr"], "zarr2 back": [*v3, "anndata", "ome-zarr"], "zarr3": [*v3, "anndata", "ome-zarr"], "zarr3 back": [*self.readers, "anndata", "ome-zarr"],
            "kerchunk-json": some, "kerchunk-parquet": some, "icechunk": some, "HTTP v2": web, "HTTP v3": web, "Python store": ["xarray", "zarr-python 3"], "Python engine": ["xarray"],
        }
        for door, names in want.items():
            for name in names:
                if (door, name) not in self.pairs:
                    yield f"reader {name} never showed what came through {door}"


def words(t, like):
    """The elements of the text of an array."""
    if not like.ndim:
        return [t.strip() if t[:1] != '"' else json.loads(t)]
    if like.dtype.kind == "c":
        return re.findall(r"\[[^\[\]]*\]", t)
    return [json.loads(w) if w[:1] == '"' else w for w in re.findall(r'"(?:[^"\\]|\\.)*"|[^\[\],\s]+', t)]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bin", required=True)
    p.add_argument("--old")
    p.add_argument("-k", default="")
    p.add_argument("--fast", action="store_true")
    o = p.parse_args()
    o.bin = os.path.abspath(o.bin)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.insert(0, f"{root}/python")
    with tempfile.TemporaryDirectory() as dir:
        os.environ.update(XDG_CONFIG_HOME=f"{dir}/config", ZARRDB_BINARY=o.bin, MEANING=dir)
        run, began = Run(o, dir), time.time()
        for name, write, ext in s.sources(o.fast, run.zarrdb):
            if o.k in name:
                path, start = f"{dir}/{name}{ext}", time.time()
                write(path)
                run.source(name, path)
                print(f"{name}: {time.time() - start:.0f} s", flush=True)
        if not o.fast:
            for name, write, read in [("anndata", r.anndata_source, r.through_anndata), ("ome-zarr", r.ome_source, r.through_ome)]:
                if o.k in name:
                    run.convention(name, write, read)
        with open(f"{root}/docs/conversions.md") as f:
            doc = f.read()
        for row in KNOWN:
            if f"| {row.text}" not in doc:
                run.failed.append(f"docs/conversions.md has no row {row.text!r}")
            if not row.met and not o.k and not (o.fast and row.full):
                run.failed.append(f"nothing differs any more as the row {row.text!r} says")
        if not o.fast and not o.k:
            run.failed += run.unmet()
        for line in run.refused:
            print("refused:", line[:300])
        for line in run.failed:
            print("FAILED:", line[:700])
        print(f"{run.compared} comparisons in {time.time() - began:.0f} s, {len(run.refused)} conversions refused by name, {sum(row.met for row in KNOWN)} differences explained")
        print(f"{len(run.meanings)} meanings, {len(run.through)} doors, {len(run.pairs)} pairs of a door and a reader")
        print(f"{len(run.failed)} failed")
        sys.exit(1 if run.failed or not run.compared else 0)


if __name__ == "__main__":
    main()
