package hdf5_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/formats/hdf5"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/zarr"
)

// golden is what testdata/index.json says of a file.
type golden struct {
	Arrays map[string]struct {
		Shape   []int64
		Dims    []string
		SHA256  string
		Texts   []string
		Attrs   map[string]any
		Refused string
	}
	Absent []string
	Attrs  map[string]map[string]any // of groups
}

func goldens(t testing.TB) map[string]golden {
	t.Helper()
	var index map[string]golden
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile("testdata/index.json"))(t), &index))
	return index
}

// load reads a file of testdata, which is compressed there.
func load(t testing.TB, name string) []byte {
	t.Helper()
	z := must.Get(gzip.NewReader(bytes.NewReader(must.Get(os.ReadFile(filepath.Join("testdata", name+".gz")))(t))))(t)
	return must.Get(io.ReadAll(z))(t)
}

// Files of h5py and netCDF4 have the elements, names and attributes that these read; see
// testdata/README.md.
func TestGolden(t *testing.T) {
	r := formattest.Registry(hdf5.Format())
	for name, want := range goldens(t) {
		t.Run(name, func(t *testing.T) {
			data := load(t, name)
			if !hdf5.Format().Detect(formats.Evidence{Head: data[:min(len(data), 4096)]}) {
				t.Error("not detected")
			}
			view := must.Get(formattest.Open(t.Context(), hdf5.Format(), formattest.Files(data), formattest.Name))(t)
			for path, w := range want.Arrays {
				a, err := zarr.OpenArray(t.Context(), view, path, &zarr.OpenOptions{Registry: r})
				if w.Refused != "" {
					if !errors.Is(err, codecs.ErrUnknown) || !strings.Contains(err.Error(), w.Refused) {
						t.Errorf("%s: %v, want a refusal of %s", path, err, w.Refused)
					}
					continue
				}
				must.Do(t, err)
				if !slices.Equal(a.Shape(), w.Shape) || w.Dims != nil && !slices.Equal(a.DimensionNames(), w.Dims) {
					t.Errorf("%s: shape %v of %v, want %v of %v", path, a.Shape(), a.DimensionNames(), w.Shape, w.Dims)
				}
				if w.Texts != nil {
					if got, _, err := zarr.Read[string](t.Context(), a, zarr.Sel()); err != nil || !slices.Equal(got, w.Texts) {
						t.Errorf("%s: %q, %v, want %q", path, got, err, w.Texts)
					}
				} else {
					_, got, err := formattest.Read(t.Context(), view, r, path)
					if sum := sha256.Sum256(got); err != nil || hex.EncodeToString(sum[:]) != w.SHA256 {
						t.Errorf("%s: other elements of %v, %v: %v", path, a.Shape(), a.Type(), err)
					}
				}
				compareAttributes(t, view, path, w.Attrs)
			}
			for path, attrs := range want.Attrs {
				compareAttributes(t, view, path, attrs)
			}
			for _, path := range want.Absent {
				if _, err := kv.Get(t.Context(), view, path+"/zarr.json"); !errors.Is(err, kv.ErrNotFound) {
					t.Errorf("%s is there: %v", path, err)
				}
			}
		})
	}
}

func compareAttributes(t *testing.T, view kv.Reader, path string, want map[string]any) {
	t.Helper()
	var doc struct{ Attributes map[string]any }
	must.Do(t, json.Unmarshal(must.Get(kv.Get(t.Context(), view, strings.TrimPrefix(path+"/zarr.json", "/")))(t), &doc))
	for name, w := range want {
		if w == "x 70000" {
			w = strings.Repeat("x", 70000)
		}
		if got := doc.Attributes[name]; !reflect.DeepEqual(got, w) {
			t.Errorf("%s: attribute %s is %.100v, want %.100v", path, name, got, w)
		}
	}
}

