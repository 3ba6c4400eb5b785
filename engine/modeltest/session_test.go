package modeltest

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// session is an open or stored session and what it holds.
type session struct {
	name   string
	s      *engine.Session
	id     txn.SessionID
	branch string
	logged bool // a kill loses nothing of it
	away   bool // it is of a peer
	draft
	saved *draft // as of the last savepoint
}

// draft is what a session holds.
type draft struct {
	base   txn.CommitID
	work   tree
	raw    bool
	guards []guard
}

func (d draft) clone() draft {
	d.work, d.guards = maps.Clone(d.work), slices.Clone(d.guards)
	return d
}

func (s *session) save() {
	saved := s.draft.clone()
	s.saved = &saved
}

// guard is what a session relies on: all of a node, or some chunks of an array and
// its metadata.
type guard struct {
	path   string
	chunks map[coords]bool // nil for all
	of     *node           // what the session had there
}

const mostSessions = 4

func (r *run) startSession(d *database, branch string) *session {
	via := r.via(d)
	s, err := via.Begin(bg, branch)
	r.must(err, "begin")
	head := r.head(d, branch)
	m := &session{name: fmt.Sprint("s", r.fresh()), s: s, id: s.ID(), branch: branch, away: via != d.db}
	m.draft = draft{base: head.id, work: maps.Clone(head.tree), raw: head.raw}
	d.sessions = append(d.sessions, m)
	r.note("%s: session %s on %s", d.name, m.name, branch)
	r.log(m)
	return m
}

// session picks an open one, or begins one.
func (r *run) session() (*database, *session) {
	d := r.database()
	if len(d.sessions) == 0 || len(d.sessions) < mostSessions && r.chance(4) {
		return d, r.startSession(d, one(r, d.branches()))
	}
	s := one(r, d.sessions)
	r.note("%s: in %s on %s", d.name, s.name, s.branch)
	return d, s
}

// database picks one with a branch.
func (r *run) database() *database {
	list := slices.DeleteFunc(slices.Clone(r.dbs), func(d *database) bool { return len(d.heads) == 0 })
	if len(list) == 0 {
		r.restoreBranch(r.dbs[0])
		return r.dbs[0]
	}
	return one(r, list)
}

func (d *database) end(s *session) {
	d.sessions = slices.DeleteFunc(d.sessions, func(o *session) bool { return o == s })
}

func (r *run) abort(d *database, s *session) {
	if s.s == nil {
		var err error
		s.s, err = r.via(d).Resume(bg, s.id)
		r.must(err, "resume")
	}
	r.must(s.s.Abort(), "abort")
	d.end(s)
}

func (r *run) compareSession(s *session) {
	if s.s == nil || len(s.work) == 0 {
		return
	}
	if r.must(compareTree(bg, s.work, s.s.Walk(bg, "")), "session "+s.name); !s.raw {
		r.must(compareCopies(bg, s.work, s.s), "session "+s.name)
	}
}

// mergeSession is what the head of a session's branch and the session come to.
func (r *run) mergeSession(d *database, s *session) (tree, *merger) {
	head := r.head(d, s.branch)
	if head.id == s.base {
		return s.work, &merger{}
	}
	base := r.versions[s.base].tree
	merged, m := mergeTrees(base, head.tree, s.work, true)
	for _, g := range s.guards {
		m.refuse(g.verdict(base[g.path], head.tree[g.path]), "/"+g.path+" is guarded")
	}
	return merged, m
}

// verdict tells what changed on a branch from what a session relied on. What was
// written, or made again, as it was may count as changed.
func (g guard) verdict(was, is *node) verdict {
	switch {
	case was == is:
		return merges
	case was == nil || is == nil || (was.array == nil) != (is.array == nil):
		return conflicts
	case was.array == nil || g.chunks == nil:
		if was.same(is) {
			return either
		}
		return conflicts
	}
	a, b := was.array, is.array
	if !maps.Equal(was.attrs, is.attrs) || a.kind != b.kind || a.fill != b.fill || !slices.Equal(a.shape, b.shape) {
		return conflicts
	}
	if was.id != is.id || was.id != g.of.id || reflect.ValueOf(was.attrs).UnsafePointer() != reflect.ValueOf(is.attrs).UnsafePointer() {
		return either
	}
	due := merges
	if is.linked {
		due = either
	}
	for c := range g.chunks {
		switch {
		case !slices.Equal(a.chunks[c], b.chunks[c]):
			return conflicts
		case a.kind.shards && rewritten(b.chunks[c], a.chunks[c]):
			due = either
		}
	}
	return due
}

// stepGuard makes a session rely on an array or a part of it.
func stepGuard(r *run) {
	_, s := r.session()
	r.guard(s)
	if r.chance(2) {
		r.edit(s)
	}
}

func (r *run) guard(s *session) {
	p, n := r.existing(s)
	if n == nil {
		return
	}
	g := guard{path: p, of: n}
	if r.chance(3) || slices.Contains(n.array.shape, 0) {
		r.note("guard /%s", p)
		r.must(s.s.Guard(bg, p), "guard")
	} else {
		sel := r.region(n.array, true)
		r.note("guard /%s[%v]", p, sel)
		g.chunks = map[coords]bool{}
		each(sel.shape(), func(c coords) {
			chunk, _ := n.array.locate(sel.at(c))
			g.chunks[chunk] = true
		})
		r.must(s.s.GuardRead(bg, r.open(s, p), sel.zarr()), "guard")
	}
	s.guards = append(s.guards, g)
}

func stepCommit(r *run) {
	d := r.database()
	if len(d.sessions) == 0 {
		return
	}
	s := one(r, d.sessions)
	r.commit(d, s, r.chance(6))
}

