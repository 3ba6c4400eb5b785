package zarr

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/kv"
)

// Some views, such as servers, read many chunks at less cost than one
// by one. Then the chunks of a job are not located one by one: the view gets the
// whole list, and hands over each chunk when its bytes have arrived, so that it
// is decoded into the result while other chunks are being read.
//
//	plan ─▶ up to gatherAtOnce wants ─▶ kv.Gather ─▶ task.do with the value at hand
//	      ▲                                    │
//	      └────────── the next ones ───────────┘

// gatherAtOnce is the number of chunks passed to a view at a time: enough that
// neighbouring small ones fill long reads, and a few MiB of keys.
const gatherAtOnce = 1 << 14

// gatherer is the memory of one job that gathers. Pooled.
type gatherer struct {
	wants  []kv.Want
	pieces []int64 // of the job, for each want
	forms  []*chunkForm
}

var gatherers = sync.Pool{New: func() any { return new(gatherer) }}

func (g *gatherer) reset() {
	clear(g.wants)
	clear(g.forms)
	g.wants, g.pieces, g.forms = g.wants[:0], g.pieces[:0], g.forms[:0]
}

// gathers reports whether the view has a way of its own to read the chunks of
// the job.
func (j *job) gathers(ctx context.Context) bool {
	if _, ok := j.a.view.(kv.Gatherer); !ok || !j.reading {
		return false
	}
	t := getTask()
	defer t.put()
	t.j = j
	_, err := t.place(0)
	return err == nil && kv.Gathers(ctx, j.a.view, t.key)
}

// gather does the n pieces of the job.
func (j *job) gather(ctx context.Context, n int64) error {
	g := gatherers.Get().(*gatherer)
	defer func() {
		g.reset()
		gatherers.Put(g)
	}()
	how := kv.Gathering{Has: j.holder(g), Take: func(ctx context.Context, i int, v kv.Value) error {
		t := getTask()
		defer t.put()
		t.given, t.found = true, v
		return t.do(ctx, j, g.pieces[i])
	}}
	if j.a.opts.Runner != nil {
		how.Run = j.a.opts.Runner.Run
	}
	gap, _ := kv.Spacing(j.a.view)
	for lo := int64(0); lo < n; lo += gatherAtOnce {
		if err := ctx.Err(); err != nil {
			return err
		}
		g.reset()
		if err := g.plan(j, lo, min(lo+gatherAtOnce, n), gap); err != nil {
			return err
		}
		if err := kv.Gather(ctx, j.a.view, g.wants, how); err != nil {
			return err
		}
	}
	return nil
}

// plan collects the wants of the pieces lo to hi.
func (g *gatherer) plan(j *job, lo, hi, gap int64) error {
	t := getTask()
	defer t.put()
	t.j = j
	for i := lo; i < hi; i++ {
		some, err := t.place(i)
		if err != nil {
			return fmt.Errorf("chunk %s: %w", t.key, err)
		}
		if some {
			g.wants = append(g.wants, t.want(gap))
			g.pieces = append(g.pieces, i)
			g.forms = append(g.forms, t.form)
		}
	}
	return nil
}

// want returns the first range to read of the current chunk.
func (t *task) want(gap int64) kv.Want {
	w := kv.Want{Key: t.key, Limit: t.form.bound.MaxEncodedSize()}
	if !t.partly(0) {
		return w
	}
	switch off, n := t.form.bound.Ahead(t.box, gap); {
	case n < 0:
	case off < 0:
		w.Range, w.Limit = kv.Last(n), 0
	default:
		w.Range, w.Limit = kv.Span(off, n), 0
	}
	return w
}

// holder returns the function that reports whether the bytes of a chunk are not
// needed, because the chunk, or the index of the shard, is cached.
func (j *job) holder(g *gatherer) func(int, kv.Value) bool {
	cache := j.a.opts.Cache
	return func(i int, v kv.Value) bool {
		form := g.forms[i]
		if form.indexed && !g.wants[i].Range.IsAll() {
			return j.st.indexes.get(indexName{v.ID(), form.name()}) != nil
		}
		if cache == nil || form.uncached || form.inner != nil {
			return false
		}
		_, ok := cache.Get(v.ID(), form.name())
		return ok
	}
}

// locate finds the chunk in hand, nil if it is not there.
func (t *task) locate(ctx context.Context) (kv.Value, error) {
	if t.given {
		return t.found, nil
	}
	v, err := kv.Locate(ctx, t.j.a.view, t.key)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	return v, err
}

func (s *valueSource) Gap() int64 {
	gap, _ := kv.Spacing(s.value)
	return gap
}

func (s *valueSource) ReadsRanges() bool { return kv.ViewsRanges(s.value) }

func (s *valueSource) ReadRanges(ctx context.Context, ranges []codecs.Extent, fn func(i int, b []byte) error) error {
	parts := make([]kv.Range, len(ranges))
	for i, r := range ranges {
		parts[i] = kv.Span(r.Off, r.N)
	}
	return kv.ViewRanges(ctx, s.value, parts, fn)
}

var (
	_ codecs.Gapper       = (*valueSource)(nil)
	_ codecs.RangesSource = (*valueSource)(nil)
)
