package modeltest

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// database is an open database and the model of its refs.
type database struct {
	name, dir   string
	db          *engine.DB
	peer        *engine.DB // another process, if there is one
	tidied      bool
	heads, tags map[string]txn.CommitID
	before      map[string][]txn.CommitID // heads that each branch had, as far as the run made them
	expired     map[txn.CommitID]bool
	sessions    []*session
	held        []*held
}

// held is a version that stays open, with handles of some of its arrays.
type held struct {
	at     *engine.Snapshot
	v      *version
	arrays map[string]*zarr.Array
}

// options are random ones; none of them may make a difference.
func (r *run) options() *engine.Options {
	return &engine.Options{
		Author: "modeltest", Now: r.now, ConfigDir: filepath.Join(r.dir, "config"),
		Follow:         engine.Follow{Allow: []string{filepath.ToSlash(r.dir)}},
		CacheBytes:     one(r, []int64{-1, 1 << 16, 4 << 20, 64 << 20}),
		PageCacheBytes: one(r, []int64{1 << 12, 1 << 16, 1 << 20, 32 << 20}),
		SessionBytes:   one(r, []int64{0, 1 << 13, 1 << 16}),
		Workers:        one(r, []int{1, 3}),
		Durability:     one(r, []txn.Durability{txn.DurabilitySync, txn.DurabilityNone}),
	}
}

// adopt opens a database that is known to hold given refs.
func (r *run) adopt(dir string, heads, tags map[string]txn.CommitID) *database {
	d := &database{
		name: fmt.Sprint("db", r.fresh()), dir: dir, heads: heads, tags: tags,
		before: map[string][]txn.CommitID{}, expired: map[txn.CommitID]bool{},
	}
	var err error
	d.db, err = engine.Open(bg, dir, r.options())
	r.must(err, "open "+dir)
	r.dbs = append(r.dbs, d)
	r.learnExpired(d)
	return d
}

// learnExpired asks which versions have expired. Those that must not have are
// compared elsewhere.
func (r *run) learnExpired(d *database) {
	for _, v := range r.order {
		_, lacks := d.db.Versions().Lookup(bg, v.id)
		gone, err := d.db.Versions().Expired(bg, v.id)
		d.expired[v.id] = lacks != nil || err != nil || gone
	}
	for name, id := range d.refs() {
		if d.expired[id] {
			r.fail("%s has expired in %s", name, d.name)
		}
	}
	for _, s := range d.sessions {
		if d.expired[s.base] || s.saved != nil && d.expired[s.saved.base] {
			r.fail("the base of session %s has expired in %s", s.name, d.name)
		}
	}
}

func (d *database) refs() map[string]txn.CommitID {
	refs := map[string]txn.CommitID{}
	for name, id := range d.heads {
		refs["heads/"+name] = id
	}
	for name, id := range d.tags {
		refs["tags/"+name] = id
	}
	return refs
}

// move moves a branch of the model; a zero id is no branch.
func (d *database) move(branch string, to txn.CommitID) {
	if d.heads[branch] == to {
		return
	}
	d.before[branch] = append(d.before[branch], d.heads[branch])
	if d.heads[branch] = to; to == (txn.CommitID{}) {
		delete(d.heads, branch)
	}
}

func (d *database) branches() []string { return slices.Sorted(maps.Keys(d.heads)) }

// usable are the versions that can be opened.
func (r *run) usable(d *database) (list []*version) {
	for _, v := range r.order {
		if !d.expired[v.id] {
			list = append(list, v)
		}
	}
	return list
}

func (r *run) head(d *database, branch string) *version { return r.versions[d.heads[branch]] }

// committed takes a commit into the model.
func (r *run) committed(d *database, c *txn.Commit, parents []txn.CommitID, t tree, raw bool) *version {
	if v := r.versions[c.ID]; v != nil {
		if !v.tree.same(t) {
			r.fail("commit %s is one that holds something else", v.name)
		}
		d.expired[c.ID] = false
		return v
	}
	if !slices.Equal(c.Parents, parents) {
		r.fail("commit %v has parents %v, want %v", c.ID, c.Parents, parents)
	}
	v := &version{id: c.ID, name: fmt.Sprint("v", len(r.order)), parents: parents, tree: maps.Clone(t), raw: raw}
	r.versions[c.ID] = v
	r.order = append(r.order, v)
	for _, other := range r.dbs {
		other.expired[c.ID] = other != d
	}
	r.note("%s", v.name)
	return v
}

// ancestors of a version, itself included.
func (r *run) ancestors(id txn.CommitID) map[txn.CommitID]bool {
	seen := map[txn.CommitID]bool{}
	for list := []txn.CommitID{id}; len(list) > 0; list = list[1:] {
		if !seen[list[0]] {
			seen[list[0]] = true
			list = append(list, r.versions[list[0]].parents...)
		}
	}
	return seen
}

// hold opens a version and keeps it open.
func (r *run) hold(d *database, v *version) *held {
	at, err := r.via(d).Snapshot(bg, v.id)
	r.must(err, "open "+v.name)
	h := &held{at: at, v: v, arrays: map[string]*zarr.Array{}}
	d.held = append(d.held, h)
	return h
}

