package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/soaktest"
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

// Clients of the load, and the processes that they are spread over.
const (
	loadTotal     = 16
	loadProcesses = 8
)

// Clients of several processes write and read, with descriptors and without, while
// versions expire, space is given back and backups are made. Every value is compared.
func TestLoad(t *testing.T)     { load(t, 2*time.Second) }
func TestSoakLoad(t *testing.T) { load(t, soaktest.Time(t)) }

func load(t *testing.T, length time.Duration) {
	h, _ := served(t, nil, nil)
	first := map[string][]byte{}
	for k := range loadTotal {
		first[fmt.Sprintf("w%d", k)] = payload(k, 0)
	}
	put(t, h.db, first)
	var children []*child
	for p := range loadProcesses {
		children = append(children, start(t, "load", h.l.Path(), strconv.Itoa(p), length.String()))
	}
	var done atomic.Bool
	var beside sync.WaitGroup
	backup := filepath.Join(shortDir(t), "backup.zdb")
	backups, collections := 0, 0
	beside.Go(func() {
		for ; !done.Load(); collections++ {
			if _, err := h.db.Expire(bg, txn.ExpireOptions{Keep: 3, Before: time.Now().Add(time.Hour)}); err != nil {
				t.Error(err)
			}
			if _, err := h.db.GC(bg, txn.GCOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	beside.Go(func() {
		for ; !done.Load(); backups++ {
			if _, err := h.db.Backup(bg, backup, txn.TransferOptions{}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	commits, reads := 0, 0
	for _, c := range children {
		var w, r int
		line := c.line(t)
		if _, err := fmt.Sscanf(line, "%d commits, %d reads", &w, &r); err != nil {
			t.Errorf("a client process: %s", line)
		}
		commits, reads = commits+w, reads+r
	}
	done.Store(true)
	beside.Wait()
	t.Logf("%d commits, %d reads, %d collections, %d backups", commits, reads, collections, backups)
	if backups > 0 {
		copied := must.Get(engine.Open(bg, backup, nil))(t)
		defer copied.Close()
		r, err := copied.Check(bg, txn.CheckOptions{Payloads: true})
		if err != nil || len(r.Problems) > 0 {
			t.Errorf("the backup: %+v, %v", r, err)
		}
	}
}

// loadClients is a process of the load: SOCKET NUMBER LENGTH.
func loadClients(args []string) error {
	number, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	length, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	end := time.Now().Add(length)
	const each = loadTotal / loadProcesses
	var commits, reads atomic.Int64
	errs := make([]error, each)
	var wg sync.WaitGroup
	for i := range each {
		k := number*each + i
		wg.Go(func() {
			c, err := Dial(bg, args[0], &DialOptions{NoFiles: number%4 == 3})
			if err != nil {
				errs[i] = err
				return
			}
			defer c.Close()
			for n := 1; err == nil && time.Now().Before(end); n++ {
				if k%2 == 0 {
					err = writeOne(c, k, n)
					commits.Add(1)
				} else {
					err = readSome(c, loadTotal)
					reads.Add(1)
				}
			}
			if err != nil {
				errs[i] = fmt.Errorf("client %d: %w", k, err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Printf("%d commits, %d reads\n", commits.Load(), reads.Load())
	return nil
}

// writeOne commits the n-th value of a writer, in a session that it made itself.
func writeOne(c *Client, writer, n int) error {
	s, err := beginOn(c)
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
		_, err = s.Commit(bg, txn.CommitOptions{Message: key})
	}
	return err
}

// readSome reads all values of the head, some of them by ranges.
func readSome(c *Client, writers int) error {
	v, err := viewOf(nil, c, "main")
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
	late := time.After(time.Minute)
	for n := range cap(c.l.slots) { // replies to what was given up may come late, but all come
		select {
		case c.l.slots <- struct{}{}:
		case <-late:
			t.Fatalf("no reply to %d requests", cap(c.l.slots)-n)
		}
	}
	for range cap(c.l.slots) {
		<-c.l.slots
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
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
	if _, err := viewOf(t, c, ""); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	for _, letGo := range c.letGo { // as a recall does
		(*letGo)()
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
			_, err = s.Commit(bg, txn.CommitOptions{})
		} else if err == nil {
			err = s.Abort()
		}
		must.Do(t, err)
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
		ended := wire.Handle{View: out.View}
		if _, err := ask[none](bg, c.l, wire.OpDiscard, ended); !errors.Is(err, txn.ErrSessionClosed) {
			t.Errorf("the view of a session that has ended: %v", err)
		}
		if _, err := ask[none](bg, c.l, wire.OpClose, ended); err != nil {
			t.Errorf("a client that closes it all the same: %v", err)
		}
	}
}
