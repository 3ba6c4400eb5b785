package ocdbt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// load reads the files below a directory into memory.
func load(t testing.TB, dir string) *kv.Mem {
	t.Helper()
	mem := kv.NewMem()
	root := os.DirFS(dir)
	matches := 0
	for _, pattern := range []string{"*", "*/*"} {
		names := must.Get(filepath.Glob(filepath.Join(dir, pattern)))(t)
		for _, name := range names {
			name, _ = filepath.Rel(dir, name)
			name = filepath.ToSlash(name)
			f := must.Get(root.Open(name))(t)
			info, _ := f.Stat()
			f.Close()
			if info.IsDir() {
				continue
			}
			b := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
			must.Do(t, mem.Set(t.Context(), name, b))
			matches++
		}
	}
	if matches == 0 {
		t.Fatalf("no files in %s", dir)
	}
	return mem
}

// golden is what a case must give.
type golden struct {
	Versions []struct {
		Version string
		Values  map[string]struct{ Base64 []byte }
		Any     map[string][]byte `json:"any_values"` // by key in base64
		Time    uint64            `json:"commit_time_ns"`
	}
}

var goldens = []string{"any_keys", "ocdbt_indirect_zstd", "ocdbt_inline", "ocdbt_many_nodes"}

func readGolden(t testing.TB, name string) (*kv.Mem, []map[string][]byte, golden) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name, "expect.json"))
	var g golden
	must.Do(t, errors.Join(err, json.Unmarshal(b, &g)))
	var versions []map[string][]byte
	for _, v := range g.Versions {
		want := map[string][]byte{}
		for k, x := range v.Values {
			want[k] = x.Base64
		}
		for k, x := range v.Any {
			var key []byte
			must.Do(t, json.Unmarshal([]byte(`"`+k+`"`), &key))
			want[string(key)] = x
		}
		versions = append(versions, want)
	}
	return load(t, filepath.Join("testdata", name, "db")), versions, g
}

// bytesOf reads what a reference refers to.
func bytesOf(t testing.TB, files kv.Reader, r refs.Reference) []byte {
	t.Helper()
	if r.Inline() {
		return r.Data
	}
	b := must.Get(files.Get(context.Background(), r.URL, kv.Span(r.Offset, r.Length)))(t)
	return b
}

func contents(t testing.TB, files kv.Reader, set refs.Set) map[string][]byte {
	t.Helper()
	got, last := map[string][]byte{}, ""
	for e, err := range set.Entries(t.Context()) {
		must.Do(t, err)
		if e.Key <= last {
			t.Fatalf("%q after %q", e.Key, last)
		}
		last = e.Key
		got[e.Key] = bytesOf(t, files, e.Reference)
	}
	return got
}

func equalMaps(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }

// without removes the keys that no store can have.
func without(m map[string][]byte) (rest map[string][]byte, skipped []string) {
	rest = map[string][]byte{}
	for k, v := range m {
		if refs.Storable(k) {
			rest[k] = v
		} else {
			skipped = append(skipped, k)
		}
	}
	slices.Sort(skipped)
	return rest, skipped
}

// Every generation of every store has the values that tensorstore wrote.
func TestGolden(t *testing.T) {
	for _, name := range goldens {
		t.Run(name, func(t *testing.T) {
			files, versions, g := readGolden(t, name)
			var all []*Set
			for i, v := range g.Versions {
				var mu sync.Mutex
				var told []string
				set := must.Get(Open(t.Context(), files, &formats.Options{Version: v.Version, Skipped: func(key string) {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, key)
				}}))(t)
				want, skipped := without(versions[i])
				if got := contents(t, files, set); !equalMaps(got, want) {
					t.Fatalf("%s: %d keys, want %d: %q", v.Version, len(got), len(want), slices.Sorted(maps.Keys(got)))
				}
				if !slices.Equal(told, skipped) {
					t.Errorf("%s: skipped %q, want %q", v.Version, told, skipped)
				}
				checkLookups(t, files, set, versions[i])
				all = append(all, set)
			}
			checkVersions(t, files, all)
			checkChanges(t, files, all, versions)
			for i, v := range g.Versions {
				if v.Time == 0 {
					continue
				}
				if got := all[i].Version().Time; got.UnixNano() != int64(v.Time) {
					t.Errorf("%s: %v", v.Version, got)
				}
			}
		})
	}
}

// checkLookups looks up keys of a set and others, and lists with prefixes.
func checkLookups(t *testing.T, files kv.Reader, set *Set, all map[string][]byte) {
	t.Helper()
	want, _ := without(all)
	keys := slices.Sorted(maps.Keys(want))
	for _, key := range keys {
		r, err := set.Lookup(t.Context(), key)
		if err != nil {
			t.Fatalf("%q: %v", key, err)
		}
		if !bytes.Equal(bytesOf(t, files, r), want[key]) {
			t.Fatalf("%q has another value", key)
		}
	}
	for key := range all {
		for _, other := range []string{key + "0", key[:len(key)-1], key + "\x00", "", "zzz", key[:len(key)-1] + "\x7f"} {
			if _, ok := want[other]; ok {
				continue
			}
			if _, err := set.Lookup(t.Context(), other); err != kv.ErrNotFound {
				t.Fatalf("%q: %v", other, err)
			}
		}
	}
	for _, prefix := range append([]string{"", "a", "a/", "dir1/", "dir1/k", "deep/", "deep/nnnnnnnn", "q", "\xff"}, keys...) {
		for _, after := range append([]string{"", "dir1/k2", "deep/nnn"}, keys[:min(len(keys), 12)]...) {
			var listed []string
			for key, err := range set.List(t.Context(), kv.ListOptions{Prefix: prefix, After: after}) {
				must.Do(t, err)
				listed = append(listed, key)
			}
			var wanted []string
			for _, key := range keys {
				if strings.HasPrefix(key, prefix) && key > after {
					wanted = append(wanted, key)
				}
			}
			if !slices.Equal(listed, wanted) {
				t.Fatalf("prefix %q after %q: %q, want %q", prefix, after, listed, wanted)
			}
		}
	}
}

