package txn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/collect"
)

// Damage is cared for in three steps, whether the index opens or not:
//
//	              check                heal                              report
//	[DB.Repair]   this database        pages and commits ◀─ checkpoints   RepairReport, quarantine/repair-TIME
//	[Salvage]     index, checkpoints   index ◀─ the best of them,         SalvageReport
//	                                   newer payloads ─▶ lost+found
//
// docs/design/salvage.md has the rules.

var (
	// ErrIndexLost matches every [IndexLostError].
	ErrIndexLost = errors.New("txn: the index is lost or damaged")

	// ErrSound means that there is nothing to salvage: the index opens and a
	// check finds nothing.
	ErrSound = care.ErrSound

	// ErrCollecting means that another collection, or a transfer into the database,
	// is running.
	ErrCollecting = errors.New("txn: another collection or transfer is running")
)

// IndexLostError says that a directory is a database whose index cannot be
// opened. It is [ErrIndexLost] and kv.ErrCorrupt.
type IndexLostError struct {
	Dir string
	Err error
}

// Error implements error; it names the command that helps.
func (e *IndexLostError) Error() string {
	return fmt.Sprintf("%v (%v): \"zarrdb fsck --salvage %s\" restores what can be restored", ErrIndexLost, e.Err, e.Dir)
}

// Is implements the matching that [errors.Is] does.
func (e *IndexLostError) Is(target error) bool {
	return target == ErrIndexLost || fault.Matches(kv.ErrCorrupt, target)
}

// Unwrap returns why the index cannot be opened.
func (e *IndexLostError) Unwrap() error { return e.Err }

// indexIsLost reports whether an error of opening is about what is there, not
// about a lock, a right or a disk.
func indexIsLost(err error) bool {
	return errors.Is(err, kv.ErrCorrupt) || errors.Is(err, index.ErrNotExist) ||
		errors.Is(err, index.ErrNotFound) || errors.Is(err, os.ErrNotExist)
}

type (
	// CheckOptions say how much [DB.Check] looks at.
	CheckOptions = care.CheckOptions
	// CheckProgress is how far a check is.
	CheckProgress = care.CheckProgress
	// CheckReport is what a check looked at and found.
	CheckReport = care.CheckReport
	// Problem is something that is not as it must be.
	Problem = care.Problem
	// DamageError says that payloads are damaged, and where they are. It is kv.ErrCorrupt.
	DamageError = care.DamageError
	// RepairReport says what [DB.Repair] found and did.
	RepairReport = care.RepairReport
	// SalvageReport says what [Salvage] did.
	SalvageReport = care.SalvageReport
	// Checkpoint is a copy of the index that a lost one can be restored from.
	Checkpoint = care.Checkpoint
	// CareError is the error of work that a database does by itself, which fails no
	// operation of a user.
	CareError = care.Failure

	// GCOptions say how to collect.
	GCOptions = collect.GCOptions
	// GCProgress says how far a collection is.
	GCProgress = collect.GCProgress
	// GCReport says what a collection did, or would do.
	GCReport = collect.GCReport
	// Holder is something that keeps versions.
	Holder = collect.Holder
	// DiskUse says how much room the directory of a database takes.
	DiskUse = collect.DiskUse
	// ExpireOptions say which versions may go.
	ExpireOptions = collect.ExpireOptions
	// KeepPolicy says which versions of a branch stay.
	KeepPolicy = collect.KeepPolicy
	// ExpireReport says what expiry did, or would do.
	ExpireReport = collect.ExpireReport
)

// ParseKeepPolicy reads a policy such as "keep 7 daily 4 weekly 12 monthly, tags".
func ParseKeepPolicy(s string) (KeepPolicy, error) { return collect.ParseKeepPolicy(s) }

// HolderSnapshot is the kind of a [Holder] that is an open snapshot.
const HolderSnapshot = collect.HolderSnapshot

// Kinds of problems.
const (
	ProblemPayload = care.ProblemPayload // of a chunk or a large document
	ProblemPack    = care.ProblemPack
)

// Check verifies that everything that refs, reflogs and stored sessions reach
// is there and fits its name: commits hash to their ids, their parents
// exist and their generations fit, reflogs lead to the refs, pages hash to
// their names and fit the pages above them, payloads lie in packs. It looks at
// the database as it is when it begins, beside running readers and writers,
// and keeps what it looks at from being reclaimed. The error is about the check
// itself, ctx included; damage is in the report.
func (db *DB) Check(ctx context.Context, o CheckOptions) (*CheckReport, error) {
	return cared(ctx, db, "check", o, o.Progress, o.Found, db.care.Check)
}

