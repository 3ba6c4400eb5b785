"""What each client does, cell by cell: with a served database, and with a server of reference.

The reference of S3 is moto, that of HTTP is http.server of the same files. A cell is "yes"
if the client has the same result with both. Imported by serve.py.
"""
import contextlib, functools, json, os, pathlib, re, shutil, subprocess, sys, tempfile, time

import numpy as np

CELLS = ["lists", "reads", "writes", "tree", "syncs", "deletes"]
# Consolidated metadata of a group that is not there: a client uploads it before the tree.
GROUP = b'{"zarr_format":3,"node_type":"group","consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":{"gone":{}}}}'
FILES = {"g/a/c/0/0": b"first", "g/a/c/0/1": b"second", "g/a/zarr.json": b"{}", "g/zarr.json": b"{}", "zarr.json": GROUP, "odd/a b": b"1", "odd/ä": b"2",
         "odd/a+b": b"3", "odd/100%": b"4", "odd/%2F": b"5", "odd/a=b&c": b"6", "odd/日本": b"7", "g.txt": b"8", "g/a/empty": b""}
CLIENTS = {}


class Missing(Exception):
    """A client that is not installed."""


class Absent(Exception):
    """What the client reads does not exist."""


def tool(name):
    path = shutil.which(name, path=os.path.dirname(sys.executable) + ":" + os.environ["PATH"])
    if not path:
        raise Missing(name)
    return path


def client(name):
    def add(kind):
        CLIENTS[name] = kind
        return kind
    return add


class Place:
    """A bucket of a server, a prefix in it, and who uses it."""

    def __init__(self, endpoint, prefix, key, secret, home, bucket="w.zdb"):
        self.endpoint, self.bucket, self.prefix, self.key, self.secret, self.home = endpoint, bucket, prefix, key, secret, home
        self.host = endpoint.removeprefix("http://")
        self.env = {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")}, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret,
                    "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", "HOME": str(home)}

    def key_of(self, name):
        return f"{self.prefix}/{name}" if name else self.prefix + "/"

    def path(self, name):
        return f"{self.bucket}/{self.key_of(name)}"

    def url(self, name):
        return "s3://" + self.path(name)


def run(command, env, binary=False, full=False):
    r = subprocess.run(command, capture_output=True, env=env)
    err = r.stderr.decode(errors="replace")
    if r.returncode != 0:
        raise (Absent if any(t in err for t in ("404", "NoSuchKey", "not found", "Not Found", "does not exist")) else RuntimeError)(f"{' '.join(command[:6])}…: {err[-600:]}")
    out = r.stdout if binary else r.stdout.decode()
    return (out, err) if full else out


class Client:
    """The operations of a client. Names are relative to the place. Operations that are None are not tested."""

    ls = find = get = put = up = fetch = sync = down = rm = rmtree = mkdir = None

    def __init__(self, place):
        self.p = place


@client("aws s3")
class Aws(Client):
    def aws(self, *args, **o):
        return run([tool("aws"), "--endpoint-url", self.p.endpoint, "s3", *args], self.p.env, **o)

    def ls(self, name):
        try:
            out = self.aws("ls", self.p.url(name))
        except RuntimeError:
            return []  # it exits with 1 for an empty listing
        return [line[31:] if line[27:30] != "PRE" else line[31:] for line in out.splitlines()]

    def find(self, name):
        out = self.aws("ls", "--recursive", self.p.url(name))
        return [(line[31:].removeprefix(self.p.key_of(name)), int(line[19:30])) for line in out.splitlines()]

    def get(self, name):
        return self.aws("cp", self.p.url(name), "-", binary=True)

    def fetch(self, name, folder):
        self.aws("cp", "--recursive", self.p.url(name), str(folder))

    def put(self, name, file):
        self.aws("cp", str(file), self.p.url(name))

    def up(self, folder, name):
        self.aws("cp", "--recursive", str(folder), self.p.url(name))

    def _sync(self, *pair):
        out = self.aws("sync", "--no-progress", "--exact-timestamps", "--delete", *pair)
        return sorted((line.split(": ")[0], os.path.basename(line.split(" to ")[0])) for line in out.splitlines())

    def sync(self, folder, name):
        return self._sync(str(folder), self.p.url(name))

    def down(self, name, folder):
        return self._sync(self.p.url(name), str(folder))

    def rm(self, name):
        self.aws("rm", self.p.url(name))

    def rmtree(self, name):
        self.aws("rm", "--recursive", self.p.url(name))


