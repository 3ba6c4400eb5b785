package precomputed

import (
	"encoding/json"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// registry has the built-in codecs and those of this package.
func registry() *codecs.Registry { return formattest.Registry(Format()) }

func options() *zarr.OpenOptions { return &zarr.OpenOptions{Registry: registry()} }

func view(t testing.TB, files kv.Reader) *refs.View { return formattest.View(t, Format(), files) }

// read returns the elements of an array in C order.
func read(t testing.TB, v kv.Reader, path string) (*zarr.Array, []byte, error) {
	t.Helper()
	return formattest.Read(t.Context(), v, registry(), path)
}

func typeOf(name string) dtype.Type {
	t, err := dtype.ParseV3(json.RawMessage(`"` + name + `"`))
	if err != nil {
		panic(err)
	}
	return t
}
