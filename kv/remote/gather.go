package remote

import (
	"context"
	"errors"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
)

// Spacing implements [kv.Spacer].
func (o *Objects) Spacing() (gap, most int64) { return o.c.o.Gap, o.c.o.MaxMerged }

func (v *value) Spacing() (gap, most int64) { return v.o.Spacing() }

// LocateRange implements [kv.RangeLocator] with one request, whose answer has
// the size and version of the value, or else with a second request.
func (o *Objects) LocateRange(ctx context.Context, key string, rng kv.Range, limit int64) (kv.Value, []byte, error) {
	off, n, valid := rng.Bounds()
	if !valid || n == 0 {
		v, err := o.Locate(ctx, key)
		return v, nil, err
	}
	got, err := o.fetch(ctx, key, ask{off: off, n: n, size: -1, cut: true, limit: limit}, nil)
	switch {
	case errors.Is(err, errNoSize), err == nil && got.size < 0:
		v, err := o.Locate(ctx, key)
		if err != nil || got.bytes == nil || got.version == "" || v.(*value).info.Version != got.version {
			return v, nil, err
		}
		return v, got.bytes, nil
	case errors.Is(err, kv.ErrRange) && got.size >= 0:
		return &value{o: o, key: key, info: got.info()}, nil, nil
	case err != nil:
		return nil, nil, err
	}
	return &value{o: o, key: key, info: got.info()}, got.bytes, nil
}

// Gathers implements [kv.Gatherer].
func (o *Objects) Gathers(context.Context, string) bool { return true }

// Gather implements [kv.Gatherer]: one request for each value or part, up to
// Options.Parallel at a time. Equal wants that follow each other share one.
func (o *Objects) Gather(ctx context.Context, wants []kv.Want, g kv.Gathering) error {
	jobs := make([]*shared, len(wants))
	for i := range wants {
		if jobs[i] = new(shared); i > 0 && wants[i] == wants[i-1] {
			jobs[i] = jobs[i-1]
		}
	}
	return o.c.Each(ctx, len(wants), func(ctx context.Context, i int) error {
		w := &wants[i]
		_, n, _ := w.Range.Bounds()
		if n < 0 {
			n = o.c.o.MaxMerged
			if w.Limit > 0 {
				n = w.Limit
			}
		}
		if err := o.c.memory.Take(ctx, n); err != nil {
			return err
		}
		defer o.c.memory.Give(n)
		v, err := jobs[i].get(func() (kv.Value, error) { return o.located(ctx, w) })
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return err
		}
		jobs[i] = nil // so that the bytes are freed with their last use
		return g.Take(ctx, i, v)
	})
}

// located is a value with the bytes read of it.
func (o *Objects) located(ctx context.Context, w *kv.Want) (kv.Value, error) {
	v, b, err := o.LocateRange(ctx, w.Key, w.Range, w.Limit)
	if err != nil || len(b) == 0 {
		return v, err
	}
	off, _, _ := w.Range.Bounds()
	if off < 0 {
		off = v.Size() - int64(len(b))
	}
	return kv.Held(v, off, b), nil
}

// shared is a value of several wants.
type shared struct {
	once sync.Once
	v    kv.Value
	err  error
}

func (s *shared) get(find func() (kv.Value, error)) (kv.Value, error) {
	s.once.Do(func() { s.v, s.err = find() })
	return s.v, s.err
}
