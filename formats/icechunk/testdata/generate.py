"""Writes the repositories of this folder and expect.json: what every version of them
holds, as icechunk-python reads it. Run with icechunk 2.3.0 and zarr 3.4.2:
    python generate.py /data/icechunk
The folder is named in the URLs of virtual chunks, so it is copied here afterwards."""
import asyncio, hashlib, json, pathlib, shutil, sys
import icechunk as ic, numpy as np, zarr

out = pathlib.Path(sys.argv[1]).absolute()

def snapshot(repo, **at):
    store = repo.readonly_session(**at).store
    async def read():
        from zarr.core.buffer import default_buffer_prototype
        keys = sorted([k async for k in store.list()])
        values = {}
        for k in keys:
            try:
                b = await store.get(k, default_buffer_prototype())
                values[k] = hashlib.sha256(b.to_bytes()).hexdigest()
            except Exception as e:
                values[k] = "error: " + type(e).__name__
        return values
    return asyncio.run(read())

def make(name, spec):
    root = out / name
    shutil.rmtree(root, ignore_errors=True)
    virtual = out / "virtual"
    virtual.mkdir(parents=True, exist_ok=True)
    blob = virtual / "blob.bin"
    blob.write_bytes(bytes(range(256)) * 4)
    prefix = f"file://{virtual}/"
    config = ic.RepositoryConfig.default()
    config.inline_chunk_threshold_bytes = 16
    config.set_virtual_chunk_container(ic.VirtualChunkContainer(prefix, ic.local_filesystem_store(str(virtual)), name="local"))
    config.manifest = ic.ManifestConfig(
        splitting=ic.ManifestSplittingConfig.from_dict({ic.ManifestSplitCondition.name_matches("split"): {ic.ManifestSplitDimCondition.Any(): 2}}),
        virtual_chunk_location_compression=ic.ManifestVirtualChunkLocationCompressionConfig(min_num_chunks=20))
    repo = ic.Repository.create(ic.local_filesystem_storage(str(root)), config=config, spec_version=spec,
        authorize_virtual_chunk_access=ic.containers_credentials({prefix: None}))
    repo.save_config()
    def commit(message, fn, branch="main", **kw):
        s = repo.writable_session(branch)
        fn(s)
        return s.commit(message, **kw)
    def first(s):
        g = zarr.group(s.store, attributes={"title": "a test"})
        a = g.create_array("split", shape=(7, 12), chunks=(2, 1), dtype="i4", dimension_names=["y", "x"], fill_value=-1, compressors=None)
        a[:] = np.arange(84).reshape(7, 12)
        g.create_array("grp/small", shape=(11,), chunks=(1,), dtype="u1", compressors=None)[:] = np.arange(11)
        g.create_array("scalar", shape=(), dtype="f8")[...] = 2.5
        g.create_group("empty")
    commit("first", first, metadata={"author": "Ada", "n": 3})
    def second(s):
        g = zarr.open_group(s.store)
        g["split"][4:7, 5:8] = 7
        g.attrs["more"] = [1, 2]
        v = g.create_array("virtual", shape=(32, 4), chunks=(1, 4), dtype="u1", compressors=None, filters=None)
        refs = [ic.VirtualChunkSpec([i, 0], f"{prefix}blob.bin" if i % 2 or spec == 1 else "vcc://local/blob.bin", 8 * i, 4) for i in range(30)]
        s.store.set_virtual_refs("virtual", refs, validate_containers=True)
    commit("second", second)
    repo.create_branch("side", snapshot_id=repo.lookup_branch("main"))
    repo.create_tag("v1", snapshot_id=repo.lookup_branch("main"))
    repo.create_tag("gone", snapshot_id=repo.lookup_branch("main"))
    repo.delete_tag("gone")
    def side(s):
        zarr.open_group(s.store)["grp/small"][3] = 99
    commit("on the side", side, "side")
    def third(s):
        g = zarr.open_group(s.store)
        del g["grp"]
        g["split"].resize((7, 6))
        g["virtual"][31] = 5
    commit("third", third)
    if spec == 2:
        s = repo.rearrange_session("main")
        s.move("/virtual", "/moved")
        s.commit("moved")
    def last(s):
        g = zarr.open_group(s.store)
        g["split"][0, 0] = -1
        del g["scalar"]
        g.create_array("scalar", shape=(2,), chunks=(1,), dtype="u1", compressors=None)[:] = [1, 2]
    commit("last", last)
    expect = {"names": {}, "versions": {}}
    for b in repo.list_branches():
        expect["names"]["branch." + b] = repo.lookup_branch(b)
    for t in repo.list_tags():
        expect["names"]["tag." + t] = repo.lookup_tag(t)
    for b in repo.list_branches():
        for s in repo.ancestry(branch=b):
            expect["versions"][s.id] = {"parent": s.parent_id, "message": s.message, "micros": int(round(s.written_at.timestamp() * 1e6)),
                "author": s.metadata.get("author", ""), "keys": snapshot(repo, snapshot_id=s.id)}
    shutil.rmtree(root / "overwritten", ignore_errors=True)
    (out / (name + ".json")).write_text(json.dumps(expect, indent=1, sort_keys=True) + "\n")

make("v1", 1)
make("v2", 2)
