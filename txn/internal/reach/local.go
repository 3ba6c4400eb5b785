package reach

import (
	"slices"

	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
)

const maxLocalRanges = 1 << 18 // 4 MiB

// Local is a buffer of ranges for one goroutine.
type Local struct {
	Owner int32 // of what is added: 0, or a holder whose bytes are counted
	to    *Ranges
	packs map[rangeKey]*[]pack.Extent
	n     int

	id   rangeKey // of list
	list *[]pack.Extent
	tmp  []pack.Extent
}

// Add adds a payload.
func (l *Local) Add(p *tree.Payload) {
	if p.Length == 0 {
		return
	}
	if l.list == nil || l.id.pack != p.Pack || l.id.owner != l.Owner {
		l.id = rangeKey{p.Pack, l.Owner}
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
		l.Flush()
	}
}

// Flush adds the ranges of the buffer to the set.
func (l *Local) Flush() {
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
func (l *Local) sort(list []pack.Extent) []pack.Extent {
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
