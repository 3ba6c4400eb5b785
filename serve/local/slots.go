package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	membudget "github.com/zarrdb/zarrdb/internal/budget"
	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// Long values that a client writes go through memory that both processes have mapped, not
// through the socket:
//
//	value ─copy─▶ slot ── set, block ──▶ the server hashes it, and writes it to the pack
//
// A slot is a block of the server (see blocks.go). It is used by one request at a time, and
// is free again when the server has answered. A slot whose request got no answer is never
// used again: the server may still read it.

const (
	slotsFrom   = 16 << 10 // bytes of a value; shorter ones go through the socket
	slotStep    = 1 << 20  // a slot has a multiple of it
	maxSlots    = 16
	maxSlotsMem = 256 << 20
)

// slots are the slots of a client.
type slots struct {
	mu       sync.Mutex
	free     []*slot
	n        int
	bytes    int
	last     uint32 // number
	sessions int    // that are open; without one no slot is kept
}

type slot struct {
	number uint32
	file   *os.File
	b      []byte
	l      *link // that knows it
}

// open counts a session, or with -1 its end.
func (s *slots) open(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions += n; s.sessions <= 0 {
		s.dropFree()
	}
}

// close gives up all slots when the client ends, whose sessions may be open.
func (s *slots) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions = 0
	s.dropFree()
}

// dropFree gives up the slots that no request uses. The caller holds mu.
func (s *slots) dropFree() {
	for _, k := range s.free {
		s.drop(k)
	}
	s.free = nil
}

// take returns a slot for n bytes, or nil if the slots have no room for it.
func (s *slots) take(n int) *slot {
	size := (n + slotStep - 1) / slotStep * slotStep
	s.mu.Lock()
	defer s.mu.Unlock()
	best := -1
	for i, k := range s.free {
		if len(k.b) >= n && (best < 0 || len(k.b) < len(s.free[best].b)) {
			best = i
		}
	}
	if best >= 0 {
		k := s.free[best]
		s.free = append(s.free[:best], s.free[best+1:]...)
		return k
	}
	limit := int(min(maxSlotsMem, membudget.Chunks.Bytes()))
	for len(s.free) > 0 && (s.n == maxSlots || s.bytes+size > limit) { // they are too short
		s.drop(s.free[0])
		s.free = s.free[1:]
	}
	if s.n == maxSlots || s.bytes+size > limit {
		return nil
	}
	f, b, err := newSealed("zarrdb-slot", size)
	if err != nil {
		return nil
	}
	s.last++
	s.n, s.bytes = s.n+1, s.bytes+size
	return &slot{number: s.last, file: f, b: b}
}

// give takes a slot back. It is used again if the server has answered.
func (s *slots) give(k *slot, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answered && s.sessions > 0 {
		s.free = append(s.free, k)
		return
	}
	s.drop(k)
}

// drop gives up a slot. The caller holds mu.
func (s *slots) drop(k *slot) {
	s.n, s.bytes = s.n-1, s.bytes-len(k.b)
	_, _ = k.file.Close(), mmap.Unmap(k.b)
	if k.l == nil {
		return
	}
	go func(l *link) { // the connection may be slow
		if meta, err := json.Marshal(wire.Forget{Block: k.number}); err == nil {
			_ = l.w.Send(&wire.Frame{Op: wire.OpForget, Meta: meta}) // if it fails the connection ends
		}
	}(k.l)
}

// put is call for a request whose body is a value.
func (l *link) put(ctx context.Context, f *wire.Frame) (*wire.Frame, error) {
	c := l.client
	mmap.Touch(f.Body) // before anything waits for the answer
	if len(f.Body) < slotsFrom || l.other || c.o.NoFiles || !slices.Contains(l.hello.Capabilities, wire.CapBodies) {
		return l.call(ctx, f, false)
	}
	k := c.slots.take(len(f.Body))
	if k == nil {
		return l.call(ctx, f, false)
	}
	copy(k.b, f.Body)
	in := wire.Frame{Op: f.Op, Flags: wire.FlagBlock, Meta: wire.AppendInBlock(nil, k.number, uint32(len(f.Body)), f.Meta)}
	if k.l != l {
		k.l, in.Pass = l, []wire.Descriptor{k.file}
	}
	got, err := l.call(ctx, &in, false)
	refused := errors.Is(err, errors.ErrUnsupported) || errors.Is(err, ErrLimit)
	// After an error the server may not know a block that was passed with the request.
	c.slots.give(k, err == nil || in.Pass == nil && ctx.Err() == nil && !errors.Is(err, ErrGone) && !refused)
	if refused {
		return l.call(ctx, f, false)
	}
	return got, err
}

// request is a frame with its body, which may lie in a block that is in use until give.
type request struct {
	f   *wire.Frame
	k   *block
	err error
}

// inBlock finds the body of a request. If memory cannot be mapped, the error is an
// ErrUnsupported, and the client sends the body.
func (c *conn) inBlock(f *wire.Frame) request {
	if f.Flags&wire.FlagBlock == 0 {
		return request{f: f}
	}
	number, n, meta, err := wire.ParseInBlock(f.Meta)
	if err != nil {
		return request{err: err}
	}
	from, err := memory(f)
	if err != nil {
		return request{err: err}
	}
	if !c.who.Admin { // another user could change the bytes after they were hashed
		return request{err: errors.ErrUnsupported}
	}
	k, err := c.blocks.use(number, from)
	if err != nil {
		if from != nil && !errors.Is(err, ErrRequest) && !errors.Is(err, ErrLimit) {
			err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
		}
		return request{err: err}
	}
	b, err := k.span(0, int64(n))
	if err != nil {
		c.blocks.give(k)
		return request{err: err}
	}
	return request{f: &wire.Frame{ID: f.ID, Op: f.Op, Meta: meta, Body: b}, k: k}
}

// memory is the file that a client passed for a block, nil if it passed none.
func memory(f *wire.Frame) (*os.File, error) {
	switch len(f.Files) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, fmt.Errorf("%w: %d descriptors where one or none is expected", ErrRequest, len(f.Files))
	}
	fi, err := f.Files[0].Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%w: a block is memory, not %v", ErrRequest, fi.Mode().Type())
	}
	return f.Files[0], err
}
