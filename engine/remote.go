package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/engine/internal/extent"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/depot"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/txn"
)

// IsRemote reports whether a text is the URL of a remote, and not the directory of a database.
func IsRemote(s string) bool {
	scheme, _, ok := strings.Cut(s, "://")
	return ok && (scheme == "s3" || scheme == "gs" || scheme == "file") && !strings.Contains(s, "|")
}

// Remote is a database in a bucket, such as s3://bucket/weather, or in a directory that stands for one, such as
// file:///mnt/shared/weather, as a database uses it. Other machines push to it and pull from it.
// Requests have the credentials of this process, whichever process has the database open. Safe for concurrent use; one
// transfer runs at a time. One that is kept open sends fewer requests.
type Remote struct {
	db  *DB
	b   *txn.Bucket
	url string
	env *source.Env
}

// RemoteOptions of [DB.Remote]. nil and the zero value work.
type RemoteOptions struct {
	// Push opens a remote to be pushed to: it is made if nothing is there, and the store is tried once whether it
	// keeps its promises.
	Push bool
	// DryRun opens a remote for pushes that are dry runs: nothing is written, there and here.
	DryRun bool
	// Accept goes on with what is in a remote that is not what this database knows of it, such as a bucket that was
	// restored from a copy.
	Accept bool
}

// Remote opens the remote at a URL. Close it when done.
func (db *DB) Remote(ctx context.Context, url string, o *RemoteOptions) (*Remote, error) {
	if o == nil {
		o = &RemoteOptions{}
	}
	if err := outside(ctx, url, &db.opts); err != nil {
		return nil, err
	}
	env := db.opts.env()
	at, err := bucketAt(ctx, env, url, db.Dir(), o.Push && !o.DryRun)
	if o.DryRun && errors.Is(err, depot.ErrNone) {
		at.Store, err = kv.NewMem(), nil // as if it were made
	}
	if err == nil {
		at.Write, at.Accept, at.DryRun = o.Push, o.Accept, o.DryRun
		var b *txn.Bucket
		if b, err = db.store.Bucket(ctx, at); err == nil {
			return &Remote{db, b, at.Name, env}, nil
		}
	}
	return nil, errors.Join(err, env.Close())
}

// Close closes the remote.
func (r *Remote) Close() error { return r.env.Close() }

// bucketAt opens the store at the URL of a remote, which must lie apart from a directory, if that is not "". make makes
// the directory of a file URL.
func bucketAt(ctx context.Context, env *source.Env, url, beside string, make bool) (o txn.BucketOptions, err error) {
	u, err := zurl.Parse(url)
	if err != nil {
		return o, err
	}
	o.Name = remoteName(u)
	if len(u.Adapters()) > 0 || !IsRemote(url) {
		return o, fmt.Errorf("%s: a remote is at a URL such as s3://bucket/name: %w", o.Name, errors.ErrUnsupported)
	}
	if u.Root().Scheme == "file" {
		dir, err := u.Root().OSPath()
		if err != nil {
			return o, err
		}
		dir = filepath.Clean(dir)
		if IsDatabase(dir) {
			return o, fmt.Errorf("%s: a database is there; for a database say the path: %s", o.Name, dir)
		}
		if beside != "" {
			if err := extent.Separate(extent.Extent{Path: dir}, extent.Extent{Path: beside}); err != nil {
				return o, err
			}
		}
		if make {
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return o, err
			}
		}
		store, err := dirkv.Open(dir, nil)
		if errors.Is(err, os.ErrNotExist) {
			err = unmountedError{fmt.Errorf("%s: %w: %w", o.Name, depot.ErrNone, err)}
		}
		if err != nil {
			return o, err
		}
		env.OnClose(store.Close)
		o.Store = store
		return o, nil
	}
	at, err := env.Open(ctx, u)
	if err != nil {
		return o, err
	}
	store, ok := kv.Sub(at.View, at.Path).(kv.Store)
	if !ok {
		return o, fmt.Errorf("%s: nothing can be written there: %w", o.Name, errors.ErrUnsupported)
	}
	o.Store = store
	return o, nil
}

// unmountedError means that the directory of a remote is not there, perhaps because a mount is not.
type unmountedError struct{ error }

func (e unmountedError) Unwrap() error   { return e.error }
func (unmountedError) Unreachable() bool { return true }

// Push is [DB.Push] to the remote. Errors: those of Push; [kv.ErrUnknown] if an answer was lost and the outcome
// could not be found out, which the same push settles.
func (r *Remote) Push(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
	return r.db.store.PushTo(ctx, r.b, o)
}

// Pull is [DB.Pull] from the remote.
func (r *Remote) Pull(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
	return r.db.store.PullFrom(ctx, r.b, o)
}

