package txn

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/zarrdb/zarrdb/kv/depot"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/transfer"
)

type (
	// RefSpec names a branch or tag that goes to another database.
	RefSpec = transfer.RefSpec
	// TransferOptions of [DB.Clone], [DB.Push], [DB.Pull], [DB.Fetch], [DB.Backup] and
	// [Restore]. Backups hold everything and know no options but Force, SkipDamaged and Progress.
	TransferOptions = transfer.Options
	// TransferProgress is how far a transfer is.
	TransferProgress = transfer.Progress
	// TransferReport says what a transfer moved.
	TransferReport = transfer.Report
)

var (
	// ErrDiverged means that a branch of the destination has versions that the
	// source has not, which a push or backup would drop, or another tag of the same name.
	// It is ErrConflict.
	ErrDiverged = transfer.ErrDiverged

	// ErrNotBackup means that a directory is a database, but not a backup of
	// this one.
	ErrNotBackup = errors.New("txn: not a backup of this database")

	// ErrNotKept means that the process which kept the versions of a transfer has given the database
	// up. Transfers then begin anew.
	ErrNotKept = transfer.ErrNotKept
)

// Push carries the versions of branches and tags that the destination lacks, and
// moves its refs of these names, which are made if they are not there: all of
// them or, with an error, none. A branch that has only the empty first commit of a new
// database counts as missing. Both databases are open, and may be in use.
//
// Errors: [ErrDiverged] if a branch of the destination has versions that the
// source does not have, or a tag is another one, and Force is not set; ErrNoRef
// if the source has no such branch or tag.
func (db *DB) Push(ctx context.Context, to *DB, o TransferOptions) (*TransferReport, error) {
	return to.home.transfer(ctx, db, transfer.OpPush, o)
}

// Pull is [DB.Push] from the other side. A branch that is ahead of the source is
// left alone.
func (db *DB) Pull(ctx context.Context, from *DB, o TransferOptions) (*TransferReport, error) {
	return db.home.transfer(ctx, from, transfer.OpPull, o)
}

// Fetch is [DB.Pull] without moves: the versions are there afterwards, for a merge
// or rebase, and the report says which refs of the source they are. Expiry lets
// them go if no ref comes to reach them.
func (db *DB) Fetch(ctx context.Context, from *DB, o TransferOptions) (*TransferReport, error) {
	return db.home.transfer(ctx, from, transfer.OpFetch, o)
}

// Clone makes a new database in dir with the branches and tags of this one, or
// one branch, and their history; commits keep their ids. It is verified when
// Clone returns. The database goes on being used meanwhile. A clone that was
// interrupted is no database; the same call takes it up again.
//
// Errors: ErrExists if dir holds a database or other files, ErrNoRef if there is
// no such branch, kv.ErrCorrupt if the source is damaged.
func (db *DB) Clone(ctx context.Context, dir string, o TransferOptions) (_ *TransferReport, err error) {
	if o.Branch != "" {
		if _, err := db.Head(ctx, o.Branch); err != nil {
			return nil, fmt.Errorf("clone: %w", err)
		}
	}
	defer wrap(&err, "clone to %s", dir)
	return db.copyTo(ctx, dir, db.copyOptions(), func(from *transfer.From, to *transfer.To) (*TransferReport, error) {
		return transfer.Clone(ctx, from, to, o)
	})
}

