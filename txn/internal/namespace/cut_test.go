package namespace

import (
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// A row that is longer than those passed one by one costs a search, and not a
// look at each of its chunks.
func TestCutMapCost(t *testing.T) {
	const rows, columns = 20, 5000
	pages := &bigSpace{pages: &countingPages{Pages: newMemPages()}}
	b := pages.space().Tree.NewBuilder(t.Context())
	for row := range uint64(rows) {
		for column := range uint64(columns) {
			must.Do(t, b.Add(&tree.Entry{Key: appendCoord(appendCoord(nil, row), column), Value: native(int(row*columns + column))}))
		}
	}
	chunks := must.Get(b.Finish())(t)
	for axis, from := range []uint64{rows, columns} {
		reads, writes, _, err := pages.cost(func(s toySpace) error {
			got, err := s.cutMap(t.Context(), chunks, axis, from)
			if got != chunks {
				t.Errorf("axis %d: something was deleted", axis)
			}
			return err
		})
		t.Logf("axis %d: %d pages read", axis, reads)
		if most := []int64{6, 5 * rows}[axis]; err != nil || reads > most || writes > 0 {
			t.Errorf("axis %d: %d pages read, at most %d; %d written, %v", axis, reads, most, writes, err)
		}
	}
}
