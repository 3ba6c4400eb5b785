package kv

import (
	"context"
	"iter"
	"sync"
)

// Mem is a store in memory: the reference for every other store. The zero value
// is empty and ready. Safe for concurrent use. Its own memory is about 100
// bytes per key.
//
// A located value does not change when its key is set afterwards.
type Mem struct {
	mu     sync.RWMutex
	values map[string][]byte // never changed in place
	keys   keySet
}

var (
	_ Store         = (*Mem)(nil)
	_ Locator       = (*Mem)(nil)
	_ PrefixDeleter = (*Mem)(nil)
)

// NewMem returns an empty store.
func NewMem() *Mem { return &Mem{} }

// Len is the number of keys.
func (m *Mem) Len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.values)
}

// Get implements [Reader].
func (m *Mem) Get(ctx context.Context, key string, rng Range) ([]byte, error) {
	v, err := m.get(ctx, key)
	if err != nil {
		return nil, err
	}
	off, n, err := rng.Resolve(int64(len(v)))
	if err != nil {
		return nil, err
	}
	return append(make([]byte, 0, n), v[off:off+n]...), nil
}

// Locate implements [Locator].
func (m *Mem) Locate(ctx context.Context, key string) (Value, error) {
	v, err := m.get(ctx, key)
	if err != nil {
		return nil, err
	}
	return Bytes(v), nil
}

func (m *Mem) get(ctx context.Context, key string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.RLock()
	v, ok := m.values[key]
	m.mu.RUnlock()
	if !ok {
		return nil, ErrNotFound
	}
	return v, nil
}

// listBatch is how many keys List takes under one lock.
const listBatch = 256

// List implements [Lister]. No lock is held while the caller's loop body runs.
func (m *Mem) List(ctx context.Context, opts ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		opts := opts
		var batch []string
		for {
			if err := ctx.Err(); err != nil {
				yield("", err)
				return
			}
			m.mu.RLock()
			batch = m.keys.appendFrom(batch[:0], opts, listBatch)
			m.mu.RUnlock()
			for _, key := range batch {
				if !yield(key, nil) {
					return
				}
			}
			if len(batch) < listBatch {
				return
			}
			opts.After = batch[len(batch)-1]
		}
	}
}

// Set implements [Writer].
func (m *Mem) Set(ctx context.Context, key string, value []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := ValidKey(key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(key, value)
	return nil
}

// set sets a valid key; m.mu is held.
func (m *Mem) set(key string, value []byte) {
	if _, ok := m.values[key]; !ok {
		if m.values == nil {
			m.values = map[string][]byte{}
		}
		m.keys.add(key)
	}
	m.values[key] = append(make([]byte, 0, len(value)), value...)
}

// Delete implements [Writer].
func (m *Mem) Delete(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key)
	return nil
}

// DeletePrefix implements [PrefixDeleter]; it is atomic.
func (m *Mem) DeletePrefix(ctx context.Context, prefix string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		keys := m.keys.appendFrom(nil, ListOptions{Prefix: prefix}, listBatch)
		if len(keys) == 0 {
			return nil
		}
		for _, key := range keys {
			m.remove(key)
		}
	}
}

func (m *Mem) remove(key string) {
	if _, ok := m.values[key]; ok {
		delete(m.values, key)
		m.keys.remove(key)
	}
}
