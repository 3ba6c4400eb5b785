package n5

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// source is a hierarchy with arrays in varied settings, and one value for each element.
func source(t testing.TB) *kv.Mem {
	t.Helper()
	m := kv.NewMem()
	attrs := func(text string) zarr.Attributes {
		a := must.Get(zarr.ParseAttributes([]byte(text)))(t)
		return a
	}
	must.Get(zarr.CreateGroup(t.Context(), m, "", attrs(`{"title":"x","nested":{"a":[1,null]}}`), nil))(t)
	array := func(path string, spec zarr.Spec) {
		a, err := zarr.Create(t.Context(), m, path, spec, nil)
		if err != nil {
			t.Fatal(path, err)
		}
		n := 1
		for _, s := range a.Shape() {
			n *= int(s)
		}
		if a.Type().Variable() {
			list := make([]string, n)
			for i := range list {
				list[i] = strings.Repeat("ä", i%3)
			}
			err = zarr.Write(t.Context(), a, zarr.Sel(), list)
		} else {
			b := make([]byte, n*a.Type().Size())
			for i := range b {
				b[i] = byte(i * 7)
			}
			err = a.WriteBytes(t.Context(), zarr.Sel(), b)
		}
		if err != nil {
			t.Fatal(path, err)
		}
	}
	for _, name := range numbers {
		array("g/"+name, zarr.Spec{Shape: []int64{5, 7}, Chunks: []int64{2, 3}, DataType: name})
	}
	array("g/h/sharded", zarr.Spec{Shape: []int64{9, 8}, Chunks: []int64{3, 2}, Shards: []int64{6, 8}, DataType: "uint16", DimensionNames: []string{"x", "y"}})
	array("v2", zarr.Spec{Version: zarr.V3, Shape: []int64{4}, Chunks: []int64{9}, DataType: "int32", Attributes: attrs(`{"units":"m"}`)})
	array("text", zarr.Spec{Shape: []int64{3, 5}, Chunks: []int64{2, 2}, DataType: "string"})
	array("none", zarr.Spec{Shape: []int64{0, 5}, Chunks: []int64{2, 2}, DataType: "uint8"})
	sparse := must.Get(zarr.Create(t.Context(), m, "fill", zarr.Spec{Shape: []int64{6}, Chunks: []int64{2}, DataType: "int16", FillValue: json.RawMessage("7")}, nil))(t)
	must.Do(t, zarr.Write(t.Context(), sparse, zarr.Sel(zarr.Slice(2, 4, 1)), []int16{0, 0}))
	return m
}

// write is NewPlan and Plan.Write.
func write(t *testing.T, dst kv.Writer, src kv.Reader, path string, o formats.WriteOptions, wrote func(int64)) error {
	p, err := NewPlan(t.Context(), src, path, o)
	if err != nil {
		return err
	}
	return p.Write(t.Context(), formats.Output{Dst: dst, Wrote: wrote})
}

// same compares the values, attributes and dimension names of two hierarchies.
func same(t *testing.T, got, want kv.Reader) {
	t.Helper()
	n := 0
	for node, err := range zarr.Walk(t.Context(), want, "", options()) {
		must.Do(t, err)
		n++
		other := must.Get(zarr.Open(t.Context(), got, node.Path(), options()))(t)
		for name, value := range node.Meta().Attributes.All() {
			if v, ok := other.Meta().Attributes.Get(name); !ok || !bytes.Equal(v, value) {
				t.Errorf("/%s: attribute %s is %s, want %s", node.Path(), name, v, value)
			}
		}
		a, ok := node.Array()
		if !ok {
			continue
		}
		b, _ := other.Array()
		if !slices.Equal(a.Shape(), b.Shape()) || !a.Type().Equal(b.Type()) {
			t.Fatalf("/%s: %v %v, want %v %v", a.Path(), b.Type(), b.Shape(), a.Type(), a.Shape())
		}
		if names := a.DimensionNames(); axesOf(names) != nil && !slices.Equal(names, b.DimensionNames()) {
			t.Errorf("/%s: dimensions %v, want %v", a.Path(), b.DimensionNames(), names)
		}
		if x, y := values(t, a), values(t, b); x != y {
			t.Errorf("/%s: %s, want %s", a.Path(), y, x)
		}
	}
	if n < 10 {
		t.Fatalf("%d nodes", n)
	}
}

func values(t *testing.T, a *zarr.Array) string {
	t.Helper()
	if a.Type().Variable() {
		list, _, err := zarr.Read[string](t.Context(), a, zarr.Sel())
		must.Do(t, err)
		return fmt.Sprintf("%q", list)
	}
	n := int64(a.Type().Size())
	for _, s := range a.Shape() {
		n *= s
	}
	b := make([]byte, n)
	must.Do(t, a.ReadBytes(t.Context(), zarr.Sel(), b))
	return fmt.Sprintf("%x", b)
}

