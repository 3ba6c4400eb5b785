package txn

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// pageSet is a set of page names, with a number for each. 28 to 56 bytes a
// name. Safe for concurrent use. Names are spread by their first bits, so that
// a part holds those of one range.
type pageSet struct {
	parts [pageParts]struct {
		mu sync.Mutex
		m  map[tree.Name]uint32
	}
}

const (
	pageParts    = 64
	namesPerPart = 256 / pageParts // first bytes
)

func newPageSet() *pageSet {
	s := &pageSet{}
	for i := range s.parts {
		s.parts[i].m = map[tree.Name]uint32{}
	}
	return s
}

// add notes a name and reports whether it is new; if not, it keeps its number.
func (s *pageSet) add(name tree.Name, n uint32) bool {
	p := &s.parts[name[0]/namesPerPart]
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.m[name]; ok {
		return false
	}
	p.m[name] = n
	return true
}

// take returns the number of a name, and sets it to 0.
func (s *pageSet) take(name tree.Name) (n uint32, ok bool) {
	p := &s.parts[name[0]/namesPerPart]
	p.mu.Lock()
	defer p.mu.Unlock()
	if n, ok = p.m[name]; n != 0 {
		p.m[name] = 0
	}
	return n, ok
}

// mark visits every page below the roots once and collects the ranges of their
// payloads. Pages that lead to others are read at once, by name. Leaves with
// payloads, which are nearly all pages, are only noted, and read in the order in
// which the index keeps them. Pages that only an open session may have come
// last, and are read at once.
func (g *collector) mark(ctx context.Context) error {
	p := progress{g: g, phase: "mark"}
	n := 0
	for _, stage := range [][]gcRoot{g.pins, g.kept, g.open} {
		n += len(stage)
		g.roots = append(g.roots, stage...)
		if err := g.markFrom(ctx, n-len(stage), n, &p); err != nil {
			return err
		}
	}
	defer g.snap.Close() // what is deleted takes no space in it
	return g.scan(ctx, g.snap, &p)
}

// markFrom runs the marking of some roots on all processors.
func (g *collector) markFrom(ctx context.Context, from, to int, p *progress) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m := &marker{g: g, ctx: ctx, p: p}
	m.cond.L = &m.mu
	for i := from; i < to; i++ {
		m.push(g.roots[i].root, uint32(i))
	}
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			if err := m.work(); err != nil {
				cancel(err)
				m.wake()
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// marker is a shared stack of pages that were marked and are still to be read.
// Depth first, so that it stays small.
type marker struct {
	g   *collector
	ctx context.Context

	mu    sync.Mutex
	cond  sync.Cond
	stack []markItem
	busy  int
	p     *progress
}

type markItem struct {
	root tree.Root
	from uint32 // the number of a root of the collector
}

// push marks a page, and keeps it to be read if there may be something to
// find. mu is held, or no worker runs yet.
func (m *marker) push(root tree.Root, from uint32) {
	if root.Empty() {
		return
	}
	payloads := root.Flags&tree.HasNative != 0
	leads := root.Height > 0 || root.Flags&tree.HasChild != 0
	later := uint32(0)
	if payloads && !leads && m.g.roots[from].ended == nil {
		later = from + 1
	}
	if !m.g.seen.add(root.Name, later) {
		return
	}
	m.p.step(1)
	if leads || payloads && later == 0 {
		m.stack = append(m.stack, markItem{root, from})
	}
}

// pop returns the next page; ok is false when there is nothing more to do.
func (m *marker) pop() (it markItem, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.stack) == 0 && m.busy > 0 && m.ctx.Err() == nil {
		m.cond.Wait()
	}
	if len(m.stack) == 0 || m.ctx.Err() != nil {
		m.cond.Broadcast()
		return it, false
	}
	n := len(m.stack) - 1
	it = m.stack[n]
	m.stack = m.stack[:n]
	m.busy++
	return it, true
}

// done ends the work on a page with what it names.
func (m *marker) done(it markItem, pages []tree.Root) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy--
	for _, p := range pages {
		m.push(p, it.from)
	}
	if len(m.stack) > 0 || m.busy == 0 {
		m.cond.Broadcast()
	}
}

func (m *marker) wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cond.Broadcast()
}

func (m *marker) work() error {
	found := newPayloadFinder(m.g)
	defer found.flush()
	for {
		it, ok := m.pop()
		if !ok {
			return nil
		}
		from := &m.g.roots[it.from]
		err := from.t.Links(m.ctx, it.root, &found.links)
		if errors.Is(err, tree.ErrMissing) && from.ended != nil && from.ended() {
			err = nil // an aborted session took its pages with it
		}
		found.payloads(it.from)
		m.done(it, found.links.Pages)
		if err != nil {
			return err
		}
	}
}

// payloadFinder collects what one worker finds.
type payloadFinder struct {
	g     *collector
	links tree.Links
	live  *localRanges
	fixed map[pack.ID]bool
}

func newPayloadFinder(g *collector) *payloadFinder {
	return &payloadFinder{g: g, live: g.live.local(), fixed: map[pack.ID]bool{}}
}

// payloads takes those of the page that was read last, which was found from a
// root.
func (f *payloadFinder) payloads(from uint32) {
	for i := range f.links.Payloads {
		p := &f.links.Payloads[i]
		f.live.add(p)
		if int(from) < len(f.g.pins) {
			f.fixed[pack.ID(p.Pack)] = true
		}
	}
}

// flush hands over what is left.
func (f *payloadFinder) flush() {
	f.live.flush()
	f.g.mu.Lock()
	defer f.g.mu.Unlock()
	for id := range f.fixed {
		f.g.fixed[id] = true
	}
}
