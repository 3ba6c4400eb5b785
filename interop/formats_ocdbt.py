"""Compares zarrdb with tensorstore on OCDBT stores.

    formats_ocdbt.py --bin ./zarrdb [-k SUBSTRING]

theirs  stores that tensorstore writes in many settings, of up to hundreds of
        generations, are read generation by generation to the same values
arrays  Zarr arrays in stores of tensorstore are read, linked and imported, one version
        or all of them
"""
import base64, json, pathlib, random

import numpy as np, tensorstore as ts

from formats_common import main

# Settings of stores: the configuration of tensorstore, generations, changes in each, and
# further options of tensorstore.
THEIRS = {
    "defaults": ({}, 20, 10, {}),
    "uncompressed": ({"compression": None}, 20, 10, {}),
    "zstd-19": ({"compression": {"id": "zstd", "level": 19}}, 12, 30, {}),
    "zstd-negative": ({"compression": {"id": "zstd", "level": -5}}, 12, 30, {}),
    "all-inline": ({"max_inline_value_bytes": 1 << 20}, 15, 20, {}),
    "none-inline": ({"max_inline_value_bytes": 0, "compression": None}, 15, 20, {}),
    "tiny-nodes": ({"max_decoded_node_bytes": 1, "version_tree_arity_log2": 2}, 25, 25, {}),
    "small-nodes": ({"max_decoded_node_bytes": 500, "max_inline_value_bytes": 40}, 30, 60, {}),
    "numbered": ({"manifest_kind": "numbered"}, 20, 10, {}),
    "numbered-tree": ({"manifest_kind": "numbered", "version_tree_arity_log2": 1, "max_decoded_node_bytes": 300}, 60, 5, {}),
    "many-generations": ({"version_tree_arity_log2": 2}, 340, 3, {}),
    "binary-tree": ({"version_tree_arity_log2": 1, "compression": None}, 310, 2, {}),
    "wide-tree": ({"version_tree_arity_log2": 16}, 40, 4, {}),
    "other-folders": ({}, 15, 10, {"value_data_prefix": "values/", "btree_node_data_prefix": "nodes/x", "version_tree_node_data_prefix": ""}),
    "many-keys": ({"max_decoded_node_bytes": 4000}, 5, 3000, {}),
}

def history(seed, commits, changes):
    """Yields the changes of each commit, None for keys that go, and the contents."""
    r, now = random.Random(seed), {}
    for n in range(commits):
        diff = {}
        for _ in range(r.randrange(changes + 1) if n else changes):
            key = f"{r.choice(['a', 'a/b', 'long/name/of/an/array', 'z'])}/c/{r.randrange(9)}/{r.randrange(3 * changes)}".encode()
            if r.random() < 0.25:
                diff[key] = None
                now.pop(key, None)
            else:
                now[key] = diff[key] = r.randbytes(r.choice([0, 1, 50, 100, 101, 300]))
        if n % 17 == 16:  # all of it goes
            diff.update({k: None for k in now})
            now = {}
        yield diff, dict(now)


def generations(r, path):
    """What the program interop/ocdbt, which formats.sh builds, reads: the newest generation first."""
    return [json.loads(line) for line in r.execute(pathlib.Path(r.bin).parent / ".cache/ocdbt", path).splitlines()]


def spec(folder, **more):
    return {"driver": "ocdbt", "base": f"file://{folder}/", **more}


def contents(path, version=None):
    """All keys and values of a generation, read by tensorstore."""
    store = ts.KvStore.open(spec(path, **({} if version is None else {"version": version}))).result()
    keys = store.list().result()
    return dict(zip(keys, [f.result().value for f in [store.read(k) for k in keys]]))


def decoded(values):
    return {base64.b64decode(k): base64.b64decode(v) for k, v in values.items()}


def theirs(r, name):
    config, commits, changes, more = THEIRS[name]
    path = r.path(name)
    store = ts.KvStore.open(spec(path, config=config, **more)).result()
    last = {}
    for diff, last in history(name, commits, changes):
        with ts.Transaction(atomic=True) as txn:
            at = store.with_transaction(txn)
            for key, value in diff.items():
                if value is None:
                    del at[key]
                else:
                    at[key] = value
    got = generations(r, path)
    assert decoded(got[0]["values"]) == last, "the newest generation"
    for g in got:
        number = int(g["version"][1:])
        assert decoded(g["values"]) == contents(path, number), g["version"]
    assert [int(g["version"][1:]) for g in got] == list(range(len(got), 0, -1))
    # the times, as tensorstore finds them
    for g in got[:: max(1, len(got) // 10)]:
        at = np.datetime64(g["time"], "ns")
        assert contents(path, f"{at}Z") == decoded(g["values"]), f"{g['version']} at {at}"
    some = got[len(got) // 2]
    for key, value in list(decoded(some["values"]).items())[:3]:
        url = f"file://{path}/|ocdbt:@{some['version']}/"
        assert r.run("get", url, key.decode()) == value


def arrays(r):
    want = np.random.default_rng(5).integers(0, 1000, (30, 40)).astype("uint16")
    path, db = r.path("arrays"), r.path("arrays.zdb")
    array = {
        "driver": "zarr3", "kvstore": spec(path, path="p/a/", config={"max_decoded_node_bytes": 500}),
        "metadata": {"shape": [30, 40], "data_type": "uint16", "dimension_names": ["y", "x"],
                     "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [7, 9]}},
                     "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {"level": 3}}]},
        "create": True,
    }
    a = ts.open(array).result()
    a.write(want).result()
    first = int(generations(r, path)[0]["version"][1:])
    a[3:5, :] = 7
    for at, values in [("", a.read().result()), (f"@v{first}/", want)]:
        got = np.frombuffer(r.run("read", f"file://{path}/|ocdbt:{at}p/a", "-o", "-"), "<u2").reshape(30, 40)
        assert np.array_equal(got, values), at
    r.run("init", db)
    r.run("import", db, f"file://{path}/|ocdbt:@v{first}/p/a/", "--to", "copied")
    r.run("import", db, f"file://{path}/|ocdbt:p/a/", "--to", "linked", "--link")
    assert np.array_equal(np.frombuffer(r.run("read", f"{db}:copied", "-o", "-"), "<u2").reshape(30, 40), want)
    assert np.array_equal(np.frombuffer(r.run("read", f"{db}:linked", "-o", "-"), "<u2").reshape(30, 40), a.read().result())
    history = r.path("history.zdb")
    r.run("import", history, path, "--history")
    commits = [json.loads(line) for line in r.run("log", history, "--json").splitlines()]
    versions = generations(r, path)
    assert len(commits) >= len(versions), (commits, versions)
    for commit, g in zip(commits, versions):
        got, keys = decoded(g["values"]), r.run("keys", f"{history}@{commit['id']}").decode().splitlines()
        assert sorted(k.decode() for k in got) == sorted(keys), g["version"]
        for key in random.Random(g["version"]).sample(keys, min(8, len(keys))):
            assert r.run("get", f"{history}@{commit['id']}", key) == got[key.encode()], key


def cases():
    for name in THEIRS:
        yield "ocdbt", f"theirs {name}", theirs, name
    yield "ocdbt", "arrays", arrays


main(__doc__, cases())
