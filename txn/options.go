package txn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/history"
	"github.com/zarrdb/zarrdb/txn/internal/away"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
	"github.com/zarrdb/zarrdb/txn/internal/transfer"
	"github.com/zarrdb/zarrdb/txn/internal/visits"
)

var (
	// ErrConflict matches every [ConflictError].
	ErrConflict = catalog.ErrConflict

	// ErrNoRef means that a branch, tag, commit or session does not exist.
	ErrNoRef = catalog.ErrNoRef

	// ErrRefExists means that a branch or tag of that name is there already.
	ErrRefExists = fault.New("txn: name exists already", fault.ErrExists)

	// ErrRefName means that a string cannot be the name of a branch or tag.
	ErrRefName = catalog.ErrRefName

	// ErrSessionClosed is returned by operations on a session that was
	// committed, aborted, or is being committed.
	ErrSessionClosed = fault.New("txn: session is closed", fault.ErrClosed)

	// ErrLost means that a payload which the session wrote since its last
	// savepoint was lost, because a write or sync of its pack failed. The
	// session can be closed and resumed at that savepoint, or aborted; other
	// sessions go on.
	ErrLost = errors.New("txn: the disk failed, and what the session wrote last is lost")

	// ErrSessionBusy means that a stored session is open in this process.
	ErrSessionBusy = errors.New("txn: session is open elsewhere")

	// ErrManyBases means that two commits have several best common ancestors.
	ErrManyBases = history.ErrManyBases

	// ErrNoVirtual means that a value lies outside the database and no
	// resolver was configured to read it.
	ErrNoVirtual = errors.New("txn: no resolver for virtual values")

	// ErrNotDatabase means that a directory holds no database.
	ErrNotDatabase = catalog.ErrNotDatabase

	// ErrExists means that a path of a move, copy or new database is taken.
	ErrExists = namespace.ErrExists

	// ErrMoved means that the directory of the database was moved, removed or replaced
	// while it was open. Nothing is acknowledged any more, and no file is made or removed
	// under the old path. Close the database, and open it at its new path.
	ErrMoved = index.ErrMoved

	// ErrNoLocks means that the file system has no locks: the database can be opened for reading only.
	ErrNoLocks = index.ErrNoLocks

	// ErrFailed means that a write of the index failed. Reading goes on, and nothing is written until
	// the database is opened again.
	ErrFailed = index.ErrFailed

	// ErrClosed is returned by every operation on a closed database.
	ErrClosed = catalog.ErrClosed

	// ErrAway matches every [AwayError].
	ErrAway = away.ErrAway

	// ErrPeersAway means that processes have versions of the database open, which they read through
	// a process that has ended, and that they did not come back in time. Nothing was removed: what
	// they read may be among it. The error names the processes.
	ErrPeersAway = visits.ErrPeersAway
)

// Resolver reads values that lie outside the database.
type Resolver interface {
	// Locate finds the given part of a resource. src.Whole says that length is
	// not known and everything from offset on is meant. The resolver must fail
	// rather than give bytes of a resource that src.Validator no longer fits.
	Locate(ctx context.Context, src tree.Source, offset, length uint64) (kv.Value, error)
}