// Backup makes or brings up to date a copy of everything in dest: all versions
// that have not expired, refs and reflogs, as of one moment; sessions
// are not part of it. The database goes on being used. A second backup copies
// only what is new. dest is a database that can be opened and read. One that was
// interrupted leaves the last backup as it was, and can be run again.
//
// Errors: ErrNotBackup if dest is another database, ErrExists if it holds other
// files, [ErrDiverged] if somebody committed to dest and Force is not set.
func (db *DB) Backup(ctx context.Context, dest string, o TransferOptions) (_ *TransferReport, err error) {
	defer wrap(&err, "backup to %s", dest)
	if err := db.check(); err != nil {
		return nil, err
	}
	opts := db.copyOptions()
	if err := readFormat(opts.FS, dest); errors.Is(err, ErrNotDatabase) {
		r, err := db.copyTo(ctx, dest, opts, db.mirror(ctx, &db.incarnation, o))
		if err == nil {
			db.backedUp(ctx)
		}
		return r, err
	}
	opts.CheckpointCommits = db.opts.CheckpointCommits // Close makes one that is due
	to, err := Open(dest, &opts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	return db.backupTo(ctx, to, o)
}

// BackupTo is [DB.Backup] to a backup that is open.
func (db *DB) BackupTo(ctx context.Context, to *DB, o TransferOptions) (*TransferReport, error) {
	return to.home.transfer(ctx, db, transfer.OpBackup, o)
}

func (db *DB) backupTo(ctx context.Context, to *DB, o TransferOptions) (*TransferReport, error) {
	if err := errors.Join(db.check(), to.writable()); err != nil {
		return nil, err
	}
	ours, err := catalog.IsBackupOf(to.idx, db.incarnation)
	if err == nil && !ours {
		err = ErrNotBackup
	}
	if err != nil {
		return nil, err
	}
	r, err := transferred(db, to, db.mirror(ctx, &db.incarnation, o))
	if err == nil {
		db.backedUp(ctx)
	}
	return r, err
}

// Restore makes a new database in dir of a backup, with everything that is in it.
// It is verified when Restore returns, and writes packs under a name of its own.
// Options may be nil. A restore that was interrupted is taken up by the same call.
func Restore(ctx context.Context, backup, dir string, opts *Options, o TransferOptions) (_ *TransferReport, err error) {
	ro := opts.withDefaults()
	ro.ReadOnly = true
	db, err := Open(backup, &ro)
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.restoreTo(ctx, dir, ro.FS, o)
}

// RestoreTo is [Restore] of a backup that is open.
func (db *DB) RestoreTo(ctx context.Context, dir string, o TransferOptions) (*TransferReport, error) {
	return db.restoreTo(ctx, dir, db.opts.FS, o)
}

func (db *DB) restoreTo(ctx context.Context, dir string, fs index.FS, o TransferOptions) (_ *TransferReport, err error) {
	defer wrap(&err, "restore %s to %s", db.dir, dir)
	to := db.copyOptions()
	to.FS = fs
	return db.copyTo(ctx, dir, to, db.mirror(ctx, nil, o))
}

// carry is a transfer.
type carry func(from *transfer.From, to *transfer.To) (*TransferReport, error)

func (db *DB) mirror(ctx context.Context, of *[8]byte, o TransferOptions) carry {
	return func(from *transfer.From, to *transfer.To) (*TransferReport, error) {
		return transfer.Mirror(ctx, from, to, of, o)
	}
}

// transferred runs a transfer. The source goes on being read, written and collected; the destination
// is not collected meanwhile.
func transferred(from, to *DB, carry carry) (*TransferReport, error) {
	if sameDatabase(from, to) {
		return &TransferReport{}, errors.New("txn: source and destination are the same")
	}
	if err := errors.Join(from.check(), to.writable()); err != nil {
		return &TransferReport{}, err
	}
	if !to.collecting.TryLock() {
		return &TransferReport{}, ErrCollecting
	}
	defer to.collecting.Unlock()
	source, err := from.carried(), error(nil)
	if source.HistoryAlone, err = to.lazyFrom(from); err == nil && !source.HistoryAlone {
		err = to.changeable()
	}
	if err != nil {
		return &TransferReport{}, err
	}
	return carry(source, to.carriedHere())
}

// carried is the database as a source, and carriedHere as a destination.
func (db *DB) carried() *transfer.From {
	from := &transfer.From{Dir: db.dir, Packs: db.packs, Tree: db.space.Tree, SourceDB: carriedFrom{donor{db}}, Fault: db.opts.transferFault}
	if db.away != nil {
		from.AwayFailed = func(ctx context.Context, err error) error { return db.away.Failed(ctx, "a part of the payloads", err) }
		from.Away = func(ctx context.Context) (*depot.Depot, error) {
			d, err := db.away.Depot(ctx)
			if err != nil {
				err = from.AwayFailed(ctx, err)
			}
			return d, err
		}
	}
	return from
}

func (db *DB) carriedHere() *transfer.To {
	return &transfer.To{
		Parts: &db.care, Incarnation: db.incarnation, Tree: db.space.Tree, Stored: db.withAway(indexPages{db.idx, nil}), Committed: db.pages(), DestinationDB: core{db},
	}
}

// carriedFrom is the source of a transfer.
type carriedFrom struct{ donor }

func (f carriedFrom) Keep(ctx context.Context) (*transfer.Kept, error) { return f.home.keep(ctx) }

func (f carriedFrom) Version(ctx context.Context, id CommitID) (*Commit, error) {
	return f.version(ctx, id)
}

func (f carriedFrom) Problems(ctx context.Context, d care.Damages) ([]Problem, error) {
	return f.problemsOf(ctx, d)
}

// Pages yields pages of the database in the order of their names in list.
func (f carriedFrom) Pages(ctx context.Context, list []PageName) iter.Seq2[index.Page, error] {
	src := f.Source()
	return func(yield func(index.Page, error) bool) {
		for len(list) > 0 {
			pages, err := src.Pages(ctx, PageQuery{Names: list[:min(len(list), pagesAtOnce)]})
			if err == nil {
				err = ctx.Err()
			}
			if err == nil && (len(pages) == 0 || len(pages) > len(list)) {
				err = fmt.Errorf("txn: %d pages came where %d were asked for", len(pages), min(len(list), pagesAtOnce))
			}
			if err != nil {
				yield(index.Page{}, err)
				return
			}
			for i, b := range pages {
				if !yield(index.Page{Name: list[i], Bytes: b}, nil) {
					return
				}
			}
			list = list[len(pages):]
		}
	}
}

// pagesAtOnce bounds the pages in one request of a transfer.
const pagesAtOnce = 64

// copyTo makes a new database by a transfer. The FORMAT file comes last: without it the
// directory is no database.
func (db *DB) copyTo(ctx context.Context, dir string, opts Options, carry carry) (r *TransferReport, err error) {
	if err := db.check(); err != nil {
		return nil, err
	}
	_, r, err = makeCopy(ctx, dir, opts, func(to *DB) (r *TransferReport, err error) {
		if err = errors.Join(to.errBegunLazy(), db.begunBy(ctx, to)); err == nil {
			r, err = transferred(db, to, carry)
		}
		if err == nil {
			err = to.copied(ctx, db.opts.CheckpointCommits > 0)
		}
		return r, err
	})
	return r, err
}

// makeCopy makes a new database, or goes on with one that fill has begun. The result is closed.
func makeCopy(ctx context.Context, dir string, opts Options, fill func(to *DB) (*TransferReport, error)) (*DB, *TransferReport, error) {
	fs := opts.FS
	if err := prepareDir(fs, dir); err != nil {
		return nil, nil, err
	}
	to, err := open(dir, fs.PathJoin(dir, indexDir), opts, true)
	if err != nil {
		return nil, nil, err
	}
	r, err := fill(to)
	if err = errors.Join(err, to.Close()); err != nil {
		return nil, r, err
	}
	return to, r, writeFormat(fs, dir)
}

// copied checks a copy, and makes its first checkpoint.
func (db *DB) copied(ctx context.Context, checkpoint bool) error {
	err := db.sound(ctx)
	if err == nil && checkpoint {
		_ = db.Checkpoint(ctx) // the copy is whole without one; see care.Failures
	}
	return err
}

// begunBy refuses to go on with a database that is there, unless there is nothing
// in it or it is a copy of this one that was interrupted: the versions that its refs
// name are known here then.
func (db *DB) begunBy(ctx context.Context, to *DB) error {
	if blank, err := to.blank(); blank || err != nil {
		return err
	}
	for _, r := range to.heads.list("") {
		if _, err := db.Lookup(ctx, r.Commit); errors.Is(err, ErrNoRef) {
			return fmt.Errorf("create %s: %w", to.dir, errIsLeft(to.dir, "there is another database without "+FormatFile))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// sound is a check of the index; payloads were compared as they were copied.
func (db *DB) sound(ctx context.Context) error {
	r, err := db.Check(ctx, CheckOptions{})
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(r.Problems, func(p Problem) bool { return !p.Hole }); i >= 0 {
		return r.Problems[i]
	}
	return nil
}

// copyOptions are those of a copy that is open only to be written.
func (db *DB) copyOptions() Options {
	opts := db.opts
	opts.ReadOnly, opts.Durability, opts.CheckpointCommits = false, DurabilitySync, -1
	return opts
}
