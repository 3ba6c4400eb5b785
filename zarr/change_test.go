package zarr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// handles creates an array and opens it twice, as a session does.
func handles(t *testing.T, v Version, spec Spec) (store *kv.Mem, o *OpenOptions, a, b *Array) {
	t.Helper()
	ctx := t.Context()
	store, o = kv.NewMem(), &OpenOptions{Version: v, Locks: NewChunkLocks()}
	must.Have(Create(ctx, store, "a", spec, o))
	return store, o, must.Have(OpenArray(ctx, store, "a", o)), must.Have(OpenArray(ctx, store, "a", o))
}

// stored opens the array anew.
func stored(t *testing.T, store *kv.Mem) *Array {
	t.Helper()
	return must.Have(OpenArray(t.Context(), store, "a", nil))
}

// A change through an older handle keeps what another handle changed: other
// attributes, the shape, and the members that it does not know.
func TestChangesOfTwoHandles(t *testing.T) {
	for _, v := range []Version{V1, V2, V3} {
		t.Run("v"+v.String(), func(t *testing.T) {
			ctx := t.Context()
			store, _, a, b := handles(t, v, Spec{Shape: []int64{4, 4}, Chunks: []int64{3, 3}, DataType: "int8", Attributes: attributesOf(`{"x":1,"y":1,"z":1}`)})

			must.Have(0, a.Resize(ctx, []int64{9, 4}, ResizeOptions{}))
			must.Have(0, b.SetAttributes(ctx, attributesOf(`{"x":2,"y":1,"new":[1]}`))) // without z
			must.Have(0, a.SetAttributes(ctx, attributesOf(`{"x":1,"y":3,"z":1}`)))
			want := attributesOf(`{"x":2,"y":3,"new":[1]}`)
			if got := stored(t, store).Meta(); !got.Attributes.Equal(want) || !slices.Equal(got.Shape, []int64{9, 4}) {
				t.Errorf("%s, %v", got.Attributes.Text(), got.Shape)
			}
			if !a.Meta().Attributes.Equal(want) {
				t.Errorf("the handle does not show what it stored: %s", a.Meta().Attributes.Text())
			}

			// What both change is what the later call says. b knows {"x":2,"y":1}.
			must.Have(0, b.SetAttributes(ctx, attributesOf(`{"y":4,"new":[1]}`)))
			if got := stored(t, store).Meta().Attributes; !got.Equal(attributesOf(`{"y":4,"new":[1]}`)) {
				t.Errorf("%s", got.Text())
			}

			// A shape axis by axis.
			must.Have(0, a.Resize(ctx, []int64{9, 8}, ResizeOptions{}))
			must.Have(0, b.Resize(ctx, []int64{2, 4}, ResizeOptions{}))
			if got := stored(t, store).Shape(); !slices.Equal(got, []int64{2, 8}) || !slices.Equal(b.Shape(), got) {
				t.Errorf("shape %v, of the handle %v", got, b.Shape())
			}
			must.Have(0, a.Resize(ctx, []int64{5, 8}, ResizeOptions{}))
			must.Have(0, b.Resize(ctx, []int64{6, 1}, ResizeOptions{}))
			if got := stored(t, store).Shape(); !slices.Equal(got, []int64{6, 1}) {
				t.Errorf("shape %v", got)
			}
		})
	}
}

