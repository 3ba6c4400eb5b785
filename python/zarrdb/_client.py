"""The process that has a database open: how it is found, started, and found again."""

from __future__ import annotations

import atexit
import json
import os
import socket
import struct
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from . import _engine
from . import _wire as w
from ._errors import (
    ConnectionLostError,
    CorruptError,
    DeniedError,
    InvalidError,
    LockedError,
    MovedError,
    NotFoundError,
    UnsupportedError,
    ZarrdbError,
)
from ._fd import own

if TYPE_CHECKING:
    import subprocess

    from ._leases import Peer

T = TypeVar("T")
RECONNECTS = 5
STARTS = 3  # how often a process is started again that was killed before it served
IDLE = "60s"


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


def _owner(path: str) -> int | None:
    try:
        return os.lstat(path).st_uid
    except OSError:
        return None


def sockets(dir: str) -> Iterator[tuple[str, int | None]]:
    """Where the database may be served, each with the user of that process, None for any."""
    import hashlib  # here and below: the package is imported faster without

    uid = os.getuid()
    name = hashlib.sha256(os.fsencode(dir)).digest()[:10].hex()
    holder = os.path.join(dir, "index", "HOLDER")
    seen = set()
    places = []
    by = _owner(holder)
    try:
        with open(holder, encoding="utf-8") as f:
            o = json.load(f)
        if o.get("socket") and by is not None:
            places.append((o["socket"], by))
    except (OSError, ValueError) as e:
        if isinstance(e, OSError) and not w.by_system(e):
            raise
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime):
        places.append((os.path.join(runtime, "zarrdb", name), uid))
    tmp = os.environ.get("TMPDIR") or "/tmp"
    places.append((os.path.join(tmp, f"zarrdb-{uid}", name), uid))
    if by is not None and by != uid:
        places.append((os.path.join(tmp, f"zarrdb-{by}", name), by))
    inside = os.path.join(dir, "index", "SOCKET")
    for path, user in places:
        # A socket counts only in a folder of the user it is expected from.
        if path not in seen and path != inside and _owner(os.path.dirname(path)) == user:
            seen.add(path)
            yield path, user
    yield inside, None  # only users who may change the database can put it there


def dial(path: str, user: int | None) -> socket.socket | None:
    """A connection to a socket, None if no process listens."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if len(os.fsencode(path)) < 100 or sys.platform != "linux":
            s.connect(path)
        else:  # longer than the system takes
            folder = own(os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY))
            s.connect(f"/proc/self/fd/{folder.fileno()}/{os.path.basename(path)}")
        if user is not None and hasattr(socket, "SO_PEERCRED"):
            raw = s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            if struct.unpack("3i", raw)[1] != user:
                raise DeniedError(f"user {struct.unpack('3i', raw)[1]} serves {path}, in a folder of user {user}", "denied")
    except (FileNotFoundError, NotADirectoryError, PermissionError, ConnectionRefusedError):
        s.close()
        return None
    except BaseException:
        s.close()
        raise
    return s


_started: list[subprocess.Popen[bytes]] = []  # to be waited for when they have ended


def _let_go() -> None:
    """At exit: they go on without this process, which subprocess would warn of."""
    for p in _started:
        if p.poll() is None:
            p.returncode = 0
    for c in list(_clients):
        if c.peer is not None:
            with suppress(OSError):
                c.peer.end()


atexit.register(_let_go)


def _messages() -> Any:
    """A file for the messages of a process, which needs no directory that may be written where the
    system has files in memory. A pipe would end the process when this one ends."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("zarrdb"), "w+b")
    import tempfile

    return tempfile.TemporaryFile()


