package webp_test

import (
	"os"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/formats/webp"
	"github.com/zarrdb/zarrdb/internal/must"
)

// Files of other writers are read as their decoders read them, see testdata/README.md.
func TestGolden(t *testing.T) {
	formattest.Golden(t, webp.Format(), func(string) int { return 4 })
}

// Sizes in the header that the file cannot have are refused before memory is reserved,
// animations by name.
func TestHostile(t *testing.T) {
	f := webp.Format()
	data := must.Get(os.ReadFile("testdata/lossy.webp"))(t)
	formattest.Cut(t, f, formattest.Registry(f), data, 0)
	huge := slices.Clone(data)
	copy(huge[26:], "\xff\x3f\xff\x3f")
	formattest.Refused(t, f, huge, formats.ErrFormat)
	data = must.Get(os.ReadFile("testdata/extended.webp"))(t)
	data[20] |= 2
	formattest.Refused(t, f, data, formats.ErrUnsupported)
	copy(data[12:], "VP9 ")
	formattest.Refused(t, f, data, formats.ErrFormat)
}

func FuzzOpen(f *testing.F) { formattest.FuzzImages(f, webp.Format()) }
