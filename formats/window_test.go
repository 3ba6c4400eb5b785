package formats_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// counted counts the reads of a value.
type counted struct {
	kv.Value
	reads atomic.Int64
}

func (c *counted) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	c.reads.Add(1)
	return c.Value.View(ctx, rng, fn)
}

// A window gives the bytes of the file, from anywhere, and to many at a time.
func TestWindow(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	data := make([]byte, 3<<20+123)
	for i := range data {
		data[i] = byte(rnd.Uint32())
	}
	for _, o := range []formats.WindowOptions{
		{Front: 256 << 10, Keep: 4 << 20},
		{Front: 100_000, Keep: 100 << 10, Gap: 200 << 10, Most: 1 << 20},
		{},
	} {
		o.Scheme = "x"
		w := must.Get(formats.OpenWindow(t.Context(), kv.Bytes(data), o))(t)
		var all sync.WaitGroup
		for g := range 4 {
			rnd := rand.New(rand.NewPCG(5, uint64(g)))
			all.Go(func() {
				for range 60 {
					var parts []formats.Part
					for range rnd.IntN(20) {
						off := rnd.Int64N(int64(len(data)) + 1)
						parts = append(parts, formats.Part{Off: off, N: rnd.Int64N(min(int64(len(data))-off, 150_000) + 1)})
					}
					list, err := w.ReadMany(t.Context(), parts)
					for i, p := range parts {
						one, oneErr := w.Bytes(t.Context(), p.Off, p.N)
						if want := data[p.Off : p.Off+p.N]; err != nil || oneErr != nil || !bytes.Equal(list[i], want) || !bytes.Equal(one, want) {
							t.Errorf("%+v: %v, %v", p, err, oneErr)
							return
						}
					}
				}
			})
		}
		all.Wait()
		for _, p := range []formats.Part{{Off: -1, N: 1}, {Off: 0, N: -1}, {Off: int64(len(data)), N: 1}, {Off: 1 << 62, N: 1 << 62}} {
			_, err := w.ReadMany(t.Context(), []formats.Part{p})
			if _, oneErr := w.Bytes(t.Context(), p.Off, p.N); !errors.Is(err, formats.ErrFormat) || !errors.Is(oneErr, formats.ErrFormat) {
				t.Errorf("%+v: %v, %v", p, err, oneErr)
			}
		}
	}
}

// Neighbours are one read, and what was read stays.
func TestWindowReads(t *testing.T) {
	const block = formats.BlockBytes
	file := &counted{Value: kv.Bytes(make([]byte, 100*block))}
	w := must.Get(formats.OpenWindow(t.Context(), file, formats.WindowOptions{Front: 2 * block, Keep: 100 * block, Gap: block, Most: 8 * block}))(t)
	for _, step := range []struct {
		blocks []int64
		reads  int64
	}{
		{[]int64{0, 1}, 1},                       // the front
		{[]int64{9, 5, 6, 20, 8, 1}, 3},          // 5 to 9 with a gap, and 20
		{[]int64{5, 6, 7, 8, 9, 20}, 3},          // all of them stay
		{[]int64{40, 41, 42, 43, 44, 45, 46}, 4}, // 7 together
		{[]int64{60, 62, 64, 66, 68, 70, 72}, 6}, // 60 to 66, 68 to 72
		{[]int64{59, 61, 63, 65, 67, 69, 71}, 8}, // 59 and 67 alone
		{[]int64{80, 83, 86}, 11},                // too far apart
	} {
		var parts []formats.Part
		for _, i := range step.blocks {
			parts = append(parts, formats.Part{Off: i * block, N: 100})
		}
		must.Get(w.ReadMany(t.Context(), parts))(t)
		if n := file.reads.Load(); n != step.reads {
			t.Errorf("%v: %d reads, want %d", step.blocks, n, step.reads)
		}
	}
}
