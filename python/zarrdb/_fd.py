"""Descriptors that are closed when nothing refers to them."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from typing import Protocol


class Fd(Protocol):
    """A descriptor, which is closed when nothing refers to it."""

    def fileno(self) -> int: ...


class _Fd:
    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def __del__(self) -> None:
        os.close(self._fd)


# In C where there is such an object: a signal handler that raises in a finalizer would leave the descriptor open.
own: Callable[[int], Fd] = select.epoll.fromfd if sys.platform == "linux" else _Fd