// Repair makes a damaged database as usable as it can be and takes nothing away:
//
//   - Pages and commits that are damaged or gone are restored from checkpoints
//     of the index. Their names are hashes, so they are the right ones.
//   - Payloads that are damaged or gone are written again if this database or one of
//     from has the same bytes, under whatever key. All payloads are read if from is given.
//     Payloads that stay damaged are known holes: every check and transfer looks at them.
//   - A branch that cannot be opened is not moved. Its newest version that can
//     be is put on the branch "repair/NAME".
//   - Where entries of a reflog are missing, an entry "expired" says where the branch
//     was before and after. Earlier versions of this program let such entries expire
//     if the clock of the machine had gone back.
//
// Pages come from the databases of from too. Payloads that nothing has stay damaged and
// reading them stays an error; history is never rewritten. What is damaged, and in which
// arrays, chunks and versions, is written to a file in the quarantine. The error is about
// the repair, [ErrCollecting] beside a collection or a transfer into the database; damage
// that is left is in the report: [Salvage] goes back to a sound checkpoint.
func (db *DB) Repair(ctx context.Context, o CheckOptions, from ...*DB) (*RepairReport, error) {
	return db.home.repair(ctx, o, from)
}

func (h holder) repair(ctx context.Context, o CheckOptions, from []*DB) (*RepairReport, error) {
	if err := h.writable(); err != nil {
		return nil, err
	}
	var donors []care.Donor
	for _, other := range from {
		if err := other.check(); err != nil {
			return nil, err
		}
		donors = append(donors, donor{other})
	}
	if !h.collecting.TryLock() {
		return nil, ErrCollecting
	}
	defer h.collecting.Unlock()
	// What is in the index counts, before and after.
	h.forgetCommits()
	defer h.forgetCommits()
	return h.care.Repair(ctx, o, donor(h), donors)
}

// Payloads finds sound payloads with the hashes in sums.
func (d donor) Payloads(ctx context.Context, sums []digest.Sum) ([]catalog.Hole, error) {
	return asked(ctx, d.DB, "payloads", sums, func(ctx context.Context, sums []digest.Sum) ([]catalog.Hole, error) {
		return d.care.FindPayloads(ctx, sums, d.RightPayload)
	})
}

// RightPayload returns the bytes of a payload if they have a hash. Its header may be damaged.
func (d donor) RightPayload(ctx context.Context, a pack.Address, sum digest.Sum) (out []byte, err error) {
	err = d.home.view(ctx, a, 0, a.Length, true, sum, func(b []byte) error {
		out = append([]byte{}, b...)
		return care.CompareSum(a, b, sum)
	})
	return out, err
}

// problemsOf finds the keys and versions of payloads that are damaged.
func (db *DB) problemsOf(ctx context.Context, d care.Damages) ([]Problem, error) {
	return asked(ctx, db, "damage", d, db.care.FindDamage)
}

// Checkpoint copies the index now, so that [Salvage] can restore everything up
// to here, and removes all but the two newest copies. The copies share tables
// with the index: one takes milliseconds, and space only as the index changes.
func (db *DB) Checkpoint(ctx context.Context) error {
	_, err := asked(ctx, db, "checkpoint", none{}, db.checkpointNow)
	return err
}

func (db *DB) checkpointNow(ctx context.Context, _ none) (none, error) {
	if err := errors.Join(db.writable(), ctx.Err()); err != nil {
		return none{}, err
	}
	return none{}, db.care.Checkpoints.Make()
}

// Checkpoints lists the copies of the index, oldest first, after the one that
// is being made if there is one. The error may also be that of the last attempt.
func (db *DB) Checkpoints() ([]Checkpoint, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	a, err := asked(ctx, db, "checkpoints", none{}, db.listCheckpoints)
	return a.List, errors.Join(err, a.Err.Err)
}

// checkpointsAnswer is the result of [DB.Checkpoints].
type checkpointsAnswer struct {
	List []Checkpoint
	Err  care.Damage
}

func (db *DB) listCheckpoints(context.Context, none) (checkpointsAnswer, error) {
	if err := db.check(); err != nil {
		return checkpointsAnswer{}, err
	}
	list, err := db.care.Checkpoints.List()
	return checkpointsAnswer{list, care.Damage{Err: err}}, nil
}

// WorkSpace is the Work of a [CareError] that warns before commits stop because the disk is full.
const WorkSpace = care.WorkSpace

// CareErrors returns the errors of background work that has not succeeded since. Those of
// checkpoints are remembered by the directory. It works after Close too.
func (db *DB) CareErrors() []CareError {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	list, _ := asked(ctx, db, "care errors", none{}, func(context.Context, none) ([]CareError, error) {
		list := db.care.Failures.List()
		if err := db.idx.LowSpace(); err != nil && db.writable() == nil {
			list = append(list, CareError{Work: WorkSpace, Err: err})
		}
		return list, nil
	})
	return list
}

