package txn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn/internal/seen"
)

// writingPeer opens a peer that can write.
func writingPeer(t *testing.T, db *DB, sessionBytes int64) *DB {
	t.Helper()
	o := testOptions(nil)
	o.Policy, o.SessionBytes = toyPolicy{}, sessionBytes
	p := NewPeer(db.Dir(), db.Identity(), db.Remote(), o)
	t.Cleanup(func() { p.Close() })
	return p
}

// stagedRemote counts the requests that send pages.
type stagedRemote struct {
	Remote
	stages *int
}

func (r stagedRemote) Begin(ctx context.Context, o BeginOptions) (Tx, error) {
	tx, err := r.Remote.Begin(ctx, o)
	return stagedTx{tx, r.stages}, err
}

type stagedTx struct {
	Tx
	stages *int
}

func (t stagedTx) Stage(ctx context.Context, pages [][]byte) error {
	*t.stages++
	return t.Tx.Stage(ctx, pages)
}

// A peer whose options set no size keeps the pages that it makes, and sends many at once.
func TestPeerSendsPagesTogether(t *testing.T) {
	db := openTest(t, nil)
	stages := 0
	p := NewPeer(db.Dir(), db.Identity(), stagedRemote{db.Remote(), &stages}, &Options{Policy: toyPolicy{}})
	defer p.Close()
	s := mustBegin(t, p)
	b, err := s.Bulk(bg, "bulk", false)
	for i := 0; err == nil && i < 5000; i++ {
		err = b.Set(bg, fmt.Sprintf("k%05d", i), []byte(fmt.Sprint("value ", i)))
	}
	if err == nil {
		err = b.Finish(bg)
	}
	must.Do(t, err)
	if stages == 0 || stages > 3 {
		t.Errorf("pages of 200 KiB were sent in %d requests", stages)
	}
	must.Do(t, s.Abort())
}

// restarting is a database that is opened again before one of the requests about a session, as by
// the next process after the one before was killed.
type restarting struct {
	Remote
	t      *testing.T
	o      *Options
	db     *DB
	before int // so many requests are left
}

type restartingTx struct {
	Tx
	r *restarting
}

func (r *restarting) Begin(ctx context.Context, o BeginOptions) (Tx, error) {
	tx, err := r.Remote.Begin(ctx, o)
	if err == nil {
		err = tx.(sessionTx).Log(ctx)
	}
	return &restartingTx{tx, r}, err
}

func (x *restartingTx) request() Tx {
	r := x.r
	if r.before--; r.before == 0 {
		id := x.Info().ID
		if err := r.db.Close(); err != nil {
			r.t.Fatal(err)
		}
		var err error
		if r.db, err = Open("db", r.o); err == nil {
			r.Remote = r.db.Remote()
			if x.Tx, err = r.Resume(bg, id); err == nil {
				err = x.Tx.(sessionTx).Log(bg)
			}
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	return x.Tx
}

func (x *restartingTx) Watch(ctx context.Context) (Watch, error) {
	w, err := x.Tx.Watch(ctx)
	db := x.r.db
	w.Live = func() bool { return x.r.db == db }
	return w, err
}

func (x *restartingTx) Roots(ctx context.Context) (Roots, error) { return x.request().Roots(ctx) }
func (x *restartingTx) Pages(ctx context.Context, q PageQuery) ([][]byte, error) {
	return x.request().Pages(ctx, q)
}
func (x *restartingTx) Stage(ctx context.Context, pages [][]byte) error {
	return x.request().Stage(ctx, pages)
}
func (x *restartingTx) Swap(ctx context.Context, from Roots, to Root) error {
	return x.request().Swap(ctx, from, to)
}

// A change whose pages a peer makes takes place once, whichever request finds another process.
func TestPeerSwapsInAnotherProcess(t *testing.T) {
	long := strings.Repeat("long", 500)
	for before := 1; ; before++ {
		o := testOptions(vfs.NewMem())
		db := openTest(t, o)
		r := &restarting{db.Remote(), t, o, db, 0}
		to := testOptions(nil)
		p := NewPeer("db", db.Identity(), r, to)
		s := mustBegin(t, p)
		set(t, s, map[string]string{"g/.zarray": "f=c/:/:1 array", "g/c/0": long, "g/c/1": "short"})
		r.before = before
		if err := s.Copy(bg, nil, "g", "h"); err != nil {
			t.Fatalf("restarted before request %d: %v", before, err)
		}
		ended := r.before > 0
		r.before = 0
		for key, want := range map[string]string{"g/c/0": long, "h/c/0": long, "h/c/1": "short"} {
			if b, err := kv.Get(bg, s, key); err != nil || string(b) != want {
				t.Errorf("restarted before request %d: %s: %d bytes, %v", before, key, len(b), err)
			}
		}
		must.Do(t, errors.Join(s.Abort(), p.Close()))
		closeChecked(t, r.db)
		if ended {
			t.Logf("%d requests", before-1)
			return
		}
	}
}

// Sessions of a peer count in the memory of the process.
func TestPeerSessionsCount(t *testing.T) {
	p := writingPeer(t, openOnDisk(t, testOptions(nil)), 0)
	s, other := mustBegin(t, p), mustBegin(t, p)
	b := must.Get(s.Bulk(bg, "g", false))(t)
	for i := range 2000 {
		must.Do(t, b.Set(bg, fmt.Sprintf("k%04d", i), []byte("value")))
	}
	must.Do(t, b.node.Flush(bg))
	if n, bytes := p.memory.sessions.Load(), p.sessionUse(); n != 2 || bytes == 0 {
		t.Errorf("%d sessions with %d bytes", n, bytes)
	}
	must.Do(t, errors.Join(s.Abort(), other.Abort()))
	if n, bytes := p.memory.sessions.Load(), p.sessionUse(); n != 0 || bytes != 0 {
		t.Errorf("%d sessions with %d bytes after the end", n, bytes)
	}
}

// Beyond a number of keys a session of a peer forgets what it read, and loses nothing that others
// have written since.
func TestPeerForgetsKeys(t *testing.T) {
	seen.Most = 8
	defer func() { seen.Most = 1 << 20 }()
	db := openTest(t, nil)
	s := must.Get(writingPeer(t, db, 0).Begin(bg, ""))(t)
	key := func(i int) string { return fmt.Sprintf("k/%d", i) }
	for i := range 100 {
		if _, err := s.Get(bg, key(i), kv.All()); !errors.Is(err, kv.ErrNotFound) {
			t.Fatal(err)
		}
	}
	refused := 0
	for i := range 100 {
		must.Get(s.Tx().SetIf(bg, key(i), []byte("theirs"), Expect{}))(t)
		err := s.Set(bg, key(i), []byte("mine"))
		if changed := (*ChangedError)(nil); !errors.As(err, &changed) || changed.Key != key(i) {
			t.Errorf("%s: %v", key(i), err)
		} else if strings.Contains(err.Error(), "forgotten") {
			refused++
		}
	}
	if n := s.home.(*there).seen.Size(); refused < 92 || n > seen.Most {
		t.Errorf("%d refused, %d remembered", refused, n)
	}
	must.Get(s.Get(bg, key(1), kv.All()))(t)
	must.Do(t, s.Set(bg, key(1), []byte("mine")))
	must.Do(t, s.Set(bg, "new", []byte("1")))
	must.Do(t, s.DeletePrefix(bg, "k/"))
	must.Do(t, s.Set(bg, key(2), []byte("mine")))
	must.Do(t, s.Abort())
}
