package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/ctxlock"
)

// A database fails when a write of its index fails, for example on a full disk, and when its directory is moved or
// replaced. Then the table opens it again for the next request:
//
//	find ──▶ served ── Failed ──▶ close ──▶ open ──▶ the next served
//	                                          └──▶ ErrUnavailable, for lookTime
//
// A database that was opened to read while its disk was full is opened again for the next
// request that writes.

// ErrUnavailable means that a database cannot be opened at present. A later request tries it again.
var ErrUnavailable = errors.New("serve: the database cannot be opened at present; it is tried again")

// lookTime is the time between two looks for databases, and two tries to open one.
var lookTime = time.Second // tests change it

// entry is a database or target that a table serves under a name.
type entry struct {
	t     *Table
	name  string
	open  Opener // nil if the caller owns the view or database
	found bool   // by Options.Look

	now atomic.Pointer[served] // nil while it is not open

	opening ctxlock.Lock // held while the database is opened, and for the fields below
	tried   time.Time    // when the table opened it again last, or could not
	failed  error        // why it could not
	lacks   error        // why the database takes no writes for now
}

// use serves s under the name.
func (e *entry) use(s *served) {
	s.views.limit, s.views.documents = e.t.o.Views, newDocuments()
	if s.db != nil {
		s.stop = s.db.Versions().Cache(s.views.letGo)
	}
	e.now.Store(s)
}

// opened opens the database.
func (e *entry) opened(ctx context.Context) (*served, error) {
	db, lacks, err := e.open(ctx)
	if err != nil {
		return nil, err
	}
	if e.lacks = lacks; lacks != nil {
		e.t.o.Log.WarnContext(ctx, "opened to read only", "database", e.name, "reason", lacks.Error())
	}
	return &served{name: e.name, db: db, reads: lacks != nil}, nil
}

// sound returns why a request cannot use s. Reading goes on after a failed write.
func (s *served) sound(writes bool) error {
	switch {
	case s == nil:
		return ErrUnavailable
	case s.db == nil:
		return nil
	case s.reads && writes:
		return ErrUnavailable
	}
	err := s.db.Versions().Failed()
	if !writes && !errors.Is(err, engine.ErrMoved) {
		return nil
	}
	return err
}

// find is [Table.find]. Opening goes on after the end of ctx, for later requests.
func (e *entry) find(ctx context.Context, writes bool) (*served, error) {
	s := e.now.Load()
	if err := s.sound(writes && e.open != nil); err == nil || e.open == nil {
		return s, err
	}
	if err := e.opening.Lock(ctx); err != nil {
		return nil, err
	}
	var now *served
	var err error
	done := make(chan struct{})
	go func() { // another process may delay it
		defer close(done)
		defer e.opening.Unlock()
		defer func() { // as a server of HTTP does for requests
			if r := recover(); r != nil {
				err = fmt.Errorf("%s: opening it: panic: %v\n%s", e.name, r, debug.Stack())
			}
		}()
		now, err = e.renewed(context.WithoutCancel(ctx), writes)
	}()
	select {
	case <-done:
		return now, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// renewed returns the open view or database. If a request cannot use it, it opens the database
// again first. e.opening is held.
func (e *entry) renewed(ctx context.Context, writes bool) (*served, error) {
	if now, err := e.t.entry(e.name); now != e {
		return nil, cmp.Or(err, fmt.Errorf("%s: %w", e.name, ErrNoDatabase))
	}
	s := e.now.Load()
	why := s.sound(writes)
	if why != nil && time.Since(e.tried) >= lookTime {
		e.again(ctx, s, why)
		s = e.now.Load()
		why = s.sound(writes)
	}
	if why != nil {
		return nil, fmt.Errorf("%s: %w: %w", e.name, ErrUnavailable, cmp.Or(e.failed, e.lacks, why))
	}
	return s, nil
}

// again closes the database and opens it anew.
func (e *entry) again(ctx context.Context, old *served, why error) {
	if old != nil {
		e.now.Store(nil)
		if err := old.close(ctx, true); err != nil { // the logs of its sessions have their changes, as after a kill
			e.t.o.Log.DebugContext(ctx, "close", "database", e.name, "error", err)
		}
	}
	s, err := e.opened(e.t.life)
	switch {
	case err == nil:
		e.t.o.Log.WarnContext(ctx, "opened", "database", e.name, "reason", why.Error())
		e.use(s)
	case e.failed == nil || err.Error() != e.failed.Error():
		e.t.o.Log.ErrorContext(ctx, "cannot be opened", "database", e.name, "error", err)
	}
	e.tried, e.failed = time.Now(), err
	if e.found && errors.Is(err, engine.ErrNotFound) && e.t.o.Look()[e.name] == nil { // it was removed
		e.t.mu.Lock()
		delete(e.t.served, e.name)
		e.t.mu.Unlock()
	}
}

// close leaves sessions at savepoints and closes the views, and the database if it is the table's.
func (s *served) close(ctx context.Context, all bool) error {
	err := s.sessions.close(ctx)
	s.views.close()
	if s.stop != nil {
		s.stop()
	}
	if all && s.db != nil {
		err = errors.Join(err, s.db.Close())
	}
	return err
}

// look adds the databases that are there now, unless the last look is less than a pause ago, and reports whether it
// looked.
func (t *Table) look(pause time.Duration) bool {
	t.mu.Lock()
	if t.o.Look == nil || t.closed || time.Since(t.looked) < pause {
		t.mu.Unlock()
		return false
	}
	t.looked = time.Now()
	t.mu.Unlock()
	for name, open := range t.o.Look() {
		if e, err := t.entry(name); e == nil && err == nil {
			_ = t.add(&entry{t: t, name: name, open: open, found: true}, nil) // another request may have added it
		}
	}
	return true
}

// Writable is [Table.Database] for requests that change the database. A database that has failed, or that was opened
// to read only while its disk was full, is opened again first. Safe for concurrent use.
func (t *Table) Writable(ctx context.Context, name string) (*engine.DB, error) {
	s, err := t.find(ctx, name, true)
	if err != nil {
		return nil, err
	}
	return s.database()
}

// Check looks at databases and targets at the same time, and returns for each name why requests would fail: nil if
// they would not, [ErrNoDatabase] for an unknown name, and the error of ctx where the look did not end in time.
func (t *Table) Check(ctx context.Context, names []string) map[string]error {
	errs := map[string]error{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, name := range names {
		wg.Go(func() {
			err := t.checkOne(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			errs[name] = err
		})
	}
	wg.Wait()
	return errs
}

func (t *Table) checkOne(ctx context.Context, name string) error {
	s, err := t.find(ctx, name, false)
	if err != nil || s.db == nil {
		return err
	}
	if err := s.sound(true); err != nil {
		return err
	}
	_, _, err = s.db.Refs(ctx)
	return err
}
