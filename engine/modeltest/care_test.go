package modeltest

import (
	"github.com/zarrdb/zarrdb/txn"
)

// Steps that take care of a database: what is old or dead goes, and nothing else.

func stepExpire(r *run) {
	d := r.database()
	keep := 1 + r.rng.IntN(6)
	o := txn.ExpireOptions{Keep: keep}
	if r.chance(3) {
		o.Branches = []string{one(r, d.branches())}
	}
	r.note("%s: expire, keep %d, branches %q", d.name, keep, o.Branches)
	before := map[txn.CommitID]bool{}
	for id, gone := range d.expired {
		before[id] = gone
	}
	_, err := r.via(d).Expire(bg, o)
	r.must(err, "expire")
	r.learnExpired(d)
	d.before = map[string][]txn.CommitID{} // entries of the reflog may be gone
	for name, id := range d.heads {
		n := 0
		for c, err := range r.via(d).Versions().Log(bg, id) {
			r.must(err, "log")
			if n++; n > keep {
				break
			}
			if d.expired[c.ID] && !before[c.ID] {
				r.fail("%s has expired, which is among the newest %d of %s", r.versions[c.ID].name, keep, name)
			}
		}
	}
	for id, gone := range before {
		if gone && !d.expired[id] {
			r.fail("%s came back", r.versions[id].name)
		}
	}
}

func stepGC(r *run) {
	d := one(r, r.dbs)
	o := txn.GCOptions{DryRun: r.chance(5), Explain: r.chance(5)}
	r.note("%s: gc %+v", d.name, o)
	r.beside(d, func() {
		_, err := r.via(d).GC(bg, o)
		r.must(err, "gc")
	})
	for _, h := range d.held {
		r.must(compareSnapshot(h.at, h.v), "a version that is open after gc: "+h.v.name)
	}
	for _, s := range d.sessions {
		r.compareSession(s)
	}
	r.check(d, r.chance(2))
}

func stepCheckpoint(r *run) {
	d := one(r, r.dbs)
	r.note("%s: checkpoint", d.name)
	r.must(r.via(d).Checkpoint(bg), "checkpoint")
}

func stepCheck(r *run) {
	d := one(r, r.dbs)
	r.note("%s: check", d.name)
	r.beside(d, func() { r.check(d, true) })
}

// stepReopen closes a database and opens it with other options. Stored sessions are
// resumed.
func stepReopen(r *run) {
	d := one(r, r.dbs)
	r.note("reopen %s", d.name)
	r.closed(d, func() {})
}

// closed runs fn while a database is closed.
func (r *run) closed(d *database, fn func()) {
	r.close(d)
	fn()
	r.reopen(d)
	for _, s := range d.sessions {
		r.resume(d, s)
	}
}
