package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/gather"
)

// GetMany implements [kv.BatchReader]. Ranges of one key that lie close are read
// as one; requests run in parallel. If two answers have different versions of a
// key, the batch fails with kv.ErrChanged.
func (o *Objects) GetMany(ctx context.Context, reqs []kv.Request) ([][]byte, error) {
	b := batch{o: o, out: make([][]byte, len(reqs)), seen: map[string]Version{}}
	files := map[string]int{}
	var parts []gather.Part
	var others []int
	for i, q := range reqs {
		off, n, ok := q.Range.Bounds()
		if !ok || off < 0 || n <= 0 { // its position depends on the size of the value
			others = append(others, i)
			continue
		}
		file, ok := files[q.Key]
		if !ok {
			file = len(b.keys)
			files[q.Key], b.keys = file, append(b.keys, q.Key)
		}
		parts = append(parts, gather.Part{File: file, Off: off, N: n, Want: i})
	}
	opts := gather.Options{Gap: o.c.o.Gap, Most: o.c.o.MaxMerged, Parallel: o.c.o.Parallel, Memory: gather.NewMemory(math.MaxInt64)}
	err := gather.Read(ctx, parts, &b, opts)
	if err == nil {
		err = o.c.Each(ctx, len(others), func(ctx context.Context, k int) error {
			i := others[k]
			got, err := o.Get(ctx, reqs[i].Key, reqs[i].Range)
			b.out[i] = got
			if errors.Is(err, kv.ErrNotFound) {
				err = b.saw(reqs[i].Key, missing)
			}
			if err != nil {
				err = fmt.Errorf("get %q: %w", reqs[i].Key, err)
			}
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	return b.out, nil
}

// batch is one call of GetMany.
type batch struct {
	o    *Objects
	keys []string // by number of the file
	out  [][]byte

	mu   sync.Mutex
	seen map[string]Version // of the first answer for a key
}

// missing stands for the version of a key without a value.
const missing Version = "missing"

func (b *batch) Open(ctx context.Context, file int, rng kv.Range, limit int64, stale kv.Value) (kv.Value, []byte, error) {
	if stale != nil {
		return nil, nil, kv.ErrChanged
	}
	return b.o.LocateRange(ctx, b.keys[file], rng, limit)
}

func (b *batch) Take(_ context.Context, p gather.Part, file kv.Value, bits []byte, err error) error {
	key := b.keys[p.File]
	switch {
	case errors.Is(err, kv.ErrNotFound):
		err = b.saw(key, missing)
	case err == nil:
		b.out[p.Want] = bytes.Clone(bits)
		err = b.saw(key, file.(*value).info.Version)
	}
	if err != nil {
		return fmt.Errorf("get %q: %w", key, err)
	}
	return nil
}

// saw compares the version in an answer with that of the first answer for the key.
func (b *batch) saw(key string, v Version) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	first, ok := b.seen[key]
	if !ok {
		b.seen[key] = v
	} else if first != v {
		return fmt.Errorf("%w while it was read in parts", kv.ErrChanged)
	}
	return nil
}
