package txn

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// Discard closes the database and undoes [Create]: if db was made by it and
// nothing was put into it since, no commit, branch, tag, pin or stored session,
// it is removed, with the directories that were made for it. removed is false,
// and the database stays, if there is anything in it. No other process can have
// written to it, because db has had it open from the beginning; one that opens it
// meanwhile finds it in use, and then missing.
//
// Like Close it ends open sessions, waits for a commit under way, and may be called
// at any time; whichever of the two comes first counts. After either, Discard
// returns [ErrClosed] and Close nil. Otherwise an error is one of the file system:
// the database is closed then, and if it says "remove", partly removed.
//
// A crash leaves the database, or an interrupted creation for Create to take up.
func (db *DB) Discard() (removed bool, err error) {
	if db.closed.Swap(true) {
		return false, ErrClosed
	}
	for _, s := range db.openSessions() {
		s.close()
	}
	db.commit.lock()
	defer db.commit.unlock()
	empty, err := db.untouched()
	if !empty || err != nil {
		return false, errors.Join(err, db.shut())
	}
	if err := db.remove(); err != nil {
		return false, fmt.Errorf("remove %s: %w", db.dir, err)
	}
	return true, nil
}

// untouched reports whether the database is as Create made it.
func (db *DB) untouched() (bool, error) {
	if !db.created || db.checkpoints.moves.Load() != 1 || db.pending.waiting.Load() != 0 {
		return false, nil
	}
	return db.blank()
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

// remove removes the database, and leaves files of others where they are. The file
// that makes the directory one goes before the rest of it, the index after the
// packs, so that these are never left alone, and the lock last.
func (db *DB) remove() error {
	fs := db.opts.FS
	_ = db.stopPending() // there is nothing pending
	db.stopCheckpoints()
	_ = db.packs.Close()
	// Before: Create takes up no directory that has them.
	err := errors.Join(db.dropCheckpoints(0), index.RemoveEmpty(fs, fs.PathJoin(db.dir, checkpointDir)))
	for _, name := range []string{FormatFile, FormatFile + ".tmp"} {
		if rerr := fs.Remove(fs.PathJoin(db.dir, name)); !errors.Is(rerr, os.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	if err == nil {
		err = index.SyncDir(fs, db.dir)
	}
	packs := fs.PathJoin(db.dir, packDir)
	if err == nil {
		err = pack.Discard(fs, packs, db.incarnation)
	}
	if err == nil {
		err = index.RemoveEmpty(fs, packs)
	}
	if err != nil {
		return errors.Join(err, db.idx.Close())
	}
	if err := db.idx.Remove(); err != nil {
		return err
	}
	removeEmpty(fs, db.made)
	return nil
}

// removeEmpty removes directories, the innermost first, up to one that holds
// something.
func removeEmpty(fs index.FS, dirs []string) {
	for _, dir := range dirs {
		if fs.Remove(dir) != nil {
			return
		}
	}
}
