"""xarray: open_dataset(…, engine="zarrdb"), and to_zarrdb."""

from __future__ import annotations

import inspect
import os
from typing import Any

from xarray import DataArray, Dataset, DataTree, Variable, open_zarr
from xarray.backends import BackendEntrypoint
from xarray.backends.api import DATAARRAY_NAME, DATAARRAY_VARIABLE
from xarray.backends.zarr import ZarrBackendEntrypoint

from ._accessor import register
from ._append import check as check_values
from ._append import split
from ._client import Client
from ._errors import ConflictError, InvalidError, NotFoundError
from ._repository import Repository
from ._repository import open as open_repository
from ._session import Session
from ._snapshot import Snapshot
from ._store import ZarrdbStore
from ._target import SCHEME, is_target, parse

register()


def store_of(target: Any) -> tuple[ZarrdbStore, str]:
    """The store that a target names, and the path of a group in it."""
    if isinstance(target, Repository):
        target = target.at("main")
    if isinstance(target, Snapshot | Session):
        target = target.store
    if isinstance(target, ZarrdbStore):
        return target, ""
    dir, rev, path = parse(os.fspath(target))
    return ZarrdbStore(Snapshot(Client.of(dir), rev)), path


class _Variable(Variable):
    """A variable whose dask array is named after the version. xarray names it after the target that
    was opened, which may be a branch: then arrays before and after a commit would be one."""

    __slots__ = ("_store",)
    _store: ZarrdbStore

    @classmethod
    def of(cls, v: Variable, store: ZarrdbStore) -> _Variable:
        data: Any = v._data
        out = cls(v._dims, data, v._attrs, v._encoding, fastpath=True)
        out._store = store
        return out

    def _replace(self, *args: Any, **kwargs: Any) -> Any:
        out = super()._replace(*args, **kwargs)
        out._store = self._store
        return out

    def chunk(self, chunks: Any = {}, name: Any = None, *args: Any, from_array_kwargs: Any = None, **kwargs: Any) -> Any:  # type: ignore[override]  # noqa: B006
        given = dict(from_array_kwargs or {})
        name = given.pop("name", None) or name
        if name:
            from dask.base import tokenize

            given["name"] = f"{name}-{tokenize(self._store)}"
        kwargs["from_array_kwargs"] = given
        v: Any = super().chunk(chunks, None, *args, **kwargs)
        return Variable(v._dims, v._data, v._attrs, v._encoding, fastpath=True)


def _named(ds: Dataset, store: ZarrdbStore) -> Dataset:
    """The dataset with variables that are named after the version; variables in memory stay."""
    for name, v in ds._variables.items():
        if type(v) is Variable and not v._in_memory:
            ds._variables[name] = _Variable.of(v, store)
    return ds


class _Zarr(ZarrBackendEntrypoint):
    def open_dataset(self, filename_or_obj: Any, **options: Any) -> Any:
        return _named(super().open_dataset(filename_or_obj, **options), filename_or_obj)

    def open_groups_as_dict(self, filename_or_obj: Any, **options: Any) -> Any:
        return {path: _named(ds, filename_or_obj) for path, ds in super().open_groups_as_dict(filename_or_obj, **options).items()}


