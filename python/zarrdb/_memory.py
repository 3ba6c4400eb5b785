"""Folders of databases in memory, which go with this process."""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from typing import IO, Any

_open: dict[str, tuple[int, IO[bytes], Any]] = {}  # by the path of the database: the process, its lock, and the repository


def folder() -> str:
    """A path for a database in a new folder, in a file system in memory where there is one."""
    import tempfile

    root = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()
    prefix = f"zarrdb-memory-{os.getuid()}-"
    with suppress(OSError):
        for name in os.listdir(root):
            if name.startswith(prefix):
                _sweep(os.path.join(root, name))
    made = tempfile.mkdtemp(prefix=prefix, dir=root)
    alive = _lock(os.path.join(made, "new"))  # for as long as this process lives, or a child of it
    os.rename(os.path.join(made, "new"), os.path.join(made, "alive"))
    path = os.path.realpath(os.path.join(made, "memory.zdb"))
    _open[path] = os.getpid(), alive, None
    return path


def keep(path: str, repo: Any) -> None:
    """Close a repository when this process ends: views may use it although nothing refers to it."""
    _open[path] = (*_open[path][:2], repo)


def remove(path: str, repo: Any) -> None:
    """Remove a database if repo made it in memory, in this process. The process that served it has ended."""
    pid, alive, by = _open.get(path, (0, None, None))
    if alive is not None and by is repo and pid == os.getpid():
        import shutil

        del _open[path]

        shutil.rmtree(os.path.dirname(path), ignore_errors=True)
        alive.close()


def _lock(path: str) -> IO[bytes]:
    import fcntl

    f = open(path, "ab")  # noqa: SIM115 - the caller closes it
    fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return f


def _sweep(folder: str) -> None:
    """Remove the database of a process that was killed."""
    import shutil

    if os.path.exists(path := os.path.join(folder, "alive")):
        with suppress(OSError), _lock(path):
            shutil.rmtree(folder, ignore_errors=True)


@atexit.register
def _end() -> None:
    for path, (pid, _, repo) in list(_open.items()):
        if pid == os.getpid():
            with suppress(Exception):
                repo.close()
            remove(path, repo)