// LastCare returns when the last collection ended, and the last backup of this database; the zero time without one. A
// backup that had no permission to write in the database is not counted.
func (db *DB) LastCare(ctx context.Context) (gc, backup time.Time, err error) {
	at, err := asked(ctx, db, "last care", false, db.lastCare)
	if errors.Is(err, errors.ErrUnsupported) {
		err = nil // an earlier program has the database open
	}
	return at[0], at[1], err
}

// lastCare returns the times, after it noted that of a backup.
func (db *DB) lastCare(_ context.Context, backup bool) (at [2]time.Time, err error) {
	if err := db.changes(!backup); err != nil {
		return at, err
	}
	if backup {
		batch := db.idx.NewBatch()
		defer batch.Close()
		catalog.PutLastCare(batch, catalog.LastBackup, db.opts.Now())
		if err := batch.Commit(false); err != nil {
			return at, err
		}
	}
	for i, of := range []string{catalog.LastGC, catalog.LastBackup} {
		if at[i], err = catalog.LastCare(db.idx, of); err != nil {
			return at, err
		}
	}
	return at, nil
}

// backedUp notes that a backup was made, if that can be noted.
func (db *DB) backedUp(ctx context.Context) { _, _ = asked(ctx, db, "last care", true, db.lastCare) }

// GC removes pages and payloads that nothing reaches: no commit that has not
// expired, no session or open snapshot. It reads pages of the index, not
// payloads. Readers and writers go on meanwhile. It can be interrupted at any
// moment, by ctx or a crash, and then be run again. Damage ends the collection
// before anything is removed. It waits some seconds for processes that have versions open
// through a process which was killed, and then is [ErrPeersAway].
func (db *DB) GC(ctx context.Context, o GCOptions) (*GCReport, error) {
	db.letGo()
	return cared(ctx, db, "gc", o, o.Progress, nil, db.gc)
}

func (db *DB) gc(ctx context.Context, o GCOptions) (*GCReport, error) {
	if err := db.changes(o.DryRun); err != nil {
		return nil, err
	}
	if !o.DryRun {
		if err := db.retryAway(ctx); err != nil {
			return nil, fmt.Errorf("gc: %w", err)
		}
	}
	if err := db.unappliedLog(ctx); err != nil {
		return nil, fmt.Errorf("gc: %w", err)
	}
	if !o.DryRun {
		if err := db.visits.Await(ctx); err != nil {
			return nil, fmt.Errorf("gc: %w", err)
		}
	}
	if !db.collecting.TryLock() {
		return nil, ErrCollecting
	}
	defer db.collecting.Unlock()
	if o.AwaySize > 0 && db.away == nil {
		return nil, fmt.Errorf("gc: away size: %w: it is no lazy clone", errors.ErrUnsupported)
	}
	r, err := collect.GC(ctx, &db.care, core{db}, o)
	if err == nil && o.AwaySize > 0 && !o.DryRun {
		r.AwayBytes, err = db.away.SetLimit(ctx, o.AwaySize)
	}
	if err == nil && o.Away && db.away != nil {
		var bytes int64
		bytes, _, err = db.away.Empty(ctx, o.DryRun)
		r.AwayBytes += bytes
	}
	if err == nil && o.Explain {
		r.Disk = db.DiskUse()
	}
	return r, err
}

// DiskUse returns the present sizes. It looks at each file; files that are removed
// meanwhile do not count.
func (db *DB) DiskUse() DiskUse {
	var use DiskUse
	use.Packs, use.IndexWritten = db.home.usage()
	use.Measure(db.opts.FS, db.dir)
	return use
}

// Expire marks the versions that the options let go. Heads, tags, kept versions, bases
// of sessions and what their reflogs still name always stay, and so do the merge bases
// of branches and tags unless DropBases is set; a snapshot that is open reads on. With both limits, what either keeps stays.
func (db *DB) Expire(ctx context.Context, o ExpireOptions) (*ExpireReport, error) {
	defer db.letGo() // also after a lost answer
	name := "expire"
	if o.Policy != (KeepPolicy{}) {
		name = "expire policy"
	}
	return asked(ctx, db, name, o, db.expire)
}

func (db *DB) expire(ctx context.Context, o ExpireOptions) (*ExpireReport, error) {
	err := db.changes(o.DryRun)
	if !o.DryRun {
		err = db.changeable()
	}
	if err != nil {
		return nil, err
	}
	return collect.Expire(ctx, &db.care, core{db}, o)
}

// changes returns why the database cannot be changed, or with dryRun, why it cannot be read.
func (db *DB) changes(dryRun bool) error {
	if dryRun {
		return db.check()
	}
	return db.writable()
}
