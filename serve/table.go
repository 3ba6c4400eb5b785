package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

// ErrNoDatabase means that the server has nothing of that name.
var ErrNoDatabase = fmt.Errorf("serve: no such database: %w", kv.ErrNotFound)

// ErrName means that a database cannot have a name.
var ErrName = errors.New("serve: bad name of a database")

// Opener opens a database for a table, which closes it. lacks is the reason why the database takes no
// writes for now, such as a full disk. It is nil if the database takes writes, and if it never will.
type Opener func(ctx context.Context) (db *engine.DB, lacks, err error)

// Options configure a [Table]. The zero value works.
type Options struct {
	// Create makes an empty database that Look finds under a name. nil refuses it.
	Create func(ctx context.Context, name string) error
	// Look returns how the databases are opened that are there now, by name, such as those in a
	// directory. The table calls it for an unknown name and for a list of names, at most once a
	// second. nil finds nothing.
	Look func() map[string]Opener
	// Follow is the time between two requests whether a remote that is served by its URL has changed; 0 is never: clients that
	// opened the remote themselves ask themselves.
	Follow time.Duration
	// Log gets a line for each write; nil discards them.
	Log *slog.Logger
	// Views is how many versions are kept open for requests that come one by
	// one; default 64.
	Views int
}

// Table is every request that a client may make. Safe for concurrent use.
type Table struct {
	o Options

	mu     sync.RWMutex
	served map[string]*entry
	closed bool
	looked time.Time // when Options.Look was called last

	life context.Context // of opening databases, until the table is closed
	end  context.CancelFunc

	commits, conflicts atomic.Int64

	creating ctxlock.Lock // held while a database is made
}

// Caches returns the counts of the chunk caches of the databases, by name.
func (t *Table) Caches() map[string]engine.CacheStats {
	t.mu.RLock()
	defer t.mu.RUnlock()
	stats := map[string]engine.CacheStats{}
	for name, e := range t.served {
		if s := e.now.Load(); s != nil && s.db != nil {
			stats[name] = s.db.CacheStats()
		}
	}
	return stats
}

// CareErrors returns the errors of background work of the databases, by name.
func (t *Table) CareErrors() map[string][]txn.CareError {
	t.mu.RLock()
	defer t.mu.RUnlock()
	errs := map[string][]txn.CareError{}
	for name, e := range t.served {
		if s := e.now.Load(); s != nil && s.db != nil {
			errs[name] = s.db.CareErrors()
		}
	}
	return errs
}

// Databases calls fn with each database that is open.
func (t *Table) Databases(fn func(name string, db *engine.DB)) {
	t.mu.RLock()
	open := map[string]*engine.DB{}
	for name, e := range t.served {
		if s := e.now.Load(); s != nil && s.db != nil {
			open[name] = s.db
		}
	}
	t.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(open)) {
		fn(name, open[name])
	}
}

// Counts counts the work of clients since the table was made.
type Counts struct{ Commits, Conflicts int64 }

// Counts returns the counts.
func (t *Table) Counts() Counts { return Counts{t.commits.Load(), t.conflicts.Load()} }

// served is one thing with a name: an open database, or the source of another target.
type served struct {
	name string
	db   *engine.DB     // nil for a target
	src  *engine.Source // nil for a database

	reads bool // the database takes no writes for now

	views    views
	sessions sessions
	stop     func() // closing of views before collections; nil for a target
}

