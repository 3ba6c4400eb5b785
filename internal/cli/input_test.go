package cli

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
)

// What is written layer by layer is what is written at once, and layers end where
// chunks do.
func TestEachLayer(t *testing.T) {
	db := must.Get(engine.Create(context.Background(), filepath.Join(t.TempDir(), "w.zdb"), nil))(t)
	defer db.Close()
	must.Get(db.Update(t.Context(), "", "array", func(s *engine.Session) error {
		a, err := s.CreateArray(t.Context(), "a", zarr.Spec{Shape: []int64{300, 4}, Chunks: []int64{4, 3}, DataType: "uint16"})
		if err != nil {
			return err
		}
		for text, layers := range map[string]int{
			"": 3, "0:1": 1, "1:299": 3, "3:130,2": 1, "-297:": 3, "...,1": 1, "7": 1, "newaxis,0:200": 2,
			"::2": 1, "::-1": 1, "[5,3]": 1, "4:4": 1,
		} {
			sel, err := zarr.ParseSelection(text, a.DimensionNames())
			if err != nil {
				return err
			}
			shape, err := a.Resolve(sel)
			if err != nil {
				return err
			}
			data := make([]uint16, product(shape))
			for i := range data {
				data[i] = uint16(i + 1)
			}
			parts, told, rest := 0, int64(0), data
			err = eachLayer(t.Context(), a, sel, shape, 128*4*2, func(p engine.Progress) { told = p.Keys }, func(layer zarr.Selection, n int64) error {
				parts++
				part := rest[:n]
				rest = rest[n:]
				return zarr.Write(t.Context(), a, layer, part)
			})
			if err != nil {
				return err
			}
			got, _, err := zarr.Read[uint16](t.Context(), a, sel)
			if err != nil || !slices.Equal(got, data) || parts != layers || told != int64(len(data)) {
				t.Errorf("%q: %d layers, %d of %d elements: %v, %v", text, parts, told, len(data), got, err)
			}
		}
		return nil
	}))(t)
}
