package txn

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zarrdb/zarrdb/internal/budget"
	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/internal/lru"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/history"
	"github.com/zarrdb/zarrdb/txn/internal/away"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
	"github.com/zarrdb/zarrdb/txn/internal/visits"
)

// Directories of a database.
const (
	indexDir      = care.IndexDir
	packDir       = care.PackDir
	checkpointDir = care.CheckpointDir
)

// MainBranch is the branch that a new database begins with.
const MainBranch = catalog.MainBranch

// DB is an open database. Safe for concurrent use.
type DB struct {
	opts  Options
	dir   string
	idx   *index.Index
	fs    index.FS // that of the options; opts.FS is it while the directory is in its place
	packs *pack.Store
	away  *away.Part       // nil if everything is here
	space *namespace.Space // over committed pages only

	memory memory
	home   home

	incarnation [8]byte

	heads   refTable
	writes  history.Writes
	commits atomic.Pointer[lru.Cache[CommitID, *Commit]]
	commit  committer
	pending pending

	packFailures atomic.Uint64 // see lost.go

	// keeping is held shared while code checks whether a version has expired and
	// then makes sure that it stays, and exclusively by Expire.
	keeping    ctxlock.Lock
	current    currentVersions
	collecting sync.Mutex // one collection at a time
	care       care.Parts

	visits visits.Peers // of peers

	applying  ctxlock.Lock
	unapplied map[SessionID]error // logs of sessions that could not be applied
	ended     endedLogs

	mu       sync.Mutex
	sessions map[SessionID]*Session     // open in this process, whose index is here
	open     map[*Session]struct{}      // in this process
	roots    map[tree.Root]int          // of open snapshots, for gc
	caches   []*func()                  // see Cache
	kept     map[uint64]*index.Snapshot // of transfers; see keep.go

	closed atomic.Bool
}

// Open opens the database in dir. Errors: ErrNotDatabase if there is none,
// index.ErrLocked if another process has it open (see Options.Locked), index.ErrFormat if a newer
// program wrote it.
func Open(dir string, o *Options) (*DB, error) {
	opts := o.withDefaults()
	fs := opts.FS
	if err := readFormat(fs, dir); err != nil {
		if errors.Is(err, ErrNotDatabase) && exists(fs, fs.PathJoin(dir, FormatFile)) && exists(fs, fs.PathJoin(dir, indexDir)) {
			err = &IndexLostError{Dir: dir, Err: err}
		}
		return nil, err
	}
	db, err := open(dir, fs.PathJoin(dir, indexDir), opts, false)
	if err != nil && indexIsLost(err) {
		return nil, &IndexLostError{Dir: dir, Err: err}
	}
	if err == nil {
		db.idx.PartOf(fs.PathJoin(dir, FormatFile))
	}
	if err == nil && !opts.ReadOnly {
		db.recoverLogs(away.UnderLock(context.Background()))
		db.ended.load(db)
	}
	return db, err
}

func exists(fs index.FS, path string) bool {
	_, err := fs.Stat(path)
	return err == nil
}

// Create makes a new database in dir, with one empty commit on the branch
// "main", and opens it. dir may exist if it is empty; a creation that was
// interrupted, or failed, is taken up again. If a database is there already, or
// what is left of one or of a copy that was interrupted, the error is ErrExists.
func Create(dir string, o *Options) (*DB, error) {
	opts := o.withDefaults()
	if err := opts.check(); err != nil {
		return nil, err
	}
	fs := opts.FS
	if err := prepareDir(fs, dir); err != nil {
		return nil, err
	}
	db, err := open(dir, fs.PathJoin(dir, indexDir), opts, true)
	if err != nil {
		return nil, err
	}
	// Another process may have been faster, before the lock.
	if !exists(fs, fs.PathJoin(dir, FormatFile)) {
		err = db.make()
	}
	if err == nil {
		db.idx.Created()
		db.idx.PartOf(fs.PathJoin(dir, FormatFile))
		return db, nil
	}
	db.closed.Store(true)
	db.care.Checkpoints.Every = 0 // a checkpoint would remove older ones, which may be of another database
	return nil, errors.Join(err, db.shut())
}

// make makes an open index a database. The format file comes last: a directory without it is no database yet. The
// first checkpoint comes before it, so that a full disk shows here and not when the database is closed.
func (db *DB) make() error {
	err := db.takenUp()
	if err == nil {
		err = db.writeFirstCommit()
	}
	if err == nil && db.care.Checkpoints.Every > 0 {
		// Other errors are noted, as those of later checkpoints are.
		if failed := db.Checkpoint(context.Background()); care.DiskFull(failed) || db.idx.Failed() != nil {
			err = failed
		}
	}
	if err == nil {
		err = writeFormat(db.opts.FS, db.dir)
	}
	return err
}

