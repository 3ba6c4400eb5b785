"""Elements of a fixed size: the server decodes and encodes them.

    selection ──parts, of whole chunks──▶ requests, several under way ──▶ server
        ▲                                                                   │
        └─────────── threads copy, each the elements of a block ◀───────────┘
"""

from __future__ import annotations

import itertools
import json
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from . import _chunks
from . import _wire as w
from ._errors import InvalidError
from ._memory import KEPT, LONGEST, Block
from ._plain import PlainChunks
from ._selection import Selection
from ._views import View, WritableView

Numbers = np.ndarray[Any, Any]

# Results that are longer come through memory that both processes map, this many bytes
# at a time, and so many requests are under way then. Meanwhile TAKERS threads take the elements of other requests:
# most of that time the system clears fresh pages.
MAPPED = 16 << 10
PART = 8 << 20
AHEAD = 3
TAKERS = 3
# Elements of several chunks of at least so many bytes come chunk by chunk: the server decodes straight into the
# shared memory, and the elements are put in their places only once, here. If less than one of SPARSE elements of
# the chunks is wanted, that would be many requests for little.
LARGE = 1 << 20
SPARSE = 4


class _Request(NamedTuple):
    """A request for n bytes of elements of a fixed size, or with so many."""

    op: int
    ask: str  # the fields of its JSON that are no numbers of the connection
    n: int
    take: Callable[[bytes, Any], None]  # gets the description and the bytes, which may be used until it returns
    fill: Callable[[Any], None] | None = None  # writes the elements to send


def _stream(view: View, requests: Iterable[_Request]) -> None:
    """Send requests, and let the server work on the next ones while threads take the elements of earlier ones."""
    left = iter(requests)
    todo: deque[_Request] = deque()  # requests without a reply
    free = threading.Semaphore(TAKERS + 1)
    failed: list[BaseException] = []

    def take(of: list[tuple[w.Link, _Request, w.Frame, Block | None]]) -> None:
        try:
            link, r, frame, block = of.pop()
        except IndexError:
            return  # it was taken here, because a thread could not be started
        try:
            r.take(frame.meta, block.map if block else frame.body)
            if block and link.blocks:
                link.blocks.give(block)
        except BaseException as e:
            failed.append(e)
        finally:
            free.release()

    def run(link: w.Link, handle: int) -> None:
        sent: deque[tuple[int, Block | None]] = deque()
        try:
            while not failed:
                while len(sent) < AHEAD:
                    if len(todo) == len(sent):
                        r = next(left, None)
                        if r is None:
                            break
                        todo.append(r)
                    r = todo[len(sent)]
                    if sent and r.n + sum(q.n for q in itertools.islice(todo, len(sent))) > KEPT:
                        break  # more blocks than are kept would be made for each request anew
                    started = _start(link, handle, r, wait=not sent)
                    if started is None:
                        break
                    sent.append(started)
                if not sent:
                    return
                id, block = sent[0]
                r = todo[0]
                frame = link.finish(id, 0 if r.fill else r.n)
                sent.popleft()
                todo.popleft()
                reply = [(link, r, frame, block)]
                free.acquire()
                if r.fill or not sent:  # there is little to do, or nothing to wait for meanwhile
                    take(reply)
                    continue
                try:
                    threads.submit(take, reply)
                except RuntimeError:  # there are too many threads, or the interpreter ends
                    take(reply)
        finally:
            for id, _ in sent:
                link.cancel(id)

    with ThreadPoolExecutor(TAKERS) as threads:
        view._again(run)
    if failed:
        try:
            raise failed[0]
        finally:
            failed.clear()  # its traceback refers to this frame


def _one(view: View, r: _Request) -> None:
    """Send a request and take its elements: the same as `_stream` in less time."""

    def run(link: w.Link, handle: int) -> None:
        started = _start(link, handle, r, wait=True)
        assert started is not None
        id, block = started
        frame = link.finish(id, 0 if r.fill else r.n)
        r.take(frame.meta, block.map if block else frame.body)
        if block and link.blocks:
            link.blocks.give(block)

    view._again(run)


def _start(link: w.Link, handle: int, r: _Request, wait: bool) -> tuple[int, Block | None] | None:
    block = link.blocks.take(r.n) if link.blocks is not None and r.n >= MAPPED else None
    if block is None:
        body = bytearray(r.n) if r.fill else b""
        if r.fill:
            r.fill(body)
        id = link.start(r.op, f'{{"view":{handle},{r.ask}}}'.encode(), body, wait=wait)
        return None if id is None else (id, None)
    if r.fill:
        r.fill(block.map)
    meta = f'{{"view":{handle},"block":{block.number},{r.ask}}}'.encode()
    id = link.start(r.op, meta, fds=() if block.fd is None else (block.fd.fileno(),), wait=wait)
    if id is None:
        assert link.blocks is not None
        link.blocks.give(block)
        return None
    block.sent()
    return id, block


