"""Compares zarrdb with icechunk-python on Icechunk repositories.

    formats_icechunk.py --bin ./zarrdb [-k SUBSTRING]

theirs   repositories in varied settings, with branches and tags, are read by zarrdb to
         the same values, in place, and after import --history with and without --link
ours     the same histories, exported again, are opened by icechunk-python: the same
         values, branches, tags and messages, and it commits to them
"""
import datetime, http.server, inspect, os, threading

os.environ.setdefault("ICECHUNK_LOG", "error")
import icechunk as ic, numpy as np, zarr

from formats_common import main, same

SPECS = [1, 2] if "spec_version" in inspect.signature(ic.Repository.create).parameters else [None]
NONE = dict(compressors=None)
# name, dtype, shape, chunks, array settings, inline threshold, manifest split
SETTINGS = [
    ("plain", "i4", (10, 7), (3, 2), NONE, 0, None),
    ("inline", "u1", (9,), (2,), NONE, 512, None),
    ("split", "f8", (40, 6), (2, 3), {}, 0, 3),
    ("split1", "i2", (25,), (1,), {}, 0, 1),
    ("scalar", "f4", (), (), {}, 0, None),
    ("blosc", "f4", (12, 12), (5, 5), dict(compressors=zarr.codecs.BloscCodec(cname="lz4")), 0, None),
    ("gzip", "i8", (30,), (7,), dict(compressors=zarr.codecs.GzipCodec()), 16, None),
    ("shards", "u2", (16, 16), (2, 2), dict(shards=(8, 8)), 0, None),
    ("names", "i4", (4, 5, 6), (2, 2, 2), dict(dimension_names=["t", None, "x"], attributes={"units": "K"}), 0, 4),
    ("fill", "f8", (8, 8), (4, 4), dict(fill_value=float("nan")), 0, None),
    ("bool", "bool", (13,), (4,), {}, 0, None),
    ("complex", "c8", (6, 2), (2, 2), {}, 0, None),
    ("virtual", "u1", (16, 8), (1, 8), dict(compressors=None, filters=None), 0, 5),
    ("checksums", "u1", (16, 8), (1, 8), dict(compressors=None, filters=None), 0, 5),
]


class Web(http.server.BaseHTTPRequestHandler):
    """Serves bytes(range(256)) under any name, with an entity tag, in ranges."""
    tag, protocol_version = '"1-a"', "HTTP/1.1"

    def do_GET(self):
        body, status, more = bytes(range(256)), 200, {}
        if self.headers.get("If-Match", Web.tag).strip('"') != Web.tag.strip('"'):
            body, status = b"", 412
        elif part := self.headers.get("Range"):
            first, last = (int(x) for x in part.removeprefix("bytes=").split("-"))
            body, status, more = body[first : last + 1], 206, {"Content-Range": f"bytes {first}-{min(last, 255)}/256"}
        self.send_response(status)
        for name, value in {"ETag": Web.tag, "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT", "Content-Length": str(len(body)), **more}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *args):
        pass


web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
web.url = f"http://127.0.0.1:{web.server_port}/"
threading.Thread(target=web.serve_forever, daemon=True).start()


def storage(path):
    return ic.local_filesystem_storage(path)


