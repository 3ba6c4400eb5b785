package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/digest"
)

// samplePages returns pages of every kind and height.
func samplePages(tb testing.TB) map[string][]byte {
	out := map[string][]byte{}
	add := func(name string, tr *Tree, root Root) {
		err := tr.Walk(context.Background(), root, func(n Name, height uint8, _ int) (bool, error) {
			raw, err := tr.pages.GetPage(context.Background(), n)
			if err == nil { // else it is of a child map that is made up
				out[fmt.Sprint(name, " height ", height)] = raw
			}
			return err == nil, nil
		})
		must.Do(tb, err)
	}
	for _, k := range kindsOfMaps {
		m := NewMemPages()
		tr := New(m, &Options{shape: tinyShape})
		root := must.Get(tr.Build(context.Background(), chunks(300, k.make())))(tb)
		add(k.name, tr, root)
	}
	for name, set := range sourcePatterns {
		m := NewMemPages()
		tr := New(m, nil)
		root := must.Get(tr.Build(context.Background(), chunks(70, set)))(tb)
		add(name, tr, root)
	}
	w := &world{Rand: newRand(9), keys: 100, t: New(NewMemPages(), &Options{shape: shape{scale: 9, min: 100, max: 2000}})}
	m := model{}
	root := must.Get(w.t.Apply(context.Background(), Root{}, w.edits(m, 300)))(tb)
	add("mixed", w.t, root)
	root = must.Get(w.t.Apply(context.Background(), Root{}, []Edit{{}}))(tb)
	add("smallest", w.t, root)
	if s := root.Size; s != minPageSize {
		tb.Errorf("the smallest page has %d bytes, not %d", s, minPageSize)
	}
	return out
}

// sourcePatterns are maps whose pages have more sources than lie between two
// marks, in the ways in which sources follow each other.
var sourcePatterns = map[string]func(int, *rand.Rand, *Value){
	"series": virtuals(1),
	"tiles": func(i int, _ *rand.Rand, v *Value) { // row by row over files side by side
		*v = Value{Kind: KindVirtual, Source: Source{URL: fmt.Sprint("s3://b/tile-", i%40, ".tif")}, Offset: uint64(i) * 100, Length: 100}
	},
	"versions": func(i int, r *rand.Rand, v *Value) {
		*v = Value{Kind: KindVirtual, Source: Source{URL: fmt.Sprint("f", i), Validator: fmt.Sprint("mtime:", r.IntN(1000), " size:", i/2), Whole: i%7 == 0}}
	},
	"anything": func(i int, r *rand.Rand, v *Value) {
		b := make([]byte, r.IntN(40))
		for j := range b {
			b[j] = 'a' + byte(r.IntN(3))
		}
		*v = Value{Kind: KindVirtual, Source: Source{URL: string(b), Validator: string(b[:len(b)/3])}, Length: uint64(i)}
		if i%5 == 0 {
			*v = Value{Inline: b}
		}
	},
}

// use calls everything that reads a page. Damage that decodes may give any
// answer, but no panic.
func use(p *page) {
	var e Entry
	var r itemReader
	for r.open(p, 0, nil); r.next(&e); {
		_ = e.Value.bytes()
		if p.isLeaf() {
			var v Value
			if p.value(r.i-1, &v); !v.Equal(&e.Value) {
				panic(fmt.Sprintf("value %d is %+v, but read in order %+v", r.i-1, v, e.Value))
			}
		}
	}
	var from itemReader // from other items on
	for i := 0; i < p.len() && p.isLeaf(); i = 2*i + 1 {
		for from.open(p, i, nil); from.next(&e) && from.i < i+9; {
			var v Value
			if p.value(from.i-1, &v); !v.Equal(&e.Value) {
				panic(fmt.Sprintf("value %d is %+v, but read from %d on %+v", from.i-1, v, i, e.Value))
			}
		}
	}
	for i := range p.len() {
		key := p.keyAt(i, nil)
		if j, exact := p.find(key, nil); j != i || !exact {
			panic(fmt.Sprintf("key %d is found at %d, %v", i, j, exact))
		}
		if j, exact := p.find(append(bytes.Clone(key), 0), nil); j != i+1 || exact && p.keyAt(j, nil)[len(key)] != 0 {
			panic(fmt.Sprintf("what follows key %d is found at %d, %v", i, j, exact))
		}
	}
}