@client("rclone")
class Rclone(Client):
    flags = []

    def rclone(self, *args, **o):
        env = {**self.p.env, "RCLONE_CONFIG_Z_TYPE": "s3", "RCLONE_CONFIG_Z_PROVIDER": "Other", "RCLONE_CONFIG_Z_ACCESS_KEY_ID": self.p.key,
               "RCLONE_CONFIG_Z_SECRET_ACCESS_KEY": self.p.secret, "RCLONE_CONFIG_Z_ENDPOINT": self.p.endpoint, "RCLONE_CONFIG_Z_REGION": "us-east-1"}
        return run([tool("rclone"), "--config", os.devnull, *args], env, **o)

    def at(self, name):
        return "z:" + self.p.path(name)

    def ls(self, name):
        return self.rclone("lsf", self.at(name)).splitlines()

    def find(self, name):
        return [(f["Path"], f["Size"]) for f in json.loads(self.rclone("lsjson", "-R", "--files-only", self.at(name)))]

    def get(self, name):
        return self.rclone("cat", self.at(name), binary=True)

    def fetch(self, name, folder):
        self.rclone("copy", self.at(name), str(folder))

    def put(self, name, file):
        self.rclone("copyto", str(file), self.at(name))

    def up(self, folder, name):
        self.rclone("copy", str(folder), self.at(name))
        self.rclone("check", str(folder), self.at(name))

    def _sync(self, *pair):
        _, err = self.rclone("sync", "-v", *self.flags, *pair, full=True)
        return sorted((line.split(": ")[-1].split(" ")[0], line.split(": ")[-2]) for line in err.splitlines() if ": Copied" in line or ": Deleted" in line)

    def sync(self, folder, name):
        return self._sync(str(folder), self.at(name))

    def down(self, name, folder):
        return self._sync(self.at(name), str(folder))

    def rm(self, name):
        self.rclone("deletefile", self.at(name))

    def rmtree(self, name):
        self.rclone("purge", self.at(name))

    def mkdir(self, name):
        self.rclone("mkdir", self.at(name))


@client("rclone --checksum")
class RcloneChecksum(Rclone):
    flags = ["--checksum"]


@client("rclone --update")
class RcloneUpdate(Rclone):
    flags = ["--update"]


@client("s3cmd")
class S3cmd(Client):
    def s3cmd(self, *args, **o):
        conf = self.p.home / "s3cfg-cells"
        conf.write_text(f"[default]\naccess_key = {self.p.key}\nsecret_key = {self.p.secret}\nhost_base = {self.p.host}\nhost_bucket = {self.p.host}\nuse_https = False\n")
        out, err = run([tool("s3cmd"), "-c", str(conf), "--no-progress", *args], self.p.env, full=True)
        assert "ERROR" not in err, err[-600:]
        return out

    def ls(self, name):
        return [line.split("s3://", 1)[1].removeprefix(self.p.path(name)) for line in self.s3cmd("ls", self.p.url(name)).splitlines()]

    def find(self, name):
        lines = self.s3cmd("ls", "-r", self.p.url(name)).splitlines()
        return [(line.split("s3://", 1)[1].removeprefix(self.p.path(name)), line.split()[2]) for line in lines]

    def get(self, name):
        with tempfile.TemporaryDirectory() as tmp:
            self.s3cmd("get", self.p.url(name), tmp + "/x")
            return pathlib.Path(tmp, "x").read_bytes()

    def fetch(self, name, folder):
        self.s3cmd("get", "--recursive", self.p.url(name), f"{folder}/")

    def put(self, name, file):
        self.s3cmd("put", str(file), self.p.url(name))

    def up(self, folder, name):
        self.s3cmd("put", "--recursive", f"{folder}/", self.p.url(name))

    def _sync(self, *pair):
        out = self.s3cmd("sync", "--delete-removed", *pair)
        return sorted((line.split(": ")[0], os.path.basename(line.split("'")[1])) for line in out.splitlines() if line.startswith(("upload:", "download:", "delete:")))

    def sync(self, folder, name):
        return self._sync(f"{folder}/", self.p.url(name))

    def down(self, name, folder):
        return self._sync(self.p.url(name), f"{folder}/")

    def rm(self, name):
        self.s3cmd("del", self.p.url(name))

    def rmtree(self, name):
        self.s3cmd("del", "--recursive", self.p.url(name))


