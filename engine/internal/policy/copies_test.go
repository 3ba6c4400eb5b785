package policy

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// countingStore counts the documents that are read.
type countingStore struct {
	*kv.Mem
	reads atomic.Int64 // values are read side by side
}

func (c *countingStore) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	if names.IsDocument(key) {
		c.reads.Add(1)
	}
	return c.Mem.Get(ctx, key, rng)
}

// tracking is a store whose consolidated metadata a Copies keeps.
type tracking struct {
	*countingStore
	copies *Copies
}

func (t tracking) Set(ctx context.Context, key string, value []byte) error {
	if err := t.copies.Key(ctx, key); err != nil {
		return err
	}
	return t.countingStore.Set(ctx, key, value)
}

func (t tracking) Delete(ctx context.Context, key string) error {
	if err := t.copies.Key(ctx, key); err != nil {
		return err
	}
	return t.countingStore.Delete(ctx, key)
}

func (t tracking) DeletePrefix(ctx context.Context, prefix string) error {
	if err := t.copies.Above(ctx, names.Clean(prefix)); err != nil {
		return err
	}
	return kv.DeletePrefix(ctx, t.countingStore, prefix)
}

func newTracking() tracking {
	s := &countingStore{Mem: kv.NewMem()}
	return tracking{s, NewCopies(s, &zarr.OpenOptions{})}
}

// Copies that are made again from what changed are those that are made from all nodes.
func TestCopiesOfWhatChanged(t *testing.T) {
	ctx := context.Background()
	spec := zarr.Spec{Shape: []int64{3}, DataType: "int8"}
	for _, version := range []zarr.Version{zarr.V2, zarr.V3} {
		for seed := range uint64(60) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			s := newTracking()
			open := &zarr.OpenOptions{Version: version, Overwrite: true}
			name := func() string {
				p := ""
				for range 1 + rnd.IntN(3) {
					p = names.Join(p, fmt.Sprintf("n%d", rnd.IntN(3)))
				}
				return p
			}
			group := func(path string) {
				_, err := zarr.CreateGroup(ctx, s, path, zarr.Attributes{}, open)
				must.Do(t, err)
			}
			group("")
			for range 3 {
				group(names.Join(name(), "g"))
			}
			group("n0")
			group("n0/n1")
			must.Do(t, zarr.Consolidate(ctx, s, "n0/n1", open))
			must.Do(t, zarr.Consolidate(ctx, s, "", open))
			for step := range 12 {
				what := ""
				switch at := name(); rnd.IntN(5) {
				case 0:
					what = "array " + at
					_, _ = zarr.Create(ctx, s, at, spec, open) // refused below arrays
				case 1:
					what = "group " + at
					_, _ = zarr.CreateGroup(ctx, s, at, zarr.Attributes{}, open)
				case 2:
					what = "remove " + at
					must.Do(t, s.DeletePrefix(ctx, at+"/"))
				default:
					what = "attributes " + at
					if n, err := zarr.Open(ctx, s, at, &zarr.OpenOptions{Version: version}); err == nil {
						attrs, err := zarr.ParseAttributes(fmt.Appendf(nil, `{"a": %d}`, rnd.IntN(9)))
						must.Do(t, err)
						must.Do(t, n.SetAttributes(ctx, attrs))
					}
				}
				if rnd.IntN(2) == 0 {
					continue
				}
				must.Do(t, s.copies.Refresh(ctx))
				all := kv.NewMem()
				for key, err := range s.List(ctx, kv.ListOptions{}) {
					must.Do(t, err)
					b, err := kv.Get(ctx, s.Mem, key)
					must.Do(t, err)
					must.Do(t, all.Set(ctx, key, b))
				}
				must.Do(t, zarr.Consolidate(ctx, all, "", open))
				key := names.V2Metadata
				if version == zarr.V3 {
					key = names.V3
				}
				want, err := kv.Get(ctx, all, key)
				must.Do(t, err)
				got := must.Get(kv.Get(ctx, s.Mem, key))(t)
				if !bytes.Equal(got, want) {
					t.Fatalf("format %v, seed %d, step %d (%s):\n%s\nwant\n%s", version, seed, step, what, got, want)
				}
			}
		}
	}
}

// Making a copy again reads the documents of what changed, however many others there are.
func TestCopiesReadWhatChanged(t *testing.T) {
	ctx := context.Background()
	for _, version := range []zarr.Version{zarr.V2, zarr.V3} {
		var reads []int64
		for _, n := range []int{10, 100} {
			s := newTracking()
			open := &zarr.OpenOptions{Version: version}
			_, err := zarr.CreateGroup(ctx, s, "", zarr.Attributes{}, open)
			must.Do(t, err)
			for i := range n {
				_, err := zarr.Create(ctx, s, fmt.Sprintf("a%d", i), zarr.Spec{Shape: []int64{3}, DataType: "int8"}, open)
				must.Do(t, err)
			}
			must.Do(t, zarr.Consolidate(ctx, s, "", open))
			s.reads.Store(0)
			_, err = zarr.Create(ctx, s, "b", zarr.Spec{Shape: []int64{3}, DataType: "int8"}, open)
			must.Do(t, err)
			must.Do(t, s.copies.Refresh(ctx))
			reads = append(reads, s.reads.Load())
		}
		if reads[0] != reads[1] {
			t.Errorf("format %v: %d documents are read beside 10 arrays, %d beside 100", version, reads[0], reads[1])
		}
	}
}