// TestDamagedPages changes every byte of pages. The hash tells; with a name that
// fits, decoding tells, or the page means something else.
func TestDamagedPages(t *testing.T) {
	for name, raw := range samplePages(t) {
		p, err := decodePage(digest.Of(raw), raw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		use(p)
		step := 1
		if testing.Short() {
			step = 7
		}
		for i := 0; i < len(raw); i += step {
			for _, flip := range []byte{1, 0x80, 0xff} {
				bad := bytes.Clone(raw)
				bad[i] ^= flip
				damagedStore(t, name, p.self, bad)
				damagedPage(t, name, bad)
			}
			damagedPage(t, name, raw[:i])
		}
		damagedPage(t, name, append(bytes.Clone(raw), 0))
	}
}

func damagedStore(t *testing.T, name string, root Root, bad []byte) {
	t.Helper()
	m := NewMemPages()
	must.Do(t, m.PutPage(context.Background(), root.Name, bad))
	_, _, err := New(m, &Options{CacheBytes: -1}).Get(context.Background(), root, []byte("a"))
	if !errors.Is(err, ErrCorrupt) || !bytes.Contains([]byte(err.Error()), []byte(root.Name.String())) {
		t.Fatalf("%s: damaged page: %v", name, err)
	}
}

func damagedPage(t *testing.T, name string, bad []byte) {
	t.Helper()
	p, err := decodePage(digest.Of(bad), bad)
	if err != nil {
		if !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%s: %v", name, err)
		}
		return
	}
	use(p)
	if again := reencode(t, p.name(), bad); !bytes.Equal(again, bad) {
		t.Fatalf("%s: page %x is encoded again as %x", name, bad, again)
	}
}

// forge stores an interior page over items, whatever they say.
func forge(t *testing.T, m *MemPages, height uint8, items []Entry) Root {
	t.Helper()
	var enc pageEncoder
	enc.reset(height)
	for i := range items {
		if !enc.add(&items[i]) {
			t.Fatal("forged keys must ascend")
		}
	}
	raw, root := enc.finish()
	must.Do(t, m.PutPage(context.Background(), root.Name, raw))
	return root
}

