package reach

import (
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// Ranges collects where payloads are, joined where they follow each other:
// an array that was written in order is a few ranges, whatever its size. In the
// worst case every chunk is one.
//
//	workers ──▶ Local ──sort, code──▶ runs of each pack ──merge──▶ list
//	            16 bytes each               some 5 bytes each            of one pack
//
// Runs are sorted lists, coded as uvarints: the distance from the range before,
// and the length. Beyond a number of bytes small gaps count as payloads, so
// that memory is bounded; a collection frees such gaps later.
type Ranges struct {
	mu    sync.Mutex
	packs map[rangeKey]*runList
	bytes int // of all runs
	limit int
	slack uint64 // gaps up to this count as live
}

// rangeKey is a pack and the owner of ranges in it; see [Local.Owner].
type rangeKey struct {
	pack  tree.PackID
	owner int32
}

// runList are the runs of one pack.
type runList struct {
	runs  [][]byte
	bytes int
}

// MaxRangeBytes is a good limit for [NewRanges].
const MaxRangeBytes = 96 << 20

const (
	maxRuns  = 32      // of a pack, then they become one
	maxSlack = 1 << 62 // joins all of a pack
)

// NewRanges returns an empty set. limit is the memory in bytes from which on small
// gaps are closed.
func NewRanges(limit int) *Ranges {
	return &Ranges{packs: map[rangeKey]*runList{}, limit: limit}
}

// Of returns the ranges of a pack that begin before an offset, in order, and
// their size in bytes. They are those of owner 0.
func (r *Ranges) Of(id pack.ID, tail uint64) (list []pack.Extent, n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.packs[rangeKey{pack: tree.PackID(id)}]
	if l == nil {
		return nil, 0
	}
	for e := range mergeRuns(l.runs, r.slack) {
		if e.From >= tail {
			break
		}
		list = append(list, e)
		n += e.To - e.From
	}
	return list, n
}

// add adds a sorted list of one pack.
func (r *Ranges) add(id rangeKey, list []pack.Extent) {
	run := encodeRun(list)
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.packs[id]
	if l == nil {
		l = &runList{}
		r.packs[id] = l
	}
	l.runs = append(l.runs, run)
	l.bytes += len(run)
	r.bytes += len(run)
	if len(l.runs) > maxRuns {
		r.join(l)
	}
	for full := r.bytes > r.limit; full; full = r.bytes > r.limit && r.slack < maxSlack {
		r.slack = min(max(4<<10, 2*r.slack), maxSlack)
		for _, l := range r.packs {
			r.join(l)
		}
	}
}

// join makes one run of those of a pack. mu is held.
func (r *Ranges) join(l *runList) {
	var c runCoder
	for e := range mergeRuns(l.runs, r.slack) {
		c.add(e)
	}
	r.bytes += len(c.b) - l.bytes
	l.runs, l.bytes = append(l.runs[:0:0], slices.Clip(c.b)), len(c.b)
}

// Local returns a buffer for one goroutine.
func (r *Ranges) Local() *Local {
	return &Local{to: r, packs: map[rangeKey]*[]pack.Extent{}}
}

// Packs returns the packs that have ranges of owner 0.
func (r *Ranges) Packs() (ids []pack.ID) {
	for key := range r.packs {
		if key.owner == 0 {
			ids = append(ids, pack.ID(key.pack))
		}
	}
	return ids
}

// Bytes returns the memory that the ranges take.
func (r *Ranges) Bytes() int { return r.bytes }