@client("boto3")
class Boto3(Client):
    @functools.cached_property
    def s3(self):
        import boto3
        from botocore.config import Config
        return boto3.client("s3", endpoint_url=self.p.endpoint, aws_access_key_id=self.p.key, aws_secret_access_key=self.p.secret, region_name="us-east-1",
                            config=Config(s3={"addressing_style": "path"}))

    def _list(self, name, **o):
        base = self.p.key_of(name)
        for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.p.bucket, Prefix=base, PaginationConfig={"PageSize": 3}, **o):
            yield from ((d["Prefix"].removeprefix(base), None) for d in page.get("CommonPrefixes", []))
            yield from ((f["Key"].removeprefix(base), f["Size"]) for f in page.get("Contents", []))

    def ls(self, name):
        return [n for n, _ in self._list(name, Delimiter="/")]

    def find(self, name):
        return list(self._list(name))

    def get(self, name):
        try:
            return self.s3.get_object(Bucket=self.p.bucket, Key=self.p.key_of(name))["Body"].read()
        except self.s3.exceptions.NoSuchKey:
            raise Absent

    def put(self, name, file):
        self.s3.upload_file(str(file), self.p.bucket, self.p.key_of(name))

    def up(self, folder, name):
        for f in sorted(folder.rglob("*")):
            if f.is_file():
                self.put(name + f.relative_to(folder).as_posix(), f)

    def rm(self, name):
        self.s3.delete_object(Bucket=self.p.bucket, Key=self.p.key_of(name))

    def rmtree(self, name):
        out = self.s3.delete_objects(Bucket=self.p.bucket, Delete={"Objects": [{"Key": self.p.key_of(name + n)} for n, _ in self.find(name)]})
        assert not out.get("Errors"), out


@client("s3fs")
class S3fs(Client):
    @functools.cached_property
    def fs(self):
        import s3fs
        return s3fs.S3FileSystem(key=self.p.key, secret=self.p.secret, endpoint_url=self.p.endpoint, client_kwargs={"region_name": "us-east-1"},
                                 use_listings_cache=False, skip_instance_cache=True)

    def ls(self, name):
        base = self.p.path(name)
        return [(e["name"] + "/" * (e["type"] == "directory")).removeprefix(base) for e in self.fs.ls(base, detail=True)]

    def find(self, name):
        base = self.p.path(name)
        base = base.rstrip("/")
        seen = [(n.removeprefix(base), e["size"]) for n, e in self.fs.find(base + "/", detail=True).items()]
        return seen + [(n.removeprefix(base), "glob") for n in self.fs.glob(base + "/**")] + [(d.removeprefix(base.rstrip("/")), sorted(ds)) for d, ds, _ in self.fs.walk(base + "/")]

    def get(self, name):
        try:
            return self.fs.cat_file(self.p.path(name))
        except FileNotFoundError:
            raise Absent

    def put(self, name, file):
        self.fs.put_file(str(file), self.p.path(name))
        assert self.fs.isfile(self.p.path(name)) and not self.fs.isdir(self.p.path(name))

    def up(self, folder, name):
        self.fs.put(f"{folder}/", self.p.path(name), recursive=True)

    def mkdir(self, name):
        self.fs.makedirs(self.p.path(name), exist_ok=True)

    def rm(self, name):
        self.fs.rm_file(self.p.path(name))

    def rmtree(self, name):
        self.fs.rm(self.p.path(name), recursive=True)


