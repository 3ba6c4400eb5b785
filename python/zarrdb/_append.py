"""Whether a dataset fits the stored one, as `zarrdb import --append-dim` asks of its sources.

xarray itself appends labels that are there already, overwrites other coordinates, wraps numbers that the stored type
cannot hold, and writes wrong times where the stored unit, such as whole days, cannot hold the new ones.

Everything compared is guarded: the commit is a conflict if another commit has changed it meanwhile.
"""

from __future__ import annotations

import base64
import itertools
import warnings
from functools import partial
from typing import Any

import numpy as np
from xarray import Dataset, Variable, conventions
from xarray.backends import ZarrStore

from ._errors import InvalidError
from ._fit import _short, differ
from ._session import Session

Block = np.ndarray[Any, Any]

# A part of a variable in memory that is compared at a time, in elements.
PART = 1 << 22
# A region guards so many chunks of a coordinate; of more chunks, the coordinate.
CHUNKS = 4096


def check(ds: Dataset, session: Session, group: str | None, how: dict[str, Any], any_order: bool, strict: bool = False, overlap: bool = False) -> Dataset:
    """Raise an InvalidError with all reasons why ds does not fit the group, guard what that depends on, and return ds
    with the dask arrays compared when they are computed. `how` are mode, append_dim, region and encoding of to_zarr. A
    group without the dimension to append along, or a missing one, is left to xarray. Gaps in a regular coordinate are
    warnings, or with `strict` reasons; with `overlap` labels that are there already are no reason."""
    dim, mode = how.get("append_dim"), how.get("mode")
    encoding = how.get("encoding") or {}
    raw: dict[Any, Variable] = {}
    store: Any = None
    attrs: Any = {}
    if mode not in ("w", "w-") and (mode is not None or dim is not None or how.get("region") is not None):
        try:  # values are read where they are used
            store = ZarrStore.open_group(session.store, mode="r", group=group, consolidated=False)
            raw, attrs = store.load()
        except FileNotFoundError:
            pass
    if dim is not None and (not any(dim in v.dims for v in raw.values()) or dim not in ds.dims):
        raw, dim = {}, None
    decoded: Any = {}
    wrong: list[str] = []
    gaps: list[str] = []
    fitted: dict[Any, Any] = {}
    with warnings.catch_warnings():  # xarray repeats them when it writes
        warnings.simplefilter("ignore")
        if raw:
            decoded, _, coords = conventions.decode_cf_variables(raw, attrs)
            _guard(ds, session, (group or "").strip("/"), raw, set(coords), store.zarr_group, dim, how.get("region"))
        if dim is not None:
            wrong = [f"{n}: the dataset does not have it" for n, v in raw.items() if dim in v.dims and n not in ds.variables]
        for name, new in ds.variables.items():
            if name not in raw:
                if dim is not None and dim in new.dims:
                    wrong.append(f"{name}: the stored dataset does not have it; without it, {dim} can be appended")
                elif "dtype" in (asked := new.encoding | encoding.get(name, {})):
                    wrong += _values(new, partial(_made, asked, name), fitted, name)
                continue
            why = _misfits(new, raw[name], decoded[name], name, dim, any_order, overlap)
            wrong += [f"{name}: {w}" for w in why]
            if not why and not _labels(new, name, dim):
                wrong += _values(new, partial(_stored, dict(decoded[name].encoding), dict(raw[name].attrs), raw[name].dtype, name), fitted, name)
        if not wrong and dim is not None and not any_order:
            path = f"{(group or '').strip('/')}/{dim}".strip("/")
            gaps = _gaps(session, path, ds.variables.get(dim), raw.get(dim), decoded.get(dim), dim, overlap)
    wrong += [f"{gap}; without strict that is a warning" for gap in gaps] if strict else []
    if wrong:
        raise InvalidError(f"{f'append along {dim}' if dim is not None else 'write a dataset'}: nothing was written. {'; '.join(wrong)}")
    for gap in gaps:
        warnings.warn(f"a gap: {gap}", stacklevel=4)
    if not fitted:
        return ds
    out = ds.copy(deep=False)
    for name, v in fitted.items():
        out._variables[name] = v  # as ds[name] = v, which would look at the indexes again
    return out


def _gaps(session: Session, path: str, new: Variable | None, raw: Variable | None, decoded: Any, dim: Any, overlap: bool) -> list[str]:
    """Gaps that new labels make, as they are stored. With overlap, labels that are there already are not new."""
    if new is None or raw is None or raw.dims != (dim,) or raw.dtype.kind not in "iuf":
        return []
    coded = new.copy(deep=False)
    coded.encoding = decoded.encoding
    values = conventions.encode_cf_variable(coded, name=dim).values.astype(raw.dtype.newbyteorder("<"))
    if overlap:
        values = values[~np.isin(values, raw.values)]
    return session._ask("append_gaps", {"path": path, "values": base64.b64encode(values.tobytes()).decode()}) or []


