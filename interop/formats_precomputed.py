"""Compares zarrdb with tensorstore and cloud-volume on precomputed volumes.

    formats_precomputed.py --bin ./zarrdb [-k SUBSTRING]

theirs   volumes of tensorstore and cloud-volume, of each encoding and data type,
         sharded and not, are read by zarrdb to the same values, in place and as links
scales   those of several scales are a group
ours     volumes that zarrdb exports, in files and in shards, are read to the same
         values by tensorstore and cloud-volume
"""
import itertools, json, os

import cloudvolume, numpy as np, tensorstore as ts

from formats_common import main, same

SHARDINGS = {
    "identity": {"@type": "neuroglancer_uint64_sharded_v1", "preshift_bits": 2, "hash": "identity", "minishard_bits": 2, "shard_bits": 3,
                 "minishard_index_encoding": "raw", "data_encoding": "raw"},
    "murmur": {"@type": "neuroglancer_uint64_sharded_v1", "preshift_bits": 0, "hash": "murmurhash3_x86_128", "minishard_bits": 3, "shard_bits": 1,
               "minishard_index_encoding": "gzip", "data_encoding": "gzip"},
    "one": {"@type": "neuroglancer_uint64_sharded_v1", "preshift_bits": 9, "hash": "identity", "minishard_bits": 0, "shard_bits": 0,
            "minishard_index_encoding": "gzip", "data_encoding": "raw"},
}
ENCODINGS = [
    ("raw", "uint8", 1), ("raw", "uint16", 2), ("raw", "uint32", 1), ("raw", "uint64", 1), ("raw", "float32", 3),
    ("png", "uint8", 1), ("png", "uint16", 1), ("png", "uint8", 3), ("jpeg", "uint8", 1), ("jpeg", "uint8", 3),
    ("compressed_segmentation", "uint32", 1), ("compressed_segmentation", "uint64", 2),
]


def values(dtype, shape, encoding, seed):
    r = np.random.default_rng(seed)
    if encoding == "jpeg":  # smooth, so that the decoders differ little
        grid = np.indices(shape).astype(float)
        return (128 + 60 * np.sin(grid[0] / 9) + 40 * np.cos(grid[1] / 7) + 10 * grid[3]).astype(dtype)
    if dtype.startswith("f"):
        a = r.standard_normal(shape).astype(dtype)
    elif encoding == "compressed_segmentation":
        a = r.integers(0, [3, 40, 2**31][seed % 3], shape).astype(dtype) * np.array(3_000_000_001, dtype)
    else:
        a = r.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    a[: shape[0] // 3] = 0
    return a


def check(r, volume, key, want, tolerance=0):
    """In place, and as links of a database."""
    r.check(f"file://{volume}|neuroglancer-precomputed:{key}", want, "read", tolerance)
    db = r.link(volume)
    r.check(f"{db}:{key}" if key else db, want, "read of the links", tolerance)


def open_tensorstore(volume, key=None):
    spec = {"driver": "neuroglancer_precomputed", "kvstore": {"driver": "file", "path": volume + "/"}}
    if key:
        spec["scale_metadata"] = {"key": key}
    return ts.open(spec).result()


def from_tensorstore(r, i, encoding, dtype, channels, sharding, scales=1):
    volume = r.path("ts")
    for level in range(scales):
        shape = [37 >> level, 29, 21, channels]
        metadata = {"size": shape[:3], "encoding": encoding, "chunk_size": [8, 16, 7], "resolution": [4 << level, 4, 40], "voxel_offset": [-3, 11, 0]}
        if encoding == "compressed_segmentation":
            metadata["compressed_segmentation_block_size"] = [8, 4, 8]
        if sharding:
            metadata["sharding"] = SHARDINGS[sharding]
        want = values(dtype, shape, encoding, i + level)
        t = ts.open({
            "driver": "neuroglancer_precomputed", "kvstore": {"driver": "file", "path": volume + "/"}, "create": True,
            "multiscale_metadata": {"data_type": dtype, "num_channels": channels, "type": "image"}, "scale_metadata": metadata,
        }).result()
        t.write(want).result()
        key = f"{4 << level}_4_40" if scales > 1 else ""
        if encoding == "jpeg":
            want = t.read().result()
        if level == scales - 1:
            check(r, volume, key, want, 2 if encoding == "jpeg" else 0)
    if scales > 1:
        tree = r.run("tree", volume).decode()
        if not all(f"{4 << level}_4_40" in tree for level in range(scales)):
            raise AssertionError(tree)


def from_cloudvolume(r, i, encoding, dtype, channels, compress):
    volume = r.path("cv")
    shape = [37, 29, 21]
    info = cloudvolume.CloudVolume.create_new_info(
        num_channels=channels, layer_type="segmentation" if encoding == "compressed_segmentation" else "image", data_type=dtype,
        encoding=encoding, resolution=[8, 8, 30], voxel_offset=[16, 0, 8], chunk_size=[16, 16, 16], volume_size=shape,
    )
    cv = cloudvolume.CloudVolume("file://" + volume, info=info, compress=compress, progress=False, non_aligned_writes=True, fill_missing=True)
    cv.commit_info()
    want = values(dtype, shape + [channels], encoding, len(volume))
    cv[:, :, :] = want
    if encoding == "jpeg":  # cloud-volume itself reads other colours
        want = open_tensorstore(volume).read().result()
    check(r, volume, "", want, 2 if encoding == "jpeg" else 0)


def ours(r, i, dtype, channels, sharded, compression, scales):
    source, volume = r.path("src"), r.path("ours")
    wants = {}
    for level in range(scales):
        name = f"s{level}" if scales > 1 else "a"
        want = values(dtype, [31 >> level, 26, 17, channels], "raw", i)
        wants[name] = want
        t = ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{source}/{name}/"}, "create": True, "metadata": {
            "shape": list(want.shape[::-1]), "data_type": dtype, "dimension_names": ["c", "z", "y", "x"], "attributes": {"resolution": [4 << level, 4, 40]},
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 8, 8, 8]}}}}).result()
        t.write(want.T).result()
    if scales > 1:
        with open(f"{source}/zarr.json", "w") as f:
            json.dump({"zarr_format": 3, "node_type": "group"}, f)
    r.run("export", source if scales > 1 else source + "/a", volume, "--format", "precomputed", *(["--sharded"] if sharded else []),
          *(["--compression", compression] if compression else []))
    for level, (name, want) in enumerate(wants.items()):
        key = name if scales > 1 else "4_4_40"
        r.check(f"file://{volume}|neuroglancer-precomputed:{key}", want, "zarrdb reads its own")
        same(want, open_tensorstore(volume, key).read().result(), "tensorstore")
        cv = cloudvolume.CloudVolume("file://" + volume, mip=level, progress=False, fill_missing=True)
        same(want, np.asarray(cv[:, :, :]), "cloud-volume")


