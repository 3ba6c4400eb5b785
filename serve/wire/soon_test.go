package wire

import (
	"bytes"
	"context"
	"github.com/zarrdb/zarrdb/internal/must"
	"io"
	"runtime"
	"testing"
	"time"
)

// looking returns two ends of a connection of which the second may look for frames.
func looking(t *testing.T) (from, to *Conn) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no Soon here")
	}
	a, b := pair(t)
	from, to = NewConn(a, Limits{}, 0), NewConn(b, Limits{}, 0)
	to.lookers = 1 // on a machine with one processor too
	return from, to
}

// Soon sees frames that are there, and leaves those that are long, and the end of the
// connection, to Receive.
func TestSoon(t *testing.T) {
	from, to := looking(t)
	if to.Soon() {
		t.Fatal("a frame before one was sent")
	}
	send := func(n int) {
		t.Helper()
		if err := from.Send(&Frame{ID: 7, Op: OpValue, Body: bytes.Repeat([]byte{1}, n)}); err != nil {
			t.Error(err)
		}
	}
	for _, n := range []int{0, 100, bufferSize, joined - headerSize} {
		send(n)
		if !to.Soon() {
			t.Errorf("no frame of %d bytes", n)
		}
		if f, err := to.Receive(); err != nil || f.ID != 7 || len(f.Body) != n {
			t.Errorf("frame of %d bytes: %+v, %v", n, f, err)
		}
	}
	go send(4 * joined)
	if to.Soon() {
		t.Error("a long frame")
	}
	if f, err := to.Receive(); err != nil || len(f.Body) != 4*joined {
		t.Errorf("a long frame: %v", err)
	}
	from.Close()
	if !to.Soon() {
		t.Error("the end is not seen")
	}
	if _, err := to.Receive(); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}

// Soon is called ever more seldom where it finds nothing, and again where it does.
func TestEager(t *testing.T) {
	from, to := looking(t)
	looks := 0
	for range 2000 {
		if to.Eager() {
			to.Soon()
			looks++
		}
	}
	if looks > 16 {
		t.Errorf("%d times in vain", looks)
	}
	for i := range 20 {
		must.Do(t, from.Send(&Frame{ID: 1, Op: OpValue}))
		if !to.Soon() {
			t.Fatal("no frame")
		}
		must.Get(to.Receive())(t)
		if i > 10 && to.eager.pause > 0 {
			t.Errorf("still a pause of %d", to.eager.pause)
		}
	}
}

// One failure between successes is no reason to sleep.
func TestEagerAfterOneFailure(t *testing.T) {
	from, to := looking(t)
	for range 10 {
		if !to.Eager() || to.Soon() || !to.Eager() {
			t.Fatal("it does not look again after one failure")
		}
		must.Do(t, from.Send(&Frame{ID: 1, Op: OpValue}))
		if !to.Soon() {
			t.Fatal("no frame")
		}
		must.Get(to.Receive())(t)
	}
}

// At most as many goroutines look as may.
func TestLookers(t *testing.T) {
	_, to := looking(t)
	lookers.Add(1)
	defer lookers.Add(-1)
	if to.Soon() {
		t.Fatal("a frame")
	}
	if to.eager.pause != 0 {
		t.Error("that was no failure")
	}
}

// Ready waits for a frame or the end of the connection. When its context ends it stops,
// and the connection still works.
func TestReady(t *testing.T) {
	from, to := looking(t)
	for range 50 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if to.Ready(ctx) {
			t.Fatal("a frame before one was sent")
		}
		cancel()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i, ctx := range []context.Context{ctx, context.Background()} {
		go func() {
			time.Sleep(time.Millisecond)
			if err := from.Send(&Frame{ID: uint32(i), Op: OpValue}); err != nil {
				t.Error(err)
			}
		}()
		if !to.Ready(ctx) {
			t.Fatal("no frame")
		}
		if f, err := to.Receive(); err != nil || f.ID != uint32(i) {
			t.Errorf("%+v, %v", f, err)
		}
	}
	from.Close()
	if !to.Ready(ctx) {
		t.Error("the end is not seen")
	}
	if _, err := to.Receive(); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}