class Elements:
    """The elements of an array in a version or session, which have a fixed size. unit is the shape that
    the server decodes at once, chunk the shape that it encodes, if all are alike. check gets the
    server's description of elements; it must not refer to the owner of the elements, or only the cycle
    collector would let the version go."""

    __slots__ = ("_path", "_right", "check", "chunk", "dtype", "path", "plain", "shape", "unit", "version", "view")

    def __init__(self, view: View, path: str, shape: tuple[int, ...], unit: tuple[int, ...], dtype: np.dtype[Any], check: Callable[[dict[str, Any]], None], chunk: tuple[int, ...] = ()) -> None:
        self.chunk = chunk
        self.view, self.path, self.shape, self.unit, self.dtype, self.check = view, path, shape, unit, dtype, check
        self._path = f'"path":{json.dumps(path)}'
        self._right: tuple[bytes, tuple[int, ...]] | None = None  # a description and the shape that it is right for
        self.plain: PlainChunks | None = None  # where they are stored as they are
        self.version: _chunks.Key | None = None  # chunks of a version are kept
        if view.read_only and 0 not in shape:
            self.version = (view._client.dir, view._rev(), path, unit, dtype)

    def one(self, at: Sequence[int]) -> Any:
        """The element at numbers inside the array, if its chunk is here, else None."""
        return None if self.version is None else _chunks.element(self.version, self.unit, at)

    def read(self, sel: Selection, out: Numbers | None = None) -> Numbers:
        """The elements of a selection. With out they are written there."""
        if self.version is not None:
            got = _chunks.selection(self.version, self.unit, self.shape, sel.items, self.dtype, lambda box: self._read(Selection.of([*box]), None))
            if got is not None:
                if out is None:
                    return got
                out[...] = got
                return out
        return self._read(sel, out)

    def _read(self, sel: Selection, out: Numbers | None) -> Numbers:
        shape, dtype = sel.shape, self.dtype
        n = math.prod(shape) * dtype.itemsize
        if n == 0:
            return np.empty(shape, dtype) if out is None else out
        if n < MAPPED and out is None:
            short: list[Any] = []
            _one(self.view, self._request(sel, short.append))
            return np.frombuffer(short[0], dtype).reshape(shape)
        if self.plain is not None:
            got = self.plain.read(self.view, sel, out)
            if got is not None:
                into, left = got
                for part, where in left:
                    self._decoded(part, into[where] if where else into)
                return into
        into = np.empty(shape, dtype) if out is None else out
        self._decoded(sel, into)
        return into

    def _decoded(self, sel: Selection, into: Numbers) -> None:
        """Let the server decode elements into an array of their shape."""
        dtype = self.dtype
        most, size = self._most(), math.prod(self.unit) * dtype.itemsize
        if into.nbytes <= min(most, PART) and (into.nbytes <= size or size < LARGE):

            def only(body: Any) -> None:
                into[...] = np.frombuffer(body, dtype, into.size).reshape(into.shape)

            return _one(self.view, self._request(sel, only))
        if LARGE <= size < into.nbytes and size <= min(most, PART) // 2 and self._touched(sel) * size <= SPARSE * into.nbytes:
            return self._by_chunks(sel, into, min(most, PART) // size)

        def place(where: tuple[slice, ...]) -> Callable[[Any], None]:
            to = into[where] if where else into

            def take(body: Any) -> None:
                to[...] = np.frombuffer(body, dtype, to.size).reshape(to.shape)

            return take

        unit = self.unit if most >= size else ()
        _stream(self.view, (self._request(part, place(where)) for part, where in sel.parts(max(1, min(most, PART) // dtype.itemsize), unit)))

    def _touched(self, sel: Selection) -> int:
        """About how many chunks a selection of some elements touches."""
        return math.prod([min(len(k), abs(k[-1] // u - k[0] // u) + 1) for k, u in zip(sel.items, self.unit, strict=True) if isinstance(k, range)])

    def _by_chunks(self, sel: Selection, into: Numbers, n: int) -> None:
        """Let the server decode elements, with each request n chunks, one chunk after the other."""

        def request(parts: list[tuple[Selection, tuple[slice, ...]]]) -> _Request:
            def take(body: Any) -> None:
                at = 0
                for _, where in parts:
                    to = into[where] if where else into
                    to[...] = np.frombuffer(body, self.dtype, to.size, at).reshape(to.shape)
                    at += to.nbytes

            return self._request_many([s for s, _ in parts], take)

        left = sel.parts(1, self.unit)
        _stream(self.view, map(request, iter(lambda: list(itertools.islice(left, n)), [])))

    def _request(self, sel: Selection, take: Callable[[Any], None]) -> _Request:
        want = sel.shape

        def took(meta: bytes, body: Any) -> None:
            if self._right != (meta, want):
                o = json.loads(meta)
                self.check(o)
                if tuple(o.get("shape") or ()) != want:
                    raise self._other_shape(want, o.get("shape"))
                self._right = meta, want
            take(body)

        return _Request(w.READ, f'{self._path},"select":"{sel.text()}"', math.prod(want) * self.dtype.itemsize, took)

    def _request_many(self, sels: Sequence[Selection], take: Callable[[Any], None]) -> _Request:
        """A request for the elements of several selections, one selection after the other."""
        want = [s.shape for s in sels]

        def took(meta: bytes, body: Any) -> None:
            o = json.loads(meta)
            self.check(o)
            if [tuple(s or ()) for s in o["shapes"]] != want:
                raise self._other_shape(want, o["shapes"])
            take(body)

        n = sum(map(math.prod, want)) * self.dtype.itemsize
        return _Request(w.READ_MANY, f'{self._path},"selects":{json.dumps([s.text() for s in sels])}', n, took)

    def read_many(self, sels: Sequence[Selection]) -> list[Numbers]:
        """The elements of several selections, many with one request. All share their memory."""
        shapes = [s.shape for s in sels]
        sizes = [math.prod(s) for s in shapes]
        values = np.empty(sum(sizes), self.dtype)
        out, at = [], 0
        for shape, n in zip(shapes, sizes, strict=True):
            out.append(values[at : at + n].reshape(shape))
            at += n

        def request(lo: int, hi: int, start: int, n: int) -> _Request:
            def take(body: Any) -> None:
                values[start : start + n] = np.frombuffer(body, self.dtype, n)

            return self._request_many(sels[lo:hi], take)

        def requests() -> Iterator[_Request]:
            most = max(1, min(self._most(), PART) // max(1, self.dtype.itemsize))
            lo = start = n = 0
            for hi, size in enumerate(sizes):
                if n and n + size > most:
                    yield request(lo, hi, start, n)
                    lo, start, n = hi, start + n, 0
                n += size
            if n:
                yield request(lo, len(sizes), start, n)

        _stream(self.view, requests())
        return out

    def write(self, sel: Selection, values: Numbers) -> None:
        """Write elements, little-endian, in as many requests as are needed."""
        session = self.view._writable()
        dtype, most = values.dtype, self._most()

        def wrote(_: bytes, __: Any) -> None:
            session._dirty += 1

        def request(part: Selection, of: Numbers) -> _Request:
            def fill(body: Any) -> None:
                np.frombuffer(body, dtype, of.size).reshape(of.shape)[...] = of

            return _Request(w.WRITE, f'{self._path},"bytes":{of.nbytes},"select":"{part.text()}"', of.nbytes, wrote, fill)

        if values.nbytes <= min(most, PART):
            _one(session, request(sel, values))
        elif self.chunk and math.prod(self.chunk) * dtype.itemsize <= most:
            # No two requests write to one chunk: each would encode the whole chunk.
            parts = sel.parts(max(1, min(most, PART) // dtype.itemsize), self.chunk)
            _stream(session, (request(part, values[where] if where else values) for part, where in parts))
        else:
            for part, where in sel.parts(max(1, most // dtype.itemsize)):
                _one(session, request(part, values[where] if where else values))

    def _most(self) -> int:
        """How many bytes go with one request."""
        link, _ = self.view._at()
        return min(LONGEST, link.max_body)

    def _other_shape(self, want: Any, got: Any) -> InvalidError:
        return InvalidError(f"/{self.path} has another shape by now: the selection is {got}, not {want}; refresh or open it again", "selection")


def write_part(session: WritableView, path: str, sel: Selection, body: Any) -> None:
    """One request that writes the elements of a selection."""
    session._again(lambda l, h: l.call(w.WRITE, w.to_json({"view": h, "path": path, "select": sel.text()}), body))
    session._dirty += 1
