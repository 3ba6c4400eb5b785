package local

import (
	"cmp"
	"encoding/json"
	"os"

	"github.com/zarrdb/zarrdb/engine"
	membudget "github.com/zarrdb/zarrdb/internal/budget"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// Processes that have a database open share the memory for caches: the server, and clients with
// [wire.CapShare]. The server tells all of them how many they are, whenever the number changes.

var ownPID = os.Getpid() // tests change it

// share notes whether a client shares memory, and returns how many processes do
// if that is new.
func (s *server) share(c *conn, on bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.shares == on {
		return 0
	}
	c.shares = on
	n := s.sharers()
	s.memory.Share(n)
	for other := range s.conns {
		if other.shares && other != c { // c learns the number by hello
			go other.tellShare()
		}
	}
	return n
}

// sharers returns how many processes share memory. s.mu is held.
func (s *server) sharers() int {
	n := 1
	for c := range s.conns {
		if c.shares {
			n++
		}
	}
	return n
}

// tellShare sends the number of processes that share memory. The last frame has the last number.
func (c *conn) tellShare() {
	c.sharing.Lock()
	defer c.sharing.Unlock()
	c.s.mu.Lock()
	n := c.s.sharers()
	c.s.mu.Unlock()
	meta, err := json.Marshal(wire.Share{Processes: n})
	if err == nil {
		_ = c.w.Send(&wire.Frame{Op: wire.OpShare, Meta: meta}) // if it fails the connection ends
	}
}

// share notes how many processes share memory, 0 if the server does not count this one, as it is
// in the same process.
func (c *Client) share(processes int) {
	if c.memory != nil {
		c.memory.Share(processes)
	}
}

// leave ends the part of this process.
func (c *Client) leave() {
	if c.memory != nil {
		c.memory.Leave()
	}
}

// small gives a database caches of its own, of a sixteenth of the memory together, unless the
// options say otherwise.
func small(o *engine.Options) *engine.Options {
	var c engine.Options
	if o != nil {
		c = *o
	}
	c.CacheBytes = cmp.Or(c.CacheBytes, membudget.Chunks.Bytes()/10)
	c.PageCacheBytes = cmp.Or(c.PageCacheBytes, membudget.Pages.Bytes()/10)
	return &c
}
