package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/soaktest"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/txn"
)

// When a holder ends in order, the next one goes on: with versions, values that were
// located, and sessions with everything that was written to them.
func TestHandover(t *testing.T) {
	h, c := served(t, nil, nil)
	want := random(1, 100<<10)
	put(t, h.db, map[string][]byte{"k": want, "s": []byte("small")})
	v := version(t, c, "")
	value := must.Get(v.Locate(bg, "k"))(t)
	s := begin(t, c)
	must.Do(t, s.Set(bg, "new", []byte("1")))
	other := joinSession(t, join(t, h, nil), s.ID())
	wantValue(t, other, "new", []byte("1"))
	dir := h.db.Dir()
	must.Do(t, h.end())
	// No process serves: the error comes after a while, not at once.
	ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
	defer cancel()
	if _, err := v.Get(ctx, "k", kv.All()); err == nil || errors.Is(err, kv.ErrNotFound) {
		t.Error(err)
	}
	h2 := hold(t, dir, nil)
	wantValue(t, v, "k", want)
	wantValue(t, v, "s", []byte("small"))
	if b, err := kv.ReadValue(bg, value, kv.All()); err != nil || !bytes.Equal(b, want) {
		t.Errorf("a value located before: %d bytes, %v", len(b), err)
	}
	wantValue(t, s, "new", []byte("1"))
	if err := s.Set(bg, "new", []byte("2")); err != nil {
		t.Error(err)
	}
	wantValue(t, other, "new", []byte("2"))
	if _, err := other.Commit(bg, txn.CommitOptions{}); err != nil {
		t.Error(err)
	}
	if got, err := h2.db.At(bg, ""); err == nil {
		wantValue(t, got, "new", []byte("2"))
		got.Close()
	}
}

// When a holder is killed, every session goes on with all that was acknowledged, by its
// client and by others: one that was saved, one that was not, and one without a write.
func TestKilledHolder(t *testing.T) {
	runtimeDir(t)
	dir := filepath.Join(shortDir(t), "t.zdb")
	hold(t, dir, nil).end()
	child := startHolder(t, dir)
	c := joinDir(t, dir)
	saved, unsaved, clean, shared := begin(t, c), begin(t, c), begin(t, c), begin(t, c)
	other := joinSession(t, joinDir(t, dir), shared.ID())
	if !unsaved.Info().Saved.IsZero() {
		t.Error("the session was saved when it began")
	}
	must.Do(t, saved.Set(bg, "gone", []byte("1")))
	must.Do(t, saved.Savepoint(bg))
	large := random(3, 200<<10)
	for _, s := range []*session{saved, unsaved, other} {
		for _, err := range []error{s.Set(bg, "k", []byte(s.ID().String())), s.Set(bg, "large", large), s.Delete(bg, "gone"), s.Guard(bg, "g")} {
			must.Do(t, err)
		}
	}
	for range 2 {
		child.kill(t)
		child = startHolder(t, dir)
		for _, s := range []*session{saved, unsaved, shared, other, joinSession(t, joinDir(t, dir), unsaved.ID())} {
			wantValue(t, s, "k", []byte(s.ID().String()))
			wantValue(t, s, "large", large)
			if _, err := kv.Get(bg, s, "gone"); !errors.Is(err, kv.ErrNotFound) {
				t.Errorf("a key that was deleted: %v", err)
			}
		}
		if err := clean.Set(bg, "k", []byte("clean")); err != nil {
			t.Error(err)
		}
	}
	for _, s := range []*session{clean, shared} {
		if _, err := s.Commit(bg, txn.CommitOptions{}); err != nil && s == clean {
			t.Error(err)
		}
	}
}

// If another client has ended a session while its client had no connection, what was written is lost,
// and the session says so.
func TestEndedMeanwhile(t *testing.T) {
	runtimeDir(t)
	dir := filepath.Join(shortDir(t), "t.zdb")
	hold(t, dir, nil).end()
	child := startHolder(t, dir)
	c := joinDir(t, dir)
	s := begin(t, c)
	must.Do(t, s.Set(bg, "k", []byte("lost")))
	child.kill(t)
	db := must.Get(engine.Open(bg, dir, nil))(t)
	must.Do(t, errors.Join(must.Get(db.Resume(bg, s.ID()))(t).Abort(), db.Close()))
	startHolder(t, dir)
	for range 2 {
		var lost *SessionLostError
		if _, err := kv.Get(bg, s, "k"); !errors.As(err, &lost) || lost.ID != s.ID() || !lost.Saved.IsZero() || lost.Committing || !errors.Is(err, txn.ErrLost) || !errors.Is(err, ErrGone) {
			t.Fatalf("%#v", err)
		}
	}
}

