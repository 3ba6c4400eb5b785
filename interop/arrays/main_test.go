package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"github.com/zarrdb/zarrdb/internal/must"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var bg = context.Background()

// v2 and v3 are documents of arrays of 3 × 2 elements in chunks of 2 × 2.
func v2(dtype, fill, rest string) map[string]string {
	return map[string]string{".zarray": `{"zarr_format":2,"shape":[3,2],"chunks":[2,2],"dtype":` + dtype + `,"fill_value":` + fill + `,` + rest + `}`}
}

func v3(dtype, fill, codecs string) map[string]string {
	return map[string]string{"zarr.json": `{"zarr_format":3,"node_type":"array","shape":[3,2],"data_type":` + dtype + `,"fill_value":` + fill + `,"codecs":` + codecs +
		`,"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2,2]}},"chunk_key_encoding":{"name":"default"}}`}
}

const little = `{"name":"bytes","configuration":{"endian":"little"}}`

// arrays are the jobs, with the elements in place of a file of them.
var arrays = []job{
	{"v2/int16", v2(`">i2"`, `7`, `"order":"C","filters":null,"compressor":{"id":"zlib","level":1}`), "\x01\x00\x02\x00\x03\x00\x00\x80\x07\x00\xff\x7f"},
	{"v2/order", v2(`"|u1"`, `0`, `"order":"F","filters":null,"compressor":null`), "abcdef"},
	{"v2/text", v2(`"|O"`, `""`, `"order":"C","filters":[{"id":"vlen-utf8"}],"compressor":null`), "\"a\"\n\"\"\n\"é\\n\"\n\"漢\"\n\"b\"\n\"\\\"\"\n"},
	{"v3/float32", v3(`"float32"`, `"NaN"`, `[`+little+`,{"name":"gzip","configuration":{"level":1}}]`), strings.Repeat("\x00\x00\x80\x3f", 6)},
	{"v3/shard", v3(`"uint8"`, `0`, `[{"name":"sharding_indexed","configuration":{"chunk_shape":[1,2],"codecs":["bytes"],"index_codecs":[`+little+`,"crc32c"]}}]`), "ABCDEF"},
	{"v3/text", v3(`"string"`, `""`, `["vlen-utf8"]`), "\"a\"\n\"\"\n\"é\\n\"\n\"漢\"\n\"b\"\n\"\\\"\"\n"},
	{"v3/bytes", v3(`"variable_length_bytes"`, `""`, `["vlen-bytes"]`), "\"base64:AAEC\"\n\"base64:\"\n\"base64:/w==\"\n\"base64:\"\n\"base64:\"\n\"base64:YQ==\"\n"},
}

// call runs the program on jobs and returns its answers.
func call(t *testing.T, jobs []job, args ...string) []answer {
	t.Helper()
	var in, out bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, j := range jobs {
		must.Do(t, enc.Encode(j))
	}
	if err := run(bg, args, &in, &out); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	var all []answer
	for dec := json.NewDecoder(&out); ; {
		var a answer
		err := dec.Decode(&a)
		if errors.Is(err, io.EOF) {
			break
		}
		must.Do(t, err)
		all = append(all, a)
	}
	if len(all) != len(jobs) {
		t.Fatalf("%q: %d answers to %d jobs", args, len(all), len(jobs))
	}
	for i, a := range all {
		if a.Path != jobs[i].Path {
			t.Fatalf("%q: answer %d is of %s, not %s", args, i, a.Path, jobs[i].Path)
		}
	}
	return all
}

// written writes the arrays and returns where their store and their files are.
func written(t *testing.T, jobs []job) (store string, answers []answer) {
	t.Helper()
	dir := t.TempDir()
	files := make([]job, len(jobs))
	for i, j := range jobs {
		name := filepath.Join(dir, strings.ReplaceAll(j.Path, "/", "-"))
		must.Do(t, os.WriteFile(name, []byte(j.Values), 0o666))
		files[i] = job{j.Path, j.Docs, name}
	}
	store = filepath.Join(dir, "store")
	return store, call(t, files, "write", filepath.Join(dir, "db.zdb"), store)
}

