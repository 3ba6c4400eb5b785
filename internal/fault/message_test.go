package fault

import (
	"errors"
	"testing"
)

// Names of packages go, and those of members of a document stay.
func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"open /: zarr: .zarray: dtype: missing":                             "open /: .zarray: dtype: missing",
		"zarr.json: codecs: missing":                                        "zarr.json: codecs: missing",
		"zarr.json: codecs: codecs: bad":                                    "zarr.json: codecs: bad",
		".zarray: dtype: dtype: bad data type (kv: not found)":              ".zarray: dtype: bad data type (not found)",
		"create zarr.json: zarr: bad path":                                  "create zarr.json: bad path",
		"meta: dtype: missing":                                              "meta: dtype: missing",
		"codecs: unknown codec; kv: not found":                              "unknown codec; not found",
		"open x: codecs: zarr.json: codecs[1].configuration: codecs: wrong": "open x: zarr.json: codecs[1].configuration: wrong",
	} {
		if got := OneLine(errors.New(text)); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
