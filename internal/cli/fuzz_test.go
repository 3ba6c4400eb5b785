package cli

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// FuzzInput reads any bytes as values to write.
func FuzzInput(f *testing.F) {
	files, err := filepath.Glob("../../zarr/npy/testdata/*.npy")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, name := range files {
		b := must.Get(os.ReadFile(name))(f)
		f.Add(b)
	}
	for _, text := range []string{"1\n2\n", "\"a\"\n\"é\"\n", "\"base64:AAE=\"", "[1,2]\r\n[]\r\n", "{\"a\":1}\ntrue", "", "\n", "text"} {
		f.Add([]byte(text))
	}
	ragged := must.Get(dtype.NewRagged(dtype.NewInt(16)))(f)
	types := []dtype.Type{dtype.NewInt(32), dtype.NewFloat(32), dtype.NewBool(), dtype.NewString(), dtype.NewBytes(), dtype.NewJSON(), ragged}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		v, err := parseInput(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			return
		}
		for _, typ := range types {
			shape := []int64{int64(len(v.lines))}
			if v.file != nil {
				shape = v.file.Shape
			}
			data, err := v.elements(&zarr.Meta{Type: typ}, shape)
			if err != nil {
				continue
			}
			if !typ.Variable() {
				if len(data)%typ.Size() != 0 {
					t.Fatalf("%q: %d bytes of %v", b, len(data), typ)
				}
				continue
			}
			elems, err := dtype.OpenVariable(data, v.count())
			if err == nil {
				err = elems.Validate(typ)
			}
			if err != nil {
				t.Fatalf("%q as %v: %v", b, typ, err)
			}
		}
	})
}

// FuzzArguments reads any text as each kind of argument.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{"w.zdb@v1:a/b", "w.zdb@main@{2 days ago}:x", "file:///x|zip:|zarr3:a", "30d", "2026-01-31", "+main:other", `{"a":[1]}`, ":", "@", "|", "9999999999w", "*"} {
		f.Add(s)
	}
	now := time.Unix(1e9, 0)
	f.Fuzz(func(t *testing.T, s string) {
		if target := parseTarget(s); target.db == "" && target.url != s {
			t.Fatalf("%q: %+v", s, target)
		}
		if target, err := parseDB(s); err == nil && target.url != "" {
			t.Fatalf("%q: %+v", s, target)
		}
		if at, err := parseAge(s, now); err == nil && len(s) < 10 && at.After(now.AddDate(9999, 0, 0)) {
			t.Fatalf("%q is %v", s, at)
		}
		if refs, err := parseRefs([]string{s}); err == nil && (len(refs) != 1 || refs[0].From == "") {
			t.Fatalf("%q: %+v", s, refs)
		}
		if attrs, err := parseAttrs(s); err == nil {
			if _, err := attrs.MarshalJSON(); err != nil {
				t.Fatalf("%q: %v", s, err)
			}
		}
	})
}

// FuzzLabels selects by any text in an array whose dimensions have coordinates of
// texts, numbers and times.
func FuzzLabels(f *testing.F) {
	for _, s := range []string{"time='2020-01-02'", "time='2020-01':'2020-01-02',lat='45':'50'", `name="b":"a"`, "lat='45.5'", "time=0,lat=':'", "name=''", "x='1'", "time='", "lat=:'46'"} {
		f.Add(s)
	}
	dir := f.TempDir()
	doc := func(shape, typ, codec, fill, rest string) string {
		return `{"zarr_format":3,"node_type":"array","shape":` + shape + `,"data_type":"` + typ + `","chunk_grid":{"name":"regular","configuration":{"chunk_shape":` + shape +
			`}},"chunk_key_encoding":"default","codecs":[` + codec + `],"fill_value":` + fill + rest + `}`
	}
	const little = `{"name":"bytes","configuration":{"endian":"little"}}`
	for name, text := range map[string]string{
		"zarr.json":      `{"zarr_format":3,"node_type":"group"}`,
		"a/zarr.json":    doc("[3,2,2]", "int8", `"bytes"`, "0", `,"dimension_names":["time","lat","name"]`),
		"time/zarr.json": doc("[3]", "int32", little, "0", `,"attributes":{"units":"days since 2020-01-01"}`),
		"time/c/0":       "\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00",
		"lat/zarr.json":  doc("[2]", "int16", little, "0", ""),
		"lat/c/0":        "\x2d\x00\x2e\x00",
		"name/zarr.json": doc("[2]", "string", `"vlen-utf8"`, `""`, ""),
		"name/c/0":       "\x02\x00\x00\x00\x01\x00\x00\x00a\x01\x00\x00\x00b",
	} {
		path := filepath.Join(dir, name)
		must.Do(f, os.MkdirAll(filepath.Dir(path), 0o777))
		must.Do(f, os.WriteFile(path, []byte(text), 0o666))
	}
	path := filepath.Join(dir, "a")
	s := must.Get(engine.OpenSource(f.Context(), path, nil))(f)
	f.Cleanup(func() { s.Close() })
	n := must.Get(s.Node(f.Context()))(f)
	a, ok := n.Array()
	if !ok {
		f.Fatal("no array")
	}
	f.Fuzz(func(t *testing.T, text string) {
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		cmd.SetErr(io.Discard)
		sel, err := parseSelection(cmd, text, a, s.Sibling)
		if err != nil {
			return
		}
		shape, err := a.Resolve(sel)
		if err != nil {
			return // labels select what is there, numbers need not
		}
		n := product(shape)
		if n > 1<<16 {
			return
		}
		if err := a.ReadBytes(t.Context(), sel, make([]byte, n)); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
