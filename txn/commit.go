package txn

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// CommitOptions say what a commit records and how it deals with conflicts.
type CommitOptions struct {
	Message string
	// Author defaults to Options.Author.
	Author string
	// Time defaults to now.
	Time time.Time
	// Properties are free metadata.
	Properties map[string]string
	// AllowEmpty makes a commit even if nothing changed. Otherwise the head
	// is returned as it is.
	AllowEmpty bool

	op      string     // for the reflog; "" is "commit"
	parents []CommitID // beside the head, for merges
}

// committer makes commits. Sessions that want to commit while another commit
// waits for the disk form a group, which shares the syncs.
type committer struct {
	db *DB
	mu sync.Mutex // held while heads are compared and moved

	qmu     sync.Mutex
	queue   []*commitRequest
	leading bool
}

// commitRequest is a session waiting for its commit.
type commitRequest struct {
	ctx  context.Context
	s    *Session
	o    CommitOptions
	work tree.Root
	// wake receives true when this request is to lead the next group, false
	// when it is done.
	wake chan bool

	commit *Commit
	made   bool // commit is new, not the head that was there
	err    error
}

// maxCommitGroup bounds how many sessions share one batch.
const maxCommitGroup = 256

// Commit publishes everything that the session wrote as one new version of its
// branch, durable when it returns, and ends the session. If the branch moved
// since the session began, the changes of both are merged; where they touch,
// the error is a *[ConflictError] and the session stays open and unchanged. On
// any other error it stays open too. Once the commit is under way ctx does not
// stop it, so that its outcome is known; only after index.ErrFailed, when the
// disk did not say whether it took the commit, the next Open tells.
func (s *Session) Commit(ctx context.Context, o CommitOptions) (*Commit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	req := &commitRequest{ctx: context.WithoutCancel(ctx), s: s, o: o, wake: make(chan bool, 1)}
	if err := req.freeze(ctx); err != nil {
		return nil, err
	}
	s.db.commit.submit(req)
	s.mu.Lock()
	defer s.mu.Unlock()
	if req.err != nil {
		s.state = sessionOpen
		return nil, req.err
	}
	s.end()
	return req.commit, nil
}

