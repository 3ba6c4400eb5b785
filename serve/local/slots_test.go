package local

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// Long values go through memory, from several goroutines at a time, and where memory is
// refused through the socket. Without a session a client keeps no such memory.
func TestLongValues(t *testing.T) {
	for _, files := range []bool{true, false} {
		t.Run(fmt.Sprintf("files %v", files), func(t *testing.T) {
			h, c := served(t, nil, &DialOptions{NoFiles: !files})
			s := must.Get(beginOn(c))(t)
			sizes := []int{slotsFrom - 1, slotsFrom, slotStep, slotStep + 1, 5 << 20, 100}
			var wg sync.WaitGroup
			for w := range 4 {
				wg.Go(func() {
					for i, n := range sizes {
						must.Do(t, s.Set(bg, fmt.Sprintf("v/%d/%d", w, i), random(uint64(w*10+i), n)))
					}
				})
			}
			wg.Wait()
			if used := c.slots.n > 0; used != (files && canShare) {
				t.Errorf("%d slots", c.slots.n)
			}
			b := must.Get(s.Bulk(bg, "bulk", true))(t)
			for i, n := range sizes {
				must.Do(t, b.Set(bg, fmt.Sprint(i), random(uint64(100+i), n)))
			}
			must.Do(t, b.Finish(bg))
			must.Get(s.Commit(bg, txn.CommitOptions{}))(t)
			v := must.Get(h.db.At(bg, "main"))(t)
			defer v.Close()
			for i, n := range sizes {
				for w := range 4 {
					wantValue(t, v, fmt.Sprintf("v/%d/%d", w, i), random(uint64(w*10+i), n))
				}
				wantValue(t, v, fmt.Sprint("bulk/", i), random(uint64(100+i), n))
			}
			if c.slots.n != 0 || c.slots.bytes != 0 || len(c.slots.free) != 0 {
				t.Errorf("after the session: %d slots of %d bytes", c.slots.n, c.slots.bytes)
			}
		})
	}
}

// The memory of a request that was given up is not used by another one: what the server
// stores has the bytes that were passed.
func TestSlotOfCanceledRequest(t *testing.T) {
	if !canShare {
		t.Skip("memory cannot be shared")
	}
	began, wait := make(chan struct{}), make(chan struct{})
	was := handlers[wire.OpSet]
	t.Cleanup(func() { handlers[wire.OpSet] = was })
	handlers[wire.OpSet] = func(c *conn, ctx context.Context, f *wire.Frame) error {
		if f.Body[0] == 1 {
			close(began)
			<-wait
			ctx = context.WithoutCancel(ctx)
		}
		return was(c, ctx, f)
	}
	h, c := served(t, nil, nil)
	s := must.Get(beginOn(c))(t)
	value := func(first byte) []byte {
		b := random(uint64(first), 300_000)
		b[0] = first
		return b
	}
	ctx, cancel := context.WithCancel(bg)
	go func() {
		<-began
		cancel()
	}()
	if err := s.Set(ctx, "a", value(1)); !errors.Is(err, context.Canceled) {
		t.Fatalf("a request that was given up: %v", err)
	}
	must.Do(t, s.Set(bg, "b", value(2)))
	close(wait)
	for i := range 5 {
		must.Do(t, s.Set(bg, fmt.Sprint("c", i), value(byte(3+i))))
	}
	must.Get(s.Commit(bg, txn.CommitOptions{}))(t)
	v := must.Get(h.db.At(bg, "main"))(t)
	defer v.Close()
	wantValue(t, v, "b", value(2))
	if _, err := v.Value(bg, "a"); err == nil {
		wantValue(t, v, "a", value(1))
	}
}

