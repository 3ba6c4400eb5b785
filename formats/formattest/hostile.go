package formattest

import (
	"errors"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// Refused fails unless opening a file ends in want.
func Refused(t *testing.T, f formats.Format, data []byte, want error) {
	t.Helper()
	_, err := Open(t.Context(), f, Files(data), Name)
	if !errors.Is(err, want) {
		t.Errorf("open: %v, want %v", err, want)
	}
	if want == formats.ErrFormat && !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("open: %v, which is not kv.ErrCorrupt", err)
	}
}

// Other fails unless opening a file says that it is in another format, and not damaged.
func Other(t *testing.T, f formats.Format, data []byte) {
	t.Helper()
	_, err := Open(t.Context(), f, Files(data), Name)
	if !errors.Is(err, formats.ErrFormat) || errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("open: %v, want ErrFormat alone", err)
	}
}

// Damage cuts every file of a directory short and changes bytes in it, a few times each.
// Opening the array at path and reading it must end in an error that says that data are
// damaged or a part is not supported, or in values; it must not end in a panic or take
// more memory than the array.
func Damage(t *testing.T, f formats.Format, files kv.ReadLister, path string) {
	t.Helper()
	all := map[string][]byte{}
	keys, err := kv.Keys(t.Context(), files, "")
	for _, key := range keys {
		if err == nil {
			all[key], err = kv.Get(t.Context(), files, key)
		}
	}
	if err != nil || len(all) == 0 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	registry, broken := Registry(f), 0
	for key, b := range all {
		for i := range 24 {
			at := i * len(b) / 24
			bad := slices.Clone(b[:at])
			if i%2 == 1 {
				bad = append(append(bad, b[at]^byte(1<<(i/2%8))), b[at+1:]...)
			}
			m := kv.NewMem()
			for other, value := range all {
				if other == key {
					value = bad
				}
				must.Do(t, m.Set(t.Context(), other, value))
			}
			view, err := Open(t.Context(), f, m, "")
			if err == nil {
				_, _, err = Read(t.Context(), view, registry, path)
			}
			if err == nil {
				continue
			}
			broken++
			known := []error{formats.ErrFormat, formats.ErrUnsupported, kv.ErrCorrupt, codecs.ErrCorrupt, codecs.ErrUnknown, kv.ErrRange, zarr.ErrNotFound, zarr.ErrMetadata, zarr.ErrKind, ErrLarge}
			if !slices.ContainsFunc(known, func(want error) bool { return errors.Is(err, want) }) {
				t.Errorf("%s, change %d at byte %d of %d: %v", key, i, at, len(b), err)
			}
		}
	}
	if broken == 0 {
		t.Error("no damage was found")
	}
}

// Cut opens and reads a file that ends after each number of bytes. Each file must be
// refused before or while it is read, unless it has at least whole bytes.
func Cut(t *testing.T, f formats.Format, r *codecs.Registry, data []byte, whole int) {
	t.Helper()
	for n := range data {
		view, err := Open(t.Context(), f, Files(data[:n]), Name)
		if err != nil {
			if !errors.Is(err, formats.ErrFormat) {
				t.Fatalf("%d of %d bytes: open: %v, want formats.ErrFormat", n, len(data), err)
			}
			continue
		}
		_, _, err = Read(t.Context(), view, r, "")
		if err == nil && n < whole {
			t.Fatalf("%d of %d bytes are read", n, len(data))
		}
	}
}