// Options configure a database. nil and the zero value work.
type Options struct {
	// FS is where the database lives; nil is the operating system's.
	FS index.FS
	// ReadOnly opens for reading, which needs no permission to write. While it is
	// open no process can write: see [index.Options].
	ReadOnly bool
	// WhyReadOnly, if not nil, is part of the error of a write to a database that is ReadOnly.
	WhyReadOnly error
	// Locked, if set, is called if another process has the database open, with the time
	// for which this one has been trying. Its result says what to do: nil tries again at once,
	// an error is that of opening. nil is no second try.
	Locked func(held *index.LockedError, waited time.Duration) error
	// Policy answers questions about metadata documents; nil knows none, so
	// every key is a document.
	Policy Policy
	// Resolver reads virtual values; nil refuses them with ErrNoVirtual.
	Resolver Resolver
	// MemoryBytes bounds the memory that all databases of the process take together; see package
	// budget. The least of the open databases counts. The default is a quarter of what the
	// machine, the cgroup and GOMEMLIMIT allow.
	MemoryBytes int64
	// PageCacheBytes is the size of a cache of parsed pages for this database, beside
	// MemoryBytes; 0 uses the cache that the databases of the process share, negative
	// disables caching.
	PageCacheBytes int64
	// VerifyReads compares stored bytes with their checksums at every read. By default, a whole
	// block of 64 KiB of a mapped file is compared when a snapshot reads it first in this process, and again
	// after an error; sessions, checks and transfers always compare.
	VerifyReads bool
	// SessionBytes bounds the private pages and buffered writes that one session keeps in
	// memory before they spill to disk; the default is a part of MemoryBytes, at most 64 MiB.
	SessionBytes int64
	// SavepointBytes is how much payload a session may write before it makes
	// a savepoint by itself; default 1 GiB, negative never.
	SavepointBytes int64
	// PackBytes is the size at which a pack is full. The default is a 64th of
	// what all packs take on disk, at least 16 MiB and at most 4 GiB: a
	// collection may need the space of one of them.
	PackBytes uint64
	// MemTableBytes is the size of the index's write buffer; the default is a part of
	// MemoryBytes, at most 32 MiB.
	MemTableBytes int
	// Socket is where this process serves the database. Processes that find the database
	// locked read it from the lock file; see [index.Holder].
	Socket string
	// Bucket opens the store at the URL of a remote, for lazy clones of it; nil refuses them. The store stays open with the database.
	Bucket func(ctx context.Context, url string) (kv.Store, error)
	// Other opens another database of this machine for reading, through the process that
	// has it open if there is one, and returns what closes it. It is for transfers and
	// repairs that another process asks for; see [DB.Answer]. nil refuses them.
	Other func(ctx context.Context, dir string) (db *DB, done func() error, err error)
	// Durability says when commits are on disk; default [DurabilitySync].
	Durability Durability
	// SyncInterval bounds the time that [DurabilityAsync] leaves between a
	// commit and its being on disk; default 1 s.
	SyncInterval time.Duration
	// CheckpointCommits is after how many moves of refs the index is copied,
	// see [DB.Checkpoint]; sooner in a young database. Negative never does it by
	// itself. Default 1024, and later where copies would take more than a tenth of
	// the time; a number that is given is kept to. Commits do not wait for it, but
	// Close does.
	CheckpointCommits int
	checkpointsRest   bool                     // CheckpointCommits is the default
	transferFault     func(*transfer.Transfer) // tests break what a transfer from here found to copy
	lives             func(peer string) bool   // whether the file of a peer is locked, where the system does not tell
	aheadPages        int64                    // how many bytes of pages a commit puts in batches of their own; default 4 MiB
	// CareFailed, if set, is called when background work fails that did not fail before,
	// see [DB.CareErrors], and when a database is opened that remembers an error. Calls
	// may overlap, and must not use the database.
	CareFailed func(CareError)
	// Author is recorded in commits that name none; default "unknown".
	Author string
	// Now is the clock for commit and reflog times, safe for concurrent use;
	// default [time.Now].
	Now func() time.Time
}

const (
	maxBudget        = 1 << 44 // of memory
	maxMemTableBytes = 1 << 30
)

// check reports an option that has no sense. It is called before anything is made.
func (o *Options) check() error {
	for _, n := range []struct {
		name      string
		have, max int64
	}{
		{"MemoryBytes", o.MemoryBytes, maxBudget}, {"PageCacheBytes", o.PageCacheBytes, maxBudget}, {"SessionBytes", o.SessionBytes, maxBudget},
		{"MemTableBytes", int64(o.MemTableBytes), maxMemTableBytes}, {"Durability", int64(o.Durability), int64(DurabilityNone)},
	} {
		if n.have > n.max {
			return fmt.Errorf("txn: Options.%s is %d, the most is %d", n.name, n.have, n.max)
		}
	}
	if o.MemTableBytes < 0 || o.SessionBytes < 0 || o.MemoryBytes < 0 {
		return fmt.Errorf("txn: Options.MemTableBytes (%d), Options.SessionBytes (%d) or Options.MemoryBytes (%d) is negative", o.MemTableBytes, o.SessionBytes, o.MemoryBytes)
	}
	return nil
}

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.FS == nil {
		c.FS = index.DefaultFS
	}
	if c.Policy == nil {
		c.Policy = namespace.NoPolicy{}
	}
	if c.SavepointBytes == 0 {
		c.SavepointBytes = 1 << 30
	}
	if c.SyncInterval <= 0 {
		c.SyncInterval = time.Second
	}
	if c.CheckpointCommits == 0 {
		c.CheckpointCommits, c.checkpointsRest = 1024, true
	}
	if c.aheadPages == 0 {
		c.aheadPages = defaultAheadPages
	}
	if c.Author == "" {
		c.Author = "unknown"
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// readOnly is the error of a write to a database that is read only.
func (o *Options) readOnly() error {
	if o.WhyReadOnly != nil {
		return fmt.Errorf("%w: %w", kv.ErrReadOnly, o.WhyReadOnly)
	}
	return kv.ErrReadOnly
}
