package pack

import "sync/atomic"

// A page fault in a map blocks the reader until the kernel has read a small window. So the kernel
// is asked for a large payload as a whole, and a reader that goes from payload to payload, as one
// of a whole array or a check does, has the next ones read meanwhile:
//
//	run      last                 asked
//	 | read … | about to be read …  |      asked - last ≤ last - run, up to aheadMost
//
// Several goroutines may read the payloads of one run, not quite in order. A run goes on from the
// end of a pack at the start of another one that was begun soon after.
const (
	aheadLarge = 128 << 10 // from this size on a payload is asked for by itself
	aheadGap   = 4 << 20   // a read that begins so close behind the last one goes on with it
	aheadMost  = 16 << 20
	aheadPacks = 4 // a run that ended in a pack goes on in one of so many packs after that pack
)

// runs is where a map is read. Readers change it side by side: what they lose is advice.
type runs struct {
	run         atomic.Uint64 // where the run began, plus aheadMost: it may have begun in the pack before
	last, asked atomic.Uint64
}

// ahead asks the kernel for a range of the map that is read next, and for what may be read after
// it.
func (p *pack) ahead(h *handle, from, to uint64) {
	r := &h.runs
	last, run := r.last.Load(), r.run.Load()
	switch {
	case last != 0 && from >= last && from-last <= aheadGap:
	case last != 0 && from+aheadMost >= run && to <= last:
		return // another reader of the run was faster, and has asked for this range too
	case last == 0 && from <= aheadGap && p.follows():
		r.run.Store(to)
		r.asked.Store(from)
	default:
		r.last.Store(to)
		r.run.Store(from + aheadMost)
		r.asked.Store(to)
		if to-from >= aheadLarge {
			readAhead(h.data, from, to)
		}
		return
	}
	r.last.Store(to)
	more := min(to+aheadMost-r.run.Load(), aheadMost)
	if asked := r.asked.Load(); asked < to+more/2 {
		r.asked.Store(to + more)
		readAhead(h.data, asked, to+more)
	}
	if to+aheadGap >= p.size.Load() {
		p.s.ran.Store(p.id.Counter() + 1)
	}
}

// follows reports whether a run has reached the end of a pack that was begun shortly before p.
func (p *pack) follows() bool {
	ran, own := p.s.ran.Load(), p.id.Counter()+1
	return ran != 0 && ran < own && own-ran <= aheadPacks
}