// A body lies within a block that the server knows.
func TestBodyInBlockRefuses(t *testing.T) {
	if !canShare {
		t.Skip("memory cannot be shared")
	}
	_, c := served(t, nil, nil)
	s := must.Get(beginOn(c))(t)
	defer s.Abort()
	must.Do(t, s.Set(bg, "k", random(1, slotsFrom)))
	tx := s.Versions().Tx().(*Session)
	in := wire.Set{View: tx.handle, Key: "k"}
	for _, meta := range [][]byte{
		nil, {1, 0, 0},
		wire.AppendInBlock(nil, 99, 1, in.Append(nil)),
		wire.AppendInBlock(nil, 1, slotStep+1, in.Append(nil)),
		wire.AppendInBlock(nil, 1, 1<<32-1, in.Append(nil)),
	} {
		f, err := tx.l.call(bg, &wire.Frame{Op: wire.OpSet, Flags: wire.FlagBlock, Meta: meta}, false)
		if err == nil {
			f.Close()
			t.Errorf("%x was taken", meta)
		}
	}
	wantValue(t, s, "k", random(1, slotsFrom))
}

// A forget that comes right behind the request that passes the block is not lost: otherwise
// the server would keep the memory of each request that was given up.
func TestForgetBehindRequest(t *testing.T) {
	if !canShare {
		t.Skip("memory cannot be shared")
	}
	began, wait := make(chan *conn, 1), make(chan struct{})
	was := handlers[wire.OpSet]
	t.Cleanup(func() { handlers[wire.OpSet] = was })
	handlers[wire.OpSet] = func(c *conn, ctx context.Context, f *wire.Frame) error {
		if f.Body[0] == 1 {
			began <- c
			<-wait
		}
		return was(c, ctx, f)
	}
	_, c := served(t, nil, nil)
	s := must.Get(beginOn(c))(t)
	defer s.Abort()
	tx := s.Versions().Tx().(*Session)
	var wg sync.WaitGroup
	wg.Go(func() { must.Do(t, s.Set(bg, "a", []byte{1})) }) // so that the others run beside it
	server := <-began
	const first = 1000
	for i := range uint32(20) {
		f, b, err := newSealed("test", slotStep)
		must.Do(t, err)
		in := wire.Set{View: tx.handle, Key: "k"}
		request := wire.Frame{ID: 1<<30 + i, Op: wire.OpSet, Flags: wire.FlagBlock, Meta: wire.AppendInBlock(nil, first+i, 8, in.Append(nil)), Pass: []wire.Descriptor{f}}
		must.Do(t, tx.l.w.Send(&request))
		must.Do(t, tx.l.w.Send(&wire.Frame{Op: wire.OpForget, Meta: fmt.Appendf(nil, `{"block":%d}`, first+i)}))
		_, _ = f.Close(), mmap.Unmap(b)
	}
	close(wait)
	wg.Wait()
	must.Do(t, s.Set(bg, "b", []byte{2}))
	server.blocks.mu.Lock()
	defer server.blocks.mu.Unlock()
	for number := range server.blocks.known {
		if number >= first && number < first+20 {
			t.Errorf("block %d is kept", number)
		}
	}
}

// A block that the server did not take is not used by the next request.
func TestSlotRefused(t *testing.T) {
	if !canShare {
		t.Skip("memory cannot be shared")
	}
	_, c := served(t, nil, nil)
	s := must.Get(beginOn(c))(t)
	tx := s.Versions().Tx().(*Session)
	f, b, err := newSealed("test", slotStep) // has the number of the first slot
	must.Do(t, err)
	in := wire.Set{View: tx.handle, Key: "k"}
	got, err := tx.l.call(bg, &wire.Frame{Op: wire.OpSet, Flags: wire.FlagBlock, Meta: wire.AppendInBlock(nil, 1, 8, in.Append(nil)), Pass: []wire.Descriptor{f}}, false)
	must.Do(t, err)
	got.Close()
	_, _ = f.Close(), mmap.Unmap(b)
	if err := s.Set(bg, "a", random(1, slotsFrom)); !errors.Is(err, ErrRequest) {
		t.Errorf("a block with a number that is taken: %v", err)
	}
	must.Do(t, s.Set(bg, "a", random(2, slotsFrom)))
	wantValue(t, s, "a", random(2, slotsFrom))
	must.Do(t, c.Close())
	if c.slots.n != 0 || c.slots.bytes != 0 {
		t.Errorf("after the client ended: %d slots of %d bytes", c.slots.n, c.slots.bytes)
	}
}
