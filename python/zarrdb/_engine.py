"""The engine in this process: a library of Go, through which all goes that this package does with a database.

    numpy array ◀──decoded straight into it── library: a peer ──pages, packs──▶ process that serves the database
                                                 ▲
       child after fork ──┤ a copy of the file ───┘ with a runtime of its own

A child after fork has the memory of its parent's library, and none of its threads: a call would wait for
ever. So this module alone holds the library, and empties itself in the child before anything else runs
there. The child loads a copy of the file, which the loader takes for another library.

Calls in the main thread take at most a slice of time, and then wait for the rest, so that Ctrl-C is seen.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import stat
import struct
import sys
import threading
from contextlib import suppress
from typing import Any

from ._errors import UnsupportedError, failure

OPEN, END, CALL, ARRAY, READ, READ_MANY, WRITE, READ_VARIABLE, WRITE_VARIABLE, SELECT, GET, SET, LIST, SET_VIRTUAL = range(14)
DONE, FAILED, RUNNING = range(3)
ALL, FROM, SPAN, LAST, NONE = range(5)  # ranges of a value
SOCKETS = 1024  # as maxSockets in main.go

# A read of at most so many bytes is tried before a call that can be interrupted is begun: most are decoded within a slice.
SHORT = 8 << 20
# After one that was given up, so many reads of the array are not tried.
SLOW = 100

_i64, _int, _text, _pointer = ctypes.c_int64, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p
_types = {
    "zdb_version": (_int,),
    "zdb_call": (_pointer, _int, _i64, _text, _i64, _text, _i64, _pointer, _i64, _i64),
    "zdb_read": (_int, _i64, _text, _i64, _pointer, _i64),
    "zdb_wait": (_pointer, _i64),
    "zdb_cancel": (_int, _i64, _int),
    "zdb_free": (None, _pointer),
    "zdb_sockets": (_pointer,),
}

VERSION = 2  # of the operations and their arguments, as the library has it

_kept = dict(globals())  # of this module before it was loaded again; the hooks of fork know its lock
_library: Any = _kept.get("_library")
_sockets: Any = _kept.get("_sockets")  # in memory of the library: the connections that a child closes, for each the descriptor and the inode
_file: int = _kept.get("_file", -1)  # the library as it was when this process, or one above it, loaded it
_forked: bool = _kept.get("_forked", False)  # a process above this one has loaded the library
_loading: threading.RLock = _kept.get("_loading") or threading.RLock()  # a signal handler may come while its thread has it
_main = threading.main_thread().ident
_dirs: set[str] = _kept.get("_dirs", set())  # of databases that were opened
# From a number of its own, as another instance of this module may use the same library.
_ids = itertools.count(int.from_bytes(os.urandom(6), "big") << 12)
_held: dict[int, Any] = _kept.get("_held", {})  # memory that calls use, by id


def path() -> str:
    """The file of the library: $ZARRDB_LIBRARY, or beside this module."""
    if given := os.environ.get("ZARRDB_LIBRARY"):
        return os.path.abspath(given)
    found = os.path.join(os.path.dirname(__file__), "libzarrdb.shared")
    if not os.path.isfile(found):
        raise UnsupportedError(
            f"the package was made without its library {found}; `pip install` of the source makes it, with Go and a C compiler. "
            "The program zarrdb serves databases by HTTP and S3 without it: zarrdb serve"
        )
    return found


def _load() -> Any:
    global _library, _sockets, _file
    with _loading:
        if _library is None:
            name = path()
            fd = -1
            try:
                if _file < 0:
                    _file = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
                if copies := _copies(name):
                    fd = _copy()
                    # The loader knows libraries by their names: each copy has another one than those that are there.
                    name = f"/proc/self/fd/{'./' * copies}{fd}"
                library = ctypes.CDLL(name)
            except OSError as e:
                if isinstance(e, FileNotFoundError):
                    raise UnsupportedError(f"the library of the package: {e}") from e
                raise UnsupportedError(
                    f"the library {name} cannot be loaded: {e}. It needs glibc or macOS; with musl, such as on Alpine, the program zarrdb serves databases by HTTP and S3: zarrdb serve"
                ) from e
            finally:
                if fd >= 0:
                    os.close(fd)
            for function, (result, *arguments) in _types.items():
                f = getattr(library, function, None)
                if f is None or function == "zdb_version" and f() != VERSION:
                    raise UnsupportedError(f"the library {path()} belongs to another version of the package: make it again, with `pip install` of the source")
                f.restype, f.argtypes = result, arguments
            _sockets = ctypes.cast(library.zdb_sockets(), ctypes.POINTER(_i64))
            _library = library
        return _library


def _copies(file: str) -> int:
    """How many libraries are in the memory of this process: of processes above it, or of another instance of this module."""
    if not os.path.exists("/proc/self/maps"):
        return int(_forked)
    names, found = (os.path.realpath(file), "/memfd:libzarrdb"), set[str]()
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as f:
        for line in f:
            fields = line.split(None, 5)
            if len(fields) == 6 and fields[5].startswith(names):
                found.add(fields[4])
    return len(found)


def _copy() -> int:
    """The descriptor of a copy of the library in memory, which needs no place on a disk."""
    if not hasattr(os, "memfd_create"):
        raise UnsupportedError("a child after fork needs files in memory, which this system lacks; start processes with spawn")
    try:
        fd = os.memfd_create("libzarrdb", os.MFD_CLOEXEC)
    except OSError as e:
        raise UnsupportedError(f"a child after fork needs a file in memory: {e}; start processes with spawn") from e
    try:
        at = 0
        while n := os.sendfile(fd, _file, at, 1 << 30):
            at += n
    except BaseException:
        os.close(fd)
        raise
    return fd


def call(op: int, handle: int, ints: bytes = b"", text: bytes = b"", body: Any = None, address: Any = 0, size: int = 0) -> bytes:
    """Run an operation of the library; see its main.go. body is what keeps the memory at the address."""
    library = _library or _load()
    if threading.get_ident() != _main:
        return _result(library, library.zdb_call(op, handle, ints, len(ints) // 8, text, len(text), address, size, 0))
    if _held:
        _sweep(library)
    id = next(_ids)
    try:
        _held[id] = body
        got = library.zdb_call(op, handle, ints, len(ints) // 8, text, len(text), address, size, id)
        while got and _status(got)[0] == RUNNING:
            library.zdb_free(got)
            got = library.zdb_wait(id)
        out = _result(library, got)
    except BaseException:
        if library.zdb_cancel(id, 1):
            _held.pop(id, None)
        raise
    del _held[id]
    return out


def _sweep(library: Any) -> None:
    """Let the memory go of calls that a signal handler has ended, when they have ended. Not in a call of a signal handler: the calls
    around it go on."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code is call.__code__:
            return
        frame = frame.f_back  # type: ignore[assignment]
    for id in list(_held):
        if library.zdb_cancel(id, 0):
            _held.pop(id, None)