// takenUp refuses an index that Create found, without the format file of a
// database, unless there is nothing in it: it is no interrupted creation.
func (db *DB) takenUp() error {
	if err := db.errBegunLazy(); err != nil {
		return err
	}
	blank, err := db.blank()
	if err == nil && !blank {
		err = fmt.Errorf("create %s: %w", db.dir, errIsLeft(db.dir, "there is a copy that was interrupted, or a database without "+FormatFile))
	}
	return err
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

// open opens the database in dir with the index at path.
func open(dir, path string, opts Options, create bool) (_ *DB, err error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	fs := opts.FS
	db := &DB{opts: opts, dir: dir, fs: fs, sessions: map[SessionID]*Session{}, open: map[*Session]struct{}{}, roots: map[tree.Root]int{}}
	db.home = holder{db}
	db.care.Failures.Noted = opts.CareFailed
	db.joinMemory()
	defer func() {
		if err != nil {
			db.memory.end()
		}
	}()
	if opts.MemTableBytes == 0 {
		opts.MemTableBytes = int(budget.Index.Allowance(1, 128<<10, 32<<20))
	}
	idx, err := openIndex(path, &index.Options{
		FS: fs, ReadOnly: opts.ReadOnly, Create: create, MemTableBytes: opts.MemTableBytes, Socket: opts.Socket, Note: func(work string, err error) { db.care.Failures.Note(work, err) },
	}, opts.Locked)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, idx.Close())
		}
	}()
	db.idx = idx
	db.opts.FS = idx.FS()
	incarnation, err := db.readIncarnation(create)
	if err != nil {
		return nil, err
	}
	db.incarnation = incarnation
	db.forgetCommits()
	var table []pack.Info
	for info, err := range catalog.Packs.All(idx) {
		if err != nil {
			return nil, err
		}
		table = append(table, info)
	}
	db.packs, err = pack.Open(fs.PathJoin(dir, packDir), &pack.Options{
		FS: db.opts.FS, ReadOnly: opts.ReadOnly, Incarnation: incarnation, Table: table, MaxPackBytes: opts.PackBytes, VerifyReads: opts.VerifyReads,
		NotRemoved: func(err error) { db.care.Failures.Note(index.WorkFiles, err) },
	})
	if err != nil {
		return nil, err
	}
	if err := db.openAway(); err != nil {
		return nil, errors.Join(err, db.away.Close(), db.packs.Close())
	}
	t := tree.New(db.pages(), &db.memory.pages)
	db.space = namespace.New(t, opts.Policy, db.load)
	db.space.Store = func(ctx context.Context, key string, doc []byte) (tree.Value, error) {
		if v, ok := inlineValue(key, doc); ok {
			return v, nil
		}
		return db.store(ctx, pack.Owner{Key: []byte(key)}, doc, digest.Of(doc))
	}
	if err := db.heads.load(idx); err != nil {
		return nil, errors.Join(err, db.away.Close(), db.packs.Close())
	}
	p := &db.care
	p.FS, p.Dir, p.Author, p.Now, p.Index, p.Packs, p.Pages, p.DB = db.opts.FS, dir, opts.Author, opts.Now, idx, db.packs, db.committed(), core{db}
	every := uint64(max(opts.CheckpointCommits, 0))
	if opts.ReadOnly {
		every = 0
	}
	err = p.Checkpoints.Load(p, every, every > 0 && opts.checkpointsRest)
	if copies := fs.PathJoin(dir, "readers"); err == nil && !opts.ReadOnly && exists(fs, copies) {
		err = fs.RemoveAll(copies) // of the index; a killed process of an earlier version left them
	}
	if err != nil {
		return nil, errors.Join(err, db.away.Close(), db.packs.Close())
	}
	db.visits.Host = visits.Host{Dir: dir, FS: db.opts.FS, Lives: opts.lives, Hold: db.holdStored}
	db.commit.db, db.commit.arrived = db, make(chan struct{}, 1)
	db.startPending(time.After)
	return db, nil
}

// openIndex opens an index, and tries again for as long as locked wants it.
func openIndex(path string, o *index.Options, locked func(*index.LockedError, time.Duration) error) (*index.Index, error) {
	begun := time.Now()
	for {
		idx, err := index.Open(path, o)
		var held *index.LockedError
		if locked == nil || !errors.As(err, &held) {
			return idx, err
		}
		if err := locked(held, time.Since(begun)); err != nil {
			return nil, err
		}
	}
}

// Incarnation is the random name under which this directory writes packs. A
// copy that was restored has another one.
func (db *DB) Incarnation() [8]byte { return db.incarnation }

// Identity tells a database from others.
type Identity struct {
	// Name is random, and made with the database; a copy of the directory has it too.
	Name string
	// File is that of [FileOf], "" if it is unknown.
	File string
}

// Differs reports whether two identities are those of different databases. Fields that are
// empty on one side are not compared.
func (i Identity) Differs(o Identity) bool {
	differ := func(a, b string) bool { return a != b && a != "" && b != "" }
	return differ(i.Name, o.Name) || differ(i.File, o.File)
}

