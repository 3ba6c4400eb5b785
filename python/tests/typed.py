"""Print a program that uses every public name of the package, for mypy --strict; see lint in scripts/python.sh."""

from __future__ import annotations

import inspect

import zarrdb
from zarrdb import codecs

HEAD = '''
from typing import Any, assert_type

import numpy as np

import zarrdb
from zarrdb import codecs


def use(ds: Any, refs: dict[str, Any]) -> None:
    with zarrdb.open(":memory:") as repo, codecs.use():
        assert_type(repo, zarrdb.Repository)
        assert_type(repo.import_("a.zarr", progress=zarrdb.progress_bar), zarrdb.Commit)
        assert_type(repo.link(refs, "b.json", allow=["s3://b/"]).metadata, dict[str, str])
        zarrdb.clone(repo, "c.zdb", progress=lambda p: print(p.done)).close()
        s = repo.writable_session("main", label="l")
        assert_type(s.store, zarrdb.ZarrdbStore)
        s.store.set_virtual_refs("a", [zarrdb.VirtualChunkSpec([0], "s3://b/x", 0, 8)])
        a = s.array("a")
        assert_type(a, zarrdb.Array)
        a[[0, 1], ...] = a.oindex[[0, 1]] + a.vindex[[0, 1]] + a.isel(x=0) + a.sel(x=[1, 2], method="nearest")
        assert_type(a.shape, tuple[int, ...])
        np.asarray(zarrdb.array(s, "a"))
        assert_type(s.status().new_arrays, set[str])
        assert_type(s.commit("m", {"k": "v"}, rebase_with=zarrdb.Theirs(), rebase_tries=3), zarrdb.Commit)
        repo.create_tag("v1", snapshot_id=repo.lookup_snapshot(repo.lookup_branch("main")))
        assert_type(repo.diff("v1", to_branch="main").arrays["a"].values, zarrdb.Values)
        zarrdb.to_zarrdb(ds, repo, append_dim="time", retries=3)
'''


def main() -> None:
    print(HEAD)
    for name in sorted({*zarrdb.__all__, "Array", "ZarrdbStore", "to_zarrdb"}):
        thing = getattr(zarrdb, name)
        print(f"zarrdb.{name}")
        if inspect.isclass(thing):
            own = {n for c in thing.__mro__ if c.__module__.startswith("zarrdb") for n in vars(c) if not n.startswith("_")}
            own |= {n for c in thing.__mro__ if c.__module__.startswith("zarrdb") for n in getattr(c, "__annotations__", {}) if not n.startswith("_")}
            print(f"\n\ndef _{name}(it: zarrdb.{name}) -> None:\n    " + "\n    ".join(["it", *(f"it.{n}" for n in sorted(own))]) + "\n\n")
    print("\n".join(f"codecs.{n}" for n in getattr(codecs, "__all__", ("use",))))


if __name__ == "__main__":
    main()
