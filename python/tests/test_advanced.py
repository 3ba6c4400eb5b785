"""Indexing by lists and masks selects what numpy selects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import zarr

import zarrdb
from zarrdb import _advanced

RNG = np.random.default_rng(1)
MASK = RNG.random((7, 9)) > 0.5
KEYS: list[Any] = [
    [1, 3], [], [-1, 0, 0], np.array([[1, 2], [6, 0]]), MASK[:, 0], MASK, (slice(None), [1, 8]), (0, [1, 8]), ([0, 2], 3),
    (0, slice(None), [1, 4]), ([0, 2], slice(1, 7, 2), [4, 0]), ([0, 2], [8, 1]), ([0, 2], [8, 1], [0, 1]), (..., [1, 4]),
    (None, [0, 2]), ([0, 2], None, [1, 1]), (slice(None), None, [0, 2]), (MASK, 2), (slice(None, None, -2), [0, 5], slice(1, 3)),
    (np.array([[0], [2]]), np.array([[3, 8]])), (slice(0, 0), [1, 2]), (MASK, [0]), (slice(None), MASK[0], slice(2)), ([0], None, slice(None), [2]),
]  # fmt: skip


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Any:
    repo = zarrdb.open(tmp_path_factory.mktemp("advanced") / "w.zdb", create=True)
    s = repo.writable_session()
    data = np.arange(7 * 9 * 5, dtype="i4").reshape(7, 9, 5)
    zarr.create_array(s.store, name="a", data=data, chunks=(3, 4, 5), dimension_names=("t", "y", "x"))
    zarr.create_array(s.store, name="s", data=data.astype(str).astype("T"), chunks=(3, 4, 5))
    zarr.create_array(s.store, name="y", data=np.arange(0, 90, 10), dimension_names=("y",))
    yield s
    s.discard()
    repo.close()


@pytest.mark.parametrize("box", [_advanced.BOX, 4])
def test_as_numpy(session: zarrdb.Session, box: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_advanced, "BOX", box)
    for name in ("a", "s") if box > 4 else ("a",):
        a = session.array(name)
        want = np.asarray(a)
        for key in KEYS:
            got = a[key]
            assert got.shape == want[key].shape and (got == want[key]).all(), key
    a, want = session.array("a"), np.asarray(session.array("a")).copy()
    for n, key in enumerate(KEYS):
        value = np.arange(want[key].size).reshape(want[key].shape) + 1000 * n
        unique = np.zeros(want.shape, int)
        np.add.at(unique, key, 1)
        if unique.max() < 2:  # of several values for an element numpy does not say which one stays
            a[key] = want[key] = value
            assert (np.asarray(a) == want).all(), key
    z = zarr.open_array(session.store, path="a")
    for outer in (([0, 6], [1, 8, 3], slice(2)), (MASK[:, 0], 3, [0, 4]), (slice(None), [2, 0])):
        a.oindex[outer] = want = RNG.integers(0, 9, a.oindex[outer].shape)
        assert (a.oindex[outer] == want).all() and (z.oindex[outer] == want).all()
    for points in (([0, 6], [1, 8], [4, 0]), ([[0], [6]], [1, 8], 4), (0, -1, 2), (np.array(3), np.array(1), 0)):
        a.vindex[points] = want = RNG.integers(0, 9, a.vindex[points].shape)
        assert (a.vindex[points] == want).all() and (z.vindex[points] == want).all()
    a.vindex[0, :2] = want = np.asarray(a)[0, :2] + 1
    assert (a.vindex[0, :2] == want).all()
    assert a.vindex[[0, 1], :, [2, 2]].shape == (2, 9) == a[[0, 1], :, [2, 2]].shape
    assert a.isel(x=[0, 4], t=-1).shape == (9, 2) and a.read([0, 2], out=np.empty((2, 9, 5), "i4")).shape == (2, 9, 5)


def test_nearest_labels(session: zarrdb.Session) -> None:
    a = session.array("a")
    assert (a.sel(y=[11, 78, 12], method="nearest") == a[:, [1, 8, 1]]).all() and (a.sel(method="nearest", y=34) == a[:, 3]).all()
    assert (a.sel(y=[10, 80]) == a[:, [1, 8]]).all() and a.sel(y=[]).shape == (7, 0, 5)
    for wrong in ({"y": [11, 80]}, {"y": [11], "method": "pad"}, {"z": [1]}):
        with pytest.raises((zarrdb.NotFoundError, zarrdb.InvalidError)):
            a.sel(**wrong)


@pytest.mark.parametrize("key", [([7],), (MASK.T,), ([0.5],), (True,), ([0], [0], [0], [0]), (["a"],), ([0], ..., ...)])
def test_refused(session: zarrdb.Session, key: Any) -> None:
    a = session.array("a")
    for change in (lambda: a[key], lambda: a.write(key, 1)):
        with pytest.raises((IndexError, zarrdb.InvalidError)):
            change()
    with pytest.raises(zarrdb.InvalidError):
        a[[0, 1]] = 1 << 40
    with pytest.raises(zarrdb.InvalidError):
        a.oindex[MASK]
