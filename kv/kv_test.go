package kv_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/race"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
)

var ctx = context.Background()

func TestValidKey(t *testing.T) {
	for key, want := range map[string]bool{
		"a": true, "a/b": true, "a//b": true, "..": true, "é": true, " ": true, "zarr.json": true, strings.Repeat("x", 5000): true,
		"": false, "/": false, "/a": false, "a/": false, "a\x00": false, "\xff": false, "a/\xc3(": false,
	} {
		err := kv.ValidKey(key)
		if (err == nil) != want || err != nil && !errors.Is(err, kv.ErrInvalidKey) {
			t.Errorf("ValidKey(%q) = %v, want valid %v", key, err, want)
		}
		if err != nil && len(err.Error()) > 400 {
			t.Errorf("ValidKey(%q): message of %d bytes", key[:10], len(err.Error()))
		}
	}
	if n := testing.AllocsPerRun(100, func() { kv.ValidKey("group/array/c/0/1/2") }); n != 0 {
		t.Errorf("ValidKey allocates %v times", n)
	}
}

func TestRange(t *testing.T) {
	for _, c := range []struct {
		rng     kv.Range
		size    int64
		off, n  int64
		outside bool
		text    string
	}{
		{rng: kv.Range{}, size: 5, off: 0, n: 5, text: "[0, end)"},
		{rng: kv.All(), size: 0, text: "[0, end)"},
		{rng: kv.From(2), size: 5, off: 2, n: 3, text: "[2, end)"},
		{rng: kv.From(5), size: 5, off: 5, text: "[5, end)"},
		{rng: kv.From(6), size: 5, outside: true, text: "[6, end)"},
		{rng: kv.From(-1), size: 5, outside: true, text: "[-1, end)"},
		{rng: kv.Span(1, 4), size: 5, off: 1, n: 4, text: "[1, +4)"},
		{rng: kv.Span(5, 0), size: 5, off: 5, text: "[5, +0)"},
		{rng: kv.Span(1, 5), size: 5, outside: true, text: "[1, +5)"},
		{rng: kv.Span(1, -1), size: 5, outside: true, text: "[1, +-1)"},
		{rng: kv.Span(1, math.MaxInt64), size: 5, outside: true, text: "[1, +9223372036854775807)"},
		{rng: kv.Last(2), size: 5, off: 3, n: 2, text: "[end-2, end)"},
		{rng: kv.Last(5), size: 5, n: 5, text: "[end-5, end)"},
		{rng: kv.Last(0), size: 5, off: 5, text: "[end-0, end)"},
		{rng: kv.Last(6), size: 5, outside: true, text: "[end-6, end)"},
		{rng: kv.Last(-1), size: 5, outside: true, text: "[end--1, end)"},
	} {
		off, n, err := c.rng.Resolve(c.size)
		if errors.Is(err, kv.ErrRange) != c.outside || err == nil && (off != c.off || n != c.n) {
			t.Errorf("%v.Resolve(%d) = %d, %d, %v", c.rng, c.size, off, n, err)
		}
		if c.rng.String() != c.text {
			t.Errorf("prints %q, want %q", c.rng, c.text)
		}
	}
	if !kv.All().IsAll() || !kv.From(0).IsAll() || kv.From(1).IsAll() || kv.Span(0, 5).IsAll() || kv.Last(5).IsAll() {
		t.Error("IsAll is wrong")
	}
}

