"""A database with its branches, tags and versions."""

from __future__ import annotations

import json
import os
import re
import socket
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from . import _engine, _folders, _icechunk, _memory, _progress
from ._accessor import register
from ._changes import Changes, Commit, Values, all_pages, parse_time
from ._client import Client, binary, create, exit_error
from ._errors import Conflict, ConflictError, InvalidError, NotFoundError, ZarrdbError
from ._progress import Report
from ._references import References, as_files
from ._session import Choice, Session
from ._snapshot import Snapshot, ancestry
from ._target import directory
from ._views import PAGE

# The names of a version, and of a store or another database.
Rev: TypeAlias = str | Commit | Snapshot
Place: TypeAlias = "str | os.PathLike[str] | Repository"

_units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(t: float | str | None) -> float | None:
    """10, "10s", "5m" or "1h" in seconds."""
    if t is None or isinstance(t, int | float):
        return t
    m = re.fullmatch(r"([\d.]+)(ms|s|m|h)", t)
    if m is None:
        raise InvalidError(f"{t!r} is not a time such as 30s or 5m")
    return float(m[1]) * _units[m[2]]


def _age(t: str | timedelta | datetime) -> str:
    return f"{t.total_seconds():.0f}s" if isinstance(t, timedelta) else t if isinstance(t, str) else t.astimezone().isoformat()


def open(path: str | os.PathLike[str], create: bool = False, wait: float | str | None = None) -> Repository:
    """Open the database in a directory, through the process that has it open; if there is
    none, one is started. At the URL of a remote, such as `s3://bucket/weather`, it opens a cache of the remote, as the remote
    is now, which fetches what is read, and takes no writes. `create` makes the database if there is none. `wait` is how long
    to wait for a process that has it open and does not serve it, such as "30s", or does not answer. With 0, the
    first kind is not waited for, and the second for 30 seconds. ":memory:" makes a database in memory, which goes when
    it is closed, or when this process ends. Other processes may open its `path` until then.

    >>> zarrdb.open("new.zdb", create=True).list_branches()
    ['main']
    """
    register()
    if path == ":memory:":
        repo = Repository(_memory.folder(), True, wait)
        _memory.keep(repo.path, repo)
        return repo
    return Repository(path, create, wait)


def clone(
    source: Place, path: str | os.PathLike[str], *, branch: str = "", depth: int = 0, lazy: bool = False, progress: Report | None = None
) -> Repository:
    """Make a new database of another one, or of a remote such as `s3://bucket/weather`, with its history: all branches and
    tags, or one branch, and `depth` versions of each. With `lazy`, the contents of a remote are fetched when they are read.
    Requests have the credentials of this process. `progress` is called with a `Progress` from time to time, such as `progress_bar`.

    >>> zarrdb.clone(repo, "again.zdb").list_branches()
    ['main']
    """
    options = (["--branch", branch] if branch else []) + (["--depth", str(depth)] if depth else []) + (["--lazy"] if lazy else [])
    code, _, err = _progress.run(binary(), ("clone", _place(source), os.fspath(path), *options), progress or (lambda _: None))
    if code != 0:
        raise exit_error(code, err)
    return Repository(path)


def _one(**revs: Any) -> tuple[str, Any]:
    given = [(k, v) for k, v in revs.items() if v is not None]
    if len(given) > 1:
        raise InvalidError(f"a version is named by one of {', '.join(revs)}, not by {' and '.join(k for k, _ in given)}")
    return given[0] if given else ("branch", "main")


def _rev(rev: Rev) -> str:
    """A revision as on the command line."""
    return rev if isinstance(rev, str) else rev.id if isinstance(rev, Commit) else rev.commit.id


def _place(place: Place) -> str:
    """A path or URL as on the command line."""
    return place.path if isinstance(place, Repository) else os.fspath(place)


class _Attempt:
    def __init__(self, repo: Repository, branch: str, last: bool) -> None:
        self._repo, self._branch, self._last, self.again = repo, branch, last, False

    def __enter__(self) -> Session:
        self._session = self._repo.writable_session(self._branch)
        return self._session

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, _: object) -> bool:
        try:
            self._session.discard()
        except ZarrdbError:
            if e is None:
                raise
        self.again = isinstance(e, ConflictError) and not self._last
        return self.again


