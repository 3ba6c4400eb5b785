package refs_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
	"github.com/zarrdb/zarrdb/refs"
)

// openLocal opens local files, each root as a store of its own, so that no
// symbolic link leads out.
func openLocal(t testing.TB) refs.Opener {
	return func(ctx context.Context, root, path string) (kv.Value, error) {
		dir, ok := strings.CutPrefix(root, "file://")
		if !ok {
			return nil, errors.New("unknown scheme")
		}
		store, err := dirkv.Open(filepath.FromSlash(dir), &dirkv.Options{ReadOnly: true})
		if errors.Is(err, os.ErrNotExist) {
			return nil, kv.ErrNotFound
		}
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = store.Close() })
		return store.Locate(ctx, path)
	}
}

// open opens the set of a case.
func (c *fixture) open(t testing.TB) (*refs.View, error) {
	t.Helper()
	o := &refs.Options{Open: openLocal(t), Rules: refs.Rules{Base: "file://" + c.dir}}
	folder := filepath.Dir(c.Refs)
	if folder != "." {
		o.Rules.Base += "/" + filepath.ToSlash(folder)
	}
	for from, to := range c.URLMap {
		o.Rules.Map = append(o.Rules.Map, refs.Mapping{From: from, To: "file://" + c.dir + "/" + to})
	}
	if c.Format == "parquet" {
		dir := must.Get(dirkv.Open(c.dir, &dirkv.Options{ReadOnly: true}))(t)
		t.Cleanup(func() { _ = dir.Close() })
		return refs.Open(t.Context(), dir, filepath.ToSlash(c.Refs), o)
	}
	return refs.OpenJSON(t.Context(), kv.Bytes(c.file(t, c.Refs)), o)
}

func TestViewFixtures(t *testing.T) {
	n := 0
	for _, c := range fixtures(t, "*") {
		if c.Keys == "" {
			continue
		}
		n++
		t.Run(c.name, func(t *testing.T) {
			var want map[string]struct {
				Size   int
				SHA256 string
			}
			readJSON(t, filepath.Join(c.dir, c.Keys), &want)
			view := must.Get(c.open(t))(t)
			keys, err := kv.Keys(t.Context(), view, "")
			if err != nil || !slices.Equal(keys, slices.Sorted(maps.Keys(want))) {
				t.Errorf("keys %q, %v", keys, err)
			}
			for key, w := range want {
				b, err := kv.Get(t.Context(), view, key)
				if err != nil {
					t.Errorf("%s: %v", key, err)
					continue
				}
				if sum := sha256.Sum256(b); len(b) != w.Size || hex.EncodeToString(sum[:]) != w.SHA256 {
					t.Errorf("%s: %d bytes instead of %d, or others: %.200q", key, len(b), w.Size, b)
				}
			}
			seen := map[string]bool{}
			for e, err := range view.Entries(t.Context()) {
				must.Do(t, err)
				if _, ok := want[e.Key]; !ok || seen[e.Key] {
					t.Errorf("entry %q", e.Key)
				}
				seen[e.Key] = true
			}
			if len(seen) != len(want) {
				t.Errorf("%d entries", len(seen))
			}
		})
	}
	if n < 20 {
		t.Errorf("%d cases", n)
	}
}

// TestInvalidViews reads the array of sets that are wrong.
func TestInvalidViews(t *testing.T) {
	want := map[string]error{
		"absolute_path": refs.ErrForbidden, "escaping_path": refs.ErrForbidden, "unknown_scheme": refs.ErrForbidden, "parquet_escaping_path": refs.ErrForbidden,
		"huge_length": refs.ErrUnreachable, "missing_file": refs.ErrUnreachable, "offset_overflow": refs.ErrUnreachable, "past_end_of_file": refs.ErrUnreachable,
		"parquet_truncated": kv.ErrCorrupt, "parquet_too_few_rows": kv.ErrCorrupt,
	}
	for _, c := range fixtures(t, "invalid/*") {
		if c.Stage != "read" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			view, err := c.open(t)
			if err == nil {
				_, err = kv.Get(t.Context(), view, "x/0")
			}
			t.Log(err)
			if err == nil || errors.Is(err, kv.ErrNotFound) {
				t.Errorf("it is read: %v", err)
			}
			is := want[c.name]
			if is == nil {
				is = refs.ErrInvalid
			}
			if !errors.Is(err, is) {
				t.Errorf("%v is not %v", err, is)
			}
		})
	}
}

func TestViewSuite(t *testing.T) {
	dots := func(key string) bool {
		for name := range strings.SplitSeq(key, "/") {
			if name == "." || name == ".." {
				return false
			}
		}
		return true
	}
	kvtest.Run(t, nil, kvtest.Options{Holds: dots, Fill: func(t *testing.T, content map[string][]byte) kv.Reader {
		set := map[string]any{}
		for key, b := range content {
			set[key] = "base64:" + base64.StdEncoding.EncodeToString(b)
		}
		text := must.Get(json.Marshal(set))(t)
		view := must.Get(refs.OpenJSON(t.Context(), kv.Bytes(text), nil))(t)
		return view
	}})
}

// TestViewFiles runs the suite on values that lie in one file, one behind the
// other, and in files of their own.
func TestViewFiles(t *testing.T) {
	kvtest.Run(t, nil, kvtest.Options{
		Holds: func(key string) bool { return !strings.Contains(key, "/.") && !strings.HasPrefix(key, ".") },
		Fill: func(t *testing.T, content map[string][]byte) kv.Reader {
			files := map[string]kv.Bytes{"all": nil}
			set := map[string]any{}
			for i, key := range slices.Sorted(maps.Keys(content)) {
				b := content[key]
				if i%3 == 0 {
					name := "f" + string(rune('a'+i%26)) + "/" + hex.EncodeToString([]byte(key))
					files[name] = b
					set[key] = []any{name}
					continue
				}
				set[key] = []any{"all", len(files["all"]), len(b)}
				files["all"] = append(files["all"], b...)
			}
			text := must.Get(json.Marshal(set))(t)
			view := must.Get(refs.OpenJSON(t.Context(), kv.Bytes(text), &refs.Options{
				Rules: refs.Rules{Base: "memory://m/"},
				Open: func(_ context.Context, root, path string) (kv.Value, error) {
					b, ok := files[path]
					if !ok || root != "memory://m/" {
						return nil, kv.ErrNotFound
					}
					return b, nil
				},
			}))(t)
			return view
		},
	})
}
