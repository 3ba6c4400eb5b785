package web

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
)

// Bounds of a value that is read to be served.
const (
	maxPiece  = 8 << 20 // bytes of a long value read at a time
	maxRanges = 64      // a request for more ranges gets the whole value
)

// value answers GET and HEAD of a key.
func (h *handler) value(w http.ResponseWriter, r *http.Request, v *serve.View, p place) error {
	val, err := v.Value(r.Context(), p.key)
	if err != nil {
		return err
	}
	tag, err := etag(r.Context(), val)
	if err != nil {
		return err
	}
	head := w.Header()
	if tag != "" {
		head.Set("ETag", tag)
	}
	head.Set("Content-Type", contentType(p.key))
	return serveValue(w, r, val)
}

// serveValue answers with a value through [http.ServeContent], which handles
// ranges, conditions and HEAD. A read error is returned if no byte was sent.
func serveValue(w http.ResponseWriter, r *http.Request, val kv.Value) error {
	if strings.Count(r.Header.Get("Range"), ",") >= maxRanges {
		r.Header.Del("Range") // a server may ignore it
	}
	out := &late{ResponseWriter: w}
	inOneWrite(r, func() { http.ServeContent(out, r, "", time.Time{}, &content{ctx: r.Context(), v: val}) })
	switch {
	case out.err == nil:
		out.header()
	case !out.sent:
		clear(w.Header())
		return out.err
	default:
		panic(http.ErrAbortHandler) // so that the client notices the missing bytes
	}
	return nil
}

// contentType returns the media type of documents and chunks.
func contentType(key string) string {
	switch name := path.Base(key); {
	case strings.HasSuffix(name, ".json"), name == ".zarray", name == ".zgroup", name == ".zattrs", name == ".zmetadata":
		return "application/json"
	}
	return "application/octet-stream"
}

// etag returns a strong validator of a value, or "" without one.
func etag(ctx context.Context, v kv.Value) (string, error) {
	id, err := serve.ContentID(ctx, v)
	if err != nil || id == (kv.ID{}) {
		return "", err
	}
	return `"` + hex.EncodeToString(id[:]) + `"`, nil
}

// content presents a value to [http.ServeContent].
type content struct {
	ctx context.Context
	v   kv.Value
	at  int64
}

// Seek implements io.Seeker.
func (c *content) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.at
	case io.SeekEnd:
		offset += c.v.Size()
	}
	if offset < 0 {
		return 0, errors.New("seek before the beginning")
	}
	c.at = offset
	return offset, nil
}

// Read implements io.Reader. It is used for requests of several ranges.
func (c *content) Read(p []byte) (int, error) {
	n := min(int64(len(p)), c.v.Size()-c.at)
	if n <= 0 {
		return 0, io.EOF
	}
	err := c.v.View(c.ctx, kv.Span(c.at, n), func(b []byte) error {
		copy(p, b)
		return nil
	})
	if err != nil {
		return 0, err
	}
	c.at += n
	return int(n), nil
}

// writeTo writes n bytes of the value's memory without a copy.
func (c *content) writeTo(w io.Writer, n int64) (done int64, err error) {
	for n > 0 {
		piece := min(n, maxPiece)
		err := c.v.View(c.ctx, kv.Span(c.at, piece), func(b []byte) error {
			_, err := w.Write(b)
			return err
		})
		if err != nil {
			return done, err
		}
		c.at, n, done = c.at+piece, n-piece, done+piece
	}
	return done, nil
}

// late delays the status until the first bytes have been read.
type late struct {
	http.ResponseWriter
	status int
	sent   bool
	err    error
}

// WriteHeader implements [http.ResponseWriter].
func (l *late) WriteHeader(status int) {
	if l.status == 0 {
		l.status = status
	}
}

func (l *late) header() {
	if !l.sent && l.status != 0 {
		l.sent = true
		l.ResponseWriter.WriteHeader(l.status)
	}
}

// Write implements io.Writer.
func (l *late) Write(b []byte) (int, error) {
	l.header()
	return l.ResponseWriter.Write(b)
}

// ReadFrom implements [io.ReaderFrom]: [http.ServeContent] copies with it.
func (l *late) ReadFrom(src io.Reader) (n int64, err error) {
	if part, ok := src.(*io.LimitedReader); ok {
		if c, ok := part.R.(*content); ok {
			n, err = c.writeTo(l, part.N)
			part.N -= n
			l.err = err
			return n, err
		}
	}
	n, err = io.Copy(struct{ io.Writer }{l}, src)
	l.err = err
	return n, err
}
