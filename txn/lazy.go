package txn

import (
	"context"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/depot"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/away"
	"github.com/zarrdb/zarrdb/txn/internal/bucket"
)

// AwayError means that something is not in this database but in the remote that the database was cloned from, and that it could not
// be fetched. It is [ErrAway], and kv.ErrCorrupt if what the remote has is damaged.
type AwayError = away.Error

// Asker sends the requests to buckets that another process needs, with the credentials of that process.
type Asker = bucket.Asker

// WithAsker returns a context for a request of another process. What is away is then fetched through as, never
// with the credentials of this process.
func WithAsker(ctx context.Context, as Asker) context.Context { return bucket.WithAsker(ctx, as) }

// lent is implemented by sources whose process may ask for what is away: see [Asker].
type lent interface {
	LendBucket(url string, store kv.Store)
}

// lendTo has another process, to which src leads, read the bucket of this database through this process.
func (db *DB) lendTo(src Source) {
	if l, ok := src.(lent); ok && db.away != nil {
		l.LendBucket(db.away.At.URL, db.away.Lent())
	}
}

// lend opens the file of the pack with a payload for a peer.
func (db *DB) lend(ctx context.Context, at pack.Address) (*pack.File, error) {
	if db.away == nil {
		return db.packs.File(at)
	}
	return db.away.Lend(ctx, at)
}

func (db *DB) awayHost() away.Host {
	h := away.Host{
		Dir: db.dir, FS: db.opts.FS, Plain: db.fs == index.DefaultFS, ReadOnly: db.opts.ReadOnly, VerifyReads: db.opts.VerifyReads,
		Bucket: db.opts.Bucket, Packs: db.packs, Peer: db.IsPeer(), Here: db.Here,
	}
	if db.idx != nil {
		h.Pages = db.committed()
	}
	return h
}

// openAway opens what is away of the database, if anything is.
func (db *DB) openAway() error {
	at, err := away.ReadPlace(db.opts.FS, db.dir)
	if err != nil || at == nil {
		return err
	}
	a, err := away.Open(db.awayHost(), *at)
	db.setAway(a)
	return err
}

// begunAway makes a new database one whose contents are in a bucket.
func (db *DB) begunAway(d *depot.Depot, at away.Place) error {
	a, err := away.Begin(db.awayHost(), db.away, d, at)
	db.setAway(a)
	return err
}

func (db *DB) setAway(a *away.Part) {
	if a == nil {
		return
	}
	db.away, db.care.Away, db.care.AwayPayload = a, a.Lists, a.Covers
}

// pages are the committed pages. Those that are away are fetched.
func (db *DB) pages() tree.Pages { return db.withAway(db.committed()) }

func (db *DB) withAway(p indexPages) tree.Pages {
	if db.away == nil {
		return p
	}
	return db.away.Over(p)
}

// awayTries bounds how often a commit is planned again, because pages are away that the head needs which another commit has made.
const awayTries = 16

// submitAway is committer.submit in a lazy clone. No request is sent while commits are locked: if the plan of the commit
// needs something that is away, the commit leaves the lock, makes its plan once without it, and comes back.
func (db *DB) submitAway(ctx context.Context, req *commitRequest) {
	free := req.ctx
	req.ctx = away.UnderLock(free)
	for range awayTries {
		db.commit.submit(req)
		if !errors.Is(req.err, away.ErrLocked) {
			return
		}
		again := *req
		again.ctx = ctx // nothing is under way: it may be cancelled
		p := db.commit.plan(nil)
		if p.addAll([]*commitRequest{&again}); again.err != nil {
			req.err = again.err
			return
		}
	}
	req.err = errors.New("commit: others change what is away all the time; try again")
}

// lazyFrom reports whether a transfer from another database carries the history alone, because both have their contents in the same bucket.
func (db *DB) lazyFrom(from *DB) (bool, error) {
	switch {
	case from.away == nil || !from.away.At.Staged:
		return false, nil
	case db.away == nil || db.away.At.ID != from.away.At.ID:
		return false, fmt.Errorf("%s has the history alone: %w", from.dir, errors.ErrUnsupported)
	}
	return true, nil
}

// errBegunLazy refuses to go on with a lazy clone that was begun, in another way.
func (db *DB) errBegunLazy() error {
	if db.away == nil {
		return nil
	}
	return fmt.Errorf("create %s: %w: a lazy clone was begun there; remove the directory", db.dir, ErrExists)
}

// ClonedFrom returns the URL of the bucket that the database in a directory was cloned from, or "".
func ClonedFrom(dir string) string {
	for _, s := range bucket.States(index.DefaultFS, dir) {
		if s.Cloned {
			return s.URL
		}
	}
	if at, err := away.ReadPlace(index.DefaultFS, dir); err == nil && at != nil {
		return at.URL
	}
	return ""
}
