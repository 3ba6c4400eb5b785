package local

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// free reports whether no goroutine of the client receives.
func (l *link) free() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.turn == turnFree
}

// A caller that is alone receives its own reply; what others wait for meanwhile arrives
// all the same, and so does the end of the server.
func TestTurns(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 || runtime.NumCPU() < 2 {
		t.Skip("one processor: nothing is looked for")
	}
	must.Set(t, &restTime, time.Hour)
	h, c := served(t, nil, nil)
	put(t, h.db, map[string][]byte{"k": []byte("value")})
	v, s := version(t, c, ""), begin(t, c)
	deadline := time.Now().Add(time.Minute)
	for n := 0; ; n++ {
		wantValue(t, v, "k", []byte("value"))
		must.Do(t, s.Set(bg, "n", []byte(strconv.Itoa(n))))
		if n > 20 && c.l.free() {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the receiver never rests")
		}
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				wantValue(t, v, "k", []byte("value"))
			}
		})
	}
	wg.Wait()
	for !c.l.free() && time.Now().Before(deadline) {
		wantValue(t, v, "k", []byte("value"))
	}
	// The client does not see the end before its next request, which loses nothing.
	dir := h.db.Dir()
	must.Do(t, h.end())
	hold(t, dir, nil)
	must.Do(t, s.Set(bg, "n", []byte("last")))
	wantValue(t, s, "n", []byte("last"))
}

// While a call takes long, nothing wakes its client up. Then the receiver notices the end
// of the server.
func TestLongCall(t *testing.T) {
	was := handlers[wire.OpResolve]
	t.Cleanup(func() { handlers[wire.OpResolve] = was }) // when the server has ended
	release := make(chan struct{})
	defer close(release) // or the server would not end after a failure
	handlers[wire.OpResolve] = func(c *conn, ctx context.Context, f *wire.Frame) error {
		<-release
		return c.send(f, &wire.Frame{})
	}
	h, c := served(t, nil, nil)
	put(t, h.db, map[string][]byte{"k": []byte("value")})
	v := version(t, c, "")
	state := func() (asleep, receives bool) { // receives: it is the receiver that the call waits for
		c.l.mu.Lock()
		defer c.l.mu.Unlock()
		return c.l.asleep, c.l.turn == turnReceiver && c.l.waiting > 0
	}
	deadline := time.Now().Add(time.Minute)
	for slept := false; !slept; {
		for !c.l.free() {
			wantValue(t, v, "k", []byte("value"))
		}
		done := make(chan error, 1)
		go func() {
			_, err := c.Source().Resolve(bg, "")
			done <- err
		}()
		for receives := false; !slept && !receives; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the receiver looks at the call again and again")
			}
			slept, receives = state() // it has the turn again if the call came late
		}
		release <- struct{}{}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	wantValue(t, v, "k", []byte("value"))
	l := c.l
	must.Do(t, h.end())
	select {
	case <-l.ended:
	case <-time.After(time.Minute):
		t.Error("the client does not see the end of the server")
	}
}

// A call that receives its own reply returns when its context ends, while the server is
// still at work, and the connection goes on.
func TestTurnCancelled(t *testing.T) {
	was := handlers[wire.OpResolve]
	t.Cleanup(func() { handlers[wire.OpResolve] = was }) // when the server has ended
	came, release := make(chan struct{}), make(chan struct{})
	defer close(release) // or the server would not end after a failure
	handlers[wire.OpResolve] = func(c *conn, ctx context.Context, f *wire.Frame) error {
		came <- struct{}{}
		<-release
		return c.send(f, &wire.Frame{})
	}
	must.Set(t, &restTime, time.Hour) // on a busy machine the receiver would take its turn back before the test looks
	h, c := served(t, nil, nil)
	put(t, h.db, map[string][]byte{"k": []byte("value")})
	v := version(t, c, "")
	for range 3 {
		for !c.l.free() {
			wantValue(t, v, "k", []byte("value"))
		}
		ctx, cancel := context.WithCancel(bg)
		go func() {
			<-came
			cancel()
		}()
		if _, err := c.Source().Resolve(ctx, ""); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		wantValue(t, v, "k", []byte("value"))
		release <- struct{}{}
		wantValue(t, v, "k", []byte("value"))
	}
}

// A request that takes long does not keep others of the connection from being received,
// nor its own cancellation, nor the end of the connection.
func TestSlowHere(t *testing.T) {
	was := handlers[wire.OpResolve]
	t.Cleanup(func() { handlers[wire.OpResolve] = was }) // when the server has ended
	came, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	handlers[wire.OpResolve] = func(c *conn, ctx context.Context, f *wire.Frame) error {
		came <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return ctx.Err()
	}
	_, c := served(t, nil, nil)
	for range 20 {
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		done := make(chan error, 1)
		go func() {
			l, err := c.link(ctx)
			if err == nil {
				_, err = l.call(ctx, &wire.Frame{Op: wire.OpResolve}, true)
			}
			done <- err
		}()
		<-came
		if _, _, err := c.Source().Refs(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		<-ended
	}
	done := make(chan error, 1)
	go func() {
		_, err := c.Source().Resolve(bg, "")
		done <- err
	}()
	<-came
	must.Do(t, c.Close())
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the request goes on after the end of its connection")
	}
	if err := <-done; err == nil {
		t.Error("an answer after the end of the connection")
	}
}

// Requests that are answered here one after the other do not set a timer each, and the
// last of them leaves none.
func TestHereTimer(t *testing.T) {
	passed := 0
	h := here{pass: func() { passed++ }} // the machine may stop this test for a while
	for range 1000 {
		if n := h.enter(); !h.leave(n) {
			passed--
		}
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(slowTime) {
		h.mu.Lock()
		armed, left := h.armed, passed
		h.mu.Unlock()
		if left != 0 {
			t.Fatal("passed on and not")
		}
		if !armed {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the timer goes on")
		}
	}
}
