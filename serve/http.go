package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/hostname"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

// Code that all transports over HTTP share.

// Content reads a part of a value: an [io.ReadSeeker] for [net/http.ServeContent], which
// copies nothing on the way of CopyN and WriteTo. Not safe for concurrent use. Errors
// come from the value.
type Content struct {
	ctx     context.Context
	v       kv.Value
	at, end int64
}

// NewContent returns a reader of size bytes of v that begin at an offset. ctx ends its
// reads.
func NewContent(ctx context.Context, v kv.Value, at, size int64) *Content {
	return &Content{ctx: ctx, v: v, at: at, end: at + size}
}

// Seek implements io.Seeker, by offsets in the value.
func (c *Content) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.at
	case io.SeekEnd:
		offset += c.end
	}
	if offset < 0 {
		return 0, errors.New("seek before the beginning")
	}
	c.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (c *Content) Read(p []byte) (int, error) {
	n := min(int64(len(p)), c.end-c.at)
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

// maxPiece is how many bytes of a long value are read at a time.
const maxPiece = 8 << 20

// CopyN writes the next n bytes, from the value's memory without a copy.
func (c *Content) CopyN(w io.Writer, n int64) (done int64, err error) {
	for n = min(n, c.end-c.at); n > 0; {
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

// WriteTo implements [io.WriterTo], as CopyN.
func (c *Content) WriteTo(w io.Writer) (int64, error) { return c.CopyN(w, c.end-c.at) }

// Unavailable returns the message for clients if err says that a database cannot be used at
// present, else "". The message names the process that has the database open, and a way on. It
// names no file of the server.
func Unavailable(err error) string {
	var held *engine.LockedError
	switch {
	case errors.Is(err, txn.ErrLost) || errors.Is(err, ErrNoDatabase):
		return ""
	case errors.As(err, &held) && held.Holder.PID != 0:
		text := fmt.Sprintf("the database is in use by %s (process %d on %s), which ", held.Holder.Program, held.Holder.PID, held.Holder.Host)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return text + fmt.Sprintf("does not answer; if it was stopped, kill -CONT %d lets it go on", held.Holder.PID)
		}
		return text + "keeps others out; try again when it has ended"
	case errors.Is(err, ErrUnavailable) || errors.As(err, &held) || errors.Is(err, engine.ErrFailed):
		return "the database cannot be used at present; try again. The log of the server has the reason, and /-/ready the state"
	}
	return ""
}

// ContentType returns the media type of documents and chunks.
func ContentType(key string) string {
	switch name := path.Base(key); {
	case strings.HasSuffix(name, ".json"), name == ".zarray", name == ".zgroup", name == ".zattrs", name == ".zmetadata":
		return "application/json"
	}
	return "application/octet-stream"
}

// MaxKey bounds the length of the keys of requests, in bytes: four times the limit of S3.
const MaxKey = 4096

// InPath reports whether the names of a key can stand in the path of a URL. Clients remove
// an empty name, "." and "..".
func InPath(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return name == "" || name == "." || name == ".." })
}

// EscapeSegment returns a name as one segment of a path. It escapes everything but letters,
// digits and "-_.~": clients that read listings take some of the other characters for
// syntax, of URLs, HTML or patterns, and signatures of S3 need this form.
func EscapeSegment(name string) string { return strings.ReplaceAll(url.QueryEscape(name), "+", "%20") }

// EscapePath returns a key as part of a path, as [EscapeSegment] with slashes as they are.
func EscapePath(key string) string { return strings.ReplaceAll(EscapeSegment(key), "%2F", "/") }

// Loopback reports whether browsers take a host, with or without a port, for this machine.
// Browsers do not look up names that end with ".localhost"; other programs may do so.
func Loopback(host string) bool {
	return hostname.IsLoopback(host) || strings.HasSuffix(hostname.Of(host), ".localhost")
}

// Clip shortens a text of a client for a message.
func Clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}
