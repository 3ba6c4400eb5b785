"""Clients read and write a database that `zarrdb serve` serves.

    serve.py --bin ./zarrdb --docs docs/serving.md [-k SUBSTRING]

Each client has a function; its name in the first table of the document is the one given
to it here. The cells of the second table are in serve_cells.py. A client that is not
installed is skipped by name.
"""
import argparse, functools, http.server, itertools, json, os, pathlib, queue, re, shutil, signal, socket, subprocess, sys, tempfile, threading, time, traceback, urllib.parse, urllib.request

import numpy as np
import zarr

import serve_cells
from serve_cells import Missing, files, tool

DATA = np.arange(12 * 10, dtype="i4").reshape(12, 10)
SECRETS = {"writer": "secret-of-the-writer", "reader": "secret-of-the-reader"}
KEYS = f"""
writer     write:main,write:exp/*  {SECRETS["writer"]}
reader     read        {SECRETS["reader"]}
anonymous  read        -
"""
TESTS = []


def client(name):
    def add(fn):
        TESTS.append((name, fn))
        return fn
    return add


def same(got, want=DATA):
    np.testing.assert_array_equal(np.asarray(got), want)


class Served:
    secret = SECRETS["writer"]

    def __init__(self, args, tmp):
        self.args, self.tmp = args, pathlib.Path(tmp)
        store = self.tmp / "source.zarr"
        for fmt in (3, 2):
            g = zarr.open_group(store if fmt == 3 else self.tmp / "two.zarr", mode="w", zarr_format=fmt)
            g.attrs["title"] = "served"
            a = g.create_array("g/a", shape=DATA.shape, chunks=(5, 4), dtype="i4")
            a[:] = DATA
            if fmt == 3:
                s = g.create_array("sharded", shape=DATA.shape, chunks=(3, 5), shards=(6, 10), dtype="i4")
                s[:] = DATA
                z = g.create_array("g/gzip", shape=DATA.shape, chunks=(5, 4), dtype="i4", compressors=zarr.codecs.GzipCodec())
                z[:] = DATA
        self.zarrdb("init", "w.zdb")
        self.zarrdb("import", "w.zdb", "source.zarr")
        self.zarrdb("tag", "w.zdb", "v1")
        self.zarrdb("branch", "w.zdb", ODD_BRANCH)
        self.zarrdb("import", "w.zdb", "two.zarr", "--to", "two")
        self.pages = Pages(args.zarrita)
        keys = self.tmp / "keys"
        keys.touch(mode=0o600)
        keys.write_text(KEYS)
        command = [os.path.abspath(args.bin), "serve", "w.zdb", "--listen", "127.0.0.1:0", "--s3", "127.0.0.1:0", "--keys", "keys",
                   "--origin", f"http://allowed.example:{self.pages.port}"]
        self.process = subprocess.Popen(command, cwd=self.tmp, stdout=subprocess.PIPE, stderr=open(self.tmp / "log", "w"), text=True)
        self.http = re.fullmatch(r"w.zdb at (http://.*)/w.zdb/v/main/\n", self.process.stdout.readline())[1]
        self.s3 = re.fullmatch(r"S3 at (http://.*)\n", self.process.stdout.readline())[1]
        with urllib.request.urlopen(self.http + "/w.zdb/v/v1/zarr.json") as r:
            self.commit = r.headers["Zarrdb-Commit"]

    def zarrdb(self, *args):
        subprocess.run([os.path.abspath(self.args.bin), *args], cwd=self.tmp, check=True, stdout=subprocess.DEVNULL)

    def end(self):
        if "odd" in self.__dict__:
            self.odd.end()
        self.pages.end()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, (self.tmp / "log").read_text()[-2000:]

    def api(self, method, path, body=None):
        r = urllib.request.Request(self.http + path, method=method, data=None if body is None else json.dumps(body).encode(),
                                   headers={"Authorization": "Bearer " + SECRETS["writer"]})
        with urllib.request.urlopen(r) as res:
            text = res.read()
            return json.loads(text) if text else None

    def begin(self, branch="main"):
        return self.api("POST", "/-/api/sessions", {"db": "w.zdb", "branch": branch})["id"]

    @functools.cached_property
    def odd(self):
        return Odd(self)

    def commits(self, session, check):
        """Commits a session and reads what it holds from the branch."""
        c = self.api("POST", f"/-/api/sessions/w.zdb/{session}/commit", {"message": "by a client"})
        assert c["message"] == "by a client" and c["author"] == "writer", c
        check(c["id"])

    def revisions(self):
        return ["main", "v1", self.commit, "main~0"]

    def env(self, who="writer"):
        return {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")}, "AWS_ACCESS_KEY_ID": who, "AWS_SECRET_ACCESS_KEY": SECRETS[who], "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_EC2_METADATA_DISABLED": "true", "HOME": str(self.tmp)}


def imports(modules):
    """The import map of the packages in a folder, as a browser needs it."""
    def target(e):
        if isinstance(e, dict):
            return next((target(e[k]) for k in ("browser", "import", "default") if k in e), None)
        return e

    found = {}
    for manifest in [*modules.glob("*/package.json"), *modules.glob("@*/*/package.json")]:
        package = json.loads(manifest.read_text())
        exports = package.get("exports") or {".": package.get("module") or package.get("main") or "index.js"}
        if not any(k.startswith(".") for k in exports):
            exports = {".": exports}
        for name, e in exports.items():
            if path := target(e):
                found[(package["name"] + name[1:]).replace("/*", "/")] = f"/{manifest.parent.relative_to(modules)}/{path}".split("*")[0]
    return found


class Pages:
    """A web server of pages that read with zarrita.js."""

    page = """<!DOCTYPE html><script type="importmap">%s</script><script type="module">
import * as zarr from "zarrita"
const out = []
try {
  const store = new zarr.FetchStore(new URLSearchParams(location.search).get("store"))
  for (const path of ["g/a", "sharded", "g/gzip"]) {
    const a = await zarr.open(zarr.root(store).resolve(path), { kind: "array" })
    const got = await zarr.get(a)
    out.push({ shape: got.shape, data: Array.from(got.data) })
  }
} catch (e) { out.push({ error: String(e) }) }
await fetch("/result", { method: "POST", body: JSON.stringify(out) })
</script>"""

    def __init__(self, folder):
        modules = pathlib.Path(folder or ".", "node_modules").resolve()
        page = (self.page % json.dumps({"imports": imports(modules)})).encode()

        class Handler(http.server.SimpleHTTPRequestHandler):
            def do_GET(self):
                if not self.path.startswith("/page?"):
                    return super().do_GET()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(page)

            def do_POST(self):
                results.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *args):
                pass

        self.results = results = queue.Queue()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(modules)))
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()