@client("pyarrow")
class Pyarrow(Client):
    @functools.cached_property
    def fs(self):
        import pyarrow.fs
        return pyarrow.fs.S3FileSystem(access_key=self.p.key, secret_key=self.p.secret, endpoint_override=self.p.host, scheme="http", region="us-east-1")

    def _list(self, name, recursive):
        import pyarrow.fs
        base = self.p.path(name)
        try:
            found = self.fs.get_file_info(pyarrow.fs.FileSelector(base, recursive=recursive))
        except FileNotFoundError:
            return []
        return [(f.path.removeprefix(base) + "/" * (f.type == pyarrow.fs.FileType.Directory), f.size) for f in found]

    def ls(self, name):
        return [n for n, _ in self._list(name, False)]

    def find(self, name):
        return self._list(name, True)

    def get(self, name):
        try:
            return self.fs.open_input_stream(self.p.path(name)).read()
        except FileNotFoundError:
            raise Absent

    def put(self, name, file):
        with self.fs.open_output_stream(self.p.path(name)) as f:
            f.write(file.read_bytes())

    def up(self, folder, name):
        import pyarrow.fs
        self.fs.create_dir(self.p.path(name).rstrip("/"))
        pyarrow.fs.copy_files(str(folder), self.p.path(name).rstrip("/"), destination_filesystem=self.fs)

    def mkdir(self, name):
        self.fs.create_dir(self.p.path(name).rstrip("/"))

    def rm(self, name):
        self.fs.delete_file(self.p.path(name))

    def rmtree(self, name):
        self.fs.delete_dir(self.p.path(name).rstrip("/"))


@client("obstore")
class Obstore(Client):
    @functools.cached_property
    def store(self):
        from obstore.store import S3Store
        return S3Store(self.p.bucket, prefix=self.p.prefix, endpoint=self.p.endpoint, region="us-east-1", access_key_id=self.p.key, secret_access_key=self.p.secret,
                       virtual_hosted_style_request=False, client_options={"allow_http": True})

    def ls(self, name):
        import obstore
        found = obstore.list_with_delimiter(self.store, name.rstrip("/"))
        return sorted(found["common_prefixes"]) + [f["path"] for f in found["objects"]]

    def find(self, name):
        import obstore
        return [(f["path"].removeprefix(name), f["size"]) for page in obstore.list(self.store, name.rstrip("/")) for f in page]

    def get(self, name):
        import obstore
        try:
            return bytes(obstore.get(self.store, name).bytes())
        except (FileNotFoundError, obstore.exceptions.NotFoundError):
            raise Absent

    def put(self, name, file):
        import obstore
        obstore.put(self.store, name, file)
        obstore.copy(self.store, name, name + ".copy")
        obstore.rename(self.store, name + ".copy", name + ".moved")
        try:
            obstore.put(self.store, name, b"x", mode="create")
            raise RuntimeError("a value that exists was created")
        except obstore.exceptions.AlreadyExistsError:
            pass

    def up(self, folder, name):
        import obstore
        for f in sorted(folder.rglob("*")):
            if f.is_file():
                obstore.put(self.store, name + f.relative_to(folder).as_posix(), f)

    def rm(self, name):
        import obstore
        obstore.delete(self.store, name)

    def rmtree(self, name):
        import obstore
        obstore.delete(self.store, [name + n for n, _ in self.find(name)])


@client("AWS SDK for JavaScript")
class JavaScript(Client):
    modules = None

    def js(self, operation, name, *more):
        if not self.modules:
            raise Missing("node")
        script = self.modules / "s3client.mjs"
        shutil.copy(pathlib.Path(__file__).parent / "s3client.mjs", script)
        return json.loads(run([tool("node"), str(script.resolve()), self.p.endpoint, self.p.bucket, operation, self.p.key_of(name), *more], self.p.env))

    def ls(self, name):
        return [n for n, _ in self.js("ls", name)]

    def find(self, name):
        return self.js("find", name)

    def get(self, name):
        return bytes.fromhex(self.js("get", name))

    def put(self, name, file):
        self.js("put", name, str(file))

    def up(self, folder, name):
        self.js("put", name.rstrip("/"), str(folder))

    def fetch(self, name, folder):
        for n, data in self.js("fetch", name):
            (folder / n).parent.mkdir(parents=True, exist_ok=True)
            (folder / n).write_bytes(bytes.fromhex(data))

    def rm(self, name):
        self.js("rm", name)

    def rmtree(self, name):
        self.js("rmtree", name)


