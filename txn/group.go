package txn

import (
	"context"
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/overlay"
)

// committer makes commits. Sessions that want to commit while others wait for
// the disk form a group, which shares the syncs, and is planned on top of the
// group that is being written:
//
//	group 1   plan ─▶ write, sync ─▶ publish
//	group 2           plan … more arrive … ─▶ write, sync ─▶ publish
//	group 3                                   plan …
//
// So the processor and the disk work at the same time, and there is never more
// than one group that is written and one that is planned.
type committer struct {
	db *DB
	// mu is held while heads are compared and moved; see lock.
	mu     sync.Mutex
	flight *flight // the last group that went to be written, under mu

	qmu     sync.Mutex
	queue   []*commitRequest
	leading bool
	arrived chan struct{} // somebody came into the queue
}

// flight is a group that is being written.
type flight struct {
	plan *plan
	done chan struct{} // closed at the end
	err  error         // then: why nothing of it was written
}

// over reports whether the write has ended.
func (f *flight) over() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// maxCommitGroup bounds how many sessions share one batch.
const maxCommitGroup = 256

// lock keeps heads as they are, with no commit under way.
func (c *committer) lock() {
	c.mu.Lock()
	if c.flight != nil {
		<-c.flight.done
		c.flight = nil
	}
}

func (c *committer) unlock() { c.mu.Unlock() }

// submit returns when the request is done. The first request leads: it commits
// all waiting requests, and hands over to a request that came in the meantime.
func (c *committer) submit(req *commitRequest) {
	c.qmu.Lock()
	c.queue = append(c.queue, req)
	lead := !c.leading
	c.leading = true
	c.qmu.Unlock()
	if !lead {
		select {
		case c.arrived <- struct{}{}:
		default:
		}
		lead = <-req.wake
	}
	if lead {
		c.lead(req)
	}
}

// lead commits a group, of which req is the first.
func (c *committer) lead(req *commitRequest) {
	c.mu.Lock()
	p := c.gather()
	f := &flight{plan: p, done: make(chan struct{})}
	c.flight = f
	c.mu.Unlock()
	c.handOver()

	f.err = p.write()
	for _, r := range p.group {
		if f.err != nil && r.err == nil {
			r.commit, r.err = nil, f.err
		}
	}
	close(f.done)
	for _, r := range p.group {
		if r != req {
			r.wake <- false
		}
	}
}

// handOver makes the first of the queue lead the next group.
func (c *committer) handOver() {
	c.qmu.Lock()
	defer c.qmu.Unlock()
	if len(c.queue) == 0 {
		c.leading = false
		return
	}
	c.queue[0].wake <- true
}

// take returns those that wait, at most n.
func (c *committer) take(n int) []*commitRequest {
	c.qmu.Lock()
	defer c.qmu.Unlock()
	n = min(n, len(c.queue))
	group := c.queue[:n:n]
	c.queue = c.queue[n:]
	return group
}

// gather plans a group on top of the one that is being written, and returns when
// that one is. Meanwhile more come in. If nothing of that one was written, the
// group is planned anew. mu is held.
func (c *committer) gather() *plan {
	before := c.flight
	if before != nil && before.over() {
		before = nil // heads tell
	}
	p := c.plan(before)
	group := c.take(maxCommitGroup)
	stored := func(r *commitRequest) bool { _, any := r.s.fresh.size(); return any }
	if before == nil && slices.ContainsFunc(group, stored) {
		defer c.db.syncAhead()() // the disk has nothing else to do
	}
	p.addAll(group)
	for before != nil {
		arrived := c.arrived
		if len(p.group) == maxCommitGroup {
			arrived = nil
		}
		select {
		case <-arrived:
			p.take(c)
		case <-before.done:
			if before.err != nil {
				group := p.group
				p = c.plan(nil)
				p.addAll(group)
			}
			before = nil
		}
	}
	// Heads and the index tell from here on; a chain of all groups would not end.
	p.before, p.pages.before = nil, nil
	return p
}

// plan begins the plan of a group on top of the one before, if that is not nil.
func (c *committer) plan(before *flight) *plan {
	db := c.db
	p := &plan{
		db: db, pages: &groupPages{Group: overlay.Group{overlay.New(db.pages(), db.sessionBytes())}},
		failures: db.packFailures.Load(),
		local:    map[CommitID]*Commit{}, heads: map[string]CommitID{}, lines: map[string]*lineage{},
	}
	if before != nil {
		p.before = before.plan
		p.pages.before = before.plan.pages.Group
	}
	p.space = db.space.With(p.pages)
	return p
}

// take adds those that wait to the plan.
func (p *plan) take(c *committer) { p.addAll(c.take(maxCommitGroup - len(p.group))) }

func (p *plan) addAll(group []*commitRequest) {
	for _, r := range group {
		if !r.s.pages.Empty() {
			p.pages.Group = append(p.pages.Group, r.s.pages)
		}
		r.commit, r.made, r.pages = nil, false, nil
		r.err = p.add(r)
	}
	p.group = append(p.group, group...)
}

// groupPages is the page store of a commit group: it sees the private pages of
// every session in the group, and those of the group before, and puts new ones
// into the first.
type groupPages struct {
	overlay.Group
	before overlay.Group
}

var _ tree.Pages = (*groupPages)(nil)

func (g *groupPages) GetPage(ctx context.Context, name tree.Name) ([]byte, error) {
	if b := g.Own(name); b != nil {
		return b, nil
	}
	if b := g.before.Own(name); b != nil {
		return b, nil
	}
	return g.Group.GetPage(ctx, name)
}
