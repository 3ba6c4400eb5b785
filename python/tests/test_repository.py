from __future__ import annotations

import base64
import datetime
import gc
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
import zarr
from conftest import end, holder
from test_client import commit, kill

import zarrdb
from zarrdb import _html


def test_branches_and_tags(repo: zarrdb.Repository) -> None:
    c = commit(repo, a=b"1")
    repo.create_branch("trial", c)
    repo.create_tag("v1", "main")
    assert repo.list_branches() == ["main", "trial"] and repo.list_tags() == ["v1"]
    assert repo.lookup_branch("trial") == repo.lookup_tag("v1") == c.id
    with pytest.raises(zarrdb.ExistsError):
        repo.create_branch("trial", c)
    repo.reset_branch("trial", "main~1")
    assert repo.lookup_branch("trial") == c.parents[0]
    repo.undo("trial")
    assert repo.lookup_branch("trial") == c.id
    repo.delete_branch("trial")
    repo.delete_tag("v1")
    assert repo.list_branches() == ["main"] and repo.list_tags() == []
    with pytest.raises(zarrdb.NotFoundError):
        repo.lookup_branch("trial")


def test_versions(repo: zarrdb.Repository) -> None:
    before = commit(repo, a=b"1")
    now = datetime.datetime.now(datetime.UTC)
    after = commit(repo, a=b"2")
    repo.create_tag("v1", before)
    assert [c.id for c in repo.ancestry(limit=2)] == [after.id, before.id]
    assert [c.message for c in repo.ancestry(branch="main")] == ["set a", "set a", "create database"]
    assert repo.readonly_session("main").get("a") == repo.readonly_session().get("a") == b"2"
    for v in (
        repo.readonly_session(tag="v1"), repo.readonly_session(commit=before), repo.readonly_session(as_of=now),
        repo.at("main~1"), pickle.loads(pickle.dumps(repo.at("v1"))),
    ):  # fmt: skip
        assert v.get("a") == b"1" and v.commit == before
    with pytest.raises(zarrdb.InvalidError):
        repo.readonly_session("main", tag="v1")
    with pytest.raises(zarrdb.NotFoundError):
        repo.at("nope")
    assert [c.key for c in repo.diff("v1", "main")] == ["a"]
    assert repr(before) in repr([before]) and before.id[:10] in repr(before)


def test_conflicts(repo: zarrdb.Repository) -> None:
    commit(repo, k=b"0")
    a, b = repo.writable_session(label="one"), repo.writable_session()
    a.set("k", b"1")
    b.set("k", b"2")
    assert a.label == "one" and len(repo.sessions()) == 2
    a.commit("a")
    with pytest.raises(zarrdb.ConflictError) as e:
        b.commit("b")
    assert [c.path for c in e.value.conflicts] == ["k"] and e.value.branch == "main"
    assert pickle.loads(pickle.dumps(e.value)).conflicts == e.value.conflicts
    b.commit("b", {"job": "42"}, theirs="/")
    assert repo.at("main").get("k") == b"2" and repo.at("main").commit.properties["job"] == "42"
    with pytest.raises(zarrdb.SessionClosedError):
        b.set("k", b"3")


def test_retry(repo: zarrdb.Repository) -> None:
    commit(repo, n=b"0")
    for rivals, ok in ((2, True), (9, False)):
        tries = 0
        try:
            for attempt in repo.retry(3):
                with attempt as s:
                    tries += 1
                    n = int(s.get("n") or b"0")
                    if tries <= rivals:
                        commit(repo, n=b"%d" % (n + 10))
                    s.set("n", b"%d" % (n + 1))
                    s.commit("add one")
        except zarrdb.ConflictError:
            assert not ok
        assert tries == 3 and repo.sessions() == []
    assert repo.at("main").get("n") == b"51"
    for attempt in repo.retry(3):
        with pytest.raises(RuntimeError), attempt as s:
            raise RuntimeError
    assert repo.sessions() == []