def _start(*args: str) -> tuple[subprocess.Popen[bytes], Any]:
    """Start the program so that Ctrl-C does not end it. Returns the file of its messages, too."""
    import subprocess

    for ended in [p for p in _started if p.poll() is not None]:
        with suppress(ValueError):  # another thread has removed it
            _started.remove(ended)
    env = {k: v for k, v in os.environ.items() if not k.startswith("NOTIFY_")}
    log = _messages()
    try:
        p = subprocess.Popen(
            [binary(), *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True, cwd="/", env=env,
        )  # fmt: skip
        _started.append(p)
    except BaseException:
        log.close()
        raise
    return p, log


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


def _holder(dir: str) -> str:
    """Describe the process that has the database open and does not answer."""
    try:
        with open(os.path.join(dir, "index", "HOLDER"), encoding="utf-8") as f:
            o = json.load(f)
        pid = int(o["pid"])
        return f"{o.get('program')} (process {pid} on {o.get('host')}), which does not answer; if it was stopped, kill -CONT {pid} lets it go on"
    except (OSError, ValueError, KeyError, TypeError):
        return "a process that does not answer"


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

    def _leased(self) -> str:
        """The id of the version that must not be collected while the view is open, "" if there is none."""
        ...

    def _renewed(self, link: w.Link, handle: int | None) -> None:
        """Called when the server of a new connection has leased the version again, as the view `handle`. None means that it could not."""


class Client:
    """A database, reached through the process that has it open.

    Safe for threads and across fork: a child opens a connection of its own.
    """

    def __init__(self, dir: str, wait: float | None = None) -> None:
        if not hasattr(socket, "AF_UNIX"):
            raise UnsupportedError("the package connects to databases through Unix sockets, which Python lacks on this system; the program zarrdb runs here")
        self.dir, self.wait = dir, wait
        self._link: w.Link | None = None
        self._lock = threading.Lock()
        self._silent: tuple[float, str] = (0.0, "")  # when the process did not answer, and the error
        self.identity: tuple[str, str] | None = None  # of the database since the first connection
        self.users: set[int] = set()  # the id() of each Repository that is not closed
        self.views: weakref.WeakValueDictionary[int, Viewer] = weakref.WeakValueDictionary()  # by id()
        self._engine: _engine.Handle | None = None
        self.peer: Peer | None = None  # lists the leased versions for later processes
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
            elif wait is not None:
                c.wait = wait
            return c

    def _is_here(self) -> bool:
        """Whether the database that the client was opened for is still the one at its path."""
        if self.identity is None:
            return True
        if self.identity[1] and _lock_file(self.dir) != self.identity[1]:
            return False
        link = self._link
        if self.identity[1] and link is not None and link.alive():
            return True  # the process has the file open, so that no other file gets its number
        try:
            self.query(w.DATABASES, {})  # an inode number may be used again after the process has ended
        except (MovedError, NotFoundError):
            return False
        return True

    def _identify(self, link: w.Link) -> bool:
        """Whether the server has the database open that is at the path. An error if that is another
        one than before."""
        got = link.hello.get("identity", ""), link.hello.get("lock", "")
        here = _lock_file(self.dir)
        if got[1] and here and got[1] != here:
            return False
        if self.identity is None:
            self.identity = got
        elif any(a and b and a != b for a, b in zip(self.identity, got, strict=True)):
            raise MovedError(f"{self.dir}: another database was put there since it was opened; open it again", "moved")
        return True

    def leave(self, user: int) -> None:
        """A Repository is closed. After the last one, a process that this program has started ends,
        unless other programs use it."""
        with self._lock:
            self.users.discard(user)
            link = self._link
            if self.users or link is None or link.over is not None or link.pid != os.getpid():
                return
            self._link = None
            engine, self._engine = self._engine, None
            if self.peer is not None and not any(v._leased() for v in list(self.views.values())):
                self.peer.end()
                self.peer = None
        if engine is not None:
            engine.close()
        ends = False
        started = next((p for p in _started if p.pid == link.hello.get("pid")), None)
        if started is not None:
            with suppress(ZarrdbError):
                ends = link.ask(w.LEAVE, {}).get("ends", False)
        if started is not None and ends:
            link.drain()
            started.wait()
        link.close()

    def engine(self) -> _engine.Handle:
        """The database as the library of this process has it open."""
        engine = self._engine
        if engine is None or not engine.here():
            with self._lock:
                engine = self._engine
                if engine is None or not engine.here():
                    engine = self._engine = _engine.database(self.dir, self.wait or w.LIMIT)
        return engine

    def link(self) -> w.Link:
        """The connection, or a new one where it has ended."""
        l = self._link
        if l is not None and l.over is None and l.pid == os.getpid():
            return l
        with self._lock:
            l = self._link
            if l is None or l.over is not None:
                l = self._link = self._connect()
                if any(v._leased() for v in list(self.views.values())):
                    self._visit(l)
            return l

    def visit(self, link: w.Link) -> None:
        """Register this process with the server before it opens a version, so that the version stays also after the end of that server."""
        if not link.visited:
            with self._lock:
                self._visit(link)

    def _visit(self, link: w.Link) -> None:
        if link.visited:
            return
        views = [v for v in list(self.views.values()) if v._leased()]
        name = "" if self.peer is None else self.peer.name
        try:
            frame = link.call(w.VISIT, w.to_json({"peer": name, "versions": [v._leased() for v in views]}))
        except (InvalidError, UnsupportedError):
            link.visited = True
            return
        out = json.loads(frame.meta or frame.body)
        if frame.files:
            from ._leases import Peer

            self.peer = Peer(out["peer"], frame.files[0])
        for v, lease in zip(views, out.get("leases") or (), strict=True):
            v._renewed(link, lease.get("view"))
        link.visited = True

    def _connect(self) -> w.Link:
        """Connect to the process that has the database open, or start one."""
        when, why = self._silent
        if why and time.monotonic() - when < 1:  # another thread has just waited for it
            raise LockedError(why)
        with ExitStack() as files:
            return self._reach(files)

    def _reach(self, files: ExitStack) -> w.Link:
        begun, patience = time.monotonic(), self.wait or w.LIMIT
        started = log = None
        kills = 0
        pause = 0.001
        while True:
            for path, user in sockets(self.dir):
                sock = dial(path, user)
                if sock is not None:
                    try:
                        link = w.Link(sock, self.wait or w.LIMIT)
                    except (ConnectionLostError, MovedError) as ended:
                        sock.close()
                        if isinstance(ended.__cause__, TimeoutError):
                            self._silent = time.monotonic(), f"{self.dir} is in use by {_holder(self.dir)}"
                            raise LockedError(self._silent[1]) from ended
                        continue  # it was about to end
                    except BaseException:
                        sock.close()
                        raise
                    try:
                        if self._identify(link):
                            return self._lending(link)
                    except MovedError:
                        link.close()
                        raise
                    link.close()
            late = time.monotonic() > begun + patience
            if started is None:
                if not is_database(self.dir):
                    raise NotFoundError(f"{self.dir}: there is no database; zarrdb.open(…, create=True) makes one", "no_database")
                if late:
                    raise LockedError(f"{self.dir}: the process that has it open does not answer")
                started, log = _start("serve", self.dir, "--local", "--idle", IDLE)
                files.enter_context(log)
            elif (code := started.poll()) is not None:
                assert log is not None
                log.seek(0)
                message = log.read().decode(errors="replace")
                pid, started = started.pid, None
                if code < 0:  # by a signal, such as the system sends where memory is short
                    kills += 1
                    if kills > STARTS or late:
                        why = f"killed by signal {-code} before it did, as {kills - 1} before; a limit of memory may be the cause"
                        raise ZarrdbError(f"{self.dir}: process {pid} was started to serve it, and {why}")
                elif code != 0:  # otherwise somebody else was faster, or it was idle
                    e = exit_error(code, message)
                    if not isinstance(e, LockedError) or late or self.wait == 0:
                        raise e
            elif late:
                raise LockedError(f"{self.dir}: process {started.pid} was started to serve it, and does not answer")
            time.sleep(pause)
            pause = min(2 * pause, 0.1)

    def _lending(self, link: w.Link) -> w.Link:
        """What a lazy clone has not here is fetched by the library of this process, with its credentials."""
        if (self._engine is None or not self._engine.here()) and os.path.exists(os.path.join(self.dir, "AWAY")):
            with suppress(UnsupportedError):  # then what is away cannot be read
                self._engine = _engine.database(self.dir, self.wait or w.LIMIT)
        return link

    def again(self, fn: Callable[[w.Link], T]) -> T:
        """Run fn, and repeat it on a new connection. It is for requests that change nothing."""
        for n in range(RECONNECTS + 1):
            link = self.link()
            try:
                return fn(link)
            except ConnectionLostError:
                if n == RECONNECTS:
                    raise
        raise AssertionError

    def query(self, op: int, o: Any) -> Any:
        return self.again(lambda l: l.ask(op, o))

    def once(self, op: int, o: Any) -> Any:
        """A request that changes something: it is not repeated."""
        return self.link().ask(op, o)

    def run(self, *args: str, dir: str | None = None, timeout: float | None = None) -> tuple[int, bytes, str]:
        """Run a command line of the program, which joins the process that has the database open.
        Returns the exit code and the output. Ctrl-C cancels it. After `timeout` seconds it is
        ended with subprocess.TimeoutExpired."""
        import subprocess

        p = subprocess.run([binary(), *args], check=False, cwd=dir, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
        return p.returncode, p.stdout, p.stderr.decode(errors="replace")

    def close(self) -> None:
        with self._lock:
            if self._link is not None:
                self._link.close()

    def _forked(self) -> None:
        self._lock = threading.Lock()
        self._engine = None
        if self._link is not None:
            self._link.abandon()
            self._link = None
        self.peer = None  # the file is the parent's
        for v in list(self.views.values()):
            v._forked()


_clients: weakref.WeakSet[Client] = weakref.WeakSet()
_shared: weakref.WeakValueDictionary[str, Client] = weakref.WeakValueDictionary()
_shared_lock = threading.Lock()


def _after_fork() -> None:
    global _shared_lock
    _shared_lock = threading.Lock()
    _started.clear()
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


