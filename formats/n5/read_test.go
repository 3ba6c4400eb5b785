package n5

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// Containers of other writers have the values that these say.
func TestOtherWriters(t *testing.T) {
	for _, name := range []string{"raw", "gzip", "zlib", "bzip2", "xz", "blosc_lz4", "blosc_zstd", "zstd"} {
		t.Run(name, func(t *testing.T) {
			v := view(t, formattest.Folder(t, "testdata/"+name+"/store"))
			a := must.Get(zarr.OpenArray(t.Context(), v, "g/a", options()))(t)
			want := must.Get(os.ReadFile("testdata/" + name + "/data.bin"))(t)
			got := make([]byte, len(want))
			must.Do(t, a.ReadBytes(t.Context(), zarr.Sel(), got))
			if !bytes.Equal(got, want) {
				t.Fatal("other values")
			}
			g := must.Get(zarr.OpenGroup(t.Context(), v, "g", options()))(t)
			if got, _ := g.Meta().Attributes.Get("axes"); string(got) != `["x", "y"]` {
				t.Fatalf("attribute axes of g: %s", got)
			}
			root := must.Get(zarr.OpenGroup(t.Context(), v, "", options()))(t)
			if keys := root.Meta().Attributes.Keys(); len(keys) != 1 || keys[0] != "kind" {
				t.Fatalf("attributes of the root: %v", keys)
			}
		})
	}
}

// Blocks that lz4-java compressed, in several pieces each.
func TestLZ4OfJava(t *testing.T) {
	a := must.Get(zarr.OpenArray(t.Context(), view(t, formattest.Folder(t, "testdata/lz4/store")), "", options()))(t)
	got, _, err := zarr.Read[int32](t.Context(), a, zarr.Sel())
	must.Do(t, err)
	for x := range int64(50) {
		for y := range int64(30) {
			want := int32((x*1000 + y) * 2654435761)
			if x < 32 {
				want = int32(x/8 + y/4)
			}
			if got[x*30+y] != want {
				t.Fatalf("element %d, %d: %d, want %d", x, y, got[x*30+y], want)
			}
		}
	}
}

// block makes a block of uint8 without compression.
func block(mode uint16, shape []uint32, count uint32, data string) string {
	be := binary.BigEndian
	b := be.AppendUint16(nil, mode)
	if mode < 2 {
		b = be.AppendUint16(b, uint16(len(shape)))
		for _, n := range shape {
			b = be.AppendUint32(b, n)
		}
	}
	if mode > 0 {
		b = be.AppendUint32(b, count)
	}
	return string(b) + data
}

const dataset3x2 = `{"dimensions":[3,2],"blockSize":[2,2],"dataType":"uint8","compression":{"type":"raw"},"unit":"m"}`

// Blocks may be smaller at the border, as the Java implementation writes them, or
// whole, as others do, and say their mode.
func TestBlockModes(t *testing.T) {
	tests := []struct {
		name         string
		first, edge  string
		want         string // in C order
		wantErr      error
		wantErrSaysA string
	}{
		{"short edge", block(0, []uint32{2, 2}, 0, "abcd"), block(0, []uint32{1, 2}, 0, "ef"), "acbdef", nil, ""},
		{"whole edge", block(0, []uint32{2, 2}, 0, "abcd"), block(0, []uint32{2, 2}, 0, "eXfX"), "acbdef", nil, ""},
		{"missing", block(0, []uint32{2, 2}, 0, "abcd"), "", "acbd\x00\x00", nil, ""},
		{"varlength, one number each", block(1, []uint32{2, 2}, 4, "abcd"), block(1, []uint32{1, 2}, 2, "ef"), "acbdef", nil, ""},
		{"varlength of another length", block(1, []uint32{2, 2}, 5, "abcde"), "", "", zarr.ErrCorrupt, "varlength"},
		{"object", block(2, nil, 9, "abcdefghi"), "", "", zarr.ErrCorrupt, "object"},
		{"no mode", block(3, nil, 9, "abcdefghi"), "", "", zarr.ErrCorrupt, "mode 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"attributes.json": dataset3x2, "0/0": tt.first}
			if tt.edge != "" {
				files["1/0"] = tt.edge
			}
			a := must.Get(zarr.OpenArray(t.Context(), view(t, formattest.Store(t, files)), "", options()))(t)
			got, _, err := zarr.Read[uint8](t.Context(), a, zarr.Sel())
			if !errors.Is(err, tt.wantErr) || err != nil && !strings.Contains(err.Error(), tt.wantErrSaysA) {
				t.Fatalf("error %v, want %v with %q", err, tt.wantErr, tt.wantErrSaysA)
			}
			if err == nil && string(got) != tt.want {
				t.Fatalf("%q, want %q", got, tt.want)
			}
		})
	}
}