// TestLyingPages makes pages that are well-formed but do not fit those below.
// Every operation that meets one says so, or at least does not panic.
func TestLyingPages(t *testing.T) {
	ctx := context.Background()
	leaf := func(m *MemPages, keys ...string) Entry {
		var items []Entry
		for _, k := range keys {
			items = append(items, Entry{Key: []byte(k), Value: Value{Inline: []byte("v" + k)}})
		}
		return Entry{Key: []byte(keys[len(keys)-1]), Value: Value{Kind: KindChild, Child: forge(t, m, 0, items)}}
	}
	for _, test := range []struct {
		name string
		make func(m *MemPages) []Entry
	}{
		{"last key too small", func(m *MemPages) []Entry {
			a, b := leaf(m, "a", "b"), leaf(m, "c", "d")
			a.Key = []byte("a")
			return []Entry{a, b}
		}},
		{"last key too large", func(m *MemPages) []Entry {
			a, b := leaf(m, "a", "b"), leaf(m, "c", "d")
			a.Key = []byte("bb")
			return []Entry{a, b}
		}},
		{"pages overlap", func(m *MemPages) []Entry { return []Entry{leaf(m, "a", "c"), leaf(m, "b", "d")} }},
		{"wrong count", func(m *MemPages) []Entry {
			a, b := leaf(m, "a", "b"), leaf(m, "c", "d")
			b.Value.Child.Entries = 1 << 63
			return []Entry{a, b}
		}},
		{"counts wrap", func(m *MemPages) []Entry {
			a, b := leaf(m, "a", "b"), leaf(m, "c", "d")
			a.Value.Child.Entries = 1<<64 - 1
			return []Entry{a, b}
		}},
		{"wrong bytes", func(m *MemPages) []Entry {
			a, b := leaf(m, "a", "b"), leaf(m, "c", "d")
			b.Value.Child.Bytes++
			return []Entry{a, b}
		}},
		{"wrong flags", func(m *MemPages) []Entry {
			a, b := leaf(m, "a", "b"), leaf(m, "c", "d")
			b.Value.Child.Flags = HasNative
			return []Entry{a, b}
		}},
		{"wrong size", func(m *MemPages) []Entry {
			a, b := leaf(m, "a", "b"), leaf(m, "c", "d")
			b.Value.Child.Size++
			return []Entry{a, b}
		}},
		{"pages overlap across their parents", func(m *MemPages) []Entry {
			var out []Entry
			for _, items := range [][]Entry{{leaf(m, "a"), leaf(m, "c")}, {leaf(m, "b", "d"), leaf(m, "e")}} {
				e := Entry{Key: items[1].Key, Value: Value{Kind: KindChild, Child: forge(t, m, 1, items)}}
				out = append(out, e)
			}
			return out
		}},
		{"too deep", func(m *MemPages) []Entry {
			a, b := leaf(m, "a", "b"), leaf(m, "c", "d")
			b.Value.Child = forge(t, m, 1, []Entry{leaf(m, "c"), leaf(m, "d")})
			return []Entry{a, b}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := NewMemPages()
			items := test.make(m)
			root := forge(t, m, items[0].Value.Child.Height+1, items)
			good := must.Get(New(m, nil).Apply(ctx, Root{}, []Edit{{Key: []byte("c")}, {Key: []byte("x")}}))(t)
			for name, err := range everything(ctx, New(m, &Options{CacheBytes: 1 << 20}), root, good) {
				if err != nil && !errors.Is(err, ErrCorrupt) {
					t.Errorf("%s: %v", name, err)
				}
				if err == nil && slices.Contains([]string{"scan", "diff"}, name) {
					t.Errorf("%s does not see it", name)
				}
			}
		})
	}
}

// everything runs each operation on a map and returns their errors.
func everything(ctx context.Context, tr *Tree, root, other Root) map[string]error {
	out := map[string]error{}
	for _, err := range tr.Scan(ctx, root, Span{}) {
		out["scan"] = err
	}
	for _, key := range []string{"", "a", "b", "bb", "c", "d", "e"} {
		_, _, err := tr.Get(ctx, root, []byte(key))
		out["get "+key] = err
		_, err = tr.Apply(ctx, root, []Edit{{Key: []byte(key), Value: Value{Inline: []byte("new")}}})
		out["put "+key] = err
		_, err = tr.Apply(ctx, root, []Edit{{Key: []byte(key), Delete: true}})
		out["delete "+key] = err
		_, err = tr.DeleteRange(ctx, root, Span{From: []byte(key)})
		out["delete from "+key] = err
		_, err = tr.DeleteRange(ctx, root, Span{To: []byte(key + "!")})
		out["delete to "+key] = err
	}
	for c, err := range tr.Diff(ctx, root, other, Span{}) {
		out["diff"] = err
		_ = c
	}
	out["walk"] = tr.Walk(ctx, root, func(Name, uint8, int) (bool, error) { return true, nil })
	ours := func(_ []byte, _, ours, _ *Value) (*Value, error) { return ours, nil }
	_, out["merge onto"] = tr.Merge(ctx, Root{}, root, other, ours)
	_, out["merge from"] = tr.Merge(ctx, Root{}, other, root, ours)
	_, out["merge base"] = tr.Merge(ctx, root, Root{}, other, ours)
	return out
}

