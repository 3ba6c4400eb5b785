package txn

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/history"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// CommitOptions say what a commit records and how it deals with conflicts.
type CommitOptions struct {
	Message string
	// Author defaults to Options.Author.
	Author string
	// Time defaults to now. It must be between 1678 and 2262.
	Time time.Time
	// Properties are free metadata.
	Properties map[string]string
	// AllowEmpty makes a commit even if nothing changed. Otherwise the head
	// is returned as it is.
	AllowEmpty bool
	// Choices decide conflicts of every kind but a rewound branch: the choice with the
	// longest path that a conflict is at or below, with any of its paths. A conflict
	// without a choice is refused. A choice for everything does not decide guards.
	// docs/design/conflicts.md lists what a choice does: of the side that loses, the change
	// that conflicts is undone, and all its other changes stay. Ours is what the branch
	// has, Theirs what comes to it: the session's changes, the other branch, the
	// commit that is repeated, the undoing of the one that is reverted.
	Choices []PathChoice
	// Decided, if not nil, is called for conflicts that Choices decided, perhaps several
	// times for one. Commits may wait for it: it must not use the database.
	Decided func(Conflict, Choice) `json:"-"`
	// Base is what [DB.Merge] compares both sides with; zero is their one best
	// common ancestor. ForceBase admits one that is no ancestor of both: what it has and
	// a side lacks is then undone. Others ignore them.
	Base      CommitID
	ForceBase bool
	// DryRun does everything but publish: the error tells the conflicts, the
	// session stays open, and the commit is returned that would have been made,
	// which cannot be opened.
	DryRun bool

	choose  func(Conflict) Choice // in place of Choices, in tests
	op      string                // for the reflog; "" is "commit"
	merge   bool                  // the changes are those of a merge, not a session's own
	parents []CommitID            // beside the head, for merges
}

// chooser returns the function that decides conflicts, nil to refuse them all.
func (o *CommitOptions) chooser() func(Conflict) Choice {
	if o.choose != nil {
		return o.choose
	}
	return chooser(o.Choices, o.Decided)
}

// commitRequest is a session waiting for its commit.
type commitRequest struct {
	ctx context.Context
	s   *Session
	o   CommitOptions
	// edits are all that the session wrote, if that is little; else nil and
	// work has it.
	edits []namespace.Edit
	work  tree.Root
	// wake receives true when this request is to lead the next group, false
	// when it is done.
	wake chan bool

	commit *Commit
	record []byte // of commit, if it was made
	made   bool   // commit is new, not the head that was there
	// pages are all that the commit may have made; nil if they are to be searched
	// for.
	pages []tree.Name
	err   error
}

// Commit publishes everything that the session wrote as one new version of its
// branch, durable when it returns unless Options.Durability says otherwise, and
// ends the session. If the branch moved since the session began, the changes of
// both are merged. Where both changed the same chunk, document, field or shape,
// to the same value or not, the error is a *[ConflictError] and the session stays
// open and unchanged; so no update is lost. No conflict are: that both removed the
// same node, document or field (to remove a chunk is to set it to the fill value,
// and conflicts), that both made the same group without attributes, and a put of the bytes
// that the base has, which is no change. What a session read is guarded by
// [Session.Guard] only. On any other error the session stays open too. Once the commit is under way ctx does not
// stop it, so that its outcome is known; only after index.ErrFailed, when the
// disk did not say whether it took the commit, the next Open tells.
func (s *Session) Commit(ctx context.Context, o CommitOptions) (*Commit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.home.commit(ctx, o)
}

func (s own) commit(ctx context.Context, o CommitOptions) (*Commit, error) {
	if err := catalog.CheckTime(o.Time); !o.Time.IsZero() && err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	req := &commitRequest{ctx: context.WithoutCancel(ctx), s: s.Session, o: o, wake: make(chan bool, 1)}
	if err := req.freeze(ctx); err != nil {
		return nil, err
	}
	if s.db.away == nil {
		s.db.commit.submit(req)
	} else {
		s.db.submitAway(ctx, req)
	}
	defer s.db.care.Checkpoints.MakeIfDue()
	s.changing.WaitLock()
	defer s.changing.Unlock()
	if req.err != nil || o.DryRun {
		s.setState(sessionOpen)
		return req.commit, req.err
	}
	s.end()
	return req.commit, nil
}

// maxPoints is how many edits a session may have for them to be made on the
// head one by one. More are flushed by the session itself, beside others.
const maxPoints = 256