// freeze flushes the session and keeps writers out of it.
func (r *commitRequest) freeze(ctx context.Context) error {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != sessionOpen {
		return ErrSessionClosed
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	s.state, r.work = sessionCommitting, s.work
	return nil
}

// submit returns when the request is done. The first to come leads: it commits
// everything that waits, then hands over to one that came in the meantime.
func (c *committer) submit(req *commitRequest) {
	c.qmu.Lock()
	c.queue = append(c.queue, req)
	lead := !c.leading
	c.leading = true
	c.qmu.Unlock()
	if !lead {
		lead = <-req.wake
	}
	if !lead {
		return
	}
	c.qmu.Lock()
	group := c.queue[:min(len(c.queue), maxCommitGroup)]
	c.queue = append([]*commitRequest(nil), c.queue[len(group):]...)
	c.qmu.Unlock()

	c.run(group)

	for _, r := range group {
		if r != req {
			r.wake <- false
		}
	}
	c.qmu.Lock()
	defer c.qmu.Unlock()
	if len(c.queue) == 0 {
		c.leading = false
		return
	}
	c.queue[0].wake <- true
}

// run commits a group: merge each onto a local head, write one synced batch,
// publish. A conflict concerns its own session only, a failed write all.
func (c *committer) run(group []*commitRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := make(overlays, len(group))
	for i, r := range group {
		g[i] = r.s.pages
	}
	p := plan{db: c.db, pages: g, space: c.db.space.with(g), local: map[CommitID]*Commit{}, heads: map[string]CommitID{}}
	for _, r := range group {
		r.err = p.add(r)
	}
	if err := p.write(group); err != nil {
		for _, r := range group {
			if r.err == nil {
				r.commit, r.err = nil, err
			}
		}
	}
}

// plan is a group of commits before it is written.
type plan struct {
	db    *DB
	pages overlays
	space *space
	local map[CommitID]*Commit // made by this group
	heads map[string]CommitID  // moved by this group
	moves []RefMove
}

func (p *plan) get(ctx context.Context, id CommitID) (*Commit, error) {
	if c := p.local[id]; c != nil {
		return c, nil
	}
	return p.db.Commit(ctx, id)
}

// add makes the commit of one request on top of the local head.
func (p *plan) add(r *commitRequest) error {
	s := r.s
	ref := headRef(s.branch)
	id, ok := p.heads[ref]
	if !ok {
		if id, ok = p.db.heads.get(ref); !ok {
			return fmt.Errorf("commit: branch %q: %w", s.branch, ErrNoRef)
		}
	}
	head, err := p.get(r.ctx, id)
	if err != nil {
		return err
	}
	root := r.work
	if head.ID != s.base {
		if root, err = p.merge(r, head); err != nil {
			return err
		}
	}
	if root == head.Root && !r.o.AllowEmpty && len(r.o.parents) == 0 {
		r.commit = head
		return nil
	}
	// The commit and the move of its branch happen at the same time, so that
	// REV@{time of a commit} is that commit.
	now := p.db.opts.Now().UTC()
	r.commit, r.made = p.newCommit(r, head, root, now), true
	p.local[r.commit.ID] = r.commit
	p.heads[ref] = r.commit.ID
	op := r.o.op
	if op == "" {
		op = "commit"
	}
	p.moves = append(p.moves, RefMove{
		Ref: ref, Old: head.ID, New: r.commit.ID,
		Time: now, Author: r.commit.Author, Op: op,
	})
	return nil
}

// merge brings the session's changes onto a head that is not its base.
func (p *plan) merge(r *commitRequest, head *Commit) (tree.Root, error) {
	s := r.s
	conflict := func(cs []Conflict) error {
		return &ConflictError{Branch: s.branch, Base: s.base, Head: head.ID, Conflicts: cs}
	}
	on, err := isAncestor(r.ctx, p.get, s.base, head.ID)
	if err != nil {
		return tree.Root{}, err
	}
	if !on {
		return tree.Root{}, conflict([]Conflict{{Kind: ConflictBranchRewound}})
	}
	root, conflicts, err := p.space.merge(r.ctx, s.start, head.Root, r.work, mergeOptions{guards: s.guards})
	if err != nil {
		return root, fmt.Errorf("commit: merge onto %s: %w", head.ID.Short(), err)
	}
	if len(conflicts) > 0 {
		return root, conflict(conflicts)
	}
	return root, nil
}

func (p *plan) newCommit(r *commitRequest, head *Commit, root tree.Root, now time.Time) *Commit {
	c := &Commit{
		Parents:    append([]CommitID{head.ID}, r.o.parents...),
		Generation: head.Generation + 1,
		Author:     r.o.Author,
		Time:       r.o.Time.UTC(),
		Message:    r.o.Message,
		Properties: r.o.Properties,
		Root:       root,
	}
	for _, id := range r.o.parents {
		// The other parents were read when the merge began, so they exist.
		if other, err := p.get(r.ctx, id); err == nil {
			c.Generation = max(c.Generation, other.Generation+1)
		}
	}
	if c.Author == "" {
		c.Author = p.db.opts.Author
	}
	if r.o.Time.IsZero() {
		c.Time = now
	}
	c.ID = CommitID(digest.Of(c.encode()))
	return c
}

// write makes the group durable: the new pages, commits, refs and reflog in one
// synced batch, after the packs that the pages point into.
func (p *plan) write(group []*commitRequest) error {
	ctx := context.Background()
	batch := p.db.idx.NewBatch()
	defer batch.Close()
	written := map[tree.Name]struct{}{}
	changed := false
	for _, r := range group {
		if r.err != nil {
			continue
		}
		changed = changed || r.made || r.s.stored
		if r.made {
			if err := p.pages.private(ctx, p.space.t, r.commit.Root, written, batch.PutPage); err != nil {
				return err
			}
			batch.Set(index.SpaceCommit, r.commit.ID[:], r.commit.encode())
		}
		if r.s.stored {
			batch.Delete(index.SpaceSession, r.s.id[:])
		}
	}
	if !changed {
		return nil
	}
	if err := p.db.syncAndCommit(ctx, batch, p.moves); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	for _, o := range p.pages {
		o.drop(written)
	}
	return nil
}

// syncAndCommit syncs the packs, records their ends in batch and commits it
// with the given ref moves. When it returns nil, everything is on disk. The
// lock keeps a later end from being overwritten by an earlier one.
func (db *DB) syncAndCommit(ctx context.Context, batch *index.Batch, moves []RefMove) error {
	db.ends.Lock()
	defer db.ends.Unlock()
	infos, err := db.packs.Sync(ctx)
	if err != nil {
		return err
	}
	for _, i := range infos {
		batch.Set(index.SpacePack, i.ID[:], encodePackInfo(i))
	}
	if err := db.commitRefs(batch, moves); err != nil {
		return err
	}
	db.packs.Recorded(infos)
	return nil
}