// array returns a handle, which may have been opened earlier.
func (h *held) array(path string) (a *zarr.Array, err error) {
	if a = h.arrays[path]; a == nil {
		a, err = h.at.Array(bg, path)
		h.arrays[path] = a
	}
	return a, err
}

func (r *run) release(d *database, h *held) {
	r.must(h.at.Close(), "close a version")
	d.held = slices.DeleteFunc(d.held, func(o *held) bool { return o == h })
}

// close closes a database; sessions that were saved stay in it.
func (r *run) close(d *database) {
	for len(d.held) > 0 {
		r.release(d, d.held[0])
	}
	for _, s := range d.sessions {
		if s.s != nil {
			r.must(s.s.Detach(bg), "detach")
			s.save()
		}
	}
	r.endPeer(d)
	r.must(d.db.Close(), "close")
	d.db = nil
}

func (r *run) reopen(d *database) {
	var err error
	d.db, err = engine.Open(bg, d.dir, r.options())
	r.must(err, "open again")
}

// drop closes a database for good.
func (r *run) drop(d *database) {
	for len(d.sessions) > 0 {
		r.abort(d, d.sessions[0])
	}
	r.close(d)
	r.dbs = slices.DeleteFunc(r.dbs, func(o *database) bool { return o == d })
}

// abandon closes everything after a failure.
func (r *run) abandon() {
	for _, d := range r.dbs {
		if d.peer != nil {
			_ = d.peer.Close()
		}
		if d.db != nil {
			_ = d.db.Close()
		}
	}
}

// compareRefs compares branches and tags with the model.
func (r *run) compareRefs(d *database) {
	got := map[string]txn.CommitID{}
	branches, tags, err := d.db.Refs(bg)
	r.must(err, "list refs")
	for _, b := range branches {
		got["heads/"+b.Name] = b.Commit
	}
	for _, b := range tags {
		got["tags/"+b.Name] = b.Commit
	}
	if want := d.refs(); !maps.Equal(got, want) {
		r.fail("refs of %s: %v, want %v", d.name, r.named(got), r.named(want))
	}
}

func (r *run) named(refs map[string]txn.CommitID) map[string]string {
	out := map[string]string{}
	for name, id := range refs {
		if out[name] = id.Short(); r.versions[id] != nil {
			out[name] = r.versions[id].name
		}
	}
	return out
}

// compareVersion compares all that a version holds.
func (r *run) compareVersion(d *database, v *version) {
	at, err := r.via(d).Snapshot(bg, v.id)
	r.must(err, fmt.Sprintf("open %s in %s", v.name, d.name))
	defer at.Close()
	r.must(compareSnapshot(at, v), fmt.Sprintf("%s in %s", v.name, d.name))
}

func compareSnapshot(at *engine.Snapshot, v *version) error {
	if len(v.tree) == 0 {
		return nil
	}
	if v.raw {
		return compareTree(bg, v.tree, at.Walk(bg, ""))
	}
	return compareView(bg, v.tree, at, at.Walk(bg, ""))
}

// compareAll compares everything in a database and reads all payloads.
func (r *run) compareAll(d *database) {
	r.compareRefs(d)
	for _, v := range r.usable(d) {
		r.compareVersion(d, v)
	}
	for _, s := range d.sessions {
		r.compareSession(s)
	}
	for _, h := range d.held {
		r.must(compareSnapshot(h.at, h.v), "a version that was open: "+h.v.name)
	}
	r.check(d, true)
}

func (r *run) check(d *database, payloads bool) {
	report, err := d.db.Check(bg, txn.CheckOptions{Payloads: payloads})
	r.must(err, "check")
	if report.Found > 0 {
		r.fail("check of %s: %d problems, first %v", d.name, report.Found, report.Problems[0])
	}
}

// beside runs fn while others read: the versions that are open and the heads. The
// readers are done when it returns.
func (r *run) beside(d *database, fn func()) {
	if !r.chance(3) || len(d.held)+len(d.heads) == 0 {
		fn()
		return
	}
	r.note("beside readers")
	var list []*held
	list = append(list, d.held...)
	for _, b := range d.branches() {
		v := r.head(d, b)
		at, err := d.db.Snapshot(bg, v.id)
		r.must(err, "open "+v.name)
		list = append(list, &held{at: at, v: v})
	}
	errs := make([]error, 2)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	join := sync.OnceFunc(func() {
		close(stop)
		readers.Wait()
		for _, h := range list[len(d.held):] {
			_ = h.at.Close()
		}
	})
	for i := range errs {
		readers.Go(func() {
			for n := i; errs[i] == nil; n++ {
				h := list[n%len(list)]
				errs[i] = compareSnapshot(h.at, h.v)
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	defer join() // also if fn fails
	held := len(d.held)
	fn()
	if len(d.held) != held {
		panic("a step beside readers opened or closed a version")
	}
	join()
	for _, err := range errs {
		r.must(err, "a reader beside it")
	}
}
