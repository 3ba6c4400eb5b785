from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from conftest import holder
from test_client import kill
from workers import use

import zarrdb


def commit(repo: zarrdb.Repository, branch: str = "main", **values: bytes) -> zarrdb.Commit:
    s = repo.writable_session(branch)
    for key, value in values.items():
        s.set(key, value)
    return s.commit("set " + " ".join(values))


def test_forks_become_one_commit(repo: zarrdb.Repository) -> None:
    s = repo.writable_session()
    s.set("mine", b"1")
    forks = [s.fork("a"), s.fork("b")]
    assert [f.label for f in forks] == ["a", "b"] and all(f.get("mine") == b"1" and f.base == s.base for f in forks)
    for i, f in enumerate(pickle.loads(pickle.dumps(forks))):
        f.set(f"k{i}", b"x")
    assert s.get("k0") is None and forks[1].get("k0") is None
    s.merge(*forks)
    assert s.get("k0") == s.get("k1") == b"x"
    with pytest.raises(zarrdb.SessionClosedError):
        forks[0].set("late", b"")
    before = len(list(repo.ancestry()))
    s.commit("all")
    assert len(list(repo.ancestry())) == before + 1 and repo.at("main").get("k1") == b"x" and repo.sessions() == []


def test_forks_that_wrote_the_same(repo: zarrdb.Repository) -> None:
    commit(repo, k=b"0")
    for choices, want in (((), None), ([zarrdb.Ours()], b"session"), ([zarrdb.Theirs("k"), zarrdb.Ours("/")], b"fork")):
        s = repo.writable_session()
        f = s.fork()
        s.set("k", b"session")
        f.set("k", b"fork")
        if want is None:
            with pytest.raises(zarrdb.ConflictError) as e:
                s.merge(f)
            assert [c.path for c in e.value.conflicts] == ["k"]
            assert f.get("k") == b"fork" and s.get("k") == b"session"
            f.discard()
        else:
            s.merge(f, choices=choices)
            assert s.get("k") == want
            s.set("k", b"last")  # what it had read before is no condition any more
        s.discard()


def test_rebase(repo: zarrdb.Repository) -> None:
    commit(repo, k=b"0", j=b"0")
    s = repo.writable_session()
    s.set("new", b"1")
    other = commit(repo, k=b"1")
    assert s.get("k") == b"0"
    s.rebase()
    assert s.get("k") == b"1" and s.base == other.id
    s.set("k", b"2")
    commit(repo, k=b"3")
    with pytest.raises(zarrdb.ConflictError) as e:
        s.rebase()
    assert [(c.path, c.chunk, c.kind) for c in e.value.conflicts] == [("k", None, "document")] and s.get("k") == b"2"
    s.rebase(zarrdb.Ours("k"))
    assert s.get("k") == b"3"
    assert s.commit("both").message == "both"
    a, b = repo.writable_session(), repo.writable_session()
    a.set("k", b"a")
    b.set("k", b"b")
    a.commit()
    with pytest.raises(TypeError, match="metadata 'n' is of type int: metadata has texts only"):
        b.commit("b", {"n": 1})  # type: ignore[dict-item]
    assert b.commit("b", rebase_with=zarrdb.Theirs()).message == "b" and repo.at("main").get("k") == b"b"
    with repo.transaction(message="c", rebase_with=None) as store:
        store.session.set("k", b"c")


def test_guard(repo: zarrdb.Repository) -> None:
    with repo.transaction() as store:
        zarr.create_array(store, name="g/time", data=np.arange(4), chunks=(2,))
    s = repo.writable_session()
    s.guard("g/time")
    s.set("other", b"1")
    t = repo.writable_session()
    t.array("g/time")[3] = 9
    t.commit("time")
    with pytest.raises(zarrdb.ConflictError) as e:
        s.commit("other")
    assert [(c.path, c.chunk, c.kind) for c in e.value.conflicts] == [("g/time/c/1", (1,), "guard")]
    assert pickle.loads(pickle.dumps(e.value)).conflicts == e.value.conflicts


def test_move(repo: zarrdb.Repository) -> None:
    with repo.transaction() as store:
        zarr.create_array(store, name="a", data=np.arange(4), chunks=(2,))
    s = repo.writable_session()
    s.move("a", "g/b")
    assert s.array("g/b")[:].tolist() == [0, 1, 2, 3]
    with pytest.raises(zarrdb.NotFoundError):
        s.move("a", "c")
    s.commit("rename")
    assert sorted(zarr.open_group(repo.at("main").store, mode="r")) == ["g"]


@pytest.mark.parametrize("shared", ["not", "forked", "pickled"])
@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM])
def test_idle_sessions_are_not_lost(repo: zarrdb.Repository, path: Path, sig: int, shared: str) -> None:
    """A session in which nothing was written goes on in the next process, whoever has it."""
    s = repo.writable_session()
    assert s.get("k") is None
    if shared == "forked" and os.fork() == 0:
        os._exit(0)
    other = pickle.loads(pickle.dumps(s)) if shared == "pickled" else s
    pid = holder(path)
    assert pid
    os.kill(pid, sig)
    assert s.get("k") is None and other.get("k") is None
    s.set("k", b"1")
    assert s.commit("goes on").message == "goes on"


def test_sessions_and_forks_go_on_after_a_kill(repo: zarrdb.Repository, path: Path) -> None:
    s = repo.writable_session()
    s.set("before", b"1")
    f = s.fork()
    pickled = pickle.dumps(f)
    f.set("k", b"1")
    f.set("before", b"2")
    s.set("k2", b"1")
    kill(path)
    assert f.get("k") == b"1"
    assert pickle.loads(pickled).get("k") == b"1"
    assert s.get("k2") == b"1"
    s.merge(f)
    s.commit("everything")
    now = repo.at("main")
    assert (now.get("k"), now.get("k2"), now.get("before")) == (b"1", b"1", b"2")


