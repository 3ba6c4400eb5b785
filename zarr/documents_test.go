package zarr

import (
	"context"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// Arrays with equal documents share what is parsed, and stay apart when one of them changes.
func TestDocumentsAreShared(t *testing.T) {
	ctx := context.Background()
	s := kv.NewMem()
	o := &OpenOptions{Documents: NewDocuments(1 << 20)}
	spec := Spec{Shape: []int64{4}, Chunks: []int64{2}, DataType: "int8", Attributes: attributesOf(`{"units":"K"}`)}
	for _, path := range []string{"a", "b"} {
		must.Get(Create(ctx, s, path, spec, o))(t)
	}
	open := func(path string) *Array {
		a, err := OpenArray(ctx, s, path, o)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a, b := open("a"), open("b")
	if a.Meta() != b.Meta() {
		t.Error("equal documents were parsed twice")
	}
	must.Do(t, a.SetAttributes(ctx, attributesOf(`{"units":"m"}`)))
	must.Do(t, a.Resize(ctx, []int64{6}, ResizeOptions{}))
	must.Do(t, a.WriteBytes(ctx, Sel(), []byte{1, 2, 3, 4, 5, 6}))
	for _, b := range []*Array{b, open("b")} {
		if b.Shape()[0] != 4 || string(mustRaw(t, b, "units")) != `"K"` {
			t.Errorf("b changed with a: shape %v, units %s", b.Shape(), mustRaw(t, b, "units"))
		}
		data := make([]byte, 4)
		if err := b.ReadBytes(ctx, Sel(), data); err != nil || data[0] != 0 {
			t.Errorf("b has %v, %v", data, err)
		}
	}
	if a = open("a"); a.Shape()[0] != 6 || string(mustRaw(t, a, "units")) != `"m"` {
		t.Errorf("a has shape %v, units %s", a.Shape(), mustRaw(t, a, "units"))
	}
}

func mustRaw(t *testing.T, a *Array, name string) []byte {
	t.Helper()
	raw, ok := a.Meta().Attributes.Get(name)
	if !ok {
		t.Fatalf("%s has no attribute %q", a.Path(), name)
	}
	return raw
}
