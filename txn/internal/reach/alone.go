package reach

import (
	"cmp"
	"slices"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// rangeEnd is where a range of an owner begins or ends.
type rangeEnd struct {
	at    uint64
	owner int32
	begin bool
}

// Alone returns how many bytes each owner has in ranges that no other owner has.
// Nothing may be added at the same time. It holds the ends of the ranges of one pack.
func (r *Ranges) Alone() map[int32]uint64 {
	packs := map[tree.PackID][]rangeKey{}
	for key := range r.packs {
		packs[key.pack] = append(packs[key.pack], key)
	}
	alone := map[int32]uint64{}
	var ends []rangeEnd
	for _, keys := range packs {
		ends = ends[:0]
		for _, key := range keys {
			for e := range mergeRuns(r.packs[key].runs, r.slack) {
				ends = append(ends, rangeEnd{e.From, key.owner, true}, rangeEnd{e.To, key.owner, false})
			}
		}
		slices.SortFunc(ends, func(a, b rangeEnd) int { return cmp.Compare(a.at, b.at) })
		sumAlone(alone, ends)
	}
	return alone
}

// sumAlone adds the bytes between sorted ends that are of one owner. The ranges of an
// owner are disjoint and do not touch.
func sumAlone(alone map[int32]uint64, ends []rangeEnd) {
	active := map[int32]struct{}{} // owners of the bytes that follow
	last := uint64(0)
	for _, e := range ends {
		if len(active) == 1 {
			for owner := range active {
				alone[owner] += e.at - last
			}
		}
		if last = e.at; e.begin {
			active[e.owner] = struct{}{}
		} else {
			delete(active, e.owner)
		}
	}
}
