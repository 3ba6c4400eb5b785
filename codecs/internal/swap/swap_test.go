package swap

import (
	"bytes"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Only the big-endian scalars are swapped; bytes behind the last whole element
// stay.
func TestWords(t *testing.T) {
	record := must.Get(dtype.NewStruct([]dtype.Field{
		{Name: "a", Type: dtype.NewInt(16).WithOrder(dtype.Big)}, {Name: "b", Type: dtype.NewUint(8)},
		{Name: "c", Type: dtype.NewComplex(64).WithOrder(dtype.Big)}, {Name: "d", Type: dtype.NewInt(16)},
	}))(t)
	for _, c := range []struct {
		typ  dtype.Type
		flat int
		want []byte
	}{
		{dtype.NewInt(32).WithOrder(dtype.Big), 4, []byte{3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 12, 13}},
		{dtype.NewComplex(64).WithOrder(dtype.Big), 4, []byte{3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 12, 13}},
		{record, 0, []byte{1, 0, 2, 6, 5, 4, 3, 10, 9, 8, 7, 11, 12, 13}},
		{dtype.NewInt(32).WithOrder(dtype.Little), 0, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}},
		{dtype.NewUint(8), 0, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}},
	} {
		w := Stored(c.typ)
		b := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}
		w.Swap(b)
		if !bytes.Equal(b, c.want) || w.Flat() != c.flat || w.None() != (b[0] == 0) {
			t.Errorf("%v: %d, flat %d, none %v", c.typ, b, w.Flat(), w.None())
		}
	}
}
