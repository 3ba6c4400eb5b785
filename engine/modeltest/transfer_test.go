package modeltest

import (
	"maps"
	"slices"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
)

// Steps that copy versions to another database. Every copy is compared with the
// model as a whole, and all its payloads are read.

const mostDatabases = 4

// makeRoom closes a database if there are many. The first one stays.
func (r *run) makeRoom() {
	if len(r.dbs) >= mostDatabases {
		d := one(r, r.dbs[1:])
		r.note("drop %s", d.name)
		r.drop(d)
	}
}

func stepClone(r *run) {
	r.makeRoom()
	d := r.database()
	dir := r.file("clone.zdb")
	heads, tags := maps.Clone(d.heads), maps.Clone(d.tags)
	o := txn.TransferOptions{}
	if r.chance(3) {
		o.Branch = one(r, d.branches())
		heads = map[string]txn.CommitID{o.Branch: heads[o.Branch]}
	}
	if r.chance(4) {
		o.Depth = 1 + r.rng.IntN(3)
	}
	if o.Branch != "" { // with the tags among the versions that are copied
		near := r.near(heads[o.Branch], o.Depth)
		maps.DeleteFunc(tags, func(_ string, id txn.CommitID) bool { return !near[id] })
	}
	r.note("clone %s, branch %q, depth %d", d.name, o.Branch, o.Depth)
	r.beside(d, func() {
		_, err := d.db.Clone(bg, dir, o)
		r.must(err, "clone")
	})
	c := r.adopt(dir, heads, tags)
	r.note("as %s", c.name)
	r.compareCopy(c, d, o.Depth)
}

// near are the ancestors of a version within so many generations; 0 is all.
func (r *run) near(id txn.CommitID, depth int) map[txn.CommitID]bool {
	seen := map[txn.CommitID]bool{}
	level := []txn.CommitID{id}
	for n := 0; len(level) > 0 && (depth == 0 || n < depth); n++ {
		var up []txn.CommitID
		for _, id := range level {
			seen[id] = true
			up = append(up, r.versions[id].parents...)
		}
		level = up
	}
	return seen
}

// compareCopy makes sure that a copy has all that its refs reach and the source
// had, and compares it.
func (r *run) compareCopy(c, source *database, depth int) {
	for _, id := range c.refs() {
		for up := range r.ancestors(id) {
			if c.expired[up] && !source.expired[up] && depth == 0 {
				r.fail("%s lacks %s", c.name, r.versions[up].name)
			}
		}
	}
	r.compareAll(c)
}

// stepBackup makes a backup, or brings one up to date, and compares it as it is
// and restored.
func stepBackup(r *run) {
	d := one(r, r.dbs)
	dir := d.dir + ".bak"
	times := 1 + r.rng.IntN(2)
	r.note("backup of %s, %d times", d.name, times)
	for range times {
		r.beside(d, func() {
			_, err := d.db.Backup(bg, dir, txn.TransferOptions{})
			r.must(err, "backup")
		})
	}
	r.compareBackup(dir, d)
	if r.chance(3) {
		r.restore(dir, d)
	}
}

func (r *run) compareBackup(dir string, d *database) {
	o := r.options()
	o.ReadOnly = true
	db, err := engine.Open(bg, dir, o)
	r.must(err, "open the backup")
	b := &database{name: "backup of " + d.name, dir: dir, db: db, heads: d.heads, tags: d.tags, expired: map[txn.CommitID]bool{}}
	r.dbs = append(r.dbs, b)
	r.learnExpired(b)
	r.compareCopy(b, d, 0)
	r.dbs = r.dbs[:len(r.dbs)-1]
	r.endPeer(b)
	r.must(db.Close(), "close the backup")
}

func (r *run) restore(backup string, d *database) {
	r.makeRoom()
	dir := r.file("restored.zdb")
	_, err := txn.Restore(bg, backup, dir, nil, txn.TransferOptions{})
	r.must(err, "restore")
	c := r.adopt(dir, maps.Clone(d.heads), maps.Clone(d.tags))
	r.note("restored as %s", c.name)
	r.compareCopy(c, d, 0)
}

// stepPush pushes or pulls refs between two databases.
func stepPush(r *run) {
	from := r.database()
	others := slices.DeleteFunc(slices.Clone(r.dbs), func(d *database) bool { return d == from })
	if len(others) == 0 {
		return
	}
	to := one(r, others)
	o := txn.TransferOptions{AllBranches: true, AllTags: r.chance(2), Force: r.chance(3)}
	if r.chance(2) {
		o = txn.TransferOptions{Refs: []txn.RefSpec{{From: one(r, from.branches())}}, Force: r.chance(3)}
	}
	var err error
	switch r.rng.IntN(3) {
	case 0:
		r.note("push %v from %s to %s", o, from.name, to.name)
		r.beside(from, func() { _, err = from.db.Push(bg, to.db, o) })
	case 1:
		r.note("pull %v from %s into %s", o, from.name, to.name)
		r.beside(to, func() { _, err = to.db.Pull(bg, from.db, o) })
	case 2:
		r.note("fetch %v from %s into %s", o, from.name, to.name)
		_, err = to.db.Fetch(bg, from.db, o)
		r.must(err, "fetch")
		r.learnExpired(to)
		for _, ref := range o.Refs {
			if to.expired[from.heads[ref.From]] {
				r.fail("%s lacks branch %s after a fetch", to.name, ref.From)
			}
		}
		r.compareAll(to)
		return
	}
	r.expect(err, "transfer", nil, txn.ErrDiverged)
	r.moved(from, to, o, err)
	r.learnExpired(to)
	r.compareAll(to)
}

// moved takes the refs of a destination into the model: each is what it was or what
// the source has, and all that had to move did.
func (r *run) moved(from, to *database, o txn.TransferOptions, err error) {
	names := from.branches()
	if !o.AllBranches {
		names = []string{o.Refs[0].From}
	}
	for _, name := range names {
		source, old := from.heads[name], to.heads[name]
		now, gone := to.db.Head(bg, name)
		switch {
		case gone != nil && old == txn.CommitID{} && err != nil:
		case gone != nil:
			r.fail("branch %s of %s: %w", name, to.name, gone)
		case now != source && now != old:
			r.fail("branch %s of %s is neither as it was nor as in the source", name, to.name)
		case err != nil && now != old:
			r.fail("branch %s of %s moved in a transfer that failed", name, to.name)
		case err == nil && now != source && !r.ancestors(old)[source]:
			r.fail("branch %s of %s did not move", name, to.name)
		default:
			to.move(name, now)
		}
	}
	if !o.AllTags || err != nil {
		return
	}
	for name, id := range from.tags {
		if old, ok := to.tags[name]; ok && old != id && !o.Force {
			r.fail("tag %s of %s was moved without force", name, to.name)
		}
		to.tags[name] = id
	}
}

// stepDrop closes a database for good.
func stepDrop(r *run) {
	if len(r.dbs) > 1 && r.chance(2) {
		d := one(r, r.dbs[1:])
		r.note("drop %s", d.name)
		r.drop(d)
	}
}
