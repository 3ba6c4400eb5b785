package icechunk

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

var repositories = []string{"v1", "v2"}

func TestGoldenVersions(t *testing.T) {
	for _, name := range repositories {
		files, want := golden(t, name)
		for id, v := range want.Versions {
			t.Run(name+"/"+v.Message, func(t *testing.T) {
				s := open(t, files, strings.ToLower(id))
				got := s.Version()
				if got.ID != id || got.Message != v.Message || got.Time.UnixMicro() != v.Micros || got.Author != v.Author || strings.Join(got.Parents, " ") != v.Parent {
					t.Errorf("version %+v, want %+v", got, v)
				}
				list := slices.Sorted(maps.Keys(v.Keys))
				if got := keys(t, t.Context(), s, kv.ListOptions{}); !slices.Equal(got, list) {
					t.Errorf("keys %q, want %q", got, list)
				}
				for key, sum := range v.Keys {
					r, err := s.Lookup(t.Context(), key)
					if err != nil {
						t.Fatalf("%s: %v", key, err)
					}
					if got := digest(t, files, r); got != sum {
						t.Errorf("%s: %+v is %s, want %s", key, r, got, sum)
					}
				}
				seen := map[string]bool{}
				for e, err := range s.Entries(t.Context()) {
					must.Do(t, err)
					if seen[e.Key] || v.Keys[e.Key] == "" || digest(t, files, e.Reference) != v.Keys[e.Key] {
						t.Errorf("entry %+v", e)
					}
					seen[e.Key] = true
				}
				if len(seen) != len(list) {
					t.Errorf("%d entries, want %d", len(seen), len(list))
				}
			})
		}
	}
}

func TestGoldenListsPrefixes(t *testing.T) {
	for _, name := range repositories {
		files, want := golden(t, name)
		for id, v := range want.Versions {
			s := open(t, files, id)
			list := slices.Sorted(maps.Keys(v.Keys))
			for _, o := range []kv.ListOptions{{Prefix: "split/c/1"}, {Prefix: "split/c/1/"}, {Prefix: "split/c/1/1"}, {Prefix: "virtual/c/2"}, {Prefix: "grp"}, {Prefix: "x"}, {After: "split/c/1/10"}, {Prefix: "split/", After: "split/c/2"}, {Prefix: "split/zarr"}, {After: "zarr.json"}} {
				var want []string
				for _, key := range list {
					if strings.HasPrefix(key, o.Prefix) && key > o.After {
						want = append(want, key)
					}
				}
				if got := keys(t, t.Context(), s, o); !slices.Equal(got, want) {
					t.Errorf("%s %s %+v: %q, want %q", name, v.Message, o, got, want)
				}
			}
		}
	}
}

// TestGoldenChanges compares each version with each.
func TestGoldenChanges(t *testing.T) {
	for _, name := range repositories {
		files, want := golden(t, name)
		for id, v := range want.Versions {
			s := open(t, files, id)
			for since := range want.Versions {
				state := maps.Clone(want.Versions[since].Keys)
				seen := map[string]bool{}
				for c, err := range s.Changes(t.Context(), since) {
					must.Do(t, err)
					if seen[c.Key] {
						t.Errorf("%s: %s comes twice", name, c.Key)
					}
					seen[c.Key] = true
					if c.Deleted {
						delete(state, c.Key)
					} else {
						state[c.Key] = digest(t, files, c.Reference)
					}
				}
				if !maps.Equal(state, v.Keys) {
					t.Errorf("%s: from %s to %s: %v, want %v", name, since, id, state, v.Keys)
				}
				if since == id && len(seen) > 0 {
					t.Errorf("%s: %d changes since itself", name, len(seen))
				}
			}
		}
	}
}

func TestGoldenHistoryAndNames(t *testing.T) {
	for _, name := range repositories {
		files, want := golden(t, name)
		s := open(t, files, "")
		names := must.Get(s.Names(t.Context()))(t)
		got := map[string]string{}
		for _, n := range names {
			kind := branchOf
			if n.Tag {
				kind = tagOf
			}
			got[kind+n.Name] = n.ID
			history := 0
			set := open(t, files, kind+n.Name)
			for v, err := range set.History(t.Context()) {
				must.Do(t, err)
				w, ok := want.Versions[v.ID]
				if !ok || w.Message != v.Message || strings.Join(v.Parents, " ") != w.Parent {
					t.Errorf("%s: %+v, want %+v", name, v, w)
				}
				history++
			}
			if set.Version().ID != n.ID || history < 3 {
				t.Errorf("%s: %+v has %d versions", name, n, history)
			}
		}
		if !maps.Equal(got, want.Names) {
			t.Errorf("%s: names %v, want %v", name, got, want.Names)
		}
	}
}

