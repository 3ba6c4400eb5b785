package tree

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/zarrdb/zarrdb/kv/digest"
)

// glanceAt reads all values of a page that is only glanced at. What the whole page
// says is expected, or no panic if it is damaged and full is nil.
func glanceAt(t *testing.T, name string, raw []byte, full *page) (glanced bool) {
	t.Helper()
	p, err := parsePage(digest.Of(raw), raw, true)
	if err != nil {
		if full != nil || !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%s: glance: %v", name, err)
		}
		return false
	}
	if full != nil {
		if err := p.is(&full.self); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for i := range p.len() {
		if !p.isLeaf() {
			break
		}
		var got, want Value
		if err := p.get(i, &got); err != nil {
			if full != nil || !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%s: value %d: %v", name, i, err)
			}
			continue
		}
		if got.Length > MaxExtent || got.Offset > MaxExtent {
			t.Fatalf("%s: value %d is %+v", name, i, got)
		}
		if full == nil {
			continue
		}
		if full.value(i, &want); !got.Equal(&want) {
			t.Fatalf("%s: value %d is %+v, at a glance %+v", name, i, want, got)
		}
	}
	return p.glanced
}

// layouts are where payloads lie in their files, by the place where the one before
// ends.
var layouts = map[string]func(i int, r *rand.Rand, end uint64) uint64{
	"in a row": func(_ int, _ *rand.Rand, end uint64) uint64 { return end },
	"gaps": func(i int, _ *rand.Rand, end uint64) uint64 {
		if i%13 == 5 {
			end += 700
		}
		return end
	},
	"same gap":   func(_ int, _ *rand.Rand, end uint64) uint64 { return end + 80 },
	"same place": func(int, *rand.Rand, uint64) uint64 { return 4096 },
	"backwards":  func(i int, _ *rand.Rand, _ uint64) uint64 { return 1<<50 - uint64(i)<<20 },
	"anywhere":   func(_ int, r *rand.Rand, _ uint64) uint64 { return r.Uint64N(1 << 40) },
}

// TestGlance compares look-ups that glance with whole pages, and counts that pages
// are glanced at, but not those whose offsets are far to walk.
func TestGlance(t *testing.T) {
	for layout, next := range layouts {
		for _, native := range []bool{false, true} {
			for _, perFile := range []int{1, 3, 8, 1000} {
				name := fmt.Sprintf("%s, native %v, %d a file", layout, native, perFile)
				tr, root, m := benchTree(t, 5000, func(i int, r *rand.Rand, v *Value) {
					end := v.Offset + v.Length
					if v.Length = r.Uint64N(200_000); native {
						end = alignRef(end, v.Length)
					}
					if v.Offset = next(i, r, end); i%perFile == 0 && layout != "backwards" {
						v.Offset = 24_000 + uint64(i/perFile%3)*8
					}
					if native {
						v.Kind, v.Pack[3] = KindNative, byte(i/perFile%200)
						v.Sum = digest.Of(v.Pack[:])
					} else {
						v.Kind, v.Source.URL = KindVirtual, fmt.Sprint("s3://b/", i/perFile%900)
					}
				})
				leaves, glanced := 0, 0
				err := tr.Walk(context.Background(), root, func(n Name, height uint8, _ int) (bool, error) {
					raw, err := m.GetPage(context.Background(), n)
					if err != nil {
						return false, err
					}
					full, err := decodePage(n, raw)
					if err != nil {
						return false, err
					}
					if height == 0 {
						leaves++
					}
					if glanceAt(t, name, raw, full) {
						glanced++
					}
					return height > 0, nil
				}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if wrong := map[string]int{"in a row": leaves - glanced, "anywhere": glanced}[layout]; perFile > 8 && 10*wrong > leaves {
					t.Errorf("%s: %d of %d leaves are glanced at", name, glanced, leaves)
				}
			}
		}
	}
}

// TestGlanceIsNoMore uses a map after look-ups that glanced at its pages: all else
// sees whole pages, and the cache counts what it holds.
func TestGlanceIsNoMore(t *testing.T) {
	ctx := context.Background()
	const n = 20_000
	for _, k := range kindsOfMaps[:3] {
		for _, limit := range []int64{1 << 30, 100 << 10, -1} {
			_, root, m := benchTree(t, n, k.make())
			tr := New(m, &Options{CacheBytes: limit})
			want := map[string]Value{}
			r := rand.New(rand.NewPCG(1, 1))
			for range 300 {
				key := chunkKey(nil, r.IntN(n))
				v, ok, err := tr.Get(ctx, root, key)
				if err != nil || !ok {
					t.Fatalf("%s: %x: %v, %v", k.name, key, ok, err)
				}
				want[string(key)] = v
			}
			entries, bytes := uint64(0), uint64(0)
			for e, err := range tr.Scan(ctx, root, Span{}) {
				if err != nil {
					t.Fatal(err)
				}
				if v, ok := want[string(e.Key)]; ok && !v.Equal(&e.Value) {
					t.Errorf("%s: %x is %+v, looked up %+v", k.name, e.Key, e.Value, v)
				}
				entries++
				bytes += e.Value.bytes()
			}
			if entries != root.Entries || bytes != root.Bytes {
				t.Errorf("%s: %d entries, %d bytes; the root says %d and %d", k.name, entries, bytes, root.Entries, root.Bytes)
			}
			if tr.cache != nil {
				checkCache(t, tr.cache)
			}
		}
	}
}
