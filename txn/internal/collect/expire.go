package collect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/txn/history"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// Expiry lets old versions go. It only marks commits, in one synced batch; the
// collector removes what then is reachable from no version. Records of
// commits stay, so that the log and the chain of hashes hold.

// ExpireOptions say which versions may go. At least one of Before, Keep and Policy must
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
	// Policy keeps further versions of each branch. It keeps no entries of reflogs but the newest.
	Policy KeepPolicy
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

// Expire marks the versions that the options let go.
func Expire(ctx context.Context, p *care.Parts, core Core, o ExpireOptions) (*ExpireReport, error) {
	if o.Before.IsZero() && o.Keep <= 0 && o.Policy == (KeepPolicy{}) {
		return nil, errors.New("expire: neither an age nor a number nor a policy is given")
	}
	e := &expiry{
		Parts: p, core: core, o: o, r: &ExpireReport{},
		keep: map[catalog.CommitID]HolderID{}, held: map[HolderID]int64{},
		tips: map[string]catalog.CommitID{}, stays: map[catalog.CommitID]struct{}{}, seqs: map[string]uint64{},
	}
	if o.Branches != nil {
		e.only = map[catalog.CommitID]struct{}{}
	}
	err := e.look(ctx)
	if err == nil {
		err = p.DB.Publish(ctx, func() error { return e.expire(ctx) })
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
	*care.Parts
	core Core
	o    ExpireOptions
	r    *ExpireReport
	keep map[catalog.CommitID]HolderID // and the first reason
	held map[HolderID]int64
	// only are the commits that may go; nil is all.
	only map[catalog.CommitID]struct{}
	// stays are commits that refs reach whose versions may not go. With a commit
	// all its ancestors are in it, so each is read once for all refs; as in only,
	// after refs.
	stays map[catalog.CommitID]struct{}
	tips  map[string]catalog.CommitID // refs that were looked at, and where they pointed
	moved bool                        // some are new or moved since bases looked at them
	seqs  map[string]uint64           // of reflogs: number after the newest that was looked at
	drop  []catalog.MoveKey           // of the reflog
	mark  []catalog.CommitID
}

// look decides which commits may go, beside others that commit.
func (e *expiry) look(ctx context.Context) error {
	if err := e.DB.WritePending(ctx); err != nil {
		return err
	}
	for _, b := range e.o.Branches {
		if _, ok := e.DB.Head(branchRef(b)); !ok {
			return fmt.Errorf("branch %q: %w", cmp.Or(b, catalog.MainBranch), catalog.ErrNoRef)
		}
	}
	return care.InTurn(ctx, e.refs, e.bases, e.reflogs, e.openAndStored, e.commits)
}

// expire lets go what nothing came to hold since look. Refs stand still, so that
// nothing comes to point at what is marked.
func (e *expiry) expire(ctx context.Context) error {
	if err := care.InTurn(ctx, e.refs, e.bases, e.moves, e.openAndStored); err != nil {
		return err
	}
	e.recheck()
	e.r.Expired, e.r.Reflog = int64(len(e.mark)), int64(len(e.drop))
	for by, n := range e.held {
		e.r.Holders = append(e.r.Holders, Holder{Kind: by.Kind, Name: by.Name, Versions: n})
	}
	slices.SortFunc(e.r.Holders, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Versions, a.Versions), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	if e.o.DryRun || len(e.mark)+len(e.drop) == 0 {
		return nil
	}
	batch := e.Index.NewBatch()
	defer batch.Close()
	batch.MakesRoom()
	now := e.Now()
	for _, id := range e.mark {
		catalog.Expired.Put(batch, catalog.Expiry{Commit: id, Time: now})
	}
	for _, k := range e.drop {
		catalog.Moves.Delete(batch, k)
	}
	return e.core.LetGo(ctx, batch)
}

// branchRef is the ref of a branch, "" for main.
func branchRef(branch string) string { return catalog.HeadRef(cmp.Or(branch, catalog.MainBranch)) }

// selected reports whether versions of a ref may go.
func (e *expiry) selected(ref string) bool {
	return e.o.Branches == nil || slices.ContainsFunc(e.o.Branches, func(b string) bool { return branchRef(b) == ref })
}

// refs decides about the versions that refs reach, of those that are new or moved
// since it was called last.
func (e *expiry) refs(ctx context.Context) error {
	for _, ref := range e.DB.Heads() {
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
			err = e.reach(ctx, ref.Commit, e.stays, func(c *catalog.Commit) bool { e.hold(c.ID, by); return false })
		case e.only != nil || keep > 1:
			err = e.reach(ctx, ref.Commit, e.only, func(c *catalog.Commit) bool {
				if keep > 0 {
					e.hold(c.ID, by)
				}
				keep--
				return keep > 0
			})
		}
		if err == nil && e.o.Policy != (KeepPolicy{}) && catalog.IsHead(ref.Name) && e.selected(ref.Name) {
			err = e.chosen(ctx, ref.Commit, by)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// chosen holds the versions below a head that the policy chooses.
func (e *expiry) chosen(ctx context.Context, head catalog.CommitID, by HolderID) error {
	type version struct {
		id catalog.CommitID
		at time.Time
	}
	var list []version
	var expired error
	err := e.reach(ctx, head, nil, func(c *catalog.Commit) bool {
		gone, _, err := e.DB.Expired(ctx, c.ID)
		if expired = err; err == nil && !gone {
			list = append(list, version{c.ID, c.Time})
		}
		return err == nil
	})
	if err = cmp.Or(err, expired); err != nil {
		return err
	}
	// The order of history is not that of time: a branch that was merged has its own times.
	slices.SortStableFunc(list, func(a, b version) int { return b.at.Compare(a.at) })
	choose := e.o.Policy.chooser()
	for _, v := range list {
		if choose(v.at) {
			e.hold(v.id, by)
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
	bases, err := mergeBases(ctx, e.Parts, e.DB.Heads())
	for _, id := range bases {
		e.hold(id, HolderID{HolderBase, id.Short()})
	}
	return err
}

// reach calls fn with a commit and its ancestors, newest first, and puts them into
// seen. It leaves out what is below a commit in seen, unless fn wants more. With
// seen nil it goes on only as long as fn does.
func (e *expiry) reach(ctx context.Context, from catalog.CommitID, seen map[catalog.CommitID]struct{}, fn func(*catalog.Commit) bool) error {
	follow := true
	for c, err := range history.Ancestors(ctx, e.DB.Lookup, []catalog.CommitID{from}, func(*catalog.Commit) bool { return follow }) {
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
	var old []catalog.RefMove // those that are dropped unless an older one stays
	drop := func() {
		for _, m := range old {
			e.drop = append(e.drop, catalog.MoveKey{Ref: m.Ref, Seq: m.Seq})
		}
		old = old[:0]
	}
	for m, err := range catalog.MovesBackwards(e.Index) {
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
		_, exists := e.DB.Head(m.Ref)
		selected := e.selected(m.Ref)
		by := HolderID{HolderReflog, holderOf(m.Ref).Name}
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
	for ref, err := range catalog.LoggedRefs(e.Index) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		by := HolderID{HolderReflog, holderOf(ref).Name}
		for m, err := range catalog.MovesOf(e.Index, ref, e.seqs[ref], false) {
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
	for id, base := range e.core.OpenBases() {
		e.hold(base, HolderID{HolderSession, id.String()})
	}
	for p, err := range catalog.Pins.All(e.Index) {
		if err != nil {
			return err
		}
		e.hold(p.Commit, HolderID{HolderKept, p.Name})
	}
	// One that is open and has moved on may be closed, and resumed as it was stored.
	for s, err := range catalog.Sessions.All(e.Index) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		e.hold(s.Base, HolderID{HolderSession, s.ID.String()})
	}
	return nil
}

func (e *expiry) commits(ctx context.Context) error {
	for rec, err := range catalog.StoredCommits(ctx, e.Index, nil) {
		if err != nil {
			return err
		}
		marked, _, err := e.DB.Expired(ctx, rec.ID)
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
	e.mark = slices.DeleteFunc(e.mark, func(id catalog.CommitID) bool {
		by, ok := e.keep[id]
		if ok {
			e.held[by]++
			e.r.Kept++
		}
		return ok
	})
}

func (e *expiry) kept(id catalog.CommitID, rec []byte) (bool, error) {
	if by, ok := e.keep[id]; ok {
		e.held[by]++
		return true, nil
	}
	if e.only != nil {
		if _, ok := e.only[id]; !ok {
			e.held[HolderID{HolderHistory, ""}]++
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
	e.held[HolderID{HolderAge, ""}]++
	return true, nil
}

// hold notes that a commit stays, and why, unless something else keeps it.
func (e *expiry) hold(id catalog.CommitID, by HolderID) {
	if _, ok := e.keep[id]; !ok {
		e.keep[id] = by
	}
}
