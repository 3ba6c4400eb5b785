package dtype

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// ParseJSON is the reverse of [Type.AppendJSON]: it appends the element that is
// written as one JSON value, in memory layout (for variable-length types its
// bytes). Bytes that [Type.AppendJSON] does not write are accepted where
// [Type.ParseFillV3] does: hexadecimal floats, "NaT". A NaN is the canonical one.
// The list of a Ragged may have any length, the text of JSON is kept. Errors are
// ErrValue.
func (t Type) ParseJSON(dst []byte, raw json.RawMessage) ([]byte, error) {
	raw = bytes.TrimSpace(raw)
	switch t.kind {
	case String:
		s, ok := asString(raw)
		if !ok {
			return dst, badValue("not a string")
		}
		return append(dst, s...), nil
	case Bytes:
		return t.appendNamedBase64(dst, raw)
	case JSON:
		if !validJSON(raw) {
			return dst, badValue("not JSON")
		}
		return append(dst, raw...), nil
	case Ragged:
		list, ok := asList(raw)
		if !ok {
			return dst, badValue("not a list")
		}
		return t.elem.parseItems(dst, list)
	case Invalid:
		return dst, badValue("no data type")
	}
	return t.parseValue(dst, raw)
}

// parseValue is ParseJSON for fixed-size types.
func (t Type) parseValue(dst []byte, raw json.RawMessage) ([]byte, error) {
	switch t.kind {
	case Raw, FixedBytes:
		n := len(dst)
		out, err := t.appendNamedBase64(dst, raw)
		if err != nil {
			return dst, err
		}
		if have := len(out) - n; have > t.size || have < t.size && t.kind == Raw {
			return dst, badValue("%d bytes for an element of %d", have, t.size)
		}
		return append(out, make([]byte, t.size-(len(out)-n))...), nil
	case Struct:
		obj, ok := asObject(raw)
		if !ok || len(obj) != len(t.fields) {
			return dst, badValue("not an object with the %d fields", len(t.fields))
		}
		out := dst
		for _, f := range t.fields {
			v, ok := obj[f.Name]
			if !ok {
				return dst, badValue("field %q is missing", clip(f.Name))
			}
			var err error
			if out, err = f.Type.parseValue(out, bytes.TrimSpace(v)); err != nil {
				return dst, fmt.Errorf("field %q: %w", clip(f.Name), err)
			}
		}
		return out, nil
	case subarray:
		return t.parseDims(dst, raw, t.shape)
	}
	n := len(dst)
	out := append(dst, make([]byte, t.size)...)
	if err := t.fillV3(out[n:], raw); err != nil {
		return dst, err
	}
	if err := t.CheckWhole(out[n:], raw); err != nil {
		return dst, err
	}
	return out, nil
}

// CheckWhole returns ErrValue if JSON is a whole number without a fraction or exponent, and the
// float that it was parsed to is another number: 16777217 is not a float32.
func (t Type) CheckWhole(elem []byte, raw json.RawMessage) error {
	if t.kind != Float || t.format != "" || len(raw) < 4 || bytes.ContainsAny(raw, ".eENI\"") {
		return nil
	}
	var word [8]byte
	copy(word[:], elem)
	value := t.FloatValue(binary.LittleEndian.Uint64(word[:]))
	n, ok := new(big.Int).SetString(string(raw), 10)
	if !ok || math.IsInf(value, 0) || new(big.Float).SetInt(n).Cmp(big.NewFloat(value)) == 0 {
		return nil
	}
	return badValue("%s is not a %v, the nearest is %s", clip(string(raw)), t, strconv.FormatFloat(value, 'f', -1, 64))
}

// parseDims parses nested lists, one level for each dimension of shape.
func (t Type) parseDims(dst []byte, raw json.RawMessage, shape []int) ([]byte, error) {
	list, ok := asList(raw)
	if !ok || len(list) != shape[0] {
		return dst, badValue("not a list of %d", shape[0])
	}
	if len(shape) == 1 {
		return t.elem.parseItems(dst, list)
	}
	out := dst
	for _, raw := range list {
		var err error
		if out, err = t.parseDims(out, bytes.TrimSpace(raw), shape[1:]); err != nil {
			return dst, err
		}
	}
	return out, nil
}

func (t Type) parseItems(dst []byte, list []json.RawMessage) ([]byte, error) {
	out := dst
	for i, raw := range list {
		var err error
		if out, err = t.parseValue(out, bytes.TrimSpace(raw)); err != nil {
			return dst, fmt.Errorf("item %d: %w", i, err)
		}
	}
	return out, nil
}

// appendNamedBase64 appends the bytes of a string "base64:…".
func (t Type) appendNamedBase64(dst []byte, raw json.RawMessage) ([]byte, error) {
	s, _ := asString(raw)
	text, ok := strings.CutPrefix(s, "base64:")
	if !ok {
		return dst, badValue(`not a string that begins with "base64:"`)
	}
	out, err := base64.StdEncoding.Strict().AppendDecode(dst, []byte(text))
	if err != nil {
		return dst, badValue("not base64")
	}
	return out, nil
}