def make(name, dtype, shape, chunks, settings, inline, split, spec, root, tmp):
    """Writes a repository, and returns the values by reference and array."""
    config = ic.RepositoryConfig.default()
    config.inline_chunk_threshold_bytes = inline
    if split:
        config.manifest = ic.ManifestConfig(splitting=ic.ManifestSplittingConfig.from_dict(
            {ic.ManifestSplitCondition.AnyArray(): {ic.ManifestSplitDimCondition.Any(): split}}))
    folder = os.path.join(tmp, "files")
    os.makedirs(folder, exist_ok=True)
    prefix = f"file://{folder}/"
    blob = os.path.join(folder, "blob.bin")
    with open(blob, "wb") as f:
        f.write(bytes(range(256)))
    time = datetime.datetime.fromtimestamp(os.stat(blob).st_mtime_ns // 10**9 + 1, datetime.timezone.utc)
    config.set_virtual_chunk_container(ic.VirtualChunkContainer(prefix, ic.local_filesystem_store(folder)))
    if name == "checksums":
        config.set_virtual_chunk_container(ic.VirtualChunkContainer(web.url, ic.http_store({"allow_http": "true"})))
    more = {} if spec is None else {"spec_version": spec}
    repo = ic.Repository.create(storage(root), config=config, authorize_virtual_chunk_access=ic.containers_credentials({prefix: None, web.url: None}), **more)
    repo.save_config()
    rng = np.random.default_rng(len(name))
    values = (rng.random(shape) * 100).astype(dtype)

    def commit(message, fn, branch="main"):
        s = repo.writable_session(branch)
        fn(s)
        return s.commit(message)

    def first(s):
        g = zarr.group(s.store, attributes={"title": name})
        a = g.create_array("g/a", shape=shape, chunks=chunks or "auto", dtype=dtype, **settings)
        if name == "checksums":
            s.store.set_virtual_refs("g/a", [
                ic.VirtualChunkSpec([i, 0], web.url + "blob.bin", 8 * i, 8, etag_checksum=Web.tag) if i % 2 else
                ic.VirtualChunkSpec([i, 0], prefix + "blob.bin", 8 * i, 8, last_updated_at_checksum=time)
                for i in range(12)], validate_containers=True)
        elif name == "virtual":
            s.store.set_virtual_refs("g/a", [ic.VirtualChunkSpec([i, 0], prefix + "blob.bin", 8 * i, 8) for i in range(12)], validate_containers=True)
        elif name == "fill":
            a[:4] = values[:4]
        else:
            a[...] = values
        g.create_array("other", shape=(5,), dtype="i4", chunks=(5,))[:] = np.arange(5)

    def second(s):
        g = zarr.open_group(s.store)
        g["g/a"][...] = values if not shape else np.where(np.arange(shape[0]).reshape((-1,) + (1,) * (len(shape) - 1)) == 1, values[0], g["g/a"][...])
        del g["other"]

    commit("first", first)
    repo.create_tag("one", snapshot_id=repo.lookup_branch("main"))
    commit("second", second)
    repo.create_branch("side", snapshot_id=repo.lookup_branch("main"))
    commit("third", lambda s: zarr.open_group(s.store).attrs.update(more=1), "side")
    if shape:
        commit("fourth", lambda s: zarr.open_group(s.store)["g/a"].resize((shape[0] - 2,) + shape[1:]))
    return repo


def read(repo):
    """The arrays of every branch and tag."""
    out = {}
    for kind, names in (("branch", repo.list_branches()), ("tag", repo.list_tags())):
        for n in names:
            g = zarr.open_group(repo.readonly_session(**{kind: n}).store, mode="r")
            out[kind, n] = {path: a[...] for path, a in g.members(max_depth=None) if isinstance(a, zarr.Array)}
    return out


def check(r, case, spec):
    tmp, root = r.tmp, r.path("repo")
    repo = make(*case, spec, root, tmp)
    want = read(repo)
    allow = ("--allow", f"file://{tmp}/", "--allow", web.url)
    for (kind, n), arrays in want.items():
        for path, a in arrays.items():
            r.check(f"file://{root}/|icechunk:@{kind}.{n}/|zarr3:{path}", a, f"in place, {kind} {n}, {path}", flags=allow)
    outs = []
    for link in ((), ("--link",)):
        db = r.path("db" + "".join(link))
        r.run("import", db, f"file://{root}/|icechunk:", "--history", *link, *allow)
        for (kind, n), arrays in want.items():
            for path, a in arrays.items():
                r.check(f"{db}@{n}:{path}", a, f"imported {link}, {kind} {n}, {path}", flags=allow)
        out = r.path("out" + "".join(link))
        r.run("export", db, out, "--format", "icechunk", "--history", *allow)
        prefixes = [f"file://{root}/chunks/", f"file://{tmp}/files/", web.url]
        ours = ic.Repository.open(storage(out), authorize_virtual_chunk_access=ic.containers_credentials({p: None for p in prefixes}))
        got = read(ours)
        if got.keys() != want.keys():
            raise AssertionError(f"exported {link}: {got.keys()} instead of {want.keys()}")
        for key, arrays in want.items():
            if got[key].keys() != arrays.keys():
                raise AssertionError(f"exported {link}, {key}: {got[key].keys()} instead of {arrays.keys()}")
            for path, a in arrays.items():
                same(a, got[key][path], f"exported {link}, {key}, {path}")
        messages = [s.message for s in repo.ancestry(branch="main")]
        theirs = [s.message for s in ours.ancestry(branch="main")]
        if theirs[: len(messages)] != messages:
            raise AssertionError(f"exported {link}: messages {theirs} instead of {messages}")
        s = ours.writable_session("main")
        zarr.open_group(s.store).attrs["by"] = "icechunk"
        s.commit("by icechunk")
        r.check(f"file://{out}/|icechunk:|zarr3:g/a", want["branch", "main"]["g/a"], "after a commit of theirs", flags=allow)
        if case[0] == "checksums":
            outs.append((out, ours, db))
    if outs:
        changed(r, root, tmp, repo, outs, allow)


def changed(r, root, tmp, repo, outs, allow):
    """Both refuse to read a file that was changed, by the repository and its copies."""
    blob = os.path.join(tmp, "files", "blob.bin")
    with open(blob, "r+b") as f:
        f.write(b"x")
    os.utime(blob, (2e9, 2e9))
    Web.tag = '"2-b"'
    def refused(what, fn):
        try:
            fn()
        except Exception as e:
            if "chang" in str(e) or "modified" in str(e):
                return
            raise
        raise AssertionError(f"{what} reads a changed file")
    for chunk in range(2):
        rows = slice(chunk, chunk + 1)
        where = f"{chunk}:{chunk + 1},:"
        refused("icechunk-python", lambda: zarr.open_group(repo.readonly_session(tag="one").store, mode="r")["g/a"][rows])
        refused("zarrdb", lambda: r.run("read", f"file://{root}/|icechunk:@tag.one/|zarr3:g/a", "--select", where, *allow))
        # The first database holds copies, and so does its export.
        out, ours, db = outs[1]
        refused("icechunk-python, of an export,", lambda: zarr.open_group(ours.readonly_session(tag="one").store, mode="r")["g/a"][rows])
        refused("zarrdb, of a link,", lambda: r.run("read", f"{db}@one:g/a", "--select", where, *allow))
    Web.tag = '"1-a"'


def cases():
    for spec in SPECS:
        for case in SETTINGS:
            yield "icechunk", f"{ic.__version__}, specification {spec or 1}, {case[0]}", check, case, spec


main(__doc__, cases())