def read_back(s, commit, path, want=DATA):
    same(zarr.open_array(f"{s.http}/w.zdb/v/{commit}/{path}", mode="r")[:], want)


@client("zarr-python, fsspec http")
def fsspec_http(s):
    for rev in s.revisions():
        g = zarr.open_group(f"{s.http}/w.zdb/v/{rev}", mode="r", use_consolidated=False)
        assert sorted(set(g.keys()) - {"two"}) == ["g", "sharded"], sorted(g.keys())
        same(g["g/a"][:])
        same(g["sharded"][:])
    same(zarr.open_group(f"{s.http}/w.zdb/v/main/two", mode="r")["g/a"][:])
    two = zarr.open_group(f"{s.http}/w.zdb/v2/main", mode="r", zarr_format=2, use_consolidated=False)
    assert "g" in set(two.keys()) and two["g/a"].metadata.zarr_format == 2
    same(two["g/a"][:])


ODD_BRANCH = "exp/odd"
ODD_GROUPS = ["plain", "a b", "100%", "%2F", "%41", "what?", "x?y=1", "#1", "a&b", "a&amp;b", "a+b", "ä", "日本", "..x", "...", "~x", "'q'", '"q"', "<b>", "a:b", "a;b", "(x)", "$x", "@x"]
ODD_FILES = [*ODD_GROUPS, ".hidden", "*", "[x]", "{x}", "|", "a\\b", "tab\tx", "-"]


class Odd:
    """A tree of odd names: in a folder that http.server serves, and in a branch."""

    def __init__(self, s):
        self.folder = s.tmp / "odd"
        root = zarr.open_group(self.folder, mode="w", attributes={"title": "odd"})
        for i, name in enumerate(ODD_GROUPS):
            g = root.create_group(name).create_group(name)
            a = g.create_array("v", shape=(4,), chunks=(2,), dtype="i4", dimension_names=["x"], compressors=None)
            a[:] = np.arange(4) + i + 1
        for i, name in enumerate(ODD_FILES):
            (self.folder / "files" / "deep").mkdir(parents=True, exist_ok=True)
            (self.folder / "files" / "deep" / name).write_bytes(b"%d" % i)
        import pyarrow.parquet
        pyarrow.parquet.write_table(serve_cells.table(), self.folder / "files" / "t.parquet")
        self.files = files(self.folder)
        session = s.begin(ODD_BRANCH)
        s.api("DELETE", f"/w.zdb/v/~{session}/")
        for name, value in self.files.items():
            r = urllib.request.Request(f"{s.http}/w.zdb/v/~{session}/" + urllib.parse.quote(name), method="PUT", data=value,
                                       headers={"Authorization": "Bearer " + SECRETS["writer"]})
            urllib.request.urlopen(r).close()
        s.api("POST", f"/-/api/sessions/w.zdb/{session}/commit", {"message": "odd names"})

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(self.folder)))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.theirs = f"http://127.0.0.1:{self.server.server_port}/"
        self.ours = f"{s.http}/w.zdb/v/exp:odd/"

    def end(self):
        self.server.shutdown()
        self.server.server_close()

    def agree(self, look, ours=None):
        """Compares what a client sees of a served branch with what it sees of the folder."""
        want, got = look(self.theirs), look(ours or self.ours)
        assert want, "the client sees nothing of the folder"
        for name in sorted({*want, *got}, key=str):
            assert want.get(name) == got.get(name), f"{look.__name__} of {name!r}: {got.get(name)!r}, from http.server {want.get(name)!r}"


