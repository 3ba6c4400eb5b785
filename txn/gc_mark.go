package txn

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// nameSet is a set of page names, 32 to 48 bytes each. Safe for concurrent use.
type nameSet struct {
	shards [64]struct {
		mu sync.Mutex
		m  map[tree.Name]struct{}
	}
}

func newNameSet() *nameSet {
	s := &nameSet{}
	for i := range s.shards {
		s.shards[i].m = map[tree.Name]struct{}{}
	}
	return s
}

// add reports whether the name is new.
func (s *nameSet) add(name tree.Name) bool {
	sh := &s.shards[name[0]%64]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	n := len(sh.m)
	sh.m[name] = struct{}{}
	return len(sh.m) > n
}

func (s *nameSet) has(name tree.Name) bool {
	sh := &s.shards[name[0]%64]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	_, ok := sh.m[name]
	return ok
}

// mark visits every page below the roots once and collects the ranges of their
// payloads. Pins go first, so that all of their packs are known.
func (g *collector) mark(ctx context.Context) error {
	p := progress{g: g, phase: "mark"}
	if err := g.markFrom(ctx, g.pins, &p); err != nil {
		return err
	}
	g.fixed = map[pack.ID]bool{}
	for id := range g.live.packs {
		g.fixed[pack.ID(id)] = true
	}
	return g.markFrom(ctx, g.roots, &p)
}

// markFrom runs the marking of some roots on all processors.
func (g *collector) markFrom(ctx context.Context, roots []gcRoot, p *progress) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m := &marker{g: g, ctx: ctx, p: p}
	m.cond.L = &m.mu
	for i := range roots {
		m.push(roots[i].root, &roots[i])
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
	from *gcRoot
}

// push marks a page, and keeps it to be read if there may be something to
// find. mu is held, or no worker runs yet.
func (m *marker) push(root tree.Root, from *gcRoot) {
	if root.Empty() || !m.g.seen.add(root.Name) {
		return
	}
	m.p.step(1)
	if root.Height > 0 || root.Flags&(tree.HasNative|tree.HasChild) != 0 {
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
	local := newRanges()
	defer func() { m.g.live.merge(local) }()
	var l tree.Links
	for {
		it, ok := m.pop()
		if !ok {
			return nil
		}
		err := it.from.t.Links(m.ctx, it.root, &l)
		if errors.Is(err, tree.ErrMissing) && it.from.ended != nil && it.from.ended() {
			err = nil // an aborted session took its pages with it
		}
		for _, p := range l.Payloads {
			local.add(p)
		}
		if local.n > maxLocalRanges {
			m.g.live.merge(local)
			local = newRanges()
		}
		m.done(it, l.Pages)
		if err != nil {
			return err
		}
	}
}
