package txn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/collect"
)

// A rebase repeats versions that nothing else keeps once they expire. It takes
// what they added by name, so they stay until it is done.
func TestRebaseBesideExpireAndGC(t *testing.T) {
	db := openTest(t, nil)
	base := update(t, db, "main", map[string]string{"x": "0", "both": "0"})
	must.Do(t, db.CreateBranch(bg, "side", base.ID))
	added := map[string]string{"both": "side"}
	for i := range 200 {
		added[fmt.Sprint("dir/", i)] = strings.Repeat(fmt.Sprint(i), 300)
	}
	update(t, db, "side", added)
	removed := map[string]string{}
	for key := range added {
		if key != "both" {
			removed[key] = ""
		}
	}
	update(t, db, "side", removed)
	update(t, db, "main", map[string]string{"both": "main"})
	up, err := db.Head(bg, "main")
	must.Do(t, err)
	collected := false
	_, err = db.Rebase(bg, "side", up, RebaseOptions{choose: func(Conflict) Choice {
		if !collected {
			collected = true
			mustExpire(t, db, ExpireOptions{Keep: 1})
			mustGC(t, db)
		}
		return Ours
	}})
	if !collected {
		t.Fatal("the holder was not asked")
	}
	if err != nil && !errors.Is(err, ErrExpired) {
		t.Fatal(err)
	}
	mustBeSound(t, db)
}

// A version that expires after a cherry-pick or revert has looked at it, and before
// it is held, is not taken: a collection may be removing its pages.
func TestCombineBesideExpire(t *testing.T) {
	for _, op := range []func(*DB, CommitID) error{
		func(db *DB, id CommitID) error {
			_, err := db.CherryPick(bg, "main", id, 0, CommitOptions{})
			return err
		},
		func(db *DB, id CommitID) error {
			_, err := db.Revert(bg, "main", id, 0, CommitOptions{})
			return err
		},
	} {
		db := openTest(t, nil)
		update(t, db, "main", map[string]string{"x": "0"})
		c := update(t, db, "main", map[string]string{"y": "1"})
		update(t, db, "main", map[string]string{"z": "2"})
		db.keeping.WaitLock()
		done := make(chan error, 1)
		go func() { done <- op(db, c.ID) }()
		waitIn(t, "txn.(*DB).Begin(")
		batch := db.idx.NewBatch()
		catalog.Expired.Put(batch, catalog.Expiry{Commit: c.ID, Time: time.Now()}) // as Expire does
		must.Do(t, batch.Commit(true))
		batch.Close()
		db.current.clear()
		db.keeping.Unlock()
		if err := <-done; !errors.Is(err, ErrExpired) {
			t.Errorf("%v, want ErrExpired", err)
		}
	}
}

// A session that somebody else ends while it is resumed is not resumed: nothing
// keeps its pages then.
func TestResumeBesideAbort(t *testing.T) {
	db := openTest(t, nil)
	s := mustBegin(t, db)
	set(t, s, map[string]string{"x": "1"})
	must.Do(t, s.Detach(bg))
	id := s.ID()
	db.mu.Lock()
	done := make(chan error, 1)
	go func() {
		_, err := db.Resume(bg, id)
		done <- err
	}()
	waitIn(t, "txn.(*DB).register(")
	batch := db.idx.NewBatch()
	batch.Delete(index.SpaceSession, id[:]) // as Abort does
	must.Do(t, batch.Commit(true))
	batch.Close()
	db.mu.Unlock()
	if err := <-done; !errors.Is(err, ErrNoRef) {
		t.Errorf("%v, want ErrNoRef", err)
	}
	if n := len(db.openSessions()); n > 0 {
		t.Errorf("%d sessions are open", n)
	}
}

// What two sessions made alike stays when one of them ends while it is marked.
func TestGCBesideTheEndOfATwin(t *testing.T) {
	for range 8 { // which of the two is marked first is chance
		o := testOptions(vfs.NewMem())
		o.PageCacheBytes = -1
		db := openTest(t, o)
		values := map[string]string{}
		for i := range 200 {
			values[fmt.Sprint("dir/", i)] = strings.Repeat(fmt.Sprint(i), 50)
		}
		old := update(t, db, "main", values)
		if err := func() error { // without the directory
			s := mustBegin(t, db)
			if err := s.DeletePrefix(bg, "dir/"); err != nil {
				return err
			}
			_, err := s.Commit(bg, CommitOptions{})
			return err
		}(); err != nil {
			t.Fatal(err)
		}
		view := must.Get(db.Snapshot(bg, old.ID))(t)
		ends, stays := mustBegin(t, db), mustBegin(t, db)
		for _, s := range []*Session{ends, stays} {
			must.Do(t, s.Copy(bg, view, "dir", "back"))
		}
		must.Do(t, view.Close())
		mustExpire(t, db, ExpireOptions{Keep: 1})
		must.Get(collect.GC(bg, &db.care, momentOf{core{db}, func() { must.Do(t, ends.Abort()) }}, GCOptions{}))(t)
		must.Get(stays.Commit(bg, CommitOptions{}))(t)
		mustBeSound(t, db)
	}
}