@dataclass(frozen=True)
class _Compare:
    """Compares the values of an array in two versions."""

    repo: Repository
    a: str
    b: str

    def document(self, key: str, old: bool) -> bytes | None:
        return self.repo.at(self.a if old else self.b).get(key)

    def __call__(self, path: str) -> list[Values]:
        _, out = self.repo._run("diff", f"{self.repo.path}@{self.a}:{path}", self.b, "--values", "--json")
        lines = [json.loads(line) for line in out.splitlines()]
        return [Values._of(o) for o in lines if "count" in o and o["path"] == path]


class Repository:
    """A database. It pickles by its path or URL. Where it is unpickled, a cache that the machine has of the remote stays as it is."""

    def __init__(self, path: str | os.PathLike[str], create_: bool = False, wait: float | str | None = None, known_: bool = False) -> None:
        dir = directory(path, create_, known_)
        self._named = os.fspath(path) if "://" in os.fspath(path) else dir
        if create_ and not os.path.isfile(os.path.join(dir, "FORMAT")):  # a creation that was interrupted goes on
            create(dir)
        self._client = Client.of(dir, seconds(wait))
        self._client.users.add(id(self))
        self._client.engine()

    def close(self) -> None:
        """Leave the database. If this program has started the process that has it open, and nobody
        else uses it, the process ends first, so that the directory can be removed. Calls of other threads
        that take more than some seconds are not waited for; the process ends behind them. A repository that is
        used after that connects again.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as tmp, zarrdb.open(f"{tmp}/new.zdb", create=True) as new:
        ...     new.list_branches()
        ['main']
        """
        self._client.leave(id(self))
        _memory.remove(self.path, self)

    def __enter__(self) -> Repository:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if client := getattr(self, "_client", None):
            client.users.discard(id(self))

    @property
    def path(self) -> str:
        return self._client.dir

    def __reduce__(self) -> Any:
        return Repository, (self._named, False, None, True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Repository) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)

    def __repr__(self) -> str:
        branches, tags = self._refs()
        return f"<Repository {self.path}: {len(branches)} branches, {len(tags)} tags>"

    def _repr_html_(self) -> str:
        from . import _html as h

        branches, tags = self._refs()
        rows = [[kind, h.text(name), h.code(id[:10])] for kind, refs in (("branch", branches), ("tag", tags)) for name, id in refs.items()]
        shown = ""
        if "main" in branches:
            shown = self.at("main")._repr_html_()
        return f"<div><b>{h.text(self.path)}</b>{h.table(rows, 20)}{shown}</div>"

    # --- versions

    def at(self, rev: Rev) -> Snapshot:
        """The version that a revision names, as on the command line: a branch, a tag, a
        commit, REV~N, or REV@{when}.

        >>> repo.at("main").array("t2m").shape
        (4, 6)
        >>> repo.at("main~1").commit.message
        'create database'
        """
        return Snapshot(self._client, _rev(rev))

    def readonly_session(
        self,
        branch: str | None = None,
        *,
        tag: str | None = None,
        commit: Rev | None = None,
        snapshot_id: str | None = None,
        as_of: str | datetime | None = None,
    ) -> Snapshot:
        """A version: the newest of a branch (default main), the version of a tag or commit, or of a
        branch at a time, "2026-01-31 12:00" or a `datetime`.

        >>> repo.create_tag("v1")
        >>> repo.readonly_session(tag="v1") == repo.readonly_session("main") == repo.readonly_session(as_of="2100-01-01")
        True
        """
        if as_of is not None:
            _one(tag=tag, commit=commit, snapshot_id=snapshot_id, as_of=as_of)
            when = as_of.isoformat() if isinstance(as_of, datetime) else as_of
            return self.at(f"{branch or 'main'}@{{{when}}}")
        kind, name = _one(branch=branch, tag=tag, commit=commit, snapshot_id=snapshot_id)
        return self.at({"branch": self.lookup_branch, "tag": self.lookup_tag}.get(kind, _rev)(name))

    def writable_session(self, branch: str = "main", label: str = "") -> Session:
        """A transaction on a branch. It pickles: any number of processes may share it. It is stored by
        its first savepoint or write, and when the server ends in order or another process opens it.

        >>> s = repo.writable_session()
        >>> s.array("t2m")[0] = 281
        >>> s.commit("first row").message
        'first row'
        """
        return Session(self._client, "begin", {"branch": branch, "label": label})

    def session(self, id: str) -> Session:
        """The session with that id, with everything that was acknowledged. After a power loss: from its last savepoint."""
        return Session(self._client, "resume", id.removeprefix("~"))

    def sessions(self) -> list[dict[str, Any]]:
        """The sessions that are open or can be taken up, each with the `program`, `host`, `pid` and `user` that began it,
        and when it was `used` last.

        >>> s = repo.writable_session(label="nightly")
        >>> [o["label"] for o in repo.sessions() if o["pid"] and o["program"] and o["user"]]
        ['nightly']
        """
        listed: list[dict[str, Any]] = self._client.ask("sessions")
        return listed

    def abort_session(self, id: str) -> None:
        """End a session and discard its changes, also one of another program. That program gets a `SessionClosedError`."""
        self._run("session", "abort", self.path, id.removeprefix("~"))

    def abort_sessions(self, older_than: str | timedelta) -> list[str]:
        """End all sessions that were used last before an age, such as "7d", or a date, and discard their changes.
        Returns their ids.

        >>> s = repo.writable_session()
        >>> s.set("k", b"1")
        >>> repo.abort_sessions(older_than="1h"), repo.abort_sessions("0s") == [s.id]
        ([], True)
        """
        _, out = self._run("session", "abort", self.path, "--older-than", _age(older_than))
        return [line.split()[1] for line in out.decode().splitlines()]

    @contextmanager
    def transaction(
        self, branch: str = "main", message: str = "", metadata: dict[str, str] | None = None, *,
        rebase_with: Choice | Sequence[Choice] | None = None, rebase_tries: int = 1000,
    ) -> Iterator[Any]:  # fmt: skip
        """A store that is committed at the end, or discarded when an exception leaves it.

        >>> import zarr
        >>> with repo.transaction(message="units") as store:
        ...     zarr.open_array(store, path="t2m").attrs["units"] = "K"
        >>> repo.at("main").array("t2m").attrs
        {'units': 'K'}
        """
        s = self.writable_session(branch)
        try:
            yield s.store
            s.commit(message, metadata, rebase_with=rebase_with)
        except BaseException:
            try:
                s.discard()
            except ZarrdbError:
                pass
            raise

    def retry(self, attempts: int = 5, branch: str = "main") -> Iterator[_Attempt]:
        """Attempts at a transaction, each a context manager that gives a fresh session. After a
        conflict there is another attempt; the conflict of the last attempt is raised. A session
        that was not committed is discarded.

        >>> for attempt in repo.retry(5):
        ...     with attempt as s:
        ...         s.array("t2m")[0] += 1
        ...         c = s.commit("add one")
        >>> c.message
        'add one'
        """
        for n in range(attempts):
            a = _Attempt(self, branch, n + 1 == attempts)
            yield a
            if not a.again:
                return

    def resolve(self, rev: Rev) -> Commit:
        """The commit that a revision names."""
        return Commit._of(self._client.ask("resolve", _rev(rev)))

    def ancestry(
        self, rev: Rev | None = None, *, branch: str | None = None, tag: str | None = None, snapshot_id: Rev | None = None,
        path: str = "", limit: int | None = None,
    ) -> Iterator[Commit]:  # fmt: skip
        """A version and its ancestors, newest first; with `path`, the versions that changed something
        at or below the path.

        >>> [c.message for c in repo.ancestry()]
        ['first', 'create database']
        >>> [c.message for c in repo.ancestry("main", path="t2m", limit=1)]
        ['first']
        """
        return ancestry(self._client, _rev(_one(rev=rev, branch=branch, tag=tag, snapshot_id=snapshot_id)[1]), path, limit)

    def diff(
        self, a: Rev | None = None, b: Rev | None = None, path: str = "", *,
        from_branch: str | None = None, from_tag: str | None = None, from_snapshot_id: Rev | None = None,
        to_branch: str | None = None, to_tag: str | None = None, to_snapshot_id: Rev | None = None,
    ) -> Changes:  # fmt: skip
        """The keys that differ between two versions, by default of main. Values are compared where they are asked for:
        `diff(a, b).values`, or `diff(a, b).arrays["t2m"].values` for one array.

        >>> s = repo.writable_session()
        >>> s.array("t2m")[1, 2:4] = 290
        >>> c = s.commit("warmer")
        >>> d = repo.diff("main~1", "main")
        >>> d
        <Changes: 1 keys>
          t2m: 1 chunks
        >>> d.values["t2m"].count, d.values["t2m"].start, d.values["t2m"].max
        (2, (1, 2), 10)
        """
        _, older = _one(a=a, from_branch=from_branch, from_tag=from_tag, from_snapshot_id=from_snapshot_id)
        _, newer = _one(b=b, to_branch=to_branch, to_tag=to_tag, to_snapshot_id=to_snapshot_id)
        ids = [self.resolve(r).id for r in (older, newer)]
        ask = {"from": ids[0], "to": ids[1], "prefix": path, "limit": PAGE}
        compare = _Compare(self, ids[0], ids[1])
        return Changes(all_pages(lambda skip: dict(self._client.ask("diff", {**ask, "skip": skip}))), compare, compare.document)

    # --- branches and tags

    def _refs(self) -> tuple[dict[str, str], dict[str, str]]:
        """The branches and the tags, with the ids of their commits."""
        branches, tags = self._client.ask("refs")
        return dict(branches), dict(tags)

    def _move(self, action: str, kind: str, name: str, to: Rev = "") -> None:
        move: dict[str, Any] = {"Do": action, "Tag": kind == "tag", "Name": name}
        if action != "delete":
            move["To"] = self.resolve(to).id
        self._client.ask("ask", {"name": "ref", "in": move})

    def _lookup(self, tag: bool, name: str) -> str:
        if id := self._refs()[tag].get(name):
            return id
        raise NotFoundError(f"{self.path}: no {name} among its {'tags' if tag else 'branches'}", "no_ref")

    def create_branch(self, name: str, at: Rev | None = None, *, snapshot_id: Rev | None = None) -> None:
        """Make a branch at a version, by default the newest of main."""
        self._move("create", "branch", name, _one(at=at, snapshot_id=snapshot_id)[1])

    def delete_branch(self, name: str) -> None:
        self._move("delete", "branch", name)

    def reset_branch(self, name: str, to: Rev | None = None, *, snapshot_id: Rev | None = None) -> None:
        """Move a branch to another version. `undo` takes it back."""
        if to is None and snapshot_id is None:
            raise InvalidError(f"reset {name}: to what version?")
        self._move("reset", "branch", name, _one(to=to, snapshot_id=snapshot_id)[1])

    def list_branches(self) -> list[str]:
        return list(self._refs()[0])

    def lookup_branch(self, name: str) -> str:
        """The id of the newest commit of a branch."""
        return self._lookup(False, name)

    def create_tag(self, name: str, at: Rev | None = None, *, snapshot_id: Rev | None = None) -> None:
        """Make a tag at a version, by default the newest of main."""
        self._move("create", "tag", name, _one(at=at, snapshot_id=snapshot_id)[1])

    def delete_tag(self, name: str) -> None:
        self._move("delete", "tag", name)

    def list_tags(self) -> list[str]:
        return list(self._refs()[1])

    def lookup_tag(self, name: str) -> str:
        """The id of the commit of a tag."""
        return self._lookup(True, name)

    # --- versions for jobs

    def _keep(self, do: str, **about: Any) -> list[dict[str, Any]]:
        kept = self._client.ask("ask", {"name": "pin", "in": {"Do": do, **about}}) or []
        return [{"name": l["Name"], "commit": l["Commit"], "since": parse_time(l["Time"]), "by": l["Note"]} for l in kept]

    def keep(self, name: str, rev: Rev = "main") -> Commit:
        """Keep a version from expiring, under a name, until `end_kept`: for a job that lasts for days, begins later, or may be
        restarted. It replaces the version that was kept under the name before. Copies of the database do not keep versions.

        >>> c = repo.keep("training", "main")
        >>> repo.at(repo.kept()[0]["commit"]).commit == c
        True
        >>> repo.end_kept_before("7d"), repo.end_kept_before("0s")
        ([], ['training'])
        """
        commit = self.resolve(rev)
        by = f"{_engine.program()} (process {os.getpid()}) on {socket.gethostname()}"
        self._keep("keep", Name=name, To=commit.id, Note=by)
        return commit

    def end_kept(self, name: str) -> None:
        """Let the version expire that is kept under a name."""
        self._keep("end", Name=name)

    def end_kept_before(self, older_than: str | timedelta) -> list[str]:
        """Let all versions expire that are kept by name for longer than an age, such as "7d", or since before a date. Returns the names."""
        lines = self._run("keep", self.path, "--older-than", _age(older_than), "--json")[1].decode().splitlines()
        return [json.loads(line)["name"] for line in lines]

    def kept(self) -> list[dict[str, Any]]:
        """The versions that are kept by name: `name`, `commit`, `since` when and `by` whom."""
        return self._keep("")

    # --- commands

    def run(self, *args: str) -> str:
        """Run a command line of the program zarrdb, which joins the process that has the database
        open, and return what it prints."""
        return self._run(*args)[1].decode()

    def _run(self, *args: str, fine: tuple[int, ...] = (0,), progress: Report | None = None) -> tuple[int, bytes]:
        code, out, err = self._client.run(*args) if progress is None else _progress.run(binary(), args, progress)
        if code == 0 and err and args[0] == "import":  # of references that are not followed, and of gaps
            warnings.warn(err.strip().removeprefix("zarrdb: "), stacklevel=3)
        if code not in fine:
            raise exit_error(code, err) if code != 3 else ConflictError(err.strip().removeprefix("zarrdb: "))
        return code, out

    def _json(self, *args: str, fine: tuple[int, ...] = (0,), progress: Report | None = None) -> Any:
        _, out = self._run(*args, "--json", fine=fine, progress=progress)
        return json.loads(out) if out.strip() else None

    def merge(
        self,
        rev: Rev,
        into: str = "main",
        message: str = "",
        *,
        dry_run: bool = False,
        ours: str | Sequence[str] = (),
        theirs: str | Sequence[str] = (),
    ) -> dict[str, Any]:
        """Merge a version into a branch. Conflicts are a `ConflictError`; with `dry_run` they are
        in the result, and nothing is changed. `ours` and `theirs` decide conflicts at and below paths.

        >>> repo.create_branch("trial")
        >>> s = repo.writable_session("trial")
        >>> s.array("t2m")[0] = 0
        >>> c = s.commit("zero")
        >>> repo.merge("trial", dry_run=True)["conflicts"]
        []
        >>> m = repo.merge("trial", message="take the trial")
        >>> repo.at("main").array("t2m")[0, 0].item()
        0.0
        """
        rev = _rev(rev)
        args = ["merge", f"{self.path}@{into}", rev] + (["-m", message] if message else []) + ["--dry-run"] * dry_run
        for flag, paths in (("--ours", ours), ("--theirs", theirs)):
            for p in [paths] if isinstance(paths, str) else paths:
                args += [flag, p]
        out: dict[str, Any] = self._json(*args, fine=(0, 3)) or {}
        conflicts = [Conflict._of(c) for c in out.get("conflicts") or []]
        if conflicts and not dry_run:
            first = "; ".join(f"{c.kind}: {c.path}{f' {c.field}' if c.field else ''}" for c in conflicts[:3])
            more = f"; and {len(conflicts) - 3} more" if len(conflicts) > 3 else ""
            raise ConflictError(f"merge {rev} into {into}: nothing was changed; {first}{more}", conflicts, into)
        out["conflicts"] = conflicts
        if out.get("commit"):
            out["commit"] = Commit._of(out["commit"])
        return out

    def blame(self, path: str, rev: Rev = "main", select: str = "", *, values: bool = False) -> list[dict[str, Any]]:
        """Which commit wrote the chunks of an array; `select` is as on the command line. Neighbouring chunks of
        one commit are one item: `chunk` is the first, `chunks` counts them along each dimension. With `values`, which
        commit changed the values last: a commit that changed one value of a chunk wrote all of the chunk.

        >>> [(b["chunk"], b["message"]) for b in repo.blame("t2m", select="0,:")]
        [([0, 0], 'first')]
        >>> [(b["start"], b["shape"]) for b in repo.blame("t2m", select="0,:", values=True)]
        [([0, 0], [1, 6])]
        """
        options = (["--select", select] if select else []) + ["--values"] * values
        _, out = self._run("blame", f"{self.path}@{_rev(rev)}:{path}", "--json", *options)
        return [json.loads(line) for line in out.splitlines()]

    def value_log(self, path: str, rev: Rev = "main", select: str = "") -> list[dict[str, Any]]:
        """The commits that changed values of an array, newest first, with how many (`count`) and the box around them.

        >>> [(c["message"], c["count"]) for c in repo.value_log("t2m", select="0,0")]
        [('first', 1)]
        """
        _, out = self._run("log", f"{self.path}@{_rev(rev)}:{path}", "--values", "--json", *(["--select", select] if select else []))
        return [json.loads(line) for line in out.splitlines()]

    def undo(self, name: str = "main", *, tag: bool = False) -> Any:
        """Take the last move of a branch or tag back: of a commit, a merge, a reset or a deletion. A second
        undo takes the first one back.

        >>> s = repo.writable_session()
        >>> s.array("t2m")[:] = 0
        >>> c = s.commit("a mistake")
        >>> move = repo.undo()
        >>> repo.at("main").commit.message
        'first'
        """
        return self._json("undo", f"{self.path}@{name}", *["--tag"] * tag)

    def amend(self, message: str = "", branch: str = "main", *, author: str = "", time: str = "") -> dict[str, Any]:
        """Make the last commit of a branch again with another message, author or time.

        >>> repo.amend("the first one")["commit"]["message"]
        'the first one'
        """
        options = [o for flag, value in (("-m", message), ("--author", author), ("--time", time)) if value for o in (flag, value)]
        out: dict[str, Any] = self._json("commit", f"{self.path}@{branch}", "--amend", *options)
        return out

    def erase(self, path: str, *, force: bool = False, dry_run: bool = False) -> dict[str, Any]:
        """Take an array, a group or a key out of every version of all branches and tags. Commits that follow get new ids;
        `gc` then removes what only it had.

        >>> repo.erase("t2m", dry_run=True)["rewritten"]
        1
        """
        options = [*["--force"] * force, *["--dry-run"] * dry_run]
        out: dict[str, Any] = self._json("erase", f"{self.path}:{path}", *options)
        return out

    def protect(self, name: str = "main", *, tag: bool = False, freeze: bool = False, end: bool = False) -> None:
        """Let a branch go forward only, or with `freeze` not move at all; a protected tag cannot be deleted. With `end`, it
        moves freely again.

        >>> repo.protect()
        >>> repo.undo()
        Traceback (most recent call last):
        ...
        zarrdb._errors.DeniedError: branch "main": it is protected: it only goes forward; "zarrdb branch DB --unprotect main" lets it
        >>> repo.protect(end=True)
        """
        self._run("tag" if tag else "branch", self.path, "--unprotect" if end else "--freeze" if freeze else "--protect", name)

    def revert_to(self, rev: Rev, branch: str = "main", message: str = "") -> dict[str, Any]:
        """Make a commit on a branch with the contents of an older version. The branch goes forward: copies that
        pull the branch get the old contents too; after `undo` or `reset_branch`, a pull would bring the later commits back.

        >>> s = repo.writable_session()
        >>> s.array("t2m")[:] = 0
        >>> c = s.commit("a mistake")
        >>> out = repo.revert_to("main~1")
        >>> repo.at("main").array("t2m")[0, 0].item() != 0
        True
        """
        args = ["revert", f"{self.path}@{branch}", "--to", _rev(rev)] + (["-m", message] if message else [])
        out: dict[str, Any] = self._json(*args)
        return out

    def gc(self, *, dry_run: bool = False) -> Any:
        """Free the space of data that no version needs any more."""
        return self._json("gc", self.path, *["--dry-run"] * dry_run)

    def expire(
        self,
        older_than: str | timedelta | datetime | None = None,
        *,
        keep: int | None = None,
        policy: str = "",
        drop_bases: bool = False,
        dry_run: bool = False,
    ) -> Any:
        """Let old versions go, so that `gc` can free their space: versions older than an age, such as "90d",
        or all but the newest `keep` of each branch, or all but what `policy` keeps of each branch, such as
        "keep 7 daily 4 weekly 12 monthly, tags". The versions that branches come from stay, so that the branches
        can be merged; `drop_bases` lets them go too."""
        args = ["--older-than", _age(older_than)] if older_than else []
        args += ["--keep", str(keep)] if keep is not None else []
        args += ["--policy", policy] if policy else []
        return self._json("expire", self.path, *args, *["--drop-bases"] * drop_bases, *["--dry-run"] * dry_run)

    def fsck(self, *, full: bool = False) -> Any:
        """Verify the database. Damage is in `problems` of the result."""
        return self._json("fsck", self.path, *["--full"] * full, fine=(0, 5))

    def fetch_payloads(self, rev: Rev, path: str = "") -> Any:
        """Fetch all chunks at or below a node of a version into a lazy clone, or the cache of a remote, so that they can be read
        offline. What is here is not fetched again. The numbers of `payloads`, `bytes`, and of `requests` and bytes that were `fetched`.

        >>> repo.fetch_payloads("main", "t2m")["fetched"]
        0
        """
        return self._json("fetch", self.path, "--payloads", _rev(rev) + (f":{path}" if path else ""))

    def stats(self) -> Any:
        """Count the contents of the database."""
        return self._json("stats", self.path)

    def import_(
        self,
        *sources: Place,
        to: str = "",
        branch: str = "main",
        message: str = "",
        overwrite: bool = False,
        append_dim: str | None = None,
        overlap: str | None = None,
        strict: bool = False,
        any_order: bool = False,
        history: bool = False,
        progress: Report | None = None,
    ) -> Commit:
        """Copy stores into the database as one commit, which is returned. Files of formats that are known, such
        as netCDF, TIFF or N5, are sources, too. With `append_dim` all sources are appended along that dimension to what is
        at `to`. Labels that are there already or go back are refused, unless `any_order`; with overlap="replace" steps whose
        labels are there are replaced, and the others appended. A gap in a regular coordinate is a warning, and with `strict` an error.
        With `history` every version, branch and tag of one Icechunk or OCDBT repository comes in, at the root of a new database.

        >>> repo.export("old.zarr")
        >>> repo.import_("old.zarr", to="copies/old", message="copy").message
        'copy'
        >>> repo.at("main").array("copies/old/t2m").shape
        (4, 6)
        """
        args = ["import", self.path, *map(_place, sources)] + ["--overwrite"] * overwrite + ["--history"] * history
        args += ["--strict"] * strict + ["--any-order"] * any_order
        on = "" if history and branch == "main" else branch
        for flag, value in (("--branch", on), ("--to", to), ("-m", message), ("--append-dim", append_dim), ("--overlap", overlap)):
            args += [flag, value] if value else []
        if history:
            self._run(*args, progress=progress)
            return self.resolve(self.lookup_branch(branch))
        return self._imported(args, progress)

    def _imported(self, args: Sequence[str], progress: Report | None) -> Commit:
        """Run an import. Another writer may have moved the branch on since."""
        return self.resolve(self._json(*args, progress=progress)["commit"]["id"])

    def link(
        self,
        *sources: Place | References,
        to: str = "",
        branch: str = "main",
        message: str = "",
        append_dim: str | None = None,
        overwrite: bool = False,
        allow: str | Sequence[str] = (),
        url_map: Mapping[str, str] | None = None,
        validate: str = "local",
        progress: Report | None = None,
    ) -> Commit:
        """Take reference sets or files of other formats in as one commit, which is returned, and leave their bytes where
        they are: the chunks are virtual. Several sources need `append_dim`. A source may be a pattern such as
        "s3://bucket/2024/*.nc", and "@files.txt" a list of them; or a reference set as a dict, or a dataset of VirtualiZarr. Bytes are read from the folder of a source,
        and below the URLs that `allow` names; `url_map` says where files below a URL are found. A file must not
        have changed: `validate` says which files are checked, "local", "all" or "none".

        >>> n = open("numbers.bin", "wb").write(np.full(6, 7, "f4").tobytes())
        >>> array = {"zarr_format": 2, "shape": [6], "chunks": [6], "dtype": "<f4", "compressor": None, "fill_value": 0, "order": "C", "filters": None}
        >>> refs = {".zgroup": {"zarr_format": 2}, "far/.zarray": array, "far/0": ["numbers.bin", 0, 24]}
        >>> c = repo.link({"version": 1, "refs": refs}, to="linked", allow=os.getcwd())
        >>> repo.at("main").array("linked/far")[:2].tolist()
        [7.0, 7.0]
        """
        args = ["--link", "--branch", branch, "--validate", validate] + ["--overwrite"] * overwrite
        for flag, value in (("--to", to), ("-m", message), ("--append-dim", append_dim)):
            args += [flag, value] if value else []
        for prefix in [allow] if isinstance(allow, str) else allow:
            args += ["--allow", prefix]
        for url, other in (url_map or {}).items():
            args += ["--url-map", f"{url}={other}"]
        with as_files(sources) as files:
            if not message and any(f is not s for f, s in zip(files, sources, strict=True)):
                args += ["-m", "link references"]
            return self._imported(["import", self.path, *map(_place, files), *args], progress)

    def allow(self, *prefixes: str) -> None:
        """Let references of the database be followed below these URLs or folders. This machine remembers it for you.

        >>> repo.allow("s3://era5-pds/")
        """
        self._run("refs", "allow", self.path, *prefixes)

    def export(
        self,
        dest: Place,
        rev: Rev = "main",
        path: str = "",
        *,
        format: str | None = None,
        skip: str | Sequence[str] = (),
        overwrite: bool = False,
        resume: bool = False,
    ) -> None:
        """Copy a version to a directory, zip file or bucket. `overwrite` replaces the contents of `dest`;
        `resume` goes on with an interrupted export; `skip` are paths of arrays and groups that are
        left out of a conversion to `format`."""
        target = f"{self.path}@{_rev(rev)}" + (f":{path}" if path else "")
        options = (["--format", format] if format else []) + ["--overwrite"] * overwrite + ["--resume"] * resume
        options += [option for one in ([skip] if isinstance(skip, str) else skip) for option in ("--skip", one)]
        self._run("export", target, _place(dest), *options)

    def checkout(self, dir: Place, rev: Rev = "main", *, only: str | Sequence[str] = (), discard: str | Sequence[str] = ()) -> dict[str, Any]:
        """Write a version to a directory of plain Zarr, for tools that take only a path, or move such a folder to another version.
        `only` are paths of arrays and groups, if not all is wanted; `discard` are paths where the folder's own changes are dropped.

        >>> import tempfile, zarr
        >>> with tempfile.TemporaryDirectory() as tmp:
        ...     repo.checkout(f"{tmp}/w.zarr")["branch"]
        ...     zarr.open_array(f"{tmp}/w.zarr/t2m").attrs["units"] = "degC"
        ...     repo.folder_status(f"{tmp}/w.zarr")
        ...     commit = repo.commit_folder(f"{tmp}/w.zarr", "units")
        'main'
        {'t2m/zarr.json': 'changed'}
        >>> commit.message, repo.at("main").array("t2m").attrs["units"]
        ('units', 'degC')
        """
        return _folders.checkout(self, _place(dir), _rev(rev), only, discard)

    def commit_folder(self, dir: Place, message: str = "", *, branch: str | None = None, verify: bool = False) -> Commit:
        """Commit what changed in a folder of `checkout`, merged with its branch as any session is, and return the commit: the one that
        the folder stood at if nothing changed. `verify` compares the bytes of all files. A conflict is a `ConflictError`."""
        return self.resolve(_folders.commit(self, _place(dir), message, branch, verify))

    def folder_status(self, dir: Place) -> dict[str, str]:
        """The keys that changed in a folder of `checkout`: "added", "changed" or "removed"."""
        return _folders.status(self, _place(dir))

    def backup(self, dest: Place, force: bool = False) -> Any:
        """Make a backup, or bring one up to date. What somebody committed to the backup is an error, unless `force` drops it."""
        return self._json("backup", self.path, _place(dest), *["--force"] * force)

    def push(
        self,
        other: Place,
        *refs: str,
        all: bool = False,
        tags: bool = False,
        prune: bool = False,
        dry_run: bool = False,
        merge: bool = False,
        progress: Report | None = None,
    ) -> Any:
        """Bring branches and tags of another database, a backup or clone of this one, up to date, or of a remote such as
        `s3://bucket/weather`, which is made if nothing is there. `prune` deletes
        branches there, with `all`, and tags, with `tags`, that this one does not have. With `merge`, a branch that has
        gone on there is fetched, merged and pushed again.

        >>> out = repo.backup("copy.zdb")
        >>> repo.create_tag("v1")
        >>> [move["ref"] for move in repo.push("copy.zdb", tags=True)["moves"]]
        ['tags/v1']
        """
        options = ["--all"] * all + ["--tags"] * tags + ["--prune"] * prune + ["--dry-run"] * dry_run
        options += ["--merge"] * merge
        return self._json("push", self.path, _place(other), *refs, *options, progress=progress)

    def pull(
        self,
        other: Place | None = None,
        *refs: str,
        all: bool = False,
        tags: bool = False,
        merge: bool = False,
        deepen: int = 0,
        unshallow: bool = False,
        progress: Report | None = None,
    ) -> Any:
        """Bring branches and tags up to date from another database, a backup or clone of this one, or a remote, by default the one
        that this was cloned or opened from. A shallow clone gets the contents of `deepen` more generations of versions, or with `unshallow` of all."""
        options = ["--all"] * all + ["--tags"] * tags + ["--merge"] * merge + ["--unshallow"] * unshallow
        return self._json("pull", self.path, *([_place(other)] if other is not None else []), *refs, *options, *(["--deepen", str(deepen)] if deepen else []), progress=progress)

    lookup_snapshot = _icechunk.lookup_snapshot
    garbage_collect = _icechunk.garbage_collect
    expire_snapshots = _icechunk.expire_snapshots
