package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/ocdbt"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

// ocdbtPlan writes keys as they are stored into an OCDBT store: those of one version as
// one generation, or a generation for each commit of a chain.
type ocdbtPlan struct {
	in    foreignSource
	chain []*Commit // oldest first; nil for one generation
}

func planOCDBT(ctx context.Context, in foreignSource, o ForeignOptions) (formats.Plan, error) {
	p := &ocdbtPlan{in: in}
	if !o.History {
		return p, nil
	}
	chain, rest, err := in.firstParents(ctx)
	if err != nil {
		return nil, err
	}
	if rest != nil && in.src.env.warn != nil {
		in.src.env.warn(fmt.Sprintf("the contents of %s and of older versions are gone: the history begins with all of %s", rest.ID.Short(), chain[0].ID.Short()))
	}
	p.chain = chain
	return p, nil
}

// firstParents returns the version that a source names and its first parents, oldest
// first, as far as they have contents; rest is the newest one without, nil if there is
// none.
func (in *foreignSource) firstParents(ctx context.Context) (chain []*Commit, rest *Commit, err error) {
	snap, ok := in.at.View.(*Snapshot)
	if !ok || in.at.db == nil {
		return nil, nil, fmt.Errorf("%s: a history is that of a version of a database, not of a store or session: %w", in.src.name(), errors.ErrUnsupported)
	}
	for id := snap.Commit().ID; ; {
		c, err := in.at.db.Lookup(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		gone, err := in.at.db.Expired(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		if gone {
			rest = c
			break
		}
		if chain = append(chain, c); len(c.Parents) == 0 {
			break
		}
		id = c.Parents[0]
	}
	slices.Reverse(chain)
	return chain, rest, nil
}

// Write implements [formats.Plan].
func (p *ocdbtPlan) Write(ctx context.Context, out formats.Output) error {
	files, ok := out.Dst.(ocdbt.Files)
	if !ok {
		return fmt.Errorf("an OCDBT store is a directory, not a zip archive: %w", errors.ErrUnsupported)
	}
	w, err := ocdbt.NewWriter(files, nil)
	if err != nil {
		return err
	}
	if p.chain == nil {
		at := time.Now()
		if snap, ok := p.in.at.View.(*Snapshot); ok {
			at = snap.Commit().Time
		}
		if _, err := w.Commit(ctx, at, p.all(ctx, p.in.view, out.Wrote)); err != nil {
			return err
		}
		return w.Close(ctx)
	}
	for i, c := range p.chain {
		if err := p.commit(ctx, w, i, out.Wrote); err != nil {
			return fmt.Errorf("version %s: %w", c.ID.Short(), err)
		}
	}
	return w.Close(ctx)
}

// commit writes the generation of commit i of the chain.
func (p *ocdbtPlan) commit(ctx context.Context, w *ocdbt.Writer, i int, wrote func(int64)) error {
	db, c := p.in.at.db, p.chain[i]
	snap, err := db.Snapshot(ctx, c.ID)
	if err != nil {
		return err
	}
	defer snap.Close()
	changes := p.all(ctx, snap, wrote)
	if i > 0 {
		changes = p.changed(ctx, snap, db.Diff(ctx, p.chain[i-1].ID, c.ID, p.from()), wrote)
	}
	_, err = w.Commit(ctx, c.Time, changes)
	return err
}

// from is what all keys begin with that are exported, and leave out.
func (p *ocdbtPlan) from() string { return names.Dir(p.in.at.Path) }

// all yields all keys of a view with their values.
func (p *ocdbtPlan) all(ctx context.Context, view kv.ReadLister, wrote func(int64)) iter.Seq2[ocdbt.Change, error] {
	return func(yield func(ocdbt.Change, error) bool) {
		ex := &exporter{src: p.in.src, view: view, from: p.from(), only: p.in.at.Version}
		err := batches(ex.list(ctx), func(keys []string) error { return p.values(ctx, view, keys, wrote, yield) })
		if err != nil && err != errEnough {
			yield(ocdbt.Change{}, err)
		}
	}
}

// changed yields the changes that led to a version.
func (p *ocdbtPlan) changed(ctx context.Context, view kv.ReadLister, diff iter.Seq2[txn.Change, error], wrote func(int64)) iter.Seq2[ocdbt.Change, error] {
	return func(yield func(ocdbt.Change, error) bool) {
		err := batches(func(next func(string, error) bool) {
			for c, err := range diff {
				if err == nil && c.New == nil {
					if !yield(ocdbt.Change{Key: strings.TrimPrefix(c.Key, p.from())}, nil) {
						next("", errEnough)
						return
					}
					continue
				}
				if !next(c.Key, err) {
					return
				}
			}
		}, func(keys []string) error { return p.values(ctx, view, keys, wrote, yield) })
		if err != nil && err != errEnough {
			yield(ocdbt.Change{}, err)
		}
	}
}

// values yields some keys with their values, which are read several at a time.
func (p *ocdbtPlan) values(ctx context.Context, view kv.ReadLister, keys []string, wrote func(int64), yield func(ocdbt.Change, error) bool) error {
	var mu sync.Mutex // one value is yielded at a time
	enough := false
	return eachValue(ctx, p.in.src.pool, view, keys, func(_ context.Context, key string, b []byte) error {
		mu.Lock()
		defer mu.Unlock()
		if enough || !yield(ocdbt.Change{Key: strings.TrimPrefix(key, p.from()), Value: kv.Bytes(b)}, nil) {
			enough = true
			return errEnough
		}
		if wrote != nil {
			wrote(int64(len(b)))
		}
		return nil
	})
}
