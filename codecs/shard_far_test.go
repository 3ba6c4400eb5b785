package codecs_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// together is a Source that hands out several ranges at a time: none before all
// of them are asked for.
type together struct {
	codecs.Bytes
	gap  int64
	err  error // of range 1
	near bool  // ranges are better read in turn

	mu     sync.Mutex
	single int
	many   [][]codecs.Extent
}

func (s *together) Gap() int64        { return s.gap }
func (s *together) ReadsRanges() bool { return !s.near }

func (s *together) ReadRange(ctx context.Context, off, n int64, fn func([]byte) error) error {
	s.mu.Lock()
	s.single++
	s.mu.Unlock()
	return s.Bytes.ReadRange(ctx, off, n, fn)
}

func (s *together) ReadRanges(ctx context.Context, ranges []codecs.Extent, fn func(int, []byte) error) error {
	s.mu.Lock()
	s.many = append(s.many, ranges)
	s.mu.Unlock()
	errs := make([]error, len(ranges))
	var begun, done sync.WaitGroup
	begun.Add(len(ranges))
	for i, r := range ranges {
		done.Go(func() {
			begun.Done()
			begun.Wait()
			if errs[i] = s.err; s.err == nil || i != 1 {
				b := bytes.Clone(s.Bytes[r.Off : r.Off+r.N])
				errs[i] = fn(i, b)
				clear(b)
			}
		})
	}
	done.Wait()
	return errors.Join(errs...)
}

// Inner chunks of a source that reads several ranges at a time are asked for at
// once, and come to the same elements.
func TestShardFar(t *testing.T) {
	box := func(a, b, c, d int) codecs.Box {
		return codecs.Box{Start: []int{a, b}, Count: []int{c, d}}
	}
	nested := shard(`[4,4]`, little, indexCRC, "start")
	for _, c := range []struct {
		name         string
		codec        string
		box          codecs.Box
		gap          int64
		single, many int // calls
		ranges       int // of the first ReadRanges
	}{
		{"a column", shard(`[4,4]`, little, indexCRC, "end"), box(0, 5, 16, 2), 64, 1, 1, 4},
		{"a box", shard(`[4,4]`, little, indexCRC, "end"), box(3, 3, 7, 6), 0, 1, 1, 3},
		{"one chunk", shard(`[4,4]`, little, indexCRC, "end"), box(0, 4, 1, 1), 64, 2, 0, 0},
		{"one run", shard(`[4,4]`, little, indexCRC, "end"), box(0, 0, 16, 16), 64, 1, 1, 1},
		{"shards in shards, whole", shard(`[8,8]`, nested, indexCRC, "end"), box(0, 0, 16, 16), 64, 1, 1, 1},
		{"shards in shards, in part", shard(`[8,8]`, nested, indexCRC, "end"), box(0, 6, 16, 1), 64, 1 + 2, 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bind(t, `[`+c.codec+`]`, dtype.NewInt(32), []int{16, 16}, []byte{1, 0, 0, 0})
			stored := must.Get(b.Encode(nil, ramp(256)))(t)
			want := must.Get(b.AppendBox(t0, nil, codecs.Bytes(stored), c.box))(t)
			src := &together{Bytes: stored, gap: c.gap}
			got, err := b.AppendBox(t0, nil, src, c.box)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("other elements, %v", err)
			}
			if src.single != c.single || len(src.many) != c.many || c.many > 0 && len(src.many[0]) != c.ranges {
				t.Errorf("%d single reads, %v at once", src.single, src.many)
			}
			src = &together{Bytes: stored, gap: c.gap, near: true}
			if got, err = b.AppendBox(t0, nil, src, c.box); err != nil || !bytes.Equal(got, want) || src.many != nil {
				t.Errorf("one by one: %v at once, %v", src.many, err)
			}
			if c.ranges < 2 {
				return
			}
			broken := errors.New("broken")
			if _, err := b.AppendBox(t0, nil, &together{Bytes: stored, gap: c.gap, err: broken}, c.box); !errors.Is(err, broken) || errors.Is(err, codecs.ErrCorrupt) {
				t.Errorf("a range that fails: %v", err)
			}
		})
	}
}

// An inner chunk that does not decode is named, whichever comes first.
func TestShardFarCorrupt(t *testing.T) {
	b := bind(t, `[`+shard(`[4,4]`, little+`,"crc32c"`, indexCRC, "end")+`]`, dtype.NewInt(32), []int{16, 16}, nil)
	stored := must.Get(b.Encode(nil, ramp(256)))(t)
	x := must.Get(b.ReadIndex(t0, codecs.Bytes(stored)))(t)
	off, _, _, err := x.Chunk(9)
	must.Do(t, err)
	stored[off] ^= 1
	_, err = b.AppendBox(t0, nil, &together{Bytes: stored}, codecs.Box{Start: []int{0, 5}, Count: []int{16, 1}})
	if !errors.Is(err, codecs.ErrCorrupt) || !strings.Contains(err.Error(), "inner chunk 9") {
		t.Error(err)
	}
}

// Elements of variable length too.
func TestShardFarVariable(t *testing.T) {
	b := bind(t, `[`+shard(`[2,2]`, `"vlen-utf8"`, indexCRC, "end")+`]`, dtype.NewString(), []int{8, 8}, nil)
	w := must.Get(dtype.NewBuilder(nil, 64))(t)
	for i := range 64 {
		must.Do(t, w.Append([]byte(strings.Repeat("x", i%7))))
	}
	elems := must.Get(w.Finish())(t)
	stored := must.Get(b.Encode(nil, elems))(t)
	column := codecs.Box{Start: []int{1, 3}, Count: []int{6, 2}}
	want := must.Get(b.AppendBox(t0, nil, codecs.Bytes(stored), column))(t)
	src := &together{Bytes: stored}
	if got, err := b.AppendBox(t0, nil, src, column); err != nil || !bytes.Equal(got, want) {
		t.Errorf("other elements, %v", err)
	}
	if src.single != 1 || len(src.many) != 1 || len(src.many[0]) < 2 {
		t.Errorf("%d single reads, %v at once", src.single, src.many)
	}
}
