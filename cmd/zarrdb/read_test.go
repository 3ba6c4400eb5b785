package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
)

// A whole array is written slab by slab: in whole rows, and in parts of them if
// one does not fit.
func TestRawSlabs(t *testing.T) {
	db, err := engine.Create(filepath.Join(t.TempDir(), "w.zdb"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(t.Context(), "", "arrays", func(s *engine.Session) error {
		for name, shape := range map[string][]int64{"a": {5, 4, 7}, "line": {23}, "none": {3, 0, 2}, "one": {}} {
			a, err := s.CreateArray(t.Context(), name, zarr.Spec{Shape: shape, Chunks: slices.Repeat([]int64{2}, len(shape)), DataType: "uint16"})
			if err != nil {
				return err
			}
			data := make([]uint16, product(shape))
			for i := range data {
				data[i] = uint16(i + 1)
			}
			if err := zarr.Write(t.Context(), a, zarr.Sel(), data); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := db.At(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for _, name := range []string{"a", "line", "none", "one"} {
		a, err := snap.Array(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		var want []byte
		for i := range product(a.Shape()) {
			want = append(want, byte(i+1), byte((i+1)>>8))
		}
		for _, slab := range []int64{0, 1, 2, 3, 14, 15, 28, 56, 57, 113, 280, 1000} {
			r := reading{a: a, whole: true, shape: a.Shape(), slab: slab}
			var got largestWrite
			if err := r.raw(t.Context(), &got); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s in slabs of %d bytes: % x, not % x", name, slab, got.Bytes(), want)
			}
			if slab > 0 && got.most > max(longRows*int(slab), 2) {
				t.Errorf("%s in slabs of %d bytes: %d at once", name, slab, got.most)
			}
		}
	}
}

// largestWrite remembers how much was written at once.
type largestWrite struct {
	bytes.Buffer
	most int
}

func (w *largestWrite) Write(b []byte) (int, error) {
	w.most = max(w.most, len(b))
	return w.Buffer.Write(b)
}
