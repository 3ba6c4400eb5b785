package cli

import (
	"bytes"
	"encoding/binary"
	"unicode"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// elementText appends one element for people: as JSON, but times as times, byte
// strings as text if they are some, and NaN without quotes. dec is nil unless
// the element was decoded.
func elementText(t dtype.Type, dec *cf.Decoder, dst, elem []byte) ([]byte, error) {
	switch {
	case dec != nil && dec.HasText():
		return dec.AppendText(dst, elem)
	case t.Kind() == dtype.Datetime && len(elem) == 8:
		return cf.AppendDatetime(dst, t, int64(binary.LittleEndian.Uint64(elem))), nil
	case t.Kind() == dtype.Timedelta && len(elem) == 8:
		return cf.AppendTimedelta(dst, t, int64(binary.LittleEndian.Uint64(elem))), nil
	case t.Kind() == dtype.FixedBytes && printable(elem):
		return dtype.AppendString(dst, string(bytes.TrimRight(elem, "\x00"))), nil
	case t.Kind() == dtype.Float:
		n := len(dst)
		dst, err := t.AppendJSON(dst, elem)
		if text := dst[n:]; err == nil && text[0] == '"' { // NaN and the infinities
			dst = append(dst[:n], text[1:len(text)-1]...)
		}
		return dst, err
	case t.Kind() != dtype.Struct || len(elem) != t.Size() || !readable(t):
		return t.AppendJSON(dst, elem)
	}
	dst = append(dst, '{')
	for i, f := range t.Fields() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dtype.AppendString(dst, f.Name), ':')
		var err error
		if dst, err = elementText(f.Type, nil, dst, elem[f.Offset:][:f.Type.Size()]); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// readable reports whether a struct has fields that JSON shows badly.
func readable(t dtype.Type) bool {
	for _, f := range t.Fields() {
		switch f.Type.Kind() {
		case dtype.Datetime, dtype.Timedelta, dtype.FixedBytes:
			return true
		case dtype.Struct:
			if readable(f.Type) {
				return true
			}
		}
	}
	return false
}

// printable reports whether a byte string is text without control characters.
func printable(b []byte) bool {
	b = bytes.TrimRight(b, "\x00")
	return utf8.Valid(b) && bytes.IndexFunc(b, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
