"""The engine in this process: a library of Go, which reads and writes elements in the memory of numpy.

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

OPEN, END, VIEW, ARRAY, READ, READ_MANY, WRITE, READ_VARIABLE, WRITE_VARIABLE, SELECT = range(10)
DONE, FAILED, RUNNING = range(3)

# A read of at most so many bytes is tried before a call that can be interrupted is begun.
SHORT = 1 << 20

_i64, _int, _text, _pointer = ctypes.c_int64, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p
_types = {
    "zdb_call": (_pointer, _int, _i64, _text, _i64, _text, _i64, _pointer, _i64, _i64),
    "zdb_try": (_pointer, _int, _i64, _text, _i64, _pointer, _i64),
    "zdb_wait": (_pointer, _i64),
    "zdb_cancel": (None, _i64),
    "zdb_free": (None, _pointer),
    "zdb_sockets": (_pointer,),
}

_library: Any = None
_sockets: Any = None  # in memory of the library: the connections that a child closes, for each the descriptor and the inode
_loading = threading.Lock()
_copies = 0  # how many processes above this one have loaded the library
_main = threading.main_thread().ident
_dirs: set[str] = set()  # of databases that were opened
_ids = itertools.count(1)
_held: dict[int, Any] = {}  # memory that calls use, by id


def path() -> str:
    """The file of the library: $ZARRDB_LIBRARY, or beside this module."""
    if given := os.environ.get("ZARRDB_LIBRARY"):
        return given
    found = os.path.join(os.path.dirname(__file__), "libzarrdb.shared")
    if not os.path.isfile(found):
        raise UnsupportedError(
            f"the package was made without its library {found}; `pip install` of the source makes it, with Go and a C compiler. "
            "The program zarrdb serves databases by HTTP and S3 without it: zarrdb serve"
        )
    return found


def _load() -> Any:
    global _library, _sockets
    with _loading:
        if _library is None:
            file = path()
            fd = -1
            try:
                if _copies:
                    fd, file = _copy(file)
                library = ctypes.CDLL(file)
            except OSError as e:
                raise UnsupportedError(
                    f"the library {file} cannot be loaded: {e}. It needs glibc or macOS; with musl, such as on Alpine, the program zarrdb serves databases by HTTP and S3: zarrdb serve"
                ) from e
            finally:
                if fd >= 0:
                    os.close(fd)
            for name, (result, *arguments) in _types.items():
                function = getattr(library, name)
                function.restype, function.argtypes = result, arguments
            _sockets = ctypes.cast(library.zdb_sockets(), ctypes.POINTER(_i64))
            _library = library
        return _library


def _copy(file: str) -> tuple[int, str]:
    """A copy of a file in memory, which needs no place on a disk."""
    if not hasattr(os, "memfd_create"):
        raise UnsupportedError("a child after fork needs files in memory, which this system lacks; start processes with spawn")
    fd = os.memfd_create("zarrdb", os.MFD_CLOEXEC)
    try:
        with open(file, "rb") as f:
            at, n = 0, os.fstat(f.fileno()).st_size
            while at < n:
                at += os.sendfile(fd, f.fileno(), at, n - at)
    except BaseException:
        os.close(fd)
        raise
    # The loader knows libraries by their names: each copy has another one than those that this process has inherited.
    return fd, f"/proc/self/fd/{'./' * _copies}{fd}"


def call(op: int, handle: int, ints: bytes = b"", text: bytes = b"", body: Any = None, address: int = 0, size: int = 0) -> bytes:
    """Run an operation of the library; see its main.go. body is what keeps the memory at the address."""
    library = _library or _load()
    if threading.get_ident() != _main:
        return _result(library, library.zdb_call(op, handle, ints, len(ints) // 8, text, len(text), address, size, 0))
    id = next(_ids)
    _held[id] = body
    try:
        got = library.zdb_call(op, handle, ints, len(ints) // 8, text, len(text), address, size, id)
        while got and _status(got)[0] == RUNNING:
            library.zdb_free(got)
            got = library.zdb_wait(id)
        out = _result(library, got)
    except BaseException:
        library.zdb_cancel(id)  # else the memory is kept for as long as the call may use it
        del _held[id]
        raise
    del _held[id]
    return out


def read(handle: int, ints: bytes, body: Any, address: int, size: int) -> None:
    """Run the operation READ. Few bytes are tried first without a call that can be interrupted."""
    if size <= SHORT and threading.get_ident() == _main:
        library = _library or _load()
        got = library.zdb_try(READ, handle, ints, len(ints) // 8, address, size)
        if not got:
            return
        if _status(got)[0] != RUNNING:
            _result(library, got)
            return
        library.zdb_free(got)
    call(READ, handle, ints, b"", body, address, size)


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

    def __init__(self, op: int, of: Handle | None, text: str) -> None:
        self._pid, self.number = os.getpid(), next(_ids)
        call(op, of.number if of else 0, struct.pack("q", self.number), os.fsencode(text))
        if op == OPEN:
            _dirs.add(text)

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


class Opened(Handle):
    """An array that is open in the library, with its description."""

    __slots__ = ("info",)

    def __init__(self, of: Handle, path: str) -> None:
        self._pid, self.number = os.getpid(), next(_ids)
        self.info: dict[str, Any] = json.loads(call(ARRAY, of.number, struct.pack("q", self.number), path.encode()))


def _after_fork_in_child() -> None:
    """Let the parent's copy of the library go, which is never called here, with all that it has open."""
    global _library, _loading, _copies, _main
    library, _library = _library, None
    _loading, _main = threading.Lock(), threading.main_thread().ident
    _held.clear()
    if library is None:
        return
    _copies += 1
    with suppress(ValueError, OSError):
        _close_files()
    _dirs.clear()


def _close_files() -> None:
    """Close the connections of the parent, and the files that tell other processes that the parent lives or reads a
    pack: they would count for as long as this child lives."""
    for i in range(256):
        fd, inode = _sockets[2 * i], _sockets[2 * i + 1]
        with suppress(OSError):
            st = os.fstat(fd)
            if inode and stat.S_ISSOCK(st.st_mode) and st.st_ino == inode:
                os.close(fd)
    if not _dirs or not os.path.isdir("/proc/self/fd"):
        return
    ours = tuple(f"{dir}/{folder}/" for dir in _dirs for folder in ("packs", "peers"))
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


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=lambda: _loading.acquire(), after_in_parent=lambda: _loading.release(), after_in_child=_after_fork_in_child)
