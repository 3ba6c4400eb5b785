package tree

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/digest"
)

// tinyShape makes pages of a few items, so that small maps are deep.
var tinyShape = shape{scale: 7, min: 40, max: 400}

// model is a plain map with the same meaning as a tree.
type model map[string]Value

func (m model) keys() []string { return slices.Sorted(maps.Keys(m)) }

func (m model) entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for _, k := range m.keys() {
			if !yield(Entry{Key: []byte(k), Value: m[k]}, nil) {
				return
			}
		}
	}
}

// span returns the keys of a span in the order of Scan.
func (m model) span(s Span) []string {
	var out []string
	for _, k := range m.keys() {
		if s.From != nil && (k < string(s.From) || s.After && k == string(s.From)) || s.To != nil && k >= string(s.To) {
			continue
		}
		out = append(out, k)
	}
	return out
}

// world makes random keys and values.
type world struct {
	*rand.Rand
	t    *Tree
	keys int // how many different keys there are
}

func (w *world) key() []byte {
	n := w.IntN(w.keys)
	switch n % 4 {
	case 0: // coordinates
		return []byte{byte(n >> 8), byte(n >> 4 & 15), byte(n)}
	case 1:
		return fmt.Appendf(nil, "dir%d/zarr.json", n)
	case 2:
		return fmt.Appendf(nil, "%x", n)
	}
	return binary.AppendUvarint(nil, uint64(n)*uint64(n))[:w.IntN(2)+1]
}

func (w *world) value() Value {
	switch w.IntN(8) {
	case 0:
		b := make([]byte, w.IntN(40))
		for i := range b {
			b[i] = byte(w.IntN(3))
		}
		return Value{Kind: KindInline, Inline: b}
	case 1:
		if w.IntN(3) == 0 {
			return Value{Kind: KindChild}
		}
		return Value{Kind: KindChild, Child: Root{Name: digest.Of([]byte{byte(w.IntN(9))}), Height: uint8(w.IntN(3)),
			Flags: Flags(w.IntN(8)), Size: uint32(100 + w.IntN(9)), Entries: 1 + w.Uint64N(50), Bytes: w.Uint64N(1e6)}}
	case 2, 3, 4:
		v := Value{Kind: KindNative, Offset: w.Uint64N(1000) * 8, Length: w.Uint64N(100000)}
		v.Sum = digest.Of([]byte{byte(w.IntN(50))})
		v.Pack[15] = byte(w.IntN(3))
		return v
	}
	v := Value{Kind: KindVirtual, Offset: w.Uint64N(1 << 40), Length: w.Uint64N(1 << 20)}
	v.Source.URL = fmt.Sprintf("s3://bucket/file_%03d.nc", w.IntN(30))
	if w.IntN(3) == 0 {
		v.Source.Validator = fmt.Sprint("etag", w.IntN(3))
	}
	v.Source.Whole = w.IntN(5) == 0
	return v
}

func (w *world) span() Span {
	var s Span
	if w.IntN(4) > 0 {
		s.From = w.key()
		s.After = w.IntN(2) == 0
	}
	if w.IntN(4) > 0 {
		s.To = w.key()
	}
	if w.IntN(3) > 0 && s.From != nil && s.To != nil && bytes.Compare(s.From, s.To) > 0 {
		s.From, s.To = s.To, s.From
	}
	return s
}

// edits returns random edits, and applies them to m.
func (w *world) edits(m model, n int) []Edit {
	byKey := map[string]Edit{}
	for range n {
		e := Edit{Key: w.key(), Value: w.value()}
		if w.IntN(3) == 0 {
			e = Edit{Key: e.Key, Delete: true}
		}
		byKey[string(e.Key)] = e
	}
	var out []Edit
	for _, k := range slices.Sorted(maps.Keys(byKey)) {
		out = append(out, byKey[k])
		if byKey[k].Delete {
			delete(m, k)
		} else {
			m[k] = byKey[k].Value
		}
	}
	return out
}

