package local

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/serve"
)

// The server and the clients that cache share the memory of a database equally. All of them learn
// when one comes or goes, also through the next server.
func TestProcessesShareMemory(t *testing.T) {
	must.Set(t, &ownPID, -1) // clients in this process count as others
	runtimeDir(t)
	dir := filepath.Join(shortDir(t), "t.zdb")
	const limit = 120 << 20
	var server *server
	start := func() (end func()) {
		db := must.Get(engine.Open(bg, dir, &engine.Options{Create: true, MemoryBytes: limit}))(t)
		table := serve.New(serve.Options{})
		must.Do(t, table.AddDatabase("t", db))
		l := must.Get(Listen(dir))(t)
		ctx, cancel := context.WithCancel(bg)
		done := make(chan error, 1)
		server = newServer(l, table, nil)
		go func() { done <- server.serve(ctx) }()
		return sync.OnceFunc(func() {
			cancel()
			if err := errors.Join(<-done, table.Close(bg), db.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	end := start()
	defer func() { end() }()
	bytes := func(what string, want int64) {
		t.Helper()
		eventually(t, what, func() bool { return engine.UsedMemory().Limit == want })
	}
	bytes("alone", limit)
	dial := func() *Client {
		c := must.Get(DialDir(bg, dir, &DialOptions{Share: true}))(t)
		t.Cleanup(func() { c.Close() })
		return c
	}
	plain := must.Get(DialDir(bg, dir, nil))(t)
	defer plain.Close()
	bytes("a client without caches", limit)
	first := dial()
	bytes("the server beside a client", limit/2)
	second := dial()
	bytes("beside two clients", limit/3)
	second.Close()
	bytes("beside one client", limit/2)

	end()
	end = start()
	if _, err := first.Source().Resolve(bg, "main"); err != nil { // it connects again
		t.Fatal(err)
	}
	dial()
	bytes("the next server beside two clients", limit/3)
	server.memory.Leave()
	bytes("as the clients know it", limit/3)
	first.Close()
	bytes("as the other client knows it", limit/2)

	var dialing sync.WaitGroup // what one client is told of others never comes before the answer to its hello
	for range 8 {
		dialing.Go(func() {
			for range 50 {
				c, err := DialDir(bg, dir, &DialOptions{Share: true})
				if err != nil {
					t.Error(err)
					return
				}
				c.Close()
			}
		})
	}
	dialing.Wait()
}

// A peer whose client does not share has small caches of its own, and the budget stays.
func TestSmallPart(t *testing.T) {
	_, c := served(t, nil, nil)
	limit := engine.UsedMemory().Limit
	p := must.Get(c.Peer(nil))(t)
	defer p.Close()
	if n := p.CacheStats().Limit; n <= 0 || n > limit/16 || engine.UsedMemory().Limit != limit {
		t.Errorf("%d of %d bytes", n, limit)
	}
}
