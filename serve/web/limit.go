package web

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// A connection costs a descriptor, which databases need too. So a server bounds its connections, and one address
// gets a half of them. Beyond that the server closes the connection that has been idle for longest; its client opens
// another one for the next request. If all are busy, the server closes the new one.

// connections are the connections of a server.
type connections struct {
	most int // together; each address has a half

	mu   sync.Mutex
	open map[net.Conn]*connection
	of   map[string]int // by address
}

type connection struct {
	address string
	idle    time.Time // since when; zero while a request is under way
}

func newConnections(most int) *connections {
	return &connections{most: most, open: map[net.Conn]*connection{}, of: map[string]int{}}
}

// maxConnections bounds the connections of a server by the descriptors that this process may open. 0 is no bound.
func maxConnections() int {
	n := descriptors()
	if n == 0 {
		return 0
	}
	return max(n/4, 8)
}

// state is [http.Server.ConnState].
func (c *connections) state(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		k := &connection{address: addressOf(conn), idle: time.Now()}
		c.open[conn] = k
		c.of[k.address]++
		if c.of[k.address] > max(c.most/2, 1) {
			c.shrink(conn, k.address)
		} else if len(c.open) > c.most {
			c.shrink(conn, "")
		}
	case http.StateActive, http.StateIdle:
		if k := c.open[conn]; k != nil {
			if k.idle = (time.Time{}); state == http.StateIdle {
				k.idle = time.Now()
			}
		}
	case http.StateClosed, http.StateHijacked:
		c.forget(conn)
	}
}

// shrink closes the connection of an address, or of any for "", that has been idle for longest, or the new one.
func (c *connections) shrink(fresh net.Conn, address string) {
	oldest, since := fresh, time.Time{}
	for conn, k := range c.open {
		if conn != fresh && !k.idle.IsZero() && (address == "" || k.address == address) && (since.IsZero() || k.idle.Before(since)) {
			oldest, since = conn, k.idle
		}
	}
	c.forget(oldest)
	go oldest.Close() // with TLS it may wait for the client
}

func (c *connections) forget(conn net.Conn) {
	if k := c.open[conn]; k != nil {
		delete(c.open, conn)
		if c.of[k.address]--; c.of[k.address] == 0 {
			delete(c.of, k.address)
		}
	}
}

// addressOf is the address of a client without its port.
func addressOf(conn net.Conn) string {
	address := conn.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}
