package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/zarrdb/zarrdb/kv"
)

// Bucket is a view of a bucket that can be read, listed and written. Safe for
// concurrent use.
type Bucket struct {
	*Objects
	Listing
	// Put makes the request that sets a key; see [Body].
	Put func(ctx context.Context, key string, value kv.Value) (*http.Request, error)
	// If adds a condition to a request for a key: that its tag is the one given, or that it is not.
	If func(req *http.Request, tag kv.Tag, same bool)
	// Tag reads the tag of the value from the answer to a GET or to a request of Put; "" without one.
	Tag func(resp *http.Response) kv.Tag
}

var (
	_ kv.Store        = (*Bucket)(nil)
	_ kv.BatchDeleter = (*Bucket)(nil)
	_ kv.Conditional  = (*Bucket)(nil)
	_ kv.ValueWriter  = (*Bucket)(nil)
)

// Body makes the bytes of a value the body of a request. They are read when the request is
// sent, and again when it is sent again.
func Body(req *http.Request, v kv.Value) {
	if req.ContentLength = v.Size(); v.Size() == 0 {
		req.Body = http.NoBody
		return
	}
	req.GetBody = func() (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(kv.ReaderAt(req.Context(), v), 0, v.Size())), nil
	}
	req.Body, _ = req.GetBody()
}

// Set implements [kv.Writer] with one request.
func (b *Bucket) Set(ctx context.Context, key string, value []byte) error {
	return b.SetValue(ctx, key, kv.Bytes(value))
}

// maxPut is the most that a request may set.
const maxPut = 5 << 30

// SetValue implements [kv.ValueWriter] with one request.
func (b *Bucket) SetValue(ctx context.Context, key string, v kv.Value) error {
	if err := b.Valid(key); err != nil {
		return err
	}
	if v.Size() > maxPut {
		return fmt.Errorf("%w: %d bytes, one request takes 5 GiB", kv.ErrTooLarge, v.Size())
	}
	return b.c.Do(ctx, func(ctx context.Context) (*http.Request, error) { return b.put(ctx, key, v) }, b.done)
}

func (b *Bucket) put(ctx context.Context, key string, v kv.Value) (*http.Request, error) {
	req, err := b.Put(ctx, key, v)
	if err == nil {
		req.Header.Set("Content-Type", "application/octet-stream")
	}
	return req, err
}

// GetTagged implements [kv.Conditional].
func (b *Bucket) GetTagged(ctx context.Context, key string, known kv.Tag, limit int64) (out kv.Tagged, err error) {
	err = b.do(ctx, http.MethodGet, key, "", func(req *http.Request) {
		if known != kv.NoValue {
			b.If(req, known, false)
		}
	}, func(resp *http.Response) (err error) {
		out = kv.Tagged{Tag: known}
		out.Time, _ = http.ParseTime(resp.Header.Get("Date")) // zero if it is missing
		switch {
		case resp.StatusCode == http.StatusNotModified && known != kv.NoValue:
			return nil
		case resp.StatusCode == http.StatusNotFound && b.p.Missing(resp): // 403 says nothing
			return kv.ErrNotFound
		case resp.StatusCode != http.StatusOK:
			return b.c.Failed(resp, b.p.Code(resp))
		}
		if err := plain(resp); err != nil {
			return err
		}
		if out.Tag = b.Tag(resp); out.Tag == kv.NoValue {
			return wrong(resp, fmt.Errorf("%w: the value has no tag for conditional writes", ErrAnswer))
		}
		if resp.ContentLength <= limit {
			out.Value, err = readUpTo(resp, limit+1)
		}
		if resp.ContentLength > limit || int64(len(out.Value)) > limit {
			return fmt.Errorf("%w: get %q: more than %d bytes", kv.ErrTooLarge, key, limit)
		}
		return err
	})
	return out, err
}

// SetTagged implements [kv.Conditional]. Status 404, 409 and 412 mean that the condition does
// not hold. The other statuses from 300 to 499, and 501 and 505, mean that nothing was written. After any
// other status, and without an answer, the error is [kv.ErrUnknown].
func (b *Bucket) SetTagged(ctx context.Context, key string, value []byte, want kv.Tag) (tag kv.Tag, err error) {
	if err := b.Valid(key); err != nil {
		return "", err
	}
	err = b.c.Once(ctx, func(ctx context.Context) (*http.Request, error) {
		req, err := b.put(ctx, key, kv.Bytes(value))
		if err == nil {
			b.If(req, want, true)
		}
		return req, err
	}, func(resp *http.Response) error {
		switch resp.StatusCode {
		case http.StatusOK, http.StatusCreated, http.StatusNoContent:
			if tag = b.Tag(resp); tag == kv.NoValue {
				return wrong(resp, fmt.Errorf("%w: %w: the answer has no tag", kv.ErrUnknown, ErrAnswer))
			}
			return nil
		case http.StatusPreconditionFailed, http.StatusConflict:
		case http.StatusNotFound:
			if !b.p.Missing(resp) {
				return b.c.Failed(resp, b.p.Code(resp))
			}
		default:
			err := b.c.Failed(resp, b.p.Code(resp))
			if s := resp.StatusCode; s < 300 || s > http.StatusHTTPVersionNotSupported { // Once knows 500 to 504
				err = fmt.Errorf("%w: %w", kv.ErrUnknown, err)
			}
			return err
		}
		return wrong(resp, fmt.Errorf("%w: set %q", kv.ErrChanged, key))
	})
	return tag, err
}

// Delete implements [kv.Writer].
func (b *Bucket) Delete(ctx context.Context, key string) error {
	return b.do(ctx, http.MethodDelete, key, "", nil, func(resp *http.Response) error {
		if resp.StatusCode == http.StatusNotFound && b.p.Missing(resp) {
			return nil
		}
		return b.done(resp)
	})
}

// DeleteAll implements [kv.BatchDeleter] with parallel requests.
func (b *Bucket) DeleteAll(ctx context.Context, keys []string) error {
	return b.c.Each(ctx, len(keys), func(ctx context.Context, i int) error { return b.Delete(ctx, keys[i]) })
}

// done checks the status of an answer without a body that matters.
func (b *Bucket) done(resp *http.Response) error {
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	return b.c.Failed(resp, b.p.Code(resp))
}
