package tiff_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/formats/jpeg"
	"github.com/zarrdb/zarrdb/formats/png"
	"github.com/zarrdb/zarrdb/formats/tiff"
	"github.com/zarrdb/zarrdb/formats/webp"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// registry has the codecs that documents of TIFF name.
func registry() *codecs.Registry {
	return formattest.Registry(tiff.Format(), jpeg.Format(), webp.Format(), png.Format())
}

// golden is what testdata/index.json says of a file.
type golden struct {
	// Tolerance is by how much elements may differ that were compressed with loss; then
	// they are in NAME.bin.
	Tolerance int
	Arrays    map[string]struct {
		Shape  []int64
		Dtype  string
		SHA256 string
	}
}

func goldens(t testing.TB) map[string]golden {
	t.Helper()
	b := must.Get(os.ReadFile("testdata/index.json"))(t)
	var index map[string]golden
	must.Do(t, json.Unmarshal(b, &index))
	return index
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join("testdata", name)))(t)
	return b
}

func open(t testing.TB, name string) kv.Reader {
	t.Helper()
	view := must.Get(formattest.Open(t.Context(), tiff.Format(), formattest.Files(read(t, name+".tiff")), formattest.Name))(t)
	return view
}

// Files of tifffile, GDAL and Pillow have the elements that these read; see
// testdata/README.md.
func TestGolden(t *testing.T) {
	r := registry()
	for name, want := range goldens(t) {
		t.Run(name, func(t *testing.T) {
			if head := read(t, name+".tiff"); !tiff.Format().Detect(formats.Evidence{Head: head[:min(len(head), 4096)]}) {
				t.Error("not detected")
			}
			view := open(t, name)
			for path, e := range want.Arrays {
				a, got, err := formattest.Read(t.Context(), view, r, path)
				must.Do(t, err)
				if !slices.Equal(a.Shape(), e.Shape) || a.Type().String() != e.Dtype {
					t.Errorf("%s: shape %v, %v, want %v, %s", path, a.Shape(), a.Type(), e.Shape, e.Dtype)
				}
				if want.Tolerance > 0 {
					if d := formattest.Difference(got, read(t, name+".bin")); d > want.Tolerance {
						t.Errorf("%s: elements differ by up to %d", path, d)
					}
				} else if sum := sha256.Sum256(got); hex.EncodeToString(sum[:]) != e.SHA256 {
					t.Errorf("%s: other elements of %v", path, a.Shape())
				}
				if names := a.DimensionNames(); len(names) != len(e.Shape) || slices.Contains(names, "") {
					t.Errorf("%s: dimensions %v", path, names)
				}
			}
			if _, ok := want.Arrays[""]; !ok {
				if _, err := zarr.OpenGroup(t.Context(), view, "", nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
