package away

import (
	"context"
	"math"
	"slices"

	"github.com/zarrdb/zarrdb/kv/depot"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/txn/internal/bucket"
	"github.com/zarrdb/zarrdb/txn/internal/transfer"
)

// fetching are the payloads of a pack that are wanted, and its row: the records that readers who go from front to back will need next. The
// row is fetched in steps, beside the readers, up to its goal. A row that comes to the end of its pack goes on in the next one.
//
//	read ──────▶ end ── on the way ──▶ goal
type fetching struct {
	wants []*wanted
	busy  bool
	by    bucket.Asker // of the row
	read  uint64       // how far readers are
	end   uint64       // what lies before was fetched
	goal  uint64
	ahead uint64 // how far the goal is to lie behind what is read; it grows with the row
}

const (
	// aheadFirst and aheadMost bound what is fetched ahead of readers in a pack.
	aheadFirst, aheadMost = 1 << 20, 32 << 20
	// aheadGap is how far the next payload may lie behind the row.
	aheadGap = 256 << 10
)

// window is the most that is fetched ahead.
func (a *Part) window() uint64 { return min(uint64(a.Most())/(2*atOnce), aheadMost) }

// open reports whether the row goes on.
func (f *fetching) open() bool { return f.end < f.goal }

// brings reports whether the row will bring a payload.
func (f *fetching) brings(w *wanted) bool {
	e := w.extent()
	return !w.wrong && w.by == f.by && e.From >= f.end && e.To <= f.goal
}

// pass moves the goal of the row if a payload that is read lies in it, and reports whether it did. One that lies elsewhere and is missing
// may be the first of a row: the second one shows.
func (f *fetching) pass(e pack.Extent, by bucket.Asker, most uint64, missing bool) bool {
	switch {
	case f.goal == 0 && missing:
		f.read, f.end, f.goal = e.To, e.To, e.To
		return false
	case e.From > f.goal+aheadGap || e.To+most < f.end:
		if missing {
			f.read, f.end, f.goal, f.ahead = e.To, e.To, e.To, 0
		}
		return false
	case e.To <= f.read:
		return false
	}
	if f.read = e.To; e.To+f.ahead/2 < f.goal {
		return false
	}
	f.ahead = min(max(2*f.ahead, aheadFirst), most)
	f.by, f.goal = by, max(f.goal, e.To+f.ahead)
	return true
}

// passed notes that a payload is read which was fetched before.
func (a *Part) passed(ctx context.Context, at pack.Address) {
	most, by := a.window(), bucket.AskerOf(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.wants[at.Pack]
	if f != nil && f.pass(pack.Extent{From: at.Offset, To: at.Offset + at.Length}, by, most, false) {
		a.start(at.Pack, f)
	}
}

// row reads a pack ahead.
type row struct {
	id  pack.ID
	by  bucket.Asker
	end uint64 // of what was fetched
	in  *transfer.Row
}

func (r *row) close() {
	if r.in != nil {
		r.in.Close()
	}
	r.in = nil
}

// step fetches the next records of a row, and returns its new end, and its goal, which is the end if the row ends there.
func (a *Part) step(r *row, f *fetching) (end, goal uint64) {
	end, goal, err := a.tryStep(r, f)
	if err != nil { // those who wait ask for themselves
		end, goal = f.end, f.end
	}
	if r.end = end; end >= goal {
		r.close()
	}
	return end, goal
}

func (a *Part) tryStep(r *row, f *fetching) (end, goal uint64, err error) {
	ctx := a.as(f.by)
	d, err := a.Depot(ctx)
	if err != nil {
		return 0, 0, err
	}
	there, err := d.Extents(ctx, r.id, f.end, f.goal+a.window())
	last := f.end
	if len(there) > 0 {
		last = there[len(there)-1].To
	}
	if err == nil && last < f.goal {
		err = a.follow(ctx, d, r.id, f, last)
	}
	if goal = min(f.goal, last); err != nil || len(there) == 0 || there[0].From >= goal {
		return goal, goal, err
	}
	if r.in == nil || r.by != f.by || r.end != f.end {
		r.close()
		r.by, r.end, r.in = f.by, f.end, transfer.NewRow(ctx, d, r.id)
	}
	if err := a.ask(ctx, r, there, goal); err != nil {
		return 0, 0, err
	}
	end = f.end
	for step := (pack.Extent{From: max(f.end, there[0].From), To: there[0].From + rangeOf(a.Most())}); ; {
		step.To = min(step.To, goal)
		n, err := a.bringIn(ctx, r.id, []pack.Extent{step}, false, func(_ *depot.Depot, to *pack.Store) (pack.Imported, error) {
			return r.in.Import(ctx, to, step, last)
		})
		if err != nil {
			return 0, 0, err
		}
		if end = max(end, n.End); n.End > 0 {
			a.use(r.id, pack.Extent{From: n.First, To: n.End}, 0)
		}
		switch {
		case n.Cut == 0: // no record lies over the end of the step
			return max(end, step.To), goal, nil
		case n.Cut > goal && n.Cut-f.end > a.window():
			return end, end, nil
		case n.Cut > goal || end > f.end: // the row ends where a record does
			return end, max(goal, n.Cut), nil
		}
		step.To = n.Cut
	}
}

// ask has what the bucket has of a pack up to a goal sent ahead, but for what is here.
func (a *Part) ask(ctx context.Context, r *row, there []depot.Extent, goal uint64) error {
	var need []pack.Extent
	for _, e := range there {
		if e.From < goal {
			need = append(need, pack.Extent{From: e.From, To: min(e.To, goal)})
		}
	}
	to, err := a.scratch()
	if err != nil {
		return err
	}
	if here, err := to.Whole(ctx, r.id, r.in.New(need), math.MaxUint64); err == nil {
		need = pack.Subtract(need, here.Extents)
		if err := here.Close(); err != nil {
			return err
		}
	}
	r.in.Ask(need)
	return nil
}

// follow has the row of a pack go on in the next pack, if the bucket has no more of the first one.
func (a *Part) follow(ctx context.Context, d *depot.Depot, id pack.ID, f *fetching, last uint64) error {
	more, err := d.Extents(ctx, id, last, math.MaxInt64)
	if err != nil || len(more) > 0 {
		return err
	}
	next, rest := id.Next(), f.goal-last
	if more, err = d.Extents(ctx, next, 0, rest); err != nil || len(more) == 0 {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if g := a.fetching(next); rest > g.goal {
		g.by, g.goal, g.ahead = f.by, rest, max(g.ahead, f.ahead)
		a.start(next, g)
	}
	return nil
}

// went notes how a row went on, and wakes those who waited for what came.
func (a *Part) went(f, was *fetching, end, goal uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f.end != was.end || f.by != was.by {
		return // another row has begun
	}
	if f.end = end; f.goal == was.goal {
		f.goal = goal
	}
	f.goal = max(f.goal, goal)
	f.wants = slices.DeleteFunc(f.wants, func(w *wanted) bool {
		e := w.extent()
		came := !w.wrong && w.by == was.by && e.From >= was.end && e.To <= end
		if came {
			close(w.done)
		}
		return came
	})
}

// fetching returns what is fetched of a pack. The caller holds mu.
func (a *Part) fetching(id pack.ID) *fetching {
	f := a.wants[id]
	if f == nil {
		f = &fetching{}
		a.wants[id] = f
	}
	return f
}

// start has what is wanted of a pack fetched. The caller holds mu.
func (a *Part) start(id pack.ID, f *fetching) {
	if !f.busy && !a.closed {
		f.busy = true
		a.out.Go(func() { a.serve(id, f) })
	}
}
