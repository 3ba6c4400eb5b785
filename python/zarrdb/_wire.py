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
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from ._errors import ConnectionLostError, InvalidError, VersionError, ZarrdbError, failure
from ._memory import AVAILABLE, Blocks

PROTOCOL = 1
ZERO = bytes(20)

HELLO, CANCEL, BYE, GET, STAT, SET, DELETE, _, LIST, LIST_DIR = range(1, 11)
OPEN, CLOSE, FORGET, DATABASES, RESOLVE, REFS, _, LOG, DIFF, SESSIONS = range(11, 21)
BEGIN, _, SAVEPOINT, CHANGES, DELETE_PREFIX, COMMIT, DISCARD, ARRAY, READ, WRITE = range(21, 31)
SELECT, READ_MANY, GUARD, MOVE, REBASE, FORK, JOIN = range(32, 39)
LEAVE = 42
ASK = 50

REPLY, ERROR, PLACE, BYTES, AHEAD = 1, 2, 4, 8, 16
ALL, FROM, SPAN, LAST, AT_MOST = range(5)

_header = struct.Struct("<IBBHII")
_get = struct.Struct("<IB3xqq")
_set = struct.Struct("<IB3x20s")
_list = struct.Struct("<IIIB3x")
_found = struct.Struct("<Q20s")
_place = struct.Struct("<Q20sIQQ")

# As plain numbers: those of the module take long to combine.
_cloexec = int(getattr(socket, "MSG_CMSG_CLOEXEC", 0))
_dontwait = int(getattr(socket, "MSG_DONTWAIT", 0))
_ctrunc = int(getattr(socket, "MSG_CTRUNC", 0))
_oob = socket.CMSG_SPACE(4 * 64) if hasattr(socket, "CMSG_SPACE") else 0
MAX_FILES = 128

# How many seconds to look for a reply before sleeping until it is there, and for each byte of
# a result: to be woken takes longer than most requests. After failures that many replies
# are waited for asleep.
PATIENCE = 250e-6 if _dontwait and (os.cpu_count() or 1) > 1 else 0.0
PATIENCE_BYTE = 0.3e-9
MAX_REST = 255
# A server that ends first answers running requests, and may be silent for this many seconds.
ENDING = 30.0


class Frame(NamedTuple):
    op: int
    flags: int
    meta: bytes
    body: bytes | bytearray


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


class _File:
    """A file of the database that the server has passed."""

    __slots__ = ("fd", "map")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.map: mmap.mmap | None = None

    def mapped(self, off: int, n: int) -> mmap.mmap:
        """The file in memory, with n bytes at off. What refers to it keeps it open."""
        m = self.map
        if m is None or len(m) < off + n:
            m = self.map = mmap.mmap(self.fd, 0, prot=mmap.PROT_READ)  # it may have grown
            if len(m) < off + n:
                raise ZarrdbError(f"the server named {n} bytes at {off} in a file of {len(m)}")
        return m

    def __del__(self) -> None:
        os.close(self.fd)


