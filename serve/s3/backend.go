package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/rclone/gofakes3"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/txn"
)

// backend implements the objects of a handler. The context of each call has the
// principal.
type backend struct{ h *Handler }

var (
	_ gofakes3.Backend          = backend{}
	_ gofakes3.MultipartBackend = backend{}
)

// fail converts an error to one of S3.
func (b backend) fail(bucket, key string, err error) error {
	var s3err gofakes3.Error
	var changed *engine.ChangedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &s3err):
		return s3err // unwrapped, because gofakes3 does not look inside of other errors
	case errors.Is(err, serve.ErrNoDatabase):
		return gofakes3.BucketNotFound(bucket)
	case errors.Is(err, kv.ErrNotFound), errors.Is(err, txn.ErrNoRef):
		return gofakes3.KeyNotFound(key)
	case errors.As(err, &changed), errors.Is(err, txn.ErrConflict):
		return gofakes3.ErrPreconditionFailed
	case errors.Is(err, serve.ErrDenied), errors.Is(err, errWhere):
		return gofakes3.ErrorMessage(gofakes3.ErrMethodNotAllowed, err.Error())
	case errors.Is(err, kv.ErrInvalidKey), errors.Is(err, errKey):
		return gofakes3.ErrorMessage(gofakes3.ErrInvalidURI, err.Error())
	case errors.Is(err, kv.ErrTooLarge):
		return gofakes3.ErrorMessage(gofakes3.ErrEntityTooLarge, err.Error())
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &sentError{}):
		return gofakes3.ErrIncompleteBody
	case errors.Is(err, errFull), errors.Is(err, os.ErrClosed), errors.Is(err, txn.ErrClosed):
		return gofakes3.ErrorMessage(gofakes3.ErrSlowDown, "the server is full or about to end; try again")
	}
	b.h.o.Log.Error("request failed", "database", bucket, "key", key, "error", err.Error())
	return gofakes3.ErrInternal
}

var (
	errKey   = errors.New("bad key")
	errWhere = errors.New("objects are written below ~SESSION/")
)

// split splits an object's name into version or session and key.
func split(object string) (rev, key string, err error) {
	rev, key, _ = strings.Cut(object, "/")
	if rev, err = url.PathUnescape(rev); err != nil {
		return "", "", fmt.Errorf("%w: %w", errKey, err)
	}
	return rev, key, nil
}

// view opens the version or session that an object lies in.
func (b backend) view(ctx context.Context, bucket, object string) (*serve.View, string, error) {
	rev, key, err := split(object)
	if err != nil {
		return nil, "", err
	}
	if rev == "" {
		return nil, "", kv.ErrNotFound
	}
	v, err := b.h.t.View(ctx, who(ctx), bucket, rev)
	return v, key, err
}

// ListBuckets implements [gofakes3.Backend].
func (b backend) ListBuckets(context.Context) ([]gofakes3.BucketInfo, error) {
	var out []gofakes3.BucketInfo
	for _, name := range b.h.t.Names() {
		out = append(out, gofakes3.BucketInfo{Name: name, CreationDate: gofakes3.NewContentTime(b.h.started)})
	}
	return out, nil
}

// BucketExists implements [gofakes3.Backend].
func (b backend) BucketExists(_ context.Context, name string) (bool, error) {
	_, err := b.h.t.Database(name)
	switch {
	case errors.Is(err, serve.ErrNoDatabase):
		return false, nil
	case errors.Is(err, errors.ErrUnsupported):
		return true, nil // a target that is no database
	}
	return err == nil, b.fail(name, "", err)
}

// CreateBucket implements [gofakes3.Backend] and refuses: only zarrdb makes
// databases.
func (backend) CreateBucket(_ context.Context, name string) error {
	return gofakes3.ResourceError(gofakes3.ErrBucketAlreadyExists, name)
}

