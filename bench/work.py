"""One program at work, in a process of its own:

    work.py SYSTEM [PACKAGE]

Each line of standard input is a job in JSON, each line of standard output its
answer: {"figures": {...}}, {"sum": ...}, {"cannot": "..."} or {"error": "..."}. Each
system is used through its own Python API, and reads into memory that numpy has just
got, or into memory that was touched before where the API takes it. A write counts
until it is on the disk: systems that do not sync are followed by a sync.
"""
import gc
import json
import os
import random
import statistics
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np

NAME = sys.argv[1]
EVERYTHING = (slice(None),) * 3


class Cannot(Exception):
    pass


def opened(job):
    """The values that are written, from the page cache."""
    data = np.memmap(job["source"], "<f4", "r", shape=tuple(job["shape"]))
    data.reshape(-1)[::1024].sum()  # maps the pages
    return data


class Zarr3:
    """zarr-python with a directory; zarrs decodes in its place if it is named so."""

    def __init__(self):
        import zarr
        self.zarr = zarr
        if NAME == "zarrs":
            import zarrs  # noqa: F401
            zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})

    def prepare(self, job):
        os.makedirs(os.path.join(job["dir"], "field"))
        with open(os.path.join(job["dir"], "field", "zarr.json"), "w") as f:
            json.dump(job["document"], f)

    def store(self, job, read_only):
        return self.zarr.storage.LocalStore(job["dir"], read_only=read_only)

    def write(self, job):
        a = self.zarr.open_array(self.store(job, False), path="field", mode="r+")
        return lambda data: a.__setitem__(EVERYTHING, data), os.sync

    def read(self, job):
        self.a = self.zarr.open_array(self.store(job, True), path="field", mode="r")
        self.get = self.a.__getitem__

    def into(self, dst):
        buffer = self.zarr.core.buffer.default_buffer_prototype().nd_buffer.from_numpy_array(dst)
        self.a.get_basic_selection(EVERYTHING, out=buffer)

    def close(self):
        self.a = self.get = None

    def commit(self):
        os.sync()

    def tree(self, job, write):
        if NAME == "zarrs":
            raise Cannot("decodes only")
        os.makedirs(job["dir"], exist_ok=True)
        return self.store(job, not write)


class Icechunk(Zarr3):
    def storage(self, job):
        import icechunk
        self.icechunk = icechunk
        return icechunk.local_filesystem_storage(job["dir"])

    def prepare(self, job):
        storage = self.storage(job)
        self.session = self.icechunk.Repository.create(storage).writable_session("main")
        document = json.dumps(job["document"]).encode()
        self.zarr.core.sync.sync(self.session.store.set("field/zarr.json", self.zarr.core.buffer.default_buffer_prototype().buffer.from_bytes(document)))
        self.session.commit("array")

    def store(self, job, read_only):
        storage = self.storage(job)
        config = self.icechunk.RepositoryConfig.default()
        if job.get("cached"):
            config.caching = self.icechunk.CachingConfig(num_bytes_chunks=1 << 30)
        repo = self.icechunk.Repository.open(storage, config=config)
        self.session = repo.readonly_session("main") if read_only else repo.writable_session("main")
        return self.session.store

    def write(self, job):
        put, _ = super().write(job)
        return put, self.commit

    def commit(self):
        self.session.commit("field")
        os.sync()

    def tree(self, job, write):
        if write:
            storage = self.storage(job)
            self.session = self.icechunk.Repository.create(storage).writable_session("main")
            return self.session.store
        return self.store(job, True)


class ZarrDB(Zarr3):
    """Our own package: its arrays, or zarr-python's over its store and codecs."""

    def __init__(self):
        super().__init__()
        sys.path.insert(0, sys.argv[2])
        import zarrdb
        self.zarrdb, self.through = zarrdb, NAME.endswith("through zarr-python")
        if self.through:
            from zarrdb import codecs
            codecs.use()

    def prepare(self, job):
        pass  # the driver makes the database, which another process has open

    def write(self, job):
        repo = self.zarrdb.open(job["dir"])
        s = repo.writable_session()
        s.set("field/zarr.json", json.dumps(job["document"]).encode())
        a = self.zarr.open_array(s.store, path="field", mode="r+") if self.through else s.array("field")

        def done():
            s.commit("field")
            repo.close()  # the cache is as it was said when a program opens the database
        return lambda data: a.__setitem__(EVERYTHING, data), done

    def read(self, job):
        os.environ["ZARRDB_CACHE_BYTES"] = "" if job.get("cached") else "0"
        self.repo = self.zarrdb.open(job["dir"])
        version = self.version = self.repo.at("main")
        self.a = self.zarr.open_array(version.store, path="field", mode="r") if self.through else version.array("field")
        self.get = self.a.__getitem__

    def into(self, dst):
        if not self.through:
            raise Cannot("reads into memory of its own")
        super().into(dst)

    def close(self):
        super().close()
        self.version.close()
        self.repo.close()

    def tree(self, job, write):
        if not self.through:
            raise Cannot("measured in Go")
        repo = self.zarrdb.open(job["dir"])
        self.session = repo.writable_session() if write else None
        return self.session.store if write else repo.at("main").store

    def commit(self):
        self.session.commit("arrays")


