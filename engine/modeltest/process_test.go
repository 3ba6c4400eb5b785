package modeltest

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
)

// Steps with several processes: a peer, and a process that is killed.

// via returns the database, or a peer of it.
func (r *run) via(d *database) *engine.DB {
	if r.chance(2) {
		return d.db
	}
	if d.peer == nil {
		var err error
		d.peer, err = engine.OpenPeer(d.dir, d.db.Identity(), d.db.Versions().Remote(), r.options())
		r.must(err, "open a peer")
	}
	return d.peer
}

// endPeer closes the peer, as a process that ends.
func (r *run) endPeer(d *database) {
	if d.peer != nil {
		r.must(d.peer.Close(), "close a peer")
		d.peer = nil
	}
}

// log gives some sessions a log, as those of other processes have.
func (r *run) log(s *session) {
	if r.chance(2) {
		r.note("with a log")
		r.must(s.s.Versions().Tx().(interface{ Log(context.Context) error }).Log(bg), "log")
		s.logged = true
	}
}

// stepKill kills the process that has a database open: another one opens what was written.
func stepKill(r *run) {
	d := one(r, r.dbs)
	r.note("%s: kill", d.name)
	r.must(d.db.Sync(bg), "sync")
	image := r.image(d.dir)
	for len(d.held) > 0 {
		r.release(d, d.held[0])
	}
	r.endPeer(d)
	r.must(d.db.Close(), "close") // what that writes is thrown away
	r.must(errors.Join(os.RemoveAll(d.dir), os.Rename(image, d.dir)), "take the files of before")
	r.reopen(d)
	for _, s := range slices.Clone(d.sessions) {
		r.revive(d, s)
	}
	r.check(d, true)
}

// image copies the files of a database that is open, between two changes of any of them.
func (r *run) image(dir string) string {
	for {
		to := r.file("killed.zdb")
		before := stat(dir)
		if err := os.CopyFS(to, os.DirFS(dir)); err == nil && maps.Equal(before, stat(dir)) {
			return to
		}
		r.must(os.RemoveAll(to), "remove a copy")
	}
}

// stat lists the files below a directory, with sizes and times.
func stat(dir string) map[string][2]int64 {
	files := map[string][2]int64{}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if i, err := e.Info(); err == nil {
				files[path] = [2]int64{i.Size(), i.ModTime().UnixNano()}
			}
		}
		return nil
	})
	return files
}

// revive takes a session up after a kill: with every change if it had a log, else as of its savepoint.
func (r *run) revive(d *database, s *session) {
	via := r.via(d)
	var err error
	s.s, err = via.Resume(bg, s.id)
	switch {
	case errors.Is(err, txn.ErrNoRef):
		if s.saved != nil || s.logged && (len(s.guards) > 0 || !s.work.same(r.versions[s.base].tree)) {
			r.fail("session %s is lost: %w", s.name, err)
		}
		d.end(s)
		return
	case err != nil:
		r.must(err, "resume "+s.name)
	case s.logged:
		s.save()
	case s.saved == nil:
		r.fail("session %s is there, and was never saved", s.name)
	}
	s.draft, s.away, s.logged = s.saved.clone(), via != d.db, false
	r.compareSession(s)
}

// tidy ends everything, and expects that only what is reachable is left.
func (r *run) tidy(d *database) {
	for len(d.sessions) > 0 {
		r.abort(d, d.sessions[0])
	}
	for len(d.held) > 0 {
		r.release(d, d.held[0])
	}
	r.endPeer(d)
	_, err := d.db.Expire(bg, txn.ExpireOptions{Keep: 1, DropBases: true})
	r.must(err, "expire")
	for range 2 {
		report, err := d.db.GC(bg, txn.GCOptions{})
		r.must(err, "gc")
		if again := d.tidied; again && (report.DeletedPages > 0 || report.FreedBytes > 0 && report.Removed == 0) {
			r.fail("a second collection of %s finds something: %+v", d.name, report)
		}
		d.tidied = true
	}
	r.check(d, true)
}