def test_commit_of_a_fork_leaves_out_its_parent(repo: zarrdb.Repository) -> None:
    s = repo.writable_session()
    s.set("mine", b"1")
    f = s.fork()
    f.set("forked", b"1")
    f.commit("fork")
    assert (repo.at("main").get("mine"), repo.at("main").get("forked")) == (None, b"1")
    s.commit("parent")
    assert (repo.at("main").get("mine"), repo.at("main").get("forked")) == (b"1", b"1")


def test_values_in_diff(repo: zarrdb.Repository) -> None:
    with repo.transaction() as store:
        g = zarr.create_group(store)
        g.create_array("t", data=np.zeros((4, 4)), chunks=(2, 2))
        g.create_array("same", data=np.zeros(3))
        g.create_array("name", data=np.array(["x"], dtype="S1"))
    s = repo.writable_session()
    assert s.status().arrays == {}
    s.array("t")[1:3, 2] = [2, -4]
    s.array("name")[0] = b"y"
    with pytest.raises(zarrdb.InvalidError, match="commit"):
        _ = s.status().arrays["t"].values
    assert pickle.loads(pickle.dumps(s.status())) == s.status()
    s.commit("change")
    d = repo.diff("main~1", "main")
    assert {p: a.chunks for p, a in d.arrays.items()} == {"t": 2, "name": 1}
    v = d.arrays["t"].values
    assert (v.count, v.start, v.shape, v.min, v.max, v.mean, v.numbers) == (2, (1, 2), (2, 1), -4, 2, -1, 2)
    assert [(p.count, p.start, p.min) for p in d.arrays["t"].parts] == [(1, (1, 2), 2), (1, (2, 2), -4)]
    assert d.values["t"] == v and set(d.values) == {"t", "name"}
    again = pickle.loads(pickle.dumps(d))
    assert again == d and again.arrays["t"].values == v
    name = d.arrays["name"].values
    assert (name.count, name.numbers) == (1, 0)
    assert "t: 2 chunks" in repr(d) and ">t</td>" in d._repr_html_()


def test_discard_changes(repo: zarrdb.Repository) -> None:
    base = commit(repo, k=b"0")
    s = repo.writable_session(label="l")
    assert s.get("k") == b"0"
    s.set("k", b"1")
    s.guard("k")
    s.savepoint()
    commit(repo, k=b"2")
    other, id = pickle.loads(pickle.dumps(s)), s.id
    s.discard_changes()
    assert (s.id, s.label, s.base, s.saved, s.has_uncommitted_changes) == (id, "l", base.id, None, False)
    assert s.get("k") == b"0"
    s.set("new", b"1")
    with pytest.raises(zarrdb.SessionClosedError):
        other.set("k", b"3")
    again = repo.session(id)
    assert again.get("new") == b"1" and [x["id"] for x in repo.sessions()] == [id]
    s.commit("new")
    assert repo.at("main").get("k") == b"2" and repo.at("main").get("new") == b"1"
    with pytest.raises(zarrdb.SessionClosedError):
        s.discard_changes()


# --- other processes


N = 100
METHODS = [m for m in ("fork", "spawn", "forkserver") if m in multiprocessing.get_all_start_methods()]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("how", METHODS)
def test_processes_write_one_commit(repo: zarrdb.Repository, how: str) -> None:
    with repo.transaction() as store:
        zarr.create_array(store, name="a", data=np.arange(8), chunks=(2,))
        zarr.create_array(store, name="n", shape=(N,), chunks=(16,), dtype="i4", fill_value=-1)
    s, v = repo.writable_session(), repo.at("main")
    assert v.array("a")[0] == 0 and s.array("n")[0] == -1  # connections that a child must not use
    ctx: Any = multiprocessing.get_context(how)
    if how == "forkserver":
        ctx.set_forkserver_preload(["zarrdb._array"])
    # A spawned interpreter takes a second to import numpy: there are few, and each does many, unless EACH is set.
    each = how != "spawn" or bool(os.environ.get("EACH"))
    with ctx.Pool(4 if each else 2, maxtasksperchild=1 if each else None) as pool:
        pool.starmap(use, [(s, v, i) for i in range(N)], chunksize=1)
    assert s.array("n")[:].tolist() == list(range(N))
    s.commit("all of them")
    now = repo.at("main")
    assert [now.get(f"key{i}") for i in range(N)] == [str(i).encode() for i in range(N)]
    assert now.array("n")[:].tolist() == list(range(N)) and repo.fsck(full=True)["problems"] == []


def test_fork_with_what_was_read_before(repo: zarrdb.Repository) -> None:
    """Memory of results is not shared with a child, nor used again under it."""
    x = np.arange(1 << 18, dtype="i8")
    with repo.transaction() as store:
        zarr.create_array(store, name="a", data=x, chunks=(1 << 14,))
    a = repo.at("main").array("a")
    for _ in range(20):
        got = a[:]
        ready, go = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            ok = (got == x).all()
            got[:] = -1
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            mine = a[:]
            os._exit(0 if ok and (got == -1).all() and (mine == x).all() else 1)
        os.read(ready[0], 1)
        assert (got == x).all()
        del got
        for _ in range(3):
            other = a[::-1]
            assert other[0] == x[-1]
        os.write(go[1], b"x")
        assert os.waitpid(pid, 0)[1] == 0
        for fd in (*ready, *go):
            os.close(fd)
