package web

import (
	"context"
	"net"
	"net/http"
)

// Listener returns a listener whose connections let handlers of this package
// send the header of a response and the beginning of its body in one write.
// Other listeners work too, with one more write. Connections that are not TCP
// are not changed.
func Listener(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok && err == nil {
		return &conn{TCPConn: tcp}, nil
	}
	return c, err
}

// conn is a connection that can hold back short writes. net/http sends the first 4 KiB
// of a response, header and body, before the rest of a long body: two system calls, and
// the client wakes up twice. Only the goroutine that answers a request writes.
type conn struct {
	*net.TCPConn
	holds bool
	held  []byte
}

// maxHeld bounds the buffered bytes.
const maxHeld = 16 << 10

func (c *conn) Write(b []byte) (int, error) {
	switch {
	case c.holds && len(c.held)+len(b) <= maxHeld:
		c.held = append(c.held, b...)
		return len(b), nil
	case len(c.held) == 0:
		return c.TCPConn.Write(b)
	}
	both := net.Buffers{c.held, b}
	before := int64(len(c.held))
	n, err := both.WriteTo(c.TCPConn)
	c.held = c.held[:0]
	return int(max(n-before, 0)), err
}

// hold buffers short writes until release, or until a long one follows.
func (c *conn) hold() { c.holds = true }

// release writes the buffered bytes. Later writes return its error again.
func (c *conn) release() {
	c.holds = false
	if len(c.held) > 0 {
		_, _ = c.TCPConn.Write(c.held)
		c.held = c.held[:0]
	}
}

type connKey struct{}

// withConn is [http.Server.ConnContext].
func withConn(ctx context.Context, c net.Conn) context.Context {
	if c, ok := c.(*conn); ok {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// inOneWrite calls fn, which answers r, and holds the header back until the body follows.
func inOneWrite(r *http.Request, fn func()) {
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		c.hold()
		defer c.release()
	}
	fn()
}
