package cache

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/zarrdb/zarrdb/kv"
)

var bg = context.Background()

func TestChunkCacheKeepsKeysApart(t *testing.T) {
	c := New(1 << 20)
	defer c.Close()
	id := func(n int) (id kv.ID) { binary.LittleEndian.PutUint64(id[8:], uint64(n)); return id }
	for n := range 50 {
		c.Add(id(n), [16]byte{byte(n)}, []byte{byte(n)})
	}
	c.c.Wait()
	hits := 0
	for n := range 50 {
		if b, ok := c.Get(id(n), [16]byte{byte(n)}); ok {
			hits++
			if len(b) != 1 || b[0] != byte(n) {
				t.Fatalf("chunk %d came back as %v", n, b)
			}
		}
		if _, ok := c.Get(id(n), [16]byte{byte(n), 1}); ok {
			t.Fatalf("chunk %d was found under another codec", n)
		}
	}
	if hits == 0 {
		t.Error("nothing was kept")
	}
}

func TestChunkCacheStaysInBudget(t *testing.T) {
	const budget = 4 << 20
	c := New(budget)
	defer c.Close()
	for n := range 1000 {
		var id kv.ID
		binary.LittleEndian.PutUint64(id[:], uint64(n)*0x9e3779b97f4a7c15)
		c.Add(id, [16]byte{}, make([]byte, 64<<10))
		if q := c.queued.Load(); q > budget/8 {
			t.Fatalf("%d bytes wait in the queue", q)
		}
	}
	c.c.Wait()
	var kept int64
	for n := range 1000 {
		var id kv.ID
		binary.LittleEndian.PutUint64(id[:], uint64(n)*0x9e3779b97f4a7c15)
		if b, ok := c.Get(id, [16]byte{}); ok {
			kept += int64(cap(b))
		}
	}
	if kept == 0 || kept > budget {
		t.Errorf("%d bytes kept, budget %d", kept, budget)
	}
	c.Add(kv.ID{1}, [16]byte{}, make([]byte, budget))
	c.c.Wait()
	if _, ok := c.Get(kv.ID{1}, [16]byte{}); ok {
		t.Error("one chunk took the whole budget")
	}
}

func TestChunkCacheOff(t *testing.T) {
	c := New(-1)
	if c != nil {
		t.Fatalf("%v", c)
	}
	c.Add(kv.ID{1}, [16]byte{}, []byte{1})
	if _, ok := c.Get(kv.ID{1}, [16]byte{}); ok {
		t.Error("found in a cache that is off")
	}
	c.Close()
}

// Readers that miss a chunk at the same time wait for a single reader, which decodes the chunk.
func TestChunkIsDecodedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(1 << 20)
		defer c.Close()
		var decoded atomic.Int64
		gate := make(chan struct{})
		decode := func() ([]byte, error) {
			decoded.Add(1)
			<-gate
			return []byte("chunk"), nil
		}
		load := func() {
			if b, err := c.Load(bg, kv.ID{1}, [16]byte{2}, decode); err != nil || string(b) != "chunk" {
				t.Errorf("%q, %v", b, err)
			}
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(load)
		}
		synctest.Wait() // one decodes, and the others wait for it
		close(gate)
		wg.Wait()
		c.c.Wait()
		load() // from the cache
		if n := decoded.Load(); n != 1 {
			t.Errorf("decoded %d times", n)
		}
		if len(c.flights) > 0 {
			t.Errorf("%d flights are left", len(c.flights))
		}
	})
}