def test_merge(repo: zarrdb.Repository) -> None:
    repo.create_branch("trial")
    commit(repo, a=b"1")
    s = repo.writable_session("trial")
    s.set("b", b"2")
    s.commit("b")
    out = repo.merge("trial", dry_run=True)
    assert out["changed"] and out["conflicts"] == [] and repo.at("main").get("b") is None
    assert repo.merge("trial", message="both")["commit"].message == "both"
    assert repo.at("main").get("b") == b"2"
    repo.undo()
    assert repo.at("main").get("b") is None
    s = repo.writable_session("trial")
    s.set("a", b"9")
    s.commit("a")
    assert [c.path for c in repo.merge("trial", dry_run=True)["conflicts"]] == ["a"]
    with pytest.raises(zarrdb.ConflictError) as e:
        repo.merge("trial")
    assert [c.path for c in e.value.conflicts] == ["a"]
    assert str(e.value) == "merge trial into main: nothing was changed; create: a"
    repo.merge("trial", theirs="a")
    assert repo.at("main").get("a") == b"9"


def test_transaction_is_all_or_nothing(repo: zarrdb.Repository) -> None:
    s = repo.writable_session()
    s.set("a", b"1")
    s.discard()
    s.discard()
    assert repo.at("main").get("a") is None and repo.sessions() == []


def test_care(repo: zarrdb.Repository, tmp_path: Path) -> None:
    commit(repo, a=b"1")
    assert repo.fsck(full=True)["problems"] == []
    assert repo.gc()["stopped"] is False
    assert repo.expire(keep=1)["kept"] >= 1
    assert repo.stats()["commits"] == 2
    repo.backup(str(tmp_path / "b.zdb"))
    assert repo.push(str(tmp_path / "b.zdb"))["moves"] == []
    assert zarrdb.open(tmp_path / "b.zdb").lookup_branch("main") == repo.lookup_branch("main")
    assert repo.expire(datetime.timedelta(days=90))["expired"] == repo.expire("90d", dry_run=True)["expired"] == 0
    with pytest.raises(zarrdb.InvalidError):
        repo.expire()
    with pytest.raises(zarrdb.NotFoundError):
        repo.merge("nope")


def test_paths_and_versions_are_named_by_objects(repo: zarrdb.Repository, tmp_path: Path) -> None:
    group = b'{"zarr_format": 2}'
    c = commit(repo, **{".zgroup": group, "a": b"1"})
    old = repo.at("main")
    commit(repo, a=b"2")
    repo.export(tmp_path / "old.zarr", old)
    with pytest.raises(zarrdb.ZarrdbError, match="exists"):
        repo.export(tmp_path / "old.zarr")
    repo.export(tmp_path / "old.zarr", overwrite=True)
    assert (tmp_path / "old.zarr" / "a").read_bytes() == b"2"
    repo.backup(tmp_path / "b.zdb")
    assert [x.key for x in repo.diff(old, repo.at("main"))] == [x.key for x in repo.diff(c)] == ["a"]
    assert repo.at(old) == repo.at(c) == repo.readonly_session(commit=old) == old and repo.resolve(old) == c
    assert [x.id for x in repo.ancestry(old, limit=1)] == [c.id]
    repo.create_branch("trial", old)
    repo.create_tag("v1", old)
    repo.reset_branch("main", old)
    assert repo.lookup_branch("trial") == repo.lookup_tag("v1") == repo.lookup_branch("main") == c.id
    repo.undo()
    assert repo.merge(old)["changed"] is False


def test_databases_that_are_both_open(repo: zarrdb.Repository, tmp_path: Path) -> None:
    commit(repo, a=b"1")
    repo.backup(tmp_path / "b.zdb")
    end(repo.path)
    other = zarrdb.open(tmp_path / "b.zdb")  # which has a process of its own
    try:
        assert holder(other.path) not in (None, holder(repo.path))
        s, v = other.writable_session(), other.at("main")
        s.set("b", b"1")
        commit(repo, a=b"2")
        assert [m["ref"] for m in repo.push(other)["moves"]] == ["heads/main"]
        assert other.at("main").get("a") == b"2" and v.get("a") == b"1" and s.get("b") == b"1"
        s.commit("both")
        end(other.path)
        assert zarrdb.open(other.path).lookup_branch("main") == other.lookup_branch("main")
        assert [m["ref"] for m in repo.pull(tmp_path / "b.zdb")["moves"]] == ["heads/main"]
        assert repo.at("main").get("b") == b"1"
    finally:
        end(other.path)


