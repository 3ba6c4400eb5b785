package cli

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
)

// A reading is written block by block: in whole rows, and in parts of them if one
// does not fit.
func TestBlocks(t *testing.T) {
	db := must.Get(engine.Create(context.Background(), filepath.Join(t.TempDir(), "w.zdb"), nil))(t)
	defer db.Close()
	must.Get(db.Update(t.Context(), "", "arrays", func(s *engine.Session) error {
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
	}))(t)
	snap := must.Get(db.At(t.Context(), ""))(t)
	defer snap.Close()
	for _, name := range []string{"a", "line", "none", "one"} {
		a := must.Get(snap.Array(t.Context(), name))(t)
		var want []byte
		for i := range product(a.Shape()) {
			want = append(want, byte(i+1), byte((i+1)>>8))
		}
		for _, slab := range []int64{0, 1, 2, 3, 14, 15, 28, 56, 57, 113, 280, 1000} {
			r := reading{a: a, shape: a.Shape(), slab: slab}
			var got largestWrite
			must.Do(t, r.raw(t.Context(), &got))
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s in slabs of %d bytes: % x, not % x", name, slab, got.Bytes(), want)
			}
			if slab > 0 && got.most > max(4*int(slab), 2) {
				t.Errorf("%s in slabs of %d bytes: %d at once", name, slab, got.most)
			}
		}
	}
}

// Every selection gives the same elements block by block as it does at once.
func TestBlocksOfSelections(t *testing.T) {
	db := must.Get(engine.Create(context.Background(), filepath.Join(t.TempDir(), "w.zdb"), nil))(t)
	defer db.Close()
	must.Get(db.Update(t.Context(), "", "array", func(s *engine.Session) error {
		a, err := s.CreateArray(t.Context(), "a", zarr.Spec{Shape: []int64{9, 5, 7}, Chunks: []int64{4, 2, 3}, DataType: "uint16"})
		if err != nil {
			return err
		}
		data := make([]uint16, 9*5*7)
		for i := range data {
			data[i] = uint16(i)
		}
		return zarr.Write(t.Context(), a, zarr.Sel(), data)
	}))(t)
	snap := must.Get(db.At(t.Context(), ""))(t)
	defer snap.Close()
	a := must.Get(snap.Array(t.Context(), "a"))(t)
	for _, text := range []string{
		"", "3", "-2", "...", "1:8", "1:8:3,::-1", "::-1", "::-2,1,::-3", "-3:-1", "8:0:-3,-1,2:", "...,3", "2,...,1:4", "newaxis,1:3", ":,newaxis,2,::2",
		"1,2,3", "...,newaxis", "4:2", "100:", "-100:2", ":-100:-1,:1",
	} {
		sel, err := zarr.ParseSelection(text, nil)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		shape, err := a.Resolve(sel)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		want := make([]byte, 2*product(shape))
		if err := a.ReadBytes(t.Context(), sel, want); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for _, slab := range []int64{1, 3, 14, 60, 1000} {
			r := reading{a: a, sel: sel, shape: shape, slab: slab}
			var got largestWrite
			if err := r.raw(t.Context(), &got); err != nil || !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%q in blocks of %d bytes: %x, %v, not %x", text, slab, got.Bytes(), err, want)
			}
			if got.most > 4*max(int(slab), 2) {
				t.Errorf("%q in blocks of %d bytes: %d at once", text, slab, got.most)
			}
		}
	}
}

// An empty string alone in a line of CSV is not lost, and Ctrl-C ends the reading.
func TestReadText(t *testing.T) {
	db := must.Get(engine.Create(context.Background(), filepath.Join(t.TempDir(), "w.zdb"), nil))(t)
	defer db.Close()
	must.Get(db.Update(t.Context(), "", "names", func(s *engine.Session) error {
		a, err := s.CreateArray(t.Context(), "names", zarr.Spec{Shape: []int64{3}, Chunks: []int64{2}, DataType: "string"})
		if err != nil {
			return err
		}
		return zarr.Write(t.Context(), a, zarr.Sel(), []string{"a", "", "b,c"})
	}))(t)
	snap := must.Get(db.At(t.Context(), ""))(t)
	defer snap.Close()
	a := must.Get(snap.Array(t.Context(), "names"))(t)
	for _, slab := range []int64{0, 1} {
		r := reading{a: a, shape: a.Shape(), slab: slab}
		var got bytes.Buffer
		if err := r.csv(t.Context(), &got); err != nil || got.String() != "a\n\"\"\n\"b,c\"\n" {
			t.Errorf("%q, %v", got.String(), err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := r.lines(ctx, &got); !errors.Is(err, context.Canceled) {
			t.Errorf("lines after an interrupt: %v", err)
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
