package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// TestRead reads the values of every generation of a store of tensorstore, newest first.
func TestRead(t *testing.T) {
	const dir = "../../formats/ocdbt/testdata/ocdbt_many_nodes/"
	var want struct {
		Versions []struct {
			Version string
			Values  map[string]struct{ Base64 []byte }
		}
	}
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile(dir+"expect.json"))(t), &want))
	var out bytes.Buffer
	must.Do(t, read(t.Context(), dir+"db", &out))
	lines := json.NewDecoder(&out)
	for _, v := range slices.Backward(want.Versions) {
		var got struct {
			Version string
			Values  map[string][]byte
		}
		must.Do(t, lines.Decode(&got))
		values := map[string][]byte{}
		for key, value := range v.Values {
			values[key] = value.Base64
		}
		if got.Version != v.Version || !maps.EqualFunc(got.Values, coded(values), bytes.Equal) {
			t.Errorf("%+v, want %+v", got, v)
		}
	}
	if lines.More() {
		t.Error("there are more generations")
	}
	if err := read(t.Context(), t.TempDir(), io.Discard); err == nil {
		t.Error("an empty folder was read")
	}
}
