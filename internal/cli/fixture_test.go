package cli

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"github.com/zarrdb/zarrdb/internal/must"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stored is a store that other software wrote, with what reading it must give.
// The archives belong to package zarr; testdata/stores there names their
// writers.
type stored struct {
	dir, Kind, Store string
	Path             string
	Shape            []int64
	DataType         json.RawMessage `json:"data_type"`
	SHA              string          `json:"sha256_c_order_le"`
	OtherSHA         string          `json:"or_sha256_c_order_le"`
	Values           []any           `json:"values_c_order"`
}

// unpack writes an area of stores to a directory, and lists those of one array.
func unpack(t *testing.T, area, to string) (list []stored) {
	t.Helper()
	r := must.Get(zip.OpenReader(filepath.Join("..", "..", "zarr", "testdata", "stores", area+".zip")))(t)
	defer r.Close()
	for _, f := range r.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		in := must.Get(f.Open())(t)
		b := must.Get(io.ReadAll(in))(t)
		name := filepath.Join(to, filepath.FromSlash(f.Name))
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o777))
		must.Do(t, os.WriteFile(name, b, 0o666))
		if path.Base(f.Name) != "expect.json" {
			continue
		}
		s := stored{dir: filepath.Dir(name)}
		must.Do(t, json.Unmarshal(b, &s))
		if s.Kind == "array" && !strings.HasSuffix(s.Store, ".zip") {
			list = append(list, s)
		}
	}
	return list
}

// program runs the program in this process.
func program(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(context.Background(), args, strings.NewReader(""), &out, &errs); code != exitOK {
		t.Fatalf("zarrdb %s: exit code %d: %s", strings.Join(args, " "), code, errs.String())
	}
	return out.String()
}

// Arrays of every format are described and read to the same values from their
// directory, from an archive of it, and from a database.
func TestStoresOfOthers(t *testing.T) {
	n, step := 0, 25
	if testing.Short() {
		step = 60
	}
	for _, area := range []string{"v1", "v2", "v3", "early-v3"} {
		for i, s := range unpack(t, area, t.TempDir()) {
			if i%step != 0 && area != "early-v3" {
				continue // all of them are read in package zarr
			}
			t.Run(area+"/"+filepath.Base(s.dir), func(t *testing.T) { s.check(t) })
			n++
		}
	}
	if n < 10 {
		t.Errorf("only %d stores", n)
	}
}

func (s stored) check(t *testing.T) {
	where, dir := filepath.Join(s.dir, s.Store), t.TempDir()
	archive, db := filepath.Join(dir, "s.zip"), filepath.Join(dir, "s.zdb")
	program(t, "export", where, archive)
	program(t, "import", db, where)
	node := strings.Trim(s.Path, "/")
	for _, target := range []string{fileURL(where) + "/|zarr:" + node, fileURL(archive) + "|zip:|zarr:" + node, db + ":" + node} {
		var info struct {
			NodeType string  `json:"node_type"`
			Shape    []int64 `json:"shape"`
			DataType any     `json:"data_type"`
		}
		must.Do(t, json.Unmarshal([]byte(program(t, "info", target, "--json")), &info))
		if info.NodeType != "array" || !slices.Equal(info.Shape, s.Shape) || info.DataType == nil {
			t.Errorf("%s: info %+v, want shape %v", target, info, s.Shape)
		}
		data := program(t, "read", target, "-o", "-")
		if s.Values != nil {
			s.sameLines(t, target, data)
			continue
		}
		sum := sha256.Sum256([]byte(data))
		if got := hex.EncodeToString(sum[:]); got != s.SHA && got != s.OtherSHA {
			t.Errorf("%s: other values", target)
		}
	}
}

func (s stored) sameLines(t *testing.T, target, data string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(data, "\n"), "\n")
	if data == "" {
		lines = nil
	}
	if len(lines) != len(s.Values) {
		t.Errorf("%s: %d values, want %d", target, len(lines), len(s.Values))
		return
	}
	for i, line := range lines {
		var v any
		err := json.Unmarshal([]byte(line), &v)
		got, _ := json.Marshal(v)
		want, _ := json.Marshal(s.Values[i])
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: value %d is %s, want %s", target, i, line, want)
		}
	}
}

func fileURL(name string) string { return "file://" + filepath.ToSlash(name) }