def cases():
    n = "precomputed"
    for i, ((encoding, dtype, channels), sharding) in enumerate(itertools.product(ENCODINGS, [None, *SHARDINGS])):
        if sharding and (i + i // 4) % 3:
            continue  # each sharding with a third of the encodings
        yield n, f"tensorstore {encoding} {dtype}x{channels} {sharding}", from_tensorstore, i, encoding, dtype, channels, sharding
    yield n, "tensorstore scales", from_tensorstore, 1000, "raw", "uint16", 1, None, 3
    yield n, "tensorstore sharded scales", from_tensorstore, 1001, "raw", "uint8", 1, "murmur", 2
    for i, (encoding, dtype, channels) in enumerate(ENCODINGS):
        if (encoding, dtype, channels) in [("compressed_segmentation", "uint64", 2), ("png", "uint16", 1)]:
            continue  # which cloud-volume does not write
        for compress in (False, True)[: 1 + (encoding in ("raw", "compressed_segmentation"))]:
            yield n, f"cloudvolume {encoding} {dtype}x{channels} compress={compress}", from_cloudvolume, i, encoding, dtype, channels, compress
    for i, (dtype, channels, sharded, compression, scales) in enumerate([
        ("uint8", 1, False, "", 1), ("uint16", 1, True, "", 1), ("uint32", 2, True, "raw", 1), ("uint64", 1, False, "", 2),
        ("float32", 3, True, "gzip", 1), ("uint8", 1, True, "", 3), ("uint64", 1, True, "raw", 2), ("float32", 1, False, "", 1),
        ("uint16", 4, False, "", 3), ("uint8", 3, True, "raw", 1), ("uint32", 1, True, "", 2), ("float32", 2, True, "raw", 3),
    ]):
        yield n, f"ours {dtype}x{channels} sharded={sharded} {compression} scales={scales}", ours, i, dtype, channels, sharded, compression, scales


main(__doc__, cases())