// freeze keeps writers out of the session. The leader makes few edits
// directly on the head, once; more edits are flushed here, beside other sessions.
func (r *commitRequest) freeze(ctx context.Context) error {
	s := r.s
	if err := s.lockOpen(ctx); err != nil {
		return err
	}
	defer s.changing.Unlock()
	if s.work == s.start && 0 < len(s.buf) && len(s.buf) <= maxPoints && len(s.guards) == 0 {
		r.edits = s.buffered()
	} else {
		if n, _ := s.fresh.size(); n >= aheadBytes {
			defer s.db.syncAhead()()
		}
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	r.work = s.work
	s.setState(sessionCommitting)
	return nil
}

// setState changes the state. The caller holds changing.
func (s *Session) setState(to sessionState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = to
}

// aheadBytes are so many that their sync takes longer than to begin another one.
const aheadBytes = 1 << 20

// syncAhead begins to sync the packs while pages are made, so that the sync
// before the commit has little left to do; that one tells what went wrong. What
// it returns waits for the end.
func (db *DB) syncAhead() (wait func()) {
	if db.delayed() {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = db.packs.Sync(context.Background())
	}()
	return func() { <-done }
}

// plan is a group of commits before it is written.
type plan struct {
	db     *DB
	before *plan // of the group that is written before; or nil
	group  []*commitRequest
	pages  *groupPages
	space  *namespace.Space
	local  map[CommitID]*Commit // made by this group
	heads  map[string]CommitID  // moved by this group
	lines  map[string]*lineage  // of the heads, by ref
	moves  []RefMove
	// failures is the count under which merged documents are stored.
	failures uint64
}

func (p *plan) get(ctx context.Context, id CommitID) (*Commit, error) {
	for q := p; q != nil; q = q.before {
		if c := q.local[id]; c != nil {
			return c, nil
		}
	}
	return p.db.Lookup(ctx, id)
}

// head returns what a ref points at after the commits that were planned so far.
func (p *plan) head(ref string) (CommitID, bool) {
	for q := p; q != nil; q = q.before {
		if id, ok := q.heads[ref]; ok {
			return id, true
		}
	}
	return p.db.heads.get(ref)
}

// add makes the commit of one request on top of the local head.
func (p *plan) add(r *commitRequest) error {
	s := r.s
	if err := s.fresh.check(p.failures); err != nil {
		return err
	}
	ref := catalog.HeadRef(s.branch)
	id, ok := p.head(ref)
	if !ok {
		return fmt.Errorf("commit: branch %q: %w", s.branch, ErrNoRef)
	}
	head, err := p.get(r.ctx, id)
	if err != nil {
		return err
	}
	root, err := p.root(r, head)
	if err != nil {
		return err
	}
	if root == head.Root && !r.o.AllowEmpty && len(r.o.parents) == 0 {
		r.commit = head
		return nil
	}
	// The commit and the move of its branch happen at the same time, so that
	// REV@{time of a commit} is that commit.
	now := p.db.opts.Now().UTC()
	r.commit = p.newCommit(r, head, root, now)
	// Others of the group go on.
	forward := func() (bool, error) { return true, nil }
	if err := p.db.heads.protection(ref).Allow(RefMove{Ref: ref, Old: head.ID, New: r.commit.ID}, forward); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if r.o.DryRun {
		return nil
	}
	r.made = true
	p.local[r.commit.ID] = r.commit
	p.heads[ref] = r.commit.ID
	op := r.o.op
	if op == "" {
		op = "commit"
	}
	p.moves = append(p.moves, RefMove{
		Ref: ref, Old: head.ID, New: r.commit.ID,
		Time: now, Author: r.commit.Author, Op: op, Session: s.id,
	})
	return nil
}

// root returns the head's root with the session's changes.
func (p *plan) root(r *commitRequest, head *Commit) (root tree.Root, err error) {
	s := r.s
	onBase := head.ID == s.base && !s.forked
	if onBase && r.edits == nil {
		return r.work, nil
	}
	if !onBase {
		on, err := p.contains(r.ctx, head, s)
		if err != nil {
			return root, err
		}
		if !on {
			return root, p.conflict(r, head, []Conflict{{Kind: conflictBranchRewound}})
		}
	}
	if r.edits == nil {
		return p.merge(r, head, r.work)
	}
	if root, ok, err := p.make(r, head, onBase); err != nil || ok {
		return root, err
	}
	work, err := p.space.Apply(r.ctx, s.start, r.edits)
	if err != nil {
		return work, err
	}
	return p.merge(r, head, work)
}

// make makes the few edits of a session on the head and notes the pages that
// come of it. ok is false if it takes a merge.
func (p *plan) make(r *commitRequest, head *Commit, onBase bool) (root tree.Root, ok bool, err error) {
	first := p.pages.Group[0]
	from := first.Log()
	if ok = onBase; ok {
		root, err = p.space.Apply(r.ctx, head.Root, r.edits)
	} else {
		root, ok, err = p.space.ApplyOnto(r.ctx, r.s.start, head.Root, r.edits)
	}
	pages := first.Logged(from)
	// Edits of node documents may take steps whose pages nothing names.
	if ok && !slices.ContainsFunc(r.edits, p.space.IsNodeEdit) {
		r.pages = pages
	}
	return root, ok, err
}

// merge brings the session's changes onto a head that is not its base.
func (p *plan) merge(r *commitRequest, head *Commit, work tree.Root) (tree.Root, error) {
	s := r.s
	root, conflicts, err := p.space.Merge(r.ctx, s.start, head.Root, work, namespace.MergeOptions{
		Strict: !r.o.merge, // whether the head moved makes no difference to a merge
		Guards: s.guarded(), Choose: r.o.chooser(),
	})
	if err != nil {
		return root, fmt.Errorf("commit: merge onto %s: %w", head.ID.Short(), err)
	}
	if len(conflicts) > 0 {
		return root, p.conflict(r, head, conflicts)
	}
	return root, nil
}

func (p *plan) conflict(r *commitRequest, head *Commit, cs []Conflict) error {
	return &ConflictError{Branch: r.s.branch, Base: r.s.base, Head: head.ID, Conflicts: cs}
}

// lineage is the line of first parents of a head, as far as it was read.
type lineage struct {
	seen map[CommitID]struct{}
	last *Commit
}

// contains reports whether the base of a session is the head or an ancestor.
// The line of first parents is read once for all sessions of the group.
func (p *plan) contains(ctx context.Context, head *Commit, s *Session) (bool, error) {
	ref := catalog.HeadRef(s.branch)
	l := p.lines[ref]
	if l == nil {
		l = &lineage{map[CommitID]struct{}{head.ID: {}}, head}
		p.lines[ref] = l
	}
	if _, ok := l.seen[s.base]; ok {
		return true, nil
	}
	base, err := p.get(ctx, s.base)
	if err != nil {
		return false, err
	}
	for l.last.Generation > base.Generation && len(l.last.Parents) > 0 {
		if l.last, err = p.get(ctx, l.last.Parents[0]); err != nil {
			return false, err
		}
		l.seen[l.last.ID] = struct{}{}
	}
	if _, ok := l.seen[s.base]; ok {
		return true, nil
	}
	return history.IsAncestor(ctx, p.get, s.base, head.ID)
}

func (p *plan) newCommit(r *commitRequest, head *Commit, root tree.Root, now time.Time) *Commit {
	c := &Commit{
		Parents:    append([]CommitID{head.ID}, r.o.parents...),
		Generation: head.Generation + 1,
		Author:     r.o.Author,
		Time:       r.o.Time.UTC(),
		Message:    r.o.Message,
		Properties: maps.Clone(r.o.Properties),
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
	r.record = catalog.SealCommit(c)
	return c
}

// write makes the group durable: the new pages, commits, refs and reflog in one
// synced batch, after the packs that the pages point into.
func (p *plan) write() error {
	ctx := context.Background()
	change := newChange(p.failures)
	change.moves, change.ahead = p.moves, true
	written := map[tree.Name]struct{}{}
	for _, r := range p.group {
		if r.err != nil {
			continue
		}
		if r.made {
			if err := p.newPages(ctx, r, written, change.putPage); err != nil {
				return err
			}
			change.commits[r.commit.ID] = r.record
			if r.s.logged.size > 0 && !r.s.stored {
				change.ended = append(change.ended, r.s.id)
			}
		}
		if r.s.stored && !r.o.DryRun {
			if change.extra == nil {
				change.extra = p.db.idx.NewBatch()
				defer change.extra.Close()
			}
			catalog.Sessions.Delete(change.extra, r.s.id)
		}
	}
	if len(change.commits) == 0 && change.extra == nil {
		return nil
	}
	if err := p.db.publish(ctx, change); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	spilled := int64(0)
	for _, o := range p.pages.Group {
		o.Drop(written)
		spilled += o.CountSpilled()
	}
	p.db.care.Checkpoints.Counted(0, spilled)
	if spilled >= flushSpilled && !p.db.care.Checkpoints.Due() { // else that flushes
		p.db.idx.FlushSoon()
	}
	for id, record := range change.commits {
		if c, err := catalog.DecodeCommit(id, record); err == nil {
			p.db.commits.Load().Put(id, c)
		}
	}
	return nil
}

// newPages yields the pages of a commit that are in memory only, but for those
// in written, and notes them there.
func (p *plan) newPages(ctx context.Context, r *commitRequest, written map[tree.Name]struct{}, put func(tree.Name, []byte)) error {
	if r.pages == nil {
		return p.pages.Private(ctx, p.space.Tree, r.commit.Root, written, put)
	}
	for _, name := range r.pages {
		if _, ok := written[name]; ok {
			continue
		}
		if page := p.pages.Own(name); page != nil { // else it was spilled
			written[name] = struct{}{}
			put(name, page)
		}
	}
	return nil
}

// flushSpilled is how much a commit may have written to the log before it, as
// an import does, without the log being cut short after it: the next Open would
// read that again if this process ends without closing the database.
const flushSpilled = 16 << 20