def read(opened: Opened, ints: bytes, address: int, size: int) -> bool:
    """Read few elements without a call that can be interrupted. It is false if `call` is to be asked."""
    library = _library
    if library is None or size > SHORT:
        return False
    if opened.slow:
        opened.slow -= 1
        return False
    status = library.zdb_read(opened.number, ints, len(ints) // 8, address, size)
    if status == 0:  # DONE
        return True
    if status == RUNNING:
        opened.slow = SLOW
    return False


def _status(got: int) -> tuple[int, int]:
    status, length = struct.unpack("qq", ctypes.string_at(got, 16))
    return status, length


def _result(library: Any, got: int | None) -> bytes:
    """The bytes of a result, or its exception."""
    if not got:
        return b""
    status, length = _status(got)
    out = ctypes.string_at(got + 16, length)
    library.zdb_free(got)
    if status == FAILED:
        raise failure(json.loads(out))
    return out


class Handle:
    """Something that is open in the library of this process, under a number that is chosen here. It is closed when nothing
    refers to it, also if a signal handler has raised before the library has answered."""

    __slots__ = ("_pid", "number")

    def __init__(self) -> None:
        self._pid, self.number = os.getpid(), next(_ids)

    def here(self) -> bool:
        """Whether it is of this process, and not closed."""
        return self._pid == os.getpid() and self.number != 0

    def close(self, wait: bool = True) -> None:
        number, self.number = self.number, 0
        if number and self._pid == os.getpid() and _library is not None:
            call(END, number, struct.pack("q", wait))

    def __del__(self, ends: Any = sys.is_finalizing) -> None:
        if getattr(self, "number", 0) and not ends() and self._pid == os.getpid() and (library := _library):
            library.zdb_call(END, self.number, bytes(8), 1, b"", 0, 0, 0, 0)


class Database(Handle):
    """A database that is open in the library. wait bounds the time in seconds for a process that does not answer; see `zarrdb.open`."""

    __slots__ = ("identity",)

    def __init__(self, dir: str, wait: float | None, server: str) -> None:
        super().__init__()
        environ = b"\0".join(k + b"=" + v for k, v in os.environb.items())  # it may be empty
        text = os.fsencode(dir), os.fsencode(server), os.fsencode(program()), environ
        _dirs.add(dir)
        self.identity: tuple[str, str] = tuple(json.loads(call(OPEN, 0, _two(self.number, milliseconds(wait)), b"\0".join(text))))


def milliseconds(wait: float | None) -> int:
    """A time to wait as the library has it."""
    return 0 if wait is None else -1 if wait == 0 else max(1, int(wait * 1000))


def program() -> str:
    """The name of the program of this process, for lists of sessions."""
    return os.path.basename(getattr(sys, "argv", None) and sys.argv[0] or sys.executable or "python")


_one, _two, _three = (struct.Struct(f"{n}q").pack for n in (1, 2, 3))
_found = struct.Struct("<qq20s")
_encode = json.JSONEncoder(separators=(",", ":")).encode
_new_bytes = ctypes.pythonapi.PyBytes_FromStringAndSize
_new_bytes.restype, _new_bytes.argtypes = ctypes.py_object, (_text, ctypes.c_ssize_t)


def ask(of: Handle, name: str, arg: Any = None, handle: Handle | None = None) -> Any:
    """Call a function of the library with an argument in JSON. What it opens gets the handle."""
    out = call(CALL, of.number, _one(handle.number) if handle else b"", f"{name}\0{_encode(arg)}".encode())
    return json.loads(out) if out else None


def get(of: Handle, key: bytes, kind: int, off: int, n: int) -> tuple[bytes, int, bytes]:
    """A range of a value, the size of the whole value, and its identity."""
    ints, memory, length = _three(kind, off, n), None, 0
    while True:
        out = call(GET, of.number, ints, key, memory, memory, length)
        size, got, id = _found.unpack_from(out)
        if len(out) == _found.size + got:
            return out[_found.size :], size, id
        if memory is not None and got == length:
            return memory, size, id
        memory, length = _new_bytes(None, got), got  # nobody else sees it before it is written


def put(of: Handle, key: bytes, expect: int, id: bytes, value: Any) -> bytes:
    """Store a value, or remove the key if that is None, and return the identity of the value. expect is 0 for any value that may be there, 1 for none, 2 for id."""
    memory, address, size = _bytes(b"" if value is None else value)
    return call(SET, of.number, _two(expect, value is None), id + key, memory, address, size)


def _bytes(value: Any) -> tuple[Any, Any, int]:
    """What keeps the bytes of a value, where they are, and how many."""
    if isinstance(value, bytes):
        return value, value, len(value)
    view = memoryview(value)
    if view.format == "O":
        raise TypeError("objects have no bytes that can be stored")
    if view.nbytes and view.c_contiguous and not view.readonly:
        first = ctypes.c_char.from_buffer(view)
        return first, ctypes.addressof(first), view.nbytes
    if view.nbytes and view.c_contiguous and hasattr(value, "__array_interface__"):
        return value, value.__array_interface__["data"][0], view.nbytes
    return _bytes(view.tobytes())


def names(of: Handle, children: bool, limit: int, prefix: bytes, after: bytes, after_prefix: bool) -> tuple[list[bytes], bool]:
    """A page of keys with a prefix, or of its children, behind a name, and whether there are more."""
    out = call(LIST, of.number, struct.pack("4q", children, limit, len(prefix), after_prefix), prefix + after)
    return out[1:].split(b"\0")[:-1], out[0] == 1


class Opened(Handle):
    """An array that is open in the library, with its description."""

    __slots__ = ("info", "slow")

    def __init__(self, of: Handle, path: str) -> None:
        self.slow = 0
        super().__init__()
        self.info: dict[str, Any] = json.loads(call(ARRAY, of.number, struct.pack("q", self.number), path.encode()))


def _after_fork_in_child() -> None:
    """Let the parent's copy of the library go, which is never called here, with all that it has open."""
    global _library, _forked, _main
    _main = threading.main_thread().ident
    _held.clear()
    _forked = _forked or _library is not None
    _library = None


def close_files() -> None:
    """In a child, after all else has let go what it has of the parent: close the connections of the parent's library, and the files
    that tell other processes that the parent lives or reads a pack. They would count for as long as this child lives."""
    global _sockets
    sockets, _sockets = _sockets, None
    if sockets is None:
        return
    with suppress(ValueError, OSError):
        _close_files(sockets)
    _dirs.clear()


def _close_files(sockets: Any) -> None:
    for i in range(SOCKETS):
        fd, inode = sockets[2 * i], sockets[2 * i + 1]
        with suppress(OSError):
            st = os.fstat(fd)
            if inode and stat.S_ISSOCK(st.st_mode) and st.st_ino == inode:
                os.close(fd)
    if not _dirs or not os.path.isdir("/proc/self/fd"):
        return
    ours = ("/memfd:zarrdb-", *[f"{dir}/{folder}/" for dir in _dirs for folder in ("packs", "peers")])
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}").startswith(ours):
                os.close(int(name))
    unmap = ctypes.CDLL(None).munmap
    unmap.argtypes = (_pointer, ctypes.c_size_t)
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as f:
        for line in f:
            fields = line.split(None, 5)
            if len(fields) == 6 and fields[5].startswith(ours):
                low, high = (int(n, 16) for n in fields[0].split("-"))
                unmap(low, high - low)


def _hooks(lock: threading.RLock) -> None:
    def child() -> None:
        _after_fork_in_child()
        lock.release()

    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=child)


if hasattr(os, "register_at_fork") and "_loading" not in _kept:
    _hooks(_loading)

del _kept
