package kv

import (
	"context"
	"iter"
)

// ReadOnly returns base without its writing methods: the view is no [Writer],
// and nothing in it leads back to base.
func ReadOnly(base ReadLister) ReadLister {
	if r, ok := base.(readOnly); ok {
		return r
	}
	return readOnly{base}
}

type readOnly struct {
	base ReadLister
}

var (
	_ Locator      = readOnly{}
	_ BatchReader  = readOnly{}
	_ RangeLocator = readOnly{}
	_ Gatherer     = readOnly{}
	_ DirLister    = readOnly{}
)

func (r readOnly) Get(ctx context.Context, key string, rng Range) ([]byte, error) {
	return r.base.Get(ctx, key, rng)
}

func (r readOnly) Locate(ctx context.Context, key string) (Value, error) {
	return Locate(ctx, r.base, key)
}

func (r readOnly) GetMany(ctx context.Context, reqs []Request) ([][]byte, error) {
	return GetMany(ctx, r.base, reqs)
}

func (r readOnly) LocateRange(ctx context.Context, key string, rng Range, limit int64) (Value, []byte, error) {
	return LocateRange(ctx, r.base, key, rng, limit)
}

func (r readOnly) Gathers(ctx context.Context, key string) bool { return Gathers(ctx, r.base, key) }

func (r readOnly) Gather(ctx context.Context, wants []Want, g Gathering) error {
	return Gather(ctx, r.base, wants, g)
}

func (r readOnly) List(ctx context.Context, opts ListOptions) iter.Seq2[string, error] {
	return r.base.List(ctx, opts)
}

func (r readOnly) ListDir(ctx context.Context, prefix string) iter.Seq2[DirEntry, error] {
	return ListDir(ctx, r.base, prefix)
}