// New returns an empty table.
func New(o Options) *Table {
	if o.Views <= 0 {
		o.Views = 64
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	t := &Table{o: o, served: map[string]*entry{}}
	t.life, t.end = context.WithCancel(context.Background())
	return t
}

// AddDatabase serves db, which stays the caller's, under a name without slashes. It is not opened again
// after a fault.
func (t *Table) AddDatabase(name string, db *engine.DB) error {
	return t.add(&entry{t: t, name: name}, &served{name: name, db: db})
}

// Open opens a database and serves it under a name without slashes. The table opens it again after a fault, such as a full
// disk or a move of its directory, and closes it.
func (t *Table) Open(ctx context.Context, name string, open Opener) error {
	if err := t.check(name); err != nil {
		return err
	}
	e := &entry{t: t, name: name, open: open}
	s, err := e.opened(ctx)
	if err != nil {
		return err
	}
	if err = t.add(e, s); err != nil {
		err = errors.Join(err, s.db.Close())
	}
	return err
}

// Create makes a database and serves it, for administrators. Errors: ErrDenied,
// errors.ErrUnsupported if this server makes none.
func (t *Table) Create(ctx context.Context, who *Principal, name string) error {
	if err := who.MayAdminister("make databases"); err != nil {
		return err
	}
	if t.o.Create == nil {
		return fmt.Errorf("make database %s: %w: this server serves no directory of databases; zarrdb init makes one", Clip(name), errors.ErrUnsupported)
	}
	if err := t.creating.Lock(ctx); err != nil {
		return err
	}
	defer t.creating.Unlock()
	if _, err := t.find(ctx, name, false); !errors.Is(err, ErrNoDatabase) {
		return fmt.Errorf("make database %s: %w", Clip(name), cmp.Or(err, fs.ErrExist))
	}
	if err := t.o.Create(ctx, name); err != nil {
		return fmt.Errorf("make database %s: %w", Clip(name), err)
	}
	t.o.Log.InfoContext(ctx, "create", "database", name, "who", who.Name)
	t.look(0)
	_, err := t.find(ctx, name, true)
	return err
}

// AddTarget serves the source src, read-only. src stays the caller's.
func (t *Table) AddTarget(name string, src *engine.Source) error {
	return t.add(&entry{t: t, name: name}, &served{name: name, src: src})
}

// check returns the error for a text that cannot be a name.
func (t *Table) check(name string) error {
	if name == "" || strings.ContainsAny(name, "/\x00") || strings.HasPrefix(name, "-") || name == "." || name == ".." {
		return fmt.Errorf("serve: %q cannot be the name of a database: it must not begin with - or have a slash", name)
	}
	return nil
}

// add adds an entry. now is its open view or database, nil for a database that is opened at the
// first request.
func (t *Table) add(e *entry, now *served) error {
	if err := t.check(e.name); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.served[e.name] != nil {
		return fmt.Errorf("serve: %s is served already; give one of them another name", e.name)
	}
	if now != nil {
		e.use(now)
	}
	t.served[e.name] = e
	return nil
}

// Names returns the names of the databases and targets, sorted.
func (t *Table) Names() []string {
	t.look(lookTime)
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Sorted(maps.Keys(t.served))
}

// Versions returns the names of the branches of a database or target, sorted, and of its
// tags if tags is set. A target that is no database has main only.
func (t *Table) Versions(ctx context.Context, name string, tags bool) ([]string, error) {
	db, err := t.Database(ctx, name)
	if errors.Is(err, errors.ErrUnsupported) {
		return []string{"main"}, nil
	}
	if err != nil {
		return nil, err
	}
	refs, also, err := db.Refs(ctx)
	if err != nil {
		return nil, err
	}
	if tags {
		refs = slices.Concat(refs, also)
	}
	var names []string
	for _, ref := range refs {
		names = append(names, ref.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Database returns the database of that name, for requests about its versions:
// branches, tags, log, diff. Its sessions are to be had from the table. Errors:
// ErrNoDatabase, [engine.ErrMoved], [ErrUnavailable], errors.ErrUnsupported for a target that is no database.
func (t *Table) Database(ctx context.Context, name string) (*engine.DB, error) {
	s, err := t.find(ctx, name, false)
	if err != nil {
		return nil, err
	}
	return s.database()
}

func (s *served) database() (*engine.DB, error) {
	if s.db == nil {
		return nil, fmt.Errorf("%s has no versions: %w", s.name, errors.ErrUnsupported)
	}
	return s.db, nil
}

// entry returns the entry of a name, nil if there is none.
func (t *Table) entry(name string) (*entry, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.closed {
		return nil, os.ErrClosed
	}
	return t.served[name], nil
}

// find returns the open view or database of a name. It opens a database that is not open, or has
// failed. writes says that the request is to change the database.
func (t *Table) find(ctx context.Context, name string, writes bool) (*served, error) {
	e, err := t.entry(name)
	if e == nil && err == nil && t.look(lookTime) {
		e, err = t.entry(name)
	}
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		return nil, fmt.Errorf("%s: %w", name, ErrNoDatabase)
	}
	s, err := e.find(ctx, writes)
	if err == nil && s.db != nil && t.o.Follow > 0 {
		if err := s.db.Follow(ctx, t.o.Follow); err != nil {
			t.o.Log.WarnContext(ctx, "not brought up to date", "database", name, "error", err)
		}
	}
	return s, err
}

// Close leaves every session at a savepoint, and closes the views and the databases that the table has
// opened. Targets, and databases that the caller opened, stay open. Later
// requests are os.ErrClosed.
func (t *Table) Close(ctx context.Context) error {
	t.end()
	t.mu.Lock()
	all := t.served
	t.served, t.closed = map[string]*entry{}, true
	t.mu.Unlock()
	var errs []error
	for _, e := range all {
		if err := e.opening.Lock(ctx); err != nil { // another process delays it
			errs = append(errs, err)
			continue
		}
		if s := e.now.Load(); s != nil {
			errs = append(errs, s.close(ctx, e.open != nil))
		}
		e.opening.Unlock()
	}
	return errors.Join(errs...)
}
