package formattest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// Golden reads each image of testdata, NAME.ext, and compares it with the elements in
// NAME.bin. Elements of one byte may differ by tolerance, which is nil for a format whose
// files are lossless.
func Golden(t *testing.T, f formats.Format, tolerance func(name string) int) {
	files, err := filepath.Glob("testdata/*.bin")
	if err != nil || len(files) == 0 {
		t.Fatalf("no images in testdata: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".bin")
		t.Run(name, func(t *testing.T) {
			want := must.Get(os.ReadFile(file))(t)
			data := must.Get(os.ReadFile(filepath.Join("testdata", name+"."+f.Scheme)))(t)
			if !f.Detect(formats.Evidence{Head: data[:min(len(data), 64<<10)]}) {
				t.Error("not detected")
			}
			view := must.Get(Open(t.Context(), f, Files(data), Name))(t)
			a, got, err := Read(t.Context(), view, Registry(f), "")
			must.Do(t, err)
			most := 0
			if tolerance != nil {
				most = tolerance(name)
			}
			if d := Difference(got, want); d > most {
				t.Errorf("elements of %v differ by up to %d", a.Shape(), d)
			}
		})
	}
}

// Difference is by how much bytes differ at most, 256 if there are not as many.
func Difference(a, b []byte) int {
	if len(a) != len(b) {
		return 256
	}
	most := 0
	for i := range a {
		most = max(most, int(a[i])-int(b[i]), int(b[i])-int(a[i]))
	}
	return most
}

// Name is the name of the one file of [Files].
const Name = "a file.img"

// Files returns a view of one file.
func Files(data []byte) kv.Reader {
	m := kv.NewMem()
	if err := m.Set(context.Background(), Name, data); err != nil {
		panic(err) // the name is a valid key
	}
	return m
}

// Fuzz opens data as a file of a format and reads the arrays at paths, if they are small:
// each may have a chunk for each element. It fails if that does not end in elements or
// an error.
func Fuzz(t *testing.T, f formats.Format, r *codecs.Registry, data []byte, paths ...string) {
	f.Detect(formats.Evidence{Head: data[:min(len(data), 64<<10)]})
	view, err := Open(t.Context(), f, Files(data), Name)
	if err != nil {
		return
	}
	for _, path := range paths {
		_, _, _ = readUpTo(t.Context(), view, r, path, 1<<16)
	}
}

// FuzzImages fuzzes a format of images with the files of testdata and its own codecs.
func FuzzImages(f *testing.F, format formats.Format) {
	registry := Registry(format)
	Seed(f, format.Scheme)
	f.Fuzz(func(t *testing.T, data []byte) { Fuzz(t, format, registry, data, "") })
}

// Seed adds the files of testdata with an extension to a fuzz target.
func Seed(f *testing.F, ext string) {
	files, err := filepath.Glob("testdata/*." + ext)
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds *.%s: %v", ext, err)
	}
	for _, file := range files {
		f.Add(must.Get(os.ReadFile(file))(f))
	}
}
