package tree

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/digest"
)

// TestXXH64 checks published values: the cuts of every stored map depend on it.
func TestXXH64(t *testing.T) {
	long := "Nobody inspects the spammish repetition"
	for _, test := range []struct {
		in   string
		seed uint64
		want uint64
	}{
		{"", 0, 0xef46db3751d8e999},
		{"a", 0, 0xd24ec4f1a98c6e5b},
		{"as", 0, 0x1c330fb2d66be179},
		{"asd", 0, 0x631c37ce72a97393},
		{"asdf", 0, 0x415872f599cea71e},
		{long, 0, 0xfbcea83c8a378bf1},
		{"", 0x7b, 0xe0db84de91f3e198},
		{"xxhash", 0, 0x32dd38952c4bc720},
		{"xxhash", 20141025, 0xb559b98d844e0635},
	} {
		if got := xxh64([]byte(test.in), test.seed); got != test.want {
			t.Errorf("%q, seed %d: %x, want %x", test.in, test.seed, got, test.want)
		}
	}
}

// TestCuts checks the rule at its bounds.
func TestCuts(t *testing.T) {
	s := tinyShape
	few := []byte("few") // with a hash that cuts at the least weight
	for i := 0; xxh64(few, 0)>>36 >= 40*40*40*40-30*30*30*30; i++ {
		few = fmt.Append(nil, i)
	}
	none := []byte("none") // with a hash that never cuts
	for i := 0; xxh64(none, 0)>>36 < 1<<28-1<<20; i++ {
		none = fmt.Append(nil, i)
	}
	for _, test := range []struct {
		key    []byte
		w0, w1 uint64
		want   bool
	}{
		{few, 30, s.min, true},
		{few, 29, s.min - 1, false},
		{none, s.max - 2, s.max - 1, false},
		{none, s.max - 1, s.max, true},
		{none, 10, s.max + 5000, true},
		{none, 0, 127, false},
		{none, 0, 128, true}, // the whole hazard of one scale
	} {
		if got := s.cuts(0, test.key, test.w0, test.w1); got != test.want {
			t.Errorf("%q from %d to %d: %v", test.key, test.w0, test.w1, got)
		}
	}
}

// TestFormat holds the names of some maps. They may never change within a format:
// databases with the same content have the same names everywhere.
func TestFormat(t *testing.T) {
	for name, want := range map[string]string{
		"native":   "82c7709d7084ad22d043aee4728e110c1a38508f 1 3747 20000 20010738618",
		"virtual8": "269448fa18852b75546740cbe512d7106faa2dc7 1 904 20000 19989947455",
		"virtual1": "fd692307fb560888a7bacf0cf8ebabc07f6176bf 1 908 20000 19989947455",
		"inline50": "016a1649fce7542a922203d4e375b4322587cb3c 2 106 20000 983005",
		"child":    "fb48454de06a1f128e386a4470559051aaef7c01 2 85 20000 100053295214829",
	} {
		for _, k := range kindsOfMaps {
			if k.name != name {
				continue
			}
			_, root, _ := benchTree(t, 20_000, k.make())
			if got := fmt.Sprint(root.Name, root.Height, root.Size, root.Entries, root.Bytes); got != want {
				t.Errorf("%q: %q", name, got)
			}
		}
	}
	tr := New(NewMemPages(), nil)
	empty, err := tr.Build(context.Background(), model{}.entries())
	if err != nil || !empty.Empty() {
		t.Errorf("the empty map is %+v, %v", empty, err)
	}
}

func TestRootBinary(t *testing.T) {
	for _, r := range []Root{{}, {Name: digest.Of(nil), Size: minPageSize, Entries: 1},
		{Name: digest.Of([]byte("x")), Height: maxHeight, Flags: allFlags, Size: maxPageSize, Entries: 1<<64 - 1, Bytes: 1<<64 - 1}} {
		b := append(r.AppendBinary([]byte("head")), "tail"...)
		got, rest, err := DecodeRoot(b[4:])
		if err != nil || got != r || string(rest) != "tail" {
			t.Errorf("%+v is decoded as %+v, %q, %v", r, got, rest, err)
		}
		for n := range len(b) - 8 {
			if _, _, err := DecodeRoot(b[4 : 4+n]); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%d bytes of a root: %v", n, err)
			}
		}
	}
}