// momentOf is a database where something happens after a collection has taken its roots.
type momentOf struct {
	core
	then func()
}

func (m momentOf) Moment(ctx context.Context) (*collect.Moment, error) {
	at, err := m.core.Moment(ctx)
	m.then()
	return at, err
}

// waitIn returns when a goroutine is in a function and waits for a lock.
func waitIn(t *testing.T, function string) {
	t.Helper()
	buf := make([]byte, 1<<20)
	for {
		for g := range bytes.SplitSeq(buf[:runtime.Stack(buf, true)], []byte("\n\n")) {
			if bytes.Contains(g, []byte(function)) && (bytes.Contains(g, []byte("sync.(*")) || bytes.Contains(g, []byte("semaphore.(*"))) {
				return
			}
		}
		runtime.Gosched()
	}
}

// A copy takes pages by name, from a version that must stay until the session shows
// that it needs them: a closed snapshot keeps nothing.
func TestCopyFromClosedSnapshot(t *testing.T) {
	db := openTest(t, nil)
	update(t, db, "main", map[string]string{"x": "0"})
	added := map[string]string{}
	for i := range 200 {
		added[fmt.Sprint("dir/", i)] = strings.Repeat(fmt.Sprint(i), 300)
	}
	update(t, db, "main", added)
	snap := must.Get(db.At(bg, "main"))(t)
	for key := range added {
		added[key] = ""
	}
	update(t, db, "main", added)
	must.Do(t, snap.Close())
	mustExpire(t, db, ExpireOptions{Keep: 1})
	mustGC(t, db)
	s := mustBegin(t, db)
	if err := s.Copy(bg, snap, "dir", "copy"); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("%v, want kv.ErrClosed", err)
	}
	must.Get(s.Commit(bg, CommitOptions{}))(t)
}

// A session that was never saved is begun again, with its id and base, only where there
// is none of that id and the base has not expired.
func TestBeginAgain(t *testing.T) {
	db := openTest(t, nil)
	base := update(t, db, "main", map[string]string{"x": "0"})
	update(t, db, "main", map[string]string{"y": "1"})
	id := SessionID{1}
	s, err := db.BeginWith(bg, BeginOptions{ID: id, Branch: "main", Base: base.ID})
	must.Do(t, err)
	if got := contents(t, s); s.ID() != id || s.Base() != base.ID || len(got) != 1 || got["x"] != "0" {
		t.Errorf("session %v at %v holds %v", s.ID(), s.Base(), got)
	}
	if _, err := db.BeginWith(bg, BeginOptions{ID: id, Branch: "main", Base: base.ID}); !errors.Is(err, ErrSessionBusy) {
		t.Errorf("while it is open: %v", err)
	}
	must.Do(t, s.Detach(bg))
	if _, err := db.BeginWith(bg, BeginOptions{ID: id, Branch: "main", Base: base.ID}); !errors.Is(err, ErrSessionBusy) {
		t.Errorf("while it is stored: %v", err)
	}
	if s, err = db.Resume(bg, id); err != nil {
		t.Fatalf("after the failures: %v", err)
	}
	set(t, s, map[string]string{"z": "2"})
	if _, err := s.Commit(bg, CommitOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := db.BeginWith(bg, BeginOptions{ID: SessionID{2}, Branch: "none", Base: base.ID}); !errors.Is(err, ErrNoRef) {
		t.Errorf("on a branch that is gone: %v", err)
	}
	must.Get(db.Expire(bg, ExpireOptions{Keep: 1}))(t)
	if _, err := db.BeginWith(bg, BeginOptions{ID: SessionID{2}, Branch: "main", Base: base.ID}); !errors.Is(err, ErrExpired) {
		t.Errorf("after the base has expired: %v", err)
	}
}

// A version that was found to be there is remembered only until versions expire, also
// by a look-up that began before.
func TestCurrentVersions(t *testing.T) {
	db := openTest(t, nil)
	c := update(t, db, "main", map[string]string{"x": "0"})
	update(t, db, "main", map[string]string{"x": "1"})
	for range 2 {
		if id, err := db.Resolve(bg, c.ID.String()); err != nil || id != c.ID {
			t.Fatalf("%v, %v", id, err)
		}
	}
	_, age := db.current.has(c.ID)
	must.Get(db.Expire(bg, ExpireOptions{Keep: 1}))(t)
	db.current.add(c.ID, age)
	if _, err := db.Resolve(bg, c.ID.String()); !errors.Is(err, ErrExpired) {
		t.Errorf("%v, want ErrExpired", err)
	}
	if _, err := db.Resolve(bg, strings.Repeat("0", 40)); !errors.Is(err, ErrNoRef) {
		t.Errorf("%v, want ErrNoRef", err)
	}
}