// Strings are those of blocks in mode varlength, as the Java implementation writes
// them: each ended by NUL, edge blocks cut.
func TestStrings(t *testing.T) {
	files := map[string]string{
		"attributes.json": `{"dimensions":[3,2],"blockSize":[2,2],"dataType":"string","compression":{"type":"raw"}}`,
		"0/0":             block(1, []uint32{2, 2}, 12, "a\x00bcd\x00\x00äö\x00"),
		"1/0":             block(1, []uint32{1, 2}, 4, "e\x00f\x00"),
	}
	a := must.Get(zarr.OpenArray(t.Context(), view(t, formattest.Store(t, files)), "", options()))(t)
	got, _, err := zarr.Read[string](t.Context(), a, zarr.Sel())
	must.Do(t, err)
	if want := "a,,bcd,äö,e,f"; strings.Join(got, ",") != want {
		t.Fatalf("%q, want %s", got, want)
	}
	for _, bad := range []string{
		block(0, []uint32{2, 2}, 0, "a\x00b\x00c\x00d\x00"),
		block(1, []uint32{2, 2}, 6, "a\x00b\x00c\x00"),
		block(1, []uint32{2, 2}, 10, "a\x00b\x00c\x00d\x00e\x00"),
		block(1, []uint32{2, 2}, 9, "a\x00b\x00c\x00\xff\xff\x00"),
		block(1, []uint32{3, 2}, 12, "a\x00b\x00c\x00d\x00e\x00f\x00"),
		block(1, []uint32{2, 2}, 1<<31, "a\x00b\x00c\x00d\x00"),
		"\x00\x01",
	} {
		files["0/0"] = bad
		a := must.Get(zarr.OpenArray(t.Context(), view(t, formattest.Store(t, files)), "", options()))(t)
		if got, _, err := zarr.Read[string](t.Context(), a, zarr.Sel()); !errors.Is(err, zarr.ErrCorrupt) {
			t.Errorf("block %q: %q, %v, want ErrCorrupt", bad, got, err)
		}
	}
}

