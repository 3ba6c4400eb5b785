package modeltest

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/txn"
)

// edits makes a few edits in sessions of one base; in some cases all of them make the
// same, which only one of them may commit.
func (r *run) edits(list ...*session) {
	a, b, same := r.rng.Uint64(), r.rng.Uint64(), r.chance(3)
	for _, s := range list {
		if r.note("in %s", s.name); same {
			r.rng = rand.New(rand.NewPCG(a, b))
		}
		for range 1 + r.rng.IntN(3) {
			r.edit(s)
		}
	}
}

// stepRace commits one of two sessions that began together, and brings the other
// onto that.
func stepRace(r *run) {
	d := r.database()
	branch := one(r, d.branches())
	first, second := r.startSession(d, branch), r.startSession(d, branch)
	for r.chance(2) { // what the first one changes, in many cases
		r.guard(second)
	}
	r.edits(first, second)
	r.commit(d, first, false)
	if r.chance(2) {
		r.refresh(d, second)
	}
	if r.commit(d, second, false); slices.Contains(d.sessions, second) {
		r.abort(d, second)
	}
}

// stepGroup commits several sessions at the same time, so that they are made one
// group. In what order they were committed is learnt from the parents.
func stepGroup(r *run) {
	d := r.database()
	branch := one(r, d.branches())
	group := make([]*session, 2+r.rng.IntN(3))
	for i := range group {
		group[i] = r.startSession(d, branch)
	}
	r.edits(group...)
	r.note("commit all")
	commits, errs := make([]*txn.Commit, len(group)), make([]error, len(group))
	var all sync.WaitGroup
	for i, s := range group {
		all.Go(func() { commits[i], errs[i] = s.s.Commit(bg, txn.CommitOptions{Message: s.name}) })
	}
	all.Wait()
	refusable := make([]bool, len(group))
	next := func() int { // one that changed nothing on the head, then the one that was committed on it
		head, same, on := r.head(d, branch), -1, -1
		for i, s := range group {
			if _, m := r.mergeSession(d, s); m.verdict != merges {
				refusable[i] = true
			}
			switch c := commits[i]; {
			case c == nil:
			case c.ID == head.id:
				same = i
			case c.Parents[0] == head.id && c.Message == s.name:
				on = i
			}
		}
		if same >= 0 {
			return same
		}
		return on
	}
	for i := next(); i >= 0; i = next() {
		r.commitDone(d, group[i], commits[i], nil)
		commits[i] = nil
	}
	for i, s := range group {
		switch {
		case errs[i] == nil && commits[i] != nil:
			r.fail("commit %s of session %s is not on branch %s", commits[i].ID.Short(), s.name, branch)
		case errs[i] == nil:
		case !refusable[i]:
			r.fail("commit of session %s in a group: %w, want a merge", s.name, errs[i])
		default:
			r.expect(errs[i], "commit in a group", txn.ErrConflict)
			r.note("%s refused", s.name)
			r.abort(d, s)
		}
	}
}
