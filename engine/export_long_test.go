package engine

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/internal/must"
)

// A long value goes to a directory in pieces, and into no more memory than these.
func TestLongValuesAreExportedInPieces(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 80 MiB many times")
	}
	must.Set(t, &transfer.HeldAtOnce, 1<<20)
	const size = 80 << 20 // more than is pooled
	long := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	dir := t.TempDir()
	src := filepath.Join(dir, "src.zarr")
	keys := map[string][]byte{
		"zarr.json": []byte(`{"zarr_format":3,"node_type":"array","shape":[83886080],"data_type":"uint8","chunk_grid":{"name":"regular",` +
			`"configuration":{"chunk_shape":[83886080]}},"chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":["bytes"]}`),
		"c/0": long,
	}
	for key, value := range keys {
		name := filepath.Join(src, filepath.FromSlash(key))
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o777))
		must.Do(t, os.WriteFile(name, value, 0o666))
	}
	zipped := func(name string, method uint16) string {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for key, value := range keys {
			w, err := z.CreateHeader(&zip.FileHeader{Name: key, Method: method})
			if err == nil {
				_, err = w.Write(value)
			}
			must.Do(t, err)
		}
		name = filepath.Join(dir, name)
		must.Do(t, errors.Join(z.Close(), os.WriteFile(name, b.Bytes(), 0o666)))
		return name
	}
	name := filepath.Join(dir, "db.zdb")
	db, err := Create(t.Context(), name, nil)
	must.Do(t, err)
	must.Get(db.Import(bg, openURL(t, src), ImportOptions{}))(t)
	must.Do(t, db.Close())
	for _, from := range []string{src, zipped("stored.zip", zip.Store), zipped("packed.zip", zip.Deflate), name} {
		dest := filepath.Join(dir, filepath.Base(from)+".out")
		var before, after runtime.MemStats
		s := openURL(t, from)
		runtime.ReadMemStats(&before)
		if _, err := Export(bg, s, dest, ExportOptions{}); err != nil {
			t.Fatalf("%s: %v", from, err)
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got >= size { // the race detector drops some of what is pooled
			t.Errorf("%s: %d MiB of memory for a value of %d", from, got>>20, size>>20)
		}
		chunk := filepath.Join(dest, "c", "0")
		compare := func(what string) os.FileInfo {
			got, err := os.ReadFile(chunk)
			if err != nil || !bytes.Equal(got, long) {
				t.Errorf("%s, %s: %d bytes, %v", from, what, len(got), err)
			}
			info, err := os.Stat(chunk)
			must.Do(t, err)
			return info
		}
		first := compare("exported")
		must.Get(Export(bg, s, dest, ExportOptions{Resume: true}))(t)
		if !os.SameFile(first, compare("resumed")) {
			t.Errorf("%s: what was there is written again", from)
		}
		f := must.Get(os.OpenFile(chunk, os.O_WRONLY, 0))(t)
		must.Get(f.WriteAt([]byte("X"), size/2))(t)
		must.Do(t, f.Close())
		must.Get(Export(bg, s, dest, ExportOptions{Resume: true}))(t)
		compare("resumed over another value")
	}
}
