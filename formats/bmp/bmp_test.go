package bmp_test

import (
	"os"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/bmp"
	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/internal/must"
)

// Files of other writers are read as their decoders read them, see testdata/README.md.
func TestGolden(t *testing.T) { formattest.Golden(t, bmp.Format(), nil) }

// Sizes in the header that the file cannot have are refused before memory is reserved;
// compression and old headers by name.
func TestHostile(t *testing.T) {
	f := bmp.Format()
	data := must.Get(os.ReadFile("testdata/rgb8.bmp"))(t)
	formattest.Cut(t, f, formattest.Registry(f), data, len(data))
	huge := slices.Clone(data)
	copy(huge[18:], "\xff\xff\xff\x00\xff\xff\xff\x00")
	formattest.Refused(t, f, huge, formats.ErrFormat)
	for at, b := range map[int]byte{30: 1, 14: 12, 28: 16} {
		other := slices.Clone(data)
		other[at] = b
		formattest.Refused(t, f, other, formats.ErrUnsupported)
	}
}

func FuzzOpen(f *testing.F) { formattest.FuzzImages(f, bmp.Format()) }
