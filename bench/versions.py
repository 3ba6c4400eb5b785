"""icechunk and tensorstore's OCDBT on the work of versions.go and commits.go:

    versions.py PART key=value ...

prints a line of JSON for each figure. Arrays have chunks of 1 KiB of random bytes,
as there. icechunk does not sync what it writes to a local disk; zarrdb and
tensorstore do.
"""
import asyncio
import datetime
import json
import os
import random
import shutil
import sys
import time

part = sys.argv[1]
args = dict(a.split("=", 1) for a in sys.argv[2:])
CHUNK = 1024
rng = random.Random(1)


def emit(system, variant, metric, value, unit="us"):
    print(json.dumps({"workload": args["workload"], "variant": variant, "metric": metric, "value": value,
                      "unit": unit, "system": system, "better": "less"}), flush=True)


def quantile(times, q):
    return sorted(times)[min(int(q * len(times)), len(times) - 1)]


def repeat(n, op):
    times = []
    for i in range(n):
        start = time.perf_counter()
        op(i)
        times.append((time.perf_counter() - start) * 1e6)
    return times


class Icechunk:
    """A repository with an array of n chunks."""

    def __init__(self, path, n):
        import icechunk
        import zarr
        from zarr.core.buffer import default_buffer_prototype
        self.n, self.buffer = n, default_buffer_prototype().buffer
        self.repo = icechunk.Repository.create(icechunk.local_filesystem_storage(path))
        session = self.repo.writable_session("main")
        zarr.create_array(session.store, name="a", shape=(n, CHUNK // 8), chunks=(1, CHUNK // 8), dtype="float64", compressors=None, filters=None)
        self.put(session, range(n))
        self.first = session.commit("fill")

    def put(self, session, chunks):
        async def run(some):
            await asyncio.gather(*[session.store.set(f"a/c/{k}/0", self.buffer.from_bytes(rng.randbytes(CHUNK))) for k in some])
        for i in range(0, len(chunks), 1000):
            asyncio.run(run(chunks[i:i + 1000]))

    def commit(self, _=0):
        session = self.repo.writable_session("main")
        self.put(session, [rng.randrange(self.n)])
        return session.commit("one")

    def at(self, back):
        for i, s in enumerate(self.repo.ancestry(branch="main")):
            if i == back:
                return s.id


def icechunk_versions():
    import zarr
    n, variant, path = int(args["n"]), args["variant"], os.path.join(args["dir"], "icechunk")
    start = time.perf_counter()
    ic = Icechunk(path, n)
    add = lambda metric, value, unit="us": emit("icechunk", variant, metric, value, unit)
    add("fill + first commit", time.perf_counter() - start, "s")
    times = repeat(100, ic.commit)
    add("commit of 1 chunk p50", quantile(times, .5))
    add("commit of 1 chunk p99", quantile(times, .99))
    repo, head, older = ic.repo, ic.at(0), ic.at(10)
    add("branch p50", quantile(repeat(50, lambda i: repo.create_branch(f"b{i}", head)), .5))
    add("tag p50", quantile(repeat(50, lambda i: repo.create_tag(f"t{i}", head)), .5))
    add("reset p50", quantile(repeat(50, lambda i: repo.reset_branch("b0", (head, older)[i % 2])), .5))

    def old(_):
        a = zarr.open_array(repo.readonly_session(snapshot_id=older).store, path="a", mode="r")
        a[0]
    add("open old version + 1 chunk p50", quantile(repeat(20, old), .5))
    add("diff of 10 commits p50", quantile(repeat(20, lambda _: repo.diff(from_snapshot_id=older, to_snapshot_id=head)), .5))

    def rename(i):
        s = repo.rearrange_session("main")
        s.move(*[("/a", "/b"), ("/b", "/a")][i % 2])
        s.commit("mv")
    if hasattr(repo, "rearrange_session"):
        add("rename array p50", quantile(repeat(20, rename), .5))
    for i in range(50):
        repo.delete_branch(f"b{i}")
        repo.delete_tag(f"t{i}")
    now = datetime.datetime.now(datetime.timezone.utc)
    start = time.perf_counter()
    repo.expire_snapshots(now)
    repo.garbage_collect(now)
    add("expire + gc", (time.perf_counter() - start) * 1e3, "ms")
    shutil.rmtree(path)


def icechunk_history():
    path = os.path.join(args["dir"], "icechunk")
    ic, made = Icechunk(path, 1000), 2
    for length in (10, 1000):
        while made < length:
            ic.commit()
            made += 1
        variant = f"{length} commits before"
        add = lambda metric, value: emit("icechunk", variant, metric + " p50", value)
        add("commit of 1 chunk", quantile(repeat(50, ic.commit), .5))
        made += 50

        def log(n):
            def run(_):
                left = n
                for _ in ic.repo.ancestry(branch="main"):
                    left -= 1
                    if left == 0:
                        break
            return run
        add("log of 10", quantile(repeat(50, log(10)), .5))
        add("log of 1000", quantile(repeat(20, log(1000)), .5))
        add("checkout of main~8", quantile(repeat(50, lambda _: ic.repo.readonly_session(snapshot_id=ic.at(8))), .5))
    shutil.rmtree(path)


def ocdbt_versions():
    import numpy as np
    import tensorstore as ts
    n, variant, path = int(args["n"]), args["variant"], os.path.join(args["dir"], "ocdbt")
    os.makedirs(path)
    add = lambda metric, value, unit="us": emit("ts-ocdbt", variant, metric, value, unit)
    kv = lambda **k: {"driver": "ocdbt", "base": "file://" + path + "/", "path": "a/", **k}
    a = ts.open({"driver": "zarr3", "kvstore": kv(), "create": True, "metadata": {
        "shape": [n, CHUNK // 8], "data_type": "float64", "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, CHUNK // 8]}}}}).result()
    data = np.random.default_rng(1).random((n, CHUNK // 8))
    start = time.perf_counter()
    with ts.Transaction() as t:
        a.with_transaction(t)[...] = data
    add("fill + first commit", time.perf_counter() - start, "s")
    versions = ts.ocdbt.dump(ts.KvStore.open("file://" + path + "/").result()).result()["versions"]
    first = max(v["generation_number"] for v in versions)
    times = repeat(100, lambda i: a[rng.randrange(n)].write(np.random.default_rng(i).random(CHUNK // 8)).result())
    add("commit of 1 chunk p50", quantile(times, .5))
    add("commit of 1 chunk p99", quantile(times, .99))

    def old(_):
        ts.open({"driver": "zarr3", "kvstore": kv(version=first), "open": True}, context=ts.Context()).result()[0].read().result()
    add("open old version + 1 chunk p50", quantile(repeat(20, old), .5))
    shutil.rmtree(path)


{"icechunk": icechunk_versions, "ocdbt": ocdbt_versions, "history": icechunk_history}[part]()
