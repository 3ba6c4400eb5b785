package cli

import (
	"context"
	"io"
	"sync"
	"time"
)

// A read of standard input, or a write of standard output, may block without
// limit. blockingReader and blockingWriter return when the command is cancelled,
// so that it ends and closes the database. The blocked call goes on in the
// background, with a buffer of its own.

// blocking is one of both directions.
type blocking struct {
	ctx  context.Context
	buf  []byte // nil before it is used
	left bool   // an abandoned call still uses buf
}

// blockingSize is the number of bytes read or written at a time.
const blockingSize = 64 << 10

// patienceOfEnd is the time for a write after the command is cancelled, so that
// its last output appears.
const patienceOfEnd = time.Second

// run calls fn, and returns without its result if it has not ended grace after
// the end of the context.
func (b *blocking) run(grace time.Duration, fn func() (int, error)) (int, error) {
	if b.left {
		return 0, b.ctx.Err()
	}
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := fn()
		done <- result{n, err}
	}()
	select {
	case r := <-done:
		return r.n, r.err
	case <-b.ctx.Done():
	}
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case r := <-done:
		return r.n, r.err
	case <-t.C:
		b.left = true
		return 0, b.ctx.Err()
	}
}

// part returns n bytes of buf, or as many as there are.
func (b *blocking) part(n int) []byte {
	if b.buf == nil {
		b.buf = make([]byte, blockingSize)
	}
	return b.buf[:min(n, len(b.buf))]
}

type blockingReader struct {
	blocking
	r io.Reader
}

func (b *blockingReader) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	part := b.part(len(p))
	n, err := b.run(0, func() (int, error) { return b.r.Read(part) })
	return copy(p, part[:n]), err
}

// blockingWriter buffers its output, and writes it when the buffer is full,
// after collectFor, or on flush. A later call returns the error of a write. It
// is safe for concurrent use.
type blockingWriter struct {
	mu sync.Mutex
	blocking
	w     io.Writer
	n     int // bytes of buf that are not yet written
	timer *time.Timer
	armed bool // the timer will flush
	err   error
}

// collectFor is the longest time that a line stays in the buffer.
const collectFor = 2 * time.Millisecond

func (b *blockingWriter) Write(p []byte) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.err == nil && n < len(p) {
		m := copy(b.part(blockingSize)[b.n:], p[n:])
		n += m
		if b.n += m; b.n == blockingSize {
			b.flushLocked()
		}
	}
	switch {
	case b.err != nil || b.n == 0 || b.armed:
	case b.timer == nil:
		b.timer = time.AfterFunc(collectFor, func() { _ = b.flush() })
		b.armed = true
	default:
		b.timer.Reset(collectFor)
		b.armed = true
	}
	return n, b.err
}

// flush writes the buffer.
func (b *blockingWriter) flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flushLocked()
	return b.err
}

func (b *blockingWriter) flushLocked() {
	b.armed = false
	if b.n > 0 && b.err == nil {
		part := b.buf[:b.n]
		_, b.err = b.run(patienceOfEnd, func() (int, error) { return b.w.Write(part) })
		b.n = 0
	}
}
