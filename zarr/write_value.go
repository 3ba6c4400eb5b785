package zarr

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// WriteValue writes one value to every element of sel. It is written as JSON in
// the form of the fill values of Zarr v3, whatever the format of the array: 5,
// "NaN", "0x7fc00001", [1, -2] for a complex number, {"x": 1} for a struct,
// text for strings, an array of bytes for bytes. A whole number that a float of the array's
// type cannot hold is an error. The rest is as for
// [Array.WriteBytes]; types without such a form are an error that is
// [dtype.ErrNoForm].
func (a *Array) WriteValue(ctx context.Context, sel Selection, value json.RawMessage) error {
	return a.fail("write", a.writeValue(ctx, sel, value))
}

func (a *Array) writeValue(ctx context.Context, sel Selection, value json.RawMessage) error {
	elem, err := a.Type().ParseFillV3(value)
	if err == nil {
		err = a.Type().CheckWhole(elem, bytes.TrimSpace(value))
	}
	if err != nil {
		return fmt.Errorf("value %s: %w", value, err)
	}
	return a.fillBytes(ctx, sel, elem)
}
