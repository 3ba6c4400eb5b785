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

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

// ErrNoDatabase means that the server has nothing of that name.
var ErrNoDatabase = fmt.Errorf("serve: no such database: %w", kv.ErrNotFound)

// ErrName means that a database cannot have a name.
var ErrName = errors.New("serve: bad name of a database")

// Options configure a [Table]. The zero value works.
type Options struct {
	// Create makes an empty database that is served under a name. It stays the caller's.
	// nil refuses it.
	Create func(ctx context.Context, name string) (*engine.DB, error)
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
	served map[string]*served
	closed bool

	commits, conflicts atomic.Int64

	creating sync.Mutex // held while a database is made
}

// Caches returns what the chunk caches of the databases do, by name.
func (t *Table) Caches() map[string]engine.CacheStats {
	t.mu.RLock()
	defer t.mu.RUnlock()
	stats := map[string]engine.CacheStats{}
	for name, s := range t.served {
		if s.db != nil {
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
	for name, s := range t.served {
		if s.db != nil {
			errs[name] = s.db.CareErrors()
		}
	}
	return errs
}

// Counts is what clients did since the table was made.
type Counts struct{ Commits, Conflicts int64 }

// Counts returns the counts.
func (t *Table) Counts() Counts { return Counts{t.commits.Load(), t.conflicts.Load()} }

// served is one thing with a name: a database, or what another target names.
type served struct {
	name string
	db   *engine.DB     // nil for a target
	src  *engine.Source // nil for a database

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
	return &Table{o: o, served: map[string]*served{}}
}

// AddDatabase serves db, which stays the caller's, under a name without slashes.
func (t *Table) AddDatabase(name string, db *engine.DB) error {
	return t.add(&served{name: name, db: db})
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
	t.creating.Lock()
	defer t.creating.Unlock()
	if _, err := t.find(name); !errors.Is(err, ErrNoDatabase) {
		return fmt.Errorf("make database %s: %w", Clip(name), cmp.Or(err, fs.ErrExist))
	}
	db, err := t.o.Create(ctx, name)
	if err != nil {
		return fmt.Errorf("make database %s: %w", Clip(name), err)
	}
	t.o.Log.InfoContext(ctx, "create", "database", name, "who", who.Name)
	return t.AddDatabase(name, db)
}

// AddTarget serves what src names, read-only. src stays the caller's.
func (t *Table) AddTarget(name string, src *engine.Source) error {
	return t.add(&served{name: name, src: src})
}

func (t *Table) add(s *served) error {
	if s.name == "" || strings.ContainsAny(s.name, "/\x00") || strings.HasPrefix(s.name, "-") || s.name == "." || s.name == ".." {
		return fmt.Errorf("serve: %q cannot be the name of a database: it must not begin with - or have a slash", s.name)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.served[s.name] != nil {
		return fmt.Errorf("serve: %s is served already; give one of them another name", s.name)
	}
	s.views.limit, s.views.documents = t.o.Views, newDocuments()
	t.served[s.name] = s
	if s.db != nil {
		s.stop = s.db.Cache(s.views.letGo)
	}
	return nil
}

// Names returns what is served, sorted.
func (t *Table) Names() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Sorted(maps.Keys(t.served))
}

// Versions returns the names of the branches of what is served, sorted, with those of tags
// if they are wanted too. A target that is no database has main only.
func (t *Table) Versions(ctx context.Context, name string, tags bool) ([]string, error) {
	db, err := t.Database(name)
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
// ErrNoDatabase, [engine.ErrMoved], errors.ErrUnsupported for a target that is no database.
func (t *Table) Database(name string) (*engine.DB, error) {
	s, err := t.find(name)
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

func (t *Table) find(name string) (*served, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := t.served[name]
	switch {
	case t.closed:
		return nil, os.ErrClosed
	case s == nil:
		return nil, fmt.Errorf("%s: %w", name, ErrNoDatabase)
	case s.db != nil:
		return s, s.db.Here()
	}
	return s, nil
}

// Close leaves every session at a savepoint and closes the views. Databases and
// targets stay open. Later requests are os.ErrClosed.
func (t *Table) Close(ctx context.Context) error {
	t.mu.Lock()
	all := t.served
	t.served, t.closed = map[string]*served{}, true
	t.mu.Unlock()
	var errs []error
	for _, s := range all {
		errs = append(errs, s.sessions.close(ctx))
		s.views.close()
		if s.stop != nil {
			s.stop()
		}
	}
	return errors.Join(errs...)
}
