package formats

import (
	"context"

	"github.com/zarrdb/zarrdb/kv"
)

// Plan is a hierarchy that is ready to be written in a foreign format: all of it was
// looked at, and the format has a form for it.
type Plan interface {
	// Write writes everything, what describes an array after its chunks. It is called
	// once.
	Write(ctx context.Context, out Output) error
}

// Output is where a format is written to.
type Output struct {
	// Dst gets the files by their keys. No key is set twice.
	Dst kv.Writer
	// Run writes several chunks at a time: it calls fn for 0 to n-1, each at most once,
	// and returns the first error when none is running any more. nil writes one after
	// the other, so that the order of keys is always the same.
	Run func(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error
	// Wrote, if not nil, is called with the length of each value that was written, by
	// several goroutines at a time.
	Wrote func(bytes int64)
}

// Set writes one file.
func (o *Output) Set(ctx context.Context, key string, value []byte) error {
	if err := o.Dst.Set(ctx, key, value); err != nil {
		return err
	}
	if o.Wrote != nil {
		o.Wrote(int64(len(value)))
	}
	return nil
}

// Each is Run, or one call after the other.
func (o *Output) Each(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	if o.Run != nil {
		return o.Run(ctx, n, fn)
	}
	for i := range n {
		if err := fn(ctx, i); err != nil {
			return err
		}
	}
	return nil
}
