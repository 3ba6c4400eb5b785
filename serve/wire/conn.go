package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Frame is a request or a reply.
type Frame struct {
	ID    uint32
	Op    Op
	Flags Flags
	// The receiver owns Meta and Body.
	Meta, Body []byte
	// Files came with the frame. The receiver closes them.
	Files []*os.File
	// Pass is sent with the frame. The sender keeps it open.
	Pass []Descriptor
}

// Descriptor is an open file, for example an *[os.File].
type Descriptor interface{ Fd() uintptr }

// Close closes the files.
func (f *Frame) Close() {
	for _, file := range f.Files {
		_ = file.Close()
	}
	f.Files = nil
}

// Conn sends and receives frames. Receive is for one goroutine at a time, Send for
// any number.
type Conn struct {
	// Admit, if set, is called by Receive with the header of a frame before memory for
	// its parts is reserved. Receive fails with its error.
	Admit func(h Header) error

	c       net.Conn
	limits  Limits
	sends   Limits
	timeout time.Duration

	buf   []byte // buf[from:to] was read and not yet used
	from  int
	to    int
	oob   []byte
	files []*os.File // received and not yet returned

	raw     syscall.RawConn // nil where Soon is not possible
	lookers int32           // how many goroutines may be in Soon
	eager   eager

	mu    sync.Mutex // of sending
	fresh time.Time  // until when the deadline of sending is late enough
}

const (
	// An idle connection holds only a buffer of that length.
	bufferSize = 8 << 10
	// Frames up to joined are sent in one piece.
	joined = 64 << 10
	// A body up to wholeBody is reserved at once. For longer ones memory grows
	// with the bytes received.
	wholeBody = 16 << 20
	// maxWaiting is how many descriptors may have come before their frame is read.
	maxWaiting = 64
)

// NewConn returns a connection that refuses frames beyond the limits, and fails if
// the other side does not take a frame within timeout, or up to a quarter more; 0 waits
// for ever.
func NewConn(c net.Conn, limits Limits, timeout time.Duration) *Conn {
	limits = limits.withDefaults()
	return &Conn{
		c: c, limits: limits, sends: limits, timeout: timeout, buf: make([]byte, bufferSize), oob: make([]byte, oobSize),
		raw: rawConn(c), lookers: maxLookers(),
	}
}

// LimitSends sets the limits of the other side for sent frames. No Send may run
// meanwhile.
func (c *Conn) LimitSends(l Limits) { c.sends = l.withDefaults() }

// Close ends the connection. Receive and Send fail then.
func (c *Conn) Close() error { return c.c.Close() }

// Release closes received files that were not returned. No Receive may run
// meanwhile.
func (c *Conn) Release() {
	for _, f := range c.files {
		_ = f.Close()
	}
	c.files = nil
}

