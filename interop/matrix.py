"""Every data type with every codec and every layout: others read what zarrdb
writes, and zarrdb reads what they write, to the same bytes.

    matrix.py --arrays BIN [--zarrita FOLDER] [--old PYTHON] [--out verified.json] [-k SUBSTRING]

--arrays is the program in arrays/, --zarrita a folder with node_modules in which
zarrita is installed, --old a Python with zarr-python 2, which reads the arrays that
are converted to Zarr v2. What was found equal is written to --out, one line per
implementation, format, data type, codec and layout. What an implementation is
known not to do stands in gaps.py; anything else that fails, fails the run, and
so does a gap that has closed.
"""
import argparse, collections, dataclasses, hashlib, importlib.metadata, json, os, pathlib, re, shutil, subprocess, sys, tempfile, warnings

import numpy as np, tensorstore as ts, zarr

import cases, gaps

warnings.filterwarnings("ignore")


def digest(b):
    return hashlib.sha256(b).hexdigest()


def name_of(package):
    return f"{package} {importlib.metadata.version(package)}"


class ZarrPython:
    """zarr-python, with the codecs of its own or those of zarrs."""
    writes = True

    def __init__(self, zarrs=False):
        self.name = name_of("zarrs") if zarrs else "zarr-python " + zarr.__version__
        self.config = {"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "codec_pipeline.strict": True} if zarrs else {}

    def read(self, store, case):
        with zarr.config.set(self.config):
            return zarr.open_array(store / case.path, mode="r", zarr_format=case.zarr_format)[...]

    def write(self, store, case):
        document(store, case)
        with zarr.config.set(self.config):
            a = zarr.open_array(store / case.path, mode="r+", zarr_format=case.zarr_format)
            a[...] = case.data


class TensorStore:
    name, writes = name_of("tensorstore"), True

    def open(self, store, case):
        driver = "zarr" if case.zarr_format == 2 else "zarr3"
        return ts.open({"driver": driver, "kvstore": {"driver": "file", "path": f"{store / case.path}/"}}, open=True).result()

    # Opaque bytes and byte strings are arrays of bytes there, with one dimension more.
    def read(self, store, case):
        a, like = self.open(store, case), case.data
        if a.ndim == like.ndim:
            return a.read().result()
        raw = np.empty(a.shape, "V1" if a.dtype == ts.byte else "S1")
        ts.array(raw, dtype=a.dtype).write(a).result()
        return np.frombuffer(raw.tobytes(), like.dtype).reshape(like.shape)

    def write(self, store, case):
        document(store, case)
        a, data = self.open(store, case), case.data
        if a.ndim > data.ndim:
            data = np.frombuffer(data.tobytes(), "V1" if a.dtype == ts.byte else "S1").reshape(a.shape)
        a.write(data).result()


class Zarrita:
    writes = False

    def __init__(self, folder):
        package = json.loads((folder / "node_modules/zarrita/package.json").read_text())
        self.name, self.folder = "zarrita.js " + package["version"], folder

    def read_all(self, store, todo):
        shutil.copy(pathlib.Path(__file__).with_name("zarrita.mjs"), self.folder)
        jobs = [{"path": "/" + c.path, "format": c.zarr_format, "text": c.data.dtype.kind, "width": c.data.dtype.itemsize} for c in todo]
        answers = lines(["node", str(self.folder / "zarrita.mjs"), str(store)], jobs)
        return {a["path"].strip("/"): a for a in answers}


class OldZarrPython:
    """zarr-python 2, in an environment of its own."""
    writes = False

    def __init__(self, python):
        self.python, self.name = str(python), "zarr-python 2"

    def read_all(self, store, todo):
        out = store.with_name("old")
        out.mkdir()
        script = str(pathlib.Path(__file__).with_name("zarr2.py"))
        return {a["path"]: a for a in lines([self.python, script, str(store), str(out)], [{"path": c.path} for c in todo])}


def document(store, case):
    folder = store / case.path
    folder.mkdir(parents=True)
    (folder / ("zarr.json" if case.zarr_format == 3 else ".zarray")).write_text(json.dumps(case.doc))


def lines(command, jobs):
    """Runs a program that answers lines of JSON with lines of JSON."""
    p = subprocess.run(command, input="".join(json.dumps(j) + "\n" for j in jobs), capture_output=True, text=True)
    if p.returncode:
        raise SystemExit(f"{command[0]}: {p.stderr[-2000:]}")
    return [json.loads(line) for line in p.stdout.splitlines()]


class Run:
    def __init__(self, arrays, todo, tmp):
        self.arrays, self.todo, self.tmp = os.path.abspath(arrays), todo, tmp
        self.sums, self.found, self.trouble, self.conversions = {}, {}, [], collections.Counter()
        (tmp / "values").mkdir()
        for c in todo:
            raw = cases.stored(c, c.data)
            (tmp / "values" / c.path.replace("/", "-")).write_bytes(raw)
            self.sums[c.path] = digest(raw)

    def note(self, impl, case, direction, error):
        """Files what came of one array in one direction."""
        if error and not gaps.covers(impl, direction, str(case), error):
            self.trouble.append((f"{impl} {direction}", str(case), error))
        self.found.setdefault((impl, *case.key()), {}).setdefault(direction, []).append(not error)

    def write_ours(self):
        jobs = [{"path": c.path, "docs": {"zarr.json" if c.zarr_format == 3 else ".zarray": json.dumps(c.doc)},
                 "values": str(self.tmp / "values" / c.path.replace("/", "-"))} for c in self.todo]
        answers = lines([self.arrays, "write", str(self.tmp / "ours.zdb"), str(self.tmp / "ours")], jobs)
        for c, a in zip(self.todo, answers):
            if "error" in a:
                self.trouble.append(("zarrdb writes", str(c), a["error"]))

    def converted(self, impls, old):
        """What zarrdb stored in one format, it exports to the other; every reader of that
        format reads the same values."""
        for fmt in (2, 3):
            todo, out = [c for c in self.todo if c.zarr_format != fmt], self.tmp / f"to{fmt}"
            answers = lines([self.arrays, "convert", str(self.tmp / "ours"), str(out), str(fmt)], [{"path": c.path} for c in todo])
            done = []
            for c, a in zip(todo, answers):
                if error := a.get("error"):
                    self.note_conversion("zarrdb", fmt, c, error)
                else:
                    done.append(dataclasses.replace(c, zarr_format=fmt))
            for impl in [*impls, *([old] if old and fmt == 2 else [])]:
                if impl.writes:
                    found = {c.path: self.attempt(c, lambda: impl.read(out, c)) for c in done}
                else:
                    found = {path: self.answered(a) for path, a in impl.read_all(out, done).items()} if done else {}
                for c in done:
                    self.note_conversion(impl.name, fmt, c, found[c.path])

    def note_conversion(self, impl, fmt, case, error):
        """Files what came of one array in another format. The case keeps the name of its source."""
        name = str(dataclasses.replace(case, zarr_format=5 - fmt))
        known = error and gaps.covers(impl, f"to v{fmt}", name, error)
        self.conversions[impl, fmt, "known gap" if known else "failed" if error else "equal"] += 1
        if error and not known:
            self.trouble.append((f"{impl} reads a conversion to v{fmt}", name, error))

    def answered(self, a):
        """The error of an answer of a reader in another process, or "" """
        if "values" in a:
            case = next(c for c in self.todo if c.path == a["path"])
            return self.attempt(case, lambda: np.load(a["values"], allow_pickle=True))
        return a.get("error") or (a["sha256"] != self.sums[a["path"].strip("/")] and "other values" or "")

    def reads_ours(self, impl):
        store = self.tmp / "ours"
        if isinstance(impl, Zarrita):
            for path, a in impl.read_all(store, self.todo).items():
                case = next(c for c in self.todo if c.path == path)
                self.note(impl.name, case, "reads_ours", self.answered(a))
            return
        for c in self.todo:
            self.note(impl.name, c, "reads_ours", self.attempt(c, lambda: impl.read(store, c)))

    def attempt(self, case, read):
        try:
            got = digest(cases.stored(case, read()))
        except Exception as e:
            text = re.sub(rf"\"?{self.tmp}[^\"]*\"?|\[tensorstore_spec=.*|\[source locations=.*", "", " ".join(str(e).split()))
            return f"{type(e).__name__}: {text[:300]}"
        return "" if got == self.sums[case.path] else "other values"

    def we_read(self, impl):
        """Arrays that impl writes, and itself reads back, are read by zarrdb."""
        store = self.tmp / impl.name
        sound = []
        for c in self.todo:
            def through():
                impl.write(store, c)
                return impl.read(store, c)
            if error := self.attempt(c, through):
                self.note(impl.name, c, "we_read", f"not even itself: {error}")
                shutil.rmtree(store / c.path, ignore_errors=True)
            else:
                sound.append(c)
        answers = []
        for fmt, name, doc in (2, ".zgroup", {"zarr_format": 2}), (3, "zarr.json", {"zarr_format": 3, "node_type": "group"}):
            if jobs := [{"path": pathlib.Path(c.path).name} for c in sound if c.zarr_format == fmt]:
                (store / f"v{fmt}" / name).write_text(json.dumps(doc))
                answers += lines([self.arrays, "read", str(store / f"v{fmt}")], jobs)
        for c, a in zip(sound, answers):  # v2 comes first in both
            self.note(impl.name, c, "we_read", a.get("error") or (a["sha256"] != self.sums[c.path] and "other values"))

    def evidence(self):
        """A line per implementation, format, data type, codec and layout; a
        direction counts if it holds for every setting of the codec."""
        out = []
        for (impl, fmt, dtype, codec, layout), found in sorted(self.found.items(), key=lambda kv: [str(x) for x in kv[0]]):
            line = {"impl": impl, "zarr_format": fmt, "data_type": dtype, "codec": codec, "layout": layout}
            line |= {d: True for d in ("reads_ours", "we_read") if d in found and all(found[d])}
            if len(line) > 5:
                out.append(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
        return "[\n" + ",\n".join(out) + "\n]\n"


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--arrays", required=True)
    ap.add_argument("--zarrita", type=pathlib.Path)
    ap.add_argument("--old", type=pathlib.Path)
    ap.add_argument("--out", type=pathlib.Path)
    ap.add_argument("-k", default="")
    a = ap.parse_args()
    todo = [c for c in cases.cases() if a.k in str(c)]
    if a.k and not todo:
        return
    with tempfile.TemporaryDirectory() as tmp:
        run = Run(a.arrays, todo, pathlib.Path(tmp))
        run.write_ours()
        impls = [ZarrPython(), ZarrPython(zarrs=True), TensorStore(), *([Zarrita(a.zarrita)] if a.zarrita else [])]
        run.converted(impls, a.old and OldZarrPython(a.old))
        for impl in impls:
            run.reads_ours(impl)
            if impl.writes:
                run.we_read(impl)
    groups = collections.defaultdict(list)
    for what, case, error in run.trouble:
        groups[what, error].append(case)
    for (what, error), names in groups.items():
        print(f"FAIL {what}: {error}: {len(names)} arrays: {' '.join(names[:6])}")
    closed = [] if a.k else [g for g in gaps.GAPS if not g.seen]
    for g in closed:
        print(f"FAIL nothing is behind a gap any more: {g}")
    checks = sum(len(v) for f in run.found.values() for v in f.values())
    for (impl, fmt, what), n in sorted(run.conversions.items()):
        print(f"conversions to v{fmt}: {impl}: {n} {what}")
    print(f"{len(todo)} arrays, {checks} comparisons, {sum(run.conversions.values())} conversions, {len(run.trouble)} failed")
    if run.trouble or closed or not (checks or a.k):
        sys.exit(1)
    if a.out and not a.k:
        a.out.write_text(run.evidence())


if __name__ == "__main__":
    main()