def see_fsspec(root):
    import fsspec
    fs = fsspec.filesystem("http", skip_instance_cache=True)

    def cut(url):
        assert url.startswith(root.rstrip("/")), url
        return urllib.parse.unquote(url[len(root):])

    seen = {"glob *": sorted(map(cut, fs.glob(root + "*"))), "glob **": sorted(map(cut, fs.glob(root + "**"))),
            "glob below": sorted(map(cut, fs.glob(root + "files/deep/a*")))}
    found = fs.find(root, withdirs=True, detail=True)
    for url, info in found.items():
        seen["find " + cut(url)] = info["type"], fs.isdir(url), fs.exists(url)
        if info["type"] == "file" and url != root:  # find has the root, whose page differs
            seen["cat " + cut(url)] = fs.cat_file(url), fs.size(url)
        else:
            for at in {url, url.rstrip("/"), url.rstrip("/") + "/"}:
                seen["ls " + cut(at)] = sorted((cut(e["name"]).replace("//", "/"), e["type"]) for e in fs.ls(at))
    assert sum(name.startswith("cat ") for name in seen) > 100, len(seen)
    return seen


def see_zarr(root):
    seen = {}
    for url in (root, root.rstrip("/")):
        g = zarr.open_group(url, mode="r", use_consolidated=False)
        seen["keys " + url[len(root):]] = sorted(g.keys())
        for name, node in g.members(max_depth=None):
            seen["member " + name] = node[:].tolist() if isinstance(node, zarr.Array) else sorted(node.keys())
    return seen


def see_xarray(root):
    import xarray as xr
    seen = {}
    for name in ["plain", "a b", "ä", "a+b", "a&b"]:
        for url in (root, root.rstrip("/")):
            with xr.open_zarr(url, group=f"{name}/{name}", consolidated=False) as ds:
                seen[name, url.endswith("/")] = {k: v.values.tolist() for k, v in ds.data_vars.items()}
    assert all(seen.values()), seen
    return seen


def see_wget(root):
    with tempfile.TemporaryDirectory() as dest:
        subprocess.run([tool("wget"), "-q", "-r", "-l", "inf", "-nH", "-R", "index.html*", "--restrict-file-names=nocontrol", "-e", "robots=off", "-P", dest, root],
                       capture_output=True)
        below = files(pathlib.Path(dest, urllib.parse.unquote(urllib.parse.urlparse(root).path).strip("/")))
        assert len(files(pathlib.Path(dest))) == len(below), "wget leaves the tree"
        return below


def see_rclone(root, kind="http"):
    with tempfile.TemporaryDirectory() as dest:
        r = subprocess.run([tool("rclone"), "--config", os.devnull, "copy", f":{kind}:", dest, f"--{kind}-url", root], capture_output=True, text=True)
        assert kind == "http" or r.returncode == 0, r.stderr[-600:]  # a name that rclone refuses fails for http.server too
        return files(pathlib.Path(dest))


def see_duckdb(root):
    c = serve_cells.duck()
    return {"rows": c.execute(f"SELECT * FROM read_parquet('{root}files/t.parquet') WHERE n > 90 ORDER BY n").fetchall()}


# What each client sees over HTTP, and whether a name of it is of what the client reads; None
# if all are files that it lists and reads.
LOOKS = {"fsspec http": (see_fsspec, lambda k: k.startswith("cat ")), "zarr-python, fsspec http": (see_zarr, lambda k: k.startswith("member ")),
         "xarray, fsspec http": (see_xarray, lambda k: True), "wget": (see_wget, None), "rclone http": (see_rclone, None),
         "DuckDB, http": (see_duckdb, lambda k: True)}