// Receive returns the next frame. The error is io.EOF if the other side has ended
// the connection between two frames.
func (c *Conn) Receive() (*Frame, error) {
	if err := c.need(headerSize); err != nil {
		return nil, err
	}
	h, err := parseHeader(c.buf[c.from:c.to], c.limits)
	if err != nil {
		return nil, err
	}
	c.from += headerSize
	f := &Frame{ID: h.ID, Op: h.Op, Flags: h.Flags}
	if int(h.Files) > len(c.files) {
		return nil, fmt.Errorf("%w: %v came with %d descriptors, where %d were announced", ErrProtocol, h.Op, len(c.files), h.Files)
	}
	if h.Files > 0 {
		f.Files = append(f.Files, c.files[:h.Files]...)
		c.files = append(c.files[:0], c.files[h.Files:]...)
	}
	if c.Admit != nil {
		err = c.Admit(h)
	}
	if err == nil {
		f.Meta, err = c.next(int(h.Meta))
	}
	if err == nil {
		f.Body, err = c.next(int(h.Body))
	}
	if err != nil {
		f.Close()
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return f, nil
}

// need fills the buffer until it has n bytes, at most its length.
func (c *Conn) need(n int) error {
	if c.from == c.to {
		c.from, c.to = 0, 0
	}
	if len(c.buf)-c.from < n {
		c.to = copy(c.buf, c.buf[c.from:c.to])
		c.from = 0
	}
	for c.to-c.from < n {
		got, err := c.read(c.buf[c.to:])
		c.to += got
		if err != nil && c.to-c.from < n {
			if err == io.EOF && c.to > c.from {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// next returns a copy of the next n bytes, nil if n is 0.
func (c *Conn) next(n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	b := make([]byte, min(n, wholeBody))
	have := copy(b, c.buf[c.from:c.to])
	c.from += have
	for {
		for have < len(b) {
			got, err := c.read(b[have:])
			if have += got; err != nil && have < len(b) {
				return nil, err
			}
		}
		if have == n {
			return b, nil
		}
		more := make([]byte, min(n, 2*len(b)))
		copy(more, b)
		b = more
	}
}

// read reads some bytes, and notes the files that come with them.
func (c *Conn) read(p []byte) (int, error) {
	n, files, err := receive(c.c, p, c.oob)
	c.files = append(c.files, files...)
	if len(c.files) > maxWaiting {
		return 0, fmt.Errorf("%w: %d descriptors came without a frame", ErrProtocol, len(c.files))
	}
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// ErrNoFiles means that descriptors cannot be sent on this connection.
var ErrNoFiles = fmt.Errorf("wire: no descriptors on this connection: %w", errors.ErrUnsupported)

// Send sends a frame. Parts beyond the limits are an error before anything is sent.
// After any other error the connection cannot be used.
func (c *Conn) Send(f *Frame) error {
	switch {
	case uint64(len(f.Meta)) > uint64(c.sends.Meta) || uint64(len(f.Body)) > uint64(c.sends.Body):
		return &TooLongError{Op: f.Op, Meta: len(f.Meta), Body: len(f.Body), Limits: c.sends}
	case len(f.Pass) > 0 && !canSendFiles(c.c):
		return ErrNoFiles
	}
	h := Header{ID: f.ID, Op: f.Op, Files: uint8(len(f.Pass)), Flags: f.Flags, Meta: uint32(len(f.Meta)), Body: uint32(len(f.Body))}
	buf, _ := buffers.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	head, body := append(h.Append((*buf)[:0]), f.Meta...), f.Body
	if len(head)+len(body) <= joined {
		head, body = append(head, body...), nil
	}
	*buf = head
	err := c.sendParts(f.Pass, head, body)
	if cap(*buf) <= 2*joined {
		buffers.Put(buf)
	}
	return err
}

// buffers pools the memory in which frames are assembled.
var buffers sync.Pool

func (c *Conn) sendParts(files []Descriptor, head, body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.timeout > 0 && now.After(c.fresh) {
		c.fresh = now.Add(c.timeout / 4) // not for each frame: it costs more than a short one
		if err := c.c.SetWriteDeadline(c.fresh.Add(c.timeout)); err != nil {
			return err
		}
	}
	return c.write(files, head, body)
}

func (c *Conn) write(files []Descriptor, head, body []byte) error {
	if len(files) > 0 {
		n, err := sendFiles(c.c, head, files)
		if err != nil {
			return err
		}
		if head = head[n:]; len(head) == 0 {
			head, body = body, nil
		}
	}
	if len(body) > 0 {
		parts := net.Buffers{head, body}
		_, err := parts.WriteTo(c.c)
		return err
	}
	if len(head) == 0 {
		return nil
	}
	_, err := c.c.Write(head)
	return err
}

// TooLongError means that a frame exceeds the limits and was not sent. The
// connection stays usable.
type TooLongError struct {
	Op         Op
	Meta, Body int
	Limits     Limits
}

// Error implements error.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("wire: %v with a meta of %d and a body of %d bytes, where %d and %d are allowed", e.Op, e.Meta, e.Body, e.Limits.Meta, e.Limits.Body)
}
