package ocdbt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

func each(changes []formats.Change) iter.Seq2[formats.Change, error] {
	return func(yield func(formats.Change, error) bool) {
		for _, c := range changes {
			if !yield(c, nil) {
				return
			}
		}
	}
}

func set(key, value string) formats.Change {
	return formats.Change{Entry: refs.Entry{Key: key, Reference: refs.Reference{Data: []byte(value)}}}
}

func gone(key string) formats.Change {
	return formats.Change{Entry: refs.Entry{Key: key}, Deleted: true}
}

// next is a version that goes on from another, at a time.
func next(after string, at time.Time) formats.Version {
	v := formats.Version{Time: at}
	if after != "" {
		v.Parents = []string{after}
	}
	return v
}

var began = time.Date(2024, 2, 29, 12, 0, 0, 5, time.UTC)

// Histories of random changes, in several settings, are read back generation by
// generation.
func TestWriter(t *testing.T) {
	for i, o := range []*WriterOptions{
		nil,
		{NodeBytes: 1, ArityLog2: 1},
		{NodeBytes: 300, ArityLog2: 2, InlineBytes: -1},
		{NodeBytes: 500, ArityLog2: 1, FileBytes: 1000},
		{NodeBytes: 2000, InlineBytes: maxInlineValue, FileBytes: 1},
		{NodeBytes: 100, ArityLog2: 16},
	} {
		if testing.Short() && i != 3 {
			continue
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, uint64(i)))
			files := kv.NewMem()
			w, err := NewWriter(files, o)
			must.Do(t, err)
			now := map[string][]byte{}
			var versions []map[string][]byte
			commits := 70
			for n := range commits {
				var changes []formats.Change
				count := random.IntN(30)
				switch {
				case n%20 == 18: // all of it goes
					for key := range now {
						changes = append(changes, gone(key))
					}
					clear(now)
					count = 0
				case n%20 == 19:
					clear(now)
				case n%9 == 0:
					count = 300
				case n%9 == 4:
					count = 0
				}
				for range count {
					key := fmt.Sprintf("%s/c/%d/%d", []string{"a", "a/b", "long name of an array", "z"}[random.IntN(4)], random.IntN(9), random.IntN(30))
					if random.IntN(4) == 0 {
						changes = append(changes, gone(key))
						delete(now, key)
						continue
					}
					b := bytes.Repeat([]byte{byte(n)}, random.IntN(200))
					change := formats.Change{Entry: refs.Entry{Key: key, Reference: refs.Reference{Data: b}}}
					if random.IntN(2) == 0 { // before Commit, else by it
						if change.Reference, err = w.Put(t.Context(), key, b); err != nil {
							t.Fatal(err)
						}
					}
					changes = append(changes, change)
					now[key] = b
				}
				last := fmt.Sprintf("v%d", n)
				if n == 0 || n%20 == 19 {
					last = "" // from nothing
				}
				at := began.Add(time.Duration(n) * time.Hour)
				if n%10 == 3 {
					at = began // too early
				}
				if got, err := w.Commit(t.Context(), next(last, at), each(changes)); err != nil || got != fmt.Sprintf("v%d", n+1) {
					t.Fatalf("%s, %v", got, err)
				}
				versions = append(versions, maps.Clone(now))
			}
			if _, err := Open(t.Context(), files, nil); !errors.Is(err, formats.ErrFormat) {
				t.Errorf("before Finish: %v", err)
			}
			must.Do(t, w.Finish(t.Context(), nil))
			if _, err := w.Commit(t.Context(), next("", began), each(nil)); !errors.Is(err, kv.ErrClosed) {
				t.Error(err)
			}
			var all []*Set
			for n, want := range versions {
				set := must.Get(Open(t.Context(), files, &formats.Options{Version: fmt.Sprintf("v%d", n+1)}))(t)
				if got := contents(t, files, set); !equalMaps(got, want) {
					t.Fatalf("v%d: %d keys, want %d", n+1, len(got), len(want))
				}
				if n%20 == 9 {
					checkLookups(t, files, set, want)
				}
				if n%10 != 3 && n%10 != 4 && !set.Version().Time.Equal(began.Add(time.Duration(n)*time.Hour)) {
					t.Errorf("v%d: %v", n+1, set.Version().Time)
				}
				if set.stats.keys != uint64(len(want)) {
					t.Errorf("v%d: %d keys, the statistics say %d", n+1, len(want), set.stats.keys)
				}
				all = append(all, set)
			}
			checkVersions(t, files, all)
			some := []int{0, 1, 18, 19, 20, 69}
			var sets []*Set
			var values []map[string][]byte
			for _, n := range some {
				sets, values = append(sets, all[n]), append(values, versions[n])
			}
			checkChanges(t, files, sets, values)
		})
	}
}

