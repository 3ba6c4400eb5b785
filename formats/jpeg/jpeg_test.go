package jpeg_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/formats/jpeg"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Files of other writers are read as their decoders read them, see testdata/README.md.
func TestGolden(t *testing.T) {
	f := jpeg.Format()
	formattest.Golden(t, f, func(name string) int {
		if name == "ycck" {
			return 8 // its colour is not interpolated
		}
		return 4
	})
}

// Sizes in the header that the file cannot have are refused before memory is reserved;
// processes and components that are not decoded by name.
func TestHostile(t *testing.T) {
	f := jpeg.Format()
	data := must.Get(os.ReadFile("testdata/rgb8.jpeg"))(t)
	formattest.Cut(t, f, formattest.Registry(f), data, len(data)-64)
	frame := bytes.Index(data, []byte{0xff, 0xc0})
	huge := slices.Clone(data)
	copy(huge[frame+5:], "\xff\xff\xff\xff")
	formattest.Refused(t, f, huge, formats.ErrFormat)
	for at, b := range map[int]byte{1: 0xc3, 4: 12, 9: 2} {
		other := slices.Clone(data)
		other[frame+at] = b
		formattest.Refused(t, f, other, formats.ErrUnsupported)
	}
}

// A progressive image of more scans than encoders make is refused: each costs a pass
// over all pixels.
func TestScans(t *testing.T) {
	f := jpeg.Format()
	data := must.Get(os.ReadFile("testdata/progressive.jpeg"))(t)
	at := bytes.LastIndex(data, []byte{0xff, 0xda})
	scan := data[at : len(data)-2]
	many := slices.Concat(data[:at], bytes.Repeat(scan, 600), data[len(data)-2:])
	view := must.Get(formattest.Open(t.Context(), f, formattest.Files(many), formattest.Name))(t)
	if _, _, err := formattest.Read(t.Context(), view, formattest.Registry(f), ""); !errors.Is(err, codecs.ErrCorrupt) {
		t.Errorf("read: %v", err)
	}
}

// Tables and colour spaces that the file does not have are taken from the
// configuration of the codec.
func TestConfiguration(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/rgb8.jpeg"))(t)
	want := must.Get(os.ReadFile("testdata/rgb8.bin"))(t)
	// Tables of a file as TIFF stores them: apart.
	tables, short := []byte{0xff, 0xd8}, []byte{0xff, 0xd8}
	for rest := data[2:]; ; {
		n := 2 + int(binary.BigEndian.Uint16(rest[2:]))
		if rest[1] == 0xdb || rest[1] == 0xc4 {
			tables = append(tables, rest[:n]...)
		} else {
			short = append(short, rest[:n]...)
		}
		if rest[1] == 0xda {
			short = append(short, rest[n:]...)
			break
		}
		rest = rest[n:]
	}
	tables = append(tables, 0xff, 0xd9)
	decode := func(src []byte, members ...any) ([]byte, error) {
		t.Helper()
		list := must.Get(json.Marshal([]any{map[string]any{"name": "imagecodecs_jpeg", "configuration": codecs.Object(members...)}}))(t)
		chain, err := formattest.Registry(jpeg.Format()).ParseV3(list)
		if err != nil {
			return nil, err
		}
		rep := must.Get(codecs.ArrayRep(dtype.NewUint(8), []int{1, 17, 23, 3}, nil))(t)
		bound := must.Get(chain.Bind(rep))(t)
		return bound.Decode(nil, src)
	}
	got, err := decode(short, "tables", tables, "colorspace_data", "RGB")
	if d := formattest.Difference(got, want); err != nil || d > 4 {
		t.Errorf("with tables apart, elements differ by up to %d, %v", d, err)
	}
	if _, err := decode(short); !errors.Is(err, codecs.ErrCorrupt) {
		t.Errorf("without tables: %v", err)
	}
	// Components that are taken for RGB are not converted.
	ycc := must.Get(decode(data, "colorspace_data", "YCBCR"))(t)
	raw, err := decode(data, "colorspace_jpeg", 2)
	if d := formattest.Difference(raw, ycc); err != nil || d > 0 || bytes.Equal(raw, want) {
		t.Errorf("taken for RGB, elements differ by up to %d, %v", d, err)
	}
	if _, err := decode(data, "colorspace_jpeg", "PINK"); !errors.Is(err, codecs.ErrConfig) {
		t.Errorf("an unknown colour space: %v", err)
	}
}

func FuzzOpen(f *testing.F) { formattest.FuzzImages(f, jpeg.Format()) }