def split(ds: Dataset, dim: Any, stored: Dataset) -> list[tuple[Dataset, slice | None]]:
    """The steps of ds by their labels: those that are stored in runs, each with its place, and then the others, without one."""
    if dim not in stored.indexes or dim not in ds.indexes:
        raise InvalidError(f"append along {dim}: steps are replaced by their labels, and not both datasets have the coordinate {dim}")
    old, new = stored.indexes[dim], ds.indexes[dim]
    for labels, where in ((old, "stored"), (new, "in the dataset")):
        if not labels.is_unique:
            raise InvalidError(f"append along {dim}: the label {labels[labels.duplicated()][0]} is {where} twice")
    at = old.get_indexer(new)
    ends = [0, *(np.flatnonzero((np.diff(at) != 1) & ((at[1:] >= 0) | (at[:-1] >= 0))) + 1).tolist(), len(at)]
    out: list[tuple[Dataset, slice | None]] = []
    for lo, hi in zip(ends, ends[1:], strict=False):
        if lo < hi and at[lo] >= 0:
            part = ds.isel({dim: slice(lo, hi)})
            out.append((part.drop_vars([n for n, v in ds.variables.items() if dim not in v.dims]), slice(int(at[lo]), int(at[lo]) + hi - lo)))
    if (at < 0).any():
        out.append((ds.isel({dim: np.flatnonzero(at < 0)}), None))
    return out


def _guard(ds: Dataset, session: Session, group: str, raw: dict[Any, Variable], coords: set[Any], zarr: Any, dim: Any, region: Any) -> None:
    """Guard everything that a check has compared. An append relies on the documents of the variables that it makes
    longer, on the other compared variables, on coordinates, and on the members of the group. A region relies on the
    labels beside which it stands."""
    paths: list[str] = []
    for name, v in raw.items():
        path = f"{group}/{name}".strip("/")
        label = name in coords or v.dims == (name,)
        if not set(v.dims) & set(ds.dims) and not (name in ds.variables and dim is not None):
            continue
        if dim is not None and dim not in v.dims or dim == name:
            if label or name in ds.variables:
                paths.append(path)
        elif dim is not None or region is None:
            paths += [f"{path}/{doc}" for doc in ("zarr.json", ".zarray", ".zattrs")]
        else:
            paths.append(f"{path}/.zattrs")  # the meaning of elements; in v3 it is a part of the array's structure
            if label:
                paths += _chunks(zarr[name], v, region, path)
    if dim is not None:
        paths.append(f"{group}/")
    session._guard(paths)


