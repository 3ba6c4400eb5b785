package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/depot"
)

// Store opens a store when the first request is sent.
type Store struct {
	kv.Store // nil until it is open
	Open     func(ctx context.Context) (kv.Store, error)
	opening  ctxlock.Lock
	URL      string
	By       Asker // of requests without one, if not nil
}

var _ kv.Conditional = (*Store)(nil)

func (s *Store) store(ctx context.Context) (kv.Store, error) {
	if as := cmp.Or(AskerOf(ctx), s.By); as != nil {
		return as.Bucket(s.URL), nil
	}
	if err := s.opening.Lock(ctx); err != nil {
		return nil, err
	}
	defer s.opening.Unlock()
	if s.Store == nil {
		store, err := s.Open(ctx)
		if err != nil {
			return nil, err
		}
		s.Store = store
	}
	return s.Store, nil
}

func (s *Store) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	store, err := s.store(ctx)
	if err != nil {
		return nil, err
	}
	return store.Get(ctx, key, rng)
}

func (s *Store) GetTagged(ctx context.Context, key string, known kv.Tag, limit int64) (kv.Tagged, error) {
	store, err := s.store(ctx)
	if err != nil {
		return kv.Tagged{}, err
	}
	c, ok := store.(kv.Conditional)
	if !ok {
		return kv.Tagged{}, errors.ErrUnsupported
	}
	return c.GetTagged(ctx, key, known, limit)
}

func (s *Store) SetTagged(context.Context, string, []byte, kv.Tag) (kv.Tag, error) {
	return kv.NoValue, kv.ErrReadOnly
}

// Counted counts requests.
type Counted struct {
	kv.Store
	requests, sent, received atomic.Int64
}

// Counts are requests and their bytes.
type Counts struct{ Requests, Sent, Received int64 }

// Count returns the requests and bytes since the store was opened.
func (s *Counted) Count() Counts {
	return Counts{s.requests.Load(), s.sent.Load(), s.received.Load()}
}

func (s *Counted) add(sent int, received int) {
	s.requests.Add(1)
	s.sent.Add(int64(sent))
	s.received.Add(int64(received))
}

var (
	_ kv.Conditional = (*Counted)(nil)
	_ kv.ValueWriter = (*Counted)(nil)
	_ kv.Locator     = (*Counted)(nil)
)

func (s *Counted) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	b, err := s.Store.Get(ctx, key, rng)
	s.add(0, len(b))
	return b, err
}

func (s *Counted) Locate(ctx context.Context, key string) (kv.Value, error) {
	s.add(0, 0)
	return kv.Locate(ctx, s.Store, key)
}

func (s *Counted) List(ctx context.Context, o kv.ListOptions) iter.Seq2[string, error] {
	s.add(0, 0)
	return s.Store.List(ctx, o)
}

func (s *Counted) Set(ctx context.Context, key string, value []byte) error {
	s.add(len(value), 0)
	return s.Store.Set(ctx, key, value)
}

func (s *Counted) SetValue(ctx context.Context, key string, v kv.Value) error {
	s.add(int(v.Size()), 0)
	return kv.SetValue(ctx, s.Store, key, v)
}

func (s *Counted) Delete(ctx context.Context, key string) error {
	s.add(0, 0)
	return s.Store.Delete(ctx, key)
}

func (s *Counted) GetTagged(ctx context.Context, key string, known kv.Tag, limit int64) (kv.Tagged, error) {
	c, ok := s.Store.(kv.Conditional)
	if !ok {
		return kv.Tagged{}, errors.ErrUnsupported
	}
	got, err := c.GetTagged(ctx, key, known, limit)
	s.add(0, len(got.Value))
	return got, err
}

func (s *Counted) SetTagged(ctx context.Context, key string, value []byte, want kv.Tag) (kv.Tag, error) {
	c, ok := s.Store.(kv.Conditional)
	if !ok {
		return kv.NoValue, errors.ErrUnsupported
	}
	s.add(len(value), 0)
	return c.SetTagged(ctx, key, value, want)
}

// Lent is a store for another process, which reads the objects of a depot alone.
type Lent struct{ *Counted }

func (s Lent) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	if !depot.IsKey(key) {
		return nil, fmt.Errorf("%q: %w", key, kv.ErrInvalidKey)
	}
	return s.Counted.Get(ctx, key, rng)
}

func (s Lent) GetTagged(ctx context.Context, key string, known kv.Tag, limit int64) (kv.Tagged, error) {
	if !depot.IsKey(key) {
		return kv.Tagged{}, fmt.Errorf("%q: %w", key, kv.ErrInvalidKey)
	}
	return s.Counted.GetTagged(ctx, key, known, limit)
}