// TestMissingPages takes pages away one at a time.
func TestMissingPages(t *testing.T) {
	ctx := context.Background()
	m := NewMemPages()
	tr := New(m, &Options{shape: tinyShape, CacheBytes: -1})
	root := must.Get(tr.Build(ctx, chunks(120, natives())))(t)
	var names []Name
	all := func(n Name, _ uint8, _ int) (bool, error) { names = append(names, n); return true, nil }
	must.Do(t, tr.Walk(ctx, root, all))
	for _, name := range names {
		raw, _ := m.GetPage(ctx, name)
		m.Delete(name)
		err := everything(ctx, tr, root, Root{})["scan"]
		if !errors.Is(err, ErrMissing) || errors.Is(err, ErrCorrupt) || !bytes.Contains([]byte(err.Error()), []byte(name.String())) {
			t.Fatalf("scan without page %v: %v", name, err)
		}
		for op, err := range everything(ctx, tr, root, Root{}) {
			if err != nil && !errors.Is(err, ErrMissing) {
				t.Fatalf("%s without page %v: %v", op, name, err)
			}
		}
		must.Do(t, m.PutPage(ctx, name, raw))
	}
}

// failAfter fails with its error after so many calls.
type failAfter struct {
	Pages
	left int
	fail func()
	err  error
}

func (f *failAfter) tick() error {
	if f.left--; f.left < 0 {
		if f.fail != nil {
			f.fail()
		}
		return f.err
	}
	return nil
}

func (f *failAfter) GetPage(ctx context.Context, name Name) ([]byte, error) {
	if err := f.tick(); err != nil {
		return nil, err
	}
	return f.Pages.GetPage(ctx, name)
}

func (f *failAfter) PutPage(ctx context.Context, name Name, page []byte) error {
	if err := f.tick(); err != nil {
		return err
	}
	return f.Pages.PutPage(ctx, name, page)
}

