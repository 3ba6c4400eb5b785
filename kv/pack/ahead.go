package pack

import "sync/atomic"

// A page fault in a map blocks the reader until the kernel has read a small window. So the kernel
// is asked for a large payload as a whole, and a reader that goes from payload to payload, as one
// of a whole array or a check does, has the next ones read meanwhile:
//
//	run      last                 asked
//	 | read … | about to be read …  |      asked - last ≤ last - run, up to aheadMost
const (
	aheadLarge = 128 << 10 // from this size on a payload is asked for by itself
	aheadGap   = 4 << 20   // a read that begins so close behind the last one goes on with it
	aheadMost  = 16 << 20
)

// runs is where a map is read. Readers change it side by side: what they lose is advice.
type runs struct{ run, last, asked atomic.Uint64 }

// ahead asks the kernel for a range of the map that is read next, and for what may be read after
// it.
func (h *handle) ahead(from, to uint64) {
	if last := h.runs.last.Swap(to); last == 0 || from < last || from-last > aheadGap {
		h.runs.run.Store(from)
		h.runs.asked.Store(to)
		if to-from >= aheadLarge {
			readAhead(h.data, from, to)
		}
		return
	}
	more := min(to-h.runs.run.Load(), aheadMost)
	if asked := h.runs.asked.Load(); asked < to+more/2 {
		h.runs.asked.Store(to + more)
		readAhead(h.data, max(from, asked), to+more)
	}
}