// An array of a filter that is not known here stops no other, also where some of its
// chunks skip the filter: none of its chunks is encoded anew.
func TestChunksThatSkipUnknownFilters(t *testing.T) {
	data := load(t, "filter-mask.h5")
	deflate := []byte("\x01\x00\x08\x00\x01\x00\x01\x00deflate\x00")
	for name, id := range map[string]byte{"szip": 4, "n-bit": 5} {
		changed := bytes.Clone(deflate)
		changed[0] = id
		view := must.Get(formattest.Open(t.Context(), hdf5.Format(), formattest.Files(bytes.ReplaceAll(data, deflate, changed)), formattest.Name))(t)
		if _, err := zarr.OpenArray(t.Context(), view, "mixed", &zarr.OpenOptions{Registry: formattest.Registry(hdf5.Format())}); !errors.Is(err, codecs.ErrUnknown) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
		chunks := 0
		for key, err := range view.List(t.Context(), kv.ListOptions{}) {
			must.Do(t, err)
			if _, err := kv.Get(t.Context(), view, key); err != nil {
				t.Errorf("%s: %s: %v", name, key, err)
			}
			if strings.HasPrefix(key, "mixed/") {
				chunks++
			}
		}
		if chunks != 5 {
			t.Errorf("%s: mixed has %d keys, want 4 chunks and its metadata", name, chunks)
		}
	}
}

// Names without a scale follow their rule: within one group a name has one length, and no
// array has a name twice.
func TestPhonyNames(t *testing.T) {
	view := must.Get(formattest.Open(t.Context(), hdf5.Format(), formattest.Files(load(t, "phony.h5")), formattest.Name))(t)
	lengths := map[string]int64{}
	for path := range goldens(t)["phony.h5"].Arrays {
		a := must.Get(zarr.OpenArray(t.Context(), view, path, nil))(t)
		group := path[:max(0, strings.LastIndexByte(path, '/'))]
		names := a.DimensionNames()
		for i, name := range names {
			key := group + ":" + name
			if n, ok := lengths[key]; name == "" || ok && n != a.Shape()[i] || slices.Contains(names[:i], name) {
				t.Errorf("%s: dimensions %v of %v, where %s has %d", path, names, a.Shape(), name, n)
			}
			lengths[key] = a.Shape()[i]
		}
	}
}

// What is left out is said.
func TestWarnings(t *testing.T) {
	files := formattest.Files(load(t, "links.h5"))
	base := formats.Base{Files: files, Name: formattest.Name, File: must.Get(kv.Locate(t.Context(), files, formattest.Name))(t)}
	var said []string
	must.Get(hdf5.Format().Open(t.Context(), base, formats.Options{Warn: func(s string) { said = append(said, s) }}))(t)
	all := strings.Join(said, "\n")
	for _, want := range []string{"g/h/up is left out: it is the group g", "self is left out", `dangling leads to "/nope/x"`, "one leads to", "two leads to"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not said: %s", want, all)
		}
	}
}

// reads counts the reads of a file that are not of its front.
type reads struct {
	kv.Value
	n atomic.Int64
}

func (r *reads) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	r.n.Add(1)
	return r.Value.View(ctx, rng, fn)
}

// Index nodes are read together: a file on a server costs few requests. h5py needs 36 for the
// 1,000 chunks, and as many as there are nodes for those between chunks.
func TestRequests(t *testing.T) {
	for _, c := range []struct {
		name     string
		chunks   int
		all, one int64
		lookup   string
	}{
		{"chunks.h5", 1000, 2, 2, "a/700/0"},
		{"strewn.h5", 4000, 75, 3, "a/700/0"},
		{"strewn-latest.h5", 4000, 30, 3, "a/700/0"},
	} {
		data := load(t, c.name)
		open := func() (refs.Set, *reads) {
			r := &reads{Value: kv.Bytes(data)}
			return must.Get(hdf5.Format().Open(t.Context(), formats.Base{Name: "x", File: r}, formats.Options{}))(t), r
		}
		set, r := open()
		for pass := range 2 { // what was read stays
			n := 0
			for e, err := range set.Entries(t.Context()) {
				must.Do(t, err)
				if e.URL != "" {
					n++
				}
			}
			if got := r.n.Load(); n != c.chunks || got > c.all {
				t.Errorf("%s, pass %d: %d requests for %d chunks, want %d for %d", c.name, pass, got, n, c.all, c.chunks)
			}
		}
		set, r = open()
		must.Get(set.Lookup(t.Context(), "a/zarr.json"))(t)
		must.Get(set.Lookup(t.Context(), c.lookup))(t)
		if got := r.n.Load(); got > c.one {
			t.Errorf("%s: %d requests on the way to one chunk, want %d", c.name, got, c.one)
		}
	}
}
