package avif_test

import (
	"errors"
	"os"
	"testing"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/avif"
	"github.com/zarrdb/zarrdb/internal/must"
)

// AVIF files are detected, so that they are refused by name. testdata/gray8.avif was
// written by Pillow.
func TestRefused(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/gray8.avif"))(t)
	f := avif.Format()
	if !f.Detect(formats.Evidence{Head: data}) {
		t.Error("not detected")
	}
	for _, head := range []string{"", "\x00\x00\x00\x1cftyp", "\x00\x00\x00\x1cftypheic\x00\x00\x00\x00"} {
		if f.Detect(formats.Evidence{Head: []byte(head)}) {
			t.Errorf("%q is detected", head)
		}
	}
	if _, err := f.Open(t.Context(), formats.Base{}, formats.Options{}); !errors.Is(err, formats.ErrUnsupported) {
		t.Errorf("open: %v", err)
	}
}
