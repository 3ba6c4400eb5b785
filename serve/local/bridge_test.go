package local

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/serve/wire"
)

// A client speaks to the server through a bridge, which ends with the connection. One
// that does not know the tokens is not connected.
func TestBridge(t *testing.T) {
	s, _ := served(t, nil, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tokens := [2 * TokenSize]byte(bytes.Repeat([]byte("0123456789abcdef"), 4))
	for _, known := range []bool{true, false} {
		ended := make(chan error, 1)
		go func() { ended <- Bridge(bg, s.l.Dir, l.Addr().String(), tokens) }()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, TokenSize)
		if _, err := io.ReadFull(c, got); err != nil || !slices.Equal(got, tokens[:TokenSize]) {
			t.Fatalf("%q, %v", got, err)
		}
		answer := slices.Clone(tokens[TokenSize:])
		if !known {
			answer[TokenSize-1]++
		}
		if _, err := c.Write(answer); err != nil {
			t.Fatal(err)
		}
		client, err := NewClient(bg, c, &DialOptions{NoFiles: true})
		if (err == nil) != known {
			t.Errorf("known %v: %v", known, err)
		}
		if known {
			out, err := client.Resolve(bg, "", "main")
			if err != nil || out == nil {
				t.Error(err)
			}
			_ = client.Close()
		}
		if err := await(t, ended); (err == nil) != known {
			t.Errorf("known %v: the bridge ended with %v", known, err)
		}
	}
	if err := Bridge(bg, t.TempDir(), l.Addr().String(), tokens); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// What a server said last comes through, though the client goes on sending.
func TestBridgeEndsWithTheServer(t *testing.T) {
	near, client := tcpPair(t)
	far, server := tcpPair(t)
	done := make(chan struct{})
	go func() {
		go relay(far, near)
		relay(near, far)
		close(done)
	}()
	w := wire.NewConn(server, wire.Limits{}, 0)
	if err := w.Send(&wire.Frame{Op: wire.OpBye, Body: make([]byte, 1<<20)}); err != nil {
		t.Fatal(err)
	}
	_ = server.CloseWrite()
	for range 100 {
		if _, err := client.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Microsecond)
	}
	if f, err := wire.NewConn(client, wire.Limits{}, 0).Receive(); err != nil || len(f.Body) != 1<<20 {
		t.Error(err)
	}
	_ = client.Close()
	<-done
}

// tcpPair returns both ends of a connection.
func tcpPair(t *testing.T) (a, b *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); d.Close() })
	return c.(*net.TCPConn), d.(*net.TCPConn)
}

func await(t *testing.T, ended chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Minute):
		t.Fatal(context.DeadlineExceeded)
		return nil
	}
}
