package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/leaktest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/internal/sockets"
	"github.com/zarrdb/zarrdb/txn"
)

var bg = context.Background()

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		playRole(role)
		return
	}
	leaktest.Main(m)
}

// shortDir is a temporary directory with a path that a socket may have.
func shortDir(t testing.TB) string {
	t.Helper()
	dir := must.Get(os.MkdirTemp("", "z"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// holder is a process's part of a test: a database, served.
type holder struct {
	db    *engine.DB
	table *serve.Table
	l     *sockets.Listener
	s     *server
	end   func() error // ends the server in order
}

// hold opens the database in dir, makes it where there is none, and serves it until
// the test ends.
func hold(t testing.TB, dir string, o *Options) *holder {
	t.Helper()
	if os.Getenv("XDG_RUNTIME_DIR") == "" || !testing.Testing() {
		t.Fatal("XDG_RUNTIME_DIR is not set")
	}
	db, err := engine.Open(bg, dir, &engine.Options{Create: true, Author: "tester", CacheBytes: 4 << 20, PageCacheBytes: 4 << 20})
	must.Do(t, err)
	h := &holder{db: db, table: serve.New(serve.Options{})}
	must.Do(t, h.table.AddDatabase("t", db))
	if h.l, err = Listen(dir); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(bg)
	done := make(chan error, 1)
	h.s = newServer(h.l, h.table, o)
	go func() { done <- h.s.serve(ctx) }()
	ended := false
	h.end = func() error {
		if ended {
			return nil
		}
		ended = true
		cancel()
		err := errors.Join(<-done, h.table.Close(bg))
		r, checked := db.Check(bg, txn.CheckOptions{Payloads: true})
		if checked == nil {
			for _, p := range r.Problems {
				err = errors.Join(err, fmt.Errorf("check: %v", p))
			}
		}
		return errors.Join(err, checked, db.Close())
	}
	t.Cleanup(func() {
		if err := h.end(); err != nil {
			t.Errorf("end of the server: %v", err)
		}
	})
	return h
}

// Listen makes the socket of the database in dir.
func Listen(dir string) (*sockets.Listener, error) {
	at, err := sockets.Place(dir)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", dir, err)
	}
	return at.Listen()
}

// Serve answers the clients that connect to l, until ctx is done or l fails.
func Serve(ctx context.Context, l *sockets.Listener, t *serve.Table, o *Options) error {
	return newServer(l, t, o).serve(ctx)
}

// Peer opens the database of the server with caches and workers of this process. The caller
// closes the DB before the client.
func (c *Client) Peer(o *engine.Options) (*engine.DB, error) {
	dir := c.o.Dir
	if dir == "" {
		c.mu.Lock()
		dir = c.l.hello.Dir
		c.mu.Unlock()
	}
	if !c.o.Share {
		o = small(o)
	}
	return engine.OpenPeer(dir, c.Identity(), c.Source(), o)
}

// runtimeDir gives the test a directory for sockets.
func runtimeDir(t testing.TB) {
	t.Helper()
	dir := shortDir(t)
	if t, ok := t.(interface{ Setenv(k, v string) }); ok {
		t.Setenv("XDG_RUNTIME_DIR", dir)
		t.Setenv("TMPDIR", dir)
	}
}

// served is a database that is served, and a client of it.
func served(t testing.TB, o *Options, d *DialOptions) (*holder, *Client) {
	t.Helper()
	runtimeDir(t)
	dir := filepath.Join(shortDir(t), "t.zdb")
	h := hold(t, dir, o)
	return h, join(t, h, d)
}

// join connects a client.
func join(t testing.TB, h *holder, d *DialOptions) *Client {
	t.Helper()
	c := must.Get(Dial(bg, h.l.Path(), d))(t)
	t.Cleanup(func() { leave(c) })
	return c
}

// peers are the databases through which clients open sessions.
var peers sync.Map // *Client: *engine.DB

// leave closes a client.
func leave(c *Client) {
	if p, ok := peers.LoadAndDelete(c); ok {
		_ = p.(*engine.DB).Close()
	}
	c.Close()
}

// sessionOn opens a session through a client.
func sessionOn(c *Client, open func(*engine.DB) (*engine.Session, error)) (*session, error) {
	p, ok := peers.Load(c)
	if !ok {
		made, err := c.Peer(&engine.Options{CacheBytes: 4 << 20, PageCacheBytes: 4 << 20})
		if err != nil {
			return nil, err
		}
		var had bool
		if p, had = peers.LoadOrStore(c, made); had {
			_ = made.Close()
		}
	}
	s, err := open(p.(*engine.DB))
	if err != nil {
		return nil, err
	}
	return &session{s, requests{s.Versions().Tx().(*Session)}}, nil
}

func beginOn(c *Client) (*session, error) {
	return sessionOn(c, func(db *engine.DB) (*engine.Session, error) { return db.Begin(bg, "") })
}

func resumeOn(c *Client, id txn.SessionID) (*session, error) {
	return sessionOn(c, func(db *engine.DB) (*engine.Session, error) { return db.Resume(bg, id) })
}

// put commits keys.
func put(t testing.TB, db *engine.DB, keys map[string][]byte) txn.CommitID {
	t.Helper()
	must.Get(db.Update(bg, "", "put", func(s *engine.Session) error {
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if err := s.Set(bg, key, keys[key]); err != nil {
				return err
			}
		}
		return nil
	}))(t)
	id := must.Get(db.Head(bg, ""))(t)
	return id
}

// random returns n bytes that cannot be compressed and depend on seed alone.
func random(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
	_, _ = r.Read(b)
	return b
}

// viewOf opens a version in this process, page by page.
func viewOf(t testing.TB, c *Client, rev string) (*engine.Snapshot, error) {
	p, err := c.Peer(&engine.Options{CacheBytes: 4 << 20, PageCacheBytes: 4 << 20})
	if err != nil {
		return nil, err
	}
	if t != nil {
		t.Cleanup(func() { _ = p.Close() })
	}
	return p.At(bg, rev)
}

func version(t testing.TB, c *Client, rev string) *engine.Snapshot {
	t.Helper()
	v := must.Get(viewOf(t, c, rev))(t)
	t.Cleanup(func() { v.Close() })
	return v
}

func wantValue(t testing.TB, r kv.Reader, key string, want []byte) {
	t.Helper()
	got, err := kv.Get(bg, r, key)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes, %v, want %d bytes", key, len(got), err, len(want))
	}
}

func contains(err error, part string) bool { return err != nil && strings.Contains(err.Error(), part) }