// TestSubKeepsCapabilities checks for each kind of base that the view below a
// prefix has just its interfaces.
func TestSubKeepsCapabilities(t *testing.T) {
	m := kv.NewMem()
	for name, base := range map[string]kv.Reader{
		"reader":        struct{ kv.Reader }{m},
		"read-lister":   struct{ kv.ReadLister }{m},
		"read-writer":   readWriter{m, m},
		"store":         struct{ kv.Store }{m},
		"store of subs": kv.Sub(m, "x/y"),
	} {
		sub := kv.Sub(base, "p")
		_, l0 := base.(kv.Lister)
		_, l1 := sub.(kv.Lister)
		_, w0 := base.(kv.Writer)
		_, w1 := sub.(kv.Writer)
		if l0 != l1 || w0 != w1 {
			t.Errorf("%s: lister %v → %v, writer %v → %v", name, l0, l1, w0, w1)
		}
		if kv.Sub(base, "") != base {
			t.Errorf("%s: the empty prefix gives another view", name)
		}
	}
	// A view of a view of a view looks up a key once.
	must.Do(t, m.Set(ctx, "a/b/c/k", []byte("v")))
	counted, n := kvtest.Count(m)
	b, err := kv.Get(ctx, kv.Sub(kv.Sub(kv.Sub(counted, "a"), "b/"), "c"), "k")
	if err != nil || string(b) != "v" || n.Reset()[kvtest.OpGet] != 1 {
		t.Errorf("%q, %v", b, err)
	}
}

type readWriter struct {
	kv.Reader
	kv.Writer
}

func TestReaderAt(t *testing.T) {
	value := kv.Bytes("0123456789")
	r := kv.ReaderAt(ctx, value)
	if err := iotest.TestReader(io.NewSectionReader(r, 0, value.Size()), value); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		off  int64
		n    int
		want string
		err  error
	}{
		{0, 10, "0123456789", nil},
		{0, 11, "0123456789", io.EOF},
		{8, 5, "89", io.EOF},
		{10, 0, "", nil},
		{10, 1, "", io.EOF},
		{1 << 60, 1, "", io.EOF},
		{-1, 1, "", kv.ErrRange},
	} {
		p := make([]byte, c.n)
		n, err := r.ReadAt(p, c.off)
		if string(p[:n]) != c.want || !errors.Is(err, c.err) {
			t.Errorf("ReadAt(%d bytes, %d) = %q, %v, want %q, %v", c.n, c.off, p[:n], err, c.want, c.err)
		}
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	back := kv.FromReaderAt(bytes.NewReader(value), 10, kv.ID{})
	if _, err := kv.ReaderAt(canceled, back).ReadAt(make([]byte, 1), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("under a canceled context: %v", err)
	}
}

func TestFromReaderAt(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	v := kv.FromReaderAt(bytes.NewReader(data), int64(len(data)), kv.ID{7})
	if v.Size() != int64(len(data)) || v.ID() != (kv.ID{7}) {
		t.Errorf("size %d, id %v", v.Size(), v.ID())
	}
	for _, rng := range []kv.Range{kv.All(), kv.Span(16, 5), kv.Last(4097), kv.From(int64(len(data)))} {
		off, n, _ := rng.Resolve(v.Size())
		if got, err := kv.ReadValue(ctx, v, rng); err != nil || !bytes.Equal(got, data[off:off+n]) {
			t.Errorf("%v: %d bytes, %v", rng, len(got), err)
		}
	}
	// A reader that is shorter than it said.
	short := kv.FromReaderAt(bytes.NewReader(data), int64(len(data))+1, kv.ID{})
	called := false
	err := short.View(ctx, kv.All(), func([]byte) error { called = true; return nil })
	if !errors.Is(err, io.ErrUnexpectedEOF) || called {
		t.Errorf("short reader: %v, callback called %v", err, called)
	}
	// Buffers come back: a warm View of 4 KiB makes no new one.
	if n := testing.AllocsPerRun(50, func() {
		_ = v.View(ctx, kv.Span(0, 4096), func([]byte) error { return nil })
	}); n > 2 && !race.Enabled {
		t.Errorf("View allocates %v times", n)
	}
}

