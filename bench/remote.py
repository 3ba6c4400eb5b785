"""icechunk in the bucket "bucket" of a server, on the work of remote.go:

    remote.py icechunk endpoint=URL n=CHUNKS arrays=N chunks=OF_2_MIB pid=N round=I

prints a line of JSON for each figure. Round 0 makes the repositories.
"""
import asyncio
import json
import os
import sys
import time
import urllib.request

import icechunk
import numpy as np
import zarr
from zarr.core.buffer import default_buffer_prototype

args = dict(a.split("=", 1) for a in sys.argv[2:])
n, arrays, chunks, turn = (int(args[k]) for k in ("n", "arrays", "chunks", "round"))
buffer = default_buffer_prototype().buffer


def emit(metric, start):
    print(json.dumps({"workload": "remote", "variant": "beside icechunk", "metric": metric, "value": (time.perf_counter() - start) * 1e3,
                      "unit": "ms", "system": "icechunk", "better": "less"}), flush=True)


def delay(text):
    urllib.request.urlopen(f"{args['endpoint']}/-/set?delay={text}", data=b"").read()


def storage(name):
    return icechunk.s3_storage(bucket="bucket", prefix=f"icechunk-{args['pid']}-{name}", endpoint_url=args["endpoint"], allow_http=True, region="us-east-1",
                               force_path_style=True, access_key_id=os.environ["AWS_ACCESS_KEY_ID"], secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"])


def put(session, pairs):
    async def run(some):
        await asyncio.gather(*[session.store.set(k, buffer.from_bytes(v)) for k, v in some])
    for i in range(0, len(pairs), 5000):
        asyncio.run(run(pairs[i:i + 5000]))


def make():
    repo = icechunk.Repository.create(storage("million"))
    s = repo.writable_session("main")
    zarr.create_array(s.store, name="a", shape=(n, 128), chunks=(1, 128), dtype="float64", compressors=None, filters=None)
    values = zarr.create_array(s.store, name="b", shape=(chunks, 2 << 20), chunks=(1, 2 << 20), dtype="uint8", compressors=None, filters=None)
    put(s, [(f"a/c/{i}/0", os.urandom(1024) if i % 1000 == 0 else b"%016d" % i) for i in range(n)])
    s.commit("fill")
    s = repo.writable_session("main")
    values = zarr.open_array(s.store, path="b")
    for i in range(0, chunks, 64):
        values[i:i + 64] = np.frombuffer(os.urandom(min(64, chunks - i) << 21), "uint8").reshape(-1, 2 << 20)
    s.commit("values")
    s = icechunk.Repository.create(storage("tree")).writable_session("main")
    group = json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}).encode()
    document = json.dumps({"zarr_format": 3, "node_type": "array", "shape": [4, 128], "data_type": "float64", "fill_value": 0.0, "attributes": {},
                           "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                           "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 128]}},
                           "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}}).encode()
    put(s, [("zarr.json", group), ("g/zarr.json", group)])
    put(s, [(f"g/a{i:05d}/zarr.json", document) for i in range(arrays)])
    s.commit("fill")


def members():
    store = icechunk.Repository.open(storage("tree")).readonly_session("main").store

    async def run():
        return [k async for k in store.list_dir("g")]
    assert len(asyncio.run(run())) >= arrays


if turn == 0:
    delay("0s")
    make()
    delay("20ms")
repo = icechunk.Repository.open(storage("million"))
for k in range(5):
    start = time.perf_counter()
    s = repo.writable_session("main")
    put(s, [(f"a/c/{1000 * turn + k}/0", os.urandom(1024))])
    s.commit("change")
    emit("commit of 1 of 1 M chunks", start)
start = time.perf_counter()
store = icechunk.Repository.open(storage("million")).readonly_session("main").store
asyncio.run(store.get("a/c/5000/0", default_buffer_prototype()))
emit("open, first chunk", start)
start = time.perf_counter()
zarr.open_array(icechunk.Repository.open(storage("million")).readonly_session("main").store, path="b", mode="r")[:]
emit("read all, 2 MiB chunks", start)
start = time.perf_counter()
members()
emit("list 10,000 arrays", start)
