package local

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/internal/sockets"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// TestLentBuckets reads buckets through clients.
func TestLentBuckets(t *testing.T) {
	if !sockets.CanPair {
		t.Skip("no connections are passed here")
	}
	h, c := served(t, nil, nil)
	store := kv.NewMem()
	must.Do(t, store.Set(bg, "manifest", []byte("bytes")))
	source{c}.LendBucket("mem:a", store)
	h.s.mu.Lock()
	var conns []*conn
	for k := range h.s.conns {
		conns = append(conns, k)
	}
	h.s.mu.Unlock()
	for _, k := range conns {
		b := k.Bucket("mem:a")
		for rng, want := range map[kv.Range]string{kv.All(): "bytes", kv.From(3): "es", kv.Span(1, 2): "yt", kv.AtMost(5): "bytes"} {
			if got := must.Get(b.Get(bg, "manifest", rng))(t); string(got) != want {
				t.Errorf("%v: %q", rng, got)
			}
		}
		if _, err := b.Get(bg, "manifest", kv.AtMost(4)); !errors.Is(err, kv.ErrTooLarge) {
			t.Errorf("too large: %v", err)
		}
		if _, err := b.Get(bg, "none", kv.All()); !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("nothing there: %v", err)
		}
		got := must.Get(b.(kv.Conditional).GetTagged(bg, "manifest", kv.NoValue, 100))(t)
		if again := must.Get(b.(kv.Conditional).GetTagged(bg, "manifest", got.Tag, 100))(t); string(got.Value) != "bytes" || again.Value != nil || again.Tag != got.Tag {
			t.Errorf("%+v, %+v", got, again)
		}
		if _, err := k.Bucket("mem:b").Get(bg, "manifest", kv.All()); !errors.Is(err, ErrRequest) {
			t.Errorf("a bucket that was not lent: %v", err)
		}
	}
	reader := &conn{s: h.s, who: &serve.Principal{Name: conns[0].who.Name}}
	if _, err := reader.Bucket("mem:a").(kv.Conditional).GetTagged(bg, "manifest", kv.NoValue, 100); !errors.Is(err, kv.ErrReadOnly) {
		t.Errorf("the manifest of a reader: %v", err)
	}
	defer func(was time.Duration) { lenderTime = was }(lenderTime)
	lenderTime = time.Millisecond
	ours, theirs, err := sockets.Pair()
	must.Do(t, err)
	defer theirs.Close()
	stopped := &lender{w: wire.NewConn(ours, wire.Limits{}, 0), waits: map[uint32]chan *wire.Frame{}}
	defer stopped.w.Close()
	go stopped.receive()
	if _, err := stopped.ask(bg, wire.Bucket{Key: "manifest"}); !errors.Is(err, os.ErrDeadlineExceeded) || len(stopped.waits) > 0 {
		t.Errorf("a process that is stopped: %v", err)
	}
	if _, err := reader.Bucket("mem:a").Get(bg, "manifest", kv.All()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a client that lends nothing: %v", err)
	}
}
