package n5

import (
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/zarr"
)

// registry has the built-in codecs and those of this package.
func registry() *codecs.Registry { return formattest.Registry(Format()) }

func options() *zarr.OpenOptions { return &zarr.OpenOptions{Registry: registry()} }

func view(t testing.TB, files kv.Reader) *refs.View { return formattest.View(t, Format(), files) }

func base(files kv.Reader) formats.Base { return formats.Base{Files: files} }

var noOptions formats.Options
