package modeltest

import (
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/txn"
)

// Steps that move branches and tags, and make commits without a session.

func (r *run) branchName() string { return one(r, []string{"main", "dev", "b"}) }

func stepBranch(r *run) {
	d := one(r, r.dbs)
	name, at := r.branchName(), one(r, r.usable(d))
	r.note("%s: branch %s at %s", d.name, name, at.name)
	err := r.via(d).Versions().CreateBranch(bg, name, at.id)
	if d.heads[name] != (txn.CommitID{}) {
		r.expect(err, "branch", txn.ErrRefExists)
		return
	}
	r.must(err, "branch")
	d.move(name, at.id)
}

func (r *run) restoreBranch(d *database) {
	at := one(r, r.usable(d))
	r.must(r.via(d).Versions().CreateBranch(bg, "main", at.id), "branch")
	d.move("main", at.id)
}

func stepDeleteBranch(r *run) {
	d := one(r, r.dbs)
	if len(d.heads) < 2 {
		return
	}
	name := one(r, d.branches())
	r.note("%s: delete branch %s", d.name, name)
	r.must(r.via(d).DeleteBranch(bg, name), "delete branch")
	d.move(name, txn.CommitID{})
}

func stepTag(r *run) {
	d := one(r, r.dbs)
	name, at := fmt.Sprint("t", r.rng.IntN(4)), one(r, r.usable(d))
	if _, ok := d.tags[name]; ok {
		r.note("%s: delete tag %s", d.name, name)
		r.must(r.via(d).DeleteTag(bg, name), "delete tag")
		delete(d.tags, name)
		return
	}
	r.note("%s: tag %s at %s", d.name, name, at.name)
	r.must(r.via(d).Versions().CreateTag(bg, name, at.id), "tag")
	d.tags[name] = at.id
}

func stepReset(r *run) {
	d := r.database()
	name, at := one(r, d.branches()), one(r, r.usable(d))
	r.note("%s: reset %s to %s", d.name, name, at.name)
	_, err := r.via(d).Versions().Reset(bg, name, at.id)
	r.must(err, "reset")
	if d.heads[name] == at.id { // is a move too
		d.before[name] = append(d.before[name], at.id)
	}
	d.move(name, at.id)
	for r.chance(2) {
		r.undo(d, name)
	}
}

func stepUndo(r *run) {
	d := one(r, r.dbs)
	for name := r.branchName(); ; {
		if r.undo(d, name); !r.chance(3) { // a second one undoes the first
			return
		}
	}
}

func (r *run) undo(d *database, name string) {
	r.note("%s: undo %s", d.name, name)
	move, err := r.via(d).UndoBranch(bg, name)
	known := d.before[name]
	if len(known) == 0 || d.expired[known[len(known)-1]] {
		if !r.expect(err, "undo", nil, txn.ErrNoRef, txn.ErrExpired) {
			return
		}
	} else {
		r.must(err, "undo")
		if want := known[len(known)-1]; move.New != want {
			r.fail("undo of %s leads to %v, want %v", name, move.New, want)
		}
	}
	if move.Old != d.heads[name] {
		r.fail("undo of %s from %v, want %v", name, move.Old, d.heads[name])
	}
	d.move(name, move.New)
}

// base finds the best common ancestor, nil if there are several.
func (r *run) base(a, b txn.CommitID) *version {
	theirs := r.ancestors(b)
	var best []*version
	for id := range r.ancestors(a) {
		if theirs[id] {
			best = append(best, r.versions[id])
		}
	}
	best = slices.DeleteFunc(best, func(v *version) bool {
		return slices.ContainsFunc(best, func(o *version) bool { return o != nil && o != v && r.ancestors(o.id)[v.id] })
	})
	if len(best) != 1 {
		return nil
	}
	return best[0]
}

func stepMerge(r *run) {
	d := r.database()
	branch, other := one(r, d.branches()), one(r, r.usable(d))
	r.merge(d, branch, other)
}

func (r *run) merge(d *database, branch string, other *version) {
	head := r.head(d, branch)
	r.note("%s: merge %s into %s", d.name, other.name, branch)
	var c *txn.Commit
	var err error
	r.beside(d, func() { c, err = r.via(d).Versions().Merge(bg, branch, other.id, txn.CommitOptions{Message: "merge"}) })
	base := r.base(head.id, other.id)
	switch {
	case base == nil:
		r.expect(err, "merge", txn.ErrManyBases)
		return
	case base == other:
		if r.must(err, "merge"); c.ID != head.id {
			r.fail("a merge of an ancestor made a commit")
		}
		return
	case d.expired[base.id] && base != head: // each difference is a conflict
		if !head.tree.same(other.tree) {
			r.expect(err, "merge", txn.ErrConflict)
			return
		}
		r.must(err, "merge")
		r.committed(d, c, []txn.CommitID{head.id, other.id}, head.tree, head.raw || other.raw)
		d.move(branch, c.ID)
		return
	}
	merged, m := mergeTrees(base.tree, head.tree, other.tree, false)
	if r.verdict(m, err, "merge") {
		r.committed(d, c, []txn.CommitID{head.id, other.id}, merged, head.raw || other.raw)
		d.move(branch, c.ID)
	}
}

