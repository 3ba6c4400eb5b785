package away

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/depot"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/bucket"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/collect"
	"github.com/zarrdb/zarrdb/txn/internal/overlay"
)

const (
	// File says which bucket has what is away. A database without this file has everything itself.
	File = "AWAY"
	// Dir has payloads that were fetched. A user may remove it while no process has the database open.
	Dir = "away"
)

// ErrAway matches every [Error].
var ErrAway = errors.New("txn: it is in the remote, which cannot be read")

// Error means that something is not in this database but in the remote that the database was cloned from, and that it could not
// be fetched. It is [ErrAway], and kv.ErrCorrupt if what the remote has is damaged.
type Error struct {
	What, Remote string
	Err          error
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("%s is in the remote %s, not here: %v", e.What, e.Remote, e.Err)
}

// Is implements the matching that [errors.Is] does. The cause does not match: a page that the remote lacks is damage, not a missing key.
func (e *Error) Is(target error) bool {
	return target == ErrAway || (target == kv.ErrCorrupt || target == fault.ErrCorrupt) && errors.Is(e.Err, target) //nolint:errorlint // as errors.Is does
}

// ErrLocked ends a read of what is away where a lock of the database is held: the caller leaves the lock, fetches and tries again.
var ErrLocked = errors.New("txn: a page or chunk is in the remote, and cannot be fetched while a lock is held")

type lockedKey struct{}

// UnderLock returns a context for reads that may not wait for a remote.
func UnderLock(ctx context.Context) context.Context { return context.WithValue(ctx, lockedKey{}, true) }

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
func (a *Part) unasked(ctx context.Context, damage, why error) error {
	if err := a.Failed(ctx, "", why); !errors.Is(err, ErrAway) {
		return err
	}
	return unaskedError{damage, a.At.URL, why}
}

// Place is the content of the file [File].
type Place struct {
	URL string `json:"url"`
	ID  string `json:"id"`
	// Staged says that the database has the history alone, for a pull into a lazy clone of the same bucket.
	Staged bool `json:"staged,omitempty"`
	// Cached says that the database is a cache of the bucket: nothing is written to it.
	Cached bool `json:"cached,omitempty"`
	// Size bounds what [Dir] takes on disk; 0 is a tenth of the free disk.
	Size int64 `json:"size,omitempty"`
}

// Host is what an away part needs of its database.
type Host struct {
	Dir string
	FS  index.FS // of its files, while the directory is in its place
	// Plain says that FS is that of the operating system: then what is known of the bucket is kept in files.
	Plain                 bool
	ReadOnly, VerifyReads bool
	Peer                  bool // another process has the database open, and keeps what is fetched
	// Bucket opens the store of the remote; it may be nil.
	Bucket func(ctx context.Context, url string) (kv.Store, error)
	Packs  *pack.Store // in packs/
	Pages  Local       // committed ones; nil for a peer
	Here   func() error
}

// files are the files of what is known of the bucket.
func (h *Host) files() index.FS {
	if h.Plain {
		return index.DefaultFS
	}
	return h.FS
}

// Local are the pages in the index of a database.
type Local interface {
	tree.Pages
	tree.PageViewer
	overlay.Spiller
}

// Part fetches what is away. Safe for concurrent use.
type Part struct {
	host Host
	// At is where the rest of the database is. Opening sets it.
	At  Place
	run context.Context // of requests; ends when the database is closed
	end context.CancelFunc
	out sync.WaitGroup // goroutines that fetch

	opening ctxlock.Lock
	// Store counts the requests to the remote.
	Store  bucket.Counted
	bucket bucket.Store // below store
	d      *depot.Depot // once it is open

	saved     *pack.Store // in [Dir], of a database that is only read; nil without [Dir]
	packs     *pack.Store // in [Dir], or in a temporary directory from the first fetch on; nil for a peer; under mu
	temporary string

	turns chan struct{} // of requests at a time
	kept  room

	mu     sync.Mutex
	closed bool
	pages  map[tree.Name]*pageFlight
	wants  map[pack.ID]*fetching

	verified
}

// atOnce bounds the batches of pages, and the packs, that are fetched at a time.
const atOnce = 16

// ReadPlace reads the file [File]. The result is nil if the file does not exist.
func ReadPlace(fs index.FS, dir string) (*Place, error) {
	if _, err := fs.Stat(fs.PathJoin(dir, File)); err != nil {
		return nil, nil
	}
	b, err := index.ReadSmall(fs, fs.PathJoin(dir, File))
	if err != nil {
		return nil, err
	}
	at := &Place{}
	if err := json.Unmarshal(b, at); err != nil || at.URL == "" || at.ID == "" {
		return nil, catalog.Corrupt("%s is not understood", File)
	}
	return at, nil
}