class TensorStore:
    def spec(self, job):
        base = {"driver": "file", "path": job["dir"] + "/"}
        if NAME.endswith("ocdbt"):
            return {"driver": "ocdbt", "base": "file://" + job["dir"] + "/"}
        return base

    def prepare(self, job):
        import tensorstore as ts
        os.makedirs(job["dir"])
        ts.KvStore.open(self.spec(job)).result()["field/zarr.json"] = json.dumps(job["document"]).encode()

    def open(self, job):
        import tensorstore as ts
        self.ts = ts
        spec = self.spec(job)
        context = ts.Context({"cache_pool": {"total_bytes_limit": 1 << 30 if job.get("cached") else 0}})
        return ts.open({"driver": "zarr3", "kvstore": {**spec, "path": spec.get("path", "") + "field/"}, "recheck_cached_data": "open"}, context=context).result()

    def write(self, job):
        a = self.open(job)

        def put(data):
            if not NAME.endswith("ocdbt"):
                a.write(data).result()  # syncs each file
                return
            with self.ts.Transaction() as t:
                a.with_transaction(t)[...] = data
        return put, lambda: None

    def read(self, job):
        self.a = self.open(job)
        self.get = lambda key: self.a[key].read().result()

    def into(self, dst):
        self.ts.array(dst).write(self.a).result()

    def close(self):
        self.a = self.get = None

    def tree(self, job, write):
        raise Cannot("has no groups")


class TileDB:
    def prepare(self, job):
        import tiledb
        f = {"raw": [], "blosc-lz4": [tiledb.ByteShuffleFilter(), tiledb.LZ4Filter(5)], "blosc-zstd": [tiledb.ByteShuffleFilter(), tiledb.ZstdFilter(3)],
             "zstd-3": [tiledb.ZstdFilter(3)], "gzip-5": [tiledb.GzipFilter(5)], "blosc-lz4-64K": [tiledb.ByteShuffleFilter(), tiledb.LZ4Filter(5)]}
        if job["variant"] not in f:
            raise Cannot("has no shards")
        dims = [tiledb.Dim(f"d{i}", domain=(0, n - 1), tile=c, dtype=np.int32) for i, (n, c) in enumerate(zip(job["shape"], job["chunks"]))]
        attribute = tiledb.Attr("v", dtype=np.float32, filters=tiledb.FilterList(f[job["variant"]]))
        tiledb.Array.create(job["dir"], tiledb.ArraySchema(domain=tiledb.Domain(*dims), attrs=[attribute]))

    def write(self, job):
        import tiledb
        a = tiledb.open(job["dir"], "w")  # syncs each file
        return lambda data: a.__setitem__(EVERYTHING, data), a.close

    def read(self, job):
        import tiledb
        self.a = tiledb.open(job["dir"], "r")

        def get(key):
            got = self.a[key]
            return got["v"] if isinstance(got, dict) else got
        self.get = get

    def into(self, dst):
        raise Cannot("reads into memory of its own")

    def close(self):
        self.a.close()

    def tree(self, job, write):
        raise Cannot("has no Zarr groups")


class Lmdb:
    """zarr-python 2 over LMDB."""

    def __init__(self):
        import zarr
        self.zarr = zarr

    def prepare(self, job):
        if job.get("shards"):
            raise Cannot("has no shards")
        self.make(job)

    def make(self, job):
        self.s = self.zarr.LMDBStore(job["dir"], map_size=1 << 36, buffers=True)
        return self.s

    def write(self, job):
        z = self.zarr
        c = {"raw": None, "blosc-zstd": z.Blosc("zstd", 3, 1), "zstd-3": z.Zstd(3), "gzip-5": z.GZip(5)}.get(job["variant"], z.Blosc("lz4", 5, 1))
        a = z.create(store=self.s, path="field", shape=job["shape"], chunks=job["chunks"], dtype="<f4", compressor=c, fill_value=0)

        def done():
            self.s.close()
            os.sync()
        return lambda data: a.__setitem__(EVERYTHING, data), done

    def read(self, job):
        s = self.make(job)
        if job.get("cached"):
            s = self.zarr.LRUStoreCache(s, max_size=1 << 30)
        self.a = self.zarr.open_array(s, path="field", mode="r")
        self.get = self.a.__getitem__

    def into(self, dst):
        self.a.get_basic_selection(EVERYTHING, out=dst)

    def close(self):
        self.s.close()

    def tree(self, job, write):
        return self.make(job)

    def commit(self):
        self.s.flush()
        os.sync()


def timed(fn, *args):
    start = time.perf_counter()
    got = fn(*args)
    return time.perf_counter() - start, got


