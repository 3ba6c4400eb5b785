package zarr

import (
	"errors"
	"fmt"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

func TestErrors(t *testing.T) {
	inner := &FieldError{Doc: meta.DocV3, Field: "shape", Err: dtype.ErrType}
	err := error(&Error{Op: "open", Path: "a/b", Err: inner})
	if err.Error() != "open a/b: zarr.json: shape: dtype: bad data type" || !errors.Is(err, ErrMetadata) || !errors.Is(err, dtype.ErrType) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if s := (&Error{Op: "open", Err: ErrNotFound}).Error(); s != "open /: zarr: not found" {
		t.Error(s)
	}
	if !errors.Is(&Error{Err: fmt.Errorf("x: %w", codecs.ErrCorrupt)}, ErrCorrupt) || !errors.Is(&Error{Err: ErrNotFound}, ErrNotFound) {
		t.Error("sentinels of other layers")
	}
}