// version is a map and what it should be.
type version struct {
	m    model
	root Root
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{Rand: newRand(seed)}
	w.keys = []int{10, 100, 1000, 5000}[w.IntN(4)]
	o := Options{shape: tinyShape, CacheBytes: []int64{-1, 4 << 10, 1 << 20}[w.IntN(3)]}
	if w.IntN(5) == 0 {
		o.shape = defaultShape
	}
	w.t = New(NewMemPages(), &o)
	return w
}

// TestModel runs random histories and compares every answer with a plain map.
func TestModel(t *testing.T) {
	histories := uint64(300)
	if testing.Short() {
		histories = 60
	}
	if s := os.Getenv("ZARRDB_HISTORIES"); s != "" { // for a soak
		must.Get(fmt.Sscan(s, &histories))(t)
	}
	for seed := range histories {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed)
			versions := []version{{m: model{}}}
			for range 12 {
				versions = append(versions, w.evolve(t, versions))
				w.compare(t, versions)
			}
		})
	}
}

// evolve makes a new version of a random one.
func (w *world) evolve(t *testing.T, versions []version) version {
	ctx := context.Background()
	v := versions[w.IntN(len(versions))]
	if w.IntN(3) > 0 {
		v = versions[len(versions)-1]
	}
	next := version{m: maps.Clone(v.m)}
	var err error
	switch w.IntN(6) {
	case 0:
		s := w.span()
		for _, k := range v.m.span(s) {
			delete(next.m, k)
		}
		next.root, err = w.t.DeleteRange(ctx, v.root, s)
	case 1:
		return w.merge(t, v, versions[w.IntN(len(versions))], versions[w.IntN(len(versions))])
	default:
		n := []int{1, 1, 3, 30, 400}[w.IntN(5)]
		next.root, err = w.t.Apply(ctx, v.root, w.edits(next.m, n))
	}
	must.Do(t, err)
	return next
}

func lookup(m model, key string) *Value {
	if v, ok := m[key]; ok {
		return &v
	}
	return nil
}