// TestFailingStore lets the k-th call of the store fail, and cancels the context
// in the k-th call, for every k.
func TestFailingStore(t *testing.T) {
	m := NewMemPages()
	tr := New(m, &Options{shape: tinyShape, CacheBytes: -1})
	root := must.Get(tr.Build(context.Background(), chunks(360, natives())))(t)
	other := must.Get(tr.Apply(context.Background(), root, []Edit{{Key: chunkKey(nil, 100), Delete: true}, {Key: chunkKey(nil, 350), Delete: true}}))(t)
	broken := errors.New("broken store")
	ours := func(_ []byte, _, ours, _ *Value) (*Value, error) { return ours, nil }
	for name, run := range map[string]func(ctx context.Context, tr *Tree) error{
		"apply": func(ctx context.Context, tr *Tree) error {
			_, err := tr.Apply(ctx, root, []Edit{{Key: chunkKey(nil, 200)}, {Key: chunkKey(nil, 390)}})
			return err
		},
		"delete": func(ctx context.Context, tr *Tree) error {
			_, err := tr.DeleteRange(ctx, root, Span{From: chunkKey(nil, 50), To: chunkKey(nil, 300)})
			return err
		},
		"merge": func(ctx context.Context, tr *Tree) error {
			third, err := tr.Apply(ctx, root, []Edit{{Key: chunkKey(nil, 10)}, {Key: chunkKey(nil, 100)}})
			if err == nil {
				_, err = tr.Merge(ctx, root, third, other, ours)
			}
			return err
		},
		"build": func(ctx context.Context, tr *Tree) error {
			_, err := tr.Build(ctx, chunks(300, natives()))
			return err
		},
		"scan": func(ctx context.Context, tr *Tree) (err error) {
			for _, err = range tr.Scan(ctx, root, Span{}) {
			}
			return err
		},
		"diff": func(ctx context.Context, tr *Tree) (err error) {
			for _, err = range tr.Diff(ctx, root, other, Span{}) {
			}
			return err
		},
		"walk": func(ctx context.Context, tr *Tree) error {
			return tr.Walk(ctx, root, func(Name, uint8, int) (bool, error) { return true, nil })
		},
	} {
		for k := 0; ; k++ {
			err := run(context.Background(), tr.With(&failAfter{Pages: m, left: k, err: broken}))
			if err == nil {
				if k < 3 {
					t.Errorf("%s makes only %d calls", name, k)
				}
				break
			}
			if !errors.Is(err, broken) {
				t.Fatalf("%s, call %d: %v", name, k, err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			err = run(ctx, tr.With(&failAfter{Pages: m, left: k, fail: cancel}))
			cancel()
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatalf("%s cancelled in call %d: %v", name, k, err)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := run(ctx, tr); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a cancelled context: %v", name, err)
		}
	}
}

// TestOtherSpellings checks that a page that means the same in other bytes is
// refused: equal content must have equal names.
func TestOtherSpellings(t *testing.T) {
	virtual := func(i int) Entry {
		return Entry{Key: []byte{byte(i)}, Value: Value{Kind: KindVirtual, Source: Source{URL: fmt.Sprint("s3://bucket/", i)}}}
	}
	native := func(i int) Entry {
		return Entry{Key: []byte{byte(i)}, Value: Value{Kind: KindNative, Pack: PackID{byte(i)}}}
	}
	for name, spoil := range map[string]func(e *pageEncoder){
		"": func(*pageEncoder) {},
		"too heavy": func(e *pageEncoder) {
			for i := range 40 {
				e.add(&Entry{Key: []byte{20, byte(i)}, Value: Value{Inline: make([]byte, 1000)}})
			}
		},
		"unused source": func(e *pageEncoder) {
			again := virtual(1)
			again.Key = []byte{9}
			e.add(&again)
			e.sources.add(&Source{URL: "other"}, 0, 0)
		},
		"source listed twice": func(e *pageEncoder) {
			again := virtual(1)
			again.Key = []byte{9}
			e.add(&again)
			source := &again.Value.Source
			e.sources.add(source, len(source.URL), 0)
			e.virtual.entries.reset()
			for _, step := range []int64{0, 1, 1} {
				e.virtual.entries.add(step)
			}
		},
		"unused pack": func(e *pageEncoder) { e.packs = append(e.packs, make([]byte, 16)...) },
		"pack listed twice": func(e *pageEncoder) {
			again := native(4)
			again.Key = []byte{9}
			e.add(&again)
			clear(e.packIDs)
			again.Value.Pack = PackID{3}
			again.Key = []byte{10}
			e.add(&again)
		},
	} {
		var e pageEncoder
		e.reset(0)
		for _, item := range []Entry{virtual(1), virtual(2), native(3), native(4)} {
			e.add(&item)
		}
		spoil(&e)
		raw, root := e.finish()
		if _, err := decodePage(root.Name, raw); errors.Is(err, ErrCorrupt) != (name != "") {
			t.Errorf("%q: %v", name, err)
		}
	}

	// Four keys a, b, c, d with empty inline values, by hand.
	for name, raw := range map[string]string{
		"":                      "\x01\x00\x04" + "\x01a\x82" + "\x07" + "\x00\x00",
		"format":                "\x02\x00\x04" + "\x01a\x82" + "\x07" + "\x00\x00",
		"long varint":           "\x01\x00\x84\x00" + "\x01a\x82" + "\x07" + "\x00\x00",
		"split run of keys":     "\x01\x00\x04" + "\x01a\x80\x81" + "\x07" + "\x00\x00",
		"key for a run":         "\x01\x00\x04" + "\x01a\x81\x11d" + "\x07" + "\x00\x00",
		"key coded too long":    "\x01\x00\x02" + "\x02aa\x22ac" + "\x03" + "\x00\x00",
		"equal keys":            "\x01\x00\x02" + "\x01a\x11a" + "\x03" + "\x00\x00",
		"descending keys":       "\x01\x00\x02" + "\x01b\x11a" + "\x03" + "\x00\x00",
		"shorter key":           "\x01\x00\x02" + "\x02ab\x10" + "\x03" + "\x00\x00",
		"run past the items":    "\x01\x00\x03" + "\x01a\x82" + "\x05" + "\x00\x00",
		"run past 255":          "\x01\x00\x04" + "\x01\xfd\x82" + "\x07" + "\x00\x00",
		"run before the key":    "\x01\x00\x04" + "\x01a\xa2" + "\x07" + "\x00\x00",
		"literal for a run":     "\x01\x00\x04" + "\x01a\x82" + "\x00\x05" + "\x00\x00",
		"split run of kinds":    "\x01\x00\x04" + "\x01a\x82" + "\x03\x03" + "\x00\x00",
		"run past the kinds":    "\x01\x00\x04" + "\x01a\x82" + "\x09" + "\x00\x00",
		"unknown kind":          "\x01\x00\x04" + "\x01a\x82" + "\x10\x05" + "\x00\x00",
		"wide column":           "\x01\x00\x04" + "\x01a\x82" + "\x07" + "\x00\x01\x00",
		"column too wide":       "\x01\x00\x04" + "\x01a\x82" + "\x07" + "\x00\x41" + strings.Repeat("\x00", 40),
		"bits past the end":     "\x01\x00\x04" + "\x01a\x82" + "\x07" + "\x00\x01\x11x",
		"base is not the least": "\x01\x00\x04" + "\x01a\x82" + "\x07" + "\x00\x02\xa9xyxyxyx",
		"sources":               "\x01\x00\x02" + "\x01a\x80" + "\x08\x01" + "\x02" + "\x3exay" + "\x12\x01\x01b" + "\x00\x00" + "\x01\x04" + "\x03",
		"front again":           "\x01\x00\x02" + "\x01a\x80" + "\x08\x01" + "\x02" + "\x3a\x00xay" + "\x12\x01\x01b" + "\x00\x00" + "\x01\x04" + "\x03",
		"back again":            "\x01\x00\x02" + "\x01a\x80" + "\x08\x01" + "\x02" + "\x36\x00xay" + "\x12\x01\x01b" + "\x00\x00" + "\x01\x04" + "\x03",
		"validator again":       "\x01\x00\x02" + "\x01a\x80" + "\x08\x01" + "\x02" + "\x3cxay\x00\x00" + "\x12\x01\x01b" + "\x00\x00" + "\x01\x04" + "\x03",
		"front too short":       "\x01\x00\x02" + "\x01a\x80" + "\x08\x01" + "\x02" + "\x3exay" + "\x26\x01xb" + "\x00\x00" + "\x01\x04" + "\x03",
		"back too short":        "\x01\x00\x02" + "\x01a\x80" + "\x08\x01" + "\x02" + "\x3exay" + "\x2a\x01by" + "\x00\x00" + "\x01\x04" + "\x03",
		"ends overlap":          "\x01\x00\x02" + "\x01a\x80" + "\x08\x01" + "\x02" + "\x3exay" + "\x12\x02\x02b" + "\x00\x00" + "\x01\x04" + "\x03",
		"entries out of order":  "\x01\x00\x02" + "\x01a\x80" + "\x08\x01" + "\x02" + "\x3exay" + "\x12\x01\x01b" + "\x00\x00" + "\x04\x02" + "\x03",
		"offset below zero":     "\x01\x00\x02" + "\x01a\x80" + "\x08\x01" + "\x02" + "\x3exay" + "\x12\x01\x01b" + "\x00\x00" + "\x01\x04" + "\x02\x00",
		"no items":              "\x01\x00\x00" + "\x00" + "\x00\x00\x00",
		"one child":             "\x01\x01\x01" + "\x01a" + strings.Repeat("n", 20) + "\x64\x00" + "\x01\x00" + "\x00\x00" + "\x00\x00",
	} {
		if _, err := decodePage(Name{}, []byte(raw)); errors.Is(err, ErrCorrupt) != (name != "" && name != "sources") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
