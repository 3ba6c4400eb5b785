package formattest

import (
	"errors"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
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

// Cut opens and reads a file that ends after each number of bytes. Each must be refused
// before or while it is read, but those of at least whole bytes.
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