@client("fsspec http, zarr-python, xarray, below the root")
def below_root(s):
    for look in (see_fsspec, see_zarr, see_xarray):
        s.odd.agree(look)


@client("wget")
def wget(s):
    s.odd.agree(see_wget)


@client("rclone http")
def rclone_http(s):
    s.odd.agree(see_rclone)


@client("rclone webdav")
def rclone_webdav(s):
    assert see_rclone(s.odd.ours, "webdav") == s.odd.files


@client("nginx with a path prefix")
def nginx(s):
    exe = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    if not exe:
        raise Missing("nginx")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = s.tmp / "nginx"
    folder.mkdir()
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "nginx.conf").write_text(f"""daemon off; master_process off; pid {folder}/pid; error_log {folder}/error; events {{}}
http {{ access_log off; {temporary} server {{ listen 127.0.0.1:{port};
  location /data/ {{ proxy_pass {s.http}/; proxy_set_header X-Forwarded-Prefix /data; }} }} }}""")
    process = subprocess.Popen([exe, "-e", str(folder / "error"), "-p", str(folder), "-c", "nginx.conf"])
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                assert process.poll() is None, (folder / "error").read_text()
                time.sleep(0.05)
        root = f"http://127.0.0.1:{port}/data/w.zdb/v/exp:odd/"
        for look in (see_fsspec, see_zarr, see_xarray, see_wget, see_rclone):
            try:
                s.odd.agree(look, root)
            except Missing:
                pass  # it has a row of its own
        assert see_rclone(root, "webdav") == s.odd.files
    finally:
        process.terminate()
        process.wait()


@client("obstore HTTPStore")
def obstore_http(s):
    from obstore.store import HTTPStore
    from zarr.storage import ObjectStore
    # It takes the paths of a listing from the root of the server, and escapes ~ twice.
    store = ObjectStore(HTTPStore.from_url(s.http, client_options={"allow_http": True}), read_only=True)
    for rev in s.revisions()[:3]:
        g = zarr.open_group(store, path=f"w.zdb/v/{rev}", mode="r", use_consolidated=False)
        assert {"g", "sharded"} <= set(g.keys()), sorted(g.keys())
        same(g["g/a"][:])
        same(g["sharded"][:])
    below = HTTPStore.from_url(f"{s.http}/w.zdb/v/v1", client_options={"allow_http": True})
    same(zarr.open_array(ObjectStore(below, read_only=True), path="g/a", mode="r")[:])


@client("obstore HTTPStore, writing")
def obstore_http_write(s):
    import obstore
    from obstore.store import HTTPStore
    session = s.begin()
    store = HTTPStore.from_url(f"{s.http}/w.zdb/v/~{session}", client_options={
        "allow_http": True, "default_headers": {"Authorization": "Bearer " + SECRETS["writer"]}})
    source = s.tmp / "source.zarr" / "g" / "a"
    for f in source.rglob("*"):
        if f.is_file():
            obstore.put(store, "by_obstore_http/" + f.relative_to(source).as_posix(), f.read_bytes(), use_multipart=False)
    obstore.put(store, "by_obstore_http/gone", b"x", use_multipart=False)
    obstore.delete(store, "by_obstore_http/gone")
    s.commits(session, lambda c: read_back(s, c, "by_obstore_http"))


@client("tensorstore http")
def tensorstore_http(s):
    import tensorstore as ts
    for rev in s.revisions():
        for path in ("g/a", "sharded"):
            a = ts.open({"driver": "zarr3", "kvstore": f"{s.http}/w.zdb/v/{rev}/{path}/"}).result()
            same(a.read().result())
    same(ts.open({"driver": "zarr", "kvstore": f"{s.http}/w.zdb/v/main/two/g/a/"}).result().read().result())
    same(ts.open({"driver": "zarr", "kvstore": f"{s.http}/w.zdb/v2/main/g/gzip/"}).result().read().result())
    same(ts.open({"driver": "zarr3", "kvstore": f"{s.http}/w.zdb/v3/main/two/g/a/"}).result().read().result())


def gdal(s, url, env=None):
    code = ("import sys, rasterio\n"
            "with rasterio.open(sys.argv[1]) as src: print(src.driver, src.read(1).tolist())")
    if not s.args.gdal or not os.path.exists(s.args.gdal):
        raise Missing("GDAL")
    r = subprocess.run([s.args.gdal, "-c", code, url], capture_output=True, text=True, env={**(env or os.environ), "CPL_DEBUG": "ON"})
    assert r.returncode == 0, r.stderr[-3000:]
    driver, _, text = r.stdout.partition(" ")
    assert driver == "Zarr", driver
    same(json.loads(text))