func TestDecodeImpossibleRoot(t *testing.T) {
	good := Root{Name: digest.Of(nil), Size: 100, Entries: 1}
	for name, change := range map[string]func(r *Root){
		"height":  func(r *Root) { r.Height = maxHeight + 1 },
		"flags":   func(r *Root) { r.Flags = 8 },
		"small":   func(r *Root) { r.Size = minPageSize - 1 },
		"large":   func(r *Root) { r.Size = maxPageSize + 1 },
		"entries": func(r *Root) { r.Entries = 0 },
	} {
		bad := good
		change(&bad)
		if r, _, err := DecodeRoot(bad.AppendBinary(nil)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestLimits checks what is just allowed and what is refused, by Apply and by
// Build.
func TestLimits(t *testing.T) {
	ctx := context.Background()
	key := func(n int) []byte { return bytes.Repeat([]byte{'k'}, n) }
	virtual := func(url, validator int, offset, length uint64) Value {
		return Value{Kind: KindVirtual, Offset: offset, Length: length,
			Source: Source{URL: strings.Repeat("u", url), Validator: strings.Repeat("v", validator)}}
	}
	for _, test := range []struct {
		name string
		e    Entry
		want error
	}{
		{"key", Entry{Key: key(maxKey)}, nil},
		{"long key", Entry{Key: key(maxKey + 1)}, errLimit},
		{"inline", Entry{Key: key(1), Value: Value{Inline: key(maxInline)}}, nil},
		{"long inline", Entry{Key: key(1), Value: Value{Inline: key(maxInline + 1)}}, errLimit},
		{"url", Entry{Value: virtual(maxURL, maxValidator, MaxExtent, MaxExtent)}, nil},
		{"long url", Entry{Value: virtual(maxURL+1, 0, 0, 0)}, errLimit},
		{"long validator", Entry{Value: virtual(0, maxValidator+1, 0, 0)}, errLimit},
		{"large offset", Entry{Value: virtual(0, 0, MaxExtent+1, 0)}, errLimit},
		{"large length", Entry{Value: Value{Kind: KindNative, Length: MaxExtent + 1}}, errLimit},
		{"unknown kind", Entry{Value: Value{Kind: numKinds}}, errInvalid},
		{"empty child", Entry{Value: Value{Kind: KindChild}}, nil},
		{"no such child", Entry{Value: Value{Kind: KindChild, Child: Root{Height: 1}}}, errInvalid},
	} {
		tr := New(NewMemPages(), nil)
		root, err := tr.Apply(ctx, Root{}, []Edit{{Key: test.e.Key, Value: test.e.Value}})
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
		built, err := tr.Build(ctx, func(yield func(Entry, error) bool) { yield(test.e, nil) })
		if !errors.Is(err, test.want) || built != root {
			t.Errorf("build %s: %v", test.name, err)
		}
		if test.want != nil {
			continue
		}
		if v, ok, err := tr.Get(ctx, root, test.e.Key); err != nil || !ok || !v.Equal(&test.e.Value) {
			t.Errorf("%s: got %+v, %v, %v", test.name, v, ok, err)
		}
	}
}

// TestLongKeys makes maps of keys of the largest size, where every leaf has one
// entry.
func TestLongKeys(t *testing.T) {
	m := model{}
	for i := range 40 {
		m[strings.Repeat("k", maxKey-2)+fmt.Sprintf("%02d", i)] = Value{Inline: []byte{byte(i)}}
	}
	tr := New(NewMemPages(), nil)
	w := &world{Rand: newRand(1), t: tr, keys: 9}
	var root Root
	for _, k := range m.keys() {
		root = must.Get(tr.Apply(context.Background(), root, []Edit{{Key: []byte(k), Value: m[k]}}))(t)
	}
	w.compare(t, []version{{model{}, Root{}}, {m, root}})
	if root.Height < 3 {
		t.Errorf("height %d", root.Height)
	}
}

func TestOrder(t *testing.T) {
	ctx := context.Background()
	tr := New(NewMemPages(), nil)
	for _, keys := range [][2]string{{"b", "a"}, {"a", "a"}, {"ab", "a"}, {"", ""}} {
		edits := []Edit{{Key: []byte(keys[0])}, {Key: []byte(keys[1])}}
		if _, err := tr.Apply(ctx, Root{}, edits); !errors.Is(err, errOrder) {
			t.Errorf("apply %q: %v", keys, err)
		}
		b := tr.NewBuilder(ctx)
		first, second := b.Add(&Entry{Key: edits[0].Key}), b.Add(&Entry{Key: edits[1].Key})
		if _, err := b.Finish(); first != nil || !errors.Is(second, errOrder) || !errors.Is(err, errOrder) {
			t.Errorf("build %q: %v, %v, %v", keys, first, second, err)
		}
	}
	b := tr.NewBuilder(ctx)
	if _, err := b.Finish(); err != nil {
		t.Error(err)
	}
	if err := b.Add(&Entry{}); !errors.Is(err, errInvalid) {
		t.Errorf("add after finish: %v", err)
	}
	broken := errors.New("broken")
	if _, err := tr.Build(ctx, func(yield func(Entry, error) bool) { yield(Entry{}, broken) }); err != broken {
		t.Errorf("build of a broken sequence: %v", err)
	}
}

// TestResolve checks that errors and refused values of a resolver end a merge.
func TestResolve(t *testing.T) {
	ctx := context.Background()
	tr := New(NewMemPages(), nil)
	one := func(v string) Root {
		r := must.Get(tr.Apply(ctx, Root{}, []Edit{{Key: []byte("k"), Value: Value{Inline: []byte(v)}}}))(t)
		return r
	}
	broken := errors.New("broken")
	_, err := tr.Merge(ctx, one("base"), one("ours"), one("theirs"), func([]byte, *Value, *Value, *Value) (*Value, error) {
		return nil, broken
	})
	if err != broken {
		t.Error(err)
	}
	_, err = tr.Merge(ctx, one("base"), one("ours"), one("theirs"), func([]byte, *Value, *Value, *Value) (*Value, error) {
		return &Value{Inline: make([]byte, maxInline+1)}, nil
	})
	if !errors.Is(err, errLimit) {
		t.Error(err)
	}
}

func TestContentSum(t *testing.T) {
	base := Value{Kind: KindVirtual, Source: Source{URL: "u", Validator: "v"}, Offset: 1, Length: 2}
	seen := map[digest.Sum]bool{base.ContentSum(): true}
	for _, change := range []func(v *Value){
		func(v *Value) { v.Source.URL = "uv" },
		func(v *Value) { v.Source = Source{URL: "uv"} },
		func(v *Value) { v.Source.Whole = true },
		func(v *Value) { v.Offset = 2 },
		func(v *Value) { v.Length = 1 },
	} {
		v := base
		change(&v)
		if seen[v.ContentSum()] || v.Equal(&base) {
			t.Errorf("%+v is like another", v)
		}
		seen[v.ContentSum()] = true
	}
	sum := digest.Of([]byte("x"))
	for _, v := range []Value{{Inline: []byte("x")}, {Kind: KindNative, Sum: sum}, {Kind: KindChild, Child: Root{Name: sum}}} {
		if v.ContentSum() != sum {
			t.Errorf("content of %v", v.Kind)
		}
	}
}

// TestEntriesOutlive checks that what Scan and Get returned is not touched by
// anything later.
func TestEntriesOutlive(t *testing.T) {
	ctx := context.Background()
	tr := New(NewMemPages(), &Options{CacheBytes: 1 << 15, shape: tinyShape})
	root := must.Get(tr.Build(ctx, chunks(2000, func(i int, _ *rand.Rand, v *Value) { v.Inline = fmt.Append(nil, i) })))(t)
	var all []Entry
	for e, err := range tr.Scan(ctx, root, Span{}) {
		must.Do(t, err)
		all = append(all, e)
	}
	for range tr.Scan(ctx, root, Span{}) {
		runtime.Gosched()
	}
	for i, e := range all {
		if !bytes.Equal(e.Key, chunkKey(nil, i)) || string(e.Value.Inline) != fmt.Sprint(i) {
			t.Fatalf("entry %d is now %q, %q", i, e.Key, e.Value.Inline)
		}
	}
}

// TestConcurrent uses one tree with a small cache from many goroutines.
func TestConcurrent(t *testing.T) {
	ctx := context.Background()
	m := NewMemPages()
	tr := New(m, &Options{CacheBytes: 64 << 10, shape: tinyShape})
	const n = 3000
	root := must.Get(tr.Build(ctx, chunks(n, natives())))(t)
	var wg sync.WaitGroup
	for g := range uint64(8) {
		wg.Go(func() {
			r := newRand(g)
			u := tr.With(m)
			for range 300 {
				if _, ok, err := u.Get(ctx, root, chunkKey(nil, r.IntN(n))); !ok || err != nil {
					t.Error(ok, err)
				}
			}
			i := 0
			for range u.Scan(ctx, root, Span{}) {
				i++
			}
			out, err := u.Apply(ctx, root, randomEdits(r, n, 20))
			if err != nil || i != n {
				t.Error(i, err)
			}
			changes := 0
			for range u.Diff(ctx, root, out, Span{}) {
				changes++
			}
			if changes != 20 {
				t.Errorf("%d changes", changes)
			}
		})
	}
	wg.Wait()
	checkCache(t, tr.cache)
}

// checkCache checks the accounts of an idle cache.
func checkCache(t *testing.T, c *Cache) {
	t.Helper()
	var bytes int64
	pages := 0
	sets := *c.sets.Load()
	for i := range sets {
		for j := range sets[i].pages {
			p := sets[i].pages[j].Load()
			if (p == nil) != (sets[i].tags[j].Load() == 0) {
				t.Error("tag without a page, or the reverse")
			}
			if p != nil {
				bytes += p.memory()
				pages++
			}
		}
	}
	if bytes != c.bytes || pages != c.pages || bytes > c.limit {
		t.Errorf("%d pages, %d bytes; the cache counts %d and %d of %d", pages, bytes, c.pages, c.bytes, c.limit)
	}
}

// TestCache fills caches of several sizes and checks that they keep to them, and
// that pages in use stay longer.
func TestCache(t *testing.T) {
	var pages []*page
	for i := range 400 {
		raw, root := func() ([]byte, Root) {
			var enc pageEncoder
			enc.reset(0)
			enc.add(&Entry{Key: fmt.Append(nil, i), Value: Value{Inline: make([]byte, 500)}})
			return enc.finish()
		}()
		p := must.Get(decodePage(root.Name, raw))(t)
		pages = append(pages, p)
	}
	for _, limit := range []int64{1, 4 << 10, 40 << 10, 100 << 10, 1 << 20} {
		c := NewCache(limit)
		hot := pages[0]
		hits, misses := 0, 0
		for i := range 4000 {
			for _, p := range []*page{hot, pages[(i*7)%len(pages)]} {
				if got := c.get(&p.self.Name); got == nil {
					c.put(p)
					c.put(p)
					if p == hot {
						misses++
					}
				} else if got != p {
					t.Fatal("another page")
				} else if p == hot {
					hits++
				}
			}
		}
		checkCache(t, c)
		if limit > 8<<10 && misses*20 > hits {
			t.Errorf("limit %d: the page in use is found %d times, not found %d times", limit, hits, misses)
		}
		if limit == 1<<20 && c.pages != len(pages) {
			t.Errorf("%d pages are kept where all have room", c.pages)
		}
		was, size := c.limit, c.Bytes()
		c.SetLimit(limit / 2)
		checkCache(t, c)
		if kept := c.Bytes(); limit == 1<<20 && kept != size && kept < limit/4 {
			t.Errorf("%d bytes of %d are kept in half of %d", kept, size, was)
		}
		c.SetLimit(4 << 20)
		for _, p := range pages {
			c.put(p)
		}
		checkCache(t, c)
		if c.pages != len(pages) {
			t.Errorf("limit %d: %d pages are kept when it has grown", limit, c.pages)
		}
		c.SetLimit(0)
		checkCache(t, c)
	}
}

// TestCacheGrows checks that no page is lost while the table of a cache grows,
// neither for its owner nor for a concurrent lookup.
func TestCacheGrows(t *testing.T) {
	c := NewCache(64 << 20)
	var known atomic.Int64
	pages := make([]*page, 10_000)
	for i := range pages {
		pages[i] = &page{self: Root{Name: digest.Of(binary.LittleEndian.AppendUint32(nil, uint32(i)))}}
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for n := int64(0); n < int64(len(pages)); {
				n = known.Load()
				for i := range n {
					if c.get(&pages[i].self.Name) != pages[i] {
						t.Errorf("page %d of %d is not found", i, n)
						return
					}
				}
			}
		})
	}
	sizes := map[int]bool{}
	for i, p := range pages {
		c.put(p)
		known.Store(int64(i + 1))
		sizes[len(*c.sets.Load())] = true
	}
	wg.Wait()
	checkCache(t, c)
	if c.pages != len(pages) || len(sizes) < 3 {
		t.Errorf("%d pages of %d, tables of %v sets", c.pages, len(pages), sizes)
	}
}

// TestWith checks that trees over several stores share what they parsed.
func TestWith(t *testing.T) {
	ctx := context.Background()
	m := NewMemPages()
	tr := New(m, nil)
	root := must.Get(tr.Build(ctx, chunks(10, inlines)))(t)
	other := tr.With(NewMemPages())
	if _, _, err := other.Get(ctx, root, nil); !errors.Is(err, ErrMissing) {
		t.Errorf("page in another store: %v", err)
	}
	if _, _, err := tr.Get(ctx, root, nil); err != nil {
		t.Error(err)
	}
	if _, _, err := other.Get(ctx, root, nil); err != nil {
		t.Errorf("page in the cache: %v", err)
	}
}

// TestGetDoesNotAllocate holds the promise of the cached path: nothing but the
// text of a source.
func TestGetDoesNotAllocate(t *testing.T) {
	ctx := context.Background()
	for _, k := range kindsOfMaps {
		tr, root, _ := benchTree(t, 5000, k.make())
		cachedBytes(t, tr, root)
		key := chunkKey(nil, 4321)
		if n := testing.AllocsPerRun(100, func() {
			if _, ok, err := tr.Get(ctx, root, key); !ok || err != nil {
				t.Error(ok, err)
			}
		}); n > 1 || n == 1 && root.Flags&HasVirtual == 0 {
			t.Errorf("%s: %v allocations", k.name, n)
		}
	}
}

// TestWalkChildren walks over maps in maps.
func TestWalkChildren(t *testing.T) {
	ctx := context.Background()
	tr := New(NewMemPages(), &Options{shape: tinyShape})
	leaf := must.Get(tr.Build(ctx, chunks(100, natives())))(t)
	child := func(r Root) Value { return Value{Kind: KindChild, Child: r} }
	dir := must.Get(tr.Apply(ctx, Root{}, []Edit{{Key: []byte("a"), Value: child(leaf)}, {Key: []byte("b"), Value: child(Root{})},
		{Key: []byte("c"), Value: Value{Inline: []byte("doc")}}, {Key: []byte("d"), Value: child(leaf)}}))(t)
	if dir.Flags != HasChild|HasNative || dir.Entries != 4 || dir.Bytes != 2*leaf.Bytes+3 {
		t.Errorf("root %+v over two of %+v", dir, leaf)
	}
	seen := map[Name]bool{}
	pages := 0
	once := func(n Name, _ uint8, _ int) (bool, error) {
		if seen[n] {
			return false, nil
		}
		seen[n] = true
		pages++
		return true, nil
	}
	if err := tr.Walk(ctx, dir, once); err != nil || pages == 0 {
		t.Errorf("%d pages, %v", pages, err)
	}
	clear(seen)
	again := 0
	if err := tr.Walk(ctx, dir, func(n Name, h uint8, s int) (bool, error) { again++; return once(n, h, s) }); err != nil || pages != 2*(again-1) {
		t.Errorf("%d pages, then %d: %v", pages, again, err)
	}
	stop := errors.New("stop")
	if err := tr.Walk(ctx, dir, once); err != nil {
		t.Error(err)
	}
	if err := tr.Walk(ctx, dir, func(Name, uint8, int) (bool, error) { return true, stop }); err != stop {
		t.Error(err)
	}
}

// The example of docs/format.md.
func TestSourcesExample(t *testing.T) {
	var e sourceEncoder
	e.reset()
	for i := 1; i <= 3; i++ {
		e.id(&Source{URL: fmt.Sprintf("s3://b/f%d.nc", i)})
	}
	if want := "ce73333a2f2f622f66312e6e63" + "12080332" + "1e33"; fmt.Sprintf("%x", e.buf) != want {
		t.Errorf("%x, want %s", e.buf, want)
	}
}
