package engine

import (
	"encoding/binary"
	"testing"

	"github.com/zarrdb/zarrdb/kv"
)

func TestChunkCacheKeepsKeysApart(t *testing.T) {
	c, err := newChunkCache(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
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
	c, err := newChunkCache(budget)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
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
	c, err := newChunkCache(-1)
	if err != nil || c != nil {
		t.Fatalf("%v, %v", c, err)
	}
	c.Add(kv.ID{1}, [16]byte{}, []byte{1})
	if _, ok := c.Get(kv.ID{1}, [16]byte{}); ok {
		t.Error("found in a cache that is off")
	}
	c.close()
}
