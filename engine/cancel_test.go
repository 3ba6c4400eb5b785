package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// lookedAt is a context that is cancelled when a computation looks at it for the n-th time.
type lookedAt struct {
	context.Context
	cancel context.CancelFunc
	left   atomic.Int64
}

func cancelAtLook(t *testing.T, n int64) *lookedAt {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	c := &lookedAt{Context: ctx, cancel: cancel}
	c.left.Store(n)
	return c
}

func (c *lookedAt) look() {
	if c.left.Add(-1) == 0 {
		c.cancel()
	}
}

func (c *lookedAt) Err() error {
	c.look()
	return c.Context.Err()
}

func (c *lookedAt) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

// Computations over many nodes end when their context is cancelled inside of them: each looks at it
// again and again, so that a later look finds more done.
func TestCancelledInside(t *testing.T) {
	const nodes = 300
	db := must.Get(Create(t.Context(), filepath.Join(t.TempDir(), "x.zdb"), nil))(t)
	defer db.Close()
	change := func(branch, value string) {
		must.Get(db.Update(t.Context(), branch, value, func(s *Session) error {
			for i := range nodes {
				if err := s.Set(t.Context(), fmt.Sprintf("a%d/zarr.json", i), fmt.Appendf(nil, `{"zarr_format":3,"node_type":"array","shape":[4],"data_type":"int8","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4]}},`+
					`"chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes"}],"attributes":{%s}}`, value)); err != nil {
					return err
				}
			}
			return s.Set(t.Context(), "zarr.json", []byte(`{"zarr_format":3,"node_type":"group"}`))
		}))(t)
	}
	change("main", `"k":1`)
	first := must.Get(db.Resolve(t.Context(), "main"))(t)
	must.Do(t, db.store.CreateBranch(t.Context(), "b", first))
	change("main", `"k":1,"ours":1`)
	change("b", `"k":1,"theirs":1`)
	ours, theirs := must.Get(db.Resolve(t.Context(), "main"))(t), must.Get(db.Resolve(t.Context(), "b"))(t)
	source := func(run func(context.Context, *Source) error) func(context.Context) error {
		return func(ctx context.Context) error {
			return db.View(ctx, "main", func(snap *Snapshot) error {
				s, err := OpenViewSource(snap, "x.zdb", "", nil)
				if err != nil {
					return err
				}
				defer s.Close()
				return run(ctx, s)
			})
		}
	}
	export := func(format zarr.Version) func(context.Context) error {
		return source(func(ctx context.Context, s *Source) error {
			_, err := Export(ctx, s, filepath.Join(t.TempDir(), "out.zarr"), ExportOptions{Format: format})
			return err
		})
	}
	for name, run := range map[string]func(context.Context) error{
		"export":          export(0),
		"export to zarr2": export(zarr.V2),
		"diff": func(ctx context.Context) error {
			_, err := db.NodeChanges(ctx, first, ours, "")
			return err
		},
		"merge": func(ctx context.Context) error {
			_, err := db.store.Merge(ctx, "main", theirs, txn.CommitOptions{})
			return err
		},
		"import": source(func(ctx context.Context, s *Source) error {
			to, err := Create(t.Context(), filepath.Join(t.TempDir(), "to.zdb"), nil)
			if err != nil {
				return err
			}
			defer to.Close()
			_, err = to.Import(ctx, s, ImportOptions{})
			return err
		}),
		"references": source(func(ctx context.Context, s *Source) error {
			_, err := ExportReferences(ctx, s, filepath.Join(t.TempDir(), "out.json"), ExportReferencesOptions{})
			return err
		}),
		"walk": func(ctx context.Context) error {
			return db.View(ctx, "main", func(s *Snapshot) error {
				for _, err := range s.Walk(ctx, "") {
					if err != nil {
						return err
					}
				}
				return nil
			})
		},
	} {
		for _, n := range []int64{1, 4, 20, 200} {
			if name == "references" && n > 1 {
				continue // a look for each batch of references
			}
			if err := run(cancelAtLook(t, n)); !errors.Is(err, context.Canceled) {
				t.Errorf("%s, cancelled at look %d: %v", name, n, err)
			}
		}
	}
	if head := must.Get(db.Resolve(t.Context(), "main"))(t); head != ours {
		t.Error("a merge that was cancelled made a commit")
	}
}