func TestVersionsThatAreNot(t *testing.T) {
	for _, name := range repositories {
		files, _ := golden(t, name)
		for _, version := range []string{"tag.gone", "tag.none", "branch.none", "branch.", "tag.", "v1", "main", "branch.MAIN", "branch.a/b", "00000000000000000000", "1CECHNKREP0F1RSTCMT", "../../../etc/passwd"} {
			_, err := Open(t.Context(), files, version)
			if !errors.Is(err, formats.ErrNoVersion) {
				t.Errorf("%s: %q: %v", name, version, err)
				continue
			}
			// The versions that the error lists can be opened.
			_, list, _ := strings.Cut(err.Error(), "; there are ")
			some := strings.Split(list, ", ")
			for _, other := range some {
				if _, err := Open(t.Context(), files, strings.TrimPrefix(other, "@")); err != nil {
					t.Errorf("%s: %q: %v", name, other, err)
				}
			}
			if len(some) < 3 {
				t.Errorf("%s: %q: it lists %q", name, version, some)
			}
		}
	}
	if _, err := Open(t.Context(), kv.NewMem(), ""); !errors.Is(err, formats.ErrFormat) {
		t.Errorf("no repository: %v", err)
	}
}

// The versions that an error lists can be typed in a URL.
func TestListedVersionsAreEscaped(t *testing.T) {
	files, _ := golden(t, "v1")
	odd := kv.NewMem()
	for key, err := range files.List(t.Context(), kv.ListOptions{}) {
		must.Do(t, err)
		b := must.Get(kv.Get(t.Context(), files, key))(t)
		must.Do(t, odd.Set(t.Context(), strings.Replace(key, "refs/branch.side/", "refs/branch.to side|x/", 1), b))
	}
	_, err := Open(t.Context(), odd, "branch.side")
	if !errors.Is(err, formats.ErrNoVersion) || !strings.Contains(err.Error(), "@branch.to%20side%7Cx") {
		t.Error(err)
	}
}

// TestOneManifest reads one chunk of an array with many manifests, and only the
// manifest that has it.
func TestOneManifest(t *testing.T) {
	for _, name := range repositories {
		files, _ := golden(t, name)
		counted := &counting{Reader: files, read: map[string]int{}}
		s := open(t, counted, "")
		if n := len(s.snap.node("split").covers); n < 4 {
			t.Fatalf("%s: %d manifests", name, n)
		}
		for range 3 {
			must.Get(s.Lookup(t.Context(), "split/c/3/0"))(t)
		}
		if counted.read["manifests/"] != 1 || counted.read["snapshots/"] != 1 {
			t.Errorf("%s: read %v", name, counted.read)
		}
	}
}

type counting struct {
	kv.Reader
	read map[string]int
}

func (c *counting) Locate(ctx context.Context, key string) (kv.Value, error) {
	folder, _, _ := strings.Cut(key, "/")
	c.read[folder+"/"]++
	return kv.Locate(ctx, c.Reader, key)
}

func TestKeysThatAreNot(t *testing.T) {
	for _, name := range repositories {
		files, _ := golden(t, name)
		s := open(t, files, "tag.v1")
		for _, key := range []string{"", "zarr.jso", "/zarr.json", "split", "split/", "split/c", "split/c/0", "split/c/00/0", "split/c/+0/0", "split/c/0/0/0", "split/c/0.0", "split/c/9/9", "split/c/4294967296/0", "split//c/0/0", "empty/c/0", "split/zarr.json/", "nothing/zarr.json", "scalar/c/0", "grp/c"} {
			if r, err := s.Lookup(t.Context(), key); err != kv.ErrNotFound {
				t.Errorf("%s: %q is %+v, %v", name, key, r, err)
			}
		}
	}
}

func TestChunkKeys(t *testing.T) {
	for _, c := range []struct {
		document, key string
		coords        []uint32
	}{
		{`{}`, "c/1/2", []uint32{1, 2}},
		{`{}`, "c", []uint32{}},
		{`{"chunk_key_encoding":{"name":"default","configuration":{"separator":"."}}}`, "c.1.2", []uint32{1, 2}},
		{`{"chunk_key_encoding":{"name":"v2"}}`, "1.2", []uint32{1, 2}},
		{`{"chunk_key_encoding":{"name":"v2","configuration":{"separator":"/"}}}`, "1/2", []uint32{1, 2}},
		{`{"chunk_key_encoding":"v2"}`, "10.0", []uint32{10, 0}},
	} {
		k := keysOf([]byte(c.document))
		got, ok := k.parse(c.key)
		if !ok || !slices.Equal(got, c.coords) {
			t.Errorf("%s: %q is %v", c.document, c.key, got)
		}
		if key := string(k.append(nil, c.coords)); key != c.key {
			t.Errorf("%s: %v is %q", c.document, c.coords, key)
		}
	}
}