// readAll reads the arrays of a store, those of each group at once. format is
// that of all, or "" if the groups have the names of theirs.
func readAll(t *testing.T, store, format string, jobs []job) []answer {
	t.Helper()
	documents := map[string][2]string{
		"v2": {".zgroup", `{"zarr_format":2}`}, "v3": {"zarr.json", `{"zarr_format":3,"node_type":"group"}`},
	}
	var all []answer
	for _, group := range []string{"v2", "v3"} {
		var own []job
		for _, j := range jobs {
			if name, ok := strings.CutPrefix(j.Path, group+"/"); ok {
				own = append(own, job{Path: name})
			}
		}
		document := documents[cmp.Or(format, group)]
		must.Do(t, os.WriteFile(filepath.Join(store, group, document[0]), []byte(document[1]), 0o666))
		all = append(all, call(t, own, "read", filepath.Join(store, group))...)
	}
	return all
}

// wantSums compares what was read with the elements of the jobs.
func wantSums(t *testing.T, what string, jobs []job, answers []answer) {
	t.Helper()
	for i, a := range answers {
		sum := sha256.Sum256([]byte(jobs[i].Values))
		if a.Error != "" || a.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: %s: %+v", what, jobs[i].Path, a)
		}
	}
}

// What is written is read again, from the store and from either format that it is
// converted to.
func TestArrays(t *testing.T) {
	store, answers := written(t, arrays)
	for _, a := range answers {
		if a.Error != "" || a.SHA256 != "" {
			t.Errorf("write: %+v", a)
		}
	}
	wantSums(t, "read", arrays, readAll(t, store, "", arrays))
	for _, format := range []string{"2", "3"} {
		dest := filepath.Join(t.TempDir(), "to")
		for _, a := range call(t, arrays, "convert", store, dest, format) {
			if a.Error != "" {
				t.Errorf("to %s: %+v", format, a)
			}
			document := map[string]string{"2": ".zarray", "3": "zarr.json"}[format]
			if _, err := os.Stat(filepath.Join(dest, a.Path, document)); err != nil {
				t.Errorf("to %s: %v", format, err)
			}
		}
		wantSums(t, "to "+format, arrays, readAll(t, dest, "v"+format, arrays))
	}
}

// An array that fails says why, and the others are there.
func TestArraysErrors(t *testing.T) {
	good := arrays[0]
	jobs := []job{
		{"v2/nonsense", map[string]string{".zarray": `{"zarr_format":2}`}, ""},
		{"v2/short", good.Docs, "\x01"},
		{"v3/line", v3(`"string"`, `""`, `["vlen-utf8"]`), "\"a\"\nb\n"},
		{"v3/count", v3(`"string"`, `""`, `["vlen-utf8"]`), "\"a\"\n\"b\"\n"},
		good,
	}
	store, answers := written(t, jobs)
	for i, a := range answers {
		if (a.Error == "") != (i == len(jobs)-1) {
			t.Errorf("write: %+v", a)
		}
	}
	read := []job{{"v2/short", nil, ""}, {"v2/nothing", nil, ""}, good, {"v3/count", nil, ""}}
	answers = readAll(t, store, "", read)
	if answers[0].Error != "" || answers[1].Error == "" || answers[3].Error != "" {
		t.Errorf("read: %+v", answers)
	}
	wantSums(t, "read", read[2:3], answers[2:3])
	if a := call(t, read[1:2], "convert", store, filepath.Join(t.TempDir(), "to"), "3"); a[0].Error == "" {
		t.Errorf("convert: %+v", a)
	}
}

// Bad calls are errors of the program.
func TestRunErrors(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		in   string
		args []string
	}{
		{"", nil}, {"", []string{"write"}}, {"", []string{"read", dir, dir}}, {"", []string{"convert", dir, dir}},
		{"", []string{"read", filepath.Join(dir, "none")}},
		{"{", []string{"write", filepath.Join(dir, "db.zdb"), filepath.Join(dir, "store")}},
		{"{}", []string{"convert", dir, dir, "4"}},
	} {
		if err := run(bg, test.args, strings.NewReader(test.in), io.Discard); err == nil {
			t.Errorf("%q with %q worked", test.args, test.in)
		}
	}
}
