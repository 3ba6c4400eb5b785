package web

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
)

const maxRanges = 64 // a request for more gets the whole value

// value answers GET and HEAD of a key.
func (h *handler) value(w http.ResponseWriter, r *http.Request, v *serve.View, p place) error {
	val, err := v.Value(r.Context(), p.key)
	if errors.Is(err, kv.ErrNotFound) {
		if dir, dirErr := kv.Any(r.Context(), v, p.key+"/"); dir && dirErr == nil {
			return toDirectory(w, r)
		}
	}
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
	head.Set("Content-Type", serve.ContentType(p.key))
	return serveValue(w, r, val)
}

// serveValue answers with a value through [http.ServeContent], which handles
// ranges, conditions and HEAD. A read error is returned if no byte was sent.
func serveValue(w http.ResponseWriter, r *http.Request, val kv.Value) error {
	unit, _, _ := strings.Cut(r.Header.Get("Range"), "=")
	if strings.Count(r.Header.Get("Range"), ",") >= maxRanges || !strings.EqualFold(strings.TrimSpace(unit), "bytes") {
		r.Header.Del("Range") // a server may ignore it, and ignores units that it does not know (RFC 9110, 14.2)
	}
	out := &late{ResponseWriter: w}
	inOneWrite(r, func() { http.ServeContent(out, r, "", time.Time{}, serve.NewContent(r.Context(), val, 0, val.Size())) })
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

// etag returns a strong validator of a value, or "" without one.
func etag(ctx context.Context, v kv.Value) (string, error) {
	id, err := serve.ContentID(ctx, v)
	if err != nil || id == (kv.ID{}) {
		return "", err
	}
	return `"` + hex.EncodeToString(id[:]) + `"`, nil
}

// late delays the status until the first bytes have been read.
type late struct {
	http.ResponseWriter
	status int
	sent   bool
	err    error
}

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

func (l *late) Write(b []byte) (int, error) {
	l.header()
	return l.ResponseWriter.Write(b)
}

// ReadFrom implements [io.ReaderFrom]: [http.ServeContent] copies with it.
func (l *late) ReadFrom(src io.Reader) (n int64, err error) {
	if part, ok := src.(*io.LimitedReader); ok {
		if c, ok := part.R.(*serve.Content); ok {
			n, err = c.CopyN(l, part.N)
			part.N -= n
			l.err = err
			return n, err
		}
	}
	n, err = io.Copy(struct{ io.Writer }{l}, src)
	l.err = err
	return n, err
}
