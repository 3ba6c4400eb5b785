package main

import (
	"bytes"
	"context"
	"encoding/json"
	"github.com/zarrdb/zarrdb/internal/must"
	"io"
	"maps"
	"path/filepath"
	"strings"
	"testing"
)

// history has values inside and outside of nodes, a change and a deletion.
var history = `{"options": {"InlineBytes": 8}, "commits": [
{"time": 1000, "changes": {"YQ==": "AQ==", "Yg==": "` + strings.Repeat("AAEC", 40) + `"}},
{"time": 2000, "changes": {"YQ==": "Ag=="}},
{"time": 3000, "changes": {"Yg==": null, "Yw==": ""}}]}`

// TestWriteRead reads the values of a history that was written, newest version first.
func TestWriteRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	must.Do(t, write(context.Background(), dir, strings.NewReader(history)))
	var out bytes.Buffer
	must.Do(t, read(context.Background(), dir, &out))
	long := bytes.Repeat([]byte{0, 1, 2}, 40)
	want := []map[string][]byte{{"YQ==": {2}, "Yw==": {}}, {"YQ==": {2}, "Yg==": long}, {"YQ==": {1}, "Yg==": long}}
	for lines := json.NewDecoder(&out); ; want = want[1:] {
		var got struct {
			Version string
			Time    int64
			Values  map[string][]byte
		}
		if err := lines.Decode(&got); err == io.EOF && len(want) == 0 {
			return
		} else if err != nil || len(want) == 0 {
			t.Fatalf("%v, with %d generations to come", err, len(want))
		}
		if got.Version == "" || got.Time != 1000*int64(len(want)) || !maps.EqualFunc(got.Values, want[0], bytes.Equal) {
			t.Errorf("%+v, want %v", got, want[0])
		}
	}
}

// Errors come out, of histories and of stores.
func TestErrors(t *testing.T) {
	for _, history := range []string{"", "{", `{"commits": [{"changes": {"no base64": ""}}]}`} {
		if err := write(context.Background(), filepath.Join(t.TempDir(), "store"), strings.NewReader(history)); err == nil {
			t.Errorf("%q was written", history)
		}
	}
	if err := read(context.Background(), t.TempDir(), io.Discard); err == nil {
		t.Error("an empty folder was read")
	}
}
