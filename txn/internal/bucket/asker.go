package bucket

import (
	"context"

	"github.com/zarrdb/zarrdb/kv"
)

// Asker sends the requests to buckets that another process needs, with the credentials of that process.
type Asker interface {
	// Bucket is the store of a bucket. Get and GetTagged of it are called.
	Bucket(url string) kv.Store
}

type askerKey struct{}

// WithAsker returns a context for a request of another process. What is away is then fetched through as, never
// with the credentials of this process.
func WithAsker(ctx context.Context, as Asker) context.Context {
	return context.WithValue(ctx, askerKey{}, as)
}

// AskerOf returns the asker of a request, or nil.
func AskerOf(ctx context.Context) Asker {
	as, _ := ctx.Value(askerKey{}).(Asker)
	return as
}
