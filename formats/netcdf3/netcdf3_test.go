package netcdf3_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/formats/netcdf3"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/zarr"
)

type golden struct {
	Attributes map[string]any
	Arrays     map[string]struct {
		Shape         []int64
		Dims          []string
		Dtype, SHA256 string
		Attributes    map[string]any
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	return must.Get(os.ReadFile("testdata/" + name))(t)
}

func open(ctx context.Context, data []byte) (*refs.View, error) {
	return formattest.Open(ctx, netcdf3.Format(), formattest.Files(data), formattest.Name)
}

// document is zarr.json of a node.
func document(t testing.TB, view kv.Reader, key string) (d struct {
	Attributes map[string]any
	Grid       json.RawMessage `json:"chunk_grid"`
}) {
	t.Helper()
	must.Do(t, json.Unmarshal(must.Get(kv.Get(t.Context(), view, key))(t), &d))
	return d
}

// Files of netCDF4 have the elements, names and attributes that it reads; see
// testdata/generate.py.
func TestGolden(t *testing.T) {
	var index map[string]golden
	must.Do(t, json.Unmarshal(read(t, "index.json"), &index))
	for name, want := range index {
		t.Run(name, func(t *testing.T) {
			data := read(t, name)
			if !netcdf3.Format().Detect(formats.Evidence{Head: data[:min(len(data), 64)]}) {
				t.Error("not detected")
			}
			view := must.Get(open(t.Context(), data))(t)
			if got := document(t, view, "zarr.json").Attributes; !reflect.DeepEqual(got, want.Attributes) {
				t.Errorf("attributes %v, want %v", got, want.Attributes)
			}
			for path, e := range want.Arrays {
				a, got, err := formattest.Read(t.Context(), view, formattest.Registry(), path)
				must.Do(t, err)
				if sum := sha256.Sum256(got); hex.EncodeToString(sum[:]) != e.SHA256 || !slices.Equal(a.Shape(), e.Shape) || !slices.Equal(a.DimensionNames(), e.Dims) {
					t.Errorf("%s: %v %v, want %v %v, or other elements", path, a.Shape(), a.DimensionNames(), e.Shape, e.Dims)
				}
				attrs := document(t, view, path+"/zarr.json").Attributes
				if f, ok := e.Attributes["_FillValue"].(float64); ok && e.Dtype[0] == 'f' { // as xarray has it
					e.Attributes["_FillValue"] = base64.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint64(nil, math.Float64bits(f)))
				}
				if !reflect.DeepEqual(attrs, e.Attributes) {
					t.Errorf("%s: attributes %v, want %v", path, attrs, e.Attributes)
				}
			}
			keys := must.Get(kv.Keys(t.Context(), view, ""))(t)
			if docs := slices.DeleteFunc(keys, func(k string) bool { return !strings.HasSuffix(k, "zarr.json") }); len(docs) != 1+len(want.Arrays) {
				t.Errorf("%v, want %d arrays", docs, len(want.Arrays))
			}
		})
	}
}

// A record of 4 KiB is a chunk in the file; shorter ones are one chunk of all.
func TestChunks(t *testing.T) {
	view := must.Get(open(t.Context(), read(t, "cdf2_records.nc")))(t)
	for path, grid := range map[string]string{"a": "[1,2,1025]", "b": "[3,1025]", "c": "[1,1025]"} {
		if got := string(document(t, view, path+"/zarr.json").Grid); !strings.Contains(got, grid) {
			t.Errorf("%s: %s, want %s", path, got, grid)
		}
	}
	keys := must.Get(kv.Keys(t.Context(), view, ""))(t)
	if want := []string{"a/c/0/0/0", "a/c/1/0/0", "a/c/2/0/0", "a/zarr.json", "b/c/0/0", "b/zarr.json", "c/c/0/0", "c/c/1/0", "c/c/2/0", "c/zarr.json", "zarr.json"}; !slices.Equal(keys, want) {
		t.Errorf("%v", keys)
	}
}

// A file that is too short is an error when it is opened, wherever it ends; only what pads
// the last record may be missing.
func TestCut(t *testing.T) {
	for name, padding := range map[string]int{"cdf1_mixed.nc": 0, "cdf5_mixed.nc": 0, "single.nc": 1, "cdf2_records.nc": 0} {
		data := read(t, name)
		if strings.Contains(name, "mixed") { // of the characters, the last variable
			padding = 1
		}
		for n := 0; n < len(data)-padding; n += 1 + n/2000*31 {
			_, err := open(t.Context(), data[:n])
			if !errors.Is(err, formats.ErrFormat) {
				t.Fatalf("%s: %d of %d bytes: %v", name, n, len(data), err)
			}
			if n > 3 && !strings.Contains(err.Error(), fmt.Sprintf("has %d bytes", n)) {
				t.Fatalf("%s: %d of %d bytes: %v does not say so", name, n, len(data), err)
			}
		}
		must.Get(open(t.Context(), data[:len(data)-padding]))(t)
	}
}

// words is the header of a CDF-1 file made of numbers of four bytes and texts.
func words(list ...any) []byte {
	b := []byte("CDF\x01")
	for _, w := range list {
		switch w := w.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(w))
		case string: // a name
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(w))), w...)
			b = append(b, make([]byte, -len(w)&3)...)
		}
	}
	return b
}

