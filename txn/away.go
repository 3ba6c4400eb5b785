package txn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/depot"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/transfer"
)

// A database may have an away part: pages and payloads that are in the bucket that it was cloned from. The process
// that has the database open fetches them when they are read:
//
//	page      memory ─▶ index ─▶ bucket ─▶ index
//	payload   packs/ ─▶ away/ ─▶ bucket ─▶ away/
//
// Commits and refs are here. Whatever a page in the bucket names is in the bucket, too. docs/design/depot.md has the rules.

const (
	// awayFile says which bucket has what is away. A database without this file has everything here.
	awayFile = "AWAY"
	// awayDir has payloads that were fetched. It may be removed while nobody has the database open.
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

// Is implements the matching that [errors.Is] does. What is missing in the remote is no missing key: the cause does not match.
func (e *AwayError) Is(target error) bool {
	return target == ErrAway || (target == kv.ErrCorrupt || target == fault.ErrCorrupt) && errors.Is(e.Err, target) //nolint:errorlint // as errors.Is does
}

// errLocked ends a read of what is away where a lock of the database is held: the caller leaves the lock, fetches and tries again.
var errLocked = errors.New("txn: it is away, and this is no time to fetch it")

type lockedKey struct{}

// underLock returns a context for reads that may not wait for a remote.
func underLock(ctx context.Context) context.Context { return context.WithValue(ctx, lockedKey{}, true) }

// awayPlace is the content of awayFile.
type awayPlace struct {
	URL string `json:"url"`
	ID  string `json:"id"`
	// Staged says that the database has the history alone, for a pull into a lazy clone of the same bucket.
	Staged bool `json:"staged,omitempty"`
}

// awayPart fetches what is away. Safe for concurrent use.
type awayPart struct {
	db  *DB
	at  awayPlace
	run context.Context // of requests; ends when the database is closed
	end context.CancelFunc
	out sync.WaitGroup // goroutines that fetch

	opening ctxlock.Lock
	d       *depot.Depot // once it is open

	saved     *pack.Store // in awayDir, of a database that is only read; nil if there is none
	packs     *pack.Store // in awayDir, or in a temporary directory from the first fetch on; nil for a peer; under mu
	temporary string

	room chan struct{} // for requests at a time

	mu     sync.Mutex
	closed bool
	pages  map[tree.Name]*pageFlight
	wants  map[pack.ID]*fetching

	verified [1 << 16]atomic.Uint64 // payloads whose hashes were compared, by a part of a hash of their addresses
	seed     maphash.Seed
}

// awayRequests bounds the batches of pages, and the packs, that are fetched at a time.
const awayRequests = 16

// pageFlight is a page that is being fetched.
type pageFlight struct {
	done chan struct{}
	one  bool // no other page was asked for with it
	page []byte
	err  error
}

// readAwayPlace reads awayFile, nil if there is none.
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
func (db *DB) begunAway(d *depot.Depot, name string, staged bool) error {
	at := awayPlace{URL: name, ID: d.Manifest().ID, Staged: staged}
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
	a := &awayPart{db: db, at: *at, pages: map[tree.Name]*pageFlight{}, wants: map[pack.ID]*fetching{}, seed: maphash.MakeSeed(), room: make(chan struct{}, awayRequests)}
	a.run, a.end = context.WithCancel(context.Background())
	fs, dir := db.opts.FS, db.opts.FS.PathJoin(db.dir, awayDir)
	o := pack.Options{FS: fs, VerifyReads: db.opts.VerifyReads, Scratch: true, ReadOnly: db.opts.ReadOnly}
	switch {
	case db.IsPeer():
	case !db.opts.ReadOnly:
		a.packs, err = pack.Open(dir, &o)
	case exists(fs, dir):
		a.saved, err = pack.Open(dir, &o)
	}
	db.away, db.care.Away, db.care.AwayPayload = a, a.lists, a.covers
	return err
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
	if a.db.opts.Bucket == nil {
		return nil, errors.New("this program does not open remotes")
	}
	state, err := loadBucketState(a.db.fs, a.db.dir, a.at.URL, a.db.opts.ReadOnly)
	if err != nil {
		return nil, err
	}
	cache := state.cache()
	if a.db.opts.ReadOnly && a.db.fs == index.DefaultFS {
		cache = savedCache{fileCache{dir: filepath.Join(bucketDir(a.db.fs, a.db.dir, a.at.URL), "cache")}}
	}
	d, err := depot.Open(ctx, &bucketStore{open: func(ctx context.Context) (kv.Store, error) { return a.db.opts.Bucket(ctx, a.at.URL) }}, &depot.Options{Cache: cache, Cached: true})
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

// awayPages are the committed pages, of which some are away.
type awayPages struct {
	indexPages
	a *awayPart
}

var (
	_ tree.Pages       = awayPages{}
	_ tree.PageViewer  = awayPages{}
	_ tree.PageBatcher = awayPages{}
)

// pages are the committed pages. Those that are away are fetched.
func (db *DB) pages() tree.Pages { return db.withAway(db.committed()) }

func (db *DB) withAway(p indexPages) tree.Pages {
	if db.away == nil {
		return p
	}
	return awayPages{p, db.away}
}

func (p awayPages) GetPage(ctx context.Context, name tree.Name) ([]byte, error) {
	b, err := p.indexPages.GetPage(ctx, name)
	if errors.Is(err, tree.ErrMissing) {
		return p.a.page(ctx, name)
	}
	return b, err
}

func (p awayPages) ViewPage(ctx context.Context, name tree.Name, fn func([]byte) error) error {
	called := false
	err := p.indexPages.ViewPage(ctx, name, func(b []byte) error {
		called = true
		return fn(b)
	})
	if called || !errors.Is(err, tree.ErrMissing) {
		return err
	}
	b, err := p.a.page(ctx, name)
	if err != nil {
		return err
	}
	return fn(b)
}

// GetPages gets all that are away with one batch of requests: see somePages.
func (p awayPages) GetPages(ctx context.Context, names []tree.Name) ([][]byte, error) {
	return somePages(ctx, p, PageQuery{Names: names})
}

// flightPages are pages of which those that are away are being fetched.
type flightPages struct {
	awayPages
	flights map[tree.Name]*pageFlight
}

// batch has all pages that are away fetched with one batch of requests.
func (p awayPages) batch(ctx context.Context, names []tree.Name) tree.Pages {
	missing := p.missing(names)
	b := flightPages{p, make(map[tree.Name]*pageFlight, len(missing))}
	for i, f := range p.a.fetch(ctx, missing) {
		b.flights[missing[i]] = f
	}
	return b
}

func (p flightPages) ViewPage(ctx context.Context, name tree.Name, fn func([]byte) error) error {
	if f := p.flights[name]; f != nil {
		select {
		case <-f.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if f.err == nil { // nothing keeps it where the index is only read
			return fn(f.page)
		}
	}
	return p.awayPages.ViewPage(ctx, name, fn)
}

// GetPath gets one page: the next one is not known before.
func (p awayPages) GetPath(ctx context.Context, name tree.Name, _ []byte) ([][]byte, error) {
	b, err := p.GetPage(ctx, name)
	return [][]byte{b}, err
}

// missing returns the names of pages that are not here.
func (p awayPages) missing(names []tree.Name) (out []tree.Name) {
	for _, name := range names {
		if errors.Is(p.indexPages.ViewPage(context.Background(), name, func([]byte) error { return nil }), tree.ErrMissing) {
			out = append(out, name)
		}
	}
	return out
}

// page fetches a page.
func (a *awayPart) page(ctx context.Context, name tree.Name) ([]byte, error) {
	if ctx.Value(lockedKey{}) != nil {
		return nil, errLocked
	}
	var f *pageFlight
	for f == nil || f.err != nil && !f.one { // the error may be that of another page
		f = a.fetch(ctx, []tree.Name{name})[0]
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if errors.Is(f.err, depot.ErrLeft) {
		return nil, fmt.Errorf("page %v, which is not in the remote %s either: %w", name, a.at.URL, tree.ErrMissing)
	}
	if f.err != nil {
		return nil, a.failed(ctx, fmt.Sprintf("page %v", name), f.err)
	}
	return f.page, nil
}

// fetch has pages fetched, each once, whoever asks at the same time. It does not wait.
func (a *awayPart) fetch(ctx context.Context, names []tree.Name) []*pageFlight {
	out := make([]*pageFlight, len(names))
	if len(names) == 0 || ctx.Value(lockedKey{}) != nil {
		return out
	}
	var own []tree.Name
	var flights []*pageFlight
	a.mu.Lock()
	for i, name := range names {
		f := a.pages[name]
		if f == nil {
			f = &pageFlight{done: make(chan struct{}), one: len(names) == 1}
			a.pages[name] = f
			own, flights = append(own, name), append(flights, f)
		}
		out[i] = f
	}
	defer a.mu.Unlock()
	switch {
	case a.closed:
		a.landed(own, flights, nil, ErrClosed)
	case len(own) > 0:
		a.out.Go(func() { a.land(own, flights) })
	}
	return out
}

// land fetches pages and puts them into the index.
func (a *awayPart) land(names []tree.Name, flights []*pageFlight) {
	pages, err := a.get(names)
	if err == nil && !a.db.opts.ReadOnly {
		batch := a.db.idx.NewBatch()
		defer batch.Close()
		for i, name := range names {
			batch.PutPage(name, pages[i])
		}
		_ = batch.Commit(false) // on a full disk, they are fetched again
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.landed(names, flights, pages, err)
}

// landed ends flights. mu is held.
func (a *awayPart) landed(names []tree.Name, flights []*pageFlight, pages [][]byte, err error) {
	for i, f := range flights {
		delete(a.pages, names[i])
		if f.err = err; err == nil {
			f.page = pages[i]
		}
		close(f.done)
	}
}

func (a *awayPart) get(names []tree.Name) ([][]byte, error) {
	select {
	case a.room <- struct{}{}:
		defer func() { <-a.room }()
	case <-a.run.Done():
		return nil, a.run.Err()
	}
	ids := make([]depot.ID, len(names))
	for i, name := range names {
		ids[i] = depot.ID(name)
	}
	d, err := a.depot(a.run)
	if err != nil {
		return nil, err
	}
	return d.Pages(a.run, ids)
}

// lists returns nil if the bucket has a page, and tree.ErrMissing if not. It reads the index of the bucket, which is mostly here.
func (a *awayPart) lists(ctx context.Context, name tree.Name) error {
	d, err := a.depot(ctx)
	for try := 0; err == nil; try++ {
		var has []bool
		if has, err = d.HasPages(ctx, []depot.ID{depot.ID(name)}); err != nil {
			break
		}
		if has[0] {
			return nil
		}
		missing := fmt.Errorf("page %v, which is not in the remote %s either: %w", name, a.at.URL, tree.ErrMissing)
		if try > 0 {
			return missing
		}
		if err := d.Refresh(ctx); err != nil { // another process may have pulled
			return a.unasked(ctx, missing, err)
		}
	}
	return a.failed(ctx, fmt.Sprintf("page %v", name), err)
}

// unaskedError is damage here of something that a remote may have, as far as is known: it has not. It is [ErrAway].
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

// covers returns nil if the bucket has a payload, and damage if not.
func (a *awayPart) covers(ctx context.Context, at pack.Address, damage error) error {
	d, err := a.depot(ctx)
	for try := 0; err == nil; try++ {
		var list []depot.Extent
		if list, err = d.Extents(ctx, at.Pack, at.Offset, at.Offset+max(at.Length, 1)); err != nil {
			break
		}
		need := []pack.Extent{{From: at.Offset, To: at.Offset + at.Length}}
		for _, e := range list {
			need = pack.Subtract(need, []pack.Extent{{From: e.From, To: e.To}})
		}
		if len(list) > 0 && len(need) == 0 {
			return nil
		}
		if try > 0 {
			return damage
		}
		if err := d.Refresh(ctx); err != nil {
			return a.unasked(ctx, damage, err)
		}
	}
	return a.failed(ctx, payloadAt(at), err)
}

// viewTries bounds how often a payload is fetched for one read: a collection may remove it before it is read.
const viewTries = 3

// view reads a payload that packs/ does not have sound, because of damage.
func (a *awayPart) view(ctx context.Context, at pack.Address, off, n uint64, all bool, sum digest.Sum, damage error, fn func([]byte) error) error {
	for try := 0; ; try++ {
		err, begun := damage, false
		for _, s := range a.fetched() {
			if begun, err = a.viewIn(ctx, s, at, off, n, all, sum, fn); begun || !errors.As(err, new(*pack.CorruptError)) {
				return err
			}
		}
		wrong := errors.As(err, &wrongError{})
		if try == viewTries || try > 0 && wrong {
			return a.failed(ctx, payloadAt(at), err)
		}
		if err := a.bring(ctx, at, damage, wrong); err != nil {
			return err
		}
	}
}

// viewIn reads a payload of one store, whose whole bytes are compared with their hash first, once. begun says that fn was called.
func (a *awayPart) viewIn(ctx context.Context, s *pack.Store, at pack.Address, off, n uint64, all bool, sum digest.Sum, fn func([]byte) error) (begun bool, err error) {
	view := s.View
	if all {
		view = s.Reread
	}
	compare := func(b []byte) error { return a.right(s == a.db.packs, at, b, sum) }
	if n < at.Length && !a.known(s == a.db.packs, at, sum) {
		if err := view(ctx, at, 0, at.Length, compare); err != nil {
			return false, err
		}
	}
	err = view(ctx, at, off, n, func(b []byte) error {
		if uint64(len(b)) == at.Length {
			if err := compare(b); err != nil {
				return err
			}
		}
		begun = true
		return fn(b)
	})
	return begun, err
}

func payloadAt(at pack.Address) string {
	return fmt.Sprintf("the payload at %d of pack %v", at.Offset, at.Pack)
}

// carry copies records out of the bucket.
func (a *awayPart) carry(id pack.ID, need []pack.Extent) error {
	select {
	case a.room <- struct{}{}:
		defer func() { <-a.room }()
	case <-a.run.Done():
		return a.run.Err()
	}
	to, err := a.scratch()
	if err != nil {
		return err
	}
	d, err := a.depot(a.run)
	if err == nil {
		_, _, err = transfer.ImportFrom(a.run, d, to, id, need, nil)
	}
	if errors.Is(err, pack.ErrTaken) { // a crash left half of a record
		if err = a.remove(id); err == nil {
			_, _, err = transfer.ImportFrom(a.run, d, to, id, need, nil)
		}
	}
	return err
}

// remove removes what was fetched of a pack.
func (a *awayPart) remove(id pack.ID) error {
	defer a.forget()
	to, err := a.scratch()
	if err != nil {
		return err
	}
	return to.Remove(id)
}

// fetching are the payloads of a pack that are wanted, and what was read ahead.
type fetching struct {
	wants []*wanted
	busy  bool
	end   uint64 // of what was fetched last
	ahead uint64
}

type wanted struct {
	at    pack.Address
	wrong bool // other bytes were fetched before
	done  chan struct{}
	err   error
}

func (w *wanted) extent() pack.Extent {
	return pack.Extent{From: w.at.Offset, To: w.at.Offset + w.at.Length}
}

const (
	// aheadFirst and aheadMost bound what is fetched behind a payload if payloads are read in their order.
	aheadFirst, aheadMost = 1 << 20, 8 << 20
	// aheadGap is how far the next payload may lie behind the last one.
	aheadGap = 256 << 10
)

// bring fetches a payload into awayDir. The wants of all readers that wait are fetched together.
func (a *awayPart) bring(ctx context.Context, at pack.Address, damage error, wrong bool) error {
	if ctx.Value(lockedKey{}) != nil {
		return errLocked
	}
	if err := a.covers(ctx, at, damage); err != nil {
		return err
	}
	w := &wanted{at: at, wrong: wrong, done: make(chan struct{})}
	a.mu.Lock()
	f := a.wants[at.Pack]
	if f == nil {
		f = &fetching{}
		a.wants[at.Pack] = f
	}
	f.wants = append(f.wants, w)
	closed := a.closed
	if !f.busy && !closed {
		f.busy = true
		a.out.Go(func() { a.serve(at.Pack, f) })
	}
	a.mu.Unlock()
	if closed {
		return ErrClosed
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if w.err != nil {
		return a.failed(ctx, payloadAt(at), w.err)
	}
	return nil
}

// serve fetches what is wanted of a pack, until nothing is.
func (a *awayPart) serve(id pack.ID, f *fetching) {
	for {
		a.mu.Lock()
		list := f.wants
		f.wants = nil
		if len(list) == 0 {
			f.busy = false
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
		var err error
		if slices.ContainsFunc(list, func(w *wanted) bool { return w.wrong }) {
			err = a.remove(id)
		}
		if need := f.plan(list); err == nil {
			err = a.carry(id, need)
		}
		// What the remote has lost or damaged of one is no error of the others.
		alone := (len(list) > 1 || f.ahead > 0) && (errors.Is(err, kv.ErrCorrupt) || errors.Is(err, depot.ErrLeft))
		for _, w := range list {
			if w.err = err; alone {
				w.err = a.carry(id, []pack.Extent{w.extent()})
			}
			close(w.done)
		}
	}
}

// plan returns the ranges to fetch.
func (f *fetching) plan(list []*wanted) (need []pack.Extent) {
	slices.SortFunc(list, func(a, b *wanted) int { return cmp.Compare(a.at.Offset, b.at.Offset) })
	for _, w := range list {
		e := w.extent()
		last := len(need) - 1
		if last >= 0 && e.From < need[last].To {
			need[last].To = max(need[last].To, e.To)
			continue
		}
		need = append(need, e)
	}
	first, last := need[0], &need[len(need)-1]
	f.ahead = min(max(2*f.ahead, aheadFirst), aheadMost)
	if first.From < f.end || first.From > f.end+aheadGap {
		f.ahead = 0
	}
	last.To = max(last.To, last.From+f.ahead)
	f.end = last.To
	return need
}

// wrongError is the error of a payload that is sound by its checksums, and is not the one with a hash.
type wrongError struct{ *pack.CorruptError }

func (e wrongError) Unwrap() error { return e.CorruptError }

// mark returns what says that a payload was compared with its hash, and where that is noted. own says that it is in packs/.
func (a *awayPart) mark(own bool, at pack.Address, sum digest.Sum) (uint64, *atomic.Uint64) {
	mark := maphash.Comparable(a.seed, struct {
		own bool
		at  pack.Address
		sum digest.Sum
	}{own, at, sum}) | 1
	return mark, &a.verified[mark>>48]
}

// known reports whether a payload needs no comparison with its hash, or the hash is not known.
func (a *awayPart) known(own bool, at pack.Address, sum digest.Sum) bool {
	mark, slot := a.mark(own, at, sum)
	return sum == digest.Sum{} || slot.Load() == mark
}

// right compares the whole bytes of a payload with its hash, once: two copies of one directory may have other payloads at
// one address, and the remote may have those of the other one.
func (a *awayPart) right(own bool, at pack.Address, b []byte, sum digest.Sum) error {
	if a.known(own, at, sum) {
		return nil
	}
	if got := digest.Of(b); got != sum {
		return wrongError{&pack.CorruptError{Pack: at.Pack, Offset: at.Offset, Length: at.Length, Reason: fmt.Sprintf("the payload hashes to %v, not %v", got, sum)}}
	}
	mark, slot := a.mark(own, at, sum)
	slot.Store(mark)
	return nil
}

// forget says that payloads were removed: others may come to their addresses.
func (a *awayPart) forget() {
	for i := range a.verified {
		a.verified[i].Store(0)
	}
}

// bucketStore opens a store when the first request is sent.
type bucketStore struct {
	kv.Store // nil until it is open
	open     func(ctx context.Context) (kv.Store, error)
	opening  ctxlock.Lock
}

var _ kv.Conditional = (*bucketStore)(nil)

func (s *bucketStore) store(ctx context.Context) (kv.Store, error) {
	if err := s.opening.Lock(ctx); err != nil {
		return nil, err
	}
	defer s.opening.Unlock()
	if s.Store == nil {
		store, err := s.open(ctx)
		if err != nil {
			return nil, err
		}
		s.Store = store
	}
	return s.Store, nil
}

func (s *bucketStore) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	store, err := s.store(ctx)
	if err != nil {
		return nil, err
	}
	return store.Get(ctx, key, rng)
}

func (s *bucketStore) GetTagged(ctx context.Context, key string, known kv.Tag, limit int64) (kv.Tagged, error) {
	store, err := s.store(ctx)
	if err != nil {
		return kv.Tagged{}, err
	}
	c, ok := store.(kv.Conditional)
	if !ok {
		return kv.Tagged{}, errors.ErrUnsupported
	}
	return c.GetTagged(ctx, key, known, limit)
}

func (s *bucketStore) SetTagged(context.Context, string, []byte, kv.Tag) (kv.Tag, error) {
	return kv.NoValue, kv.ErrReadOnly
}

// viewOrFetch reads a payload of packs/, and fetches it if it is not there, or not the one with the hash sum.
func (db *DB) viewOrFetch(ctx context.Context, at pack.Address, off, n uint64, all bool, sum digest.Sum, fn func([]byte) error) error {
	begun, err := db.away.viewIn(ctx, db.packs, at, off, n, all, sum, fn)
	if begun || !errors.As(err, new(*pack.CorruptError)) {
		return err
	}
	return db.away.view(ctx, at, off, n, all, sum, err, fn)
}

// lend opens the file of the pack with a payload for a peer.
func (db *DB) lend(ctx context.Context, at pack.Address) (*pack.File, error) {
	if db.away == nil {
		return db.packs.File(at)
	}
	look := func([]byte) error { return nil }
	err := db.packs.View(ctx, at, 0, at.Length, look)
	if err == nil {
		return db.packs.File(at)
	}
	if !errors.As(err, new(*pack.CorruptError)) {
		return nil, err
	}
	if err = db.away.view(ctx, at, 0, at.Length, false, digest.Sum{}, err, look); err != nil {
		return nil, err
	}
	// A peer has one file of a pack: if one is in packs/ too, it gets bytes.
	if slices.ContainsFunc(db.packs.Infos(), func(i pack.Info) bool { return i.ID == at.Pack && !i.Missing }) {
		return nil, errors.ErrUnsupported
	}
	for _, s := range db.away.fetched() {
		var f *pack.File
		if f, err = s.File(at); err == nil {
			return f, nil
		}
	}
	return nil, err
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

// empty removes what was fetched of payloads, and returns how much. Processes that read it at the moment keep what they have open.
func (a *awayPart) empty(ctx context.Context, dry bool) (int64, error) {
	var before, after DiskUse
	dir := a.db.fs.PathJoin(a.db.dir, awayDir)
	before.Measure(a.db.fs, dir)
	if dry {
		return before.Total(), nil
	}
	defer a.forget()
	for _, i := range a.packs.Infos() {
		if _, err := a.packs.Reclaim(ctx, i.ID, nil, math.MaxUint64); err != nil {
			return 0, err
		}
	}
	after.Measure(a.db.fs, dir)
	return before.Total() - after.Total(), nil
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