// What cannot be read does not hide what lies beside it, and says why.
func TestRefused(t *testing.T) {
	with := func(member, value string) string {
		return strings.Replace(dataset3x2, member, value, 1)
	}
	tests := []struct {
		name, attributes, says string
	}{
		{"jpeg", with(`"raw"`, `"jpeg"`), `compression "jpeg"`},
		{"object", with(`uint8`, `object`), `dataType "object"`},
		{"complex", with(`uint8`, `complex64`), `dataType "complex64"`},
		{"shards", with(`"compression":{"type":"raw"}`, `"shardSize":[4,4],"codecs":[]`), `shardSize`},
		{"damaged", `{"dimensions":`, `attributes.json`},
		{"rank", with(`[2,2]`, `[2]`), `blockSize: 1 dimensions`},
		{"negative", with(`[3,2]`, `[-3,2]`), `-3 is negative`},
		{"no blocks", with(`[2,2]`, `[2,0]`), `blockSize: 0`},
		{"fraction", with(`[3,2]`, `[3.5,2]`), `dimensions: not a list of integers`},
		{"no compression", with(`,"compression":{"type":"raw"}`, ``), `compression: missing`},
		{"level", with(`"raw"`, `"gzip","level":"high"`), `level: of another type`},
		{"zlib", with(`"raw"`, `"gzip","useZlib":3`), `useZlib: of another type`},
	}
	files := map[string]string{"attributes.json": `{"n5":"4.0.0"}`, "good/attributes.json": dataset3x2, "good/0/0": block(0, []uint32{2, 2}, 0, "abcd")}
	for _, tt := range tests {
		files[tt.name+"/attributes.json"] = tt.attributes
		files[tt.name+"/0/0"] = "bytes"
	}
	v := view(t, formattest.Store(t, files))
	for i, tt := range tests {
		_, err := zarr.OpenArray(t.Context(), v, tt.name, options())
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want an error with %q", tt.name, err, tt.says)
		}
		if damaged := i >= 4; errors.Is(err, codecs.ErrUnknown) == damaged || errors.Is(err, formats.ErrFormat) != damaged {
			t.Errorf("%s: %v is of another kind", tt.name, err)
		}
	}
	found := map[string]bool{}
	for n, err := range zarr.Walk(t.Context(), v, "", options()) {
		var at *zarr.Error
		if errors.As(err, &at) {
			found[at.Path] = true
		} else if err != nil {
			t.Fatal(err)
		} else {
			found[n.Path()] = true
		}
	}
	if len(found) != len(tests)+2 || !found["good"] {
		t.Fatalf("found %v", found)
	}
}

// Members that describe a dataset are no attributes; others are, in their order.
func TestAttributes(t *testing.T) {
	v := view(t, formattest.Store(t, map[string]string{
		"attributes.json": `{"n5":"4.0.0","b":{"c":[1,2]},"a":1,"b":null,"dimensions":[1]}`,
		"d/attributes.json": `{"z":"<ä>","dataType":"int16","n5":"mine","blockSize":[2],"axes":["time"],
			"compressionType":"gzip","dimensions":[5]}`,
	}))
	for path, want := range map[string]string{
		"":  `{"b":null,"a":1,"dimensions":[1]}`,
		"d": `{"z":"<ä>","n5":"mine","axes":["time"]}`,
	} {
		n := must.Get(zarr.Open(t.Context(), v, path, options()))(t)
		got := "{"
		for name, value := range n.Meta().Attributes.All() {
			got += `"` + name + `":` + string(value) + ","
		}
		if got = strings.TrimSuffix(got, ",") + "}"; got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
		if a, ok := n.Array(); ok && strings.Join(a.DimensionNames(), ",") != "time" {
			t.Errorf("dimension names %v", a.DimensionNames())
		}
	}
}

func TestOpenErrors(t *testing.T) {
	_, err := Format().Open(t.Context(), formats.Base{Files: kv.NewMem()}, formats.Options{})
	if !errors.Is(err, formats.ErrFormat) {
		t.Fatalf("an empty directory: %v, want ErrFormat", err)
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]bool{
		`{"n5":"2.0.0"}`:                     true,
		dataset3x2:                           true,
		`{"a":1}`:                            false,
		`{"dimensions":[1],"blockSize":[1]}`: false,
		``:                                   false,
		`["n5"]`:                             false,
		`{"a":{"n5":1}}`:                     false,
		`{"n5":"2.0.0","long":"` + "cut":     true,
	} {
		e := formats.Evidence{File: func(name string) []byte {
			if name != attributesFile {
				return nil
			}
			return []byte(text)
		}}
		if got := Format().Detect(e); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if Format().Detect(formats.Evidence{Head: []byte(`{"n5":"1"}`)}) {
		t.Error("a file was detected")
	}
}
