package zarr

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// whole selects all of a model.
func (m *model) whole() picked {
	p := picked{sel: Sel(), shape: m.shape}
	for i := range m.elems {
		p.flat = append(p.flat, int64(i))
	}
	return p
}

// writeOnly hides everything of a store but reading and writing.
type writeOnly struct {
	kv.Reader
	kv.Writer
}

// TestResizeModel resizes and writes random arrays. Elements that are cut off never
// come back, so that a plain array is the model; the set of keys, too, is that of an
// array that always had its shape.
func TestResizeModel(t *testing.T) {
	n := 400
	if testing.Short() {
		n = 100
	}
	for _, seed := range seeds(t, n) {
		runResize(t, seed)
	}
}

func runResize(t *testing.T, seed uint64) {
	t.Helper()
	ctx := context.Background()
	if seed%2 == 0 {
		defer smallTuning()()
	}
	c := randomConfig(seed)
	c.empty = false
	r := rand.New(rand.NewPCG(seed, 3))
	store := kv.NewMem()
	var view kv.Reader = store
	if seed%3 == 0 {
		view = writeOnly{store, store}
	}
	a := c.open(t, view)
	must.Have(0, saveMeta(ctx, view, a.loc, nil, a.Meta()))
	m := newModel(c.shape, c.fill)
	for range 8 {
		m.write(t, r, a, pick(r, m.shape), c.fill, c.String())
		shape := slices.Clone(m.shape)
		for d := range shape {
			if r.IntN(2) == 0 {
				shape[d] = r.Int64N(c.shape[d] + 3)
			}
		}
		name := fmt.Sprintf("%v: resize %v to %v", c, m.shape, shape)
		resized := a.Meta().Clone()
		resized.Shape = shape
		valid := resized.Validate() == nil
		switch err := a.Resize(ctx, shape, ResizeOptions{}); {
		case errors.Is(err, ErrMetadata) && !valid:
			continue // beyond the grid
		case err != nil:
			t.Fatalf("%s: %v", name, err)
		}
		m.resize(shape, c.fill)
		if !slices.Equal(a.Shape(), shape) {
			t.Fatalf("%s: shape %v", name, a.Shape())
		}
		m.check(t, a, m.whole(), name)
		got := slices.DeleteFunc(must.Have(kv.Keys(ctx, store, "")), func(key string) bool {
			return key == a.loc.docs+meta.DocV3 || key == a.loc.docs+meta.DocArrayV2
		})
		if want := m.keys(a, c.fill); !slices.Equal(got, want) {
			t.Fatalf("%s: keys %v, want %v", name, got, want)
		}
	}
}

func TestResizeKeeps(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		o     ResizeOptions
		grown []int32
		keys  int64 // after shrinking
	}{
		// Chunks of 3: elements 3 and 4 of the second chunk are at the edge.
		{ResizeOptions{}, []int32{1, 2, 3, 4, 0, 0, 0, 0, 0, 0}, 2},
		{ResizeOptions{KeepChunks: true}, []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 4},
	} {
		store := kv.NewMem()
		a := must.Have(Create(ctx, store, "a", Spec{Shape: []int64{10}, Chunks: []int64{3}, DataType: "int32"}, nil))
		must.Have(0, Write(ctx, a, Sel(), []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}))
		must.Have(0, a.Resize(ctx, []int64{4}, c.o))
		stored := int64(len(must.Have(kv.Keys(ctx, store, "a/c/"))))
		if n := must.Have(a.NChunksInitialised(ctx)); stored != c.keys || n != 2 {
			t.Errorf("%+v: %d chunks stored, %d counted", c.o, stored, n)
		}
		if got := mustRead(Read[int32](ctx, must.Have(OpenArray(ctx, store, "a", nil)), Sel())); !slices.Equal(got, []int32{1, 2, 3, 4}) {
			t.Errorf("%+v: %v", c.o, got)
		}
		must.Have(0, a.Resize(ctx, []int64{10}, ResizeOptions{}))
		if got := mustRead(Read[int32](ctx, a, Sel())); !slices.Equal(got, c.grown) {
			t.Errorf("%+v: grown again %v, want %v", c.o, got, c.grown)
		}
	}
}

// What is cut off is reset through a handle that does not know the stored shape, and in
// shards; only the chunks at the edge are read and written.
func TestResizeResetsTheEdge(t *testing.T) {
	ctx := t.Context()
	for _, shards := range [][]int64{nil, {4, 4}} {
		store := kv.NewMem()
		spec := Spec{Shape: []int64{4, 40}, Chunks: []int64{2, 2}, Shards: shards, DataType: "int8"}
		must.Have(Create(ctx, store, "a", spec, nil))
		old := must.Have(OpenArray(ctx, store, "a", nil))
		a := must.Have(OpenArray(ctx, store, "a", nil))
		must.Have(0, a.Resize(ctx, []int64{40, 40}, ResizeOptions{}))
		must.Have(0, a.FillBytes(ctx, Sel(), []byte{7}))
		counted, ops := kvtest.Count(store)
		b := must.Have(OpenArray(ctx, counted, "a", nil))
		must.Have(0, b.Resize(ctx, []int64{39, 40}, ResizeOptions{}))
		// 20 of 400 chunks, or 10 of 100 shards.
		n := int64(0)
		for _, k := range ops.Reset() {
			n += k
		}
		if n > 70 {
			t.Errorf("shards %v: %d operations", shards, n)
		}
		must.Have(0, old.Resize(ctx, []int64{4, 1}, ResizeOptions{})) // of the 40 columns that it knows
		must.Have(0, old.Resize(ctx, []int64{40, 40}, ResizeOptions{}))
		got := mustRead(Read[int8](ctx, must.Have(OpenArray(ctx, store, "a", nil)), Sel()))
		for i, v := range got {
			want := int8(0)
			if i%40 == 0 && i/40 < 39 {
				want = 7
			}
			if v != want {
				t.Fatalf("shards %v: element %d, %d is %d", shards, i/40, i%40, v)
			}
		}
	}
}

func TestResizeErrors(t *testing.T) {
	ctx := context.Background()
	store := kv.NewMem()
	a := must.Have(Create(ctx, store, "a", Spec{Shape: []int64{10}, DataType: "int32"}, nil))
	for _, shape := range [][]int64{{}, {1, 2}, {-1}} {
		err := a.Resize(ctx, shape, ResizeOptions{})
		var e *Error
		if !errors.As(err, &e) || e.Op != "resize" || e.Path != "a" {
			t.Errorf("%v: %v", shape, err)
		}
	}
	ro := must.Have(OpenArray(ctx, struct{ kv.ReadLister }{store}, "a", nil))
	if err := ro.Resize(ctx, []int64{1}, ResizeOptions{}); !errors.Is(err, kv.ErrReadOnly) {
		t.Error(err)
	}
	// A sparse array of 2^60 chunks is resized by what is stored.
	big := must.Have(Create(ctx, store, "big", Spec{Shape: []int64{1 << 60}, Chunks: []int64{1}, DataType: "int8"}, nil))
	must.Have(0, Write(ctx, big, Sel(At(-1)), []int8{1}))
	must.Have(0, Write(ctx, big, Sel(At(5)), []int8{2}))
	must.Have(0, big.Resize(ctx, []int64{10}, ResizeOptions{}))
	if keys := must.Have(kv.Keys(ctx, store, "big/c/")); !slices.Equal(keys, []string{"big/c/5"}) {
		t.Errorf("chunks %v", keys)
	}
}
