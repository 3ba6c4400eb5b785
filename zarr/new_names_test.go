package zarr

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// TestNewNames makes nodes of names that are not possible, and leaves nothing.
func TestNewNames(t *testing.T) {
	bad := map[Version][]string{
		V1: {".", "..", "a/.."},
		V2: {".", "..", "a/../b"},
		V3: {".", "..", "...", "a/....", "__", "__a", "a/__b/c", "a//b"},
	}
	for v := range bad {
		for _, name := range []string{"zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "meta", "attrs"} {
			if meta.CheckNewPath(v, name) != nil {
				bad[v] = append(bad[v], name, "a/"+name, name+"/a")
			}
		}
	}
	for v, list := range bad {
		for _, path := range list {
			for _, overwrite := range []bool{false, true} {
				store := kv.NewMem()
				_, err := Create(t.Context(), store, path, Spec{Version: v, Shape: []int64{1}, DataType: "int8"}, &OpenOptions{Overwrite: overwrite})
				if !errors.Is(err, ErrPath) || !strings.HasPrefix(err.Error(), "create "+path+": zarr: bad path: ") {
					t.Errorf("%v: array %s: %v", v, path, err)
				}
				if v != V1 {
					if _, err := CreateGroup(t.Context(), store, path, Attributes{}, &OpenOptions{Version: v, Overwrite: overwrite}); !errors.Is(err, ErrPath) {
						t.Errorf("%v: group %s: %v", v, path, err)
					}
				}
				if some, err := kv.Any(t.Context(), store, ""); some || err != nil {
					t.Errorf("%v: %s left something: %v", v, path, err)
				}
			}
		}
	}

	// Who has them may use them.
	store := kv.NewMem()
	for _, key := range []string{"zarr.json", "zarr.json/zarr.json", "a/zarr.json", "a/.zattrs/zarr.json"} {
		must.Do(t, store.Set(t.Context(), key, []byte(`{"zarr_format":3,"node_type":"group"}`)))
	}
	if got := paths(store, "", nil); !slices.Equal(got, []string{"/", "a/", "a/.zattrs/", "zarr.json/"}) {
		t.Errorf("%q", got)
	}
}

// TestBackslash makes a node whose name has a backslash, which separates names in
// v2 and not in v3.
func TestBackslash(t *testing.T) {
	for v, want := range map[Version]string{
		V2: `.zgroup a/.zgroup a/b/.zarray`,
		V3: `a\b/zarr.json zarr.json`,
	} {
		store := kv.NewMem()
		must.Get(Create(t.Context(), store, `a\b`, Spec{Version: v, Shape: []int64{1}, DataType: "int8"}, nil))(t)
		var keys []string
		for key, err := range store.List(t.Context(), kv.ListOptions{}) {
			must.Do(t, err)
			keys = append(keys, key)
		}
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	// What a v2 reader would take for a group above is none.
	store := kv.NewMem()
	for _, path := range []string{"a", `a\b`} {
		if _, err := Create(t.Context(), store, path, Spec{Shape: []int64{1}, DataType: "int8"}, nil); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
