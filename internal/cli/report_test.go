package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/local"
	"github.com/zarrdb/zarrdb/serve/web"
)

// The answer of each report over HTTP has the bytes of the command's --json.
func TestReportsOverHTTP(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w.zdb")
	command := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if code := run(t.Context(), args, nil, &out, os.Stderr); code != want {
			t.Fatalf("%v: exit code %d", args, code)
		}
		return out.String()
	}
	const unknown = `{"zarr_format":2,"shape":[2],"chunks":[2],"dtype":"<i2","compressor":{"id":"<made\u0007up>"},"fill_value":0,"order":"C","filters":null}`
	document := filepath.Join(t.TempDir(), ".zarray")
	must.Do(t, os.WriteFile(document, []byte(unknown), 0o600))
	for _, args := range [][]string{
		{"init", dir},
		{"create", dir + ":a/temp", "--shape", "4,4", "--chunks", "2,2", "--dtype", "int8", "-m", "<two>\nlines \x1b[2J"},
		{"write", dir + ":a/temp", "--select", "0,0", "--value", "3"},
		{"put", dir, "b/unknown/.zarray", document},
		{"put", dir, "plain/c/x", document},
		{"tag", dir + "@main~1", "v1"},
		{"branch", dir + "@main~2", "old/one"},
		{"mv", dir + ":a/temp", "a/heat"},
	} {
		command(exitOK, args...)
	}
	zarrDir := filepath.Join(t.TempDir(), "out.zarr")
	command(exitOK, "export", dir+":a", zarrDir)

	db := must.Get(local.Open(t.Context(), dir, local.OpenOptions{Serve: Serving(nil, nil)}))(t)
	defer db.Close()
	src := must.Get(engine.OpenSource(t.Context(), zarrDir, nil))(t)
	defer src.Close()
	table := serve.New(serve.Options{})
	defer table.Close(context.Background())
	must.Do(t, table.AddDatabase("w.zdb", db))
	must.Do(t, table.AddTarget("out.zarr", src))
	server := httptest.NewServer(web.New(table, web.Options{Anonymous: &serve.Principal{Name: "reader"}}))
	defer server.Close()
	for _, c := range []struct {
		query string
		code  int // of the command
		args  []string
	}{
		{"log?db=w.zdb", 0, []string{"log", dir}},
		{"log?db=w.zdb&rev=v1&n=2", 0, []string{"log", dir + "@v1", "-n", "2"}},
		{"log?db=w.zdb&path=a", 0, []string{"log", dir + ":a"}},
		{"show?db=w.zdb&rev=main~4", 0, []string{"show", dir + "@main~4"}},
		{"diff?db=w.zdb&rev=main~5&values", 0, []string{"diff", dir, "main~5", "--values"}},
		{"diff?db=w.zdb&rev=main~5&to=v1&path=a", 0, []string{"diff", dir + ":a", "main~5", "v1"}},
		{"ls?db=w.zdb", 0, []string{"ls", dir}},
		{"ls?db=w.zdb&path=b", 0, []string{"ls", dir + ":b"}},
		{"tree?db=w.zdb&rev=main~1", 0, []string{"tree", dir + "@main~1"}},
		{"info?db=w.zdb&path=a/heat", 0, []string{"info", dir + ":a/heat"}},
		{"info?db=w.zdb&path=b/unknown", exitFailed, []string{"info", dir + ":b/unknown"}},
		{"stats?db=w.zdb&rev=v1", 0, []string{"stats", dir + "@v1"}},
		{"branch?db=w.zdb", 0, []string{"branch", dir}},
		{"tag?db=w.zdb", 0, []string{"tag", dir}},
		{"blame?db=w.zdb&path=a/heat", 0, []string{"blame", dir + ":a/heat"}},
		{"ls?db=out.zarr", 0, []string{"ls", zarrDir}},
		{"tree?db=out.zarr", 0, []string{"tree", zarrDir}},
		{"info?db=out.zarr&path=heat", 0, []string{"info", filepath.Join(zarrDir, "heat")}},
	} {
		r := must.Get(http.Get(server.URL + "/-/api/" + c.query))(t)
		b, err := io.ReadAll(r.Body)
		if r.Body.Close(); err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v: %s", c.query, r.Status, err, b)
		}
		got, want := string(b), command(c.code, append(c.args, "--json")...)
		if strings.HasPrefix(got, "[") {
			want = "[" + strings.ReplaceAll(strings.TrimSuffix(want, "\n"), "\n", ",\n") + "]\n"
		}
		if c.args[0] == "stats" { // what a process takes changes from one moment to the next
			got, want = withoutMemory(t, got), withoutMemory(t, want)
		}
		if c.query == "info?db=out.zarr&path=heat" { // the path is below another target
			want = strings.Replace(want, `"path": ""`, `"path": "heat"`, 1)
		}
		if c.args[0] == "info" { // the page does not wait for a count of the chunks
			want = storedMember.ReplaceAllString(want, "")
		}
		if got != want || len(got) < 40 {
			t.Errorf("%s:\n%s\nwant\n%s", c.query, got, want)
		}
	}
}

var storedMember = regexp.MustCompile(`,\n  "stored": \{[^}]*\}`)

func withoutMemory(t *testing.T, text string) string {
	t.Helper()
	var s engine.Stats
	must.Do(t, json.Unmarshal([]byte(text), &s))
	if reflect.ValueOf(s.Memory).IsZero() {
		t.Error("memory is missing")
	}
	s.Memory, s.Cache, s.DiskBytes = engine.MemoryUse{}, engine.CacheStats{}, 0 // a peer has a directory while it reads
	b := must.Get(json.Marshal(s))(t)
	return string(b)
}
