package convert

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/engine/internal/listing"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// sparse stores a v3 array of n chunks, of which the first is stored. A v2 array needs a
// null fill value for it.
func sparse(t *testing.T, n int64) *kv.Mem {
	t.Helper()
	store := kv.NewMem()
	a := must.Get(zarr.Create(t.Context(), store, "a", zarr.Spec{Shape: []int64{2 * n}, Chunks: []int64{2}, DataType: "int32", DimensionNames: []string{"x"}}, nil))(t)
	must.Do(t, zarr.Write(t.Context(), a, zarr.Sel(zarr.Slice(0, 2, 1)), []int32{5, 6}))
	return store
}

// candidates is the store as one that cannot be listed.
func candidates(t *testing.T, store *kv.Mem) *listing.View {
	t.Helper()
	n := must.Get(zarr.Open(t.Context(), store, "a", nil))(t)
	group := &zarr.Meta{Version: zarr.V3}
	v := must.Get(listing.New(struct{ kv.Reader }{store}, []listing.Node{{Dir: "", Meta: group}, {Dir: "a/", Meta: n.Meta()}}))(t)
	return v
}

// Chunks that a listing tells and that are not stored are written, as those that it does
// not tell, and count against the bound.
func TestMissingOfCandidates(t *testing.T) {
	store := sparse(t, 3)
	for name, view := range map[string]kv.ReadLister{"listed": store, "candidates": candidates(t, store)} {
		for _, written := range []int64{1 << 20, 1} {
			out, bytes := kv.NewMem(), int64(0)
			plan, err := New(t.Context(), view, "a", &zarr.OpenOptions{Registry: builtin.Registry()}, zarr.V2, Options{Written: written})
			if err == nil {
				err = plan.CopyDocuments(t.Context(), out, func(int64) {})
			}
			if err == nil {
				err = plan.CopyChunks(t.Context(), out, transfer.NewPool(1), func(n int64) { bytes += n })
			}
			if written == 1 {
				if !errors.Is(err, zarr.ErrNoForm) {
					t.Errorf("%s, over the bound: %v", name, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for i := range 3 {
				if _, err := kv.Get(t.Context(), out, fmt.Sprint(i)); err != nil {
					t.Errorf("%s: chunk %d: %v", name, i, err)
				}
			}
			a := must.Get(zarr.OpenArray(t.Context(), out, "", nil))(t)
			got, _, err := zarr.Read[int32](t.Context(), a, zarr.Sel())
			if err != nil || fmt.Sprint(got) != "[5 6 0 0 0 0]" || !a.Meta().NullFill {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
	}
}

// meeting is a store in which each of the first two writes waits for the other.
type meeting struct {
	*kv.Mem
	n    atomic.Int64
	both chan struct{}
}

func (m *meeting) Set(ctx context.Context, key string, value []byte) error {
	if m.n.Add(1) == 2 {
		close(m.both)
	}
	select {
	case <-m.both:
	case <-time.After(time.Minute):
		return errors.New("no other write is under way")
	}
	return m.Mem.Set(ctx, key, value)
}

// Missing chunks are written by all workers.
func TestMissingOnPool(t *testing.T) {
	plan := must.Get(New(t.Context(), sparse(t, 600), "a", &zarr.OpenOptions{Registry: builtin.Registry()}, zarr.V2, Options{Written: 1 << 20}))(t)
	out := &meeting{Mem: kv.NewMem(), both: make(chan struct{})}
	must.Do(t, plan.Arrays[0].writeMissing(t.Context(), out, transfer.NewPool(2), func(int64) {}))
	if n := out.n.Load(); n != 599 {
		t.Errorf("%d chunks written", n)
	}
}
