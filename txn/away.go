package txn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/depot"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// A database may have an away part: pages and payloads that are in the bucket that it was cloned from. The process
// that has the database open fetches them when they are read:
//
//	page      memory ─▶ index ─▶ bucket ─▶ index
//	payload   packs/ ─▶ away/ ─▶ bucket ─▶ away/
//
// Commits and refs are here. Whatever a page in the bucket names is in the bucket, too. docs/design/depot.md has the rules.

const (
	// awayFile says which bucket has what is away. A database without this file has everything itself.
	awayFile = "AWAY"
	// awayDir has payloads that were fetched. A user may remove it while no process has the database open.
	awayDir = "away"
)

// ErrAway matches every [AwayError].
var ErrAway = errors.New("txn: it is in the remote, which cannot be read")

// AwayError means that something is not in this database but in the remote that the database was cloned from, and that it could not
// be fetched. It is [ErrAway], and kv.ErrCorrupt if what the remote has is damaged.
type AwayError struct {
	What, Remote string
	Err          error
}

// Error implements error.
func (e *AwayError) Error() string {
	return fmt.Sprintf("%s is in the remote %s, not here: %v", e.What, e.Remote, e.Err)
}

// Is implements the matching that [errors.Is] does. The cause does not match: a page that the remote lacks is damage, not a missing key.
func (e *AwayError) Is(target error) bool {
	return target == ErrAway || (target == kv.ErrCorrupt || target == fault.ErrCorrupt) && errors.Is(e.Err, target) //nolint:errorlint // as errors.Is does
}

// errLocked ends a read of what is away where a lock of the database is held: the caller leaves the lock, fetches and tries again.
var errLocked = errors.New("txn: a page or chunk is in the remote, and cannot be fetched while a lock is held")

type lockedKey struct{}

// underLock returns a context for reads that may not wait for a remote.
func underLock(ctx context.Context) context.Context { return context.WithValue(ctx, lockedKey{}, true) }

// Asker sends the requests to buckets that another process needs, with the credentials of that process.
type Asker interface {
	// Bucket is the store of a bucket. Get and GetTagged of it are called.
	Bucket(url string) kv.Store
}

type askerKey struct{}

// WithAsker returns a context for a request of another process. What is away is then fetched through as, never
// with the credentials of this process.
func WithAsker(ctx context.Context, as Asker) context.Context {
	return context.WithValue(ctx, askerKey{}, as)
}

func askerOf(ctx context.Context) Asker {
	as, _ := ctx.Value(askerKey{}).(Asker)
	return as
}

// lent is implemented by sources whose process may ask for what is away: see [Asker].
type lent interface {
	LendBucket(url string, store kv.Store)
}

// lendTo has another process, to which src leads, read the bucket of this database through this process.
func (db *DB) lendTo(src Source) {
	if l, ok := src.(lent); ok && db.away != nil {
		l.LendBucket(db.away.at.URL, lentStore{&db.away.store})
	}
}

// lentStore is a store for another process, which reads the objects of a depot alone.
type lentStore struct{ *countedStore }

func (s lentStore) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	if !depot.IsKey(key) {
		return nil, fmt.Errorf("%q: %w", key, kv.ErrInvalidKey)
	}
	return s.countedStore.Get(ctx, key, rng)
}

func (s lentStore) GetTagged(ctx context.Context, key string, known kv.Tag, limit int64) (kv.Tagged, error) {
	if !depot.IsKey(key) {
		return kv.Tagged{}, fmt.Errorf("%q: %w", key, kv.ErrInvalidKey)
	}
	return s.countedStore.GetTagged(ctx, key, known, limit)
}

// unaskedError is damage of this database whose cure the remote may have: it could not be asked, and what was known of it
// does not have it. It is [ErrAway].
type unaskedError struct {
	error
	remote string
	why    error
}

func (e unaskedError) Error() string {
	return fmt.Sprintf("%v (what is new in the remote %s is not known: %v)", e.error, e.remote, e.why)
}

func (e unaskedError) Unwrap() error { return e.error }

func (e unaskedError) Is(target error) bool {
	return target == ErrAway || target == care.ErrUndecided //nolint:errorlint // as errors.Is does
}

// unasked is the error about damage if the remote cannot be asked.
func (a *awayPart) unasked(ctx context.Context, damage, why error) error {
	if err := a.failed(ctx, "", why); !errors.Is(err, ErrAway) {
		return err
	}
	return unaskedError{damage, a.at.URL, why}
}

