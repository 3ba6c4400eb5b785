"""Whether numbers, times and texts keep their values in another type of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._errors import InvalidError

Numbers = np.ndarray[Any, Any]


def cast(value: Any, dtype: np.dtype[Any], what: str) -> Numbers:
    """The value as an array of a type. Floats are rounded to shorter floats; any other change of a value is an InvalidError
    that names the element and begins with `what`."""
    if dtype.kind in "OVT" or isinstance(value, np.ndarray | np.generic) and value.dtype == dtype:
        return np.asarray(value, dtype)
    try:
        given = np.asarray(value)
        with np.errstate(all="ignore"):
            back = np.asarray(value, dtype) if given.dtype.kind == "O" else _cast(given, dtype)
    except (OverflowError, UnicodeEncodeError) as e:
        raise InvalidError(f"{what}: {_short(value)} cannot be stored as {dtype}: {e}") from e
    wrong = differ(given, back)
    if wrong is not None and wrong.any():
        at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        raise InvalidError(f"{what}: {_short(given[at])} cannot be stored as {dtype}, it would be {_short(back[at])}; {WIDER}")
    return back


WIDER = "convert the values first, such as with round or clip, or store the array with another type"


def _cast(given: Numbers, dtype: np.dtype[Any]) -> Numbers:
    if given.dtype.kind == "c" and dtype.kind != "c":
        given = given.real  # numpy warns, and the caller compares
    return given.astype(dtype)


def differ(given: Numbers, back: Numbers) -> Any:
    """Which elements of an array another one holds with another value, but for the rounding of floats to shorter floats.
    None: none can."""
    a, b = given.dtype, back.dtype
    if a == b or a.kind == b.kind and a.kind not in "mM" and np.can_cast(a, b, "safe") or a.kind == "b":
        return None
    if b.kind == "b":
        return (given != 0) & (given != 1) if a.kind in "iufc" else None
    if a.kind in "fc" and b.kind in "fc":
        real = _infinite(given.real, back.real)
        return real if a.kind == "f" else real | (_infinite(given.imag, back.imag) if b.kind == "c" else given.imag != 0)
    if a.kind in "iu" and b.kind in "fc":
        return ~_same_whole(given, back.real)
    if a.kind in "fc" and b.kind in "iu":
        return ~(_same_whole(back, given.real) & (given.imag == 0))
    if a.kind in "iu" and b.kind in "iu":
        return (back.astype(a) != given) | ((back < 0) != (given < 0))
    if a.kind == b.kind and a.kind in "mM":
        return (back.astype(a) != given) & ~(np.isnat(back) & np.isnat(given))
    if a.kind in "UST" and b.kind in "US" or a.kind == "O":
        one = (lambda x, y: (str(x) if b.kind == "U" else x) != y) if b.kind in "US" else _other
        flat = [one(x, y) for x, y in zip(given.reshape(-1).tolist(), back.reshape(-1).tolist(), strict=True)]
        return np.array(flat, bool).reshape(given.shape)
    return None


def _other(x: Any, y: Any) -> bool:
    """Whether two Python objects differ, but for rounding."""
    if x is None or isinstance(x, float) and isinstance(y, float):
        return not (x is None or x != x and y != y or np.isclose(x, y, rtol=1e-3, atol=1e-7) and np.isfinite(y) == np.isfinite(x))
    return bool(x != y)


def _infinite(given: Numbers, back: Numbers) -> Any:
    """Which floats became infinite."""
    return np.isinf(back) & ~np.isinf(given)


def _same_whole(whole: Numbers, number: Numbers) -> Any:
    """Which floats are exactly the integers. Integers are compared as such: a float64 has not all of 64 bits."""
    size = whole.dtype.itemsize * 8
    least, most = (0.0, 2.0**size) if whole.dtype.kind == "u" else (-(2.0 ** (size - 1)), 2.0 ** (size - 1))
    wide = number.astype("f8") if number.dtype.itemsize < 8 else number
    inside = (wide >= least) & (wide < most)
    with np.errstate(all="ignore"):
        return inside & (np.trunc(wide) == wide) & (np.where(inside, wide, 0).astype(whole.dtype) == whole)


def _short(value: Any) -> str:
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) < 60 else text[:57] + "…"