func checkVersions(t *testing.T, files kv.Reader, all []*Set) {
	t.Helper()
	for i, set := range all {
		v := set.Version()
		if i > 0 != (len(v.Parents) == 1) || i > 0 && v.Parents[0] != all[i-1].Version().ID {
			t.Errorf("parents of %s: %v", v.ID, v.Parents)
		}
		at := i
		for h, err := range set.History(t.Context()) {
			must.Do(t, err)
			want := all[at].Version()
			if h.ID != want.ID || !slices.Equal(h.Parents, want.Parents) || !h.Time.Equal(want.Time) {
				t.Errorf("history: %v, want %v", h, want)
			}
			at--
		}
		if at != -1 {
			t.Errorf("the history of %s ends %d generations too early", v.ID, at+1)
		}
		for _, shift := range []time.Duration{0, 1, -1} {
			want := -1
			for want+1 < len(all) && !all[want+1].Version().Time.After(v.Time.Add(shift)) {
				want++
			}
			o := &formats.Options{Version: v.Time.Add(shift).Format(time.RFC3339Nano)}
			got, err := Open(t.Context(), files, o)
			if want < 0 {
				if !errors.Is(err, formats.ErrNoVersion) {
					t.Errorf("before the first: %v", err)
				}
			} else if err != nil || got.number != all[want].number {
				t.Errorf("%s: %v, %v", o.Version, got, err)
			}
		}
	}
	newest, err := Open(t.Context(), files, nil)
	if err != nil || newest.number != all[len(all)-1].number {
		t.Errorf("newest: %v, %v", newest, err)
	}
	for _, bad := range []string{"v0", "v999", "v", "x", "v-1", "1960-01-01T00:00:00Z", "2026", "v1 "} {
		if _, err := newest.At(t.Context(), bad); !errors.Is(err, formats.ErrNoVersion) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if far, err := newest.At(t.Context(), "9999-01-01T00:00:00+02:00"); err != nil || far.Version().ID != newest.Version().ID {
		t.Errorf("in the far future: %v, %v", far, err)
	}
}

func checkChanges(t *testing.T, files kv.Reader, all []*Set, versions []map[string][]byte) {
	t.Helper()
	for i, set := range all {
		for j := -1; j < len(all); j++ {
			old, since := map[string][]byte{}, ""
			if j >= 0 {
				old, _ = without(versions[j])
				since = all[j].Version().ID
			}
			now, _ := without(versions[i])
			last := ""
			for c, err := range set.Changes(t.Context(), since) {
				must.Do(t, err)
				if c.Key <= last {
					t.Errorf("%q after %q", c.Key, last)
				}
				last = c.Key
				if _, there := old[c.Key]; c.Deleted {
					if !there {
						t.Errorf("from %s to %s: %q is deleted, and was not there", since, set.Version().ID, c.Key)
					}
					delete(old, c.Key)
					continue
				}
				b := bytesOf(t, files, c.Reference)
				if was, there := old[c.Key]; there && len(b) <= int(set.s.maxInline) && bytes.Equal(was, b) {
					t.Errorf("%q did not change", c.Key)
				}
				old[c.Key] = b
			}
			if !equalMaps(old, now) {
				t.Errorf("changes from %q do not lead to %s", since, set.Version().ID)
			}
		}
	}
}

// counted counts the reads of data files.
type counted struct {
	kv.Reader
	gets atomic.Int64
}

func (c *counted) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	if key != manifestName {
		c.gets.Add(1)
	}
	return c.Reader.Get(ctx, key, rng)
}

// A key and a prefix cost the nodes on the way, each read once.
func TestCost(t *testing.T) {
	files, versions, _ := readGolden(t, "ocdbt_many_nodes")
	newest := must.Get(Open(t.Context(), files, nil))(t)
	path, key := int64(newest.height)+1, slices.Max(slices.Collect(maps.Keys(versions[len(versions)-1])))
	if path < 3 {
		t.Fatalf("the tree has height %d", newest.height)
	}
	for name, test := range map[string]struct {
		most int64
		use  func(set *Set) error
	}{
		"open":           {0, func(*Set) error { return nil }},
		"lookup":         {path, func(set *Set) error { _, err := set.Lookup(t.Context(), key); return err }},
		"lookup of none": {path, func(set *Set) error { _, err := set.Lookup(t.Context(), key+"0"); return err }},
		"list": {path, func(set *Set) (err error) {
			for _, e := range set.List(t.Context(), kv.ListOptions{Prefix: key}) {
				err = errors.Join(err, e)
			}
			return err
		}},
	} {
		c := &counted{Reader: files}
		set := must.Get(Open(t.Context(), c, nil))(t)
		if err := test.use(set); err != nil && !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
		got := c.gets.Load()
		if got > test.most {
			t.Errorf("%s: %d nodes are read, more than %d", name, got, test.most)
		}
		if _ = test.use(set); c.gets.Load() != got {
			t.Errorf("%s: nodes are read again", name)
		}
	}
}