// commit commits a session, or finds out what would be.
func (r *run) commit(d *database, s *session, dry bool) {
	r.note("%s: commit %s to %s", d.name, s.name, s.branch)
	head := r.head(d, s.branch)
	var c *txn.Commit
	var err error
	r.beside(d, func() {
		c, err = s.s.Commit(bg, txn.CommitOptions{Message: s.name, DryRun: dry})
	})
	if head == nil {
		r.expect(err, "commit to a branch that is gone", txn.ErrNoRef)
		return
	}
	if !r.ancestors(head.id)[s.base] {
		r.expect(err, "commit to a branch that was rewound", txn.ErrConflict)
		return
	}
	if dry {
		_, m := r.mergeSession(d, s)
		r.verdict(m, err, "commit")
		return
	}
	r.commitDone(d, s, c, err)
}

// commitDone takes the outcome of a commit into the model.
func (r *run) commitDone(d *database, s *session, c *txn.Commit, err error) {
	head := r.head(d, s.branch)
	merged, m := r.mergeSession(d, s)
	if !r.verdict(m, err, "commit") {
		return
	}
	d.end(s)
	if c.ID == head.id {
		if !merged.same(head.tree) {
			r.fail("no commit was made of changes")
		}
		return
	}
	r.committed(d, c, []txn.CommitID{head.id}, merged, s.raw || head.raw)
	d.move(s.branch, c.ID)
}

// verdict compares the outcome of a merge with what is due, and reports whether
// there is a result.
func (r *run) verdict(m *merger, err error, doing string) bool {
	if err != nil && !errors.Is(err, txn.ErrConflict) {
		r.must(err, doing)
	}
	if err != nil {
		r.note("refused")
	}
	if err == nil && m.verdict == conflicts {
		r.fail("%s: merged, want a conflict: %s", doing, m.why)
	}
	if err != nil && m.verdict == merges {
		r.fail("%s: %w, want a merge", doing, err)
	}
	return err == nil
}

func stepRefresh(r *run) {
	d, s := r.session()
	r.refresh(d, s)
}

func (r *run) refresh(d *database, s *session) {
	head := r.head(d, s.branch)
	r.note("refresh")
	err := s.s.Refresh(bg, nil)
	if head == nil {
		r.expect(err, "refresh from a branch that is gone", txn.ErrNoRef)
		return
	}
	merged, m := r.mergeSession(d, s)
	if r.verdict(m, err, "refresh") {
		s.draft = draft{head.id, maps.Clone(merged), s.raw || head.raw, s.guards}
		if s.away { // a key that was read has another value: the peer reads it again
			r.must(s.s.Detach(bg), "detach")
			s.save()
			r.resume(d, s)
		}
	}
	r.compareSession(s)
}

func stepSave(r *run) {
	d, s := r.session()
	n := r.rng.IntN(5)
	if n == 3 && s.logged { // it may have made savepoints
		n = 2
	}
	switch n {
	case 0:
		r.note("abort")
		r.abort(d, s)
		return
	case 1:
		r.note("savepoint")
		r.must(s.s.Savepoint(bg), "savepoint")
		s.save()
	case 2:
		r.note("detach and resume")
		r.must(s.s.Detach(bg), "detach")
		s.save()
		r.resume(d, s)
	case 3:
		r.note("close")
		r.must(s.s.Close(), "close session")
		if s.saved == nil {
			d.end(s)
			return
		}
		r.note("resume")
		r.resume(d, s)
	case 4:
		r.note("compare")
	}
	r.compareSession(s)
}

func (r *run) resume(d *database, s *session) {
	var err error
	via := r.via(d)
	s.s, err = via.Resume(bg, s.id)
	r.must(err, "resume")
	s.draft, s.away, s.logged = s.saved.clone(), via != d.db, false
	r.log(s)
}

// stepBulk copies an array key by key into a group or over itself, as imports do,
// while the session writes elsewhere.
func stepBulk(r *run) {
	d, s := r.session()
	v := one(r, r.usable(d))
	from := v.tree.arrays()
	if len(from) == 0 {
		return
	}
	path := one(r, from)
	group := one(r, groupsOf(s.work))
	name := fmt.Sprint("bulk", r.rng.IntN(3))
	to := joined(group, name)
	if n := s.work[to]; n != nil && n.array == nil {
		return
	}
	r.note("bulk of %s/%s into /%s", v.name, path, to)
	b, err := s.s.Bulk(bg, group, true)
	r.must(err, "bulk")
	// The session goes on meanwhile, also below the group.
	r.edit(s)
	at, err := d.db.Snapshot(bg, v.id)
	r.must(err, "open")
	defer at.Close()
	if old := s.work[to]; old != nil || s.work[group] == nil {
		return // a Bulk that is not finished changes nothing
	}
	for key, err := range at.List(bg, kv.ListOptions{Prefix: path + "/"}) {
		r.must(err, "list")
		value, err := kv.Get(bg, at, key)
		r.must(err, "get "+key)
		r.must(b.Set(bg, name+key[len(path):], value), "bulk set")
	}
	r.must(b.Finish(bg), "bulk finish")
	n := v.tree[path]
	s.work.put(to, tree{"": &node{id: r.fresh(), array: n.array, attrs: n.attrs}})
	s.raw = true
	r.compareSession(s)
}

// stepConsolidate makes consolidated metadata, which is kept up to date then.
func stepConsolidate(r *run) {
	_, s := r.session()
	if s.work[""] == nil {
		return
	}
	top := one(r, s.work.groups())
	r.note("consolidate /%s", top)
	r.must(zarr.Consolidate(bg, s.s, top, nil), "consolidate")
	s.work[top] = &node{attrs: s.work[top].attrs} // another group now, as if written
	r.compareSession(s)
}
