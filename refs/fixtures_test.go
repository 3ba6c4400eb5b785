package refs_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// fixture is a case of testdata/fixtures.
type fixture struct {
	name, dir string
	Kind      string
	Format    string
	Stage     string
	Refs      string
	Expanded  string
	Keys      string
	URLMap    map[string]string `json:"url_map"`
}

func fixtures(t testing.TB, pattern string) []fixture {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata/fixtures", pattern, "expect.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	var out []fixture
	for _, f := range files {
		dir := must.Get(filepath.Abs(filepath.Dir(f)))(t)
		c := fixture{dir: filepath.ToSlash(dir), name: filepath.Base(dir)}
		readJSON(t, f, &c)
		out = append(out, c)
	}
	return out
}

// file returns the text of a file of the case.
func (c *fixture) file(t testing.TB, name string) []byte {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join(c.dir, name)))(t)
	return bytes.ReplaceAll(b, []byte("@CASE@"), []byte(c.dir))
}

func readJSON(t testing.TB, file string, v any) {
	t.Helper()
	b := must.Get(os.ReadFile(file))(t)
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func TestExpandFixtures(t *testing.T) {
	n := 0
	for _, c := range fixtures(t, "*") {
		if c.Expanded == "" {
			continue
		}
		n++
		t.Run(c.name, func(t *testing.T) {
			var got, want map[string]any
			must.Do(t, json.Unmarshal(c.file(t, c.Expanded), &want))
			set := c.file(t, c.Refs)
			var buf bytes.Buffer
			must.Do(t, refs.Expand(t.Context(), &buf, kv.Bytes(set), nil))
			must.Do(t, json.Unmarshal(buf.Bytes(), &got))
			if !reflect.DeepEqual(got, want) {
				t.Errorf("expanded to\n%s", buf.Bytes())
			}
		})
	}
	if n < 20 {
		t.Errorf("%d cases", n)
	}
}

func TestInvalidFixtures(t *testing.T) {
	n := 0
	for _, c := range fixtures(t, "invalid/*") {
		if c.Format == "parquet" {
			continue
		}
		n++
		t.Run(c.name, func(t *testing.T) {
			var buf bytes.Buffer
			err := refs.Expand(t.Context(), &buf, kv.Bytes(c.file(t, c.Refs)), nil)
			t.Log(err)
			switch {
			case c.Stage == "open" && err == nil:
				t.Errorf("it is expanded to %s", buf.Bytes())
			case c.Stage == "read" && err != nil:
				t.Errorf("it is not expanded: %v", err)
			case err != nil && strings.Contains(err.Error(), "\n"):
				t.Errorf("more than one line: %v", err)
			}
		})
	}
	if n < 30 {
		t.Errorf("%d cases", n)
	}
}
