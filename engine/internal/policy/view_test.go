package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
)

// A store whose documents are corrected is a view as others are, also if it cannot be listed.
func TestCorrectedView(t *testing.T) {
	for name, plain := range map[string]func(m *kv.Mem) kv.Reader{
		"listed": func(m *kv.Mem) kv.Reader { return m },
		"read":   func(m *kv.Mem) kv.Reader { return struct{ kv.Reader }{m} },
	} {
		t.Run(name, func(t *testing.T) {
			kvtest.Run(t, nil, kvtest.Options{Fill: func(t *testing.T, content map[string][]byte) kv.Reader {
				m := kv.NewMem()
				for k, v := range content {
					must.Do(t, m.Set(t.Context(), k, v))
				}
				return WithSeparators(WithTold(plain(m)))
			}})
		})
	}
}

// A view with the documents that only consolidated metadata has is the same as a store that
// has them, in every listing and way to read.
func TestToldView(t *testing.T) {
	const array, group = `{"zarr_format":2,"shape":[1]}`, `{"zarr_format":2}`
	v2 := fmt.Sprintf(`{"zarr_consolidated_format":1,"metadata":{".zgroup":%[2]s,"a/.zarray":%[1]s,"a/.zattrs":{},"gone/.zarray":%[1]s,"g/.zgroup":%[2]s,"g/b/.zarray":%[1]s,
		"has/.zarray":%[1]s,"has/.zattrs":{"x":1},"other/.zarray":%[1]s}}`, array, group)
	v3 := `{"zarr_format":3,"node_type":"group","consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":{"a":{"a":1},"gone":{"b":1},"g":{"c":1},"g/b":{"d":1},"has":{"e":1}}}}`
	for name, c := range map[string]struct{ has, told map[string]string }{
		"v2": {
			map[string]string{".zgroup": group, ".zmetadata": v2, "a/0": "x", "g/b/0": "y", "has/.zarray": array, "has/0": "z", "other/zarr.json": "{}", "z": "1"},
			map[string]string{"a/.zarray": array, "a/.zattrs": "{}", "g/.zgroup": group, "g/b/.zarray": array},
		},
		"v3": {
			map[string]string{"zarr.json": v3, "a/c/0": "x", "a/zz": "x", "g/b/c/0": "y", "has/zarr.json": "{}", "has/c/0": "z", "z": "1"},
			map[string]string{"a/zarr.json": "{\n  \"a\": 1\n}", "g/zarr.json": "{\n  \"c\": 1\n}", "g/b/zarr.json": "{\n  \"d\": 1\n}"},
		},
		"no copy": {map[string]string{".zgroup": group, "a/0": "x"}, nil},
		"broken":  {map[string]string{".zgroup": group, ".zmetadata": "{", "zarr.json": `{"consolidated_metadata":[]}`, "a/0": "x"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			store, all := kv.NewMem(), kv.NewMem()
			for key, text := range c.has {
				must.Do(t, errors.Join(store.Set(t.Context(), key, []byte(text)), all.Set(t.Context(), key, []byte(text))))
			}
			for key, text := range c.told {
				must.Do(t, all.Set(t.Context(), key, []byte(text)))
			}
			view := WithTold(store).(kv.ReadLister)
			list := func(l kv.Lister, o kv.ListOptions) (keys []string) {
				for key, err := range l.List(t.Context(), o) {
					must.Do(t, err)
					keys = append(keys, key)
				}
				return keys
			}
			dir := func(l kv.Lister, prefix string) (names []kv.DirEntry) {
				for e, err := range kv.ListDir(t.Context(), l, prefix) {
					must.Do(t, err)
					names = append(names, e)
				}
				return names
			}
			keys := list(all, kv.ListOptions{})
			for _, after := range append(keys, "", "a", "zzz") {
				for _, prefix := range append(keys, "", "a", "a/", "g/", "g/b/", "gone/", "has/", "zzz") {
					o := kv.ListOptions{Prefix: prefix, After: after}
					if got, want := list(view, o), list(all, o); !slices.Equal(got, want) {
						t.Errorf("%+v: %q, want %q", o, got, want)
					}
				}
			}
			for _, prefix := range []string{"", "a/", "g/", "g/b/", "gone/", "has/", "other/"} {
				if got, want := dir(view, prefix), dir(all, prefix); !slices.Equal(got, want) {
					t.Errorf("%q: %+v, want %+v", prefix, got, want)
				}
			}
			reqs := []kv.Request{}
			for _, key := range append(keys, "gone/.zarray", "gone/zarr.json", "has/.zattrs", "other/.zarray", "b/.zarray") {
				reqs = append(reqs, kv.Request{Key: key})
				want, werr := kv.Get(t.Context(), all, key)
				got, err := kv.Get(t.Context(), view, key)
				v, lerr := kv.Locate(t.Context(), view, key)
				if string(got) != string(want) || !errors.Is(err, werr) || !errors.Is(lerr, werr) || werr == nil && v.Size() != int64(len(want)) {
					t.Errorf("%s: %q, %v, %v, want %q, %v", key, got, err, lerr, want, werr)
				}
			}
			got, err := kv.GetMany(t.Context(), view, reqs)
			want, _ := kv.GetMany(t.Context(), all, reqs)
			if err != nil || !slices.EqualFunc(got, want, slices.Equal) {
				t.Errorf("%q, %v, want %q", got, err, want)
			}
		})
	}
}

// Entries of consolidated metadata that no store can have as nodes are no error of the others.
func TestToldOddEntries(t *testing.T) {
	const array = `{"zarr_format":2,"shape":[1]}`
	for _, odd := range []string{"..", "../b", "/b", "b//c", "./b", "b/.", "b\\u0000", strings.Repeat("x", 5000)} {
		store := must.Get(dirkv.Open(t.TempDir(), nil))(t)
		v2 := fmt.Sprintf(`{"zarr_consolidated_format":1,"metadata":{"b/.zarray":%[1]s,"%[2]s/.zarray":%[1]s}}`, array, odd)
		v3 := fmt.Sprintf(`{"zarr_format":3,"consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":{"b":{"a":1},"%s":{"a":1}}}}`, odd)
		for key, text := range map[string]string{".zmetadata": v2, "zarr.json": v3, "b/0": "x"} {
			must.Do(t, store.Set(t.Context(), key, []byte(text)))
		}
		view := WithTold(store).(kv.ReadLister)
		var keys []string
		for key, err := range view.List(t.Context(), kv.ListOptions{}) {
			if err != nil {
				t.Errorf("%.20q: %v", odd, err)
			}
			keys = append(keys, key)
		}
		if want := []string{".zmetadata", "b/.zarray", "b/0", "b/zarr.json", "zarr.json"}; !slices.Equal(keys, want) {
			t.Errorf("%.20q: %q, want %q", odd, keys, want)
		}
	}
}
