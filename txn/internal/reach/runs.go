package reach

import (
	"encoding/binary"
	"slices"

	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
)

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
		var last pack.Extent // zero: no extent yet, as no payload begins at 0
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