// What is written is read again as it was, with every compression.
func TestWrite(t *testing.T) {
	src := source(t)
	for _, compression := range []string{"", "raw", "bzip2", "xz", "lz4", "blosc", "zstd"} {
		t.Run(compression, func(t *testing.T) {
			dst := kv.NewMem()
			wrote := int64(0)
			must.Do(t, write(t, dst, src, "", formats.WriteOptions{Compression: compression}, func(n int64) { wrote += n }))
			same(t, view(t, dst), src)
			total := int64(0)
			keys := must.Get(kv.Keys(t.Context(), dst, ""))(t)
			for _, key := range keys {
				b := must.Get(kv.Get(t.Context(), dst, key))(t)
				total += int64(len(b))
				if strings.HasSuffix(key, "zarr.json") {
					t.Errorf("key %s", key)
				}
			}
			if wrote != total {
				t.Errorf("reported %d bytes of %d", wrote, total)
			}
			root, err := kv.Get(t.Context(), dst, attributesFile)
			if err == nil {
				root, err = compact(root)
			}
			if err != nil || string(root) != `{"n5":"4.0.0","title":"x","nested":{"a":[1,null]}}` {
				t.Errorf("the root: %s, %v", root, err)
			}
		})
	}
}

func compact(text []byte) ([]byte, error) {
	var b bytes.Buffer
	err := json.Compact(&b, text)
	return b.Bytes(), err
}

// A part of a hierarchy becomes a container of its own. Blocks are those of inner
// chunks, those at the border are cut, and those of zeros missing.
func TestWritePart(t *testing.T) {
	src, dst := source(t), kv.NewMem()
	must.Do(t, write(t, dst, src, "g/h", formats.WriteOptions{Compression: "raw"}, nil))
	text, err := kv.Get(t.Context(), dst, "sharded/attributes.json")
	if want := `{"axes":["x","y"],"dimensions":[9,8],"blockSize":[3,2],"dataType":"uint16","compression":{"type":"raw"}}`; err != nil || string(text) != want {
		t.Fatalf("%s, %v, want %s", text, err, want)
	}
	dst = kv.NewMem()
	must.Do(t, write(t, dst, src, "g/uint8", formats.WriteOptions{Compression: "raw"}, nil))
	edge, err := kv.Get(t.Context(), dst, "2/2")
	if err != nil || len(edge) != 12+1 || edge[7] != 1 || edge[11] != 1 {
		t.Fatalf("a block at the border: % x, %v", edge, err)
	}
	dst = kv.NewMem()
	must.Do(t, write(t, dst, src, "fill", formats.WriteOptions{}, nil))
	for key, want := range map[string]bool{"0": true, "1": false, "2": true} {
		if ok, err := kv.Exists(t.Context(), dst, key); ok != want || err != nil {
			t.Errorf("block %s: %v, %v", key, ok, err)
		}
	}
}

// What has no form is refused before anything is written, with its path and name.
func TestWriteRefuses(t *testing.T) {
	attrs := func(text string) zarr.Attributes {
		a, _ := zarr.ParseAttributes([]byte(text))
		return a
	}
	for name, tt := range map[string]struct {
		spec zarr.Spec
		says string
	}{
		"bool":       {zarr.Spec{Shape: []int64{2}, DataType: "bool"}, "data type bool"},
		"float16":    {zarr.Spec{Shape: []int64{2}, DataType: "float16"}, "data type float16"},
		"complex":    {zarr.Spec{Shape: []int64{2}, DataType: "complex64"}, "data type complex64"},
		"bytes":      {zarr.Spec{Shape: []int64{2}, DataType: "bytes"}, "data type bytes"},
		"int4":       {zarr.Spec{Shape: []int64{2}, DataType: "int4"}, "data type int4"},
		"no rank":    {zarr.Spec{Shape: []int64{}, DataType: "uint8"}, "without dimensions"},
		"attributes": {zarr.Spec{Shape: []int64{2}, DataType: "uint8", Attributes: attrs(`{"blockSize":1}`)}, `attribute "blockSize"`},
		"large":      {zarr.Spec{Shape: []int64{1 << 32}, Chunks: []int64{1 << 29}, DataType: "uint32"}, "2 GiB"},
	} {
		src, dst := source(t), kv.NewMem()
		must.Get(zarr.Create(t.Context(), src, "g/odd", tt.spec, nil))(t)
		err := write(t, dst, src, "", formats.WriteOptions{}, nil)
		if !errors.Is(err, formats.ErrUnsupported) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "/g/odd") {
			t.Errorf("%s: %v, want ErrUnsupported of /g/odd with %q", name, err, tt.says)
		}
		if dst.Len() > 0 {
			t.Errorf("%s: %d keys were written", name, dst.Len())
		}
	}
	err := write(t, kv.NewMem(), source(t), "", formats.WriteOptions{Compression: "jpeg"}, nil)
	if !errors.Is(err, formats.ErrUnsupported) {
		t.Errorf("compression jpeg: %v", err)
	}
	if err := write(t, kv.NewMem(), source(t), "nothing", formats.WriteOptions{}, nil); !errors.Is(err, zarr.ErrNotFound) {
		t.Errorf("no node: %v", err)
	}
}

// Errors of writing end it.
func TestWriteErrors(t *testing.T) {
	full := errors.New("full")
	for k := range 3 {
		dst := &failing{after: 3 * k, err: full}
		if err := write(t, dst, source(t), "", formats.WriteOptions{}, nil); !errors.Is(err, full) {
			t.Errorf("write %d fails: %v", 3*k, err)
		}
	}
}

type failing struct {
	after int
	err   error
}

func (f *failing) Set(context.Context, string, []byte) error {
	if f.after--; f.after < 0 {
		return f.err
	}
	return nil
}

func (f *failing) Delete(context.Context, string) error { return f.err }