@client("GDAL /vsicurl/")
def gdal_http(s):
    gdal(s, f'ZARR:"/vsicurl/{s.http}/w.zdb/v/main/two/g/a"')
    gdal(s, f'ZARR:"/vsicurl/{s.http}/w.zdb/v2/main/g/a"')  # stored as v3


@client("GDAL /vsis3/")
def gdal_s3(s):
    env = {**s.env("reader"), "AWS_S3_ENDPOINT": s.s3.removeprefix("http://"), "AWS_HTTPS": "NO", "AWS_VIRTUAL_HOSTING": "FALSE", "AWS_REGION": "us-east-1"}
    gdal(s, 'ZARR:"/vsis3/w.zdb/main/two/g/a"', env)


@client("zarrita.js FetchStore, Node")
def zarrita(s):
    if not s.args.zarrita:
        raise Missing("node")
    script = pathlib.Path(s.args.zarrita) / "fetch.mjs"
    script.write_text("""import * as zarr from "zarrita"
const store = new zarr.FetchStore(process.argv[2])
for (const path of ["g/a", "sharded"]) {
  const a = await zarr.open(zarr.root(store).resolve(path), { kind: "array" })
  const got = await zarr.get(a)
  console.log(JSON.stringify([got.shape, Array.from(got.data)]))
}
""")
    for rev in s.revisions():
        out = subprocess.run([tool("node"), str(script.resolve()), f"{s.http}/w.zdb/v/{rev}"], capture_output=True, text=True)
        assert out.returncode == 0, out.stderr[-600:]
        for line in out.stdout.splitlines():
            shape, data = json.loads(line)
            same(np.array(data, "i4").reshape(shape))


@client("zarrita.js FetchStore, browser")
def zarrita_browser(s):
    if not s.args.zarrita:
        raise Missing("node")
    browser = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
    if not browser:
        raise Missing("chromium")

    def page(site, store):
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={s.tmp / 'browser'}",
                   "--remote-debugging-port=0", "--host-resolver-rules=MAP *.example 127.0.0.1",
                   f"http://{site}:{s.pages.port}/page?" + urllib.parse.urlencode({"store": store})]
        with open(s.tmp / "browser.log", "w+") as log:
            r = subprocess.Popen(command, stdout=log, stderr=log)
            try:
                return s.pages.results.get(timeout=120)
            except queue.Empty:
                log.seek(0)
                raise AssertionError("the page sends no result: " + log.read()[-600:])
            finally:
                r.terminate()
                r.wait()

    for rev in s.revisions():
        arrays = page("allowed.example", f"{s.http}/w.zdb/v/{rev}")
        assert len(arrays) == 3, arrays
        for a in arrays:
            same(np.array(a["data"], "i4").reshape(a["shape"]))
    refused = page("other.example", f"{s.http}/w.zdb/v/main")
    assert len(refused) == 1 and "error" in refused[0], refused


def s3fs_options(s, who):
    return {"key": who, "secret": SECRETS[who], "endpoint_url": s.s3, "client_kwargs": {"region_name": "us-east-1"}}


@client("zarr-python, s3fs")
def s3fs_read(s):
    for rev in s.revisions():
        g = zarr.open_group(f"s3://w.zdb/{rev}", mode="r", storage_options=s3fs_options(s, "reader"), use_consolidated=False)
        assert sorted(set(g.keys()) - {"two"} - {k for k in g.keys() if k.startswith("by_")}) == ["g", "sharded"], sorted(g.keys())
        same(g["g/a"][:])
        same(g["sharded"][:])


@client("zarr-python, s3fs, writing")
def s3fs_write(s):
    session = s.begin()
    g = zarr.open_group(f"s3://w.zdb/~{session}", mode="r+", storage_options=s3fs_options(s, "writer"), use_consolidated=False)
    a = g.create_array("by_s3fs", shape=DATA.shape, chunks=(5, 4), dtype="i4")
    a[:] = DATA + 2
    b = g.create_array("gone", shape=DATA.shape, chunks=(5, 4), dtype="i4")
    b[:] = DATA
    del g["gone"]
    same(g["by_s3fs"][:], DATA + 2)
    assert "gone" not in set(g.keys())
    s.commits(session, lambda c: read_back(s, c, "by_s3fs", DATA + 2))


def s3store(s, who, prefix):
    from obstore.store import S3Store
    return S3Store("w.zdb", prefix=prefix, endpoint=s.s3, region="us-east-1", access_key_id=who, secret_access_key=SECRETS[who],
                   virtual_hosted_style_request=False, client_options={"allow_http": True})


