package meta

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

var keyRows = []struct {
	keys   ChunkKeys
	coords []int64
	want   string
}{
	{DefaultKeys('/', 3), []int64{1, 23, 45}, "c/1/23/45"},
	{DefaultKeys('.', 3), []int64{1, 23, 45}, "c.1.23.45"},
	{DefaultKeys('/', 0), []int64{}, "c"},
	{DefaultKeys('.', 0), []int64{}, "c"},
	{V2Keys('.', 3), []int64{1, 23, 45}, "1.23.45"},
	{V2Keys('/', 3), []int64{1, 23, 45}, "1/23/45"},
	{V2Keys('.', 1), []int64{0}, "0"},
	{V2Keys('/', 0), []int64{}, "0"},
	{V2Keys('.', 0), []int64{}, "0"},
	{newKeys(keysDraft, '/', 2), []int64{0, 1}, "c0/1"},
	{newKeys(keysDraft, '/', 0), []int64{}, "c0"},
	{V2Keys('.', 2), []int64{math.MaxInt64, 0}, "9223372036854775807.0"},
}

func TestChunkKeys(t *testing.T) {
	for _, r := range keyRows {
		if got := string(r.keys.Append([]byte("a/"), r.coords)); got != "a/"+r.want {
			t.Errorf("%v: %s, want %s", r.coords, got, r.want)
		}
		if got, ok := r.keys.Parse(r.want); !ok || !slices.Equal(got, r.coords) {
			t.Errorf("%s: %v, %v", r.want, got, ok)
		}
		if len(r.coords) > 0 && !strings.HasPrefix(r.want, r.keys.Prefix()) {
			t.Errorf("%s does not begin with %q", r.want, r.keys.Prefix())
		}
		m := &Meta{Array: true, Keys: r.keys}
		prefix, sep, rank, ok := m.Form()
		if ok != (len(r.coords) > 0) || prefix != r.keys.Prefix() || sep != r.keys.Separator() || rank != r.keys.Rank() {
			t.Errorf("Form: %q %q %d %v", prefix, sep, rank, ok)
		}
	}
}

func TestChunkKeysRefused(t *testing.T) {
	for _, key := range []string{"", "c", "c/", "c/1", "c/1/2/3", "c/1/", "c//1", "c/01/2", "c/1/02", "c/-1/2", "c/+1/2", "c/1/2/", "/c/1/2", "c/1.2", "1/2",
		"c/1/9223372036854775808", "c/1/18446744073709551617", "c/1/99999999999999999999", "c/ 1/2", "c/1/a", "c/1/２", "zarr.json", "C/1/2"} {
		if got, ok := DefaultKeys('/', 2).Parse(key); ok {
			t.Errorf("%q is %v", key, got)
		}
	}
	for _, key := range []string{"", "c/0", "0.0", "1", "00"} {
		if got, ok := V2Keys('.', 0).Parse(key); ok {
			t.Errorf("%q is %v", key, got)
		}
	}
	if got, ok := (ChunkKeys{}).Parse(""); ok {
		t.Errorf("the zero ChunkKeys spells %v", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("separator - does not panic")
		}
	}()
	V2Keys('-', 1)
}

func TestChunkKeysRoundTrip(t *testing.T) {
	seed := must.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		k := newKeys(keyEncoding(1+r.IntN(3)), "/."[r.IntN(2)], r.IntN(5))
		coords := make([]int64, k.rank)
		for i := range coords {
			coords[i] = r.Int64() >> r.IntN(63)
		}
		key := string(k.Append(nil, coords))
		if got, ok := k.Parse(key); !ok || !slices.Equal(got, coords) {
			t.Fatalf("seed %d: %v is %q, which is %v, %v", seed, coords, key, got, ok)
		}
	}
}

func TestChunkKeysAllocate(t *testing.T) {
	k, coords, buf := DefaultKeys('/', 3), []int64{1, 2, 3}, make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() { buf = k.Append(buf[:0], coords) }); n > 0 {
		t.Errorf("Append: %v allocations", n)
	}
}

func FuzzChunkKeys(f *testing.F) {
	for _, r := range keyRows {
		f.Add(r.want, uint8(r.keys.enc), r.keys.sep == '/', uint8(r.keys.rank))
	}
	f.Fuzz(func(t *testing.T, key string, enc uint8, slash bool, rank uint8) {
		k := newKeys(keyEncoding(enc%3+1), map[bool]byte{true: '/', false: '.'}[slash], int(rank)%(MaxRank+1))
		coords, ok := k.Parse(key)
		if !ok {
			return
		}
		if len(coords) != k.rank || string(k.Append(nil, coords)) != key {
			t.Fatalf("%q is %v, which is %q", key, coords, k.Append(nil, coords))
		}
	})
}
