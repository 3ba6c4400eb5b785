package web

import (
	"bytes"
	"errors"
	"github.com/zarrdb/zarrdb/internal/must"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// Short writes are held back until a long one follows or they are released, and arrive
// in order.
func TestHeldWrites(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	client := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	defer client.Close()
	accepted := must.Get(Listener(l).Accept())(t)
	defer accepted.Close()
	c := accepted.(*conn)
	write := func(b []byte) {
		t.Helper()
		if n, err := c.Write(b); n != len(b) || err != nil {
			t.Fatalf("%d of %d bytes, %v", n, len(b), err)
		}
	}
	read := func(want []byte) {
		t.Helper()
		_ = client.SetReadDeadline(time.Now().Add(time.Minute))
		got := make([]byte, len(want))
		if _, err := io.ReadFull(client, got); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	silent := func() {
		t.Helper()
		_ = client.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if n, err := client.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	head, body := bytes.Repeat([]byte("h"), 4096), bytes.Repeat([]byte("b"), 60<<10)
	c.hold()
	write(head)
	silent()
	write(body)
	read(append(bytes.Clone(head), body...))
	write(head[:10])
	write(head[:20])
	silent()
	c.release()
	read(head[:30])
	write(head)
	read(head)
	c.hold()
	for range 5 {
		write(head) // more than is held back
	}
	c.release()
	read(bytes.Repeat([]byte("h"), 5*4096))
}
