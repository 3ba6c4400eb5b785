package collect

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/reach"
)

const (
	// sweepBatch is how many pages are deleted at once: commits wait for it.
	sweepBatch = 512
	// maxDead is how many names of dead pages are kept, 40 MiB of them; if
	// there are more, the index is gone over again.
	maxDead = 2 << 20
)

// scan goes over all pages of the index in order, on all processors: many times
// faster than reading them by name. It reads the leaves that Mark has left, and
// finds what is dead. Leaves that are missing are damage.
func (g *collector) scan(ctx context.Context, snap *index.Snapshot, p *progress) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var next atomic.Int32
	for range min(runtime.GOMAXPROCS(0), reach.Parts) {
		wg.Go(func() {
			s := pageSweeper{g: g, leaves: g.marks.Leaves()}
			defer s.leaves.Flush()
			for part := int(next.Add(1)) - 1; part < reach.Parts; part = int(next.Add(1)) - 1 {
				if err := s.part(ctx, snap, part, p); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// pageSweeper is one worker of a scan.
type pageSweeper struct {
	g      *collector
	leaves *reach.LeafReader
	dead   []tree.Name
	// of the part
	pages, bytes, deadBytes int64
}

// part goes over the pages of one part of the names.
func (s *pageSweeper) part(ctx context.Context, snap *index.Snapshot, part int, p *progress) error {
	s.dead, s.pages, s.bytes, s.deadBytes = s.dead[:0], 0, 0, 0
	from, to := reach.PartRange(part)
	for rec, err := range snap.Scan(index.SpacePage, from, to, false) {
		if err == nil && s.pages&63 == 0 {
			err = ctx.Err()
		}
		if err == nil {
			err = s.page(rec)
		}
		if err != nil {
			return err
		}
	}
	if err := s.g.marks.Missing(ctx, part); err != nil {
		return err
	}
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	if p != nil {
		p.step(s.pages + int64(len(s.dead)))
	}
	r := s.g.r
	r.Pages += s.pages
	r.PageBytes += s.bytes
	r.DeletedPages += int64(len(s.dead))
	r.DeletedPageBytes += s.deadBytes
	room := min(maxDead-len(s.g.dead), len(s.dead))
	s.g.dead = append(s.g.dead, s.dead[:room]...)
	s.g.more = s.g.more || room < len(s.dead)
	return nil
}

func (s *pageSweeper) page(rec index.Record) error {
	if len(rec.Key) != digest.Size {
		return catalog.Corrupt("page key %x", rec.Key)
	}
	name := tree.Name(rec.Key)
	marked, err := s.leaves.Read(name, rec.Value)
	if err != nil {
		return err
	}
	if _, spared := s.g.spare[name]; !marked && !spared {
		s.dead = append(s.dead, name)
		s.deadBytes += int64(len(rec.Value))
		return nil
	}
	s.pages++
	s.bytes += int64(len(rec.Value))
	return nil
}

// deletePages deletes the pages that were not marked.
func (g *collector) deletePages(ctx context.Context) error {
	if g.o.DryRun || len(g.dead) == 0 {
		return nil
	}
	p := progress{g: g, phase: "delete"}
	for {
		deleted := 0 // the others were put meanwhile
		for names := range slices.Chunk(g.dead, sweepBatch) {
			if err := ctx.Err(); err != nil {
				return err
			}
			n, err := g.sweep.Delete(names)
			if err != nil {
				return err
			}
			deleted += n
			p.step(int64(n))
		}
		if !g.more || deleted == 0 {
			break
		}
		if err := g.findMore(ctx); err != nil {
			return err
		}
	}
	g.dead = nil
	return g.sync()
}

// pageOverhead is about what a page takes in a table beside its bytes.
const pageOverhead = 100

// tidy gives back what the index and its checkpoints take beyond the pages that stay.
// Files that only checkpoints hold go with them, after new ones were made.
func (g *collector) tidy(ctx context.Context) error {
	if g.o.DryRun {
		return nil
	}
	want := g.r.PageBytes + pageOverhead*g.r.Pages
	if g.erase {
		want = index.TidyAll
	}
	err := g.Index.Tidy(ctx, want)
	if ctx.Err() != nil || errors.Is(err, index.ErrFailed) {
		return err
	}
	// A disk may be too full to compact the index: then the space of payloads helps.
	g.Failures.Note(index.WorkTables, err)
	if g.erase && err == nil {
		g.renewed = true
		return g.Checkpoints.ForReclaim()
	}
	g.spared = g.spared || err != nil
	if stale, err := g.Checkpoints.Stale(); err != nil || stale <= max(want/4, 1<<20) {
		return err
	}
	_, err = g.Checkpoints.Renew()
	g.renewed = err == nil
	return nil // after an error, which is noted, the old ones stay
}

// erased notes that the collection ended, and if that is so, that nothing is left of what was erased.
func (g *collector) erased(ctx context.Context) error {
	g.r.Erased = g.erase && (g.o.DryRun || g.spared || g.r.HeldBytes > 0)
	if g.o.DryRun {
		return nil
	}
	// A transfer brings copies again, as long as the bucket has what was erased.
	last, err := catalog.LastCare(g.Index, catalog.LastErase)
	if err != nil {
		return err
	}
	if g.erase || !last.IsZero() {
		bytes, left, err := g.core.Forget(ctx, g.erase)
		if err != nil {
			return err
		}
		g.r.AwayBytes, g.r.Erased = bytes, g.r.Erased || left
	}
	if g.erase {
		g.r.Quarantine = care.Aside(g.FS, g.Dir)
	}
	batch := g.Index.NewBatch()
	defer batch.Close()
	batch.MakesRoom()
	catalog.PutLastCare(batch, catalog.LastGC, g.Now())
	switch {
	case g.r.Erased && g.erasure == "":
		catalog.PutErased(batch)
	case g.erasure != "" && !g.r.Erased:
		return g.core.Publish(ctx, func() error {
			if now, err := catalog.Erased(g.Index); err != nil {
				return err
			} else if now == g.erasure { // else the next collection removes what was erased meanwhile
				catalog.DeleteErased(batch)
			}
			return batch.Commit(true)
		})
	}
	return batch.Commit(true)
}

// findMore finds dead pages that the scan before had no room for.
func (g *collector) findMore(ctx context.Context) error {
	snap := g.Index.Snapshot()
	defer snap.Close()
	before := *g.r // has counted them
	g.dead, g.more = g.dead[:0], false
	err := g.scan(ctx, snap, nil)
	*g.r = before
	return err
}

// sync makes everything before it durable.
func (g *collector) sync() error {
	batch := g.Index.NewBatch()
	defer batch.Close()
	return batch.Commit(true)
}
