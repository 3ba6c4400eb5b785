package dtype

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// ParseFillV2 parses the fill_value of Zarr v2 metadata and returns one element
// in memory layout (for a variable-length type its bytes), which the caller
// owns. null is set if the document has null: the value of missing chunks is
// undefined then, and elem is the result of [Type.NullV2]. raw must be valid
// JSON, but for a bare NaN, Infinity or -Infinity.
//
// Byte strings, opaque bytes and structs are base64 of the bytes as they are
// stored. numpy accepts more than the specification, and files contain it: 0 for
// the zero element of any type, 1 for true, an integer written as 7.0, one
// number for a complex value. bioformats2raw and n5-zarr wrote numbers as
// strings: "0", "0.0". Errors are ErrValue.
func (t Type) ParseFillV2(raw json.RawMessage) (elem []byte, null bool, err error) {
	raw = bytes.TrimSpace(raw)
	if t.kind == Invalid {
		return nil, false, badValue("no data type")
	}
	switch {
	case string(raw) == "null":
		return t.NullV2(), true, nil
	case string(raw) == "0" && t.kind != JSON && !t.hasZeroForm():
		return t.Zero(), false, nil
	}
	if t.Variable() {
		elem, err = t.variableV2(raw)
		return elem, false, err
	}
	elem = make([]byte, t.size)
	if err := t.fillV2(elem, raw); err != nil {
		return nil, false, err
	}
	return elem, false, nil
}

// NullV2 returns the element for a v2 fill_value of null: NaT for times, as
// zarr-python 3 leaves out chunks with only NaT, and otherwise the zero element.
// The caller owns it.
func (t Type) NullV2() []byte {
	elem := t.Zero()
	if t.kind == Datetime || t.kind == Timedelta {
		storeUint(elem, 1<<63)
	}
	return elem
}

// hasZeroForm reports whether a 0 in metadata is an ordinary number for t.
func (t Type) hasZeroForm() bool { return t.kind == Int || t.kind == Uint || t.kind == Float }

func (t Type) variableV2(raw []byte) ([]byte, error) {
	switch t.kind {
	case String:
		s, ok := asString(raw)
		if !ok {
			return nil, badValue("not a string")
		}
		return []byte(s), nil
	case Bytes:
		return parseBytes(raw)
	case JSON:
		if !validJSON(raw) {
			return nil, badValue("not JSON")
		}
		return appendCompact(nil, raw), nil
	}
	list, ok := asList(raw)
	if !ok {
		return nil, badValue("not a list")
	}
	var p []byte
	elem := make([]byte, t.elem.size)
	for i, r := range list {
		clear(elem)
		if err := t.elem.fillV2(elem, bytes.TrimSpace(r)); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		p = append(p, elem...)
	}
	return p, nil
}

func (t Type) fillV2(elem, raw []byte) error {
	switch t.kind {
	case Bool, Int, Uint, Float, Complex, Datetime, Timedelta:
		raw = unquoted(raw)
	}
	switch t.kind {
	case Bool:
		switch string(raw) {
		case "0":
			raw = []byte("false")
		case "1":
			raw = []byte("true")
		}
	case Int, Uint:
		raw = integral(raw)
	case Complex:
		if len(raw) > 0 && raw[0] != '[' {
			half := t.size / 2
			return t.part().parseFloat(elem[:half], raw)
		}
	case Raw, FixedBytes, Struct, subarray:
		s, ok := asString(raw)
		if !ok {
			return badValue("not base64")
		}
		p, err := base64.StdEncoding.Strict().DecodeString(s)
		if err != nil {
			return badValue("not base64")
		}
		if err := t.setBytes(elem, p); err != nil {
			return err
		}
		t.toMemory(elem)
		return nil
	}
	return t.fillV3(elem, raw)
}

// unquoted returns the number in a string like "7", and other text unchanged.
func unquoted(raw []byte) []byte {
	if s, ok := asString(raw); ok && isNumber([]byte(s)) {
		return []byte(s)
	}
	return raw
}

// integral returns the integer of a number like 7.0 or 1e3, and other text
// unchanged.
func integral(raw []byte) []byte {
	if !isNumber(raw) || !bytes.ContainsAny(raw, ".eE") {
		return raw
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || v != math.Trunc(v) || math.Abs(v) > 1<<53 {
		return raw
	}
	return strconv.AppendInt(nil, int64(v), 10)
}

// ParseFillV1 is ParseFillV2 for Zarr v1, where byte strings are plain text.
func (t Type) ParseFillV1(raw json.RawMessage) (elem []byte, null bool, err error) {
	if s, ok := asString(raw); ok && t.kind == FixedBytes {
		elem = make([]byte, t.size)
		return elem, false, t.setBytes(elem, []byte(s))
	}
	return t.ParseFillV2(raw)
}

// PrintFillV2 prints one element in memory layout as a v2 fill_value such that
// ParseFillV2 gives back the same bytes. The error is ErrNoForm for a value
// without a v2 form: a NaN that is not the canonical one.
func (t Type) PrintFillV2(elem []byte) (json.RawMessage, error) {
	if err := t.checkElem(elem); err != nil {
		return nil, err
	}
	switch t.kind {
	case String:
		return AppendString(nil, string(elem)), nil
	case JSON:
		return appendCompact(nil, elem), nil
	case Bytes:
		return appendBase64([]byte{'"'}, elem), nil
	case Ragged:
		return t.raggedFill(elem)
	}
	return t.appendFillV2(nil, elem)
}

func (t Type) appendFillV2(dst, elem []byte) ([]byte, error) {
	switch t.kind {
	case Float, Complex:
		p := t.appendExact(dst, elem)
		if bytes.Contains(p[len(dst):], []byte("0x")) {
			return nil, fmt.Errorf("NaN %s: %w", p[len(dst):], ErrNoForm)
		}
		return p, nil
	case FixedUTF32:
		return appendUTF32(dst, elem), nil
	case Raw, FixedBytes, Struct, subarray:
		p := bytes.Clone(elem)
		t.toMemory(p) // all bytes, also zeros at the end of a text: tensorstore takes no fewer
		return appendBase64(append(dst, '"'), p), nil
	}
	return t.appendValue(dst, elem), nil
}

func (t Type) raggedFill(elem []byte) (json.RawMessage, error) {
	dst := []byte{'['}
	for i := 0; i < len(elem); i += t.elem.size {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = t.elem.appendFillV2(dst, elem[i:i+t.elem.size]); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

// PrintFillV1 is PrintFillV2 for Zarr v1. Byte strings that are not UTF-8 text
// and opaque bytes have no form there.
func (t Type) PrintFillV1(elem []byte) (json.RawMessage, error) {
	if err := t.checkElem(elem); err != nil {
		return nil, err
	}
	switch t.kind {
	case FixedBytes:
		s := trimZeros(elem)
		if err := NewString().checkElem(s); err != nil {
			return nil, fmt.Errorf("bytes that are not text: %w", ErrNoForm)
		}
		return AppendString(nil, string(s)), nil
	case Raw, Struct, subarray:
		if len(trimZeros(elem)) > 0 {
			return nil, fmt.Errorf("fill value of %s: %w", t, ErrNoForm)
		}
		return json.RawMessage("0"), nil
	}
	return t.PrintFillV2(elem)
}
