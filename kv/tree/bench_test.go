package tree

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/digest"
)

// coord appends a number as chunk maps keep coordinates: big-endian in the
// fewest bytes, order-preserving.
func coord(dst []byte, n uint64) []byte {
	size := max(1, (bits.Len64(n)+6)/7)
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	b[8-size] |= ^byte(0xff >> (size - 1))
	return append(dst, b[8-size:]...)
}

// chunks yields n chunks of an array with 10×10 chunks per time step, with the
// value that set gives to chunk i.
func chunks(n int, set func(i int, r *rand.Rand, v *Value)) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		r := rand.New(rand.NewPCG(1, 2))
		var e Entry
		for i := range n {
			e.Key = chunkKey(e.Key[:0], i)
			set(i, r, &e.Value)
			if !yield(e, nil) {
				return
			}
		}
	}
}

func chunkKey(dst []byte, i int) []byte {
	dst = coord(dst, uint64(i/100))
	dst = coord(dst, uint64(i/10%10))
	return coord(dst, uint64(i%10))
}

// natives sets payloads as one writer appends them: a header before, checksums
// after, irregular lengths.
func natives() func(int, *rand.Rand, *Value) {
	end := uint64(0)
	return func(i int, r *rand.Rand, v *Value) {
		*v = Value{Kind: KindNative, Length: 700_000 + r.Uint64N(600_000)}
		v.Pack[15] = byte(i / 4000)
		binary.LittleEndian.PutUint64(v.Sum[:], r.Uint64())
		binary.LittleEndian.PutUint64(v.Sum[8:], r.Uint64())
		binary.LittleEndian.PutUint32(v.Sum[16:], r.Uint32())
		if i%4000 == 0 {
			end = 0
		}
		v.Offset = (end+80+4095)&^4095 + 0
		end = v.Offset + v.Length + 4*((v.Length+65535)/65536)
	}
}

// virtuals sets references into files of perFile chunks, which lie one after the
// other with irregular lengths.
func virtuals(perFile int) func(int, *rand.Rand, *Value) {
	var src Source
	end := uint64(0)
	return func(i int, r *rand.Rand, v *Value) {
		if i%perFile == 0 {
			src.URL = fmt.Sprintf("s3://bucket/dir/file_%06d.nc4", i/perFile)
			end = 23_816
		}
		*v = Value{Kind: KindVirtual, Source: src, Offset: end, Length: 700_000 + r.Uint64N(600_000)}
		end += v.Length
	}
}

func inlines(i int, r *rand.Rand, v *Value) {
	v.Kind = KindInline
	v.Inline = v.Inline[:0]
	for range 20 + r.IntN(60) {
		v.Inline = append(v.Inline, byte(r.Uint32()))
	}
}

func children(i int, r *rand.Rand, v *Value) {
	v.Kind = KindChild
	v.Child = Root{Name: digest.Of(binary.AppendUvarint(nil, uint64(i))), Height: 1, Flags: HasNative,
		Size: 500 + r.Uint32N(2000), Entries: 1000 + r.Uint64N(1000), Bytes: r.Uint64N(1e10)}
}

// kindsOfMaps are the maps that are measured.
var kindsOfMaps = []struct {
	name string
	make func() func(int, *rand.Rand, *Value)
}{
	{"native", natives},
	{"virtual8", func() func(int, *rand.Rand, *Value) { return virtuals(8) }},
	{"virtual1", func() func(int, *rand.Rand, *Value) { return virtuals(1) }},
	{"virtual1000", func() func(int, *rand.Rand, *Value) { return virtuals(1000) }},
	{"inline50", func() func(int, *rand.Rand, *Value) { return inlines }},
	{"child", func() func(int, *rand.Rand, *Value) { return children }},
}

func benchTree(tb testing.TB, n int, set func(int, *rand.Rand, *Value)) (*Tree, Root, *MemPages) {
	tb.Helper()
	m := NewMemPages()
	t := New(m, &Options{CacheBytes: 1 << 30})
	root := must.Get(t.Build(context.Background(), chunks(n, set)))(tb)
	return t, root, m
}

func mean(s []int) float64 {
	sum := 0
	for _, v := range s {
		sum += v
	}
	return float64(sum) / float64(max(1, len(s)))
}

// cachedBytes reads the whole map and returns what the cache holds then.
func cachedBytes(tb testing.TB, t *Tree, root Root) int64 {
	for _, err := range t.Scan(context.Background(), root, Span{}) {
		must.Do(tb, err)
	}
	return t.cache.bytes
}

// countPages counts what goes through a page store.
type countPages struct {
	Pages
	gets, puts, bytes int
}

func (c *countPages) GetPage(ctx context.Context, name Name) ([]byte, error) {
	c.gets++
	return c.Pages.GetPage(ctx, name)
}

func (c *countPages) PutPage(ctx context.Context, name Name, page []byte) error {
	c.puts++
	c.bytes += len(page)
	return c.Pages.PutPage(ctx, name, page)
}

// randomEdits sets random chunks of n anew.
func randomEdits(r *rand.Rand, n, edits int) []Edit {
	set := natives()
	at := map[int]bool{}
	for len(at) < edits {
		at[r.IntN(n)] = true
	}
	var out []Edit
	for i := range at {
		e := Edit{Key: chunkKey(nil, i)}
		set(1, r, &e.Value)
		e.Value.Pack[0] = 1
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Edit) int { return slices.Compare(a.Key, b.Key) })
	return out
}
