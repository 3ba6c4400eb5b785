"""Arrays as Python sees them, one system in each process:

    python.py PART key=value ...

prints a line of JSON for each figure. Each system reads through its own Python API into
memory that numpy has just got. dir has what python.go made: field.zarr, a directory as
zarr-python has it, and field.zdb, which has the same bytes.
"""
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time

part = sys.argv[1]
args = dict(a.split("=", 1) for a in sys.argv[2:])
folder, system, variant = args["dir"], args["system"], args.get("variant", "")
quick = args.get("quick") == "true"
sys.path.insert(0, args["package"])
os.environ["PYTHONPATH"] = args["package"]  # of the processes that dask starts

OURS, ADAPTED = "Python", "through zarr-python"


def emit(metric, value, unit):
    print(json.dumps({"workload": "python", "variant": variant, "metric": metric, "value": value,
                      "unit": unit, "system": system}), flush=True)


def store(name):
    import zarr
    return zarr.storage.LocalStore(os.path.join(folder, name))


class Reads:
    """An array of tensorstore, which selects as numpy does."""

    def __init__(self, a):
        self.a, self.shape = a, a.shape

    def __getitem__(self, key):
        return self.a[key].read().result()


def open_array():
    """The array, which selects as numpy does."""
    if system in (OURS, ADAPTED):
        import zarrdb
        version = zarrdb.open(os.path.join(folder, "field.zdb")).at("main")
        if system == OURS:
            return version.array("field")
        import zarr
        from zarrdb import codecs
        codecs.use()
        return zarr.open_array(version.store, path="field", mode="r")
    if system == "tensorstore":
        import tensorstore
        a = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": os.path.join(folder, "field.zarr", "field") + "/"}}).result()
        return Reads(a)
    import zarr
    if system == "zarrs":
        import zarrs  # noqa: F401
        zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
    return zarr.open_array(store("field.zarr"), path="field", mode="r")


def patches(seed, count, ready, go, done):
    a = open_array()
    rng = random.Random(seed)
    ready()
    go()
    depth, height, width = a.shape
    for _ in range(count):
        y, x = rng.randrange(height - 128), rng.randrange(width - 128)
        got = a[(rng.randrange(depth), slice(y, y + 128), slice(x, x + 128))]
        assert got.shape == (128, 128)
    done()


COUNT, WORKERS = 50 if quick else 250, 8


def loader():
    """What the workers of a torch DataLoader do: 8 processes, random patches of 128 x 128."""
    for how in (forked, spawned):
        if how is spawned or system != "tensorstore":  # which cannot be used after fork
            emit(f"loader, 8 workers, {how.__name__}", WORKERS * COUNT / how(), "patches/s")


def forked():
    """How long the workers take that are forks of this process."""
    ctx = multiprocessing.get_context("fork")
    ready, go, done = ctx.Semaphore(0), ctx.Event(), ctx.Semaphore(0)
    workers = [ctx.Process(target=patches, args=(i, COUNT, ready.release, go.wait, done.release)) for i in range(WORKERS)]
    for w in workers:
        w.start()
    for _ in workers:
        ready.acquire()
    start = time.perf_counter()
    go.set()
    for _ in workers:
        done.acquire()
    took = time.perf_counter() - start
    for w in workers:
        w.join()
        assert w.exitcode == 0
    return took


def spawned():
    """The same of new processes."""
    workers = [subprocess.Popen([sys.executable, "-c", sys.orig_argv[2], "worker", f"seed={i}", *sys.argv[2:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for i in range(WORKERS)]
    for w in workers:
        assert w.stdout.readline() == b"ready\n"
    start = time.perf_counter()
    for w in workers:
        w.stdin.close()
    for w in workers:
        assert w.stdout.readline() == b"done\n"
    took = time.perf_counter() - start
    for w in workers:
        assert w.wait() == 0
    return took


def worker():
    """One of the new processes."""
    patches(int(args["seed"]), COUNT, lambda: print("ready", flush=True), sys.stdin.read, lambda: print("done", flush=True))


def dask():
    """4 processes write 1,000 chunks of 256 KiB, which are then one durable commit."""
    import dask.array as da
    import numpy as np
    import zarr
    from dask.distributed import Client, LocalCluster
    count = 100 if quick else 1000
    spec = {"shape": (count, 256, 256), "chunks": (1, 256, 256), "dtype": "float32", "compressors": None, "fill_value": 0}

    def values(block_info=None):
        i = block_info[None]["chunk-location"][0]
        return np.random.default_rng(i).random((1, 256, 256), "f4")

    x = da.map_blocks(values, chunks=((1,) * count, (256,), (256,)), dtype="f4", meta=np.empty((0, 0, 0), "f4"))
    with LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        client.run(lambda: __import__("zarr"))
        start = time.perf_counter()
        if system in (OURS, ADAPTED):
            import zarrdb
            s = zarrdb.open(os.path.join(folder, system + ".zdb"), create=True).writable_session()
            z = zarr.create_array(s.store, name="x", **spec)
            da.store(x, s.array("x") if system == OURS else z, lock=False)
            s.commit("load")
        elif system == "icechunk":
            import icechunk
            from icechunk.dask import store_dask
            repo = icechunk.Repository.create(icechunk.local_filesystem_storage(os.path.join(folder, "icechunk")))
            s = repo.writable_session("main")
            zarr.create_array(s.store, name="x", **spec)
            s.commit("array")
            s = repo.writable_session("main")
            fork = s.fork()
            z = zarr.open_array(fork.store, path="x", mode="r+")
            s.merge(store_dask(sources=[x], targets=[z]))
            s.commit("load")
        else:
            z = zarr.create_array(store("dask.zarr"), name="x", **spec)
            da.store(x, z, lock=False)
        emit("dask, 4 processes", time.perf_counter() - start, "s")


def start():
    """Import, and the first value where no process has the database open."""
    code = "import sys, time; import numpy; t = time.perf_counter(); import zarrdb; print(time.perf_counter() - t)"
    run = lambda code: float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
    run(code)
    emit("import beyond numpy", min(run(code) for _ in range(10)) * 1e3, "ms")
    path = os.path.join(folder, "field.zdb")
    first = ("import time, zarrdb._array; t = time.perf_counter(); "
             f"zarrdb.open({path!r}).at('main').array('field')[0, 0, 0]; print(time.perf_counter() - t)")
    best = float("inf")
    for _ in range(5):
        best = min(best, run(first))
        end()
    emit("open to first value", best * 1e3, "ms")


def end():
    """End the process that was started for the database."""
    try:
        with open(os.path.join(folder, "field.zdb", "index", "HOLDER")) as f:
            pid = json.load(f)["pid"]
        os.kill(pid, signal.SIGTERM)
        while os.path.exists(f"/proc/{pid}"):
            reap(pid)
            time.sleep(0.01)
    except (OSError, ValueError):
        pass


def reap(pid):
    """Forget a process if it is our child and has ended."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass


{f.__name__: f for f in (loader, worker, dask, start)}[part]()
if part in ("loader", "start") and system in (OURS, ADAPTED):
    end()
