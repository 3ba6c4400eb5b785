package kv

import (
	"context"
	"errors"
	"iter"
	"strings"
)

// Sub returns a view of the keys of base below prefix, with the prefix cut off:
// key "k" of the view is key prefix+"k" of base. A slash is added to a prefix
// that lacks one; the empty prefix gives base itself. The view has the
// capabilities of base: it implements [Lister] and [Writer] if base does, and
// all optional interfaces, through the functions of this package.
//
// [ErrNotFound] and [ErrRange] pass unchanged; the text of other errors names
// the key as base knows it.
func Sub(base Reader, prefix string) Reader {
	if prefix == "" {
		return base
	}
	if prefix[len(prefix)-1] != '/' {
		prefix += "/"
	}
	if s, ok := base.(interface{ sub() (Reader, string) }); ok {
		inner, outer := s.sub()
		return Sub(inner, outer+prefix)
	}
	r := subReader{base, prefix}
	l, isLister := base.(Lister)
	w, isWriter := base.(Writer)
	switch {
	case isLister && isWriter:
		return subStore{r, subLister{l, prefix}, subWriter{w, prefix}}
	case isLister:
		return subReadLister{r, subLister{l, prefix}}
	case isWriter:
		return subReadWriter{r, subWriter{w, prefix}}
	}
	return r
}

// SubLister is [Sub] for a view that can be listed.
func SubLister(base ReadLister, prefix string) ReadLister { return Sub(base, prefix).(ReadLister) }

type subReadLister struct {
	subReader
	subLister
}

type subReadWriter struct {
	subReader
	subWriter
}

type subStore struct {
	subReader
	subLister
	subWriter
}

var (
	_ Store         = subStore{}
	_ Locator       = subStore{}
	_ BatchReader   = subStore{}
	_ RangeLocator  = subStore{}
	_ Gatherer      = subStore{}
	_ DirLister     = subStore{}
	_ PrefixDeleter = subStore{}
	_ BatchDeleter  = subStore{}
	_ Conditional   = subStore{}
	_ ValueWriter   = subStore{}
)

type subReader struct {
	base   Reader
	prefix string
}

func (s subReader) sub() (Reader, string) { return s.base, s.prefix }

func (s subReader) Get(ctx context.Context, key string, rng Range) ([]byte, error) {
	return s.base.Get(ctx, s.prefix+key, rng)
}

func (s subReader) Locate(ctx context.Context, key string) (Value, error) {
	return Locate(ctx, s.base, s.prefix+key)
}

func (s subReader) GetMany(ctx context.Context, reqs []Request) ([][]byte, error) {
	inner := make([]Request, len(reqs))
	for i, q := range reqs {
		inner[i] = Request{s.prefix + q.Key, q.Range}
	}
	return GetMany(ctx, s.base, inner)
}

func (s subReader) LocateRange(ctx context.Context, key string, rng Range, limit int64) (Value, []byte, error) {
	return LocateRange(ctx, s.base, s.prefix+key, rng, limit)
}

func (s subReader) Gathers(ctx context.Context, key string) bool {
	return Gathers(ctx, s.base, s.prefix+key)
}

func (s subReader) Gather(ctx context.Context, wants []Want, g Gathering) error {
	inner := make([]Want, len(wants))
	for i, w := range wants {
		inner[i] = Want{s.prefix + w.Key, w.Range, w.Limit}
	}
	return Gather(ctx, s.base, inner, g)
}

type subLister struct {
	list Lister
	pre  string
}

func (s subLister) List(ctx context.Context, opts ListOptions) iter.Seq2[string, error] {
	inner := ListOptions{Prefix: s.pre + opts.Prefix}
	if opts.After != "" {
		inner.After = s.pre + opts.After
	}
	return func(yield func(string, error) bool) {
		for key, err := range s.list.List(ctx, inner) {
			if !yield(strings.TrimPrefix(key, s.pre), err) || err != nil {
				return
			}
		}
	}
}

func (s subLister) ListDir(ctx context.Context, prefix string) iter.Seq2[DirEntry, error] {
	return ListDir(ctx, s.list, s.pre+prefix)
}

type subWriter struct {
	w   Writer
	pre string
}

// Set checks the key first: base may accept a key below the prefix, such as "p/"
// + "/k", that is invalid in this view.
func (s subWriter) Set(ctx context.Context, key string, value []byte) error {
	if err := ValidKey(key); err != nil {
		return err
	}
	return s.w.Set(ctx, s.pre+key, value)
}

func (s subWriter) Delete(ctx context.Context, key string) error {
	return s.w.Delete(ctx, s.pre+key)
}

func (s subWriter) DeletePrefix(ctx context.Context, prefix string) error {
	return DeletePrefix(ctx, s.w, s.pre+prefix)
}

func (s subWriter) DeleteAll(ctx context.Context, keys []string) error {
	inner := make([]string, len(keys))
	for i, key := range keys {
		inner[i] = s.pre + key
	}
	return DeleteAll(ctx, s.w, inner)
}

func (s subWriter) SetValue(ctx context.Context, key string, v Value) error {
	if err := ValidKey(key); err != nil {
		return err
	}
	return SetValue(ctx, s.w, s.pre+key, v)
}

func (s subWriter) GetTagged(ctx context.Context, key string, known Tag, limit int64) (Tagged, error) {
	if c, ok := s.w.(Conditional); ok {
		return c.GetTagged(ctx, s.pre+key, known, limit)
	}
	return Tagged{}, errors.ErrUnsupported
}

func (s subWriter) SetTagged(ctx context.Context, key string, value []byte, want Tag) (Tag, error) {
	c, ok := s.w.(Conditional)
	if !ok {
		return "", errors.ErrUnsupported
	}
	if err := ValidKey(key); err != nil {
		return "", err
	}
	return c.SetTagged(ctx, s.pre+key, value, want)
}
