package kvtest

import (
	"context"
	"errors"
	"iter"
	"maps"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/kv"
)

// Op is a kind of operation on a view.
type Op string

// The operations that a [Hook] sees. A listing is one OpList, and one OpNext
// before each entry.
const (
	OpGet          Op = "get"
	OpGetMany      Op = "get many"
	OpLocate       Op = "locate"
	OpView         Op = "view"
	OpList         Op = "list"
	OpListDir      Op = "list dir"
	OpNext         Op = "next"
	OpSet          Op = "set"
	OpSetRange     Op = "set range"
	OpDelete       Op = "delete"
	OpDeletePrefix Op = "delete prefix"
	OpDeleteAll    Op = "delete all"
)

// Hook returns a view around base that calls before ahead of every operation; an
// error of before fails the operation. key is empty for batches. The view is a
// [kv.Lister] and a [kv.Writer] exactly where base is;
// its optional methods return errors.ErrUnsupported where base lacks them.
// before must be safe for concurrent use if the view is used so.
func Hook(base kv.Reader, before func(op Op, key string) error) kv.Reader {
	h := hook{base, before}
	l, isLister := base.(kv.Lister)
	w, isWriter := base.(kv.Writer)
	switch {
	case isLister && isWriter:
		return &struct {
			hook
			hookLister
			hookWriter
		}{h, hookLister{l, before}, hookWriter{w, before}}
	case isLister:
		return &struct {
			hook
			hookLister
		}{h, hookLister{l, before}}
	case isWriter:
		return &struct {
			hook
			hookWriter
		}{h, hookWriter{w, before}}
	}
	return &h
}

// Counter counts the operations on a view. Safe for concurrent use.
type Counter struct {
	mu sync.Mutex
	n  map[Op]int64
}

// Count returns a view around base and the counter of its operations.
func Count(base kv.Reader) (kv.Reader, *Counter) {
	c := &Counter{n: map[Op]int64{}}
	return Hook(base, func(op Op, _ string) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.n[op]++
		return nil
	}), c
}

// Of returns how often op was done.
func (c *Counter) Of(op Op) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[op]
}

// Reset returns all counts and begins again.
func (c *Counter) Reset() map[Op]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := maps.Clone(c.n)
	clear(c.n)
	return n
}

// FailAt returns a view around base whose k-th operation, counted from 0,
// fails with err and is not done; all others are.
func FailAt(base kv.Reader, k int64, err error) kv.Reader {
	var n atomic.Int64
	return Hook(base, func(Op, string) error {
		if n.Add(1)-1 == k {
			return err
		}
		return nil
	})
}

// EachFault runs run on a fresh view again and again, with a failure at
// operation 0, 1, 2 and so on until a run meets none. Every run that meets the
// failure must return an error that is this failure; check, which may be nil,
// then looks at the view without the wrapper.
func EachFault(t *testing.T, open func() kv.Reader, run func(kv.Reader) error, check func(t *testing.T, base kv.Reader, k int64)) {
	t.Helper()
	const endless = 100_000
	for k := int64(0); k < endless; k++ {
		fault := errors.New("injected failure")
		base := open()
		met := false
		var n atomic.Int64
		err := run(Hook(base, func(Op, string) error {
			if n.Add(1)-1 == k {
				met = true
				return fault
			}
			return nil
		}))
		if !met {
			if err != nil {
				t.Errorf("without a failure: %v", err)
			}
			if k == 0 {
				t.Error("the run did not use the view")
			}
			return
		}
		if !errors.Is(err, fault) {
			t.Errorf("failure at operation %d: the run returned %v", k, err)
		}
		if check != nil {
			check(t, base, k)
		}
	}
	t.Errorf("the run is not over after %d operations", endless)
}

type hook struct {
	base   kv.Reader
	before func(Op, string) error
}

func (h hook) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	if err := h.before(OpGet, key); err != nil {
		return nil, err
	}
	return h.base.Get(ctx, key, rng)
}

func (h hook) GetMany(ctx context.Context, reqs []kv.Request) ([][]byte, error) {
	b, ok := h.base.(kv.BatchReader)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	if err := h.before(OpGetMany, ""); err != nil {
		return nil, err
	}
	return b.GetMany(ctx, reqs)
}

func (h hook) Locate(ctx context.Context, key string) (kv.Value, error) {
	l, ok := h.base.(kv.Locator)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	if err := h.before(OpLocate, key); err != nil {
		return nil, err
	}
	v, err := l.Locate(ctx, key)
	if err != nil {
		return nil, err
	}
	return hookValue{v, key, h.before}, nil
}

type hookValue struct {
	kv.Value
	key    string
	before func(Op, string) error
}

func (v hookValue) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	if err := v.before(OpView, v.key); err != nil {
		return err
	}
	return v.Value.View(ctx, rng, fn)
}

type hookLister struct {
	list kv.Lister
	hook func(Op, string) error
}

func (h hookLister) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := h.hook(OpList, opts.Prefix); err != nil {
			yield("", err)
			return
		}
		for key, err := range h.list.List(ctx, opts) {
			if err == nil {
				err = h.hook(OpNext, key)
			}
			if !yield(key, err) || err != nil {
				return
			}
		}
	}
}

func (h hookLister) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	return func(yield func(kv.DirEntry, error) bool) {
		d, ok := h.list.(kv.DirLister)
		if !ok {
			yield(kv.DirEntry{}, errors.ErrUnsupported)
			return
		}
		if err := h.hook(OpListDir, prefix); err != nil {
			yield(kv.DirEntry{}, err)
			return
		}
		for e, err := range d.ListDir(ctx, prefix) {
			if err == nil {
				err = h.hook(OpNext, prefix+e.Name)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

type hookWriter struct {
	w    kv.Writer
	call func(Op, string) error
}

func (h hookWriter) Set(ctx context.Context, key string, value []byte) error {
	if err := h.call(OpSet, key); err != nil {
		return err
	}
	return h.w.Set(ctx, key, value)
}

func (h hookWriter) Delete(ctx context.Context, key string) error {
	if err := h.call(OpDelete, key); err != nil {
		return err
	}
	return h.w.Delete(ctx, key)
}

func (h hookWriter) SetRange(ctx context.Context, key string, offset int64, p []byte) error {
	r, ok := h.w.(kv.RangeWriter)
	if !ok {
		return errors.ErrUnsupported
	}
	if err := h.call(OpSetRange, key); err != nil {
		return err
	}
	return r.SetRange(ctx, key, offset, p)
}

func (h hookWriter) DeletePrefix(ctx context.Context, prefix string) error {
	d, ok := h.w.(kv.PrefixDeleter)
	if !ok {
		return errors.ErrUnsupported
	}
	if err := h.call(OpDeletePrefix, prefix); err != nil {
		return err
	}
	return d.DeletePrefix(ctx, prefix)
}

func (h hookWriter) DeleteAll(ctx context.Context, keys []string) error {
	d, ok := h.w.(kv.BatchDeleter)
	if !ok {
		return errors.ErrUnsupported
	}
	if err := h.call(OpDeleteAll, ""); err != nil {
		return err
	}
	return d.DeleteAll(ctx, keys)
}