// DeleteBucket implements [gofakes3.Backend].
func (backend) DeleteBucket(_ context.Context, name string) error {
	return gofakes3.ResourceError(gofakes3.ErrBucketNotEmpty, name)
}

// object finds a value and describes it.
func (b backend) object(ctx context.Context, bucket, name string) (*gofakes3.Object, kv.Value, *serve.View, error) {
	v, key, err := b.view(ctx, bucket, name)
	if err != nil {
		return nil, nil, nil, err
	}
	val, err := v.Value(ctx, key)
	var id kv.ID
	if err == nil {
		id, err = serve.ContentID(ctx, val)
	}
	if err != nil {
		v.Release()
		return nil, nil, nil, err
	}
	kind := "application/octet-stream"
	if last := key[strings.LastIndexByte(key, '/')+1:]; strings.HasSuffix(last, ".json") || strings.HasPrefix(last, ".z") {
		kind = "application/json"
	}
	meta := map[string]string{"Last-Modified": b.modified(v).Format(http.TimeFormat), "Content-Type": kind}
	return &gofakes3.Object{Name: name, Metadata: meta, Size: val.Size(), Hash: id[:]}, val, v, nil
}

// modified returns the time of a version's commit.
func (b backend) modified(v *serve.View) time.Time {
	if v.Commit != nil {
		return v.Commit.Time.UTC()
	}
	return time.Now().UTC() // it can change at any time
}

// HeadObject implements [gofakes3.Backend].
func (b backend) HeadObject(ctx context.Context, bucket, name string) (*gofakes3.Object, error) {
	o, _, v, err := b.object(ctx, bucket, name)
	if err != nil {
		return nil, b.fail(bucket, name, err)
	}
	v.Release()
	o.Contents = http.NoBody
	return o, nil
}

// GetObject implements [gofakes3.Backend].
func (b backend) GetObject(ctx context.Context, bucket, name string, part *gofakes3.ObjectRangeRequest) (*gofakes3.Object, error) {
	o, val, v, err := b.object(ctx, bucket, name)
	if err != nil {
		return nil, b.fail(bucket, name, err)
	}
	body := &contents{ctx: ctx, v: val, left: o.Size, release: v.Release}
	if part != nil {
		clamped := *part
		if clamped.FromEnd && clamped.End > o.Size {
			clamped.End = o.Size
		}
		if !clamped.FromEnd && clamped.End >= o.Size {
			clamped.End = o.Size - 1 // start plus length could overflow
		}
		if o.Range, err = clamped.Range(o.Size); err != nil {
			v.Release()
			return nil, err
		}
		body.at, body.left = o.Range.Start, o.Range.Length
	}
	o.Contents = body
	return o, nil
}

// contents is a part of a value.
type contents struct {
	ctx      context.Context
	v        kv.Value
	at, left int64
	release  func()
}

// piece is how much is read at a time.
const piece = 8 << 20

// WriteTo implements [io.WriterTo]. It writes the value's memory without a copy.
func (c *contents) WriteTo(w io.Writer) (done int64, err error) {
	for c.left > 0 {
		n := min(c.left, piece)
		err := c.v.View(c.ctx, kv.Span(c.at, n), func(b []byte) error {
			_, err := w.Write(b)
			return err
		})
		if err != nil {
			return done, err
		}
		c.at, c.left, done = c.at+n, c.left-n, done+n
	}
	return done, nil
}

// Read implements io.Reader.
func (c *contents) Read(p []byte) (int, error) {
	n := min(int64(len(p)), c.left)
	if n == 0 {
		return 0, io.EOF
	}
	err := c.v.View(c.ctx, kv.Span(c.at, n), func(b []byte) error {
		copy(p, b)
		return nil
	})
	if err != nil {
		return 0, err
	}
	c.at, c.left = c.at+n, c.left-n
	return int(n), nil
}

// Close implements io.Closer.
func (c *contents) Close() error {
	c.release()
	return nil
}