func TestDecimalOrder(t *testing.T) {
	list := []uint32{0, 1, 10, 100, 1000000000, 11, 19, 2, 20, 4294967295, 43, 9, 99}
	if !slices.IsSortedFunc(list, func(a, b uint32) int { return int(int64(decimal(a)) - int64(decimal(b))) }) {
		t.Errorf("not in order: %v", list)
	}
}

func TestContainers(t *testing.T) {
	for _, text := range []string{
		"a: 1\nvirtual_chunk_containers:\n  s3://b/:\n    name: null\n    url_prefix: s3://b/\n    store: !s3\n      name: x\n      region: us\n  'gs://x/':\n    name: data\n    url_prefix: gs://x/y/\n    store: !gcs\n      a: b\nmanifest:\n  name: no\n",
		`{"virtual_chunk_containers": {"a": {"name": null, "url_prefix": "s3://b/"}, "b": {"name": "data", "url_prefix": "gs://x/y/"}}}`,
		"virtual_chunk_containers:\n  \"gs://x/\":\n    name: \"data\"\n    url_prefix: 'gs://x/y/'\n",
	} {
		got, err := parseConfig([]byte(text))
		if err != nil || len(got) != 1 || got["data"] != "gs://x/y/" {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	c := &containers{read: func() (map[string]string, error) { return map[string]string{"data": "gs://x/y/"}, nil }}
	for url, want := range map[string]string{"vcc://data/a/b": "gs://x/y/a/b", "s3://a/b": "s3://a/b"} {
		if got, err := c.expand(url); got != want || err != nil {
			t.Errorf("%s: %s, %v", url, got, err)
		}
	}
	for _, url := range []string{"vcc://other/a", "vcc:///a", "vcc://data"} {
		if got, err := c.expand(url); !errors.Is(err, formats.ErrFormat) {
			t.Errorf("%s: %s, %v", url, got, err)
		}
	}
}

func TestDetect(t *testing.T) {
	for _, name := range repositories {
		files, _ := golden(t, name)
		e := formats.Evidence{File: func(name string) []byte {
			b, _ := kv.Get(t.Context(), files, name)
			return b
		}}
		if !Format().Detect(e) {
			t.Errorf("%s is not detected", name)
		}
	}
	if Format().Detect(formats.Evidence{File: func(string) []byte { return []byte("else") }}) {
		t.Error("something else is detected")
	}
}

// TestListDir compares with what a listing of keys tells, and reads no manifest.
func TestListDir(t *testing.T) {
	for _, name := range repositories {
		files, want := golden(t, name)
		for id := range want.Versions {
			counted := &counting{Reader: files, read: map[string]int{}}
			s := open(t, counted, id)
			for _, prefix := range []string{"", "split/", "grp/", "grp/small/", "empty/", "virtual/", "none/"} {
				var got, listed []kv.DirEntry
				for e, err := range kv.ListDir(t.Context(), s, prefix) {
					must.Do(t, err)
					got = append(got, e)
				}
				if counted.read["manifests/"] > 0 {
					t.Errorf("%s %q: read %v", name, prefix, counted.read)
				}
				for e, err := range kv.ListDir(t.Context(), struct{ kv.Lister }{open(t, files, id)}, prefix) {
					must.Do(t, err)
					listed = append(listed, e)
				}
				if !slices.Equal(got, listed) {
					t.Errorf("%s %s %q: %v, want %v", name, id, prefix, got, listed)
				}
			}
		}
	}
}

// TestBranchWithoutSnapshot opens a branch whose snapshot is lost: the repository is
// damaged.
func TestBranchWithoutSnapshot(t *testing.T) {
	files, _ := golden(t, "v1")
	m := memory(t, files)
	keys, err := kv.Keys(t.Context(), m, "snapshots/")
	for _, key := range keys {
		err = errors.Join(err, m.Delete(t.Context(), key))
	}
	if err != nil || len(keys) == 0 {
		t.Fatal(len(keys), err)
	}
	for _, version := range []string{"", "branch.main"} {
		if _, err := Open(t.Context(), m, version); !errors.Is(err, kv.ErrCorrupt) || errors.Is(err, formats.ErrNoVersion) {
			t.Errorf("%q: %v", version, err)
		}
	}
}