func TestNotFoundDoesNotAllocate(t *testing.T) {
	m := kv.NewMem()
	if n := testing.AllocsPerRun(100, func() {
		if _, err := m.Get(ctx, "group/array/c/0", kv.All()); err != kv.ErrNotFound {
			t.Fatal(err)
		}
		if _, err := kv.Locate(ctx, m, "group/array/c/0"); err != kv.ErrNotFound {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a missing key costs %v allocations", n)
	}
}

// TestListDirSeeks checks that the fall-back of ListDir costs by the number of
// children and not by the number of keys below them.
func TestListDirSeeks(t *testing.T) {
	m := kv.NewMem()
	for child := range 20 {
		for i := range 5000 {
			must.Do(t, m.Set(ctx, fmt.Sprintf("x/child%d/c/%d", child, i), nil))
		}
	}
	counted, n := kvtest.Count(plain{m})
	children := 0
	for _, err := range kv.ListDir(ctx, counted.(kv.Lister), "x/") {
		must.Do(t, err)
		children++
	}
	ops := n.Reset()
	if lists, keys := ops[kvtest.OpList], ops[kvtest.OpNext]; children != 20 || lists > 25 || keys > 20*25 {
		t.Errorf("%d children for %d listings and %d keys", children, lists, keys)
	}
}

// simpleListDir reads all keys below prefix.
func simpleListDir(l kv.Lister, prefix string) (entries []kv.DirEntry, err error) {
	for key, err := range l.List(ctx, kv.ListOptions{Prefix: prefix}) {
		if err != nil {
			return nil, err
		}
		name, _, isDir := strings.Cut(key[len(prefix):], "/")
		entries = append(entries, kv.DirEntry{Name: name, Prefix: isDir})
	}
	rank := map[bool]int{true: 1}
	slices.SortFunc(entries, func(a, b kv.DirEntry) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), rank[a.Prefix]-rank[b.Prefix])
	})
	return slices.Compact(entries), nil
}

// FuzzListDir compares the fall-back with a simple ListDir on any set
// of names, in particular with bytes on both sides of the slash.
func FuzzListDir(f *testing.F) {
	f.Add("a-b\na-c\na/x\na/y\nb", "")
	f.Add("a-b-c\na-b/x\na-d\na/x", "")
	f.Add("p//b\np/-\np/-/x\np/!/", "p/")
	f.Add("a\na!\na!/x\na/\n-\n-/-\n/b", "")
	f.Add(strings.Repeat("a/x", 30)+"\na/\xff\xff/y", "")
	f.Fuzz(func(t *testing.T, keys, prefix string) {
		if len(keys) > 2000 {
			return
		}
		m := kv.NewMem()
		for key := range strings.SplitSeq(keys, "\n") {
			_ = m.Set(ctx, key, nil)
			for i := range 20 { // enough below one name to seek
				_ = m.Set(ctx, fmt.Sprintf("%s/%d", key, i), nil)
			}
		}
		if prefix != "" && !strings.HasSuffix(prefix, "/") {
			prefix += "/"
		}
		want := must.Get(simpleListDir(m, prefix))(t)
		var got []kv.DirEntry
		for e, err := range kv.ListDir(ctx, plain{m}, prefix) {
			must.Do(t, err)
			got = append(got, e)
		}
		if !slices.Equal(got, want) {
			t.Errorf("keys %q, prefix %q:\n got %v\nwant %v", keys, prefix, got, want)
		}
	})
}