@client("obstore S3Store")
def obstore_s3(s):
    from zarr.storage import ObjectStore
    for rev in s.revisions():
        g = zarr.open_group(ObjectStore(s3store(s, "reader", rev), read_only=True), mode="r", use_consolidated=False)
        assert {"g", "sharded"} <= set(g.keys()), sorted(g.keys())
        same(g["g/a"][:])
        same(g["sharded"][:])


@client("obstore S3Store, writing")
def obstore_s3_write(s):
    import obstore
    from zarr.storage import ObjectStore
    session = s.begin()
    raw = s3store(s, "writer", "~" + session)
    a = zarr.create_array(ObjectStore(raw), name="by_obstore", shape=DATA.shape, chunks=(5, 4), dtype="i4")
    a[:] = DATA + 3
    big = os.urandom(12 << 20)
    obstore.put(raw, "by_obstore/big", big, chunk_size=5 << 20)
    assert bytes(obstore.get(raw, "by_obstore/big").bytes()) == big
    obstore.copy(raw, "by_obstore/big", "by_obstore/copy")
    obstore.delete(raw, ["by_obstore/big"])
    try:
        obstore.put(raw, "by_obstore/copy", b"x", mode="create")
        raise AssertionError("a value that was there was created")
    except obstore.exceptions.AlreadyExistsError:
        pass
    s.commits(session, lambda c: read_back(s, c, "by_obstore", DATA + 3))


def ts_s3(s, rev, path):
    return {"driver": "s3", "bucket": "w.zdb", "path": f"{rev}/{path}/", "endpoint": s.s3, "aws_region": "us-east-1", "host_header": s.s3.removeprefix("http://"),
            "aws_credentials": {"type": "environment"}}


@client("tensorstore s3")
def tensorstore_s3(s):
    code = ("import sys, json, tensorstore as ts\nspec = json.loads(sys.argv[1])\n"
            "print(json.dumps(ts.open(spec).result().read().result().tolist()))")
    for rev in s.revisions():
        for path in ("g/a", "sharded"):
            r = subprocess.run([sys.executable, "-c", code, json.dumps({"driver": "zarr3", "kvstore": ts_s3(s, rev, path)})],
                               capture_output=True, text=True, env=s.env("reader"))
            assert r.returncode == 0, r.stderr[-600:]
            same(json.loads(r.stdout))


@client("tensorstore s3, writing")
def tensorstore_s3_write(s):
    session = s.begin()
    code = ("import sys, json, numpy as np, tensorstore as ts\nspec = json.loads(sys.argv[1])\n"
            "a = ts.open(spec, create=True, dtype=ts.int32, shape=[12, 10]).result()\n"
            "a[...] = np.arange(120, dtype='i4').reshape(12, 10) + 4\na[0, 0] = 4")
    r = subprocess.run([sys.executable, "-c", code, json.dumps({"driver": "zarr3", "kvstore": ts_s3(s, "~" + session, "by_ts")})],
                       capture_output=True, text=True, env=s.env())
    assert r.returncode == 0, r.stderr[-600:]
    s.commits(session, lambda c: read_back(s, c, "by_ts", DATA + 4))


def aws(s, *args, who="writer"):
    exe = tool("aws")
    r = subprocess.run([exe, "--endpoint-url", s.s3, "s3", *args], capture_output=True, text=True, env=s.env(who))
    assert r.returncode == 0, r.stderr[-600:] + r.stdout[-200:]
    return r.stdout


@client("aws s3")
def aws_read(s):
    assert "main/" in aws(s, "ls", "s3://w.zdb/", who="reader")
    for rev in s.revisions():
        dest = s.tmp / "aws" / rev
        aws(s, "cp", "--recursive", f"s3://w.zdb/{rev}/g/", str(dest), who="reader")
        same(zarr.open_array(dest / "a", mode="r")[:])


@client("aws s3, writing")
def aws_write(s):
    session = s.begin()
    big = s.tmp / "big"
    big.write_bytes(os.urandom(20 << 20))
    aws(s, "cp", str(big), f"s3://w.zdb/~{session}/by_aws/big")
    aws(s, "cp", f"s3://w.zdb/~{session}/by_aws/big", str(s.tmp / "back"))
    assert (s.tmp / "back").read_bytes() == big.read_bytes()
    aws(s, "cp", "--recursive", str(s.tmp / "source.zarr" / "g"), f"s3://w.zdb/~{session}/by_aws/")
    aws(s, "rm", f"s3://w.zdb/~{session}/by_aws/big")
    s.commits(session, lambda c: read_back(s, c, "by_aws/a"))


