package convert

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// The time of a plan is not quadratic in the number of attributes: for this number that would
// take minutes. Half of them hold a NaN, which becomes text in version 3.
func TestManyAttributes(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	const n = 400_000
	attrs := []byte(`{"_":0`)
	for i := range n {
		attrs = append(strconv.AppendInt(append(attrs, `,"k`...), int64(i), 10), []string{`":1`, `":NaN`}[i%2]...)
	}
	attrs = append(attrs, '}')
	open := &zarr.OpenOptions{Registry: builtin.Registry()}
	for _, c := range []struct {
		to    zarr.Version
		docs  map[string][]byte
		notes int64
	}{
		{zarr.V2, map[string][]byte{"zarr.json": fmt.Appendf(nil, `{"zarr_format":3,"node_type":"array","shape":[4],"data_type":"int8",
			"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4]}},"chunk_key_encoding":{"name":"default"},
			"fill_value":0,"codecs":[{"name":"bytes"}],"attributes":%s}`, attrs)}, 0}, // a NaN of version 2 is a NaN
		{zarr.V3, map[string][]byte{".zattrs": attrs, ".zarray": []byte(`{"zarr_format":2,"shape":[4],"chunks":[4],"dtype":"|i1",
			"compressor":null,"filters":null,"fill_value":0,"order":"C"}`)}, n / 2},
	} {
		store := kv.NewMem()
		for key, doc := range c.docs {
			must.Do(t, store.Set(t.Context(), key, doc))
		}
		plan := must.Get(New(t.Context(), store, "", open, c.to, Options{Recode: true}))(t)
		if plan.AllNotes != c.notes {
			t.Errorf("to version %v: %d notes, not %d", c.to, plan.AllNotes, c.notes)
		}
	}
}
