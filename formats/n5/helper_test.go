package n5

import (
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/zarr"
)

// registry has the built-in codecs and those of this package.
func registry() *codecs.Registry { return formattest.Registry(Format()) }

func options() *zarr.OpenOptions { return &zarr.OpenOptions{Registry: registry()} }

// view opens a container as a store of Zarr.
func view(t testing.TB, files kv.Reader) *refs.View {
	t.Helper()
	v, err := formattest.Open(t.Context(), Format(), files, "")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// store makes a directory of values.
func store(t testing.TB, values map[string]string) *kv.Mem {
	t.Helper()
	m := kv.NewMem()
	for key, value := range values {
		if err := m.Set(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func folder(t testing.TB, name string) kv.Reader {
	t.Helper()
	d, err := dirkv.Open(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func base(files kv.Reader) formats.Base { return formats.Base{Files: files} }

var noOptions formats.Options
