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

// stepAxes resizes one array along each of its axes, in two sessions or on two
// branches that began together, and merges them.
func stepAxes(r *run) {
	d := r.database()
	branch := one(r, d.branches())
	p := r.plane(d, branch)
	if p == "" {
		return
	}
	other := branch
	if name := r.branchName(); d.heads[name] == (txn.CommitID{}) && r.chance(2) {
		r.note("%s: branch %s", d.name, name)
		r.must(r.via(d).Versions().CreateBranch(bg, name, d.heads[branch]), "branch")
		d.move(name, d.heads[branch])
		other = name
	}
	first, second := r.startSession(d, branch), r.startSession(d, other)
	axis := r.rng.IntN(2)
	r.resize(first, p, axis)
	r.resize(second, p, 1-axis)
	r.commit(d, first, false)
	if r.commit(d, second, false); slices.Contains(d.sessions, second) {
		r.abort(d, second)
	}
	if other != branch {
		r.merge(d, branch, r.head(d, other))
	}
	r.compareVersion(d, r.head(d, branch))
}

// plane returns the path of an array of two dimensions on a branch, which is made if
// there is none.
func (r *run) plane(d *database, branch string) string {
	find := func() string {
		t := r.head(d, branch).tree
		list := slices.DeleteFunc(t.arrays(), func(p string) bool { return len(t[p].array.shape) != 2 })
		if len(list) == 0 {
			return ""
		}
		return one(r, list)
	}
	if p := find(); p != "" {
		return p
	}
	s := r.startSession(d, branch)
	r.create(s, kinds[0], r.place(s, "a"))
	r.commit(d, s, false)
	return find()
}

// stepGroup commits several sessions at the same time, which makes a single group of them. The
// parents of the commits tell their order.
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
	next := func() int { // a session that changes nothing, else the session whose parent is the head
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
