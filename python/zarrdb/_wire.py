"""Frames of the local protocol; docs/protocol.md describes them.

A `Link` is one connection. Requests of many threads are under way on it. There is no
thread of its own: of the threads that wait for replies one reads, for all.
"""

from __future__ import annotations

import json
import mmap
import os
import socket
import struct
import sys
import threading
import time
from array import array
from collections import OrderedDict, deque
from collections.abc import Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any, NamedTuple, NoReturn

from ._errors import ConnectionLostError, InvalidError, VersionError, ZarrdbError, failure
from ._fd import Fd, own

PROTOCOL = 1
ZERO = bytes(20)

HELLO, CANCEL, BYE, GET, STAT, SET, DELETE, _, LIST, LIST_DIR = range(1, 11)
OPEN, CLOSE, FORGET, DATABASES, RESOLVE, REFS, _, LOG, DIFF, SESSIONS = range(11, 21)
BEGIN, _, SAVEPOINT, CHANGES, DELETE_PREFIX, COMMIT, DISCARD = range(21, 28)
GUARD, MOVE, REBASE, FORK, JOIN = range(34, 39)
LEAVE, RECALL, ASK, SHARE, VISIT, PING = 42, 47, 50, 58, 59, 61

REPLY, ERROR, PLACE, BYTES = 1, 2, 4, 8
ALL, FROM, SPAN, LAST = range(4)

_header = struct.Struct("<IBBHII")
_get = struct.Struct("<IB3xqq")
_set = struct.Struct("<IB3x20s")
_list = struct.Struct("<IIIB3x")
_found = struct.Struct("<Q20s")
_place = struct.Struct("<Q20sIQQ")

# As plain numbers: the enums of the module take long to combine.
_cloexec = int(getattr(socket, "MSG_CMSG_CLOEXEC", 0))
_dontwait = int(getattr(socket, "MSG_DONTWAIT", 0))
_ctrunc = int(getattr(socket, "MSG_CTRUNC", 0))
_oob = socket.CMSG_SPACE(4 * 64) if hasattr(socket, "CMSG_SPACE") else 0
MAX_FILES = 128
DRAIN = -1

# How many seconds to look for a reply before sleeping until it is there: to be woken takes longer than most
# requests. After failures that many replies are waited for asleep.
PATIENCE = 250e-6 if _dontwait and (os.cpu_count() or 1) > 1 else 0.0
MAX_REST = 255
# A server that is stopped neither answers nor ends the connection. A request to it fails after half of
# this many seconds, and a third of them later if no other server was found.
LIMIT = 30.0
# After an eighth of the limit without a byte the client sends a ping. After that many pings, and another eighth, it ends the connection.
LOOKS = 2
# A server that ends first answers running requests, and may be silent for this many seconds.
ENDING = 30.0


class Frame(NamedTuple):
    op: int
    flags: int
    meta: bytes
    body: bytes | bytearray
    files: tuple[Fd, ...] = ()


def get_meta(view: int, key: bytes, kind: int = ALL, off: int = 0, n: int = 0) -> bytes:
    return _get.pack(view, kind, off, n) + key


def set_meta(view: int, key: bytes, expect: int, id: bytes) -> bytes:
    return _set.pack(view, expect, id) + key


def stat_meta(view: int, key: bytes) -> bytes:
    return struct.pack("<I", view) + key


def list_meta(view: int, prefix: bytes, after: bytes, after_prefix: bool, limit: int) -> bytes:
    return _list.pack(view, limit, len(prefix), after_prefix) + prefix + after


_encode = json.JSONEncoder(separators=(",", ":")).encode


def to_json(o: Any) -> bytes:
    return _encode(o).encode()


def program() -> str:
    """The name of the program of this process, for lists of sessions."""
    return os.path.basename(getattr(sys, "argv", None) and sys.argv[0] or sys.executable or "python")


class _File:
    """A file of the database that the server has passed."""

    __slots__ = ("fd", "map", "views")

    def __init__(self, fd: Fd) -> None:
        self.fd = fd
        self.map: mmap.mmap | None = None
        self.views: set[int] = set()  # handles of the views that have read it

    def mapped(self, off: int, n: int) -> mmap.mmap:
        """The file in memory, with n bytes at off. References to it keep it open."""
        m = self.map
        if m is None or len(m) < off + n:
            m = self.map = mmap.mmap(self.fd.fileno(), 0, prot=mmap.PROT_READ)  # it may have grown
            if len(m) < off + n:
                raise ZarrdbError(f"the server named {n} bytes at {off} in a file of {len(m)}")
        return m