// TestListDirNotUTF8 lists names that no listing can seek past.
func TestListDirNotUTF8(t *testing.T) {
	var keys raw
	for i := range 40 {
		keys = append(keys, fmt.Sprintf("a/%02d", i), fmt.Sprintf("a/\xff\xff%02d", i))
	}
	keys = append(keys, "b\xff/x", "b\xff/y", "c")
	slices.Sort(keys)
	var got []kv.DirEntry
	for e, err := range kv.ListDir(ctx, keys, "") {
		must.Do(t, err)
		got = append(got, e)
	}
	if want := []kv.DirEntry{{"a", true}, {"b\xff", true}, {"c", false}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSetRange(t *testing.T) {
	m := kv.NewMem()
	for _, c := range []struct {
		old  string
		off  int64
		p    string
		want string
	}{
		{"", 0, "", ""}, {"", 0, "ab", "ab"}, {"abc", 0, "X", "Xbc"}, {"abc", 1, "XY", "aXY"}, {"abc", 2, "XYZ", "abXYZ"}, {"abc", 3, "X", "abcX"}, {"abc", 3, "", "abc"},
	} {
		err := m.Set(ctx, "k", []byte(c.old))
		if err == nil {
			err = kv.SetRange(ctx, m, "k", c.off, []byte(c.p))
		}
		if got, gerr := kv.Get(ctx, m, "k"); errors.Join(err, gerr) != nil || string(got) != c.want {
			t.Errorf("SetRange(%q, %d, %q) = %q, %v, want %q", c.old, c.off, c.p, got, err, c.want)
		}
	}
	for _, off := range []int64{-1, 4, math.MaxInt64} {
		if err := kv.SetRange(ctx, m, "k", off, nil); !errors.Is(err, kv.ErrRange) {
			t.Errorf("SetRange at %d of 3: %v", off, err)
		}
	}
}

// eachFault runs run on a fresh view again and again, with a failure at
// operation 0, 1, 2 and so on until a run meets none. Every run that meets the
// failure must return an error that is this failure; check, which may be nil,
// then looks at the view without the wrapper.
func eachFault(t *testing.T, open func() kv.Reader, run func(kv.Reader) error, check func(t *testing.T, base kv.Reader, k int64)) {
	t.Helper()
	const endless = 100_000
	for k := int64(0); k < endless; k++ {
		fault := errors.New("injected failure")
		base := open()
		met := false
		var n atomic.Int64
		err := run(kvtest.Hook(base, func(kvtest.Op, string) error {
			if n.Add(1)-1 == k {
				met = true
				return fault
			}
			return nil
		}))
		if !met {
			if err != nil {
				t.Errorf("without a failure: %v", err)
			}
			if k == 0 {
				t.Error("the run did not use the view")
			}
			return
		}
		if !errors.Is(err, fault) {
			t.Errorf("failure at operation %d: the run returned %v", k, err)
		}
		if check != nil {
			check(t, base, k)
		}
	}
	t.Errorf("the run is not over after %d operations", endless)
}

// TestFaults fails every operation that the fall-backs do, one at a time.
func TestFaults(t *testing.T) {
	open := func() kv.Reader {
		m := kv.NewMem()
		for i := range 30 {
			must.Do(t, m.Set(ctx, fmt.Sprintf("a/%d/%d", i%3, i), []byte{1, 2, 3}))
		}
		return plain{m}
	}
	eachFault(t, open, func(r kv.Reader) error {
		st := r.(kv.Store)
		for _, err := range kv.ListDir(ctx, st, "a/") {
			if err != nil {
				return err
			}
		}
		if _, err := kv.GetMany(ctx, st, []kv.Request{{Key: "a/0/0"}, {Key: "a/0/0"}, {Key: "a/1/1"}}); err != nil {
			return err
		}
		if _, err := kv.Exists(ctx, st, "a/0/0"); err != nil {
			return err
		}
		if err := kv.SetRange(ctx, st, "a/0/0", 3, []byte{4}); err != nil {
			return err
		}
		return kv.DeletePrefix(ctx, st, "a/")
	}, func(t *testing.T, base kv.Reader, k int64) {
		// Whatever failed, a value is the old one or the new one.
		b, err := base.Get(ctx, "a/0/0", kv.All())
		if err != kv.ErrNotFound && len(b) != 3 && len(b) != 4 {
			t.Errorf("failure at %d: %v, %v", k, b, err)
		}
	})
}

func TestUnsupported(t *testing.T) {
	w := struct{ kv.Writer }{kv.NewMem()}
	if err := kv.SetRange(ctx, w, "k", 0, nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("SetRange without Reader: %v", err)
	}
	if err := kv.DeletePrefix(ctx, w, "k"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("DeletePrefix without Lister: %v", err)
	}
}
