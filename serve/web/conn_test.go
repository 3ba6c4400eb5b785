package web

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
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

// Idle connections do not keep others out: those that have been idle for longest are closed. Busy ones stay.
func TestIdleConnections(t *testing.T) {
	const most = 8
	begun, release := make(chan struct{}), make(chan struct{})
	c := newConnections(most)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			begun <- struct{}{}
			<-release
		}
	}))
	s.Config.ConnState = c.state
	s.Start()
	defer s.Close()
	busy := make(chan error, 1)
	go func() {
		r, err := http.Get(s.URL + "/busy")
		if err == nil {
			err = r.Body.Close()
		}
		busy <- err
	}()
	<-begun
	idle := &http.Transport{}
	defer idle.CloseIdleConnections()
	for range 15 * most {
		conn := must.Get(net.Dial("tcp", s.Listener.Addr().String()))(t)
		defer conn.Close()
	}
	for range 3 {
		r := must.Get((&http.Client{Transport: idle}).Get(s.URL))(t)
		r.Body.Close()
		idle.CloseIdleConnections()
	}
	c.mu.Lock()
	if n := len(c.open); n > most/2 {
		t.Errorf("%d connections of one address", n)
	}
	c.mu.Unlock()
	close(release)
	if err := <-busy; err != nil {
		t.Error(err)
	}
	if n := descriptors(); runtime.GOOS != "windows" && (n == 0 || Server(nil, nil).ConnState == nil) {
		t.Errorf("%d descriptors, and no bound", n)
	}
}
