package pack

import (
	"context"
	"errors"
	"sync/atomic"
)

// A page fault in a map blocks the reader until the kernel has read a small window. So the kernel
// is asked for a large payload as a whole, and a reader that goes from payload to payload, as one
// of a whole array or a check does, has the next ones read meanwhile by another goroutine:
//
//	run      last                 asked
//	 | read … | about to be read …  |      asked - last ≤ last - run, up to aheadMost
//
// Several goroutines may read the payloads of one run, not quite in order. Where a run asks for
// bytes beyond the end of its pack, as many are read at the start of the next unread pack.
const (
	aheadLarge = 128 << 10 // from this size on a payload is asked for by itself
	aheadGap   = 4 << 20   // a read that begins so close behind the last one goes on with it
	aheadMost  = 32 << 20
	aheadPacks = 4 // a run goes on in one of so many packs after its own: several writers fill packs side by side
)

// runs is where a map is read. Readers change it side by side: what they lose is advice.
type runs struct {
	run         atomic.Uint64 // where the run began, plus aheadMost: it may have begun in the pack before
	last, asked atomic.Uint64
}

// span is a part of a pack, in bytes of its file. It may reach beyond the end of the file.
type span struct{ from, to uint64 }

// read notes a read of [from, to). It returns the span to ask the kernel for, which may be
// empty, and whether the read belongs to a run: then another goroutine asks.
func (r *runs) read(from, to uint64) (ask span, run bool) {
	last, begun := r.last.Load(), r.run.Load()
	switch {
	case last != 0 && from >= last && from-last <= aheadGap:
	case last != 0 && from+aheadMost >= begun && to <= last:
		return span{}, true // another reader of the run has asked for this range already
	case last == 0 && from <= aheadGap && r.asked.Load() > 0: // by a run in a pack before
		r.run.Store(to)
	default:
		r.last.Store(to)
		r.run.Store(from + aheadMost)
		r.asked.Store(to)
		if to-from >= aheadLarge {
			return span{from, to}, false
		}
		return span{}, false
	}
	r.last.Store(to)
	more := min(to+aheadMost-r.run.Load(), aheadMost)
	if asked := r.asked.Load(); asked < to+more/4*3 {
		r.asked.Store(to + more)
		// While another reader begins a run here, asked may still belong to a run far before.
		return span{max(asked, from), to + more}, true
	}
	return span{}, true
}

// ahead has the kernel read a range of the map that is read next, and in a run the range behind it.
func (p *pack) ahead(h *handle, from, to uint64) {
	switch ask, run := h.runs.read(from, to); {
	case ask.from >= ask.to:
	case !run:
		readAhead(h.data, ask.from, ask.to)
	default:
		size := p.size.Load()
		if h.lay != nil {
			size = uint64(len(h.data))
		}
		more := ask.to > size && mapAhead
		if !more && inMemory(h.data, ask.from, ask.to) || !h.ref() {
			return
		}
		go func() {
			p.s.fetch(p.id, h, ask.from, min(ask.to, size))
			h.unref()
			if more {
				p.runOn(h, ask.to-size)
			}
		}()
	}
}

// fetch reads a part of the file of a map, in large pages, and waits. It promises nothing.
func (s *Store) fetch(id ID, h *handle, from, to uint64) {
	if inMemory(h.data, from, to) || s.closed.Load() {
		return
	}
	f, err := s.openPack(id)
	if err != nil {
		readAhead(h.data, from, to)
		return
	}
	defer func() { _ = f.Close() }()
	readLarge(f, h.data, from, to, s.closed.Load)
}

// firstPayload is where the first payload of a pack can be.
var firstPayload = place(fileHeaderSize, 0, 0)

// runOn reads the first n bytes of a pack after p: of the first pack that has not been read,
// and of which less was asked for. h is the handle of p through which the run reads. A store
// that borrows takes no more files once it has given h back.
func (p *pack) runOn(h *handle, n uint64) {
	s := p.s
	back := func() bool { return s.o.borrow != nil && p.handle.Load() != h }
	for k := uint64(1); k <= aheadPacks && !back(); k++ {
		ctx := context.Background()
		r, err := s.locate(ctx, Address{Pack: newID(p.id.Incarnation(), p.id.Counter()+k), Offset: firstPayload}, 0, 0)
		var next *handle
		if err == nil {
			next, err = r.acquire(ctx)
		}
		if errors.As(err, new(*CorruptError)) {
			continue // the pack, or its first payload, is not there any more
		}
		if err != nil {
			return // a reader will return the error
		}
		if back() {
			s.files.evict(r.p)
			next.unref()
			return
		}
		asked := next.runs.asked.Load()
		if next.data != nil && next.runs.last.Load() == 0 && asked < n {
			next.runs.asked.Store(n)
			s.fetch(r.p.id, next, asked, min(n, r.p.size.Load()))
			next.unref()
			return
		}
		next.unref()
	}
}