// Open opens what is away of a database.
func Open(h Host, at Place) (_ *Part, err error) {
	a := &Part{host: h, At: at, pages: map[tree.Name]*pageFlight{}, wants: map[pack.ID]*fetching{}, turns: make(chan struct{}, atOnce)}
	a.kept.limit, a.kept.size, a.kept.used = at.Size, -1, map[span]*use{}
	a.run, a.end = context.WithCancel(context.Background())
	a.bucket.URL, a.bucket.Open = at.URL, func(ctx context.Context) (kv.Store, error) {
		if h.Bucket == nil {
			return nil, errors.New("this program does not open remotes")
		}
		return h.Bucket(ctx, at.URL)
	}
	a.Store.Store = &a.bucket
	dir := h.FS.PathJoin(h.Dir, Dir)
	o := pack.Options{FS: h.FS, VerifyReads: h.VerifyReads, Scratch: true, ReadOnly: h.ReadOnly}
	switch {
	case h.Peer:
	case !h.ReadOnly:
		a.packs, err = pack.Open(dir, &o)
	default:
		if _, missing := h.FS.Stat(dir); missing == nil {
			a.saved, err = pack.Open(dir, &o)
		}
	}
	if a.begin(); h.Plain && !h.Peer {
		a.load(a.At, h.Dir)
	}
	return a, err
}

// Begin makes a new database one whose contents are in the bucket d. was is the part of a clone that was interrupted, or nil.
func Begin(h Host, was *Part, d *depot.Depot, at Place) (*Part, error) {
	at.ID = d.Manifest().ID
	if err := was.Close(); err != nil {
		return was, err
	}
	if err := at.write(h.FS, h.Dir); err != nil {
		return was, err
	}
	a, err := Open(h, at)
	a.d = d
	return a, err
}

func (p *Place) write(fs index.FS, dir string) error {
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return index.ReplaceSmall(fs, dir, File, append(b, '\n'))
}

// AskAs has requests without an asker sent by another process.
func (a *Part) AskAs(by bucket.Asker) { a.bucket.By = by }

// Lent is the bucket for another process.
func (a *Part) Lent() kv.Store { return bucket.Lent{Counted: &a.Store} }

// as is the context of requests that go on when the reader has left.
func (a *Part) as(by bucket.Asker) context.Context {
	if by == nil {
		return a.run
	}
	return bucket.WithAsker(a.run, by)
}

// scratch returns the packs that payloads are fetched into.
func (a *Part) scratch() (_ *pack.Store, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.packs == nil { // nothing may be written to the database
		if a.temporary, err = os.MkdirTemp("", "zarrdb-away-"); err != nil {
			return nil, err
		}
		a.packs, err = pack.Open(a.temporary, &pack.Options{VerifyReads: a.host.VerifyReads, Scratch: true})
	}
	return a.packs, err
}

// fetched are the packs that have fetched payloads.
func (a *Part) fetched() []*pack.Store {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc([]*pack.Store{a.saved, a.packs}, func(s *pack.Store) bool { return s == nil })
}

// Close ends what is being fetched. A nil part is closed.
func (a *Part) Close() error {
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
	if err == nil && a.host.Plain && !a.host.ReadOnly && !a.host.Peer {
		a.save(a.At, a.host.Dir)
	}
	if a.temporary != "" {
		err = errors.Join(err, os.RemoveAll(a.temporary))
	}
	return err
}

// Depot opens the bucket. If its manifest is known, that takes no request.
func (a *Part) Depot(ctx context.Context) (*depot.Depot, error) {
	if err := a.opening.Lock(ctx); err != nil {
		return nil, err
	}
	defer a.opening.Unlock()
	if a.d != nil {
		return a.d, nil
	}
	state, err := bucket.Load(a.host.files(), a.host.Dir, a.At.URL, a.host.ReadOnly)
	if err != nil {
		return nil, err
	}
	cache := state.Cache()
	if a.host.ReadOnly && a.host.Plain {
		cache = bucket.SavedCache(a.host.Dir, a.At.URL)
	}
	d, err := depot.Open(ctx, &a.Store, &depot.Options{Cache: cache, Cached: true})
	if err != nil {
		return nil, err
	}
	if id := d.Manifest().ID; id != a.At.ID {
		return nil, fmt.Errorf("%w: %s instead of %s", depot.ErrOther, id, a.At.ID)
	}
	a.d = d
	return d, nil
}

// Failed is the error of a read.
func (a *Part) Failed(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if a.run.Err() != nil {
		return fmt.Errorf("%w: %s", catalog.ErrClosed, a.host.Dir)
	}
	return &Error{What: what, Remote: a.At.URL, Err: err}
}

// Empty removes what was fetched of payloads, and returns how much. Processes that read payloads at the moment keep the files that they have open; left says that
// it stays in a file.
func (a *Part) Empty(ctx context.Context, dry bool) (bytes int64, left bool, err error) {
	var before, after collect.DiskUse
	dir := a.host.FS.PathJoin(a.host.Dir, Dir)
	before.Measure(a.host.FS, dir)
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
	after.Measure(a.host.FS, dir)
	return before.Total() - after.Total(), left, nil
}

// Remote names the remote for people. The place may be nil.
func (p *Place) Remote() string {
	if p == nil {
		return "the remote"
	}
	return p.URL
}
