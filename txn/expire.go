package txn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/txn/history"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// Expiry lets old versions go. It only marks commits, in one synced batch; the
// collector (gc.go) removes what then is reachable from no version. Records of
// commits stay, so that the log and the chain of hashes hold.

// ErrExpired means that a version was removed by [DB.Expire]. It is ErrNoRef too.
var ErrExpired = catalog.ErrExpired

// ErrShallow means that a shallow copy has no content of a version; a pull with
// [TransferOptions] Deepen or Unshallow fetches it. It is ErrExpired too.
var ErrShallow error = catalog.ErrShallow

// ExpireOptions say which versions may go. At least one of Before and Keep must
// be set.
type ExpireOptions struct {
	// Before is the age limit: versions made since then stay, and so does what
	// a branch or tag pointed at since then, as the reflog tells. The zero time sets no limit.
	// The order of a reflog counts more than its times: a move that follows one made
	// since then stays, although the clock of the machine had gone back.
	Before time.Time
	// Keep is how many of the newest versions of each branch stay, and how many
	// entries of each reflog.
	Keep int
	// Branches limits what may go to the versions of these branches; what other
	// refs reach stays. nil is everything, also what no ref reaches.
	Branches []string
	// DropBases lets merge bases go too. Otherwise the best common ancestors of all
	// branches and tags stay, so that the branches can still be merged and rebased.
	DropBases bool
	// DryRun only counts.
	DryRun bool
}

// ExpireReport says what expiry did, or would do.
type ExpireReport struct {
	// Expired is how many commits were marked, Kept how many stay, Earlier how
	// many had been marked before.
	Expired, Kept, Earlier int64
	// Reflog is how many entries of reflogs were dropped.
	Reflog int64
	// Holders are what keeps the versions that stay, each counted for the first
	// of its reasons: branches and tags, reflogs, sessions, the age limit. A merge
	// base is a holder of its own, named by its id.
	Holders []Holder
}

// Expire marks the versions that the options let go. Heads, tags, kept versions, bases
// of sessions and what their reflogs still name always stay, and so do the merge bases
// of branches and tags unless DropBases is set; a snapshot that is open reads on. With both limits, what either keeps stays.
func (db *DB) Expire(ctx context.Context, o ExpireOptions) (*ExpireReport, error) {
	defer db.letGo() // also after a lost answer
	return asked(ctx, db, "expire", o, db.expire)
}

