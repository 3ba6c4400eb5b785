package kvtest

import (
	"context"
	"errors"
	"iter"
	"maps"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
)

// Op is a kind of operation on a view.
type Op string

// The operations that a [Hook] sees. A listing is one OpList, and one OpNext
// before each entry.
const (
	OpGet          Op = "get"
	OpLocate       Op = "locate"
	OpView         Op = "view"
	OpList         Op = "list"
	OpListDir      Op = "list dir"
	OpNext         Op = "next"
	opSet          Op = "set"
	opDelete       Op = "delete"
	OpDeletePrefix Op = "delete prefix"
	opGetTagged    Op = "get tagged"
	opSetTagged    Op = "set tagged"
)

// Hook returns a view around base that calls before ahead of every operation; an
// error of before fails the operation. The view is a [kv.Lister] and a [kv.Writer] exactly
// where base is. It passes Locate, ListDir, DeletePrefix, SetValue and conditional writes on, and has no other
// optional methods. before must be safe for concurrent use if the view is used so.
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

// Reset returns all counts and begins again.
func (c *Counter) Reset() map[Op]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := maps.Clone(c.n)
	clear(c.n)
	return n
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
	if err := h.call(opSet, key); err != nil {
		return err
	}
	return h.w.Set(ctx, key, value)
}

func (h hookWriter) Delete(ctx context.Context, key string) error {
	if err := h.call(opDelete, key); err != nil {
		return err
	}
	return h.w.Delete(ctx, key)
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

func (h hookWriter) SetValue(ctx context.Context, key string, v kv.Value) error {
	if err := h.call(opSet, key); err != nil {
		return err
	}
	return kv.SetValue(ctx, h.w, key, v)
}

func (h hookWriter) GetTagged(ctx context.Context, key string, known kv.Tag, limit int64) (kv.Tagged, error) {
	c, ok := h.w.(kv.Conditional)
	if !ok {
		return kv.Tagged{}, errors.ErrUnsupported
	}
	if err := h.call(opGetTagged, key); err != nil {
		return kv.Tagged{}, err
	}
	return c.GetTagged(ctx, key, known, limit)
}

func (h hookWriter) SetTagged(ctx context.Context, key string, value []byte, want kv.Tag) (kv.Tag, error) {
	c, ok := h.w.(kv.Conditional)
	if !ok {
		return "", errors.ErrUnsupported
	}
	if err := h.call(opSetTagged, key); err != nil {
		return "", err
	}
	return c.SetTagged(ctx, key, value, want)
}
