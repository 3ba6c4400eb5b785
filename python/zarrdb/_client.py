"""A database as this process has it open, and the program zarrdb."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from . import _engine
from ._errors import (
    CorruptError,
    DeniedError,
    InvalidError,
    LockedError,
    MovedError,
    NotFoundError,
    UnsupportedError,
    ZarrdbError,
)

T = TypeVar("T")


def binary() -> str:
    """The path of the zarrdb program: $ZARRDB_BINARY, in the wheel, or on PATH."""
    if given := os.environ.get("ZARRDB_BINARY"):
        return given
    import shutil
    import sysconfig

    for scheme in (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")):
        installed = os.path.join(sysconfig.get_path("scripts", scheme), "zarrdb")
        if os.path.isfile(installed):
            return installed
    if found := shutil.which("zarrdb"):
        return found
    raise UnsupportedError("the program zarrdb was not found; put it on PATH or its path into ZARRDB_BINARY")


def exit_error(code: int, message: str) -> ZarrdbError:
    """The exception for a command that ended with a code."""
    message = message.strip().removeprefix("zarrdb: ") or f"exit code {code}"
    if "is in use by" in message or "has it open" in message:
        return LockedError(message)
    if ": it is protected: " in message:
        return DeniedError(message)
    kinds: dict[int, type[ZarrdbError]] = {2: InvalidError, 4: NotFoundError, 5: CorruptError}
    return kinds.get(code, ZarrdbError)(message)


def is_database(dir: str) -> bool:
    """Whether a directory is a database, or begins to be one. A folder named index may be an array of a store."""
    index = os.path.join(dir, "index")
    return os.path.isfile(os.path.join(index, "LOCK")) or os.path.isfile(os.path.join(dir, "FORMAT")) and os.path.isdir(index)


def _lock_file(dir: str) -> str:
    """The identity of the database in a directory, which its copies do not share, as `lock` of the server's hello."""
    try:
        st = os.stat(os.path.join(dir, "index", "LOCK"))
    except OSError:
        return ""
    return f"{st.st_dev}:{st.st_ino}"


class Viewer(Protocol):
    """A view of the database."""

    def _forked(self) -> None:
        """Called in a child process."""

    def _leased(self) -> bool:
        """Whether it is a version that must not be collected while the view is open."""
        ...


class Client:
    """A database, reached through the process that has it open; the library starts one where there is none.

    Safe for threads and across fork: a child opens the database anew.
    """

    def __init__(self, dir: str, wait: float | None = None) -> None:
        self.dir, self.wait = dir, wait
        self._lock = threading.RLock()  # a signal handler may come while its thread opens the database
        self._engine: _engine.Database | None = None
        self.identity: tuple[str, str] | None = None  # of the database since it was opened first
        self.users: set[int] = set()  # the id() of each Repository that is not closed
        self.views: weakref.WeakValueDictionary[int, Viewer] = weakref.WeakValueDictionary()  # by id()
        _clients.add(self)

    @staticmethod
    def of(path: str | os.PathLike[str], wait: float | None = None) -> Client:
        """The client for a directory; the same one for the same database."""
        return Client.at(os.path.realpath(path), wait)

    @staticmethod
    def at(dir: str, wait: float | None = None) -> Client:
        """`of` for a path without symbolic links, as clients have it in `dir`."""
        with _shared_lock:
            c = _shared.get(dir)
        if c is not None and not c._is_here():
            c = None
        with _shared_lock:
            if c is None:
                c = _shared[dir] = Client(dir, wait)
            elif wait is not None and wait != c.wait:
                c.bound(wait)
            return c

    def bound(self, wait: float) -> None:
        """Change how long a process that does not answer is waited for."""
        self.wait = wait
        engine = self._engine
        if engine is not None and engine.here():
            _engine.ask(engine, "bound", _engine.milliseconds(wait))

    def _is_here(self) -> bool:
        """Whether the database that the client was opened for is still the one at its path."""
        if self.identity is None:
            return True
        if self.identity[1] and _lock_file(self.dir) != self.identity[1]:
            return False
        try:
            self.ask("here")  # an inode number may be used again after the process has ended
        except (MovedError, NotFoundError):
            return False
        return True

    def leave(self, user: int) -> None:
        """A Repository is closed. After the last one, a process that this program has started ends,
        unless other programs use it."""
        with self._lock:
            self.users.discard(user)
            engine = self._engine
            if self.users or engine is None or not engine.here():
                return
            leased = any(v._leased() for v in list(self.views.values()))
            if not leased:
                self._engine = None
        _engine.ask(engine, "leave")
        if not leased:
            engine.close()

    def engine(self) -> _engine.Database:
        """The database as the library of this process has it open."""
        engine = self._engine
        if engine is None or not engine.here():
            with self._lock:
                engine = self._engine
                if engine is None or not engine.here():
                    engine = self._open()
        return engine

    def _open(self) -> _engine.Database:
        try:
            server = binary()
        except UnsupportedError:
            server = ""  # perhaps another program serves it
        engine = _engine.Database(self.dir, self.wait, server)
        if self.identity is None:
            self.identity = engine.identity
        elif any(a and b and a != b for a, b in zip(self.identity, engine.identity, strict=True)):
            raise MovedError(f"{self.dir}: another database was put there since it was opened; open it again", "moved")
        self._engine = engine
        return engine

    def using(self, fn: Callable[[_engine.Database], T]) -> T:
        """Run fn with the database, again if another thread has closed that meanwhile."""
        return again(lambda: fn(self.engine()))

    def ask(self, name: str, arg: Any = None) -> Any:
        """Call a function of the library about the database."""
        return self.using(lambda engine: _engine.ask(engine, name, arg))

    def run(self, *args: str, dir: str | None = None, timeout: float | None = None) -> tuple[int, bytes, str]:
        """Run a command line of the program, which joins the process that has the database open.
        Returns the exit code and the output. Ctrl-C cancels it. After `timeout` seconds it is
        ended with subprocess.TimeoutExpired."""
        import subprocess

        p = subprocess.run([binary(), *args], check=False, cwd=dir, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
        return p.returncode, p.stdout, p.stderr.decode(errors="replace")

    def _forked(self) -> None:
        self._lock = threading.RLock()
        self._engine = None
        for v in list(self.views.values()):
            v._forked()


# The codes of errors of what another thread has closed. Then the call has not begun.
CLOSED = ("view_closed", "closed")


def again(fn: Callable[..., T], *args: Any) -> T:
    """Run fn, and repeat it where another thread has closed the database meanwhile."""
    for _ in range(100):
        try:
            return fn(*args)
        except ZarrdbError as e:
            if e.code not in CLOSED:
                raise
    return fn(*args)


_clients: weakref.WeakSet[Client] = weakref.WeakSet()
_shared: weakref.WeakValueDictionary[str, Client] = weakref.WeakValueDictionary()
_shared_lock = threading.RLock()


def _after_fork() -> None:
    global _shared_lock
    _shared_lock = threading.RLock()
    for c in list(_clients):
        c._forked()
    _engine.close_files()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def create(path: str) -> None:
    """Make an empty database, unless another program has made it meanwhile, or makes it."""
    import subprocess

    p = subprocess.run([binary(), "--wait", "10s", "init", path], check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if p.returncode != 0 and not os.path.isfile(os.path.join(path, "FORMAT")):
        raise exit_error(p.returncode, p.stderr)