func (w *world) merge(t *testing.T, base, ours, theirs version) version {
	var asked, want []string
	next := version{m: maps.Clone(ours.m)}
	pick := func(key string, base, ours, theirs *Value) *Value {
		switch len(key) % 3 {
		case 0:
			return ours
		case 1:
			return theirs
		}
		return nil
	}
	all := map[string]bool{}
	for _, m := range []model{base.m, ours.m, theirs.m} {
		for k := range m {
			all[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(all)) {
		b, o, th := lookup(base.m, k), lookup(ours.m, k), lookup(theirs.m, k)
		result := o
		switch {
		case equalValues(b, o):
			result = th
		case equalValues(b, th):
		default:
			want = append(want, k)
			result = pick(k, b, o, th)
		}
		delete(next.m, k)
		if result != nil {
			next.m[k] = *result
		}
	}
	var err error
	next.root, err = w.t.Merge(context.Background(), base.root, ours.root, theirs.root,
		func(key []byte, b, o, th *Value) (*Value, error) {
			k := string(key)
			asked = append(asked, k)
			if !equalValues(b, lookup(base.m, k)) || !equalValues(o, lookup(ours.m, k)) || !equalValues(th, lookup(theirs.m, k)) {
				t.Errorf("resolve %q is given wrong values", k)
			}
			return pick(k, b, o, th), nil
		})
	must.Do(t, err)
	if !slices.Equal(asked, want) {
		t.Errorf("merge asked for %q, want %q", asked, want)
	}
	return next
}

// compare checks the last version in every way.
func (w *world) compare(t *testing.T, versions []version) {
	t.Helper()
	ctx := context.Background()
	v := versions[len(versions)-1]
	built := must.Get(w.t.Build(ctx, v.m.entries()))(t)
	if built != v.root {
		t.Fatalf("root %+v, but built at once %+v", v.root, built)
	}
	for range 20 {
		k := w.key()
		got, ok, err := w.t.Get(ctx, v.root, k)
		want, has := v.m[string(k)]
		if err != nil || ok != has || ok && !got.Equal(&want) {
			t.Fatalf("get %q: %+v, %v, %v; want %+v, %v", k, got, ok, err, want, has)
		}
	}
	w.compareScan(t, v, Span{})
	for range 3 {
		s := w.span()
		w.compareScan(t, v, s)
		w.compareDiff(t, versions[w.IntN(len(versions))], v, s)
	}
	w.compareDiff(t, versions[w.IntN(len(versions))], v, Span{})
	checkPages(t, w.t, v.root)
}

func (w *world) compareScan(t *testing.T, v version, s Span) {
	t.Helper()
	want := v.m.span(s)
	i := 0
	for e, err := range w.t.Scan(context.Background(), v.root, s) {
		must.Do(t, err)
		if i == len(want) || string(e.Key) != want[i] {
			t.Fatalf("scan %+v: entry %d is %q, want %q", s, i, e.Key, want[min(i, len(want)):])
		}
		if wantValue := v.m[want[i]]; !e.Value.Equal(&wantValue) {
			t.Fatalf("scan: %q is %+v, want %+v", e.Key, e.Value, wantValue)
		}
		i++
	}
	if i != len(want) {
		t.Fatalf("scan %+v ends after %d of %d", s, i, len(want))
	}
}

func (w *world) compareDiff(t *testing.T, a, b version, s Span) {
	t.Helper()
	both := maps.Clone(a.m)
	maps.Copy(both, b.m)
	var want []string
	for _, k := range both.span(s) {
		if !equalValues(lookup(a.m, k), lookup(b.m, k)) {
			want = append(want, k)
		}
	}
	i := 0
	for c, err := range w.t.Diff(context.Background(), a.root, b.root, s) {
		must.Do(t, err)
		k := string(c.Key)
		if i == len(want) || k != want[i] || !equalValues(c.Old, lookup(a.m, k)) || !equalValues(c.New, lookup(b.m, k)) {
			t.Fatalf("diff: change %d is %q, want %q", i, k, want[min(i, len(want)):])
		}
		i++
	}
	if i != len(want) {
		t.Fatalf("diff ends after %d of %d", i, len(want))
	}
}

// checkPages walks over a map without its cache and checks that each page
// encodes to its bytes again.
func checkPages(t *testing.T, tr *Tree, root Root) {
	t.Helper()
	bare := *tr
	bare.cache = nil
	entries := uint64(0)
	err := bare.Walk(context.Background(), root, func(name Name, _ uint8, size int) (bool, error) {
		raw, err := bare.pages.GetPage(context.Background(), name)
		if errors.Is(err, ErrMissing) {
			return false, nil // a made-up child map
		}
		if err != nil {
			return false, err
		}
		again := reencode(t, name, raw)
		if !bytes.Equal(raw, again) {
			t.Errorf("page %v is %x, encoded again %x", name, raw, again)
		}
		if len(raw) != size {
			t.Errorf("page %v has %d bytes, walk says %d", name, len(raw), size)
		}
		return true, nil
	})
	for _, serr := range bare.Scan(context.Background(), root, Span{}) {
		err = errors.Join(err, serr)
		entries++
	}
	if err != nil || entries != root.Entries {
		t.Fatalf("%d entries of %d, %v", entries, root.Entries, err)
	}
}

// reencode decodes a page and encodes its items.
func reencode(t *testing.T, name Name, raw []byte) []byte {
	p := must.Get(decodePage(name, raw))(t)
	var enc pageEncoder
	enc.reset(p.self.Height)
	var r itemReader
	var e Entry
	for r.open(p, 0, nil); r.next(&e); {
		if !enc.add(&e) {
			t.Fatalf("page %v: keys are not ascending at %q", name, e.Key)
		}
	}
	out, _ := enc.finish()
	return out
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