func startHolder(t *testing.T, dir string) *child {
	t.Helper()
	c := start(t, "holder", dir)
	if got := c.line(t); got != "serving" {
		t.Fatal(got)
	}
	return c
}

func joinDir(t *testing.T, dir string) *Client {
	t.Helper()
	c := must.Get(DialDir(bg, dir, nil))(t)
	t.Cleanup(func() { leave(c) })
	return c
}

const killRounds = 6

func TestKilledCommits(t *testing.T) { killHolders(t, func(n int) bool { return n < killRounds }) }

func TestSoakKilledCommits(t *testing.T) {
	end := time.Now().Add(soaktest.Time(t))
	killHolders(t, func(int) bool { return time.Now().Before(end) })
}

// A holder is killed in a stream of commits, at random moments. Each commit takes place once, whole,
// and its peer knows it; a version that was open is read on.
func killHolders(t *testing.T, more func(round int) bool) {
	runtimeDir(t)
	dir := filepath.Join(shortDir(t), "t.zdb")
	h := hold(t, dir, nil)
	large := random(1, 50<<10)
	put(t, h.db, map[string][]byte{"x": []byte("0"), "y": []byte("0"), "large": large})
	must.Do(t, h.end())
	holder := startHolder(t, dir)
	c := joinDir(t, dir)
	v := version(t, c, "")
	acknowledged, rounds := 0, 0
	for round := 0; more(round); round++ {
		rounds++
		commits := make(chan error, 1)
		go func() {
			for range 1 + rand.IntN(20) {
				if err := commitNumber(c, acknowledged+1); err != nil {
					commits <- err
					return
				}
				acknowledged++
			}
			commits <- nil
		}()
		time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
		holder.kill(t)
		holder = startHolder(t, dir)
		if err := <-commits; err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		wantValue(t, v, "x", []byte("0"))
		wantValue(t, v, "large", large)
		head := version(t, c, "main")
		x := must.Get(kv.Get(bg, head, "x"))(t)
		wantValue(t, head, "y", x)
		if string(x) != fmt.Sprint(acknowledged) {
			t.Fatalf("round %d: the head is %s; %d was acknowledged", round, x, acknowledged)
		}
	}
	t.Logf("%d rounds, %d commits", rounds, acknowledged)
	holder.in.Close()
	if err := holder.cmd.Wait(); err != nil {
		t.Error(err)
	}
	c.Close()
	db := must.Get(engine.Open(bg, dir, nil))(t)
	r, err := db.Check(bg, txn.CheckOptions{Payloads: true})
	if err != nil || len(r.Problems) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	db.Close()
}

// commitNumber commits one number under two keys.
func commitNumber(c *Client, k int) error {
	s, err := beginOn(c)
	if err != nil {
		return err
	}
	defer s.Close()
	for _, key := range []string{"x", "y"} {
		if err := s.Set(bg, key, []byte(fmt.Sprint(k))); err != nil {
			return err
		}
	}
	_, err = s.Commit(bg, txn.CommitOptions{Message: fmt.Sprint(k)})
	return err
}

// A server without clients ends.
func TestIdle(t *testing.T) {
	runtimeDir(t)
	dir := filepath.Join(shortDir(t), "t.zdb")
	db := must.Get(engine.Open(bg, dir, &engine.Options{Create: true}))(t)
	defer db.Close()
	table := serve.New(serve.Options{})
	must.Do(t, table.AddDatabase("t", db))
	l := must.Get(Listen(dir))(t)
	// The client waits for the server, which would not wait for it.
	conn := must.Get(Connect(bg, l.Path()))(t)
	done := make(chan error, 1)
	go func() { done <- Serve(bg, l, table, &Options{Idle: 300 * time.Millisecond}) }()
	c := must.Get(NewClient(bg, conn, &DialOptions{}))(t)
	select {
	case err := <-done:
		t.Fatalf("it ended while there was a client: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	c.Close()
	if err := <-done; !errors.Is(err, ErrIdle) {
		t.Error(err)
	}
	if _, err := DialDir(bg, dir, nil); err == nil {
		t.Error("somebody listens")
	}
}
