package namespace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// benchMillion is a space with an array of 1000 × 1000 chunks, made once.
var benchMillion = sync.OnceValues(func() (*bigSpace, toySpace) {
	b := newBigSpace(new(testing.B), 1000, 100)
	s := newToySpace(1)
	s.Space.Tree = tree.New(b.pages, &tree.Options{CacheBytes: 256 << 20})
	return b, s
})

func BenchmarkGet(b *testing.B) {
	ctx := context.Background()
	big, s := benchMillion()
	rnd := rand.New(rand.NewPCG(1, 2))
	keys := make([]string, 1<<12)
	for i := range keys {
		keys[i] = fmt.Sprintf("g/big/c/%d/%d", rnd.IntN(1000), rnd.IntN(1000))
		if _, _, err := s.Get(ctx, big.root, keys[i]); err != nil { // into the cache
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, ok, err := s.Get(ctx, big.root, keys[i%len(keys)]); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

// BenchmarkGetHome is the part of get that is not the search in the chunk map.
func BenchmarkGetHome(b *testing.B) {
	ctx := context.Background()
	big, s := benchMillion()
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := s.Get(ctx, big.root, "g/big/nothing"); ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

// BenchmarkApplyOne puts one chunk among a million.
func BenchmarkApplyOne(b *testing.B) {
	ctx := context.Background()
	big, s := benchMillion()
	rnd := rand.New(rand.NewPCG(1, 2))
	pages := &countingPages{Pages: big.pages}
	sp := s.With(pages)
	var sizes []int64
	b.ReportAllocs()
	for b.Loop() {
		before := pages.written.Load()
		key := fmt.Sprintf("g/big/c/%d/%d", rnd.IntN(1000), rnd.IntN(1000))
		if _, err := sp.Apply(ctx, big.root, []Edit{{Key: key, Value: native(rnd.IntN(1 << 30))}}); err != nil {
			b.Fatal(err)
		}
		sizes = append(sizes, pages.written.Load()-before)
	}
	slices.Sort(sizes)
	b.ReportMetric(float64(sizes[len(sizes)/2]), "median-bytes")
	b.ReportMetric(float64(pages.writes.Load())/float64(b.N), "pages/op")
}

// BenchmarkApplyMillion imports an array of a million chunks.
func BenchmarkApplyMillion(b *testing.B) {
	ctx := context.Background()
	doc := Edit{Key: "g/big/zarr.json", Value: inline(bigDoc)}
	for _, c := range []struct {
		name  string
		edits []Edit
	}{
		{"slash", append(gridEdits("g/big/", 1000), doc)},
		{"documents", gridEdits("g/big/", 1000)}, // no metadata: every chunk is a document
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := newToySpace(1)
				if _, err := s.Apply(ctx, tree.Root{}, c.edits); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(c.edits)*b.N)/b.Elapsed().Seconds()/1e6, "M/s")
		})
	}
	b.Run("into", func(b *testing.B) { // a full array, every tenth chunk
		big, s := benchMillion()
		var edits []Edit
		for i, e := range c10(gridEdits("g/big/", 1000)) {
			e.Value = native(i + 7)
			edits = append(edits, e)
		}
		for b.Loop() {
			if _, err := s.Apply(ctx, big.root, edits); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(edits)*b.N)/b.Elapsed().Seconds()/1e6, "M/s")
	})
}

func c10(edits []Edit) (out []Edit) {
	for i := 0; i < len(edits); i += 10 {
		out = append(out, edits[i])
	}
	return out
}

// BenchmarkRehomeMillion puts the metadata of a million chunks after them.
func BenchmarkRehomeMillion(b *testing.B) {
	ctx := context.Background()
	s := newToySpace(1)
	root := s.mustApply(b, tree.Root{}, gridEdits("g/big/", 1000))
	for b.Loop() {
		if _, err := s.Apply(ctx, root, []Edit{{Key: "g/big/zarr.json", Value: inline(bigDoc)}}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(1000000*b.N)/b.Elapsed().Seconds()/1e6, "M/s")
}

func BenchmarkListMillion(b *testing.B) {
	ctx := context.Background()
	big, s := benchMillion()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n = 0
		for _, err := range s.List(ctx, big.root, "g/", "") {
			must.Do(b, err)
			n++
		}
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds()/1e6, "M/s")
}

func BenchmarkScanMillion(b *testing.B) {
	ctx := context.Background()
	big, s := benchMillion()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n = 0
		for _, err := range s.Scan(ctx, big.root, "g/") {
			must.Do(b, err)
			n++
		}
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds()/1e6, "M/s")
}

func BenchmarkMoveMillion(b *testing.B) {
	ctx := context.Background()
	big, s := benchMillion()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Move(ctx, big.root, "g/big", "many/big"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDiffOne(b *testing.B) {
	ctx := context.Background()
	big, s := benchMillion()
	root := s.mustApply(b, big.root, []Edit{{Key: "g/big/c/500/500", Value: inline("x")}})
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range s.Diff(ctx, big.root, root, "") {
			must.Do(b, err)
			n++
		}
		if n != 1 {
			b.Fatal(n)
		}
	}
}

func BenchmarkMergeOne(b *testing.B) {
	ctx := context.Background()
	big, s := benchMillion()
	ours := s.mustApply(b, big.root, []Edit{{Key: "g/big/c/500/500", Value: inline("x")}})
	theirs := s.mustApply(b, big.root, []Edit{{Key: "g/big/c/600/500", Value: inline("x")}})
	b.ReportAllocs()
	for b.Loop() {
		if _, conflicts, err := s.Merge(ctx, big.root, ours, theirs, MergeOptions{}); err != nil || len(conflicts) > 0 {
			b.Fatal(conflicts, err)
		}
	}
}

// BenchmarkImportArrays makes 20,000 small arrays in one apply.
func BenchmarkImportArrays(b *testing.B) {
	ctx := context.Background()
	var edits []Edit
	for i := range 20000 {
		path := fmt.Sprintf("g/%d/", i)
		edits = append(edits, Edit{Key: path + "c/0/0", Value: native(i)}, Edit{Key: path + "zarr.json", Value: inline(bigDoc)})
	}
	slices.SortFunc(edits, func(a, b Edit) int { return strings.Compare(a.Key, b.Key) })
	for b.Loop() {
		s := newToySpace(1)
		if _, err := s.Apply(ctx, tree.Root{}, edits); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(20000*b.N)/b.Elapsed().Seconds()/1e6, "Marrays/s")
}