// Identity returns the identity of the open database.
func (db *DB) Identity() Identity { return db.home.identity() }

// FileOf tells the database in a directory of this machine from its copies, and from
// others at the same path. A moved directory keeps it. It is "" if there is no database,
// or if the system does not tell. It opens no file.
func FileOf(dir string) string { return index.LockFile(filepath.Join(dir, indexDir)) }

// Knocked reports whether a process waits to be let in; see [index.LockedError.Knock].
func Knocked(dir string) bool { return index.Knocked(filepath.Join(dir, indexDir)) }

// Here returns nil while the directory of the database is at the path at which it was
// opened, else [ErrMoved]. Commits and savepoints look for it themselves.
func (db *DB) Here() error { return db.home.here() }

// Failed returns why the database has to be opened again before it takes writes: [ErrMoved], [ErrFailed]; nil
// otherwise.
func (db *DB) Failed() error {
	return cmp.Or(db.Here(), db.home.failed())
}

// readIncarnation reads or makes that name.
func (db *DB) readIncarnation(create bool) (id [8]byte, err error) {
	if id, err = catalog.Incarnation(db.idx); !create || !errors.Is(err, index.ErrNotFound) {
		return id, err
	}
	rand.Read(id[:])
	batch := db.idx.NewBatch()
	defer batch.Close()
	catalog.PutIncarnation(batch, id)
	return id, batch.Commit(true)
}

// writeFirstCommit gives a new database its empty first commit.
func (db *DB) writeFirstCommit() error {
	if catalog.Ready(db.idx) {
		return nil // an earlier creation came this far
	}
	return db.beginBranch(MainBranch, "create database", opCreate)
}

// beginBranch makes a branch with one empty commit, which has no parent. The caller locks
// commits, or is alone.
func (db *DB) beginBranch(branch, message, op string) error {
	c := &Commit{Author: db.opts.Author, Time: db.opts.Now().UTC(), Message: message}
	rec := catalog.SealCommit(c)
	change := newChange(0)
	change.noPayloads, change.extra = true, db.idx.NewBatch()
	defer change.extra.Close()
	catalog.PutReady(change.extra)
	change.commits[c.ID] = rec
	change.moves = []RefMove{{Ref: catalog.HeadRef(branch), New: c.ID, Time: c.Time, Author: c.Author, Op: op}}
	return db.write(context.Background(), change)
}

// Close closes the database. Sessions that made a savepoint or have a log ([Session.Log])
// can be resumed later, others are lost; snapshots must not be used any more.
func (db *DB) Close() error {
	if db.closed.Swap(true) {
		return nil
	}
	return db.home.close()
}

func (db *DB) shut() error {
	err := db.stopPending()
	db.care.Checkpoints.Stop()
	err = errors.Join(err, db.away.Close(), db.packs.Close(), db.idx.Close())
	db.memory.end()
	return err
}

// Closed reports whether Close was called.
func (db *DB) Closed() bool { return db.closed.Load() }

// Dir returns the directory that the database was opened in.
func (db *DB) Dir() string { return db.dir }

func (db *DB) check() error {
	if db.closed.Load() {
		return fmt.Errorf("%w: %s", ErrClosed, db.dir)
	}
	return nil
}

func (db *DB) writable() error {
	if db.opts.ReadOnly {
		return db.opts.readOnly()
	}
	if db.IsPeer() {
		return fmt.Errorf("%s: %w", db.dir, ErrPeer)
	}
	return db.check()
}

// indexPages is the page store of committed pages, some of which may wait to be
// written.
type indexPages struct {
	idx  *index.Index
	wait *pending // nil if nothing ever waits
}

var (
	_ tree.Pages      = indexPages{}
	_ tree.PageViewer = indexPages{}
)

func (db *DB) committed() indexPages { return indexPages{db.idx, &db.pending} }

func (p indexPages) GetPage(ctx context.Context, name tree.Name) ([]byte, error) {
	if b := p.wait.page(name); b != nil {
		return b, nil
	}
	b, err := p.idx.GetPage(ctx, name)
	if errors.Is(err, index.ErrNotFound) {
		return nil, fmt.Errorf("page %v: %w", name, tree.ErrMissing)
	}
	return b, err
}

func (p indexPages) ViewPage(_ context.Context, name tree.Name, fn func([]byte) error) error {
	if b := p.wait.page(name); b != nil {
		return fn(b)
	}
	err := p.idx.View(index.SpacePage, name[:], fn)
	if errors.Is(err, index.ErrNotFound) {
		return fmt.Errorf("page %v: %w", name, tree.ErrMissing)
	}
	return err
}

func (p indexPages) PutPage(context.Context, tree.Name, []byte) error {
	return errors.New("txn: bug: page written outside a session")
}

func (p indexPages) Spill(_ context.Context, pages map[tree.Name][]byte) error {
	batch := p.idx.NewBatch()
	defer batch.Close()
	for name, page := range pages {
		batch.PutPage(name, page)
	}
	return batch.Commit(false)
}
