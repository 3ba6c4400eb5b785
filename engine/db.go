package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zarrdb/zarrdb/engine/internal/cache"
	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/engine/internal/virtual"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// DB is an open database: its versions, and arrays in them. Safe for concurrent use.
type DB struct {
	store *txn.DB
	opts  Options
	cache *cache.Cache
	pool  *transfer.Pool
	docs  *zarr.Documents
	env   *source.Env // opens the files that values refer to
	files *virtual.Resolver

	stop     func() error // ends serving; nil if the database is not served
	leaves   io.Closer    // the source of a peer, if the peer closes it; else nil
	shared   *sharedSessions
	holder   *DB          // of a handle; else nil
	followed atomic.Int64 // when it was opened, or [DB.Follow] began last
	mu       sync.Mutex
	sessions []*Session // opened through this handle
}

// LockedError names the process that holds the lock of a database. Only one process may hold
// the lock. To share a database, let that process serve it.
type LockedError = index.LockedError

// Open opens the database in a directory. ctx bounds the opening alone. Errors:
// [ErrNotFound] if there is none and Options.Create is not set; *[LockedError] if
// another process has it open, for reading too, after Options.LockWait;
// index.ErrFormat if a newer program wrote it.
func Open(ctx context.Context, dir string, o *Options) (*DB, error) {
	return open(ctx, dir, o, func(to *txn.Options, opts Options) (*txn.DB, error) {
		store, err := txn.Open(dir, to)
		if errors.Is(err, txn.ErrNotDatabase) && opts.Create && !opts.ReadOnly {
			return createStore(dir, to)
		}
		return store, err
	})
}

// Create makes a new database and opens it. The directory may exist if it is
// empty; [ErrExists] if it holds a database or other files. A URL, or the name of a
// place in a database, such as w.zdb@main, is [ErrName].
func Create(ctx context.Context, dir string, o *Options) (*DB, error) {
	return open(ctx, dir, o, func(to *txn.Options, _ Options) (*txn.DB, error) { return createStore(dir, to) })
}

func createStore(dir string, o *txn.Options) (*txn.DB, error) {
	if err := checkNew(dir); err != nil {
		return nil, fmt.Errorf("create %w", err)
	}
	return txn.Create(dir, o)
}

func open(ctx context.Context, dir string, o *Options, open func(*txn.Options, Options) (*txn.DB, error)) (*DB, error) {
	opts := o.withDefaults()
	if err := opts.check(); err != nil {
		return nil, err
	}
	env := opts.env()
	files := env.Resolver("", nil)
	to := opts.txn(ctx, files)
	to.Bucket = openBucket(env, dir)
	var serving *Serving
	var err error
	if opts.Serve != nil {
		if serving, err = opts.Serve(dir); err != nil {
			return nil, err
		}
	}
	if serving != nil {
		to.Socket = serving.Socket
	}
	store, err := open(&to, opts)
	if err != nil {
		return nil, err
	}
	db := &DB{store: store, opts: opts, cache: cache.New(opts.CacheBytes), pool: transfer.NewPool(opts.Workers), docs: zarr.NewDocuments(documentBytes), env: env, files: files, shared: &sharedSessions{}}
	db.followed.Store(time.Now().UnixNano())
	env.Recall = db.Granted
	if serving != nil {
		if err := serving.Start(db); err != nil {
			return nil, errors.Join(err, db.Close())
		}
		db.stop = sync.OnceValue(serving.Stop)
	}
	return db, nil
}

// env returns the environment that opens the files that values refer to.
func (o *Options) env() *source.Env {
	return &source.Env{Adapters: o.Adapters, Follow: o.Follow}
}

func (o *Options) txn(ctx context.Context, files *virtual.Resolver) txn.Options {
	return txn.Options{
		FS: o.FS, ReadOnly: o.ReadOnly, WhyReadOnly: o.WhyReadOnly, Other: o.other, Locked: o.waitLocked(ctx), Policy: policy.Policy{}, Resolver: files,
		MemoryBytes: o.MemoryBytes, PageCacheBytes: o.PageCacheBytes, SessionBytes: o.SessionBytes, VerifyReads: o.VerifyReads,
		Author: o.Author, Now: o.Now,
		Durability: o.Durability, SyncInterval: o.SyncInterval, CareFailed: o.CareFailed,
	}
}

