package txn

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// ranges collects where live payloads are, joined where they follow each other:
// an array that was written in order is a few ranges, whatever its size. In the
// worst case every chunk is one.
//
//	workers ──▶ localRanges ──sort, code──▶ runs of each pack ──merge──▶ list
//	            16 bytes each               some 5 bytes each            of one pack
//
// Runs are sorted lists, coded as uvarints: the distance from the range before,
// and the length. Beyond a number of bytes small gaps are taken for live, so
// that memory is bounded and the space of such gaps waits.
type ranges struct {
	mu    sync.Mutex
	packs map[rangeKey]*runList
	bytes int // of all runs
	limit int
	slack uint64 // gaps up to this count as live
}

// rangeKey is whose ranges of a pack they are: those of a holder for an explainer,
// elsewhere all are of owner 0.
type rangeKey struct {
	pack  tree.PackID
	owner int32
}

// runList are the runs of one pack.
type runList struct {
	runs  [][]byte
	bytes int
}

const (
	maxLocalRanges = 1 << 18 // 4 MiB, of each worker
	maxRuns        = 32      // of a pack, then they become one
	maxRunBytes    = 96 << 20
	maxSlack       = 1 << 62 // joins all of a pack
)

func newRanges(limit int) *ranges {
	return &ranges{packs: map[rangeKey]*runList{}, limit: limit}
}

// of returns the ranges of a pack that begin before an offset, in order, and
// how many bytes they are.
func (r *ranges) of(id pack.ID, tail uint64) (list []pack.Extent, n uint64) {
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

// add takes a sorted list of one pack.
func (r *ranges) add(id rangeKey, list []pack.Extent) {
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
func (r *ranges) join(l *runList) {
	var c runCoder
	for e := range mergeRuns(l.runs, r.slack) {
		c.add(e)
	}
	r.bytes += len(c.b) - l.bytes
	l.runs, l.bytes = append(l.runs[:0:0], slices.Clip(c.b)), len(c.b)
}

// runCoder codes a run.
type runCoder struct {
	b  []byte
	at uint64
}

func (c *runCoder) add(e pack.Extent) {
	c.b = binary.AppendUvarint(c.b, e.From-c.at)
	c.b = binary.AppendUvarint(c.b, e.To-e.From)
	c.at = e.To
}

func encodeRun(list []pack.Extent) []byte {
	c := runCoder{b: make([]byte, 0, 5*len(list))}
	for _, e := range list {
		c.add(e)
	}
	return slices.Clip(c.b)
}

// runReader reads a run. head is the next range.
type runReader struct {
	b    []byte
	head pack.Extent
}

func (r *runReader) next() bool {
	if len(r.b) == 0 {
		return false
	}
	gap, n := binary.Uvarint(r.b)
	size, m := binary.Uvarint(r.b[n:])
	r.b = r.b[n+m:]
	r.head.From = r.head.To + gap
	r.head.To = r.head.From + size
	return true
}

// mergeRuns yields the ranges of all runs in order, joined where they overlap,
// follow each other, or are no more than slack apart.
func mergeRuns(runs [][]byte, slack uint64) func(yield func(pack.Extent) bool) {
	return func(yield func(pack.Extent) bool) {
		readers := make([]runReader, 0, len(runs))
		for _, b := range runs {
			r := runReader{b: b}
			if r.next() {
				readers = append(readers, r)
			}
		}
		var last pack.Extent // the zero Extent is none: no payload begins at 0
		for len(readers) > 0 {
			first, bound := lowest(readers)
			r := &readers[first]
			more := true
			for more && r.head.From <= bound {
				switch {
				case last.To == 0:
					last = r.head
				case joins(&last, &r.head, slack):
					last.To = max(last.To, r.head.To)
				case !yield(last):
					return
				default:
					last = r.head
				}
				more = r.next()
			}
			if !more {
				readers = slices.Delete(readers, first, first+1)
			}
		}
		if last.To > 0 {
			yield(last)
		}
	}
}

// lowest returns the reader with the lowest head, and the lowest of the others.
func lowest(readers []runReader) (first int, bound uint64) {
	bound = 1<<64 - 1
	for i := 1; i < len(readers); i++ {
		at := readers[i].head.From
		if at < readers[first].head.From {
			at, first = readers[first].head.From, i
		}
		bound = min(bound, at)
	}
	return first, bound
}

// joins reports whether b, which does not begin before a, belongs to it.
func joins(a, b *pack.Extent, slack uint64) bool {
	return b.From <= a.To || b.From-a.To <= slack || tree.Follows(a.To, b.From)
}

// localRanges are those that one worker has found lately.
type localRanges struct {
	to    *ranges
	packs map[rangeKey]*[]pack.Extent
	n     int
	owner int32 // of what is added

	id   rangeKey // of list
	list *[]pack.Extent
	tmp  []pack.Extent
}

func (r *ranges) local() *localRanges {
	return &localRanges{to: r, packs: map[rangeKey]*[]pack.Extent{}}
}

// add takes a payload.
func (l *localRanges) add(p *tree.Payload) {
	if p.Length == 0 {
		return
	}
	if l.list == nil || l.id.pack != p.Pack || l.id.owner != l.owner {
		l.id = rangeKey{p.Pack, l.owner}
		if l.list = l.packs[l.id]; l.list == nil {
			l.list = new([]pack.Extent)
			l.packs[l.id] = l.list
		}
	}
	e := pack.Extent{From: p.Offset, To: p.Offset + p.Length}
	list := *l.list
	if n := len(list); n > 0 && tree.Follows(list[n-1].To, e.From) {
		list[n-1].To = e.To
		return
	}
	*l.list = append(list, e)
	if l.n++; l.n == maxLocalRanges {
		l.flush()
	}
}

// flush hands over what was found.
func (l *localRanges) flush() {
	for id, list := range l.packs {
		if len(*list) > 0 {
			l.to.add(id, l.sort(*list))
			*list = (*list)[:0]
		}
	}
	if len(l.packs) > 64 { // do not keep room for each of many
		clear(l.packs)
		l.list = nil
	}
	l.n = 0
}

// sort orders ranges and joins them.
func (l *localRanges) sort(list []pack.Extent) []pack.Extent {
	l.tmp = slices.Grow(l.tmp[:0], len(list))[:len(list)]
	list = sortExtents(list, l.tmp)
	out := list[:1]
	for i := range list[1:] {
		e := &list[1+i]
		if last := &out[len(out)-1]; joins(last, e, 0) {
			last.To = max(last.To, e.To)
			continue
		}
		out = append(out, *e)
	}
	return out
}

// sortExtents orders by From, digit by digit from the lowest, and returns list
// or tmp, which has the same length.
func sortExtents(list, tmp []pack.Extent) []pack.Extent {
	const bits = 11
	var high uint64
	sorted := true
	for i := range list {
		high |= list[i].From
		sorted = sorted && (i == 0 || list[i-1].From <= list[i].From)
	}
	if sorted {
		return list
	}
	var count [1 << bits]int32
	for shift := 0; high>>shift != 0; shift += bits {
		clear(count[:])
		for i := range list {
			count[list[i].From>>shift&(1<<bits-1)]++
		}
		at := int32(0)
		for d, n := range count {
			count[d] = at
			at += n
		}
		for _, e := range list {
			d := e.From >> shift & (1<<bits - 1)
			tmp[count[d]] = e
			count[d]++
		}
		list, tmp = tmp, list
	}
	return list
}
