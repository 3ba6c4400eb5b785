package txn

import (
	"cmp"
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// ranges collects where live payloads are, joined where they follow each other:
// an array that was written in order is a few ranges, whatever its size. In the
// worst case every chunk is one, of 16 bytes; beyond maxRanges small gaps are
// taken for live, so that memory is bounded and space of such gaps waits.
type ranges struct {
	mu    sync.Mutex
	packs map[tree.PackID]*rangeList
	n     int
	slack uint64 // gaps up to this count as live
}

const (
	maxLocalRanges = 1 << 18 // 4 MiB, of each worker
	maxRanges      = 6 << 20 // 96 MiB; twice that while they are sorted
)

// rangeList is the ranges of one pack: sorted up to some point.
type rangeList struct {
	list   []pack.Extent
	sorted int
}

func newRanges() *ranges { return &ranges{packs: map[tree.PackID]*rangeList{}} }

// add takes payloads. It is for one goroutine; merge is not.
func (r *ranges) add(p tree.Payload) {
	l := r.packs[p.Pack]
	if l == nil {
		l = &rangeList{}
		r.packs[p.Pack] = l
	}
	if p.Length == 0 {
		return
	}
	e := pack.Extent{From: p.Offset, To: p.Offset + p.Length}
	if n := len(l.list); n > 0 && tree.Follows(l.list[n-1].To, e.From) {
		l.list[n-1].To = e.To
		return
	}
	l.list = append(l.list, e)
	r.n++
}

// merge takes what another has. That must not be used any more.
func (r *ranges) merge(o *ranges) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, from := range o.packs {
		l := r.packs[id]
		if l == nil {
			r.packs[id] = from
			r.n += len(from.list)
			continue
		}
		l.list = append(l.list, from.list...)
		r.n += len(from.list)
		if len(l.list) > 2*l.sorted {
			r.n -= len(l.list)
			l.sort(r.slack)
			r.n += len(l.list)
		}
	}
	for r.n > maxRanges {
		r.slack = max(4<<10, 2*r.slack)
		r.n = 0
		for _, l := range r.packs {
			l.sort(r.slack)
			r.n += len(l.list)
		}
	}
}

// sort orders the ranges and joins those that overlap or follow each other.
func (l *rangeList) sort(slack uint64) {
	slices.SortFunc(l.list, func(a, b pack.Extent) int { return cmp.Compare(a.From, b.From) })
	out := l.list[:0]
	for _, e := range l.list {
		if n := len(out); n > 0 {
			last := &out[n-1]
			if e.From <= last.To || e.From-last.To <= slack || tree.Follows(last.To, e.From) {
				last.To = max(last.To, e.To)
				continue
			}
		}
		out = append(out, e)
	}
	l.list, l.sorted = out, len(out)
}

// of returns the ranges of a pack that begin before an offset, in order, and
// how many bytes they are.
func (r *ranges) of(id pack.ID, tail uint64) (list []pack.Extent, n uint64) {
	l := r.packs[tree.PackID(id)]
	if l == nil {
		return nil, 0
	}
	l.sort(r.slack)
	for _, e := range l.list {
		if e.From >= tail {
			break
		}
		list = append(list, e)
		n += e.To - e.From
	}
	return list, n
}