// stepPick repeats the changes of a commit on a branch, or takes them back.
func stepPick(r *run) {
	d := r.database()
	branch, v := one(r, d.branches()), one(r, r.usable(d))
	if len(v.parents) == 0 {
		return
	}
	n, revert := r.rng.IntN(len(v.parents)), r.chance(2)
	head, before := r.head(d, branch), r.versions[v.parents[n]]
	base, theirs, do, name := before, v, r.via(d).Versions().CherryPick, "pick"
	if revert {
		base, theirs, do, name = v, before, r.via(d).Versions().Revert, "revert"
	}
	r.note("%s: %s %s on %s", d.name, name, v.name, branch)
	c, err := do(bg, branch, v.id, n+1, txn.CommitOptions{Message: name})
	if d.expired[before.id] {
		r.expect(err, name, txn.ErrExpired)
		return
	}
	merged, m := mergeTrees(base.tree, head.tree, theirs.tree, false)
	if !r.verdict(m, err, name) {
		return
	}
	r.replayed(d, branch, c, merged, v.raw || before.raw)
}

// replayed takes a commit that may be the head into the model.
func (r *run) replayed(d *database, branch string, c *txn.Commit, merged tree, raw bool) {
	head := r.head(d, branch)
	if c.ID == head.id {
		if !merged.same(head.tree) {
			r.fail("no commit was made of changes")
		}
		return
	}
	r.committed(d, c, []txn.CommitID{head.id}, merged, raw || head.raw)
	d.move(branch, c.ID)
}

// stepRebase repeats the commits of a branch on top of a version.
func stepRebase(r *run) {
	d := r.database()
	branch, upstream := one(r, d.branches()), one(r, r.usable(d))
	head := r.head(d, branch)
	r.note("%s: rebase %s on %s", d.name, branch, upstream.name)
	c, err := r.via(d).Versions().Rebase(bg, branch, upstream.id, txn.RebaseOptions{})
	has := r.ancestors(upstream.id)
	var line []*version
	base := head
	for ; !has[base.id]; base = r.versions[base.parents[0]] {
		if !d.expired[base.id] { // the next version has the changes of expired ones too
			line = append(line, base)
		}
	}
	if d.expired[base.id] {
		r.expect(err, "rebase", txn.ErrExpired)
		return
	}
	if base == upstream {
		if r.must(err, "rebase"); c.ID != head.id {
			r.fail("a branch that is there already has moved")
		}
		return
	}
	now, below := upstream.tree, base.tree
	var states []*version // after each commit
	due, raw := &merger{}, upstream.raw || base.raw
	for _, v := range slices.Backward(line) {
		next, m := mergeTrees(below, now, v.tree, false)
		due.refuse(m.verdict, m.why)
		raw = raw || v.raw
		states = append(states, &version{tree: next, raw: raw})
		now, below = next, v.tree
	}
	if r.verdict(due, err, "rebase") {
		r.rebased(d, c, upstream, states)
		d.move(branch, c.ID)
	}
}

// rebased takes new commits into the model. Those without changes are left out.
func (r *run) rebased(d *database, head *txn.Commit, upstream *version, states []*version) {
	var made []*txn.Commit
	for c := head; c.ID != upstream.id; {
		made = append(made, c)
		if len(made) > len(states) {
			r.fail("there are more commits than were repeated")
		}
		var err error
		c, err = r.via(d).Versions().Lookup(bg, c.Parents[0])
		r.must(err, "commit")
	}
	last := upstream
	for _, c := range slices.Backward(made) {
		i := slices.IndexFunc(states, func(s *version) bool { return r.holds(d, c.ID, s) })
		if i < 0 {
			r.fail("commit %s is none that was repeated", c.ID.Short())
		}
		last = r.committed(d, c, []txn.CommitID{last.id}, states[i].tree, states[i].raw)
		states = states[i+1:]
	}
	for _, s := range states {
		if !s.tree.same(last.tree) {
			r.fail("a commit with changes was left out")
		}
	}
}

func (r *run) holds(d *database, id txn.CommitID, v *version) bool {
	at, err := r.via(d).Snapshot(bg, id)
	r.must(err, "open")
	defer at.Close()
	return compareSnapshot(at, v) == nil
}
