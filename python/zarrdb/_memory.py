"""Databases in memory: in a folder of a file system in memory, which goes with this process."""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from typing import IO, Any

from ._repository import Repository


class MemoryRepository(Repository):
    """A database that goes when it is closed, or when this process ends."""

    def __init__(self, wait: float | str | None = None) -> None:
        import tempfile

        root = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()
        prefix = f"zarrdb-memory-{os.getuid()}-"
        with suppress(OSError):
            for name in os.listdir(root):
                if name.startswith(prefix):
                    _sweep(os.path.join(root, name))
        self._folder, self._pid = tempfile.mkdtemp(prefix=prefix, dir=root), os.getpid()
        self._alive = _lock(os.path.join(self._folder, "new"))  # for as long as this process lives, or a child of it
        os.rename(os.path.join(self._folder, "new"), os.path.join(self._folder, "alive"))
        super().__init__(os.path.join(self._folder, "memory.zdb"), True, wait)
        _open.append(self)

    def __reduce__(self) -> Any:
        return Repository, (self.path,)

    def close(self) -> None:
        """Leave the database, and remove it."""
        super().close()
        if self in _open and self._pid == os.getpid():
            import shutil

            _open.remove(self)
            shutil.rmtree(self._folder, ignore_errors=True)


_open: list[MemoryRepository] = []


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
    for repo in list(_open):
        with suppress(Exception):
            repo.close()
