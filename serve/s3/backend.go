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

func (b backend) ListBuckets(context.Context) ([]gofakes3.BucketInfo, error) {
	var out []gofakes3.BucketInfo
	for _, name := range b.h.t.Names() {
		out = append(out, gofakes3.BucketInfo{Name: name, CreationDate: gofakes3.NewContentTime(b.h.started)})
	}
	return out, nil
}

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
	var at time.Time
	if at, err = b.modified(ctx, v, key); err != nil {
		v.Release()
		return nil, nil, nil, err
	}
	meta := map[string]string{"Last-Modified": at.Format(http.TimeFormat), "Content-Type": serve.ContentType(key)}
	return &gofakes3.Object{Name: name, Metadata: meta, Size: val.Size(), Hash: id[:]}, val, v, nil
}

// modified returns the time of an object.
func (backend) modified(ctx context.Context, v *serve.View, key string) (time.Time, error) {
	at, err := v.Modified(ctx, key)
	if at.IsZero() {
		at = time.Now() // a target can change at any time
	}
	return at.UTC(), err
}

// failRead is fail for an object that is read. The answer says why the file of a linked
// object cannot be read.
func (b backend) failRead(ctx context.Context, bucket, key string, err error) error {
	if _, _, _, ok := linked(err); !ok {
		return b.fail(bucket, key, err)
	}
	return b.unread(ctx, bucket, key, err)
}

// unread notes an error of reading the bytes of an object. Errors of sending are left out.
func (b backend) unread(ctx context.Context, bucket, key string, err error) error {
	if w, ok := ctx.Value(answerKey{}).(*noOrigin); ok && !w.lost {
		b.h.o.Log.ErrorContext(ctx, "request failed", "database", bucket, "key", key, "error", err.Error())
		w.failed = err
	}
	return gofakes3.ErrInternal
}

func (b backend) HeadObject(ctx context.Context, bucket, name string) (*gofakes3.Object, error) {
	o, _, v, err := b.object(ctx, bucket, name)
	if err != nil {
		return nil, b.failRead(ctx, bucket, name, err)
	}
	v.Release()
	o.Contents = http.NoBody
	return o, nil
}

func (b backend) GetObject(ctx context.Context, bucket, name string, part *gofakes3.ObjectRangeRequest) (*gofakes3.Object, error) {
	o, val, v, err := b.object(ctx, bucket, name)
	if err != nil {
		return nil, b.failRead(ctx, bucket, name, err)
	}
	at, size := int64(0), o.Size
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
		at, size = o.Range.Start, o.Range.Length
	}
	fail := func(err error) error { return b.unread(ctx, bucket, name, err) }
	o.Contents = &contents{serve.NewContent(ctx, val, at, size), v.Release, fail}
	return o, nil
}

// contents is a part of a value, whose version it releases.
type contents struct {
	*serve.Content
	release func()
	fail    func(err error) error
}

// WriteTo implements [io.WriterTo], which gofakes3 copies with.
func (c *contents) WriteTo(w io.Writer) (int64, error) {
	n, err := c.Content.WriteTo(w)
	if err != nil {
		err = c.fail(err)
	}
	return n, err
}

func (c *contents) Close() error {
	c.release()
	return nil
}
