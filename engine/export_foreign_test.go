package engine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
	"github.com/zarrdb/zarrdb/zarr"
)

// volumeStore is a Zarr v3 array that every foreign format has a form for.
func volumeStore(t *testing.T, shape ...int64) map[string]string {
	t.Helper()
	m := kv.NewMem()
	a := must.Get(zarr.Create(bg, m, "", zarr.Spec{Version: zarr.V3, Shape: shape, Chunks: []int64{4, 4, 4}, DataType: "uint8", DimensionNames: []string{"x", "y", "z"}}, nil))(t)
	values := make([]byte, shape[0]*shape[1]*shape[2])
	for i := range values {
		values[i] = byte(i%250) + 1
	}
	must.Do(t, a.WriteBytes(bg, zarr.Sel(), values))
	return contents(t, m)
}

// firstArray reads the array at a URL, or the one below the group there.
func firstArray(t *testing.T, url string) (shape []int64, sum int) {
	t.Helper()
	src := openURL(t, url)
	at := must.Get(src.dataset(bg))(t)
	for n, err := range zarr.Walk(bg, at.View, at.Path, src.open) {
		must.Do(t, err)
		if a, ok := n.Array(); ok {
			v, shape, err := zarr.Read[uint8](bg, a, zarr.Sel())
			must.Do(t, err)
			for _, x := range v {
				sum += int(x)
			}
			return shape, sum
		}
	}
	t.Fatalf("%s has no array", url)
	return nil, 0
}

// An export to a foreign format replaces an earlier export and nothing else, such as its source.
// An export that fails replaces nothing.
func TestExportForeignOverwrites(t *testing.T) {
	small, large := volumeStore(t, 5, 4, 4), volumeStore(t, 9, 8, 7)
	for _, format := range ForeignExports() {
		o := ExportOptions{Foreign: ForeignOptions{Format: format}}
		over := o
		over.Overwrite = true
		folder := t.TempDir()
		local := filepath.Join(folder, "out")
		_, memory := newMemory(t)
		for _, dest := range []string{local, memory + "/out/"} {
			if _, err := Export(bg, openURL(t, memoryURL(t, large)), dest, o); err != nil {
				t.Fatal(format, err)
			}
			wantShape, wantSum := firstArray(t, dest)
			if len(wantShape) < 3 || wantShape[0] != 9 || wantSum == 0 {
				t.Fatalf("%s: shape %v, sum %d", format, wantShape, wantSum)
			}
			if _, err := Export(bg, openURL(t, memoryURL(t, small)), dest, o); !errors.Is(err, fs.ErrExist) {
				t.Errorf("%s onto what is there: %v", format, err)
			}
			if _, err := Export(bg, openURL(t, dest), dest, over); !errors.Is(err, ErrOverlap) {
				t.Errorf("%s onto itself: %v", format, err)
			}
			boom := errors.New("boom")
			var reads atomic.Int64
			failing := hooked(t, memoryURL(t, small), func(_ kvtest.Op, key string) error {
				if key != "" && reads.Add(1) > 3 {
					return boom
				}
				return nil
			})
			if _, err := Export(bg, failing, local, over); !errors.Is(err, boom) {
				t.Errorf("%s of what cannot be read: %v", format, err)
			}
			if shape, sum := firstArray(t, local); shape[0] != wantShape[0] || sum != wantSum {
				t.Errorf("%s: after an export that failed, shape %v, sum %d", format, shape, sum)
			}
			if _, err := Export(bg, openURL(t, memoryURL(t, small)), dest, over); err != nil {
				t.Errorf("%s over what is there: %v", format, err)
			}
			if shape, _ := firstArray(t, dest); shape[0] != 5 {
				t.Errorf("%s: shape %v after all", format, shape)
			}
			if dest == local { // for the next round
				if _, err := Export(bg, openURL(t, memoryURL(t, large)), dest, over); err != nil {
					t.Fatal(format, err)
				}
			}
		}
		if names, err := os.ReadDir(folder); err != nil || len(names) != 1 {
			t.Errorf("%s: %v is left, %v", format, names, err)
		}
		// A format that reads its own output cannot be written to a zip archive, and the error is
		// ErrUnsupported.
		_, err := Export(bg, openURL(t, memoryURL(t, small)), filepath.Join(folder, "out.zip"), o)
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s to an archive: %v", format, err)
		}
	}
}

// A file that is only called like one of a foreign format makes no store of a folder.
func TestExportOverwritesNoNames(t *testing.T) {
	src := openURL(t, memoryURL(t, volumeStore(t, 5, 4, 4)))
	for _, name := range []string{"attributes.json", "info", "repo", "refs/branch.main/ref.json"} {
		dest := filepath.Join(t.TempDir(), "papers")
		must.Do(t, os.MkdirAll(filepath.Join(dest, filepath.Dir(name)), 0o777))
		must.Do(t, os.WriteFile(filepath.Join(dest, name), []byte("my papers"), 0o666))
		for _, format := range append(ForeignExports(), "") {
			if _, err := Export(bg, src, dest, ExportOptions{Overwrite: true, Foreign: ForeignOptions{Format: format}}); !errors.Is(err, fs.ErrExist) {
				t.Errorf("%s over %s: %v", format, name, err)
			}
		}
		if got := read(t, filepath.Join(dest, name)); got != "my papers" {
			t.Errorf("%s holds %q", name, got)
		}
	}
}

// A format that is only read is refused by name before anything is there, and no export
// replaces a store of it.
func TestExportReadOnly(t *testing.T) {
	src := openURL(t, memoryURL(t, volumeStore(t, 5, 4, 4)))
	for _, format := range []string{"n5", "ocdbt", "tiff", "png"} {
		dest := filepath.Join(t.TempDir(), "out")
		_, err := Export(bg, src, dest, ExportOptions{Foreign: ForeignOptions{Format: format}})
		if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), format+": unsupported operation: it is read only; use icechunk, precomputed or") {
			t.Errorf("%s: %v", format, err)
		}
		if _, err := os.Stat(dest); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v is left", format, dest)
		}
	}
	for _, store := range []string{"../formats/n5/testdata/raw/store", "../formats/ocdbt/testdata/ocdbt_zarr3/db"} {
		if ok, err := isStoreAt(bg, store); ok || err != nil {
			t.Errorf("%s may be replaced: %v", store, err)
		}
	}
}
