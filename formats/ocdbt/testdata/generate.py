#!/usr/bin/env python3
"""Writes the store any_keys with tensorstore: generate.py DIRECTORY (an empty one)."""
import base64, json, pathlib, sys
import tensorstore as ts

dest = pathlib.Path(sys.argv[1]) / "any_keys"
config = {"manifest_kind": "numbered", "max_inline_value_bytes": 8, "max_decoded_node_bytes": 300, "version_tree_arity_log2": 1, "compression": None}
store = ts.KvStore.open({
    "driver": "ocdbt", "base": (dest / "db").absolute().as_uri() + "/", "config": config,
    "value_data_prefix": "values/", "btree_node_data_prefix": "nodes/",
}).result()
keys = [b"a", b"a/b", b"a//b", "é/1".encode(), b"x\x00y", b"\xff\xfe", b"/lead", b"trail/", b"a/../b", b"."]
keys += [b"deep/" + b"n" * i for i in range(1, 40)]
now = {}
for step in range(8):
    with ts.Transaction() as txn:
        for i, key in enumerate(keys):
            if (i + step) % 3 == 0 or step == 0:
                now[key] = bytes([step + 65]) * (i * 5 % 21)
                store.with_transaction(txn)[key] = now[key]
            elif (i + step) % 7 == 0 and key in now:
                del now[key]
                del store.with_transaction(txn)[key]

def text(b):
    return base64.b64encode(b).decode()

def contents(version):
    at = ts.KvStore.open({"driver": "ocdbt", "version": version, "base": (dest / "db").absolute().as_uri() + "/"}).result()
    return {text(k): text(at[k]) for k in sorted(at.list().result())}

newest = max(int(p.name[9:], 16) for p in (dest / "db").glob("manifest.????????????????"))
assert contents(newest) == {text(k): text(v) for k, v in now.items()}
(dest / "expect.json").write_text(json.dumps({"writer": "tensorstore " + sys.argv[2], "config": config, "versions": [
    {"version": f"v{n}", "any_values": contents(n)} for n in range(1, newest + 1)
]}, indent=1) + "\n")
