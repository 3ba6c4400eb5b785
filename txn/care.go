package txn

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn/internal/care"
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
	ErrSound = errors.New("txn: the index is sound, there is nothing to salvage")
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
)

// Kinds of problems.
const (
	ProblemPage    = care.ProblemPage    // of the index
	ProblemPayload = care.ProblemPayload // of a chunk or a large document
	ProblemCommit  = care.ProblemCommit
	ProblemRef     = care.ProblemRef
	ProblemReflog  = care.ProblemReflog
	ProblemSession = care.ProblemSession
	ProblemPack    = care.ProblemPack
)

// MaxProblemCommits bounds Problem.Commits.
const MaxProblemCommits = care.MaxProblemCommits

// parts are what care needs of the database.
func (db *DB) parts() *care.Parts {
	return &care.Parts{
		FS: db.opts.FS, Dir: db.dir, PackDir: packDir, Now: db.opts.Now, Index: db.idx, Packs: db.packs, Ends: &db.ends, Expired: db.home.expired,
	}
}

// Check verifies that everything that refs, reflogs and stored sessions reach
// is there and fits its name: commits hash to their ids, their parents
// exist and their generations fit, reflogs lead to the refs, pages hash to
// their names and fit the pages above them, payloads lie in packs. It looks at
// the database as it is when it begins, beside running readers and writers,
// and keeps what it looks at from being reclaimed. The error is about the check
// itself, ctx included; damage is in the report.
func (db *DB) Check(ctx context.Context, o CheckOptions) (*CheckReport, error) {
	return cared(ctx, db, "check", o, o.Progress, o.Found, db.checkNow)
}

func (db *DB) checkNow(ctx context.Context, o CheckOptions) (*CheckReport, error) {
	c := &care.Checker{Options: o}
	if err := db.lookAtAll(ctx, c); err != nil {
		return nil, err
	}
	return &c.Report, nil
}

// lookAtAll is look with the commits that are not in the index yet.
func (db *DB) lookAtAll(ctx context.Context, c *care.Checker) error {
	if err := db.check(); err != nil {
		return err
	}
	if err := db.writePending(ctx); err != nil {
		return err
	}
	return db.look(ctx, c)
}

// look runs a check. Nothing is reclaimed meanwhile.
func (db *DB) look(ctx context.Context, c *care.Checker) error {
	c.Parts = *db.parts()
	if err := db.care.RLock(ctx); err != nil {
		return err
	}
	defer db.care.RUnlock()
	return c.Run(ctx)
}
