package png_test

import (
	"os"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/formats/png"
	"github.com/zarrdb/zarrdb/internal/must"
)

// Files of other writers are read as their decoders read them, see testdata/README.md.
func TestGolden(t *testing.T) { formattest.Golden(t, png.Format(), nil) }

// Sizes in the header that the file cannot have are refused before memory is reserved.
func TestHostile(t *testing.T) {
	f := png.Format()
	data := must.Get(os.ReadFile("testdata/rgb8.png"))(t)
	formattest.Cut(t, f, formattest.Registry(f), data, len(data)-16)
	huge := slices.Clone(data)
	copy(huge[16:], "\x7f\xff\xff\xff\x7f\xff\xff\xff")
	formattest.Refused(t, f, huge, formats.ErrFormat)
	copy(huge[16:], "\x00\x00\x00\x00\x00\x00\x00\x01")
	formattest.Refused(t, f, huge, formats.ErrFormat)
}

func FuzzOpen(f *testing.F) { formattest.FuzzImages(f, png.Format()) }
