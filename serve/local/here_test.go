package local

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// Reads are answered in parallel after one that arrived before the reply to another.
func TestCrowd(t *testing.T) {
	dir, err := os.MkdirTemp("", "here") // paths of sockets are short
	must.Do(t, err)
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Skip(err) // a system without Unix sockets
	}
	defer l.Close()
	a := must.Get(net.Dial("unix", l.Addr().String()))(t)
	defer a.Close()
	b := must.Get(l.Accept())(t)
	defer b.Close()
	from, to := wire.NewConn(a, wire.Limits{}, 0), wire.NewConn(b, wire.Limits{}, 0)
	if !to.CanReady() {
		t.Skip("this system does not tell what has arrived")
	}
	h := &here{pass: func() {}}
	defer h.stop()
	read := func() {
		n := h.enter()
		h.sends(to)
		h.leave(n)
	}
	read()
	if !h.answers(wire.OpRead, true) {
		t.Error("one read at a time is a crowd")
	}
	must.Do(t, from.Send(&wire.Frame{ID: 1, Op: wire.OpRead}))
	h.sends(to) // another goroutine receives
	if !h.answers(wire.OpRead, true) {
		t.Error("what another goroutine may be receiving is a crowd")
	}
	read()
	for range crowdSize {
		if h.answers(wire.OpRead, true) {
			t.Fatal("a read of several at a time is answered by the goroutine that receives")
		}
	}
	if !h.answers(wire.OpRead, true) {
		t.Error("the crowd does not end")
	}
}
