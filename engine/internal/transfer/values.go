package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/internal/budget"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/kv/zipkv"
)

// HeldAtOnce is the longest value that is read together with other values;
// longer values are read alone.
var HeldAtOnce int64 = 64 << 20 // tests make it small

// longHeld bounds the bytes of longer values that are in memory at a time: each worker
// may meet one, and a sparse file that claims gigabytes costs its writer nothing.
var longHeld = gather.NewMemory(1 << 30)

// ViewWhole calls fn with all bytes of a value. Long values are held up to a
// bound in total, or one that is larger. A value of more than half of the
// memory that the system allows is kv.ErrTooLarge.
func ViewWhole(ctx context.Context, v kv.Value, fn func(b []byte) error) error {
	n := v.Size()
	if n <= HeldAtOnce {
		return v.View(ctx, kv.All(), fn)
	}
	if most := budget.System() / 2; n > most {
		return fmt.Errorf("%w: %d bytes do not go into memory, of which one value takes at most %d here", kv.ErrTooLarge, n, most)
	}
	if err := kv.CheckHeld(n); err != nil {
		return err // before other values make room for it
	}
	if err := longHeld.Take(ctx, n); err != nil {
		return err
	}
	defer longHeld.Give(n)
	return v.View(ctx, kv.All(), fn)
}

// SetValue writes a value, in pieces where both sides can: an archive takes every value in
// pieces, a directory long values that can be checked in pieces.
func SetValue(ctx context.Context, out kv.Writer, key string, v kv.Value) error {
	_, archive := out.(*zipkv.Writer)
	_, directory := out.(*dirkv.Store)
	if archive || directory && goesInPieces(v) {
		// A value that no reader could take, such as a sparse file of 8 TiB, would fill the disk.
		if err := kv.CheckHeld(v.Size()); err != nil {
			return err
		}
		return out.(interface {
			SetValue(ctx context.Context, key string, v kv.Value) error
		}).SetValue(ctx, key, v)
	}
	return ViewWhole(ctx, v, func(b []byte) error { return out.Set(ctx, key, b) })
}

// goesInPieces reports whether a value is long, and as well read in pieces as whole.
func goesInPieces(v kv.Value) bool { return v.Size() > HeldAtOnce && kv.Streams(v) }

// Holds reports whether a store has the bytes of v under a key.
func Holds(ctx context.Context, store kv.Reader, key string, v kv.Value) bool {
	have, err := kv.Locate(ctx, store, key)
	if err != nil || have.Size() != v.Size() {
		return false
	}
	at := int64(0)
	compare := func(b []byte) error {
		part := kv.Span(at, int64(len(b)))
		at += int64(len(b))
		return have.View(ctx, part, func(old []byte) error {
			if !bytes.Equal(old, b) {
				return errDiffers
			}
			return nil
		})
	}
	if goesInPieces(v) {
		return kv.Stream(ctx, v, compare) == nil
	}
	return ViewWhole(ctx, v, compare) == nil
}

var errDiffers = errors.New("engine: values differ")

// EachValue calls fn with the bytes of each of the keys that has a value, several
// at a time, and reads them at the least cost.
func EachValue(ctx context.Context, p *Pool, view kv.Reader, keys []string, fn func(ctx context.Context, key string, b []byte) error) error {
	give := func(ctx context.Context, key string, v kv.Value) error {
		if v == nil {
			return nil
		}
		if err := ViewWhole(ctx, v, func(b []byte) error { return fn(ctx, key, b) }); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	}
	if len(keys) > 0 && kv.Gathers(ctx, view, keys[len(keys)-1]) {
		wants := make([]kv.Want, len(keys))
		for i, key := range keys {
			wants[i] = kv.Want{Key: key, Limit: HeldAtOnce}
		}
		return kv.Gather(ctx, view, wants, kv.Gathering{Run: p.Run, Take: func(ctx context.Context, i int, v kv.Value) error { return give(ctx, keys[i], v) }})
	}
	return p.Run(ctx, len(keys), func(ctx context.Context, i int) error {
		v, err := kv.Locate(ctx, view, keys[i])
		if errors.Is(err, kv.ErrNotFound) {
			return nil // an optional document, or deleted since it was listed
		}
		if err != nil {
			return fmt.Errorf("%s: %w", keys[i], err)
		}
		return give(ctx, keys[i], v)
	})
}