// What goes wrong for one reader is not taken for what is wrong with the chunk,
// and a reader that is no longer wanted does not wait.
func TestChunkDecodingFails(t *testing.T) {
	c := New(1 << 20)
	defer c.Close()
	boom := errors.New("boom")
	begun, gate := make(chan struct{}), make(chan struct{})
	first := make(chan error)
	go func() {
		_, err := c.Load(bg, kv.ID{1}, [16]byte{}, func() ([]byte, error) {
			close(begun)
			<-gate
			return nil, boom
		})
		first <- err
	}()
	<-begun
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := c.Load(ctx, kv.ID{1}, [16]byte{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled while waiting: %v", err)
	}
	second := make(chan string)
	go func() {
		b, _ := c.Load(bg, kv.ID{1}, [16]byte{}, func() ([]byte, error) { return []byte("good"), nil })
		second <- string(b)
	}()
	close(gate)
	if err := <-first; !errors.Is(err, boom) {
		t.Errorf("first: %v", err)
	}
	if b := <-second; b != "good" {
		t.Errorf("second: %q", b)
	}

	// After a panic of the decoder no reader waits.
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		c.Load(bg, kv.ID{9}, [16]byte{}, func() ([]byte, error) { panic("bug") })
	}()
	if b, err := c.Load(bg, kv.ID{9}, [16]byte{}, func() ([]byte, error) { return []byte("ok"), nil }); err != nil || string(b) != "ok" {
		t.Errorf("after a panic: %q, %v", b, err)
	}
}

// Reads of a database that is being closed end, with or without the cache.
func TestChunkCacheClosesBesideReaders(t *testing.T) {
	for n := range 50 {
		c := New(64 << 10) // so small that readers wait for its queue
		var readers sync.WaitGroup
		begun := make(chan struct{}, 4)
		for r := range 4 {
			readers.Go(func() {
				begun <- struct{}{}
				for i := range 400 {
					var id kv.ID
					binary.LittleEndian.PutUint64(id[:], uint64(n+r*1000+i)*0x9e3779b97f4a7c15)
					chunk, err := c.Load(bg, id, [16]byte{}, func() ([]byte, error) { return make([]byte, 8<<10), nil })
					if err != nil || len(chunk) != 8<<10 {
						t.Errorf("%d bytes, %v", len(chunk), err)
					}
				}
			})
		}
		for range 4 {
			<-begun
		}
		c.Close()
		readers.Wait()
	}
}

// Databases share memory and no chunks: the identity of a virtual chunk is made from its URL, and
// not every database may read every URL. A closed database leaves nothing.
func TestDatabasesShareNoChunks(t *testing.T) {
	a, b := New(0), New(0)
	defer a.Close()
	chunk := make([]byte, 1000)
	for _, c := range []*Cache{a, b} {
		if _, ok := c.Get(kv.ID{1}, [16]byte{2}); ok {
			t.Error("a chunk of the other database was found")
		}
		c.Add(kv.ID{1}, [16]byte{2}, chunk)
		c.Wait()
		if _, ok := c.Get(kv.ID{1}, [16]byte{2}); !ok {
			t.Error("the chunk was not kept")
		}
	}
	if x, y, used := a.Stats(), b.Stats(), shared.Used(a.pool); x.Bytes != 1000 || y.Bytes != 1000 || used != 2000 || x.Limit != y.Limit {
		t.Errorf("%+v and %+v of %d", x, y, used)
	}
	b.Close()
	b.Close()
	if used := shared.Used(a.pool); used != 1000 || a.Stats().Bytes != 1000 {
		t.Errorf("%d bytes are left of %d", used, a.Stats().Bytes)
	}
	if _, ok := a.Get(kv.ID{1}, [16]byte{2}); !ok {
		t.Error("the chunk of the other database is gone")
	}
}

// A smaller cache drops as many chunks as it must.
func TestResize(t *testing.T) {
	c := New(1 << 20)
	defer c.Close()
	for n := range 16 {
		c.Add(kv.ID{byte(n)}, [16]byte{}, make([]byte, 64<<10))
		c.Wait()
	}
	before := c.Stats()
	c.resize(512 << 10)
	if after := c.Stats(); before.Bytes < 900<<10 || after.Bytes > 512<<10 || after.Bytes < 400<<10 || after.Limit != 512<<10 {
		t.Errorf("%+v, before %+v", after, before)
	}
	if !c.Keeps(128<<10) || c.Keeps(128<<10+1) {
		t.Error("the longest chunk does not follow the size")
	}
}
