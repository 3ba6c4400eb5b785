package kv

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/zarrdb/zarrdb/internal/together"
)

// Get returns the whole value of key. See [Reader].
func Get(ctx context.Context, r Reader, key string) ([]byte, error) {
	return r.Get(ctx, key, Range{})
}

// Exists reports whether key has a value.
func Exists(ctx context.Context, r Reader, key string) (bool, error) {
	var err error
	if l, ok := r.(Locator); ok {
		if _, err = l.Locate(ctx, key); !errors.Is(err, errors.ErrUnsupported) {
			return found(err)
		}
	}
	_, err = r.Get(ctx, key, Span(0, 0))
	return found(err)
}

func found(err error) (bool, error) {
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Locate finds key in r, with the view's own method if it has one. The fall-back
// reads the whole value at once.
func Locate(ctx context.Context, r Reader, key string) (Value, error) {
	if l, ok := r.(Locator); ok {
		v, err := l.Locate(ctx, key)
		if err == nil || !errors.Is(err, errors.ErrUnsupported) {
			return v, err
		}
	}
	b, err := r.Get(ctx, key, Range{})
	if err != nil {
		return nil, err
	}
	return Bytes(b), nil
}

// ReadValue returns a copy of the bytes of v that rng selects. The caller owns
// the slice.
func ReadValue(ctx context.Context, v Value, rng Range) ([]byte, error) {
	var out []byte
	err := v.View(ctx, rng, func(b []byte) error {
		out = append(make([]byte, 0, len(b)), b...)
		return nil
	})
	return out, err
}

// Request names a part of a value.
type Request struct {
	Key   string
	Range Range
}

// BatchReader is an optional interface of a Reader for which many small reads
// cost less together, as in a bucket; use [GetMany].
type BatchReader interface {
	// GetMany is [GetMany] for this view.
	GetMany(ctx context.Context, reqs []Request) ([][]byte, error)
}

// GetMany is get_partial_values of the abstract store interface: it returns the
// selected bytes in the order of the requests. A key may occur several times. A
// key without a value gives nil, an empty range of an existing value an empty
// slice that is not nil. The caller owns the slices. Any other error fails the
// whole batch. Parts of a key that is overwritten meanwhile may be of two values:
// [Locate] and [ViewRanges] read parts of one.
//
// The fall-back reads on all processors if there are many requests, locating a key once for
// requests that follow each other.
func GetMany(ctx context.Context, r Reader, reqs []Request) ([][]byte, error) {
	if b, ok := r.(BatchReader); ok {
		out, err := b.GetMany(ctx, reqs)
		if err == nil || !errors.Is(err, errors.ErrUnsupported) {
			return out, err
		}
	}
	out := make([][]byte, len(reqs))
	parts := max(1, min(runtime.GOMAXPROCS(0), len(reqs)/getPart))
	errs := make([]error, parts)
	var wg together.Group
	defer wg.Wait()
	for p, from := 0, 0; p < parts; p++ {
		to := max(from, len(reqs)*(p+1)/parts)
		for to > 0 && to < len(reqs) && reqs[to].Key == reqs[to-1].Key {
			to++
		}
		part, into := reqs[from:to], out[from:to]
		read := func() { errs[p] = getAll(ctx, r, part, into) }
		if from = to; p < parts-1 {
			wg.Go(read)
		} else {
			read()
		}
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// getPart is the least number of requests worth a goroutine.
const getPart = 16

// getAll reads requests one after the other.
func getAll(ctx context.Context, r Reader, reqs []Request, out [][]byte) error {
	for i := 0; i < len(reqs); {
		key := reqs[i].Key
		same := i + 1
		for same < len(reqs) && reqs[same].Key == key {
			same++
		}
		if err := getRun(ctx, r, reqs[i:same], out[i:same]); err != nil {
			return fmt.Errorf("get %s: %w", quoteKey(key), err)
		}
		i = same
	}
	return nil
}

// getRun reads requests of one key.
func getRun(ctx context.Context, r Reader, reqs []Request, out [][]byte) error {
	if len(reqs) == 1 {
		b, err := r.Get(ctx, reqs[0].Key, reqs[0].Range)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		out[0] = b
		if err == nil && b == nil {
			out[0] = []byte{}
		}
		return err
	}
	v, err := Locate(ctx, r, reqs[0].Key)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for i, q := range reqs {
		if out[i], err = ReadValue(ctx, v, q.Range); err != nil {
			return err
		}
	}
	return nil
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
