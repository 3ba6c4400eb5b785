package zarr

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/internal/metatest"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// TestDraftReadOnly: every change of a store in the early v3 draft is refused,
// and changes nothing.
func TestDraftReadOnly(t *testing.T) {
	ctx := context.Background()
	groupDocDraft := []byte(`{"attributes":{}}`)
	for _, l := range []meta.DraftLayout{meta.DraftSuffix, meta.DraftRoot} {
		store := kv.NewMem()
		if l == meta.DraftRoot {
			must.Have(0, store.Set(ctx, meta.DocV3, []byte(metatest.EntryDocDraft)))
			if _, err := Create(ctx, store, "x", Spec{Shape: []int64{1}, DataType: "int8"}, nil); !errors.Is(err, ErrDraft3) {
				t.Errorf("below an entry document alone: %v", err)
			}
		}
		must.Have(0, store.Set(ctx, l.ArrayKey("g/a"), []byte(metatest.ArrayDocDraft)))
		must.Have(0, store.Set(ctx, l.GroupKey("g/h"), groupDocDraft))
		keys := must.Have(kv.Keys(ctx, store, ""))
		a, g := must.Have(OpenArray(ctx, store, "g/a", nil)), must.Have(OpenGroup(ctx, store, "g", nil))
		if got := paths(store, "", nil); !slices.Equal(got, []string{"/", "g/", "g/a", "g/h/"}) {
			t.Errorf("layout %d: %q", l, got)
		}
		spec := Spec{Shape: []int64{1}, DataType: "int8"}
		for what, do := range map[string]func() error{
			"write":            func() error { return Fill(ctx, a, Sel(), int32(1)) },
			"write fill":       func() error { return a.WriteFill(ctx, Sel()) },
			"resize":           func() error { return a.Resize(ctx, []int64{1, 1}, ResizeOptions{}) },
			"array attributes": func() error { return a.SetAttributes(ctx, attributesOf(`{"x":1}`)) },
			"group attributes": func() error { return g.SetAttributes(ctx, attributesOf(`{"x":1}`)) },
			"delete an array":  func() error { return a.Delete(ctx) },
			"delete a group":   func() error { return g.Delete(ctx) },
			"create an array":  func() error { _, err := Create(ctx, store, "g/b", spec, nil); return err },
			"create a group":   func() error { _, err := CreateGroup(ctx, store, "c", Attributes{}, nil); return err },
			"create in v2": func() error {
				_, err := CreateGroup(ctx, store, "c", Attributes{}, &OpenOptions{Version: V2})
				return err
			},
			"replace": func() error { _, err := Create(ctx, store, "g/a", spec, &OpenOptions{Overwrite: true}); return err },
		} {
			if err := do(); !errors.Is(err, ErrDraft3) || !errors.Is(err, kv.ErrReadOnly) {
				t.Errorf("layout %d: %s: %v", l, what, err)
			}
			wantKeys(t, store, keys...)
		}
		// Another store may take its place.
		must.Have(CreateGroup(ctx, store, "", Attributes{}, &OpenOptions{Overwrite: true}))
		wantKeys(t, store, meta.DocV3)
	}
	if _, err := CreateGroup(ctx, kv.NewMem(), "", Attributes{}, &OpenOptions{Version: Draft3}); !errors.Is(err, ErrDraft3) {
		t.Error(err)
	}
}