def _chunks(a: Any, v: Variable, region: Any, path: str) -> list[str]:
    """The keys of a coordinate's chunks that a region touches."""
    spans = []
    for d, n, chunk in zip(v.dims, a.shape, a.shards or a.chunks, strict=True):
        part = region.get(d) if isinstance(region, dict) else None
        lo, hi, _ = part.indices(n) if isinstance(part, slice) else (0, n, 1)
        spans.append(range(lo // chunk, -(-hi // chunk)))
    if np.prod([len(s) for s in spans]) > CHUNKS:
        return [path]
    return [f"{path}/{a.metadata.encode_chunk_key(at)}" for at in itertools.product(*spans)]


def _labels(new: Variable, name: Any, dim: Any) -> bool:
    """Whether all elements of a variable are compared with the stored ones at once."""
    return dim is not None and (dim not in new.dims or name == dim) or _is_time(new)


def _is_time(v: Variable) -> bool:
    return v.dtype.kind in "mM" or hasattr(_first(v), "calendar")


def _first(v: Variable) -> Any:
    return v[(0,) * v.ndim].values.item() if v.dtype == object and v.size else None


def _values(new: Variable, fit: Any, fitted: dict[Any, Variable], name: Any) -> list[str]:
    """Why the elements of a variable cannot be stored. Elements of dask are compared when they are computed."""
    if new.chunks is not None:
        data: Any = new.data
        fitted[name] = new._replace(data=data.map_blocks(partial(_checked, fit), dtype=data.dtype, meta=data._meta))
        return []
    values = new.values
    step = max(1, PART // max(1, values.size // max(1, len(values)))) if new.ndim else 1
    for i in range(0, len(values), step) if new.ndim else [...]:
        why = fit(values[i : i + step] if new.ndim else values)  # type: ignore[operator]
        if why:
            return [f"{name}: {why}"]
    return []


def _checked(fit: Any, block: Block) -> Block:
    why = fit(block)
    if why:
        raise InvalidError(f"write a dataset: {fit.args[-1]}: {why}. If it was written into a session, discard the session: chunks may be there already")
    return block


def _made(asked: dict[str, Any], name: Any, block: Block) -> str:
    """Why elements cannot be stored as a new variable in an encoding. Numbers are rounded to integers, as the encoding asks."""
    if block.dtype.kind in "mM" and np.dtype(asked["dtype"]).kind in "iu" and "units" in asked:
        return _made_times({k: v for k, v in asked.items() if k in ("dtype", "units", "calendar", "_FillValue")}, name, block)
    how = {k: v for k, v in asked.items() if k in ("dtype", "scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned")}
    if block.dtype.kind not in "iufcb" or np.dtype(how["dtype"]).kind not in "iufcb":
        return ""
    return _compare(how, None, np.dtype(how["dtype"]), name, block, 0.5)


def _made_times(how: dict[str, Any], name: Any, block: Block) -> str:
    """Why times cannot be stored as a new variable in whole numbers of a unit."""
    dims = [f"d{i}" for i in range(block.ndim)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            coded = conventions.encode_cf_variable(Variable(dims, block, None, how), name=name)
            back = conventions.decode_cf_variable(name, coded, decode_timedelta=True).values
        except (ValueError, OverflowError, TypeError) as e:
            return f"it cannot be stored as {how['dtype']}: {e}"
    if back.dtype.kind != block.dtype.kind:
        return ""
    wrong = (back != block) & ~(np.isnat(back) & np.isnat(block))
    if not wrong.any():
        return ""
    at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    return f"it cannot be stored as {how['dtype']} of {how['units']!r}: {block[at]} would be read as {back[at]}; give it another encoding"


def _stored(encoding: dict[str, Any], attrs: dict[str, Any], dtype: np.dtype[Any], name: Any, block: Block) -> str:
    """Why elements cannot be stored in an existing variable."""
    return _compare(encoding, attrs, dtype, name, block, 0.0)


def _compare(encoding: dict[str, Any], attrs: dict[str, Any] | None, dtype: np.dtype[Any], name: Any, block: Block, slack: float) -> str:
    """Why elements are not read as they were, but for rounding to the step of a packing and to shorter floats."""
    if not block.size:
        return ""
    dims = [f"d{i}" for i in range(block.ndim)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            coded = conventions.encode_cf_variable(Variable(dims, block, None, encoding), name=name)
            raw = coded.values if coded.dtype == dtype or dtype.kind in "OT" else coded.values.astype(dtype)
        except (ValueError, OverflowError, TypeError) as e:
            return f"it cannot be stored as {dtype}: {e}"
        if raw.dtype.kind in "OT":
            return ""
        about = {k: v for k, v in (coded.attrs if attrs is None else attrs).items() if k not in ("units", "calendar")}
        back = conventions.decode_cf_variable(name, Variable(dims, raw, about), decode_times=False, decode_timedelta=False).values
        gone = Variable(dims, block).isnull().values
        step = encoding.get("scale_factor", 1) if "scale_factor" in encoding or "add_offset" in encoding else None
        if block.dtype.kind not in "iufcb" or back.dtype.kind not in "iufcb":
            wrong = differ(block, back)
        elif raw.dtype.kind in "iu" and (step is not None or slack) and block.dtype.kind != "c":
            near = abs(float(np.ravel(1 if step is None else step)[0])) * 0.5
            eps = np.finfo(block.dtype if block.dtype.kind == "f" else back.dtype if back.dtype.kind == "f" else "f8").eps
            most = np.maximum(np.abs(block.astype("f8")), abs(float(np.ravel(encoding.get("add_offset", 0))[0])))
            wrong = ~(np.abs(back.astype("f8") - block) <= near * (1 + 1e-6) + 4 * eps * most) | np.isinf(most)
        else:
            plain = raw if step is None and "_Unsigned" not in encoding else back
            wrong = differ(block, plain)
        wrong = (np.zeros(block.shape, bool) if wrong is None else wrong) & ~gone
        wrong |= Variable(dims, back).isnull().values != gone
    if not wrong.any():
        return ""
    at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    kind = f"{dtype}" if step is None else f"{dtype} with scale_factor {encoding.get('scale_factor', 1)} and add_offset {encoding.get('add_offset', 0)}"
    why = f"it cannot be stored as {kind}: {_short(block[at])} would be read as {_short(back[at])}"
    return f"{why}; {ANOTHER if attrs is not None else 'give it another encoding'}"


ANOTHER = "write the stored variable again with another type first: encoding={…: {'dtype': …}}"


def _calendar(name: str) -> str:
    return "standard" if name in ("gregorian", "proleptic_gregorian") else name


def _misfits(new: Variable, raw: Variable, decoded: Variable, name: Any, dim: Any, any_order: bool, overlap: bool) -> list[str]:
    """Why a variable does not continue the stored one, which is given as it is stored and as xarray decodes it. Elements that
    are neither times nor labels are not looked at."""
    if dim is not None and set(new.dims) != set(raw.dims):
        return [f"it has the dimensions {new.dims}, the stored variable {raw.dims}"]
    units = new.attrs.get("units"), decoded.attrs.get("units")
    if None not in units and units[0] != units[1]:
        return [f"its units are {units[0]!r}, and {units[1]!r} is stored"]
    if not _labels(new, name, dim) or set(new.dims) != set(raw.dims):
        return []
    is_time = _is_time(new)
    if is_time and new.dtype.kind != "m" and "since" in str(raw.attrs.get("units")):
        is_calendar, was = getattr(_first(new), "calendar", "standard"), raw.attrs.get("calendar", "standard")
        if _calendar(is_calendar) != _calendar(was):
            return [f"its calendar is {is_calendar!r}, and {was!r} is stored; convert it first: ds.convert_calendar({was!r})"]
    new = new.transpose(*raw.dims).compute()
    stored = new.copy(deep=False)
    stored.encoding = decoded.encoding
    try:
        stored = conventions.encode_cf_variable(stored, name=name)
        if stored.dtype.kind in "iufmM" and raw.dtype.kind in "iufmM":
            stored = stored.astype(raw.dtype)
    except (ValueError, OverflowError, TypeError) as e:
        return [f"it cannot be stored as {raw.dtype}: {e}"]
    if is_time and not _holds(new, stored, raw, name):
        return [
            f"its times cannot be stored as {raw.dtype} of {raw.attrs.get('units', 'no unit')!r}; "
            "write the stored variable again with another unit or type first: encoding={…: {'units': …, 'dtype': 'f8'}}"
        ]
    if not is_time and (why := _stored(dict(decoded.encoding), dict(raw.attrs), raw.dtype, name, new.values)):
        return [why]
    if dim is None:
        return []
    if dim not in new.dims:
        same = stored.shape == raw.shape and Variable(raw.dims, stored.data).equals(Variable(raw.dims, raw.values))  # type: ignore[no-untyped-call]
        return [] if same else [f"it differs from the stored variable, and does not have the dimension {dim}; drop it, or write it without append_dim"]
    if any_order or name != dim or new.ndim != 1:
        return []
    fresh = ~np.isin(stored.values, raw.values) if overlap else slice(None)
    return _order(raw, stored.values[fresh], new.values[fresh])


def _holds(new: Variable, stored: Variable, raw: Variable, name: Any) -> bool:
    """Whether times are read as they were, but for the rounding of float64."""
    attrs = {k: v for k, v in raw.attrs.items() if k not in ("_FillValue", "missing_value")}
    present = ~np.asarray(new.isnull())
    values, want = np.asarray(stored.values)[present], new.values[present]

    def decode(numbers: Any) -> Any:
        coded = Variable(("n",), numbers, attrs)
        return conventions.decode_cf_variable(name, coded, use_cftime=new.dtype == object or None, decode_timedelta=True).values

    if raw.dtype.kind != "f":
        return bool((decode(values) == want).all())
    wide = values.astype("f8")
    rounding = np.abs(decode(wide + 4 * np.spacing(wide)) - decode(wide))
    return bool((np.abs(decode(values) - want) <= rounding).all())


def _order(old: Variable, stored: Any, labels: Any) -> list[str]:
    """Why labels do not follow the old ones: numbers and times go on in one direction, other labels do not repeat."""
    advice = "any_order=True appends it"
    if stored.dtype.kind not in "iufmM":
        seen = set(old.values.tolist())
        for label in stored.tolist():
            if label in seen:
                return [f"{label!r} is there already; {advice}"]
            seen.add(label)
        return []
    if not stored.size:
        return []
    first, last = old[:1].values, old[-1:].values
    every = np.concatenate([last, stored])
    up, down = every[1:] > every[:-1], every[1:] < every[:-1]
    rises = (last > first if old.size > 1 else up[:1]).all()
    ok = up if rises else down
    if ok.all():
        return []
    at = int(np.argmin(ok)) + 1 - len(last)
    return [f"{labels[at]} {'is there already' if stored[at] in old.values else 'does not follow the label before'}; {advice}"]
