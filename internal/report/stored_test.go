package report

import (
	"errors"
	"fmt"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// The chunks of an array are counted up to a number, and an index that cannot be read leaves them unknown.
func TestStoredIn(t *testing.T) {
	a := must.Get(zarr.Create(t.Context(), kv.NewMem(), "g/a", zarr.Spec{Shape: []int64{9}, Chunks: []int64{1}, DataType: "int16"}, nil))(t)
	for _, c := range []struct {
		stored int64
		err    error
		want   string
	}{
		{0, nil, "0 false 0"}, {3, nil, "3 false 30"}, {4, nil, "3 true more"}, {2, errors.New("damaged"), "unknown"}, {9, errors.New("damaged"), "3 true more"},
	} {
		looked := int64(0)
		got := storedIn(a, func(yield func(txn.KeyValue, error) bool) {
			if !yield(txn.KeyValue{Key: "g/a/zarr.json", Length: 10}, nil) {
				return
			}
			for i := range c.stored {
				looked++
				if !yield(txn.KeyValue{Key: fmt.Sprint("g/a/c/", i), Length: 10}, nil) {
					return
				}
			}
			if c.err != nil {
				yield(txn.KeyValue{}, c.err)
			}
		}, 3)
		text := "unknown"
		switch {
		case got != nil && got.Bytes == nil:
			text = fmt.Sprint(got.Chunks, " ", got.More, " more")
		case got != nil:
			text = fmt.Sprint(got.Chunks, " ", got.More, " ", *got.Bytes)
		}
		if text != c.want || looked > 4 {
			t.Errorf("%d chunks, %v: %s after %d, want %s", c.stored, c.err, text, looked, c.want)
		}
	}
}
