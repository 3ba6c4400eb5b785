package kv

import (
	"context"
	"errors"
	"fmt"
)

// SetRange is set_partial_values of the abstract store interface for one part:
// it overwrites len(p) bytes of the existing value of key from offset on. The
// range may end past the value, which then grows; it may not begin past its
// end ([ErrRange]). A key without a value is [ErrNotFound].
//
// It reads the value and sets it anew, so w must be a [Reader] too, and is not
// atomic against other writers of the same key.
func SetRange(ctx context.Context, w Writer, key string, offset int64, p []byte) error {
	r, ok := w.(Reader)
	if !ok {
		return fmt.Errorf("kv: set range of %s: view cannot be read: %w", quoteKey(key), errors.ErrUnsupported)
	}
	old, err := r.Get(ctx, key, Range{})
	if err != nil {
		return err
	}
	if offset < 0 || offset > int64(len(old)) {
		return fmt.Errorf("%w: write at %d of %d bytes", ErrRange, offset, len(old))
	}
	tail := copy(old[offset:], p)
	return w.Set(ctx, key, append(old, p[tail:]...))
}

// deleteBatch is how many keys the fall-backs hold at a time.
const deleteBatch = 1024

// DeletePrefix is erase_prefix of the abstract store interface: it removes
// every key that begins with prefix, which need not end in a slash. The empty
// prefix removes everything.
//
// The fall-back lists and deletes, so w must be a [Lister] too. It is not
// atomic: after an error some keys are gone.
func DeletePrefix(ctx context.Context, w Writer, prefix string) error {
	if d, ok := w.(PrefixDeleter); ok {
		if err := d.DeletePrefix(ctx, prefix); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	l, ok := w.(Lister)
	if !ok {
		return fmt.Errorf("kv: delete prefix %s: view cannot be listed: %w", quoteKey(prefix), errors.ErrUnsupported)
	}
	opts := ListOptions{Prefix: prefix}
	for {
		// Keys are collected first: deleting while the view lists would rely
		// on more than Lister promises.
		var keys []string
		for key, err := range l.List(ctx, opts) {
			if err != nil {
				return err
			}
			if keys = append(keys, key); len(keys) == deleteBatch {
				break
			}
		}
		if len(keys) == 0 {
			return nil
		}
		if err := DeleteAll(ctx, w, keys); err != nil {
			return err
		}
		opts.After = keys[len(keys)-1]
	}
}

// BatchDeleter is an optional interface of a Writer for which many deletions
// cost less together; use [DeleteAll].
type BatchDeleter interface {
	// DeleteAll is [DeleteAll] for this view.
	DeleteAll(ctx context.Context, keys []string) error
}

// DeleteAll is erase_values of the abstract store interface: it removes keys. A
// key without a value is no error. It stops at the first error; keys removed
// before stay removed.
func DeleteAll(ctx context.Context, w Writer, keys []string) error {
	if b, ok := w.(BatchDeleter); ok {
		if err := b.DeleteAll(ctx, keys); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	for _, key := range keys {
		if err := w.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}
