"""Protects databases from programs that take their folder for a store of zarr-python.

`ds.to_zarr("w.zdb", mode="w")` deletes the folder, with every version, before it writes.
zarr-python has no way to bring another store for a path, and its entry points load nothing
before it deletes. But it deletes with `shutil.rmtree`, which is an auditing event, and an audit hook
may refuse that. So this works with every version of zarr-python, in any order of imports, from the
moment when this package is imported. Nothing but zarr-python and fsspec is refused:
`shutil.rmtree("w.zdb")` removes a database.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from ._client import is_database
from ._errors import DeniedError


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if event != "shutil.rmtree" or not isinstance(args[0], str | os.PathLike):
        return
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__") == "shutil" and frame.f_back is not None:
        frame = frame.f_back
    library = str(frame.f_globals.get("__name__")).partition(".")[0]
    if library not in ("zarr", "fsspec"):
        return
    path = os.path.abspath(os.fspath(args[0]))
    for dir in (path, os.path.dirname(path)):
        if is_database(dir):
            raise DeniedError(
                f"{path}: {library} was to delete it, which is {'' if dir == path else 'a part of '}a zarrdb database with all its versions; nothing was deleted. "
                f'Write with zarrdb.to_zarrdb(ds, "{dir}", mode="w"), or into zarrdb.open("{dir}").writable_session().store; '
                "shutil.rmtree removes a database"
            )


def install() -> None:
    """Refuse such deletions in this process. There is no way back."""
    sys.addaudithook(_hook)