// IsDatabase reports whether a directory holds a database, of this or a newer
// format.
func IsDatabase(dir string) bool {
	name := dir + string(os.PathSeparator) + txn.FormatFile
	if f, err := os.Stat(name); err != nil || !f.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return true // opening it says why not
	}
	defer f.Close()
	start := make([]byte, len(txn.FormatWord)+1)
	if n, err := io.ReadFull(f, start); err != nil {
		return n == 0 || !errors.Is(err, io.ErrUnexpectedEOF) // it was cut off, or opening it says why it cannot be read
	}
	// The index in a database has such a file, too: it names no number, but the word "index".
	number, ok := strings.CutPrefix(string(start), txn.FormatWord)
	return ok && number >= "0" && number <= "9"
}

// Close closes the database; see [txn.DB.Close].
func (db *DB) Close() error {
	if db.holder != nil {
		return db.leave()
	}
	err := errors.Join(db.stopServing(), db.store.Close(), db.release())
	if db.leaves != nil {
		err = errors.Join(err, db.leaves.Close())
	}
	return err
}

func (db *DB) stopServing() error {
	if db.stop == nil {
		return nil
	}
	return db.stop()
}

// release closes what the store does not: views of files that values refer to,
// and the cache. It does nothing the second time.
func (db *DB) release() error {
	err := db.env.Close()
	db.cache.Close()
	return err
}

// documentBytes is about how much memory parsed documents of a database take.
const documentBytes = 2 << 20

// OpenSessions returns the number of sessions that are open in this process, including
// sessions of other processes that use the database through it.
func (db *DB) OpenSessions() int { return db.store.OpenSessions() }

// arrays is how arrays of this database are opened.
func (db *DB) arrays() *zarr.OpenOptions {
	return &zarr.OpenOptions{Registry: db.opts.Codecs, Documents: db.docs, Runner: db.pool, Cache: db.cache.ForArrays()}
}

// At opens the version that a revision names: a branch, a tag, a commit id
// prefix, REV~N or REV@{time}; "" is the branch main.
func (db *DB) At(ctx context.Context, rev string) (*Snapshot, error) {
	if db.store.IsPeer() { // one request
		s, err := db.store.At(ctx, rev)
		if err != nil {
			return nil, err
		}
		return db.snapshot(s), nil
	}
	var s *Snapshot
	err := db.OpenAt(ctx, rev, func(id txn.CommitID) (err error) {
		s, err = db.Snapshot(ctx, id)
		return err
	})
	return s, err
}

// OpenAt calls open with the version that a revision names. A branch may move on, and
// that version expire, before it is opened: then the revision is looked up again.
func (db *DB) OpenAt(ctx context.Context, rev string, open func(txn.CommitID) error) error {
	id, err := db.Resolve(ctx, rev)
	for err == nil {
		was := id
		if err = open(id); !errors.Is(err, txn.ErrExpired) {
			return err
		}
		expired := err
		if id, err = db.Resolve(ctx, rev); err == nil && id == was {
			return expired
		}
	}
	return err
}

// Snapshot opens the version of a commit.
func (db *DB) Snapshot(ctx context.Context, id txn.CommitID) (*Snapshot, error) {
	s, err := db.store.Snapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	return db.snapshot(s), nil
}

func (db *DB) snapshot(s *txn.Snapshot) *Snapshot {
	at := &Snapshot{at: s, db: db}
	at.nodes = nodes{view: at, open: db.arrays()}
	return at
}

// View runs fn on one version and closes it afterwards.
func (db *DB) View(ctx context.Context, rev string, fn func(*Snapshot) error) error {
	s, err := db.At(ctx, rev)
	if err != nil {
		return err
	}
	defer s.Close()
	return fn(s)
}

