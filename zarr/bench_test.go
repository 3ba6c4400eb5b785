package zarr

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// benchArray is a float32 array of 16 chunks of 2 MiB in memory.
func benchArray(b *testing.B, spec Spec, o *OpenOptions) *Array {
	b.Helper()
	ctx := context.Background()
	spec.DataType = "float32"
	if spec.Shape == nil {
		spec.Shape, spec.Chunks = []int64{2048, 4096}, []int64{512, 1024}
	}
	a := must.Have(Create(ctx, &stillStore{Mem: kv.NewMem(), values: map[string]kv.Value{}}, "a", spec, o))
	data := make([]float32, 2048*4096)
	for i := range data {
		data[i] = float32(i % 1000)
	}
	must.Do(b, Write(ctx, a, Sel(), data))
	return a
}

// stillStore names its values by their keys, and allocates nothing to locate
// one again, as a snapshot of a database does.
type stillStore struct {
	*kv.Mem
	mu     sync.RWMutex
	values map[string]kv.Value
}

type stillValue struct {
	kv.Bytes
	id kv.ID
}

func (v *stillValue) ID() kv.ID { return v.id }

func (s *stillStore) Locate(ctx context.Context, key string) (kv.Value, error) {
	s.mu.RLock()
	v, ok := s.values[key]
	s.mu.RUnlock()
	if ok {
		return v, nil
	}
	b, err := kv.Get(ctx, s.Mem, key)
	if err != nil {
		return nil, err
	}
	still := &stillValue{Bytes: b}
	copy(still.id[:], sum([]byte(key)))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = still
	return still, nil
}

const rawCodecs = `[{"name":"bytes","configuration":{"endian":"little"}}]`

// BenchmarkReadAll reads 32 MiB in chunks of 2 MiB.
func BenchmarkReadAll(b *testing.B) {
	for _, c := range []struct {
		name string
		spec Spec
		o    *OpenOptions
	}{
		{"raw", Spec{Codecs: []byte(rawCodecs)}, nil},
		{"raw/runner", Spec{Codecs: []byte(rawCodecs)}, &OpenOptions{Runner: goRunner{}}},
		{"zstd", Spec{}, nil},
		{"zstd/cached", Spec{}, &OpenOptions{Cache: &mapCache{}}},
		{"shards", Spec{Codecs: []byte(rawCodecs), Shape: []int64{2048, 4096}, Chunks: []int64{128, 128}, Shards: []int64{512, 1024}}, nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			a := benchArray(b, c.spec, c.o)
			dst := make([]float32, 2048*4096)
			b.SetBytes(int64(4 * len(dst)))
			b.ReportAllocs()
			for b.Loop() {
				must.Do(b, ReadInto(context.Background(), a, Sel(), dst))
			}
		})
	}
}

// BenchmarkReadSmall reads boxes of n × n elements at random places.
func BenchmarkReadSmall(b *testing.B) {
	for _, c := range []struct {
		name string
		spec Spec
		o    *OpenOptions
	}{
		{"raw", Spec{Codecs: []byte(rawCodecs)}, nil},
		{"zstd/cached", Spec{}, &OpenOptions{Cache: &fullCache{}}},
		{"shards", Spec{Codecs: []byte(rawCodecs), Shape: []int64{2048, 4096}, Chunks: []int64{128, 128}, Shards: []int64{512, 1024}}, nil},
		{"shards/cached", Spec{Shape: []int64{2048, 4096}, Chunks: []int64{128, 128}, Shards: []int64{512, 1024}}, &OpenOptions{Cache: &fullCache{}}},
	} {
		for _, n := range []int64{1, 16} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				a := benchArray(b, c.spec, c.o)
				dst := make([]float32, n*n)
				r := rand.New(rand.NewPCG(1, 2))
				var index [2]Index
				for d, l := range a.Shape() { // every chunk is in the cache
					index[d] = Slice(0, l, 1)
				}
				must.Do(b, a.ReadBytes(context.Background(), Sel(), make([]byte, 4*2048*4096)))
				b.ReportAllocs()
				for b.Loop() {
					for d, l := range a.Meta().Shape {
						lo := r.Int64N(l - n)
						index[d] = Slice(lo, lo+n, 1)
					}
					must.Do(b, ReadInto(context.Background(), a, Sel(index[:]...), dst))
				}
			})
		}
	}
}

// fullCache forgets nothing.
type fullCache struct{ mapCache }

func (c *fullCache) Add(id kv.ID, codec [16]byte, chunk []byte) {
	c.mapCache.adds = 0
	c.mapCache.Add(id, codec, chunk)
}

// BenchmarkReadStrided reads every second or hundredth row and column.
func BenchmarkReadStrided(b *testing.B) {
	for _, c := range []struct {
		name string
		sel  Selection
	}{
		{"rows/2", Sel(Slice(None, None, 2))},
		{"rows/100", Sel(Slice(None, None, 100))},
		{"columns/2", Sel(All(), Slice(None, None, 2))},
		{"flip", Sel(Slice(None, None, -1), Slice(None, None, -1))},
		{"points", Points(randomList(1000, 2048), randomList(1000, 4096))},
		{"lists", Orthogonal(List(randomList(100, 2048)...), List(randomList(100, 4096)...))},
	} {
		b.Run(c.name, func(b *testing.B) {
			a := benchArray(b, Spec{Codecs: []byte(rawCodecs)}, nil)
			shape := must.Have(a.Resolve(c.sel))
			n, _ := elements(shape)
			dst := make([]float32, n)
			b.SetBytes(4 * n)
			b.ReportAllocs()
			for b.Loop() {
				must.Do(b, ReadInto(context.Background(), a, c.sel, dst))
			}
		})
	}
}

func randomList(n int, below int64) []int64 {
	r := rand.New(rand.NewPCG(uint64(n), uint64(below)))
	list := make([]int64, n)
	for i := range list {
		list[i] = r.Int64N(below)
	}
	return list
}

// BenchmarkWriteAll writes 32 MiB in chunks of 2 MiB.
func BenchmarkWriteAll(b *testing.B) {
	for _, c := range []struct {
		name string
		spec Spec
	}{
		{"raw", Spec{Codecs: []byte(rawCodecs)}},
		{"rows", Spec{Codecs: []byte(rawCodecs), Chunks: []int64{128, 4096}, Shape: []int64{2048, 4096}}},
		{"shards", Spec{Codecs: []byte(rawCodecs), Shape: []int64{2048, 4096}, Chunks: []int64{128, 128}, Shards: []int64{512, 1024}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			a := benchArray(b, c.spec, nil)
			data := make([]float32, 2048*4096)
			for i := range data {
				data[i] = float32(i)
			}
			b.SetBytes(int64(4 * len(data)))
			b.ReportAllocs()
			for b.Loop() {
				must.Do(b, Write(context.Background(), a, Sel(), data))
			}
		})
	}
}
