package zarr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// gathering is a view that gathers: in any order, some at the same time, with
// bytes that are overwritten when they were taken.
type gathering struct {
	*kv.Mem
	mu    sync.Mutex
	rnd   *rand.Rand
	calls int
	wants int
	fail  func(key string) error
}

func (g *gathering) Gathers(context.Context, string) bool { return true }

func (g *gathering) Gather(ctx context.Context, wants []kv.Want, how kv.Gathering) error {
	g.mu.Lock()
	g.calls++
	g.wants += len(wants)
	order := g.rnd.Perm(len(wants))
	g.mu.Unlock()
	errs := make([]error, 3)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for k := w; k < len(order) && errs[w] == nil; k += len(errs) {
				errs[w] = g.one(ctx, order[k], &wants[order[k]], how)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (g *gathering) one(ctx context.Context, i int, w *kv.Want, how kv.Gathering) error {
	if g.fail != nil {
		if err := g.fail(w.Key); err != nil {
			return err
		}
	}
	v, err := kv.Locate(ctx, g.Mem, w.Key)
	if errors.Is(err, kv.ErrNotFound) {
		return how.Take(ctx, i, nil)
	}
	if err != nil || w.Limit > 0 && v.Size() > w.Limit {
		return errors.Join(err, how.Take(ctx, i, v))
	}
	off, n, err := w.Range.Resolve(v.Size())
	if err != nil {
		return how.Take(ctx, i, v)
	}
	b, err := kv.ReadValue(ctx, v, kv.Span(off, n))
	if err != nil {
		return err
	}
	err = how.Take(ctx, i, kv.Held(v, off, b))
	for k := range b {
		b[k] = 0xee
	}
	return err
}

// TestReadGathered reads random selections of arrays of many kinds from a view
// that gathers, and finds what it finds chunk by chunk.
func TestReadGathered(t *testing.T) {
	bg := context.Background()
	seed := must.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for _, spec := range []Spec{
		{Chunks: []int64{7, 9}, Codecs: []byte(`[{"name":"bytes","configuration":{"endian":"little"}}]`)},
		{Chunks: []int64{7, 9}, Codecs: []byte(`[{"name":"transpose","configuration":{"order":[1,0]}},{"name":"bytes","configuration":{"endian":"big"}}]`)},
		{Chunks: []int64{7, 9}, Codecs: []byte(`[{"name":"bytes","configuration":{"endian":"little"}},{"name":"gzip","configuration":{"level":1}}]`)},
		{Chunks: []int64{16, 16}, Codecs: []byte(`[{"name":"bytes","configuration":{"endian":"little"}},{"name":"blosc","configuration":{"cname":"lz4","clevel":1,"shuffle":"shuffle","typesize":4,"blocksize":256}}]`)},
		{Chunks: []int64{4, 3}, Shards: []int64{16, 12}, Codecs: []byte(`[{"name":"bytes","configuration":{"endian":"little"}},"crc32c"]`)},
	} {
		mem := kv.NewMem()
		spec.Shape, spec.DataType = []int64{40, 50}, "uint32"
		a := must.Get(Create(bg, mem, "a", spec, nil))(t)
		data := make([]byte, 4*40*50)
		for i := range data {
			data[i] = byte(rnd.Uint32())
		}
		must.Do(t, a.WriteBytes(bg, Sel(), data))
		must.Do(t, mem.Delete(bg, a.ChunkKey([]int64{1, 1})))
		g := &gathering{Mem: mem, rnd: rnd}
		gathered := must.Get(OpenArray(bg, g, "a", nil))(t)
		for range 100 {
			var idx [2]Index
			for d, n := range []int64{40, 50} {
				switch lo := rnd.Int64N(n); rnd.IntN(4) {
				case 0:
					idx[d] = List(lo, rnd.Int64N(n), rnd.Int64N(n))
				default:
					idx[d] = Slice(lo, lo+1+rnd.Int64N(n-lo), 1+rnd.Int64N(3))
				}
			}
			sel := Orthogonal(idx[:]...)
			if rnd.IntN(5) == 0 {
				sel = Points([]int64{rnd.Int64N(40), rnd.Int64N(40), 3}, []int64{rnd.Int64N(50), rnd.Int64N(50), 4})
			}
			shape := must.Get(a.Resolve(sel))(t)
			n := 4
			for _, k := range shape {
				n *= int(k)
			}
			want, got := make([]byte, n), make([]byte, n)
			must.Do(t, a.ReadBytes(bg, sel, want))
			if err := gathered.ReadBytes(bg, sel, got); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: %v: other values, %v", spec.Codecs, idx, err)
			}
		}
		if g.calls != 100 || g.wants < 100 {
			t.Errorf("gathered %d times, %d chunks", g.calls, g.wants)
		}
		boom := errors.New("boom")
		g.fail = func(key string) error {
			if key == a.ChunkKey([]int64{0, 1}) {
				return fmt.Errorf("%s: %w", key, boom)
			}
			return nil
		}
		if err := gathered.ReadBytes(bg, Sel(), data); !errors.Is(err, boom) {
			t.Error(err)
		}
	}
}
