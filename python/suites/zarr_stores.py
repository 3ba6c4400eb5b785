"""Runs zarr-python's own tests with sessions in the place of its stores.

    pytest -p zarr_stores FOLDER/tests/test_array.py …

A MemoryStore is a session of its own. A LocalStore is the session of its path: two of the
same path see the same keys. What zarr-python makes of a dict or a path is one of them as
well. With PIPELINE=1 the library of the package decodes and encodes.

Tests that cannot hold are named in zarr.txt, each with the reason; * stands for anything.
A name there that no test has is an error.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
import zarr
import zarr.storage
import zarr.storage._common
from zarr.core.config import config

import zarrdb
from zarrdb._store import ZarrdbStore

PIPELINE = os.environ.get("PIPELINE") == "1"

_folder = tempfile.mkdtemp()
_repo = zarrdb.open(Path(_folder) / "suite.zdb", create=True)
_begun: list[zarrdb.Session] = []
_of_dict: dict[int, tuple[Any, zarrdb.Session]] = {}  # the dict is kept, so that its id is
_of_path: dict[str, zarrdb.Session] = {}


def _begin() -> zarrdb.Session:
    _begun.append(_repo.writable_session())
    return _begun[-1]


class _Store(ZarrdbStore):
    """A session under the name of another store."""

    def with_read_only(self, read_only: bool = False) -> Any:
        other = type(self).__new__(type(self))
        ZarrdbStore.__init__(other, self.session, read_only=read_only)
        return other

    async def set(self, key: str, value: Any, byte_range: Any = None) -> None:  # as MemoryStore has it
        assert byte_range is None
        await super().set(key, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        ZarrdbStore.__init__(self, state["view"], read_only=state["read_only"])


class MemoryStore(_Store):
    def __init__(self, store_dict: Any = None, *, read_only: bool = False) -> None:
        if store_dict is None:
            session = _begin()
        else:
            kept = _of_dict.get(id(store_dict))
            if kept is None:
                kept = _of_dict[id(store_dict)] = store_dict, _begin()
                for key, value in store_dict.items():
                    kept[1].set(key, value.to_bytes())
            session = kept[1]
        super().__init__(session, read_only=read_only)


class LocalStore(_Store):
    @classmethod
    async def open(cls, root: Any, *, mode: str | None = None, read_only: bool = False) -> Any:  # type: ignore[override]
        store = cls(root, read_only=read_only or mode == "r")
        await store._open()
        return store

    def __init__(self, root: Any, *, read_only: bool = False) -> None:
        path = os.path.realpath(root)
        if path not in _of_path:
            _of_path[path] = _begin()
        super().__init__(_of_path[path], read_only=read_only)


for module in (zarr.storage, zarr.storage._common):
    module.MemoryStore, module.LocalStore = MemoryStore, LocalStore  # type: ignore[misc, assignment, attr-defined]

if PIPELINE:
    from zarrdb.codecs import LazyNDBuffer, ZarrdbCodecPipeline, _name

    # Their tests reset the configuration: this is what it is reset to.
    config.update_defaults({"codec_pipeline": {"path": _name(ZarrdbCodecPipeline)}, "ndbuffer": _name(LazyNDBuffer)})


def _deselected() -> dict[str, str]:
    """The reason for each name in zarr.txt."""
    out = {}
    for line in (Path(__file__).parent / "zarr.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, reason = line.partition(" ")
            if name.startswith("pipeline:"):
                if not PIPELINE:
                    continue
                name = name.removeprefix("pipeline:")
            assert reason.strip(), f"zarr.txt: {name} has no reason"
            out[name] = reason.strip()
    return out


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _begun.clear()  # what modules made of them is used by many tests
    _of_dict.clear()
    names, used, keep, drop = _deselected(), set[str](), [], []
    for item in items:
        name = item.nodeid.rpartition("tests/")[2]
        match = [n for n in names if re.fullmatch(re.escape(n).replace(r"\*", ".*"), name)]
        used.update(match)
        (drop if match else keep).append(item)
    if len(items) > 500 and (stale := set(names) - used):
        raise pytest.UsageError(f"zarr.txt names tests that are not there: {', '.join(sorted(stale))}")
    config.hook.pytest_deselected(items=drop)
    items[:] = keep


@pytest.fixture(autouse=True)
def _end_sessions() -> Any:
    yield
    for s in _begun:
        try:
            s.discard()
        except zarrdb.ZarrdbError:
            pass
    _begun.clear()
    _of_dict.clear()
    _of_path.clear()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.write_line(f"zarr {zarr.__version__}, pipeline {config.get('codec_pipeline.path')}")


def pytest_unconfigure() -> None:
    _repo.close()
    shutil.rmtree(_folder, ignore_errors=True)