def test_link(repo: zarrdb.Repository, tmp_path: Path) -> None:
    def refs(name: str, value: int, files: str) -> str:
        data = tmp_path / "files" / f"{name}.bin"
        data.parent.mkdir(exist_ok=True)
        data.write_bytes(bytes([value] * 4))
        array = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|u1", "compressor": None, "filters": None, "fill_value": 0, "order": "C"}
        sets = {
            ".zgroup": json.dumps({"zarr_format": 2}), "x/.zarray": json.dumps(array), "x/.zattrs": json.dumps({"_ARRAY_DIMENSIONS": ["time"]}),
            "x/0": [f"{files}{name}.bin", 0, 4],
        }  # fmt: skip
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"version": 1, "refs": sets}))
        return str(path)

    where = {"s3://bucket/": f"file://{tmp_path}/files/"}
    sources = [refs("a", 1, "s3://bucket/"), refs("b", 2, "files/")]
    c = repo.link(*sources, to="g", append_dim="time", message="link", url_map=where)
    assert c.message == "link" and repo.lookup_branch("main") == c.id
    assert repo.at("main").array("g/x")[:4].tolist() == [1] * 4
    new = [change.new for change in repo.diff("main~1") if change.chunk is not None]
    assert [n and n["kind"] for n in new] == ["virtual", "virtual"]
    (tmp_path / "files" / "b.bin").write_bytes(b"abcdef")
    with pytest.raises(zarrdb.ZarrdbError) as e:
        repo.at("main").array("g/x")[4:]
    assert e.value.code == "value_changed"
    with pytest.raises(zarrdb.ZarrdbError):
        repo.link(sources[0], to="g", url_map=where)  # there is something already