class Link:
    """One connection. Safe for threads; not to be used in a child after fork."""

    def __init__(self, sock: socket.socket, limit: float = LIMIT) -> None:
        self._sock, self._buf = sock, bytearray()
        self._got: deque[Any] = deque()  # results of recvmsg, until their descriptors are in _fds
        self._fds: deque[Fd] = deque()
        # A signal may raise anywhere, but not between taking a plain lock and its with block.
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._cond = threading.Condition(self._lock)
        self._next, self._busy = 0, set[int]()  # ids of requests that are not answered
        self._replies: dict[int, Frame | None] = {}  # of requests that somebody waits for
        self._reading = 0  # the id of the request whose thread reads, DRAIN, or 0
        self._files: OrderedDict[int, _File] = OrderedDict()
        self._dropped: deque[int] = deque()  # numbers of files that the server is to forget
        self._recalled = False  # the server wants an answer to a recall
        self.unused: deque[int] = deque()  # handles of views that are to be closed
        self.visited = False  # see Client.visit
        self.server = ""  # names the process at the other end, once it was asked for
        self.saved: set[str] = set()  # sessions that the server left at savepoints
        self.over: ConnectionLostError | None = None
        self.pid = os.getpid()
        self._most, self._rest, self._pause, self._missed = 1, 1, 0, False
        self.max_meta, self.max_body = 4 << 20, 512 << 20
        self._quiet = 0  # how often nothing has arrived in time
        sock.settimeout(max(1.0, limit / 3))
        hello = {"protocol": PROTOCOL, "version": "python", "pid": self.pid, "program": program(), "capabilities": ["files", "buckets"]}
        self.hello: dict[str, Any] = self.ask(HELLO, hello)
        if self.hello.get("protocol") != PROTOCOL:
            self.close()
            raise VersionError(f"process {self.hello.get('pid')} speaks protocol {self.hello.get('protocol')}, this one {PROTOCOL}")
        self._most = max(1, self.hello.get("requests", 1))
        self.max_meta = self.hello.get("max_meta") or self.max_meta
        self.max_body = self.hello.get("max_body") or self.max_body
        sock.settimeout(None)
        self.bound(limit)

    def bound(self, limit: float) -> None:
        """Set the limit for a server that is stopped; see LIMIT."""
        for option, seconds in ((socket.SO_RCVTIMEO, max(0.25, limit / 8)), (socket.SO_SNDTIMEO, max(1.0, limit / 2))):
            self._sock.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", int(seconds), int(seconds % 1 * 1e6)))

    def alive(self) -> bool:
        """Whether the connection is open and nothing is to be received: the last message of a server that ends may be."""
        if self.over is not None or self.pid != os.getpid():
            return False
        try:
            self._sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            return False
        except BlockingIOError:
            return True
        except OSError:
            return False

    # --- requests

    def ask(self, op: int, o: Any, fds: Sequence[int] = ()) -> Any:
        """A request whose metas are JSON. A reply that is too long for a meta is the body."""
        frame = self.call(op, to_json(o), fds=fds)
        got = frame.meta or frame.body
        return json.loads(got) if got else {}

    def call(self, op: int, meta: bytes, body: Any = b"", flags: int = 0, fds: Sequence[int] = ()) -> Frame:
        """Send a request and return its reply. A failure is raised as its exception."""
        id = None
        try:
            id = self.start(op, meta, body, flags, fds)
            assert id is not None
            return self.finish(id)
        except BaseException:
            if id is not None:
                self.cancel(id)
            raise

    def start(self, op: int, meta: bytes, body: Any = b"", flags: int = 0, fds: Sequence[int] = (), wait: bool = True) -> int | None:
        """Send a request. Its reply is to be had from `finish`, or given up with `cancel`.
        Without wait it is not sent where too many are under way. A thread that has
        replies to come must not wait for that: they may be its own."""
        if len(body) > self.max_body or len(meta) > self.max_meta:
            raise InvalidError(f"{len(meta)} and {len(body)} bytes at once, where {self.max_meta} and {self.max_body} are taken", "too_large")
        if wait and self.unused:
            self.close_views()
        if self._dropped or self._recalled:
            self._give_back()
        id = None
        try:
            id = self._begin(wait)
            if id is not None:
                self._send(id, op, flags, meta, body, fds)
            return id
        except BaseException as e:
            if id is not None and self.over is None:  # by a signal handler: how much was sent is unknown
                with self._lock:
                    self._end(e)
            self._failed(id, e)

    def finish(self, id: int) -> Frame:
        """The reply to a request. A failure is raised as its exception."""
        try:
            frame = self._await(id)
        except BaseException as e:
            self._failed(id, e)
        if frame.flags & ERROR:
            failed = failure(json.loads(frame.meta))
            if isinstance(failed, ConnectionLostError):
                failed._begun = False
                self._drain(ConnectionError(str(failed)), ENDING)  # it still answers other requests
            try:
                raise failed
            finally:
                del failed  # its traceback refers to this frame
        return frame

    def _failed(self, id: int | None, e: BaseException) -> NoReturn:
        if id is not None:
            self.cancel(id)
        if by_system(e):
            raise self._gone(e) from e
        try:
            raise e
        finally:
            del e  # its traceback refers to this frame

    def _begin(self, wait: bool = True) -> int | None:
        id = 0
        with self._lock:
            try:
                if not wait and len(self._busy) >= self._most:
                    return None
                while len(self._busy) >= self._most and self.over is None:
                    if not self._replies:  # only such as were given up
                        self._end(OSError("too many requests were given up"))
                        break
                    self._cond.wait()
                if self.over is not None:
                    raise self._gone(None)
                id = self._next + 1 & 0xFFFFFFFF
                while id in self._busy or id == 0:
                    id = id + 1 & 0xFFFFFFFF
                self._next = id
                self._busy.add(id)
                self._replies[id] = None
                return id
            except BaseException:
                self._busy.discard(id)
                self._replies.pop(id, None)
                raise

    def _send(self, id: int, op: int, flags: int, meta: bytes, body: Any, fds: Sequence[int] = ()) -> None:
        head = _header.pack(id, op, len(fds), flags, len(meta), len(body)) + meta
        with self._sending:
            try:
                if fds:
                    sent = socket.send_fds(self._sock, [head], fds)
                    head = head[sent:]
                if len(body) <= 1 << 16:
                    self._sock.sendall(head + bytes(body))
                else:
                    self._sock.sendall(head)
                    self._sock.sendall(body)
            except BlockingIOError:
                late = TimeoutError(self._stopped())
                with self._lock:
                    self._end(late)
                raise late from None
            except BaseException as e:
                if by_system(e):
                    self._drain(e)
                else:  # a part of a frame may have been sent
                    with self._lock:
                        self._end(e)
                raise

    def _await(self, id: int) -> Frame:
        try:
            with self._lock:
                while (frame := self._replies[id]) is None:
                    if self.over is not None:
                        raise self._gone(None)
                    if not self._reading:
                        self._reading = id
                        break
                    self._cond.wait()
            if frame is None:  # this thread reads
                if len(self._busy) == 1 and not self._buf:
                    self._look()
                while frame is None:
                    got, other = self._receive()
                    with self._lock:
                        self._dispatch(got, other)
                        frame = self._replies[id]
                with self._lock:
                    self._reading = 0
                    self._cond.notify_all()
            del self._replies[id]
            return frame
        except BaseException as e:
            with self._lock:
                if self._reading == id:  # a part of a frame may have been read
                    self._reading = 0
                    self._end(e)
            raise

    def _dispatch(self, id: int, frame: Frame) -> None:
        if frame.op in _NO_REPLIES:
            if frame.op == BYE:
                self.saved.update(json.loads(frame.meta or b"{}").get("saved") or ())
            elif frame.op == RECALL:
                self._dropped.extend(self._files)
                self._files.clear()
                self._recalled = True
            return
        self._busy.discard(id)
        if id in self._replies:
            self._replies[id] = frame
        self._cond.notify_all()

    def cancel(self, id: int) -> None:
        """Give up a reply."""
        with self._lock:
            waiting = self._replies.pop(id, 0) is None
            over = self.over is not None
        if waiting and not over:
            try:
                self._send(id, CANCEL, 0, b"", b"")
            except OSError:
                pass

    def _drain(self, e: BaseException, patience: float = 2) -> None:
        """The other side has ended: read its last frames."""
        try:
            with self._lock:
                while self._reading and self.over is None:
                    self._cond.wait()  # another thread reads it
                if self.over is not None:
                    return
                self._reading = DRAIN
            try:
                self._sock.settimeout(patience)
                while True:
                    got, frame = self._receive()
                    with self._lock:
                        self._dispatch(got, frame)
            except BaseException as last:
                if not isinstance(last, ZarrdbError) and not by_system(last):
                    raise
            self._drained(e)
        except BaseException:
            self._drained(e)
            raise

    def _drained(self, e: BaseException) -> None:
        with self._lock:
            if self._reading == DRAIN:
                self._reading = 0
                self._end(e)

    def drain(self) -> None:
        """Read the last frames of the server, after it was asked to end."""
        self._drain(ConnectionError("the server was left"), ENDING)

    def _end(self, e: BaseException) -> None:
        if self.over is None:
            self.over = ConnectionLostError(f"the connection to the process that has the database open has ended: {e}", "gone")
        self._cond.notify_all()
        self._files.clear()
        self._own()
        self._fds.clear()
        try:
            self._sock.shutdown(socket.SHUT_RDWR)  # wakes the one that reads
        except OSError as failed:
            if not by_system(failed):
                raise
        self._sock.close()

    def _gone(self, e: BaseException | None) -> ConnectionLostError:
        return ConnectionLostError(str(self.over or e), "gone")

    def close(self) -> None:
        with self._lock:
            self._end(OSError("closed"))

    def __del__(self) -> None:
        sock = getattr(self, "_sock", None)  # Ctrl-C may have come before there was one
        if sock is not None:
            sock.close()

    def abandon(self) -> None:
        """In a child after fork: the connection is the parent's."""
        self.over = ConnectionLostError("the connection belongs to the parent process", "gone")
        self._files.clear()
        self._sock.close()

    # --- frames

    def _receive(self) -> tuple[int, Frame]:
        id, op, files, flags, m, b = _header.unpack(self._take(_header.size))
        if not flags & REPLY and op not in _NO_REPLIES or m > 64 << 20:
            raise ConnectionError("it sent a frame that is not a reply")
        meta = bytes(self._take(m))
        body = self._take(b) if b else b""
        passed = tuple([self._fds.popleft() for _ in range(files)])
        if passed and flags & PLACE and not flags & ERROR:
            number = _place.unpack(meta)[2]
            with self._lock:
                self._files[number] = _File(passed[-1])
                if len(self._files) > MAX_FILES:
                    self._dropped.append(self._files.popitem(last=False)[0])
        return id, Frame(op, flags, meta, body, passed if op == VISIT else ())

    def _look(self) -> None:
        """Receive something if it comes soon."""
        if self._rest or not PATIENCE:
            self._rest = max(0, self._rest - 1)
            return
        until = time.perf_counter() + PATIENCE
        while True:
            with suppress(BlockingIOError):
                self._some(_dontwait)
                self._pause //= 4
                self._missed = False
                return
            if time.perf_counter() < until:
                continue
            if self._missed:
                self._rest = self._pause = min(2 * self._pause + 1, MAX_REST)
            self._missed = True
            return

    def _some(self, flags: int = 0) -> None:
        """Receive the bytes that are there, at least one, and descriptors with them."""
        # In one call: no signal handler can raise while descriptors belong to nobody.
        try:
            self._got.extend(map(self._sock.recvmsg, (1 << 16,), (_oob,), (_cloexec | flags,)))
        except BlockingIOError:
            if flags & _dontwait:
                raise
            self._silent()
            return
        self._quiet = 0
        data, _, flags, _ = self._got[0]
        self._own()
        if flags & _ctrunc:
            raise ConnectionError("it sent more descriptors than fit, or this process may open no more files")
        if not data:
            raise ConnectionError("it was closed at the other end")
        self._buf += data

    def _own(self) -> None:
        """Take over the descriptors that have come."""
        if self._got:
            self._fds.extend(map(own, array("i", b"".join(map(itemgetter(2), self._got.pop()[1])))))

    def _silent(self) -> None:
        """Nothing has arrived for a while. A server that runs answers a ping, whatever it works on."""
        if self._quiet >= LOOKS:
            raise TimeoutError(self._stopped())
        if self._sending.locked():  # by another thread, which has a limit too
            return
        with suppress(OSError), self._sending:
            self._sock.sendall(_header.pack(0, PING, 0, 0, 0, 0))
        self._quiet += 1

    def _stopped(self) -> str:
        pid = self.hello.get("pid")
        return f"{self.hello.get('program')} (process {pid}) does not answer; if it was stopped, kill -CONT {pid} lets it go on"

    def _take(self, n: int) -> bytearray:
        have = self._buf
        while len(have) < n <= 1 << 16:
            self._some()
        if len(have) >= n:
            out = have[:n]
            del have[:n]
            return out
        out = bytearray(n)
        got = len(have)
        out[:got] = have
        have.clear()
        view = memoryview(out)
        while got < n:  # never beyond the frame: descriptors come with the next one
            try:
                k = self._sock.recv_into(view[got:])
            except BlockingIOError:
                self._silent()
                continue
            self._quiet = 0
            if k == 0:
                raise ConnectionError("it was closed at the other end")
            got += k
        return out

    # --- files and views

    def value(self, frame: Frame, view: int) -> tuple[bytes | bytearray | None, int, bytes]:
        """The bytes of a reply to get or stat of a view, the size of the whole value and its id.
        The bytes are None if they are in a file that is closed."""
        if not frame.flags & PLACE:
            size, id = _found.unpack(frame.meta)
            return frame.body, size, id
        size, id, number, off, n = _place.unpack(frame.meta)
        m = self.mapped(number, off, n, view)
        return None if m is None else m[off : off + n], size, id

    def mapped(self, number: int, off: int, n: int, view: int) -> mmap.mmap | None:
        """A file that the server has passed, in memory, with n bytes at off; it stays open until the view is closed. None if it is closed."""
        with self._lock:
            file = self._files.get(number)
            if file is not None:
                self._files.move_to_end(number)
                file.views.add(view)
        return None if file is None else file.mapped(off, n)

    def _give_back(self) -> None:
        """Let the server forget files. It may not know them."""
        with suppress(IndexError):  # another thread was faster
            while self._dropped:
                number = self._dropped[0]
                self._tell(FORGET, {"file": number})
                _remove(self._dropped, number)
        if self._recalled:
            self._tell(RECALL, {})
            self._recalled = False

    def _tell(self, op: int, o: Any) -> None:
        """Send a frame that gets no answer."""
        try:
            self._send(0, op, 0, to_json(o), b"")
        except OSError as e:
            raise self._gone(e) from e

    def close_views(self, wait: bool = True) -> None:
        """Close views that are not used any more, and files that only they have read, without waiting for the answers. Finalizers
        call it without wait: then it does nothing if a request is under way, also of this thread."""
        while self.unused:
            if not wait and (self._busy or self._reading or self._lock.locked() or self._sending.locked()):
                return
            with suppress(IndexError):  # another thread was faster
                handle = self.unused[0]
                id = self.start(CLOSE, to_json({"view": handle}), wait=False)
                if id is None:
                    return
                _remove(self.unused, handle)
                with self._lock:
                    self._replies.pop(id, None)
                    self._drop_files(handle)
        if self._dropped:
            self._give_back()

    def _drop_files(self, view: int) -> None:
        for number, file in list(self._files.items()):
            if view in file.views:
                file.views.discard(view)
                if not file.views:
                    self._dropped.append(number)
                    del self._files[number]


def by_system(e: BaseException) -> bool:
    """Whether the system reports an error, also one of the connection. One that a signal handler raises, such as a TimeoutError, is for the caller."""
    tb = e.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    if not isinstance(e, OSError) or isinstance(e, ZarrdbError):
        return False
    return tb is None or tb.tb_frame.f_code.co_filename == _SOCKET or os.path.dirname(tb.tb_frame.f_code.co_filename) == _HERE


_HERE, _SOCKET = os.path.dirname(by_system.__code__.co_filename), socket.send_fds.__code__.co_filename

# Frames that the server sends without a request.
_NO_REPLIES = (BYE, RECALL, SHARE, PING)


def _remove(items: deque[Any], item: Any) -> None:
    with suppress(ValueError):  # another thread was faster
        items.remove(item)