def absent(fn, *args):
    """What reading something that does not exist does."""
    try:
        return fn(*args)
    except Absent:
        return "absent"


def files_cells(c, work):
    """Yields the cells of a client for files: names and functions that return what it sees."""
    folder = work / "tree"
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    big = work / "big"
    big.write_bytes(bytes(range(256)) * (12 << 12))  # 12 MiB: several parts

    def writes():
        c.put("one/x", folder / "zarr.json")
        c.put("one/big", big)
        if c.mkdir:
            c.mkdir("made/deep/")
        assert c.get("one/big") == big.read_bytes()
        c.put("one/x", folder / "g.txt")
        return sorted(c.ls("one/")), c.get("one/x")

    yield "writes", writes

    def tree():
        c.up(folder, "t/")
        return sorted(map(tuple, c.find("t/")), key=str)

    yield "tree", tree
    yield "lists", lambda: {at: absent(lambda: sorted(n for n in c.ls(at) if n)) for at in ("", "t/", "t/g/", "t/odd/")}

    def reads():
        if not c.fetch:
            return {name: c.get("t/" + name) for name in FILES}, absent(c.get, "t/g/none")
        dest = work / "fetched"
        dest.mkdir()
        c.fetch("t/g/", dest)
        c.fetch("t/odd/", dest)
        return files(dest), c.get("t/odd/100%"), absent(c.get, "t/none")

    yield "reads", reads

    if c.sync:
        def syncs():
            seen = [c.sync(folder, "s/"), c.sync(folder, "s/")]
            assert seen[1] == [], f"the second time it copies {seen[1]}"
            time.sleep(1.1)  # programs compare seconds
            (folder / "g/a/c/0/0").write_bytes(b"FIRST")
            (folder / "g/zarr.json").unlink()
            (folder / "g/new").write_bytes(b"new")
            time.sleep(1.1)  # aws copies a file again that changed in the second of its upload
            seen += [c.sync(folder, "s/"), c.sync(folder, "s/")]
            back = work / "back"
            back.mkdir()
            seen += [c.down("s/", back), c.down("s/", back)]
            assert files(back) == files(folder)
            return seen

        yield "syncs", syncs

    def deletes():
        c.rm("one/x")
        c.rmtree("t/g/")
        return sorted(map(str, c.find("t/"))), sorted(c.ls("one/")), sorted(n for n in c.ls("t/") if n)

    yield "deletes", deletes