def rclone(s, *args, who="writer", log=False):
    conf = s.tmp / "rclone.conf"
    conf.write_text(f"[z]\ntype = s3\nprovider = Other\naccess_key_id = {who}\nsecret_access_key = {SECRETS[who]}\nendpoint = {s.s3}\nregion = us-east-1\n")
    r = subprocess.run([tool("rclone"), "--config", str(conf), *args], capture_output=True, text=True,
                       env={k: v for k, v in os.environ.items() if not k.startswith("AWS_")})
    assert r.returncode == 0, r.stderr[-600:]
    return r.stderr if log else r.stdout


@client("rclone")
def rclone_read(s):
    assert "main/" in rclone(s, "lsf", "z:w.zdb", who="reader")
    for rev in s.revisions():
        dest = s.tmp / "rclone" / rev
        rclone(s, "copy", f"z:w.zdb/{rev}/g", str(dest), who="reader")
        same(zarr.open_array(dest / "a", mode="r")[:])


@client("rclone, writing")
def rclone_write(s):
    session = s.begin()
    rclone(s, "copyto", str(s.tmp / "source.zarr" / "zarr.json"), f"z:w.zdb/~{session}/one.json")
    rclone(s, "copy", str(s.tmp / "source.zarr" / "g"), f"z:w.zdb/~{session}/by_rclone")
    rclone(s, "check", str(s.tmp / "source.zarr" / "g"), f"z:w.zdb/~{session}/by_rclone", "--download")
    rclone(s, "deletefile", f"z:w.zdb/~{session}/by_rclone/a/c/0/0")
    rclone(s, "copy", str(s.tmp / "source.zarr" / "g"), f"z:w.zdb/~{session}/by_rclone")
    s.commits(session, lambda c: read_back(s, c, "by_rclone/a"))


def tree(s, name):
    """A copy of an array that a program synchronizes, and its chunk that changes at equal size."""
    dest = s.tmp / name
    shutil.copytree(s.tmp / "source.zarr" / "g", dest)
    return dest, dest / "a" / "c" / "0" / "0"


def syncs(s, name, sync, up, down):
    """What differs is copied, and nothing else, in both directions; sync returns the copied names."""
    session = s.begin()
    local, chunk = tree(s, name)
    remote = f"~{session}/{name}"
    n = sum(p.is_file() for p in local.rglob("*"))
    assert len(sync(up, local, remote)) == n
    assert sync(up, local, remote) == []
    s.commits(session, lambda c: read_back(s, c, name + "/a"))
    time.sleep(1.1)  # programs compare seconds
    chunk.write_bytes(bytes(255 - b for b in chunk.read_bytes()))
    session = s.begin()
    remote = f"~{session}/{name}"
    assert [p.endswith("a/c/0/0") for p in sync(up, local, remote)] == [True]
    s.commits(session, lambda c: None)
    back = s.tmp / (name + ".back")
    back.mkdir()
    assert len(sync(down, back, f"main/{name}")) == n
    assert sync(down, back, f"main/{name}") == []
    assert (back / "a/c/0/0").read_bytes() == chunk.read_bytes()
    time.sleep(1.1)
    session = s.begin()
    chunk.write_bytes(bytes(len(chunk.read_bytes())))
    sync(up, local, f"~{session}/{name}")
    s.commits(session, lambda c: None)
    assert [p.endswith("a/c/0/0") for p in sync(down, back, f"main/{name}")] == [True]
    assert (back / "a/c/0/0").read_bytes() == chunk.read_bytes()


@client("aws s3 sync")
def aws_sync(s):
    def sync(how, local, remote):
        remote = "s3://w.zdb/" + remote
        out = aws(s, "sync", "--no-progress", str(local), remote) if how == "up" else aws(s, "sync", "--no-progress", "--exact-timestamps", remote, str(local))
        return [line.split(" to ")[0].split(": ")[1] for line in out.splitlines() if "load: " in line]

    syncs(s, "sync_aws", sync, "up", "down")


@client("rclone sync")
def rclone_sync(s):
    for name, flags in (("plain", []), ("update", ["--update"]), ("checksum", ["--checksum"])):
        def sync(how, local, remote):
            pair = [str(local), "z:w.zdb/" + remote]
            out = rclone(s, "sync", "-v", *flags, *(pair if how == "up" else pair[::-1]), log=True)
            return [line.split(": ")[1] for line in out.splitlines() if ": Copied" in line]

        syncs(s, "sync_rclone_" + name, sync, "up", "down")