class ZarrdbBackendEntrypoint(BackendEntrypoint):
    """Opens DB, DB@REV:GROUP, and versions and sessions themselves.

    >>> import xarray as xr
    >>> list(xr.open_dataset(f"{repo.path}@main", engine="zarrdb"))
    ['t2m']
    """

    description = "Open versions of zarrdb databases"
    supports_groups = True
    open_dataset_parameters = tuple(
        p for p in inspect.signature(ZarrBackendEntrypoint.open_dataset).parameters if p not in ("self", "mode", "store", "engine", "storage_options")
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        if isinstance(filename_or_obj, Repository | Snapshot | Session | ZarrdbStore):
            return True
        return isinstance(filename_or_obj, str | os.PathLike) and is_target(str(filename_or_obj))

    def _open(self, how: str, target: Any, group: str | None, options: dict[str, Any]) -> Any:
        store, path = store_of(target)
        group = "/".join(p for p in (path, (group or "").strip("/")) if p) or None
        options.update(consolidated=False, group=group)
        return getattr(_Zarr(), how)(store, **options)

    def open_dataset(self, filename_or_obj: Any, *, group: str | None = None, **options: Any) -> Any:
        return self._open("open_dataset", filename_or_obj, group, options)

    def open_datatree(self, filename_or_obj: Any, *, group: str | None = None, **options: Any) -> Any:
        return self._open("open_datatree", filename_or_obj, group, options)

    def open_groups_as_dict(self, filename_or_obj: Any, *, group: str | None = None, **options: Any) -> Any:
        return self._open("open_groups_as_dict", filename_or_obj, group, options)


def _place_of(target: str, branch: str, group: str | None) -> tuple[Repository, str, str | None]:
    """The database, branch and group that DB@BRANCH:GROUP names, combined with the other arguments. A database is made where there is none."""
    if "://" in target.removeprefix(SCHEME):
        raise InvalidError(f"{target}: nothing is written to a URL; write to a database, and push that")
    try:
        dir, rev, path = parse(target)
    except NotFoundError:
        return open_repository(target.removeprefix(SCHEME), create=True), branch, group
    if rev != "main" and branch not in ("main", rev):
        raise InvalidError(f"{target}: it names {rev}, and branch={branch!r} was given too")
    return open_repository(dir), branch if rev == "main" else rev, "/".join(p for p in (path, (group or "").strip("/")) if p) or None


def to_zarrdb(
    ds: Any,
    target: Session | Repository | str | os.PathLike[str],
    *,
    group: str | None = None,
    branch: str = "main",
    message: str = "",
    mode: str | None = None,
    compute: bool = True,
    any_order: bool = False,
    overlap: str | None = None,
    strict: bool = False,
    retries: int = 0,
    **options: Any,
) -> Any:
    """Write a Dataset, DataArray or DataTree. Into a repository, the directory of one, or DB@BRANCH:GROUP, it is a commit, which is
    returned; into a session it is a part of that. `options` are those of `Dataset.to_zarr`,
    such as append_dim, region and encoding. Numbers, times and texts that the stored type, packing or unit cannot hold are
    refused; with append_dim also labels that are there already or go back (unless `any_order`), and other coordinates. A
    gap in a regular coordinate is a warning, and with `strict` an error; with overlap="replace" steps whose labels are there are replaced.
    Of a DataTree, append_dim appends every group that has the dimension; the others must be as they are stored.
    If another one changes what was compared before the commit, that is a `ConflictError`: write again, or have it tried `retries` times. With compute=False,
    which needs a session, what writes the chunks is returned: dask's `Delayed`. Consolidated metadata is written with consolidated=True only.

    >>> import xarray as xr, zarrdb
    >>> repo = zarrdb.open("rain.zdb", create=True)
    >>> zarrdb.to_zarrdb(xr.Dataset({"pr": ("time", [1.0, 2.0])}), repo, message="two").message
    'two'
    >>> c = zarrdb.to_zarrdb(xr.Dataset({"pr": ("time", [3.0])}), repo, append_dim="time")
    >>> xr.open_dataset(repo, engine="zarrdb").pr.values.tolist()
    [1.0, 2.0, 3.0]
    """
    if overlap not in (None, "replace"):
        raise InvalidError(f'overlap={overlap!r}: "replace" is due')
    if (overlap or strict) and options.get("append_dim") is None:
        raise InvalidError("overlap and strict need append_dim")
    if strict and any_order:
        raise InvalidError("strict and any_order exclude each other: gaps are looked for in coordinates that are in order")
    if overlap and not compute:
        raise InvalidError("compute=False: steps are replaced at once")
    fits = {"any_order": any_order, "strict": strict, "overlap": bool(overlap)}
    if not isinstance(target, Session | Repository):
        target, branch, group = _place_of(os.fspath(target), branch, group)

    ds, trees = _dataset(ds), isinstance(ds, DataTree)
    if trees and group and options.get("append_dim") is None:
        raise InvalidError("group: xarray writes a DataTree at the root only. Put it below a path: to_zarrdb(DataTree.from_dict({group: tree}), …)")
    options["consolidated"] = bool(options.get("consolidated"))
    modes: dict[str, Any] = {} if mode is None else {"mode": mode}

    def write(s: Session, **how: Any) -> Any:
        if not trees:
            data = check_values(ds, s, group, options | {"mode": mode}, **fits)
            if overlap:
                return _put(data, s, {"group": group} | options | modes)
            return data.to_zarr(s.store, group=group, **modes, **how, **options)
        if options.get("append_dim") is not None:
            return _append_tree(ds, s, group, options | modes, fits, how)
        inherit = options.get("write_inherited_coords", False)
        nodes = {node.path: node.to_dataset(inherit=inherit or node is ds) for node in ds.subtree}
        encoding = options.get("encoding") or {}
        for path, node in nodes.items():
            at = "/".join(filter(None, [group and group.strip("/"), path.strip("/")]))
            nodes[path] = check_values(node, s, at, options | {"mode": mode, "encoding": encoding.get(path)}, **fits)
        return DataTree.from_dict(nodes).to_zarr(s.store, group=group, **modes, **how, **options)

    if isinstance(target, Session):
        later = write(target, compute=compute)
        return None if compute else later
    if not compute:
        raise InvalidError("compute=False needs a session, since a commit has all its chunks: to_zarrdb(ds, repo.writable_session(), compute=False)")
    while True:
        s = target.writable_session(branch)
        try:
            write(s)
            return s.commit(message or "write a dataset")
        except ConflictError as e:
            s.discard()
            if (retries := retries - 1) < 0:
                raise ConflictError(f"{e}; nothing was written. Call to_zarrdb again: it compares with the new state", e.conflicts, e.branch) from e
        except BaseException:
            s.discard()
            raise


def _append_tree(tree: Any, s: Session, group: str | None, options: dict[str, Any], check: dict[str, bool], how: dict[str, Any]) -> None:
    """Append the groups of a DataTree that have the dimension, and write others that are not there. If none with the dimension is
    there, all are written. All are compared before the first is written. xarray appends a single group."""
    dim = options["append_dim"]
    if not how.get("compute", True):
        raise InvalidError("compute=False: a DataTree is appended at once")
    options = {k: v for k, v in options.items() if k != "write_inherited_coords"}
    encoding = options.pop("encoding", None) or {}
    if not any(dim in node.dims for node in tree.subtree):
        raise InvalidError(f"append along {dim}: no group of the tree has that dimension")
    fits: list[tuple[Dataset, dict[str, Any]]] = []
    for node in tree.subtree:
        data = node.to_dataset(inherit=node is tree)
        at = "/".join(filter(None, [(group or "").strip("/"), node.path.strip("/")])) or None
        own = options | {"group": at} | ({"encoding": encoding[node.path]} if node.path in encoding else {})
        try:
            stored = open_zarr(s.store, group=at, consolidated=False)
        except FileNotFoundError:
            del own["append_dim"]
        else:
            if dim not in data.dims and data.variables and not data.equals(stored):
                raise InvalidError(f"append along {dim}: /{at or ''} does not have it, and differs from what is stored")
            if dim in data.dims and stored.variables and dim not in stored.dims:
                raise InvalidError(f"append along {dim}: what is stored at /{at or ''} does not have it")
            if dim not in data.dims:
                continue
        fits.append((check_values(data, s, at, own, **check), own))
    new = [own["group"] or "" for data, own in fits if dim in data.dims and "append_dim" not in own]
    if new and any("append_dim" in own for _, own in fits):
        raise InvalidError(f"append along {dim}: /{new[0]} is not there, and would have other lengths than what is appended; write the group alone first")
    for data, own in fits:
        if check["overlap"] and "append_dim" in own:
            _put(data, s, own)
        else:
            data.to_zarr(s.store, **own)


def _put(ds: Dataset, s: Session, how: dict[str, Any]) -> None:
    """Replace the steps of a dataset whose labels are stored, which are computed at once, and append the others."""
    try:
        stored = open_zarr(s.store, group=how["group"], consolidated=False)
        parts = split(ds, how["append_dim"], stored) if how["append_dim"] in stored.dims else [(ds, None)]
    except FileNotFoundError:
        parts = [(ds, None)]
    inside = {k: v for k, v in how.items() if k not in ("append_dim", "mode", "encoding")}
    for part, at in parts:
        if at is None:
            part.to_zarr(s.store, **how)
        else:  # several runs may be in a chunk, which xarray does not let dask write
            part.compute().to_zarr(s.store, **inside, region={how["append_dim"]: at})


def _dataset(data: Any) -> Any:
    """A DataArray as the dataset that its to_zarr writes."""
    if not isinstance(data, DataArray):
        return data
    if data.name is not None and data.name not in data.coords and data.name not in data.dims:
        return data.to_dataset()
    out = data.to_dataset(name=DATAARRAY_VARIABLE)
    return out if data.name is None else out.assign_attrs({DATAARRAY_NAME: data.name})
