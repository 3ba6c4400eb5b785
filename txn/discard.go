package txn

import (
	"errors"
	"slices"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// Discard closes the database and undoes [Create]: if db was made by it and
// nothing was put into it since, no commit, branch, tag, pin or stored session, it
// is removed, with the directories that were made for it. removed is false, and the database stays, if there is
// anything else in it, or if the file system does not rename an open directory.
//
// Like Close it ends open sessions, waits for a commit under way, and may be called
// at any time; whichever of the two comes first counts. After either, Discard
// returns [ErrClosed] and Close nil. A crash may leave the directory under its name
// with ".removed" appended.
func (db *DB) Discard() (removed bool, err error) {
	if db.peer != nil {
		return false, db.Close()
	}
	if db.closed.Swap(true) {
		return false, ErrClosed
	}
	for _, s := range db.openSessions() {
		s.suspend()
	}
	db.commit.lock()
	defer db.commit.unlock()
	db.stopCheckpoints()
	fs, gone := db.fs, db.dir+".removed"
	// Renamed while the lock is held: no other process can open it meanwhile.
	if !db.untouched() || exists(fs, gone) || fs.Rename(db.dir, gone) != nil {
		return false, db.shut()
	}
	_ = db.stopPending() // there is nothing pending
	_ = errors.Join(db.packs.Close(), db.idx.Abandon())
	if len(db.made) == 0 {
		// The directory was there: it stays, with its owner and permissions, or as a link.
		names, err := fs.List(gone)
		for _, name := range names {
			err = errors.Join(err, fs.RemoveAll(fs.PathJoin(gone, name)))
		}
		return true, errors.Join(err, fs.Rename(gone, db.dir))
	}
	err = fs.RemoveAll(gone)
	for _, above := range db.made[1:] {
		if err != nil || fs.Remove(above) != nil {
			break // it holds something
		}
	}
	return true, err
}

// untouched reports whether the database is as Create made it, without files of
// others.
func (db *DB) untouched() bool {
	if !db.created || db.checkpoints.moves.Load() != 1 || db.pending.waiting.Load() != 0 {
		return false
	}
	_ = db.opts.FS.Remove(db.opts.FS.PathJoin(db.dir, logDir)) // it is empty, or stays
	names, err := db.opts.FS.List(db.dir)
	if err != nil || slices.ContainsFunc(names, func(n string) bool {
		return !slices.Contains([]string{FormatFile, indexDir, packDir, checkpointDir}, n)
	}) {
		return false
	}
	blank, err := db.blank()
	return blank && err == nil
}

// blank reports whether nothing was put into the database, by anybody: no commit
// but the first one, no stored session, pin or payload of another database.
func (db *DB) blank() (bool, error) {
	for _, r := range db.heads.list("") {
		c, err := catalog.Commits.Get(db.idx, r.Commit)
		if err != nil || r.Name != catalog.HeadRef(MainBranch) || len(c.Parents) > 0 || c.Root != (tree.Root{}) {
			return false, err
		}
	}
	for _, space := range []index.Space{index.SpaceSession, index.SpacePin} {
		for _, err := range db.idx.Scan(space, nil, nil, false) {
			return false, err
		}
	}
	others := func(p pack.Info) bool { return !p.Missing && p.ID.Incarnation() != db.incarnation }
	return !slices.ContainsFunc(db.packs.Infos(), others), nil
}