@client("s3cmd sync")
def s3cmd_sync(s):
    exe = tool("s3cmd")
    conf = s.tmp / "s3cfg"
    host = s.s3.removeprefix("http://")
    conf.write_text(f"[default]\naccess_key = writer\nsecret_key = {SECRETS['writer']}\nhost_base = {host}\nhost_bucket = {host}\nuse_https = False\n")

    def sync(how, local, remote):
        pair = [f"{local}/", f"s3://w.zdb/{remote}/"]
        r = subprocess.run([exe, "-c", str(conf), "--no-progress", "sync", *(pair if how == "up" else pair[::-1])], capture_output=True, text=True)
        assert r.returncode == 0 and "ERROR" not in r.stderr, r.stderr[-600:]
        return [line.split("'")[1] for line in r.stdout.splitlines() if "load: " in line]

    syncs(s, "sync_s3cmd", sync, "up", "down")


@client("pyarrow, writing")
def pyarrow_write(s):
    import pyarrow as pa
    import pyarrow.fs
    import pyarrow.parquet as pq
    session = s.begin()
    fs = pyarrow.fs.S3FileSystem(access_key="writer", secret_key=SECRETS["writer"], endpoint_override=s.s3.removeprefix("http://"), scheme="http", region="us-east-1")
    table = pa.table({"a": list(range(1000))})
    fs.create_dir(f"w.zdb/~{session}/table/part")
    pq.write_table(table, f"w.zdb/~{session}/table/part/t.parquet", filesystem=fs)
    assert pq.read_table(f"w.zdb/~{session}/table/part/t.parquet", filesystem=fs).equals(table)
    assert sorted(f.base_name for f in fs.get_file_info(pyarrow.fs.FileSelector(f"w.zdb/~{session}/table", recursive=True))) == ["part", "t.parquet"]
    s.commits(session, lambda c: None)


@client("curl, writing")
def curl(s):
    session = s.begin()
    exe = tool("curl")
    url = f"{s.http}/w.zdb/v/~{session}/by_curl"
    def run(*args):
        r = subprocess.run([exe, "-sS", "-u", "writer:" + SECRETS["writer"], "-w", "%{http_code}", *args], capture_output=True, text=True)
        return r.stdout
    assert run("-T", str(s.tmp / "source.zarr" / "zarr.json"), url) == "201"
    assert run("-X", "PUT", "--data-binary", "x", "-H", "If-None-Match: *", url).endswith("412")
    assert run("-r", "0-0", url) == "{206"
    assert run("-X", "DELETE", url) == "204"
    s.api("DELETE", f"/-/api/sessions/w.zdb/{session}")


def table(path):
    """The clients of the document and whether they work."""
    rows = {}
    for line in pathlib.Path(path).read_text().splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and cells[2] in ("yes", "no"):
            rows[cells[0]] = cells[2] == "yes"
    return rows


def grid(path):
    """The lines of the table of cells in the document, by client."""
    rows = {}
    for text in pathlib.Path(path).read_text().splitlines():
        cells = [c.strip() for c in text.strip().strip("|").split("|")]
        if text.startswith("|") and len(cells) == 1 + len(serve_cells.CELLS) and cells[1] in ("yes", "no", "differs", "–"):
            rows[cells[0]] = text
    return rows


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bin", required=True)
    p.add_argument("--docs", required=True)
    p.add_argument("--gdal")
    p.add_argument("--zarrita")
    p.add_argument("-k", default="")
    args = p.parse_args()
    rows = table(args.docs)
    wrong = [f"docs/serving.md has no row {name!r}" for name, _ in TESTS if name not in rows]
    wrong += [f"docs/serving.md has a row {name!r} that nothing tests" for name in rows if name not in dict(TESTS)]
    with tempfile.TemporaryDirectory() as tmp:
        s = Served(args, tmp)
        for name, fn in TESTS:
            if args.k not in name:
                continue
            try:
                fn(s)
                works = True
            except Missing as e:
                print(f"skip  {name}: {e} is not installed")
                continue
            except Exception:
                works = False
                if rows.get(name, True):
                    traceback.print_exc()
            print(("ok   " if works else "fails"), name, flush=True)
            if rows.get(name) is not None and rows[name] != works:
                wrong.append(f"{name}: the table says {'yes' if rows[name] else 'no'}")
        want, count, tested = grid(args.docs), 0, set()
        for name, row, notes in itertools.chain(serve_cells.http(s.odd, {n: l for n, l in LOOKS.items() if args.k in n}), serve_cells.s3(s, args.k)):
            tested.add(name)
            if row is None:
                print(f"skip  cells of {name}: {notes[0]}")
                continue
            count += len(row)
            text = serve_cells.line(name, row)
            print("cells", text, flush=True)
            if want.get(name) != text:
                wrong += [f"the table of cells has for {name}: {want.get(name)}", "  it should have: " + text, *notes]
        if not args.k:
            wrong += [f"docs/serving.md has cells of {name!r} that nothing tests" for name in want if name not in tested]
        print(count, "cells")
        s.end()
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


main()
