package remote

import (
	"context"
	"net/http"

	"github.com/zarrdb/zarrdb/kv"
)

// Bucket is a view of a bucket that can be read, listed and written. Safe for
// concurrent use.
type Bucket struct {
	*Objects
	Listing
	// Put makes the request that sets a key; value is not nil.
	Put func(ctx context.Context, key string, value []byte) (*http.Request, error)
}

var (
	_ kv.Store        = (*Bucket)(nil)
	_ kv.BatchDeleter = (*Bucket)(nil)
)

// Set implements [kv.Writer] with one request.
func (b *Bucket) Set(ctx context.Context, key string, value []byte) error {
	if err := b.Valid(key); err != nil {
		return err
	}
	if value == nil {
		value = []byte{}
	}
	return b.c.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		req, err := b.Put(ctx, key, value)
		if err == nil {
			req.Header.Set("Content-Type", "application/octet-stream")
		}
		return req, err
	}, b.done)
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