// A shrink through an older handle deletes the chunks of the shape that is stored, and
// resets the elements of the one at its edge.
func TestResizeOfOldHandleDeletesChunks(t *testing.T) {
	ctx := t.Context()
	store, _, a, b := handles(t, V3, Spec{Shape: []int64{4}, Chunks: []int64{3}, DataType: "int8"})
	must.Have(0, a.Resize(ctx, []int64{9}, ResizeOptions{}))
	must.Have(0, Write(ctx, a, Sel(), []int8{1, 2, 3, 4, 5, 6, 7, 8, 9}))
	must.Have(0, b.Resize(ctx, []int64{2}, ResizeOptions{}))
	must.Have(0, b.Resize(ctx, []int64{9}, ResizeOptions{}))
	want := []int8{1, 2, 0, 0, 0, 0, 0, 0, 0}
	if got := mustRead(Read[int8](ctx, stored(t, store), Sel())); !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

// Changes of metadata through several handles follow each other, at the same time too.
func TestChangesOfManyHandles(t *testing.T) {
	ctx := t.Context()
	store, o, _, _ := handles(t, V3, Spec{Shape: []int64{0}, Chunks: []int64{3}, DataType: "int8"})
	var arrays []*Array
	for range 20 {
		arrays = append(arrays, must.Have(OpenArray(ctx, store, "a", o)))
	}
	var work sync.WaitGroup
	for i, a := range arrays {
		work.Go(func() {
			if err := a.SetAttributes(ctx, attributesOf(fmt.Sprintf(`{"k%d":1}`, i))); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if n := stored(t, store).Meta().Attributes.Len(); n != 20 {
		t.Errorf("%d attributes", n)
	}
}

// A write through an older handle does not touch elements that came with another
// shape, and does not write where the array is no more.
func TestWriteOfOldHandle(t *testing.T) {
	for _, shards := range [][]int64{nil, {6}} {
		for _, v := range []Version{V2, V3} {
			if shards != nil && v == V2 {
				continue
			}
			ctx := t.Context()
			store, _, a, b := handles(t, v, Spec{Shape: []int64{4}, Chunks: []int64{3}, Shards: shards, DataType: "int8"})
			must.Have(0, b.Resize(ctx, []int64{8}, ResizeOptions{}))
			must.Have(0, Write(ctx, b, Sel(), []int8{1, 2, 3, 4, 5, 6, 7, 8}))
			must.Have(0, Write(ctx, a, Sel(Slice(0, 4, 1)), []int8{11, 12, 13, 14}))
			if got := mustRead(Read[int8](ctx, stored(t, store), Sel())); !slices.Equal(got, []int8{11, 12, 13, 14, 5, 6, 7, 8}) {
				t.Errorf("%v %v: %v", v, shards, got)
			}
			must.Have(0, b.Resize(ctx, []int64{2}, ResizeOptions{}))
			for name, write := range map[string]func() error{
				"Write":     func() error { return Write(ctx, a, Sel(Slice(0, 4, 1)), []int8{21, 22, 23, 24}) },
				"WriteFill": func() error { return a.WriteFill(ctx, Sel(At(7))) },
			} {
				if err := write(); !errors.Is(err, ErrSelection) {
					t.Errorf("%s beyond the array: %v", name, err)
				}
			}
			must.Have(0, b.Resize(ctx, []int64{8}, ResizeOptions{}))
			if got := mustRead(Read[int8](ctx, stored(t, store), Sel())); !slices.Equal(got, []int8{11, 12, 0, 0, 0, 0, 0, 0}) {
				t.Errorf("%v %v: %v", v, shards, got)
			}
		}
	}
}

// An array that was deleted does not come back, and one that took the place of
// another is not described by the other's metadata.
func TestChangeOfArrayThatIsGone(t *testing.T) {
	ctx := t.Context()
	spec := Spec{Shape: []int64{4}, Chunks: []int64{3}, DataType: "int8"}
	store, o, a, b := handles(t, V3, spec)
	must.Have(0, Write(ctx, a, Sel(), []int8{1, 2, 3, 4}))
	replace := *o
	replace.Overwrite = true
	spec.DataType = "int16"
	c := must.Have(Create(ctx, store, "a", spec, &replace))
	must.Have(0, Write(ctx, c, Sel(), []int16{1, 2, 3, 4}))
	change := map[string]func(*Array) error{
		"Resize":        func(a *Array) error { return a.Resize(ctx, []int64{9}, ResizeOptions{}) },
		"SetAttributes": func(a *Array) error { return a.SetAttributes(ctx, attributesOf(`{"x":1}`)) },
	}
	for name, change := range change {
		if err := change(a); !errors.Is(err, ErrKind) {
			t.Errorf("%s of an array that was replaced: %v", name, err)
		}
	}
	if err := Write(ctx, a, Sel(), []int8{1, 2, 3, 4}); !errors.Is(err, ErrKind) {
		t.Errorf("Write: %v", err)
	}
	if got := mustRead(Read[int16](ctx, stored(t, store), Sel())); !slices.Equal(got, []int16{1, 2, 3, 4}) {
		t.Errorf("%v", got)
	}
	must.Have(0, b.Delete(ctx))
	for name, change := range change {
		if err := change(c); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s of an array that was deleted: %v", name, err)
		}
	}
	if keys := must.Have(kv.Keys(ctx, store, "a")); len(keys) > 0 {
		t.Errorf("keys: %v", keys)
	}
}

// Handles that consolidated metadata describes change the documents of the nodes,
// however old the copy is; and a group does not store an old copy again.
func TestChangeThroughConsolidated(t *testing.T) {
	for _, v := range []Version{V2, V3} {
		t.Run("v"+v.String(), func(t *testing.T) {
			ctx := t.Context()
			store, o := kv.NewMem(), &OpenOptions{Version: v, Locks: NewChunkLocks()}
			must.Have(CreateGroup(ctx, store, "", attributesOf(`{"g":1}`), o))
			a := must.Have(Create(ctx, store, "a", Spec{Shape: []int64{4}, Chunks: []int64{3}, DataType: "int8", Attributes: attributesOf(`{"x":1}`)}, o))
			must.Have(0, Consolidate(ctx, store, "", o))
			copied := *o
			copied.Consolidated = true
			group := must.Have(OpenGroup(ctx, store, "", &copied))
			var b *Array
			for n, err := range group.Children(ctx) {
				b = must.Have(n, err).array
			}
			must.Have(0, a.SetAttributes(ctx, attributesOf(`{"x":1,"a":1}`)))
			must.Have(0, a.Resize(ctx, []int64{8}, ResizeOptions{}))
			must.Have(0, b.SetAttributes(ctx, attributesOf(`{"x":2}`)))
			if got := string(stored(t, store).Meta().Attributes.Text()); got != `{"x":2,"a":1}` || stored(t, store).Shape()[0] != 8 {
				t.Errorf("%s, %v", got, stored(t, store).Shape())
			}
			must.Have(0, Consolidate(ctx, store, "", o))
			must.Have(0, group.SetAttributes(ctx, attributesOf(`{"g":2}`)))
			group = must.Have(OpenGroup(ctx, store, "", &copied))
			for n, err := range group.Children(ctx) {
				if !must.Have(n, err).Meta().Equal(stored(t, store).Meta()) {
					t.Errorf("the copy is older than the array")
				}
			}
			if got := string(group.Attributes().Text()); got != `{"g":2}` {
				t.Error(got)
			}
		})
	}
}

// Groups keep what another handle changed too.
func TestGroupAttributesOfTwoHandles(t *testing.T) {
	for _, v := range []Version{V2, V3} {
		ctx := context.Background()
		store, o := kv.NewMem(), &OpenOptions{Version: v, Locks: NewChunkLocks()}
		must.Have(CreateGroup(ctx, store, "g", attributesOf(`{"x":1,"y":1}`), o))
		a, b := must.Have(OpenGroup(ctx, store, "g", o)), must.Have(OpenGroup(ctx, store, "g", o))
		must.Have(0, a.SetAttributes(ctx, attributesOf(`{"x":2,"y":1}`)))
		must.Have(0, b.SetAttributes(ctx, attributesOf(`{"x":1,"y":2}`)))
		if got := string(must.Have(OpenGroup(ctx, store, "g", o)).Attributes().Text()); got != `{"x":2,"y":2}` {
			t.Errorf("v%v: %s", v, got)
		}
		must.Have(0, a.Delete(ctx))
		must.Have(Create(ctx, store, "g", Spec{Shape: []int64{4}, DataType: "int8"}, o))
		if err := b.SetAttributes(ctx, Attributes{}); !errors.Is(err, ErrKind) {
			t.Errorf("v%v: a group that became an array: %v", v, err)
		}
	}
}
