package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// payload is what a writer puts under a key in its n-th commit: it says so itself.
func payload(writer, n int) []byte {
	head := fmt.Sprintf("writer %d, commit %d;", writer, n)
	return append([]byte(head), random(uint64(writer*1000+n), 1000+n%3*50_000)...)
}

// wantPayload checks that bytes are what some commit of the writer wrote.
func wantPayload(b []byte, writer int) error {
	var w, n int
	if _, err := fmt.Sscanf(string(b[:min(len(b), 60)]), "writer %d, commit %d;", &w, &n); err != nil {
		return fmt.Errorf("%.60q: %v", b, err)
	}
	if w != writer || !bytes.Equal(b, payload(w, n)) {
		return fmt.Errorf("the value of writer %d has changed: %.60q", writer, b)
	}
	return nil
}

// Clients write and read, with descriptors and without, while versions expire and
// space is given back. Every value is compared.
func TestLoad(t *testing.T)     { load(t, 2*time.Second) }
func TestSoakLoad(t *testing.T) { load(t, soak(t)) }

func load(t *testing.T, end time.Duration) {
	const clients = 16
	h, first := served(t, nil, nil)
	start := map[string][]byte{}
	for k := range clients {
		start[fmt.Sprintf("w%d", k)] = payload(k, 0)
	}
	put(t, h.db, start)
	ctx, cancel := context.WithTimeout(bg, end)
	defer cancel()
	var wg sync.WaitGroup
	var reads, commits atomic.Int64
	for k := range clients {
		c, err := Dial(bg, first.socket, &DialOptions{NoFiles: k%4 == 3})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		wg.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				var err error
				if k%2 == 0 {
					err = writeOne(c, k, n)
					commits.Add(1)
				} else {
					err = readSome(c, clients)
					reads.Add(1)
				}
				if err != nil {
					t.Errorf("client %d: %v", k, err)
					return
				}
			}
		})
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			if _, err := h.db.Expire(bg, txn.ExpireOptions{Keep: 3, Before: time.Now().Add(time.Hour)}); err != nil {
				t.Error(err)
			}
			if _, err := h.db.GC(bg, txn.GCOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	t.Logf("%d commits, %d reads", commits.Load(), reads.Load())
}

// writeOne commits the n-th value of a writer, in a session that it made itself.
func writeOne(c *Client, writer, n int) error {
	s, err := c.Begin(bg, "", "", "")
	if err != nil {
		return err
	}
	defer s.Close()
	key := fmt.Sprintf("w%d", writer)
	b, err := kv.Get(bg, s, key)
	if err == nil {
		err = wantPayload(b, writer)
	}
	if err == nil {
		err = s.Set(bg, key, payload(writer, n))
	}
	if err == nil {
		_, err = s.Commit(bg, CommitOptions{Message: key})
	}
	return err
}

// readSome reads all values of the head, some of them by ranges.
func readSome(c *Client, writers int) error {
	v, err := c.View(bg, "", "main")
	if err != nil {
		return err
	}
	defer v.Close()
	for k := range writers {
		key := fmt.Sprintf("w%d", k)
		value, err := v.Locate(bg, key)
		if err != nil {
			return err
		}
		b, err := kv.ReadValue(bg, value, kv.All())
		if err == nil {
			err = wantPayload(b, k)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		off := rand.Int64N(value.Size())
		part, err := v.Get(bg, key, kv.From(off))
		if err != nil || !bytes.Equal(part, b[off:]) {
			return fmt.Errorf("%s from %d on: %d bytes, %v", key, off, len(part), err)
		}
	}
	return nil
}

// Many goroutines of one client share its connection, also while requests are given
// up.
func TestOneConnection(t *testing.T) {
	h, c := served(t, &Options{Requests: 8}, nil)
	keys := map[string][]byte{}
	for i := range 10 {
		keys[fmt.Sprint(i)] = random(uint64(i), i*9000)
	}
	put(t, h.db, keys)
	v := version(t, c, "")
	var wg sync.WaitGroup
	for g := range 24 {
		wg.Go(func() {
			for i := range 100 {
				key := fmt.Sprint((g + i) % 10)
				ctx, cancel := context.WithCancel(bg)
				if i%5 == 0 {
					go cancel()
				}
				b, err := v.Get(ctx, key, kv.All())
				if err == nil && !bytes.Equal(b, keys[key]) || err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %d bytes, %v", key, len(b), err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if n := len(c.l.pending); n > 0 {
		t.Errorf("%d requests are under way", n)
	}
}

// A connection has as many views as it may.
func TestViewLimit(t *testing.T) {
	h, c := served(t, &Options{Views: 2}, nil)
	put(t, h.db, map[string][]byte{"k": {1}})
	a := version(t, c, "")
	version(t, c, "")
	if _, err := c.View(bg, "", ""); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	version(t, c, "")
}

// Sessions that were committed or discarded do not count as views, whether the client
// closes them or not.
func TestEndedSessions(t *testing.T) {
	_, c := served(t, &Options{Views: 3}, nil)
	for i := range 10 {
		s := begin(t, c)
		err := s.Set(bg, "k", []byte(fmt.Sprint(i)))
		if err == nil && i%2 == 0 {
			_, err = s.Commit(bg, CommitOptions{})
		} else if err == nil {
			err = s.Discard(bg)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Set(bg, "k", nil); !errors.Is(err, txn.ErrSessionClosed) {
			t.Errorf("a write after the end: %v", err)
		}
	}
	for i := range 10 {
		out, err := ask[wire.View](bg, c.l, wire.OpBegin, wire.Begin{})
		if err == nil {
			_, err = ask[none](bg, c.l, wire.OpDiscard, wire.Handle{View: out.View})
		}
		if err != nil {
			t.Fatalf("session %d, which is not closed: %v", i, err)
		}
	}
}
