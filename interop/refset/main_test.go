package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/refs"
)

var bg = context.Background()

// set has every form of a reference: parts and wholes of files, text and bytes,
// templates and keys that are generated.
const set = `{"version": 1, "templates": {"u": "s3://bucket/with a long name/data"},
"gen": [{"key": "a/{{i}}", "url": "{{u}}_{{i}}.nc", "offset": "{{i * 10}}", "length": "10", "dimensions": {"i": {"stop": 3}}}],
"refs": {
".zgroup": "{\"zarr_format\":2}",
"a/.zarray": {"zarr_format": 2, "shape": [60], "chunks": [10], "dtype": "|u1", "compressor": null, "filters": null, "fill_value": 0, "order": "C"},
"a/3": ["{{u}}_0.nc", 30, 10], "a/4": ["whole.nc"], "a/5": "base64:AAEC/w=="}}`

// value is what a key of a set has, in whatever format.
type value struct {
	url            string
	offset, length int64
	data           string
	document       any // of metadata, which may be printed in another way
}

// values reads a set.
func values(t *testing.T, name string) map[string]value {
	t.Helper()
	folder := must.Get(dirkv.Open(filepath.Dir(name), &dirkv.Options{ReadOnly: true}))(t)
	defer folder.Close()
	view, err := refs.Open(bg, folder, filepath.Base(name), nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	all := map[string]value{}
	for e, err := range view.Entries(bg) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, twice := all[e.Key]; twice {
			t.Errorf("%s: %s comes twice", name, e.Key)
		}
		v := value{url: e.URL, offset: e.Offset, length: e.Length, data: string(e.Data)}
		if strings.HasPrefix(filepath.Base(e.Key), ".z") {
			if err := json.Unmarshal(e.Data, &v.document); err != nil {
				t.Errorf("%s: %s: %v", name, e.Key, err)
			}
			v.data = ""
		}
		all[e.Key] = v
	}
	return all
}

// A set that goes from any format to any other keeps what it says.
func TestConvert(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "set.json")
	must.Do(t, os.WriteFile(from, []byte(set), 0o666))
	want := values(t, from)
	if len(want) != 8 || want["a/2"] != (value{url: "s3://bucket/with a long name/data_2.nc", offset: 20, length: 10}) ||
		want["a/4"] != (value{url: "whole.nc", length: refs.WholeFile}) || want["a/5"].data != "\x00\x01\x02\xff" {
		t.Fatalf("the set reads as %v", want)
	}
	formats := []string{"v0", "v1", "v1-plain", "parquet"}
	for _, first := range formats {
		once := filepath.Join(dir, first)
		if err := convert(bg, from, once, first, 2); err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if got := values(t, once); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", first, got, want)
		}
		for _, second := range formats {
			twice := filepath.Join(dir, first+" "+second)
			if err := convert(bg, once, twice, second, 0); err != nil {
				t.Fatalf("%s, then %s: %v", first, second, err)
			}
			if got := values(t, twice); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, then %s: %v, want %v", first, second, got, want)
			}
		}
	}
}

// Each format is what its name says.
func TestFormats(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "set.json")
	must.Do(t, os.WriteFile(from, []byte(set), 0o666))
	members := func(format string) map[string]json.RawMessage {
		to := filepath.Join(dir, format)
		must.Do(t, convert(bg, from, to, format, 0))
		b := must.Get(os.ReadFile(to))(t)
		var all map[string]json.RawMessage
		if err := json.NewDecoder(bytes.NewReader(b)).Decode(&all); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		return all
	}
	if all := members("v0"); string(all["a/3"]) == "" || all["version"] != nil {
		t.Errorf("v0 has %v", slices.Sorted(maps.Keys(all)))
	}
	if all := members("v1"); string(all["version"]) != "1" || all["templates"] == nil || all["refs"] == nil {
		t.Errorf("v1 has %v", slices.Sorted(maps.Keys(all)))
	}
	if all := members("v1-plain"); string(all["version"]) != "1" || all["templates"] != nil || all["refs"] == nil {
		t.Errorf("v1-plain has %v", slices.Sorted(maps.Keys(all)))
	}
	to := filepath.Join(dir, "parquet")
	must.Do(t, convert(bg, from, to, "parquet", 2))
	parts, err := filepath.Glob(filepath.Join(to, "a", "refs.*.parq"))
	if err != nil || len(parts) != 3 {
		t.Errorf("six references in partitions of two are %q, %v", parts, err)
	}
}

// What cannot be converted leaves nothing that looks like a set.
func TestConvertErrors(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"good.json": set, "bad.json": `{"version": 1, "refs": {"a": ["x", -1, 2]}}`} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	for _, test := range []struct {
		from, format string
		want         error // nil for any
	}{
		{"good.json", "v2", nil},
		{"none.json", "v0", kv.ErrNotFound},
		{"none/set.json", "v0", fs.ErrNotExist},
		{"bad.json", "v0", refs.ErrInvalid},
		{"bad.json", "parquet", refs.ErrInvalid},
	} {
		to := filepath.Join(dir, "to")
		err := convert(bg, filepath.Join(dir, test.from), to, test.format, 0)
		if err == nil || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s to %s: %v", test.from, test.format, err)
		}
		if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s to %s: there is something: %v", test.from, test.format, err)
		}
	}
}