// Fetch is [DB.Fetch] from the remote.
func (r *Remote) Fetch(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
	return r.db.store.FetchFrom(ctx, r.b, o)
}

// PushMerging is [DB.PushMerging] to the remote.
func (r *Remote) PushMerging(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
	return r.db.pushMerging(ctx, r.url, o, r.Push, r.Fetch)
}

// PushMerging pushes one branch to another database. If the branch has gone on there, it fetches and merges that, and
// pushes again, until no other push comes between. o has at most one ref, and conflicts are those of [DB.Merge].
func (db *DB) PushMerging(ctx context.Context, to *DB, o txn.TransferOptions) (*txn.TransferReport, error) {
	push := func(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
		return db.Push(ctx, to, o)
	}
	fetch := func(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
		return db.Fetch(ctx, to, o)
	}
	return db.pushMerging(ctx, to.Dir(), o, push, fetch)
}

// mergeTries bounds how often a push merges because others push.
const mergeTries = 64

// pushMerging is PushMerging to what has a name, by push and fetch.
func (db *DB) pushMerging(ctx context.Context, name string, o txn.TransferOptions, push, fetch func(context.Context, txn.TransferOptions) (*txn.TransferReport, error)) (*txn.TransferReport, error) {
	spec := txn.RefSpec{From: txn.MainBranch}
	if len(o.Refs) > 1 || o.AllBranches || o.AllTags || o.Force || o.DryRun {
		return &txn.TransferReport{}, fmt.Errorf("push and merge: %w of more than one branch", errors.ErrUnsupported)
	}
	if len(o.Refs) == 1 {
		spec = o.Refs[0]
	}
	there := spec.From
	if spec.To != "" {
		there = spec.To
	}
	begun := time.Now()
	for try := 0; ; try++ {
		r, err := push(ctx, o)
		if !errors.Is(err, txn.ErrDiverged) || try == mergeTries {
			return r, err
		}
		// Of many that push at the same moment one gets through. The others wait before they look again, not between
		// that and the push, for a few times as long as a try takes.
		if try > 0 {
			t := time.NewTimer(rand.N(time.Since(begun)<<min(try, 3) + 1))
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return r, ctx.Err()
			}
		}
		begun = time.Now()
		theirs := o
		theirs.Refs = []txn.RefSpec{{From: there}}
		got, err := fetch(ctx, theirs)
		if err != nil {
			return got, err
		}
		if _, err := db.Merge(ctx, spec.From, got.Refs[0].Commit.String(), txn.CommitOptions{Message: fmt.Sprintf("merge %s of %s", there, name)}); err != nil {
			return got, err
		}
	}
}

// CloneRemote makes a new database in dir of the remote at a URL; see [DB.Clone]. Options may be nil. With Lazy the clone has the
// history alone, and fetches what is read. The error is [ErrAway] for what it does not have and cannot fetch.
func CloneRemote(ctx context.Context, url, dir string, o *Options, t txn.TransferOptions) (*txn.TransferReport, error) {
	opts := o.withDefaults()
	if opts.FS == nil {
		if err := checkNew(dir); err != nil {
			return nil, fmt.Errorf("clone: %w", err)
		}
	}
	if err := outside(ctx, url, o); err != nil {
		return nil, fmt.Errorf("clone: %w", err)
	}
	env := opts.env()
	at, err := bucketAt(ctx, env, url, dir, false)
	if err != nil {
		return nil, errors.Join(err, env.Close())
	}
	to := opts.txn(ctx, env.Resolver("", nil))
	to.Bucket = openBucket(env, dir)
	r, err := txn.CloneBucket(ctx, at, dir, &to, t)
	return r, errors.Join(err, env.Close())
}

// openBucket is [txn.Options].Bucket for a database in dir.
func openBucket(env *source.Env, dir string) func(context.Context, string) (kv.Store, error) {
	return func(ctx context.Context, url string) (kv.Store, error) {
		at, err := bucketAt(ctx, env, url, dir, false)
		return at.Store, err
	}
}

// CheckRemote looks for the objects of a remote, and with full compares all that is not payload with its names.
func CheckRemote(ctx context.Context, url string, full bool, o *Options) (*depot.CheckReport, error) {
	opts := o.withDefaults()
	env := opts.env()
	at, err := bucketAt(ctx, env, url, "", false)
	if err != nil {
		return nil, errors.Join(err, env.Close())
	}
	r, err := txn.CheckBucket(ctx, at, full)
	return r, errors.Join(err, env.Close())
}

// ClonedFrom returns the URL of the remote that the database in a directory was cloned from, "" if there is none.
func ClonedFrom(dir string) string { return txn.ClonedFrom(dir) }
