// Package pace sets a deadline for each piece of an HTTP body. So clients that
// stall do not hold a server's slots, and long values have enough time.
package pace

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

const (
	// stall is the time for one piece in addition to its time at rate.
	stall = 30 * time.Second
	rate  = 32 << 10 // bytes a second
)

// Writer is a response whose pieces have a deadline. It counts the sent bytes.
type Writer struct {
	http.ResponseWriter
	// Status is the status that was sent, 0 before.
	Status int
	// Bytes is the number of bytes of the body.
	Bytes int64

	copies bool
	until  time.Time
}

// NewWriter returns a writer for the response to r.
//
// With HTTP/2, goroutines of net/http may still read the bytes after Write has returned an error.
// The bytes may lie in a mapped file, which is unmapped then, so Write copies them.
func NewWriter(w http.ResponseWriter, r *http.Request) *Writer {
	return &Writer{ResponseWriter: w, copies: r.ProtoMajor > 1}
}

// WriteHeader implements [http.ResponseWriter].
func (w *Writer) WriteHeader(status int) {
	if w.Status == 0 && status >= 200 {
		w.Status = status
		w.extend(0)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (w *Writer) Write(b []byte) (int, error) {
	if w.Status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.extend(len(b))
	if w.copies {
		b = bytes.Clone(b)
	}
	n, err := w.ResponseWriter.Write(b)
	w.Bytes += int64(n)
	return n, err
}

// extend moves the deadline for a piece of n bytes.
func (w *Writer) extend(n int) {
	until := time.Now().Add(stall + time.Duration(n)*time.Second/rate)
	if until.Sub(w.until) > time.Second {
		w.until = until
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(until) // not every connection has one
	}
}

// Unwrap is for [http.ResponseController].
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Body returns the body of a request with a deadline for each piece: if the
// client stalls, the error is os.ErrDeadlineExceeded.
func Body(w http.ResponseWriter, body io.ReadCloser) io.ReadCloser {
	return &reader{ReadCloser: body, c: http.NewResponseController(w)}
}

type reader struct {
	io.ReadCloser
	c *http.ResponseController
}

func (r *reader) Read(p []byte) (int, error) {
	_ = r.c.SetReadDeadline(time.Now().Add(stall)) // not every connection has one
	n, err := r.ReadCloser.Read(p)
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		err = os.ErrDeadlineExceeded
	}
	return n, err
}