func (db *DB) expire(ctx context.Context, o ExpireOptions) (*ExpireReport, error) {
	check := db.writable
	if o.DryRun {
		check = db.check
	}
	if err := check(); err != nil {
		return nil, err
	}
	if o.Before.IsZero() && o.Keep <= 0 {
		return nil, errors.New("expire: neither an age nor a number is given")
	}
	e := newExpiry(db, o)
	err := e.look(ctx)
	if err == nil {
		err = e.expire(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("expire: %w", err)
	}
	return e.r, nil
}

// expiry decides which commits go. It reads the history beside commits, and then
// with commits locked only what came since:
//
//	refs, reflogs, sessions ─▶ keep ─▶ commits ─▶ mark      commits go on
//	refs and reflogs that moved, sessions ─▶ recheck ─▶ batch    locked
//
// What came since can only keep more: nothing is added to mark, and commits that
// were made meanwhile are not in it.
type expiry struct {
	db   *DB
	o    ExpireOptions
	r    *ExpireReport
	keep map[CommitID]holderID // and the first reason
	held map[holderID]int64
	// only are the commits that may go; nil is all.
	only map[CommitID]struct{}
	// stays are commits that refs reach whose versions may not go. With a commit
	// all its ancestors are in it, so each is read once for all refs; as in only,
	// after refs.
	stays map[CommitID]struct{}
	tips  map[string]CommitID // refs that were looked at, and where they pointed
	moved bool                // some are new or moved since bases looked at them
	seqs  map[string]uint64   // of reflogs: number after the newest that was looked at
	drop  []catalog.MoveKey   // of the reflog
	mark  []CommitID
}

func newExpiry(db *DB, o ExpireOptions) *expiry {
	e := &expiry{
		db: db, o: o, r: &ExpireReport{},
		keep: map[CommitID]holderID{}, held: map[holderID]int64{},
		tips: map[string]CommitID{}, stays: map[CommitID]struct{}{}, seqs: map[string]uint64{},
	}
	if o.Branches != nil {
		e.only = map[CommitID]struct{}{}
	}
	return e
}

// look decides which commits may go, beside others that commit.
func (e *expiry) look(ctx context.Context) error {
	if err := e.db.writePending(ctx); err != nil {
		return err
	}
	for _, b := range e.o.Branches {
		if _, ok := e.db.heads.get(catalog.HeadRef(orMain(b))); !ok {
			return fmt.Errorf("branch %q: %w", orMain(b), ErrNoRef)
		}
	}
	return care.InTurn(ctx, e.refs, e.bases, e.reflogs, e.openAndStored, e.commits)
}

// expire lets go what nothing came to hold since look. Refs stand still, so that
// nothing comes to point at what is marked.
func (e *expiry) expire(ctx context.Context) error {
	e.db.commit.lock()
	defer e.db.commit.unlock()
	if err := e.db.writePending(ctx); err != nil {
		return err
	}
	if err := care.InTurn(ctx, e.refs, e.bases, e.moves, e.openAndStored); err != nil {
		return err
	}
	e.recheck()
	e.r.Expired, e.r.Reflog = int64(len(e.mark)), int64(len(e.drop))
	for by, n := range e.held {
		e.r.Holders = append(e.r.Holders, Holder{Kind: by.kind, Name: by.name, Versions: n})
	}
	slices.SortFunc(e.r.Holders, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Versions, a.Versions), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	if e.o.DryRun || len(e.mark)+len(e.drop) == 0 {
		return nil
	}
	batch := e.db.idx.NewBatch()
	defer batch.Close()
	batch.MakesRoom()
	now := e.db.opts.Now()
	for _, id := range e.mark {
		catalog.Expired.Put(batch, catalog.Expiry{Commit: id, Time: now})
	}
	for _, k := range e.drop {
		catalog.Moves.Delete(batch, k)
	}
	// Code that opens a version reads its mark and registers under this lock.
	if err := e.db.keeping.Lock(ctx); err != nil {
		return err
	}
	defer e.db.keeping.Unlock()
	defer e.db.current.clear() // the batch may be stored although Commit fails
	return batch.Commit(true)
}

// selected reports whether versions of a ref may go.
func (e *expiry) selected(ref string) bool {
	return e.o.Branches == nil || slices.ContainsFunc(e.o.Branches, func(b string) bool { return catalog.HeadRef(orMain(b)) == ref })
}

// refs decides about the versions that refs reach, of those that are new or moved
// since it was called last.
func (e *expiry) refs(ctx context.Context) error {
	for _, ref := range e.db.heads.list("") {
		if was, ok := e.tips[ref.Name]; ok && was == ref.Commit {
			continue
		}
		e.tips[ref.Name], e.moved = ref.Commit, true
		by := holderOf(ref.Name)
		e.hold(ref.Commit, by)
		keep := 0 // how many stay
		if catalog.IsHead(ref.Name) {
			keep = e.o.Keep
		}
		var err error
		switch {
		case !e.selected(ref.Name):
			err = e.reach(ctx, ref.Commit, e.stays, func(c *Commit) bool { e.hold(c.ID, by); return false })
		case e.only != nil || keep > 1:
			err = e.reach(ctx, ref.Commit, e.only, func(c *Commit) bool {
				if keep > 0 {
					e.hold(c.ID, by)
				}
				keep--
				return keep > 0
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bases holds the merge bases of all refs, if a ref is new or moved since it was called
// last.
func (e *expiry) bases(ctx context.Context) error {
	if e.o.DropBases || !e.moved {
		return nil
	}
	e.moved = false
	bases, err := e.db.mergeBases(ctx, e.db.heads.list(""))
	for _, id := range bases {
		e.hold(id, holderID{HolderBase, id.Short()})
	}
	return err
}

// mergeBases returns the best common ancestors of all pairs of refs.
func (db *DB) mergeBases(ctx context.Context, refs []Ref) ([]CommitID, error) {
	tips := make([]CommitID, len(refs))
	for i, r := range refs {
		tips[i] = r.Commit
	}
	return history.MergeBases(ctx, db.Lookup, tips)
}

// reach calls fn with a commit and its ancestors, newest first, and puts them into
// seen. It leaves out what is below a commit in seen, unless fn wants more. With
// seen nil it goes on only as long as fn does.
func (e *expiry) reach(ctx context.Context, from CommitID, seen map[CommitID]struct{}, fn func(*Commit) bool) error {
	follow := true
	for c, err := range history.Ancestors(ctx, e.db.Lookup, []CommitID{from}, func(*Commit) bool { return follow }) {
		if err != nil {
			return err
		}
		_, was := seen[c.ID]
		if seen != nil {
			seen[c.ID] = struct{}{}
		}
		more := fn(c)
		if seen == nil && !more {
			return nil
		}
		follow = more || !was
	}
	return nil
}

// reflogs decides about the entries of all reflogs, newest first. The oldest entries of
// a reflog are dropped, up to the first one that stays.
func (e *expiry) reflogs(ctx context.Context) error {
	last, n := "", 0
	var old []RefMove // those that are dropped unless an older one stays
	drop := func() {
		for _, m := range old {
			e.drop = append(e.drop, catalog.MoveKey{Ref: m.Ref, Seq: m.Seq})
		}
		old = old[:0]
	}
	for m, err := range catalog.MovesBackwards(e.db.idx) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if m.Ref != last {
			drop()
			last, n = m.Ref, 0
			e.seqs[m.Ref] = m.Seq + 1
		}
		_, exists := e.db.heads.get(m.Ref)
		selected := e.selected(m.Ref)
		by := holderID{HolderReflog, holderOf(m.Ref).name}
		switch {
		case !selected || !e.o.Before.IsZero() && !m.Time.Before(e.o.Before):
			for _, m := range append(old, m) {
				e.hold(m.Old, by)
				e.hold(m.New, by)
			}
			old = old[:0]
		case n == 0 && exists || n < e.o.Keep:
			e.hold(m.New, by)
		default:
			old = append(old, m)
		}
		if selected && e.only != nil {
			e.only[m.Old], e.only[m.New] = struct{}{}, struct{}{}
		}
		n++
	}
	drop()
	return nil
}

// moves keeps what reflogs name since reflogs looked at them.
func (e *expiry) moves(ctx context.Context) error {
	for ref, err := range catalog.LoggedRefs(e.db.idx) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		by := holderID{HolderReflog, holderOf(ref).name}
		for m, err := range catalog.MovesOf(e.db.idx, ref, e.seqs[ref], false) {
			if err != nil {
				return err
			}
			e.hold(m.Old, by)
			e.hold(m.New, by)
		}
	}
	return nil
}

func (e *expiry) openAndStored(ctx context.Context) error {
	for _, s := range e.db.openSessions() {
		e.hold(s.Info().Base, holderID{HolderSession, s.id.String()})
	}
	for p, err := range catalog.Pins.All(e.db.idx) {
		if err != nil {
			return err
		}
		e.hold(p.Commit, holderID{HolderKept, p.Name})
	}
	// One that is open and has moved on may be closed, and resumed as it was stored.
	stored, err := e.db.storedSessions(ctx)
	if err != nil {
		return err
	}
	for id, s := range stored {
		e.hold(s.Base, holderID{HolderSession, id.String()})
	}
	return nil
}

func (e *expiry) commits(ctx context.Context) error {
	for rec, err := range catalog.StoredCommits(ctx, e.db.idx, nil) {
		if err != nil {
			return err
		}
		marked, _, err := e.db.home.expired(ctx, rec.ID)
		if err != nil {
			return err
		}
		if marked {
			e.r.Earlier++
			continue
		}
		if kept, err := e.kept(rec.ID, rec.Value); err != nil {
			return err
		} else if kept {
			e.r.Kept++
			continue
		}
		e.mark = append(e.mark, rec.ID)
	}
	return nil
}

// recheck takes out of mark what is held by now.
func (e *expiry) recheck() {
	e.mark = slices.DeleteFunc(e.mark, func(id CommitID) bool {
		by, ok := e.keep[id]
		if ok {
			e.held[by]++
			e.r.Kept++
		}
		return ok
	})
}

func (e *expiry) kept(id CommitID, rec []byte) (bool, error) {
	if by, ok := e.keep[id]; ok {
		e.held[by]++
		return true, nil
	}
	if e.only != nil {
		if _, ok := e.only[id]; !ok {
			e.held[holderID{HolderHistory, ""}]++
			return true, nil
		}
	}
	if e.o.Before.IsZero() {
		return false, nil
	}
	c, err := catalog.DecodeCommit(id, rec)
	if err != nil {
		return true, err
	}
	if c.Time.Before(e.o.Before) {
		return false, nil
	}
	e.held[holderID{HolderAge, ""}]++
	return true, nil
}

// hold notes that a commit stays, and why, unless something else keeps it.
func (e *expiry) hold(id CommitID, by holderID) {
	if _, ok := e.keep[id]; !ok {
		e.keep[id] = by
	}
}

// version reads a commit whose content is wanted: one that has expired is an
// ErrExpired.
func (db *DB) version(ctx context.Context, id CommitID) (*Commit, error) {
	c, err := db.Lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	gone, at, err := db.home.gone(ctx, id)
	switch {
	case err != nil || !gone:
	case at.Equal(catalog.NotCopied):
		err = fmt.Errorf("commit %s: %w", id.Short(), ErrShallow)
	default:
		err = fmt.Errorf("commit %s: %w on %s", id.Short(), ErrExpired, at.Format(time.DateOnly))
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// currentVersions remembers versions that were looked up and had not expired, so that
// opening one again does not read the index. The zero value is ready.
type currentVersions struct {
	mu  sync.Mutex
	age uint64 // counts calls of clear
	ids map[CommitID]struct{}
}

// maxCurrent bounds the versions that are remembered.
const maxCurrent = 4096

// has reports whether a version is remembered, and the age for add.
func (c *currentVersions) has(id CommitID) (ok bool, age uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok = c.ids[id]
	return ok, c.age
}

// add remembers a version that was looked up at an age, unless versions have expired
// since.
func (c *currentVersions) add(id CommitID, age uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.age != age {
		return
	}
	if c.ids == nil || len(c.ids) >= maxCurrent {
		c.ids = map[CommitID]struct{}{}
	}
	c.ids[id] = struct{}{}
}

// clear forgets all versions: some have expired.
func (c *currentVersions) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.age++
	c.ids = nil
}

// Expired reports whether a version was let go by [DB.Expire]: its record is
// there, its content is not.
func (db *DB) Expired(ctx context.Context, id CommitID) (bool, error) {
	if err := db.check(); err != nil {
		return false, err
	}
	gone, _, err := db.home.expired(ctx, id)
	return gone, err
}