// What contradicts itself or the file is refused before it takes memory.
func TestInvalid(t *testing.T) {
	none := []any{0, 0}
	file := func(records int, dims []any, vars ...any) []byte {
		all := append(append([]any{records}, dims...), none...)
		return append(words(append(all, vars...)...), make([]byte, 400)...)
	}
	dims := []any{10, 2, "t", 0, "x", 5}
	v := func(name string, begin int, ids ...any) []any {
		return append(append([]any{name, len(ids)}, ids...), 0, 0, 3, 0, begin)
	}
	list := func(vars ...[]any) []any { return append([]any{11, len(vars)}, slices.Concat(vars...)...) }
	good := file(2, dims, list(v("a", 200, 0, 1), v("b", 212, 0))...)
	view := must.Get(open(t.Context(), good))(t)
	if a := must.Get(zarr.OpenArray(t.Context(), view, "a", nil))(t); !slices.Equal(a.Shape(), []int64{2, 5}) {
		t.Fatal(a.Shape())
	}
	for name, data := range map[string][]byte{
		"many records":        file(1<<31-1, dims, list(v("a", 200, 0, 1))...),
		"a negative count":    file(-2, dims, list(v("a", 200, 0, 1))...),
		"two record dims":     file(2, []any{10, 2, "t", 0, "x", 0}, list(v("a", 200, 0, 1))...),
		"records inside":      file(2, dims, list(v("a", 200, 1, 0))...),
		"a dimension":         file(2, dims, list(v("a", 200, 7))...),
		"many dimensions":     file(2, []any{10, 1 << 30}),
		"many variables":      file(2, dims, 11, 1<<30),
		"a tag":               file(2, dims, 13, 1),
		"a long name":         file(2, dims, 11, 1, 1<<30),
		"a type":              file(2, dims, 11, 1, "a", 0, 0, 0, 7, 0, 200),
		"in the header":       file(2, dims, list(v("a", 20, 1))...),
		"overlapping":         file(2, dims, list(v("a", 200, 1), v("b", 204, 1))...),
		"overlapping records": file(2, dims, list(v("a", 200, 0, 1), v("b", 208, 0))...),
		"strewn records":      file(2, dims, list(v("a", 200, 0, 1), v("b", 300, 0))...),
		"the same name":       file(2, dims, list(v("a", 200, 1), v("a", 220, 1))...),
		"a huge shape":        file(2, []any{10, 2, "x", 1<<31 - 1, "y", 1<<31 - 1}, list(v("a", 200, 0, 1, 0, 1))...),
		"rank 65":             file(2, dims, list(v("a", 200, slices.Repeat([]any{1}, 65)...))...),
		"CDF-5, huge":         append([]byte("CDF\x05"), bytes.Repeat([]byte{0x7f}, 60)...),
	} {
		t.Run(name, func(t *testing.T) { formattest.Refused(t, netcdf3.Format(), data, formats.ErrFormat) })
	}
	formattest.Other(t, netcdf3.Format(), []byte("CDF\x03 of another kind"))
	formattest.Other(t, netcdf3.Format(), nil)
}

// A variable whose name no key can have is left out and told, and the others are read.
func TestNames(t *testing.T) {
	data := append(words(0, 0, 0, 0, 0, 11, 4, "a/b", 0, 0, 0, 4, 0, 200, "..", 0, 0, 0, 4, 0, 204, "\xff", 0, 0, 0, 4, 0, 208, "c d", 0, 0, 0, 4, 0, 212), make([]byte, 200)...)
	files := formattest.Files(data)
	var skipped []string
	set := must.Get(netcdf3.Format().Open(t.Context(), formats.Base{Files: files, Name: formattest.Name, File: must.Get(kv.Locate(t.Context(), files, formattest.Name))(t)},
		formats.Options{Skipped: func(key string) { skipped = append(skipped, key) }}))(t)
	if !slices.Equal(skipped, []string{"a/b", "..", "\xff"}) {
		t.Errorf("%q", skipped)
	}
	if ref, err := set.Lookup(t.Context(), "c d/c"); err != nil || ref.Offset != 212 || ref.Length != 4 {
		t.Errorf("%+v, %v", ref, err)
	}
}

// Long attributes are left out and told; the others are there.
func TestLongAttributes(t *testing.T) {
	const n = 1<<20 + 4
	data := append(words(0, 0, 0, 12, 1, "long", 1, n), make([]byte, n)...)
	data = append(data, words(11, 1, "a", 0, 12, 1, "units", 2, "K", 4, 0, n+200)[4:]...)
	files := formattest.Files(append(data, make([]byte, 200)...))
	var told []string
	set := must.Get(netcdf3.Format().Open(t.Context(), formats.Base{Files: files, Name: formattest.Name, File: must.Get(kv.Locate(t.Context(), files, formattest.Name))(t)},
		formats.Options{Warn: func(text string) { told = append(told, text) }}))(t)
	root := must.Get(set.Lookup(t.Context(), "zarr.json"))(t)
	a := must.Get(set.Lookup(t.Context(), "a/zarr.json"))(t)
	if len(told) != 1 || !strings.Contains(told[0], `"long" of / has 1048580 bytes`) || len(root.Data) > 200 || !strings.Contains(string(a.Data), `"units":"K"`) {
		t.Errorf("%q, %s, %s", told, root.Data[:min(len(root.Data), 200)], a.Data)
	}
}

func FuzzNetCDF3(f *testing.F) {
	registry := formattest.Registry()
	formattest.Seed(f, "nc")
	f.Fuzz(func(t *testing.T, data []byte) {
		formattest.Fuzz(t, netcdf3.Format(), registry, data, "a", "b", "scalar", "chars", "rec_i1", "rec_f8", "fixed_i4")
	})
}