class Link:
    """One connection. Safe for threads; not to be used in a child after fork."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self._buf, self._fds = sock, bytearray(), deque[int]()
        # A signal may raise anywhere, but not between taking a plain lock and its with block.
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._cond = threading.Condition(self._lock)
        self._next, self._busy = 0, 0
        self._replies: dict[int, Frame | None] = {}  # of requests that somebody waits for
        self._reading = False
        self._files: OrderedDict[int, _File] = OrderedDict()
        self._views = 0
        self.unused: deque[int] = deque()  # handles of views that are to be closed, 0 if the server has
        self.server = ""  # names the process at the other end, once it was asked for
        self.saved: set[str] = set()  # sessions that the server left at savepoints
        self.over: ConnectionLostError | None = None
        self.pid = os.getpid()
        self._most, self._rest, self._pause, self._missed = 1, 1, 0, False
        self.blocks: Blocks | None = None  # where the server takes them
        self.max_meta, self.max_body = 4 << 20, 512 << 20
        sock.settimeout(30)
        hello = {"protocol": PROTOCOL, "version": "python", "pid": self.pid, "capabilities": ["files"]}
        self.hello: dict[str, Any] = self.ask(HELLO, hello)
        if self.hello.get("protocol") != PROTOCOL:
            self.close()
            raise VersionError(f"process {self.hello.get('pid')} speaks protocol {self.hello.get('protocol')}, this one {PROTOCOL}")
        self._most = max(1, self.hello.get("requests", 1))
        if AVAILABLE and "blocks" in (self.hello.get("capabilities") or ()):
            self.blocks = Blocks(self.hello.get("max_blocks") or 0)
        self.max_meta = self.hello.get("max_meta") or self.max_meta
        self.max_body = self.hello.get("max_body") or self.max_body
        sock.settimeout(None)

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
        id = self.start(op, meta, body, flags, fds)
        assert id is not None
        return self.finish(id)

    def start(self, op: int, meta: bytes, body: Any = b"", flags: int = 0, fds: Sequence[int] = (), wait: bool = True) -> int | None:
        """Send a request. Its reply is to be had from `finish`, or given up with `cancel`.
        Without wait it is not sent where too many are under way. A thread that has
        replies to come must not wait for that: they may be its own."""
        if len(body) > self.max_body or len(meta) > self.max_meta:
            raise InvalidError(f"{len(meta)} and {len(body)} bytes at once, where {self.max_meta} and {self.max_body} are taken", "too_large")
        if wait and self.unused:
            self._close_views()
        if self.blocks and self.blocks.lost:
            self._forget_blocks(self.blocks)
        id = self._begin(wait)
        if id:
            try:
                self._send(id, op, flags, meta, body, fds)
            except BaseException as e:
                self._failed(id, e)
        return id

    def finish(self, id: int, size: int = 0) -> Frame:
        """The reply to a request, which gives a result of that many bytes. A failure is raised as its exception."""
        try:
            frame = self._await(id, PATIENCE + PATIENCE_BYTE * size)
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

    def _failed(self, id: int, e: BaseException) -> NoReturn:
        self.cancel(id)
        if isinstance(e, OSError) and not isinstance(e, ZarrdbError):
            raise self._gone(e) from e
        try:
            raise e
        finally:
            del e  # its traceback refers to this frame

    def _begin(self, wait: bool = True) -> int | None:
        with self._lock:
            if not wait and self._busy >= self._most:
                return None
            while self._busy >= self._most and self.over is None:
                if not any(True for _ in self._replies):  # only such as were given up
                    self._end(OSError("too many requests were given up"))
                    break
                self._cond.wait()
            if self.over is not None:
                raise self._gone(None)
            self._next = self._next + 1 & 0xFFFFFFFF
            while self._next in self._replies or self._next == 0:
                self._next = self._next + 1 & 0xFFFFFFFF
            self._replies[self._next] = None
            self._busy += 1
            return self._next

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
            except OSError as e:
                self._drain(e)
                raise
            except BaseException:  # a part of a frame may have been sent
                with self._lock:
                    self._end(OSError("interrupted"))
                raise

    def _await(self, id: int, patience: float) -> Frame:
        reader = False
        try:
            with self._lock:
                while True:
                    frame = self._replies[id]
                    if frame is not None:
                        del self._replies[id]
                        return frame
                    if self.over is not None:
                        raise self._gone(None)
                    if not self._reading:
                        self._reading = reader = True
                        break
                    self._cond.wait()
            if self._busy == 1 and not self._buf:
                self._look(patience)
            while True:
                got, frame = self._receive()
                with self._lock:
                    self._dispatch(got, frame)
                    if got == id:
                        del self._replies[id]
                        return frame
        except BaseException as e:
            if reader:  # a part of a frame may have been read
                with self._lock:
                    self._end(e)
            raise
        finally:
            if reader:
                with self._lock:
                    self._reading = False
                    self._cond.notify_all()

    def _dispatch(self, id: int, frame: Frame) -> None:
        if frame.op == BYE:
            self.saved.update(json.loads(frame.meta or b"{}").get("saved") or ())
            return
        self._busy -= 1
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

    def _drain(self, e: OSError, patience: float = 2) -> None:
        """The other side has ended: read what it said last."""
        with self._lock:
            while self._reading and self.over is None:
                self._cond.wait()  # another thread reads it
            if self.over is not None:
                return
            self._reading = True
        try:
            self._sock.settimeout(patience)
            while True:
                got, frame = self._receive()
                with self._lock:
                    self._dispatch(got, frame)
        except (OSError, ZarrdbError):
            pass
        finally:
            with self._lock:
                self._reading = False
                self._end(e)

    def drain(self) -> None:
        """Read what the server says last, after it was told to end."""
        self._drain(ConnectionError("the server was left"), ENDING)

    def _end(self, e: BaseException) -> None:
        if self.over is None:
            self.over = ConnectionLostError(f"the connection to the process that has the database open has ended: {e}", "gone")
            self._files.clear()
            try:
                self._sock.shutdown(socket.SHUT_RDWR)  # wakes the one that reads
            except OSError:
                pass
            self._sock.close()
        self._cond.notify_all()

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
        self.over = ConnectionLostError("the connection is that of the parent process", "gone")
        self._files.clear()
        self._sock.close()

    # --- frames

    def _receive(self) -> tuple[int, Frame]:
        id, op, files, flags, m, b = _header.unpack(self._take(_header.size))
        if not flags & REPLY or m > 64 << 20:
            raise ConnectionError("it sent what is no reply")
        meta = bytes(self._take(m))
        body = self._take(b) if b else b""
        if files:
            fds = [self._fds.popleft() for _ in range(files)]
            if flags & PLACE and not flags & ERROR:
                number = _place.unpack(meta)[2]
                with self._lock:
                    self._files[number] = _File(fds.pop())
                    dropped = [self._files.popitem(last=False)[0]] if len(self._files) > MAX_FILES else []
                self._forget(dropped)
            for fd in fds:
                os.close(fd)
        return id, Frame(op, flags, meta, body)

    def _look(self, patience: float) -> None:
        """Receive something if it comes soon."""
        if self._rest or not PATIENCE:
            self._rest = max(0, self._rest - 1)
            return
        until = time.perf_counter() + patience
        while True:
            try:
                self._some(_dontwait)
            except BlockingIOError:
                if time.perf_counter() < until:
                    continue
                if self._missed:
                    self._rest = self._pause = min(2 * self._pause + 1, MAX_REST)
                self._missed = True
            else:
                self._pause //= 4
                self._missed = False
            return

    def _some(self, flags: int = 0) -> None:
        """Receive what is there, at least a byte, and descriptors with it."""
        data, oob, flags, _ = self._sock.recvmsg(1 << 16, _oob, _cloexec | flags)
        for level, kind, raw in oob:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                self._fds.extend(struct.unpack(f"{len(raw) // 4}i", raw[: len(raw) - len(raw) % 4]))
        if flags & _ctrunc:
            raise ConnectionError("it sent more descriptors than fit, or this process may open no more files")
        if not data:
            raise ConnectionError("it was closed at the other end")
        self._buf += data

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
            k = self._sock.recv_into(view[got:])
            if k == 0:
                raise ConnectionError("it was closed at the other end")
            got += k
        return out

    # --- files and views

    def value(self, frame: Frame) -> tuple[bytes | bytearray | None, int, bytes]:
        """The bytes of a reply to get or stat, the size of the whole value and its id.
        The bytes are None if they are in a file that is closed."""
        if not frame.flags & PLACE:
            size, id = _found.unpack(frame.meta)
            return frame.body, size, id
        size, id, number, off, n = _place.unpack(frame.meta)
        m = self.mapped(number, off, n)
        return None if m is None else m[off : off + n], size, id

    def mapped(self, number: int, off: int, n: int) -> mmap.mmap | None:
        """A file that the server has passed, in memory, with n bytes at off. None if it is closed."""
        with self._lock:
            file = self._files.get(number)
            if file is not None:
                self._files.move_to_end(number)
        return None if file is None else file.mapped(off, n)

    @staticmethod
    def place(frame: Frame) -> tuple[int, int, int] | None:
        """Where the value of a reply to get is: the number of a file, offset and length."""
        return _place.unpack(frame.meta)[2:] if frame.flags & PLACE else None

    def _forget_blocks(self, blocks: Blocks) -> None:
        """Let the server forget blocks. It may not know them."""
        while True:
            try:
                number = blocks.lost.popleft()
            except IndexError:
                return
            try:
                self._send(0, FORGET, 0, to_json({"block": number}), b"")
            except OSError as e:
                raise self._gone(e) from e
            blocks.known.pop(number, None)

    def _forget(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            # The request has no reply. The reading thread must not wait for a sending thread.
            if self._sending.acquire(blocking=False):
                try:
                    meta = to_json({"file": number})
                    self._sock.sendall(_header.pack(0, FORGET, 0, 0, len(meta), 0) + meta)
                except OSError:
                    pass
                finally:
                    self._sending.release()

    def hold(self) -> None:
        self._views += 1

    def _close_views(self) -> None:
        """Close what is not used any more, without waiting."""
        while True:
            try:
                handle = self.unused.popleft()
            except IndexError:
                break
            self._views -= 1
            if not handle:
                continue
            id = self._begin()
            assert id is not None
            with self._lock:
                del self._replies[id]
            try:
                self._send(id, CLOSE, 0, to_json({"view": handle}), b"")
            except OSError as e:
                raise self._gone(e) from e
        if self._views <= 0 and self._files:
            with self._lock:
                numbers = list(self._files)
                self._files.clear()
            self._forget(numbers)
