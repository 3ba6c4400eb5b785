package reach

import (
	"cmp"
	"slices"

	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// Payloads lists payloads by pack. Neighbours are not joined: each payload is compared by itself.
type Payloads map[tree.PackID][]pack.Extent

// Add adds payloads.
func (l Payloads) Add(list []tree.Payload) {
	for _, p := range list {
		l[p.Pack] = append(l[p.Pack], pack.Extent{From: p.Offset, To: p.Offset + p.Length})
	}
}

// CompareExtents orders by begin, then by end.
func CompareExtents(a, b pack.Extent) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
}

// Subtract removes the payloads that are in another list too, which it sorts.
func (l Payloads) Subtract(have Payloads) {
	for id, list := range l {
		other := have[id]
		slices.SortFunc(other, CompareExtents)
		l[id] = slices.DeleteFunc(list, func(e pack.Extent) bool {
			_, ok := slices.BinarySearchFunc(other, e, CompareExtents)
			return ok
		})
	}
}
