// Package formattest helps the tests of formats: it opens a file or a directory as the
// engine does, and reads its arrays.
package formattest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/zarr"
)

// Open opens the file of files under name, or files as the directory of a format that is
// one. References of the set may name files beside it.
func Open(ctx context.Context, f formats.Format, files kv.Reader, name string) (*refs.View, error) {
	base := formats.Base{Files: files, Name: name}
	if !f.Directory {
		var err error
		if base.File, err = kv.Locate(ctx, files, name); err != nil {
			return nil, err
		}
	}
	set, err := f.Open(ctx, base, formats.Options{})
	if err != nil {
		return nil, err
	}
	return refs.NewView(set, &refs.Options{
		Rules: refs.Rules{Base: "memory://test/"},
		Open:  func(ctx context.Context, _, path string) (kv.Value, error) { return kv.Locate(ctx, files, path) },
	})
}

// View is [Open] of a directory, for a test.
func View(t testing.TB, f formats.Format, files kv.Reader) *refs.View {
	t.Helper()
	return must.Get(Open(t.Context(), f, files, ""))(t)
}

// Store makes a directory of values.
func Store(t testing.TB, values map[string]string) *kv.Mem {
	t.Helper()
	m := kv.NewMem()
	for key, value := range values {
		must.Do(t, m.Set(t.Context(), key, []byte(value)))
	}
	return m
}

// Folder opens a folder of the test data.
func Folder(t testing.TB, name string) kv.Reader {
	t.Helper()
	d := must.Get(dirkv.Open(name, nil))(t)
	t.Cleanup(func() { d.Close() })
	return d
}

// Registry returns the built-in codecs and the codecs of fs.
func Registry(fs ...formats.Format) *codecs.Registry {
	r := builtin.Registry()
	for _, f := range fs {
		for _, c := range f.Codecs {
			r.Register(c)
		}
	}
	return r
}

// ErrLarge means that an array is longer than is read.
var ErrLarge = errors.New("formattest: large array")

// Read opens the array at path and returns it with its elements: C order,
// little-endian. They may take 16 MiB.
func Read(ctx context.Context, view kv.Reader, r *codecs.Registry, path string) (*zarr.Array, []byte, error) {
	return readUpTo(ctx, view, r, path, 1<<24)
}

func readUpTo(ctx context.Context, view kv.Reader, r *codecs.Registry, path string, most int64) (*zarr.Array, []byte, error) {
	a, err := zarr.OpenArray(ctx, view, path, &zarr.OpenOptions{Registry: r})
	if err != nil {
		return nil, nil, err
	}
	n := int64(a.Type().Size())
	for _, d := range a.Shape() {
		if d > 0 && n > most/d {
			return a, nil, fmt.Errorf("%w: %v", ErrLarge, a.Shape())
		}
		n *= d
	}
	b := make([]byte, n)
	return a, b, a.ReadBytes(ctx, zarr.Sel(), b)
}