// Begin opens a session on a branch.
func (db *DB) Begin(ctx context.Context, branch string) (*Session, error) {
	s, err := db.store.Begin(ctx, branch)
	if err != nil {
		return nil, err
	}
	return db.session(s), nil
}

// BeginWith is [txn.DB.BeginWith].
func (db *DB) BeginWith(ctx context.Context, o txn.BeginOptions) (*Session, error) {
	s, err := db.store.BeginWith(ctx, o)
	if err != nil {
		return nil, err
	}
	return db.session(s), nil
}

// Resume takes up a session: one that is open, in whatever process, or as it was last saved. Several
// Sessions for one that is open are the same transaction: Commit or Abort of one ends it for all.
func (db *DB) Resume(ctx context.Context, id SessionID) (*Session, error) {
	if err := db.shared.opening.Lock(ctx); err != nil {
		return nil, err
	}
	defer db.shared.opening.Unlock()
	if s := db.shared.share(id); s != nil {
		return db.own(s), nil
	}
	return db.resume(ctx, id)
}

// resumeAlone is Resume where a session that is open through this DB already is
// [txn.ErrSessionBusy], but for a handle.
func (db *DB) resumeAlone(ctx context.Context, id SessionID) (*Session, error) {
	if db.holder != nil {
		return db.Resume(ctx, id)
	}
	if err := db.shared.opening.Lock(ctx); err != nil {
		return nil, err
	}
	defer db.shared.opening.Unlock()
	return db.resume(ctx, id)
}

// resume opens a stored session at its last savepoint; shared.opening is held.
func (db *DB) resume(ctx context.Context, id txn.SessionID) (*Session, error) {
	s, err := db.store.Resume(ctx, id)
	if err != nil {
		return nil, err
	}
	return db.session(s), nil
}

func (db *DB) session(s *txn.Session) *Session {
	open := db.arrays()
	open.Locks = zarr.NewChunkLocks()
	c := policy.NewCopies(s, open)
	var view kv.Reader = tracked{s, c, db.files}
	if db.store.IsPeer() { // other processes may write to the session
		c.Untracked()
		view = shared{tracked{s, c, db.files}}
	}
	es := &Session{tx: s, nodes: nodes{view: view, open: open}, copies: c, db: db, left: new(sync.Once)}
	db.shared.add(es)
	return db.own(es)
}

// Update runs fn in a session on a branch and commits its writes with the given
// message. If fn fails nothing is written and its error is returned. If the branch
// moved meanwhile and the changes touch each other, the error is a *[ConflictError];
// [DB.Retry] calls fn again then. So no update is lost: of two sessions that changed
// one chunk or attribute, one is committed, even if both wrote the same.
// [Session.GuardRead] guards chunks that fn reads and relies on without writing
// them. A session that changed nothing makes no commit: the result is its base.
func (db *DB) Update(ctx context.Context, branch, message string, fn func(*Session) error) (*Commit, error) {
	s, err := db.Begin(ctx, branch)
	if err != nil {
		return nil, err
	}
	defer s.Abort() // does nothing after the commit
	if err := fn(s); err != nil {
		return nil, err
	}
	return s.Commit(ctx, CommitOptions{Message: message})
}

// Retry is [DB.Update] that calls fn again, in a new session, after a conflict, with
// growing pauses, until it is committed, fails otherwise, or ctx ends.
func (db *DB) Retry(ctx context.Context, branch, message string, fn func(*Session) error) (c *Commit, err error) {
	err = txn.Retry(ctx, func() error {
		c, err = db.Update(ctx, branch, message, fn)
		return err
	})
	return c, err
}

// notFound makes an error about a path that says so in every vocabulary.
func notFound(op, path string) error {
	return absentError{fmt.Errorf("%s %q: %w", op, path, zarr.ErrNotFound)}
}

// absentError is a zarr.ErrNotFound that is an fs.ErrNotExist too.
type absentError struct{ error }

func (e absentError) Unwrap() error        { return e.error }
func (e absentError) Is(target error) bool { return target == fs.ErrNotExist }