// awayPlace is the content of awayFile.
type awayPlace struct {
	URL string `json:"url"`
	ID  string `json:"id"`
	// Staged says that the database has the history alone, for a pull into a lazy clone of the same bucket.
	Staged bool `json:"staged,omitempty"`
	// Cached says that the database is what [OpenBucketCache] keeps: nothing is written to it.
	Cached bool `json:"cached,omitempty"`
	// Size bounds what awayDir takes on disk; 0 is a tenth of the free disk.
	Size int64 `json:"size,omitempty"`
}

// awayPart fetches what is away. Safe for concurrent use.
type awayPart struct {
	db  *DB
	at  awayPlace
	run context.Context // of requests; ends when the database is closed
	end context.CancelFunc
	out sync.WaitGroup // goroutines that fetch

	opening ctxlock.Lock
	store   countedStore
	bucket  bucketStore  // below store
	d       *depot.Depot // once it is open

	saved     *pack.Store // in awayDir, of a database that is only read; nil without awayDir
	packs     *pack.Store // in awayDir, or in a temporary directory from the first fetch on; nil for a peer; under mu
	temporary string

	room chan struct{} // for requests at a time
	kept awayRoom

	mu     sync.Mutex
	closed bool
	pages  map[tree.Name]*pageFlight
	wants  map[pack.ID]*fetching

	verified
}

// awayRequests bounds the batches of pages, and the packs, that are fetched at a time.
const awayRequests = 16

// readAwayPlace reads awayFile. The result is nil if the file does not exist.
func readAwayPlace(fs index.FS, dir string) (*awayPlace, error) {
	if !exists(fs, fs.PathJoin(dir, awayFile)) {
		return nil, nil
	}
	b, err := index.ReadSmall(fs, fs.PathJoin(dir, awayFile))
	if err != nil {
		return nil, err
	}
	at := &awayPlace{}
	if err := json.Unmarshal(b, at); err != nil || at.URL == "" || at.ID == "" {
		return nil, catalog.Corrupt("%s is not understood", awayFile)
	}
	return at, nil
}

// begunAway makes a new database one whose contents are in a bucket.
func (db *DB) begunAway(d *depot.Depot, at awayPlace) error {
	at.ID = d.Manifest().ID
	err := db.away.close() // of a clone that was interrupted
	b, jerr := json.Marshal(at)
	if err = errors.Join(err, jerr); err == nil {
		err = index.ReplaceSmall(db.opts.FS, db.dir, awayFile, append(b, '\n'))
	}
	if err == nil {
		err = db.openAway(&at)
	}
	if err == nil {
		db.away.d = d
	}
	return err
}

// openAway opens the away part of a database, which has the pages at.
func (db *DB) openAway(at *awayPlace) (err error) {
	a := &awayPart{db: db, at: *at, pages: map[tree.Name]*pageFlight{}, wants: map[pack.ID]*fetching{}, room: make(chan struct{}, awayRequests)}
	a.kept.limit, a.kept.size, a.kept.used = at.Size, -1, map[awayRange]*awayUse{}
	a.run, a.end = context.WithCancel(context.Background())
	a.bucket.url, a.bucket.open = at.URL, func(ctx context.Context) (kv.Store, error) {
		if db.opts.Bucket == nil {
			return nil, errors.New("this program does not open remotes")
		}
		return db.opts.Bucket(ctx, at.URL)
	}
	a.store.Store = &a.bucket
	fs, dir := db.opts.FS, db.opts.FS.PathJoin(db.dir, awayDir)
	o := pack.Options{FS: fs, VerifyReads: db.opts.VerifyReads, Scratch: true, ReadOnly: db.opts.ReadOnly}
	switch {
	case db.IsPeer():
	case !db.opts.ReadOnly:
		a.packs, err = pack.Open(dir, &o)
	case exists(fs, dir):
		a.saved, err = pack.Open(dir, &o)
	}
	if a.begin(); db.fs == index.DefaultFS && !db.IsPeer() {
		a.load(a.at, db.dir)
	}
	db.away, db.care.Away, db.care.AwayPayload = a, a.lists, a.covers
	return err
}

// as is the context of requests that go on when the reader has left.
func (a *awayPart) as(by Asker) context.Context {
	if by == nil {
		return a.run
	}
	return WithAsker(a.run, by)
}

// scratch returns the packs that payloads are fetched into.
func (a *awayPart) scratch() (_ *pack.Store, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.packs == nil { // nothing may be written to the database
		if a.temporary, err = os.MkdirTemp("", "zarrdb-away-"); err != nil {
			return nil, err
		}
		a.packs, err = pack.Open(a.temporary, &pack.Options{VerifyReads: a.db.opts.VerifyReads, Scratch: true})
	}
	return a.packs, err
}