// Keys are any bytes; values of a kv.Value that fails, wrong options and too long keys
// are errors.
func TestWriterRefuses(t *testing.T) {
	for _, o := range []*WriterOptions{{InlineBytes: maxInlineValue + 1}, {ArityLog2: 17}, {ArityLog2: -1}, {NodeBytes: -1}, {NodeBytes: 1 << 30}, {FileBytes: -1}} {
		if _, err := NewWriter(kv.NewMem(), o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	files := kv.NewMem()
	w := must.Get(NewWriter(files, nil))(t)
	bad := errors.New("bad")
	if _, err := w.Commit(t.Context(), next("", began), func(yield func(formats.Change, error) bool) { yield(formats.Change{}, bad) }); !errors.Is(err, bad) {
		t.Error(err)
	}
	if err := w.Finish(t.Context(), nil); !errors.Is(err, bad) {
		t.Error(err)
	}
	w, _ = NewWriter(files, nil)
	if _, err := w.Commit(t.Context(), next("", began), each([]formats.Change{set(strings.Repeat("k", maxKey+1), "")})); !errors.Is(err, kv.ErrInvalidKey) {
		t.Error(err)
	}
	for _, c := range []struct {
		change formats.Change
		parent string
		want   error
	}{
		{formats.Change{Entry: refs.Entry{Key: "k", Reference: refs.Reference{URL: "s3://bucket/k", Length: 1}}}, "", formats.ErrUnsupported},
		{formats.Change{Entry: refs.Entry{Key: "k", Reference: refs.Reference{URL: "d/00", Length: refs.WholeFile}}}, "", formats.ErrUnsupported},
		{set("k", "v"), "v1", formats.ErrNoVersion},
	} {
		w, _ = NewWriter(files, nil)
		if _, err := w.Commit(t.Context(), next(c.parent, began), each([]formats.Change{c.change})); !errors.Is(err, c.want) {
			t.Errorf("%+v on %q: %v", c.change, c.parent, err)
		}
		if _, err := w.Put(t.Context(), "k", make([]byte, 1000)); !errors.Is(err, c.want) {
			t.Errorf("Put afterwards: %v", err)
		}
	}
	w, _ = NewWriter(files, nil)
	odd := []formats.Change{set("", "1"), set("\xff", "2"), set("ok", "3"), set(strings.Repeat("k", maxKey), "4")}
	must.Get(w.Commit(t.Context(), next("", began), each(odd)))(t)
	must.Do(t, w.Finish(t.Context(), nil))
	var told []string
	set := must.Get(Open(t.Context(), files, &formats.Options{Skipped: func(key string) { told = append(told, key) }}))(t)
	if got := contents(t, files, set); len(got) != 2 || string(got["ok"]) != "3" || !slices.Equal(told, []string{"", "\xff"}) {
		t.Errorf("%d keys, skipped %q", len(got), told)
	}
	empty := kv.NewMem()
	w, _ = NewWriter(empty, nil)
	must.Do(t, w.Finish(t.Context(), nil))
	if set, err := Open(t.Context(), empty, nil); err != nil || set.Version().ID != "v1" {
		t.Errorf("%v, %v", set, err)
	}
}

// counted counts the reads of data files.
type counted struct {
	kv.Reader
	gets atomic.Int64
}

func (c *counted) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	if strings.HasPrefix(key, "d/") {
		c.gets.Add(1)
	}
	return c.Reader.Get(ctx, key, rng)
}

// What is read of a store of 20,000 keys and 600 generations: for a key, a prefix or
// the changes of a commit, the nodes on the way and no others.
func TestCost(t *testing.T) {
	files := kv.NewMem()
	w := must.Get(NewWriter(files, &WriterOptions{NodeBytes: 4 << 10, InlineBytes: -1}))(t)
	var first []formats.Change
	for i := range 20_000 {
		first = append(first, set(fmt.Sprintf("a%d/c/%d", i%5, i), "value"))
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(first), func(i, j int) { first[i], first[j] = first[j], first[i] })
	must.Get(w.Commit(t.Context(), next("", began), each(first)))(t)
	for i := range 599 {
		must.Get(w.Commit(t.Context(), next(fmt.Sprintf("v%d", i+1), began.AddDate(0, 0, i+1)), each([]formats.Change{set(fmt.Sprintf("a3/c/%d", i*5+3), "other")})))(t)
	}
	must.Do(t, w.Finish(t.Context(), nil))
	if w.root.height < 2 {
		t.Fatalf("the tree has height %d", w.root.height)
	}
	path := int64(w.root.height) + 1
	for _, test := range []struct {
		name string
		most int64
		use  func(set *Set) int
	}{
		{"open v300", 3, func(set *Set) int { return 1 }},
		{"lookup", 3 + path, func(set *Set) int {
			must.Get(set.Lookup(t.Context(), "a2/c/7777"))(t)
			return 1
		}},
		{"lookup of none", 3 + path, func(set *Set) int {
			if _, err := set.Lookup(t.Context(), "a2/c/7778"); err != kv.ErrNotFound {
				t.Fatal(err)
			}
			return 1
		}},
		{"list", 3 + path + 1, func(set *Set) (n int) {
			for _, err := range set.List(t.Context(), kv.ListOptions{Prefix: "a2/c/777"}) {
				if n++; err != nil {
					t.Fatal(err)
				}
			}
			return n - 2 // 7772, 7777
		}},
		{"changes", 3 + 2*path + 2, func(set *Set) (n int) {
			for c, err := range set.Changes(t.Context(), "v299") {
				if n++; err != nil || c.Key != "a3/c/1493" {
					t.Fatal(c, err)
				}
			}
			return n
		}},
		{"10 changes", 3 + 5*path, func(set *Set) (n int) {
			for _, err := range set.Changes(t.Context(), "v290") {
				if n++; err != nil {
					t.Fatal(err)
				}
			}
			return n - 9
		}},
	} {
		c := &counted{Reader: files}
		set := must.Get(Open(t.Context(), c, &formats.Options{Version: "v300"}))(t)
		if n := test.use(set); n < 0 || test.name != "list" && n != 1 {
			t.Errorf("%s: %d", test.name, n)
		}
		if got := c.gets.Load(); got > test.most {
			t.Errorf("%s: %d nodes are read, more than %d", test.name, got, test.most)
		}
		before := c.gets.Load()
		if test.use(set); c.gets.Load() != before {
			t.Errorf("%s: nodes are read again", test.name)
		}
	}
	data, count := 0, 0
	for path := range files.List(t.Context(), kv.ListOptions{}) {
		b := must.Get(kv.Get(t.Context(), files, path))(t)
		data, count = data+len(b), count+1
	}
	t.Logf("%d bytes in %d files, height %d", data, count, w.root.height)
	if data > 8<<20 {
		t.Errorf("%d bytes", data)
	}
}

var _ refs.Set = (*Set)(nil)
