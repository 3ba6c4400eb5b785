"""Whether a dataset continues what is stored, as `zarrdb import --append-dim` asks of its sources.

xarray itself appends labels that are there already, overwrites other coordinates, and writes wrong times
where the stored unit, such as whole days, cannot hold the new ones.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from xarray import Dataset, Variable, conventions
from xarray.backends import ZarrStore

from ._errors import InvalidError


def check_append(ds: Dataset, store: Any, group: str | None, dim: str, any_order: bool) -> None:
    """Raise an InvalidError with all reasons why ds does not continue the group along dim. A group without
    the dimension, or a missing one, is left to xarray."""
    try:
        raw = dict(ZarrStore.open_group(store, mode="r", group=group, consolidated=False).load()[0])  # values are read where they are used
    except FileNotFoundError:
        return
    if not any(dim in v.dims for v in raw.values()) or dim not in ds.dims:
        return
    with warnings.catch_warnings():  # xarray repeats them when it writes
        warnings.simplefilter("ignore")
        decoded, _, _ = conventions.decode_cf_variables(raw, {})
        wrong = [f"{n}: the dataset does not have it" for n, v in raw.items() if dim in v.dims and n not in ds.variables]
        for name, new in ds.variables.items():
            if name in raw:
                wrong += [f"{name}: {why}" for why in _misfits(new, raw[name], decoded[name], name, dim, any_order)]
            elif dim in new.dims:
                wrong.append(f"{name}: what is stored does not have it; without it, {dim} can be appended")
    if wrong:
        raise InvalidError(f"append along {dim}: nothing was written. {'; '.join(wrong)}")


def _misfits(new: Variable, raw: Variable, decoded: Variable, name: Any, dim: str, any_order: bool) -> list[str]:
    """Why a variable does not continue the stored one, which is given as it is stored and as xarray decodes it."""
    if set(new.dims) != set(raw.dims):
        return [f"it has the dimensions {new.dims}, those that are stored {raw.dims}"]
    units = new.attrs.get("units"), decoded.attrs.get("units")
    if None not in units and units[0] != units[1]:
        return [f"its units are {units[0]!r}, and {units[1]!r} is stored"]
    first = new[(0,) * new.ndim].values.item() if new.dtype == object and new.size else None
    is_time = new.dtype.kind in "mM" or hasattr(first, "calendar")
    if dim in new.dims and name != dim and not is_time:
        return []
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
            "write what is stored again with another unit or type first: encoding={…: {'units': …, 'dtype': 'f8'}}"
        ]
    if not is_time and not _keeps(new, stored, raw, decoded):
        return [f"its numbers cannot be stored as {raw.dtype}; write what is stored again with another type first: encoding={{…: {{'dtype': …}}}}"]
    if dim not in new.dims:
        same = stored.shape == raw.shape and Variable(raw.dims, stored.data).equals(Variable(raw.dims, raw.values))  # type: ignore[no-untyped-call]
        return [] if same else [f"it differs from what is stored, and does not have the dimension {dim}; drop it, or write it without append_dim"]
    return [] if any_order or name != dim or new.ndim != 1 else _order(raw, stored.values, new.values)


def _keeps(new: Variable, stored: Variable, raw: Variable, decoded: Variable) -> bool:
    """Whether numbers that are stored as integers are what they were."""
    how = decoded.encoding.keys()
    if raw.dtype.kind not in "iu" or new.dtype.kind not in "iuf" or how & {"scale_factor", "add_offset", "_Unsigned"}:
        return True
    same = stored.values == new.values
    return bool((same | new.isnull().values if how & {"_FillValue", "missing_value"} else same).all())


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
    """Why labels do not follow the old ones: numbers and times go on in one direction, others do not repeat."""
    advice = "any_order=True appends it"
    if stored.dtype.kind not in "iufmM":
        seen = set(old.values.tolist())
        for label in stored.tolist():
            if label in seen:
                return [f"{label!r} is there already; {advice}"]
            seen.add(label)
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
