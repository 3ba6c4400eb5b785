package tree

import (
	"bytes"
	"context"
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestSources reads values of pages with many sources one by one, in order, and
// from some key on, and compares them with what was put.
func TestSources(t *testing.T) {
	ctx := context.Background()
	for name, set := range sourcePatterns {
		const n = 3000
		var want []Entry
		for e := range chunks(n, set) {
			e.Key = bytes.Clone(e.Key)
			want = append(want, e)
		}
		for step, cached := range map[int]int64{1: 1 << 20, 13: -1} {
			tr := New(NewMemPages(), &Options{CacheBytes: cached})
			root := must.Get(tr.Build(ctx, chunks(n, set)))(t)
			for i := 0; i < n; i += step {
				v, ok, err := tr.Get(ctx, root, want[i].Key)
				if err != nil || !ok || !v.Equal(&want[i].Value) {
					t.Fatalf("%s: value %d is %+v, %v, %v; want %+v", name, i, v, ok, err, want[i].Value)
				}
			}
			for from := 0; from < n; from = 3*from + 1 {
				i := from
				for e, err := range tr.Scan(ctx, root, Span{From: want[from].Key}) {
					if err != nil || !bytes.Equal(e.Key, want[i].Key) || !e.Value.Equal(&want[i].Value) {
						t.Fatalf("%s: entry %d from %d on is %+v, %v; want %+v", name, i, from, e, err, want[i])
					}
					i++
				}
				if i != n {
					t.Fatalf("%s: the scan from %d ends at %d", name, from, i)
				}
			}
		}
	}
}

// TestSourceNumbers gives sources in any order to the encoder and compares their
// numbers with those of a map.
func TestSourceNumbers(t *testing.T) {
	seed := must.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	var e sourceEncoder
	for range 200 {
		e.reset()
		want, list := map[Source]int{}, []Source(nil)
		ascending := rng.IntN(2) == 0
		for i := range 1 + rng.IntN(60) {
			n := rng.IntN(8)
			if ascending {
				n = i / (1 + rng.IntN(2)) // goes back at times
			}
			s := Source{URL: fmt.Sprintf("s3://bucket/%03d.nc%s", n, strings.Repeat("x", n%3))}
			if rng.IntN(10) == 0 {
				s.Validator, s.Whole = fmt.Sprint(rng.IntN(2)), rng.IntN(2) == 0
			}
			if _, ok := want[s]; !ok {
				want[s] = len(list)
				list = append(list, s)
			}
			if got := e.id(&s); got != want[s] {
				t.Fatalf("%+v is number %d, want %d", s, got, want[s])
			}
		}
		if !slices.Equal(e.list, list) {
			t.Fatalf("%+v, want %+v", e.list, list)
		}
	}
}

func TestCommonEnds(t *testing.T) {
	seed := must.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 2))
	text := func() string {
		b := make([]byte, rng.IntN(30))
		for i := range b {
			b[i] = byte('a' + rng.IntN(12)/11)
		}
		return string(b)
	}
	for range 20_000 {
		a, b := text(), text()
		if rng.IntN(4) == 0 {
			b = a[:rng.IntN(len(a)+1)] + b
		}
		front, back := 0, 0
		for front < min(len(a), len(b)) && a[front] == b[front] {
			front++
		}
		for back < min(len(a), len(b))-front && a[len(a)-1-back] == b[len(b)-1-back] {
			back++
		}
		if f, k := commonEnds(a, b); f != front || k != back {
			t.Fatalf("%q and %q share %d and %d bytes, got %d and %d", a, b, front, back, f, k)
		}
	}
}
