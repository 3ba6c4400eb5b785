package kv

import (
	"context"
)

// Get returns the whole value of key. See [Reader].
func Get(ctx context.Context, r Reader, key string) ([]byte, error) {
	return r.Get(ctx, key, Range{})
}

// Locate finds key in r, with the view's own method where it has one. The
// fall-back reads the whole value at once.
func Locate(ctx context.Context, r Reader, key string) (Value, error) {
	if l, ok := r.(Locator); ok {
		return l.Locate(ctx, key)
	}
	b, err := r.Get(ctx, key, Range{})
	if err != nil {
		return nil, err
	}
	return Bytes(b), nil
}

// Bytes is a [Value] in memory without an identity.
type Bytes []byte

var _ Value = Bytes(nil)

// Size implements [Value].
func (b Bytes) Size() int64 { return int64(len(b)) }

// ID implements [Value]; it is zero.
func (b Bytes) ID() ID { return ID{} }

// View implements [Value].
func (b Bytes) View(_ context.Context, rng Range, fn func([]byte) error) error {
	off, n, err := rng.Resolve(int64(len(b)))
	if err != nil {
		return err
	}
	return fn(b[off : off+n : off+n])
}