def files(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def table():
    import pyarrow as pa
    return pa.table({"k": ["a", "b"] * 50, "n": list(range(100))})


@client("polars")
def polars(p, work):
    import polars as pl
    o = {"aws_access_key_id": p.key, "aws_secret_access_key": p.secret, "aws_endpoint_url": p.endpoint, "aws_region": "us-east-1", "aws_allow_http": "true",
         "aws_virtual_hosted_style_request": "false"}
    df = pl.from_arrow(table())

    def writes():
        df.write_parquet(p.url("one.parquet"), storage_options=o)
        return pl.read_parquet(p.url("one.parquet"), storage_options=o).equals(df)

    yield "writes", writes
    yield "tree", lambda: df.lazy().sink_parquet(pl.PartitionBy(p.url("t/"), key="k"), storage_options=o, mkdir=True)
    yield "lists", lambda: [n.rsplit(p.prefix, 1)[1] for n in pl.scan_parquet(p.url("t/"), storage_options=o, include_file_paths="path").select("path").unique().sort("path").collect()["path"]]
    yield "reads", lambda: pl.scan_parquet(p.url("t/"), storage_options=o, hive_partitioning=True).filter(pl.col("n") > 90).sort("n").collect().rows()


def duck():
    import duckdb, duckdb_extension_httpfs
    c = duckdb.connect()
    extension = next(pathlib.Path(duckdb_extension_httpfs.__file__).parent.rglob("httpfs.duckdb_extension"))
    c.execute(f"LOAD '{extension}'")
    return c


@client("DuckDB")
def duckdb_s3(p, work):
    c = duck()
    c.execute(f"CREATE SECRET (TYPE s3, KEY_ID '{p.key}', SECRET '{p.secret}', REGION 'us-east-1', ENDPOINT '{p.host}', URL_STYLE 'path', USE_SSL false)")
    c.register("t", table())

    def writes():
        c.execute(f"COPY t TO '{p.url('one.parquet')}'")
        return c.execute(f"SELECT sum(n), count(DISTINCT k) FROM '{p.url('one.parquet')}'").fetchall()

    yield "writes", writes
    yield "tree", lambda: c.execute(f"COPY t TO '{p.url('t')}' (FORMAT parquet, PARTITION_BY k)").fetchall()
    yield "lists", lambda: [n.rsplit(p.prefix, 1)[1] for n, in c.execute(f"SELECT file FROM glob('{p.url('**')}') ORDER BY 1").fetchall()]
    yield "reads", lambda: c.execute(f"SELECT * FROM read_parquet('{p.url('t/*/*.parquet')}', hive_partitioning = true) WHERE n > 90 ORDER BY n").fetchall()


@client("deltalake")
def deltalake(p, work):
    from deltalake import DeltaTable, write_deltalake
    o = {"aws_access_key_id": p.key, "aws_secret_access_key": p.secret, "aws_endpoint_url": p.endpoint, "aws_region": "us-east-1", "aws_allow_http": "true",
         "aws_virtual_hosted_style_request": "false", "aws_conditional_put": "etag"}

    def opened(**more):
        return DeltaTable(p.url("d"), storage_options=o, **more)

    def rows(dt):
        return sorted(map(str, dt.to_pyarrow_table().to_pylist()))

    def writes():
        for mode in ("append", "append", "overwrite"):
            write_deltalake(p.url("d"), table(), mode=mode, storage_options=o)
        return opened().version()

    yield "writes", writes
    yield "tree", lambda: write_deltalake(p.url("parts"), table(), partition_by="k", storage_options=o)
    yield "lists", lambda: (len(opened().file_uris()), [h["operation"] for h in opened().history()], DeltaTable.is_deltatable(p.url("none"), storage_options=o))
    yield "reads", lambda: (rows(opened()), len(rows(opened(version=1))), len(rows(DeltaTable(p.url("parts"), storage_options=o))))

    def deletes():
        opened().delete("n < 50")
        gone = opened().vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        return rows(opened()), len(gone)

    yield "deletes", deletes


def dataset(i=0):
    import xarray as xr
    return xr.Dataset({"v": (("y", "x"), np.arange(12.0).reshape(3, 4) + i)}, {"x": np.arange(4)}, {"title": "ä"})


@client("xarray, s3fs")
def xarray_s3(p, work):
    import warnings
    import xarray as xr
    warnings.simplefilter("ignore")
    o = {"key": p.key, "secret": p.secret, "endpoint_url": p.endpoint, "client_kwargs": {"region_name": "us-east-1"}}

    def show(ds):
        return json.dumps(ds.to_dict(), default=str, sort_keys=True)

    def writes():
        dataset().to_zarr(p.url("x.zarr"), storage_options=o, mode="w")
        dataset(1).to_zarr(p.url("x.zarr"), group="g/sub", storage_options=o, mode="a")
        dataset(2).to_zarr(p.url("x.zarr"), group="g/sub", storage_options=o, append_dim="y")
        return show(xr.open_zarr(p.url("x.zarr"), group="g/sub", storage_options=o, consolidated=False))

    yield "writes", writes

    def tree():
        xr.DataTree.from_dict({"/": dataset(), "/a": dataset(1), "/a/b": dataset(2)}).to_zarr(p.url("tree.zarr"), storage_options=o, mode="w")
        return {n: show(ds) for n, ds in xr.open_groups(p.url("tree.zarr"), engine="zarr", storage_options=o).items()}

    yield "tree", tree
    yield "lists", lambda: sorted(n.path for n in xr.open_datatree(p.url("tree.zarr"), engine="zarr", storage_options=o, consolidated=False).subtree)
    yield "reads", lambda: {g: show(xr.open_zarr(p.url("tree.zarr"), group=g, storage_options=o)) for g in ("/", "a", "a/b")}

    def deletes():
        dataset(5).drop_vars("x").to_zarr(p.url("x.zarr"), group="g/sub", storage_options=o, mode="w")
        return show(xr.open_zarr(p.url("x.zarr"), group="g/sub", storage_options=o, consolidated=False))

    yield "deletes", deletes


def see(make, place, work):
    """What a client sees, cell by cell. A failed cell has its exception."""
    work.mkdir(parents=True)
    seen = {}
    for cell, fn in files_cells(make(place), work) if isinstance(make, type) else make(place, work):
        try:
            seen[cell] = fn()
        except Missing:
            raise
        except Exception as e:
            seen[cell] = e
    return seen


@contextlib.contextmanager
def moto(log):
    """Runs the server of reference. It is a process of its own: deltalake holds the lock of the interpreter while it waits."""
    with open(log, "w") as f:
        process = subprocess.Popen([sys.executable, "-c", "import sys; from moto.server import main; sys.exit(main(['-H', '127.0.0.1', '-p', '0']))"], stdout=f, stderr=f)
    try:
        while not (found := re.search(r"Running on (http://\S+)", log.read_text())):
            assert process.poll() is None, log.read_text()[-2000:]
            time.sleep(0.1)
        yield found[1]
    finally:
        process.terminate()
        process.wait()


def http(odd, looks):
    """Yields a row for each client that reads over HTTP. A look returns what a client sees below a URL, by name."""
    for name, (look, is_read) in looks.items():
        seen = []
        for root in (odd.ours, odd.theirs):
            try:
                seen.append(look(root))
            except (Missing, ImportError) as e:
                seen = [e]
                break
            except Exception as e:
                seen.append(e)
        if len(seen) == 1:
            yield name, None, [f"{seen[0]} is not installed"]
            continue
        row, notes = {}, []
        for cell, part in (("lists", lambda d: sorted(k if is_read is None else (k, str(v)) for k, v in d.items() if is_read is None or not is_read(k))),
                           ("reads", lambda d: {k: v for k, v in d.items() if is_read is None or is_read(k)})):
            got, want = (s if isinstance(s, Exception) else part(s) for s in seen)
            if got:
                row[cell], note = judge(name, cell, got, want)
                notes += [note] if note else []
        yield name, row, notes


def line(name, row):
    """The line of the table in the document."""
    return "| " + " | ".join([name] + [row.get(cell, "–") for cell in CELLS]) + " |"


def judge(name, cell, got, want):
    """Compares a cell with that of the reference; returns yes, no or differs, and what to print."""
    if isinstance(got, Exception):
        return "no", f"{name}, {cell}: {type(got).__name__}: {str(got)[-700:]}" + ("" if not isinstance(want, Exception) else f"\n  with the reference too: {str(want)[-300:]}")
    if isinstance(want, Exception) or got != want:
        return "differs", f"{name}, {cell}:\n  got  {str(got)[:1500]}\n  want {str(want)[-1500:]}"
    return "yes", ""


def s3(served, only):
    """Yields a row for each client of S3: its name, its cells, and what to print."""
    JavaScript.modules = pathlib.Path(served.args.zarrita) if served.args.zarrita else None
    with moto(served.tmp / "moto.log") as url:
        reference = Place(url, "", "other", "other-secret", served.tmp)
        Boto3(reference).s3.create_bucket(Bucket=reference.bucket)
        for number, (name, make) in enumerate(CLIENTS.items()):
            if only not in name:
                continue
            session = served.begin()
            places = [Place(served.s3, f"~{session}/cells{number}", "writer", served.secret, served.tmp),
                      Place(url, f"~reference/cells{number}", "other", "other-secret", served.tmp)]
            try:
                got, want = (see(make, p, served.tmp / f"cells{number}{p.key}") for p in places)
            except (Missing, ImportError) as e:
                yield name, None, [f"{e} is not installed"]
                continue
            finally:
                served.api("POST", f"/-/api/sessions/w.zdb/{session}/commit", {"message": name})
            row, notes = {}, []
            for cell in CELLS:
                if cell in got:
                    row[cell], note = judge(name, cell, got[cell], want.get(cell))
                    notes += [note] if note else []
            yield name, row, notes
