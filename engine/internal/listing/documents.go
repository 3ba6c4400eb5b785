package listing

import (
	"context"
	"errors"

	"github.com/zarrdb/zarrdb/kv"
)

// Documents is a store with documents that it does not have itself.
type Documents struct {
	kv.Reader
	// Told returns the document under a key that has no value in the store, or
	// kv.ErrNotFound.
	Told func(ctx context.Context, key string) ([]byte, error)
}

var (
	_ kv.Locator      = Documents{}
	_ kv.BatchReader  = Documents{}
	_ kv.RangeLocator = Documents{}
	_ kv.Gatherer     = Documents{}
	_ kv.Spacer       = Documents{}
)

// Get implements [kv.Reader].
func (d Documents) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	b, err := d.Reader.Get(ctx, key, rng)
	if errors.Is(err, kv.ErrNotFound) {
		if b, err = d.Told(ctx, key); err == nil {
			return kv.ReadValue(ctx, kv.Bytes(b), rng)
		}
	}
	return b, err
}

// Locate implements [kv.Locator].
func (d Documents) Locate(ctx context.Context, key string) (kv.Value, error) {
	v, err := kv.Locate(ctx, d.Reader, key)
	if errors.Is(err, kv.ErrNotFound) {
		var doc []byte
		if doc, err = d.Told(ctx, key); err == nil {
			return kv.Bytes(doc), nil
		}
	}
	return v, err
}

// LocateRange implements [kv.RangeLocator].
func (d Documents) LocateRange(ctx context.Context, key string, rng kv.Range, limit int64) (kv.Value, []byte, error) {
	v, b, err := kv.LocateRange(ctx, d.Reader, key, rng, limit)
	if errors.Is(err, kv.ErrNotFound) {
		v, err = d.Locate(ctx, key)
	}
	return v, b, err
}

// GetMany implements [kv.BatchReader].
func (d Documents) GetMany(ctx context.Context, reqs []kv.Request) ([][]byte, error) {
	out, err := kv.GetMany(ctx, d.Reader, reqs)
	for i := 0; i < len(out) && err == nil; i++ {
		if out[i] != nil {
			continue
		}
		var doc []byte
		if doc, err = d.Told(ctx, reqs[i].Key); err == nil {
			out[i], err = kv.ReadValue(ctx, kv.Bytes(doc), reqs[i].Range)
		} else if errors.Is(err, kv.ErrNotFound) {
			err = nil
		}
	}
	return out, err
}

// Gathers implements [kv.Gatherer].
func (d Documents) Gathers(ctx context.Context, key string) bool {
	return kv.Gathers(ctx, d.Reader, key)
}

// Gather implements [kv.Gatherer].
func (d Documents) Gather(ctx context.Context, wants []kv.Want, g kv.Gathering) error {
	take := g.Take
	g.Take = func(ctx context.Context, i int, v kv.Value) error {
		if v == nil {
			switch doc, err := d.Told(ctx, wants[i].Key); {
			case err == nil:
				v = kv.Bytes(doc)
			case !errors.Is(err, kv.ErrNotFound):
				return err
			}
		}
		return take(ctx, i, v)
	}
	return kv.Gather(ctx, d.Reader, wants, g)
}

// Spacing implements [kv.Spacer].
func (d Documents) Spacing() (gap, most int64) { return kv.Spacing(d.Reader) }