def p50(fn, items):
    return statistics.median(timed(fn, item)[0] for item in items) * 1e6


def boxes(job, seed, count):
    rng = random.Random(seed)
    at = [[c * rng.randrange(n // c) for c, n in zip(job["chunks"], job["shape"])] for _ in range(count)]
    return [tuple(slice(s, s + c) for s, c in zip(a, job["chunks"])) for a in at]


class Work:
    """The jobs, by their names."""

    def __init__(self):
        self.system = {"zarr-python": Zarr3, "zarrs": Zarr3, "icechunk": Icechunk, "tensorstore": TensorStore, "tensorstore ocdbt": TensorStore,
                       "tiledb": TileDB, "zarr 2 + LMDB": Lmdb, "Python": ZarrDB, "through zarr-python": ZarrDB}[NAME]()
        self.touched = None

    def prepare(self, job):
        self.system.prepare(job)

    def write(self, job):
        data = opened(job)
        put, done = self.system.write(job)
        os.sync()
        took = timed(put, data)[0] + timed(done)[0]
        return {"figures": {"write": data.nbytes / took / 1e9}}

    def open(self, job):
        self.system.read(job)

    def read(self, job):
        size = 4 * int(np.prod(job["shape"]))
        if job.get("touched"):
            if self.touched is None or self.touched.nbytes != size:
                self.touched = np.ones(job["shape"], "<f4")
            took, got = timed(self.system.into, self.touched)[0], self.touched
        else:
            took, got = timed(self.system.get, EVERYTHING)
        answer = {"figures": {"read": size / took / 1e9}}
        if job.get("sum"):
            answer = {"sum": zlib.crc32(memoryview(np.ascontiguousarray(got)).cast("B"))}
        return answer

    def chunks(self, job):
        n, threads, size = job["count"], job["threads"], 4 * int(np.prod(job["chunks"]))
        for box in boxes(job, 9, 10):
            self.system.get(box)
        lists = [boxes(job, job["seed"] + t, n) for t in range(threads)]
        if threads == 1:
            took, median = timed(p50, self.system.get, lists[0])
        else:
            with ThreadPoolExecutor(threads) as pool:
                took, medians = timed(lambda: list(pool.map(lambda at: p50(self.system.get, at), lists)))
                median = statistics.median(medians)
        return {"figures": {"p50": median, "rate": threads * n * size / took / 1e9}}

    def points(self, job):
        get, depth, n = self.system.get, job["shape"][0], job["count"]
        for _ in range(2):
            get((slice(None), slice(0, 256), slice(0, 256)))
        rng = random.Random(job["seed"])
        series = p50(get, [(slice(None), rng.randrange(256), rng.randrange(256)) for _ in range(n)])
        element = p50(get, [(rng.randrange(depth), rng.randrange(256), rng.randrange(256)) for _ in range(n)])
        return {"figures": {"series": series, "element": element}}

    def close(self, job):
        self.system.close()
        self.touched = None
        gc.collect()  # what is mapped stays in the page cache

    def tree(self, job):
        """Make arrays in 100 groups."""
        import zarr
        n = job["count"]
        store = self.system.tree(job, True)
        os.sync()
        start = time.perf_counter()
        root = zarr.open_group(store, mode="a")
        for g in range(100):
            group = root.create_group(f"g{g:02d}")
            for i in range(n // 100):
                if zarr.__version__[0] == "2":
                    group.create_dataset(f"a{i:04d}", shape=(100, 100), chunks=(10, 10), dtype="f4")
                else:
                    group.create_array(f"a{i:04d}", shape=(100, 100), chunks=(10, 10), dtype="float32")
        self.system.commit()
        took = time.perf_counter() - start
        if hasattr(store, "close"):
            store.close()
        return {"figures": {"create": took}}

    def members(self, job):
        import zarr
        n = job["count"]
        store = self.system.tree(job, False)
        start = time.perf_counter()
        root = zarr.open_group(store, mode="r")
        if zarr.__version__[0] == "2":
            found = sum(1 for _, group in root.groups() for _, a in group.arrays() if a.shape)
        else:
            found = sum(1 for _, node in root.members(max_depth=None) if isinstance(node, zarr.Array))
        took = time.perf_counter() - start
        if found != n:
            raise ValueError(f"{found} of {n} arrays are listed")
        rng = random.Random(job["seed"])
        one = p50(lambda path: zarr.open_array(store, path=path, mode="r"), [f"g{rng.randrange(100):02d}/a{rng.randrange(n // 100):04d}" for _ in range(200)])
        if hasattr(store, "close"):
            store.close()
        return {"figures": {"list": took * 1e3, "open": one}}


def main():
    work = Work()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer = getattr(work, job["work"])(job) or {}
        except Cannot as e:
            answer = {"cannot": str(e)}
        except Exception as e:
            answer = {"error": f"{type(e).__name__}: {e}"[:500]}
        print(json.dumps(answer), file=answers, flush=True)


main()