def test_allow(repo: zarrdb.Repository, tmp_path: Path) -> None:
    far = tmp_path / "far"
    far.mkdir()
    (far / "x").write_bytes(b"\7")
    array = {"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "|u1", "compressor": None, "filters": None, "fill_value": 0, "order": "C"}
    source = tmp_path / "set" / "refs.json"
    source.parent.mkdir()
    source.write_text(json.dumps({"a/.zarray": array, "a/0": [f"file://{far}/x"]}))
    with pytest.warns(UserWarning, match=f"refs allow .* file://{far}/"):
        repo.link(source)
    with pytest.raises(zarrdb.DeniedError, match=r'allow "file://.*/far/" \(see Repository.allow\)'):
        repo.at("main").array("a")[:]
    repo.allow(str(far))
    assert repo.at("main").array("a")[:].tolist() == [7]


def test_frozen(repo: zarrdb.Repository) -> None:
    commit(repo, a=b"1")
    repo.protect(freeze=True)
    with pytest.raises(zarrdb.DeniedError, match="it is frozen"):
        commit(repo, a=b"2")


def test_representation(repo: zarrdb.Repository, path: Path) -> None:
    commit(repo, a=b"1")
    repo.create_tag("v1")
    assert repr(repo) == f"<Repository {path}: 1 branches, 1 tags>"
    assert "set a" in repo._repr_html_() and "v1" in repo._repr_html_()
    assert "on main of w.zdb, open" in repr(repo.writable_session())
    assert pickle.loads(pickle.dumps(repo)) == repo
    c = repo.at("v1").commit
    assert "set a" in c._repr_html_() and pickle.loads(pickle.dumps(c)) == c


HOSTILE = "<script>alert(1)</script><img src=x onerror='alert(1)'>\"'&"


def test_pictures(repo: zarrdb.Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notebooks show a picture, the tree and the last commits, and no texts of a store as HTML."""
    with repo.transaction(message=HOSTILE) as store:
        g = zarr.create_group(store, attributes={HOSTILE: HOSTILE})
        a = g.create_array("<b>", shape=(30, 40), chunks=(10, 10), dtype="f4", dimension_names=(HOSTILE, "x"))
        a[:] = np.arange(1200).reshape(30, 40)
        a.attrs.update({HOSTILE: HOSTILE, "units": HOSTILE, "long_name": HOSTILE})
        g.create_array("line", shape=(30,), chunks=(10,), dtype="i2")[:] = np.arange(30)
        g.create_array("words", shape=(3, 500), chunks=(3, 500), dtype="str")
        g.create_array("none", shape=(0, 3), chunks=(1, 3), dtype="i2")
    repo.create_branch("other", "main")
    snap, session = repo.at("main"), repo.writable_session()
    for value in (repo, snap, session, snap.array("<b>"), snap.array("line"), session.array("<b>")):
        shown = value._repr_html_()
        for picture in re.findall(r'<img alt="" src="data:image/png;base64,([^"]*)">', shown):
            assert base64.b64decode(picture, validate=True).startswith(b"\x89PNG")
        rest = re.sub(r'<img alt="" src="data:image/png;base64,[A-Za-z0-9+/=]*">', "", shown)
        assert rest != shown and not re.search(r"<(?!/?(div|table|tr|td|code|b)\b)", rest) and "<b>&lt;b&gt;" not in rest
        assert set(re.findall(r"<\w+ ([^>]*)>", rest)) <= {'style="text-align:left"'}
    for value in (repo, snap):
        assert "create database" in value._repr_html_() and "&lt;script&gt;" in value._repr_html_()
    for path in ("words", "none"):
        assert "<img" not in snap.array(path)._repr_html_()
    monkeypatch.setattr(_html, "PATIENCE", 0.001)
    assert "<img" not in snap._repr_html_() and "line" in snap._repr_html_()


def test_trees(repo: zarrdb.Repository, path: Path) -> None:
    with repo.transaction(message="<b>") as store:
        g = zarr.create_group(store)
        g.create_array("surface/t2m", shape=(3, 4), chunks=(1, 4), dtype="f4", dimension_names=("time", "x"))
        g.create_array("n<1>", shape=(5,), chunks=(2,), dtype="i2")
    s = repo.writable_session()
    del zarr.open_group(s.store)["surface"]
    v, mine = repo.at("main")._repr_html_(), s._repr_html_()
    for text in ("<b>surface</b>", "&nbsp;t2m</td>", "(time: 3, x: 4)", "chunks (1, 4)", "float32", "n&lt;1&gt;", "(5)", "&lt;b&gt;"):
        assert text in v
        assert (text in mine) == (text in ("n&lt;1&gt;", "(5)"))
    s.discard()
    assert "ended" in s._repr_html_()
    html = _html.table([[str(i)] for i in range(300)])
    assert "200 more" in html and ">99<" in html and ">100<" not in html


def test_retention_and_copies(repo: zarrdb.Repository, path: Path) -> None:
    for i in range(4):
        with repo.transaction(message=f"v{i}") as store:
            zarr.open_array(store, path="a", mode="a", shape=(4,), chunks=(1,), dtype="i4")[0] = i + 1
    repo.create_branch("f")
    for branch, at in (("main", 1), ("f", 2)):
        for i in range(2):
            s = repo.writable_session(branch)
            s.array("a")[at] = i + 5
            s.commit(f"{branch} {i}")
    out = repo.expire(keep=1)
    assert any(h["kind"] == "merge base" for h in out["holders"])
    repo.gc()
    repo.merge("f")
    assert repo.at("main").array("a")[:].tolist() == [4, 5 + 1, 6, 0]
    repo.revert_to("f", message="as f")
    assert repo.at("main").array("a")[:].tolist() == [4, 0, 6, 0]

    shared = path.parent / "shared.zdb"
    repo.run("init", str(shared))
    repo.push(shared, all=True)
    repo.delete_branch("f")
    moves = repo.push(shared, all=True, prune=True, dry_run=True)["moves"]
    assert [m["ref"] for m in moves] == ["heads/f"] and "new" not in moves[0]
    repo.push(shared, all=True, prune=True)
    assert list(zarrdb.open(shared).list_branches()) == ["main"]

    shallow = path.parent / "shallow.zdb"
    repo.run("clone", str(path), str(shallow), "--depth", "1")
    copy = zarrdb.open(shallow)
    with pytest.raises(zarrdb.NotFoundError, match="not in this shallow copy"):
        copy.at("main~1")
    copy.pull(path, deepen=1)
    assert copy.at("main~1").array("a")[:].tolist() == [4, 6, 6, 0]
    copy.pull(path, unshallow=True)


def test_nothing_holds_a_version(repo: zarrdb.Repository) -> None:
    """A version goes with the last reference to it, without the cycle collector, also after errors."""
    with repo.transaction(message="x") as st:
        zarr.create_array(st, name="x", data=np.arange(10), chunks=(2,))

    def read() -> weakref.ref[zarrdb.Snapshot]:
        snap = repo.at("main")
        a = snap.array("x")
        assert a[3] == 3 and a[:].sum() == 45 and snap.get("none") is None
        with pytest.raises(zarrdb.NotFoundError):
            snap.array("none")
        return weakref.ref(snap)

    gc.collect()
    gc.disable()
    try:
        assert read()() is None
    finally:
        gc.enable()


def test_versions_outlive_the_holder(repo: zarrdb.Repository, path: Path) -> None:
    """What is open stays when it has expired and the process that has the database open is killed, also while this
    program asks for nothing, and is read by this program, by a child of it, and by others."""

    def commit(n: int) -> None:
        with repo.transaction(message=str(n)) as store:
            store.session.set("k", bytes([n]) * 100_000)

    def replaced() -> None:
        repo.list_branches()  # a process has it open
        kill(path)

    def run(*args: str) -> str:  # from another program
        return subprocess.run([zarrdb._client.binary(), *args], check=True, capture_output=True, text=True).stdout

    def child() -> bytes:
        r, w = os.pipe()
        if os.fork() == 0:
            try:
                os.write(w, snap.get("k") or b"")
            finally:
                os._exit(0)
        os.close(w)
        with os.fdopen(r, "rb") as f:
            return f.read()

    commit(1)
    snap, other = repo.at("main"), repo.at("main")
    commit(2)
    repo.expire(keep=1)
    for _ in range(2):
        replaced()
        run("gc", str(path))
        assert run("get", f"{path}@{snap.commit.id}", "k")[:1] == "\1"
        assert snap.get("k") == other.get("k") == child() == b"\1" * 100_000
    replaced()
    run("gc", str(path))
    assert snap.get("k") == b"\1" * 100_000
    other.close()
    replaced()
    run("gc", str(path))
    assert snap.get("k") == b"\1" * 100_000
    snap.close()
    repo.at("main").close()  # the version that was closed last stays for a moment
    replaced()
    run("gc", str(path))
    with pytest.raises(zarrdb.NotFoundError):
        repo.at(snap.commit.id)
    repo.at("main").close()
    assert len(os.listdir(path / "peers")) == 1


def test_collection_beside_a_stopped_reader(repo: zarrdb.Repository, path: Path) -> None:
    """It does not wait for the reader, and keeps what the reader has open."""
    for n in (1, 2):
        commit(repo, k=bytes([n]) * 100_000)
    code = f"import sys, zarrdb; v = zarrdb.open({str(path)!r}).at('main~1'); v.size('k'); print(flush=True); sys.stdin.read(); print(v.get('k')[:1])"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout
        reader.stdout.readline()
        os.kill(reader.pid, signal.SIGSTOP)
        try:
            repo.expire(keep=1)
            kill(path)
            subprocess.run([zarrdb._client.binary(), "gc", str(path)], check=True, capture_output=True)
        finally:
            os.kill(reader.pid, signal.SIGCONT)
        assert reader.communicate()[0] == "b'\\x01'\n"


@pytest.mark.parametrize("first", [True, False])
def test_a_reader_moves_on(repo: zarrdb.Repository, path: Path, first: bool) -> None:
    """A reader that takes the next version after each commit keeps no file of earlier ones open."""
    reader = zarrdb.open(path)
    current = None
    for n in range(6):
        with repo.transaction(message=str(n)) as store:
            store.session.set("k", os.urandom(1 << 20))
        if not first:
            current = None
        current = reader.at("main")
        assert len(current.get("k") or b"") == 1 << 20
        repo.expire(keep=1)
        repo.gc()
    size = sum(f.stat().st_blocks * 512 for f in (path / "packs").iterdir())
    assert size < 2.5 * (1 << 20)
    files = [os.readlink(f"/proc/self/fd/{f}") for f in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{f}")]
    assert len([f for f in files if str(path / "packs") in f]) <= 2


def test_close_a_version(repo: zarrdb.Repository) -> None:
    commit(repo, a=b"1")
    with repo.at("main") as snap:
        assert snap.get("a") == b"1"
    snap.close()
    with pytest.raises(zarrdb.InvalidError, match=r"is closed; open the version again"):
        snap.get("a")
    assert pickle.loads(pickle.dumps(snap)).get("a") == b"1"


def test_backup_keeps_commits_of_others(repo: zarrdb.Repository, tmp_path: Path) -> None:
    repo.backup(tmp_path / "backup.zdb")
    with zarrdb.open(tmp_path / "backup.zdb") as backup, backup.transaction(message="theirs") as store:
        store.session.set("theirs", b"1")
    with pytest.raises(zarrdb.ConflictError, match='branch "main"'):
        repo.backup(tmp_path / "backup.zdb")
    repo.backup(tmp_path / "backup.zdb", force=True)
    with zarrdb.open(tmp_path / "backup.zdb") as backup:
        assert backup.lookup_branch("main") == repo.lookup_branch("main")