// fetched are the packs that have fetched payloads.
func (a *awayPart) fetched() []*pack.Store {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc([]*pack.Store{a.saved, a.packs}, func(s *pack.Store) bool { return s == nil })
}

func (a *awayPart) close() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.end()
	a.out.Wait()
	var err error
	for _, s := range a.fetched() {
		err = errors.Join(err, s.Close())
	}
	if err == nil && a.db.fs == index.DefaultFS && !a.db.opts.ReadOnly && !a.db.IsPeer() {
		a.save(a.at, a.db.dir)
	}
	if a.temporary != "" {
		err = errors.Join(err, os.RemoveAll(a.temporary))
	}
	return err
}

// depot opens the bucket. If its manifest is known, that takes no request.
func (a *awayPart) depot(ctx context.Context) (*depot.Depot, error) {
	if err := a.opening.Lock(ctx); err != nil {
		return nil, err
	}
	defer a.opening.Unlock()
	if a.d != nil {
		return a.d, nil
	}
	state, err := loadBucketState(a.db.fs, a.db.dir, a.at.URL, a.db.opts.ReadOnly)
	if err != nil {
		return nil, err
	}
	cache := state.cache()
	if a.db.opts.ReadOnly && a.db.fs == index.DefaultFS {
		cache = savedCache{fileCache{dir: filepath.Join(bucketDir(a.db.fs, a.db.dir, a.at.URL), "cache")}}
	}
	d, err := depot.Open(ctx, &a.store, &depot.Options{Cache: cache, Cached: true})
	if err != nil {
		return nil, err
	}
	if id := d.Manifest().ID; id != a.at.ID {
		return nil, fmt.Errorf("%w: %s instead of %s", depot.ErrOther, id, a.at.ID)
	}
	a.d = d
	return d, nil
}

// failed is the error of a read.
func (a *awayPart) failed(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if a.run.Err() != nil {
		return fmt.Errorf("%w: %s", ErrClosed, a.db.dir)
	}
	return &AwayError{What: what, Remote: a.at.URL, Err: err}
}

// awayTries bounds how often a commit is planned again, because pages are away that the head needs which another commit has made.
const awayTries = 16

// submit is committer.submit in a database with an away part. No request is sent while commits are locked: if the plan of the commit
// needs something that is away, the commit leaves the lock, makes its plan once without it, and comes back.
func (a *awayPart) submit(ctx context.Context, req *commitRequest) {
	free := req.ctx
	req.ctx = underLock(free)
	for range awayTries {
		a.db.commit.submit(req)
		if !errors.Is(req.err, errLocked) {
			return
		}
		again := *req
		again.ctx = ctx // nothing is under way: it may be cancelled
		p := a.db.commit.plan(nil)
		if p.addAll([]*commitRequest{&again}); again.err != nil {
			req.err = again.err
			return
		}
	}
	req.err = errors.New("commit: others change what is away all the time; try again")
}

// empty removes what was fetched of payloads, and returns how much. Processes that read it at the moment keep what they have open; left says that
// it stays in a file.
func (a *awayPart) empty(ctx context.Context, dry bool) (bytes int64, left bool, err error) {
	var before, after DiskUse
	dir := a.db.fs.PathJoin(a.db.dir, awayDir)
	before.Measure(a.db.fs, dir)
	if dry {
		return before.Total(), false, nil
	}
	defer a.forget()
	a.kept.mu.Lock()
	a.kept.size = -1
	clear(a.kept.used)
	a.kept.mu.Unlock()
	for _, i := range a.packs.Infos() {
		out, err := a.packs.Reclaim(ctx, i.ID, nil, math.MaxUint64)
		if err != nil {
			return 0, false, err
		}
		left = left || out.Held > 0 || out.Linked || out.Leased
	}
	after.Measure(a.db.fs, dir)
	return before.Total() - after.Total(), left, nil
}

// lazyFrom reports whether a transfer from another database carries the history alone, because both have their contents in the same bucket.
func (db *DB) lazyFrom(from *DB) (bool, error) {
	switch {
	case from.away == nil || !from.away.at.Staged:
		return false, nil
	case db.away == nil || db.away.at.ID != from.away.at.ID:
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

func (p *awayPlace) url() string {
	if p == nil {
		return "the remote"
	}
	return p.URL
}
