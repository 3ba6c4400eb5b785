package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/soaktest"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// state returns what the bodies of a server take now, took at most, and how many requests
// wait for memory.
func (b *budget) state() (used, most int64, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, b.most, len(b.queue)
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// Users have equal parts, and so have the connections of a user. A connection that
// holds nothing gets what is free.
func TestBudget(t *testing.T) {
	const mib = 1 << 20
	b := &budget{limit: 256 * mib, users: map[string]*account{}}
	shares := map[string]*share{}
	for _, s := range []struct{ name, user string }{{"a1", "a"}, {"a2", "a"}, {"a3", "a"}, {"b1", "b"}, {"b2", "b"}} {
		shares[s.name] = &share{b: b, user: s.user}
	}
	now, cancel := context.WithCancel(bg)
	cancel() // takes only what is free
	take := func(name string, n int64, want bool) {
		t.Helper()
		if err := shares[name].take(now, n); (err == nil) != want {
			t.Errorf("%s takes %d: %v, with %d of %d", name, n, err, shares[name].held, b.used)
		}
	}
	for range 56 {
		take("a1", 4*mib, true) // alone, it has all but an eighth
	}
	take("a1", 4*mib, false)
	take("a2", 20*mib, false) // a quarter is for others than long bodies
	take("a2", 4*mib, true)
	take("b1", 4*mib, true)
	take("b1", 4*mib, false)
	take("b2", 28*mib, false)
	take("b2", memoryFirst, true)
	take("b2", memoryFirst, false)
	for range 56 {
		shares["a1"].give(4 * mib)
	}
	take("a1", 100*mib, true)
	take("a1", 20*mib, false) // a2 may come
	take("a2", 20*mib, true)
	take("a3", 9*mib, false) // the user holds its half
	take("b1", 50*mib, true)
	got := make(chan error, 2)
	go func() { got <- shares["a3"].take(bg, 9*mib) }()
	eventually(t, "a3 does not wait", func() bool { _, _, n := b.state(); return n == 1 })
	shares["a1"].give(100 * mib)
	if err := <-got; err != nil {
		t.Error(err)
	}
	for _, s := range shares {
		s.close()
	}
	if b.used != 0 || len(b.users) != 0 || len(b.queue) != 0 {
		t.Errorf("%d bytes of %d users are held", b.used, len(b.users))
	}
}

// A body of almost the whole budget waits neither for what connections may always hold nor
// for claims that come after it.
func TestBudgetOfLongBody(t *testing.T) {
	const mib = 1 << 20
	now, cancel := context.WithCancel(bg)
	cancel() // takes only what is free
	must.Set(t, &patience, patience)
	for _, patience = range []time.Duration{time.Hour, 0} {
		b := &budget{limit: 256 * mib, users: map[string]*account{}}
		small, other, long := &share{b: b, user: "a"}, &share{b: b, user: "b"}, &share{b: b, user: "a"}
		for range 2 { // with and without its own
			must.Do(t, errors.Join(small.take(now, memoryFirst), other.take(now, memoryFirst), long.take(now, 256*mib)))
			long.give(256*mib - memoryFirst)
			small.give(memoryFirst)
			other.give(memoryFirst)
		}
		long.give(2 * memoryFirst)
		must.Do(t, small.take(now, mib))
		got := make(chan error, 1)
		go func() { got <- long.take(bg, 200*mib) }()
		eventually(t, "the long body does not wait", func() bool { _, _, n := b.state(); return n == 1 })
		if err := other.take(now, memoryFirst); err != nil {
			t.Error(err)
		}
		other.give(memoryFirst)
		if err := other.take(now, mib); (err == nil) != (patience == 0) {
			t.Errorf("beside a long body that waits: %v", err)
		} else if err == nil {
			other.give(mib)
		}
		small.give(mib)
		if err := <-got; err != nil {
			t.Error(err)
		}
		if err := other.take(now, mib); err != nil {
			t.Error(err)
		}
		for _, s := range []*share{small, other, long} {
			s.close()
		}
		if b.used != 0 || b.above != 0 || len(b.users) != 0 || len(b.queue) != 0 {
			t.Errorf("%d and %d bytes of %d users are held", b.used, b.above, len(b.users))
		}
	}
}

// A request that panics gives its memory back.
func TestMemoryAfterPanic(t *testing.T) {
	was := handlers[wire.OpRefs]
	t.Cleanup(func() { handlers[wire.OpRefs] = was })
	handlers[wire.OpRefs] = object(func(*conn, context.Context, *none) (*wire.Refs, error) { panic("of a test") })
	h, c := served(t, nil, nil)
	if _, _, err := c.Source().Refs(bg); !contains(err, "of a test") {
		t.Error(err)
	}
	if used, _, _ := h.s.bodies.state(); used != 0 {
		t.Errorf("%d bytes are held", used)
	}
}

// payloadOf is the meta of a request for the bytes of a value.
func payloadOf(t testing.TB, c *Client, key string) []byte {
	t.Helper()
	s := must.Get(beginOn(c))(t)
	defer s.Abort()
	v := must.Get(s.tx.Value(bg, key))(t)
	return must.Get(json.Marshal(wire.Pack{Pack: fmt.Sprintf("%x", v.Pack), Offset: v.Offset, Length: v.Length, N: v.Length}))(t)
}

// greedy sends a request for a payload again and again, and reads no reply.
func greedy(t testing.TB, h *holder, in []byte, requests int) net.Conn {
	t.Helper()
	w, conn := rawConn(t, h)
	for id := range uint32(requests) {
		must.Do(t, w.Send(&wire.Frame{ID: id, Op: wire.OpPayload, Meta: in}))
	}
	return conn
}

const greedyClients = 24

// Clients that do not read their replies hold no more than the budget, together. Others go on
// meanwhile, and the memory is free when the clients are gone.
func TestGreedyClients(t *testing.T) {
	o := &Options{Memory: 16 << 20, WriteTimeout: 10 * time.Minute}
	h, c := served(t, o, nil)
	long := random(1, 1<<20)
	put(t, h.db, map[string][]byte{"long": long, "short": long[:40_000]})
	in := payloadOf(t, c, "long")
	conns := make([]net.Conn, greedyClients)
	for i := range conns {
		conns[i] = greedy(t, h, in, 50)
	}
	eventually(t, "nobody waits for memory", func() bool { _, _, n := h.s.bodies.state(); return n > greedyClients })
	honest := must.Get(Dial(bg, h.l.Path(), &DialOptions{NoFiles: true}))(t)
	defer leave(honest)
	v := version(t, honest, "")
	for range 20 {
		if b, err := v.Get(bg, "short", kv.All()); err != nil || !slices.Equal(b, long[:40_000]) {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
	}
	s := begin(t, c)
	if err := s.Set(bg, "k", long[:50_000]); err != nil {
		t.Error(err)
	}
	if _, err := s.Commit(bg, txn.CommitOptions{}); err != nil {
		t.Error(err)
	}
	for key, err := range v.List(bg, kv.ListOptions{}) {
		if err != nil || key != "long" && key != "short" {
			t.Errorf("%q, %v", key, err)
		}
	}
	if _, most, _ := h.s.bodies.state(); most > o.Memory+greedyClients*memoryFirst {
		t.Errorf("the replies took %d bytes of %d", most, o.Memory)
	}
	// One that reads gets all its replies when the others are gone.
	for _, conn := range conns[1:] {
		conn.Close()
	}
	conns[0].SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.CopyN(io.Discard, conns[0], 50<<20); err != nil {
		t.Error(err)
	}
	conns[0].Close()
	eventually(t, "memory is held after the clients are gone", func() bool { used, _, n := h.s.bodies.state(); return used == 0 && n == 0 })
}

// Requests count from the first byte on. One that does not arrive ends its connection.
func TestGreedyRequests(t *testing.T) {
	must.Set(t, &bodyRate, 1<<30)
	o := &Options{Memory: 16 << 20, WriteTimeout: 50 * time.Millisecond}
	h, c := served(t, o, nil)
	for range 40 {
		_, conn := rawConn(t, h)
		must.Get(conn.Write((&wire.Header{ID: 1, Op: wire.OpSet, Meta: 1 << 20, Body: 1 << 20}).Append(nil)))(t)
	}
	s := begin(t, c)
	if err := s.Set(bg, "k", random(2, 1<<20)); err != nil {
		t.Error(err)
	}
	eventually(t, "memory is held for requests that do not arrive", func() bool {
		used, _, n := h.s.bodies.state()
		metas, _, m := h.s.metas.state()
		return used+metas == 0 && n+m == 0
	})
	_, most, _ := h.s.bodies.state()
	_, metas, _ := h.s.metas.state()
	if most > o.Memory || metas > h.s.metas.limit {
		t.Errorf("requests took %d and %d bytes", most, metas)
	}
}

// A connection that has not said hello sends short frames only.
func TestLongHello(t *testing.T) {
	h, _ := served(t, nil, nil)
	conn := must.Get(Connect(bg, h.l.Path()))(t)
	defer conn.Close()
	must.Get(conn.Write((&wire.Header{ID: 1, Op: wire.OpHello, Body: 1 << 20}).Append(nil)))(t)
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := io.Copy(io.Discard, conn); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// Greedy clients come and go beside honest ones. Memory and latency are printed; an honest
// client is answered within a second.
func TestSoakGreedyClients(t *testing.T) {
	end := time.Now().Add(soaktest.Time(t))
	h, _ := served(t, nil, nil)
	long, short := random(1, 64<<20), random(2, 1000)
	put(t, h.db, map[string][]byte{"long": long, "short": short})
	in := payloadOf(t, join(t, h, nil), "long")
	var stop atomic.Bool
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	for range greedyClients {
		wg.Go(func() {
			for !stop.Load() {
				conn := greedy(t, h, in, 16)
				for until := time.Now().Add(10 * time.Second); !stop.Load() && time.Now().Before(until); {
					time.Sleep(10 * time.Millisecond)
				}
				conn.Close()
			}
		})
	}
	var hellos, gets []time.Duration
	heap := uint64(0)
	for time.Now().Before(end) {
		at := time.Now()
		c := must.Get(Dial(bg, h.l.Path(), nil))(t)
		hellos = append(hellos, time.Since(at))
		v := version(t, c, "")
		for range 10 {
			at = time.Now()
			wantValue(t, v, "short", short)
			gets = append(gets, time.Since(at))
		}
		wantValue(t, v, "long", long)
		c.Close()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heap = max(heap, m.HeapInuse)
	}
	slices.Sort(hellos)
	slices.Sort(gets)
	_, most, _ := h.s.bodies.state()
	t.Logf("%d greedy clients: replies held %d MiB of %d, heap %d MiB; %d hellos, median %v, longest %v; gets median %v, longest %v",
		greedyClients, most>>20, h.s.o.Memory>>20, heap>>20, len(hellos), hellos[len(hellos)/2], hellos[len(hellos)-1], gets[len(gets)/2], gets[len(gets)-1])
	if most > h.s.o.Memory+greedyClients*memoryFirst {
		t.Errorf("replies took %d bytes", most)
	}
	if slowest := hellos[len(hellos)-1]; slowest > time.Second {
		t.Errorf("hello took %v", slowest)
	}
}
