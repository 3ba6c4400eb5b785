package dtype

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD, but the three bytes of half a surrogate pair are escaped; other
// characters are escaped only if required.
func AppendString(dst []byte, s string) []byte { return appendString(dst, s) }

func appendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	done := 0 // s[:done] has been appended
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			if c == 0xed && len(s)-i >= 3 && s[i+1]&^0x1f == 0xa0 && s[i+2]&^0x3f == 0x80 {
				dst = append(dst, s[done:i]...)
				dst = appendRune(dst, 0xd000|uint32(s[i+1]&0x3f)<<6|uint32(s[i+2]&0x3f))
				i += 3
				done = i
				continue
			}
			if r == utf8.RuneError && n == 1 {
				dst = append(dst, s[done:i]...)
				dst = append(dst, "\ufffd"...)
				done = i + 1
			}
			i += n
			continue
		}
		dst = append(dst, s[done:i]...)
		dst = appendEscape(dst, c)
		i++
		done = i
	}
	dst = append(dst, s[done:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// appendRune appends a UTF-32 code point inside a JSON string.
func appendRune(dst []byte, r uint32) []byte {
	switch {
	case r < ' ' || r == '"' || r == '\\':
		return appendEscape(dst, byte(r))
	case r >= 0xd800 && r < 0xe000: // a lone surrogate; Python has them
		dst = append(dst, '\\', 'u')
		for s := 12; s >= 0; s -= 4 {
			dst = append(dst, hexDigits[r>>s&15])
		}
		return dst
	case r > utf8.MaxRune:
		return append(dst, "\ufffd"...)
	}
	return utf8.AppendRune(dst, rune(r))
}

// appendFloat appends a finite v in the shortest form that parses back to the
// same number of the given width, always with a point or an exponent, so that
// every reader parses a float.
func appendFloat(dst []byte, v float64, bits int) []byte {
	form := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e21) {
		form = 'e'
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, v, form, -1, bits)
	for _, c := range dst[start:] {
		if c == '.' || c == 'e' {
			return dst
		}
	}
	return append(dst, '.', '0')
}

// appendNarrow appends the number b of a narrow format in the shortest form
// that rounds back to it.
func (f *floatFormat) appendNarrow(dst []byte, b uint64) []byte {
	v := f.decode(b)
	for prec := range 17 {
		short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', prec, 64), 64)
		if err != nil {
			continue
		}
		if back, err := f.encode(short); err == nil && back == b {
			v = short
			break
		}
	}
	return appendFloat(dst, v, 64)
}

// appendFloatValue appends one float in memory layout as a JSON value. A NaN
// other than the canonical one is its bits in hexadecimal if exact is set.
func (t Type) appendFloatValue(dst, elem []byte, exact bool) []byte {
	b := loadUint(elem) & (1<<t.bits - 1)
	v := t.FloatValue(b)
	switch {
	case math.IsNaN(v) && exact && b != t.canonicalNaN():
		dst = append(dst, `"0x`...)
		for s := 8*t.size - 4; s >= 0; s -= 4 {
			dst = append(dst, hexDigits[b>>s&15])
		}
		return append(dst, '"')
	case math.IsNaN(v):
		return append(dst, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(dst, `"-Infinity"`...)
	}
	if t.bits < 32 {
		return t.floatFormat().appendNarrow(dst, b)
	}
	return appendFloat(dst, v, int(t.bits))
}

func (t Type) canonicalNaN() uint64 {
	b, _ := t.floatFormat().nan()
	return b
}

// loadUint reads a little-endian number of 1, 2, 4 or 8 bytes.
func loadUint(p []byte) uint64 {
	switch len(p) {
	case 1:
		return uint64(p[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(p))
	case 4:
		return uint64(binary.LittleEndian.Uint32(p))
	}
	return binary.LittleEndian.Uint64(p)
}

// storeUint is the inverse of loadUint; it fills p.
func storeUint(p []byte, v uint64) {
	for i := range p {
		p[i] = byte(v >> (8 * i))
	}
}

// AppendJSON appends one element as one JSON value on one line, for people and
// for line-oriented output: bytes as "base64:…", every NaN as "NaN", a Datetime
// or Timedelta as its number, a Complex as a pair, a Struct as an object, a
// Subarray or Ragged as lists, JSON as its text without spaces. elem is in
// memory layout and only read. It fails only if elem does not have the length of
// an element.
//
// Fill values in metadata have stricter forms: [Type.PrintFillV2] and
// [Type.PrintFillV3].
func (t Type) AppendJSON(dst, elem []byte) ([]byte, error) {
	if !t.Variable() && len(elem) != t.size || t.kind == Invalid {
		return dst, badValue("%d bytes are not an element of %s", len(elem), t)
	}
	switch t.kind {
	case String:
		return appendString(dst, elem), nil
	case Bytes:
		return appendBase64(append(dst, `"base64:`...), elem), nil
	case JSON:
		return appendCompact(dst, elem), nil
	case Ragged:
		if len(elem)%t.elem.size != 0 {
			return dst, badValue("%d bytes are not whole elements of %s", len(elem), t.elem)
		}
		return t.elem.appendList(dst, elem), nil
	}
	return t.appendValue(dst, elem), nil
}

// appendValue is AppendJSON for fixed-size types, with the length checked.
func (t Type) appendValue(dst, elem []byte) []byte {
	switch t.kind {
	case Bool:
		return strconv.AppendBool(dst, elem[0] != 0)
	case Int, Datetime, Timedelta:
		s := 64 - t.bits // the bits above those of int2 and int4 are ignored
		return strconv.AppendInt(dst, int64(loadUint(elem)<<s)>>s, 10)
	case Uint:
		return strconv.AppendUint(dst, loadUint(elem)&(1<<t.bits-1), 10)
	case Float:
		return t.appendFloatValue(dst, elem, false)
	case Complex:
		p := t.part()
		dst = p.appendFloatValue(append(dst, '['), elem[:p.size], false)
		dst = p.appendFloatValue(append(dst, ','), elem[p.size:], false)
		return append(dst, ']')
	case FixedBytes:
		return appendBase64(append(dst, `"base64:`...), trimZeros(elem))
	case FixedUTF32:
		return appendUTF32(dst, elem)
	case Struct:
		for i, f := range t.fields {
			c := byte(',')
			if i == 0 {
				c = '{'
			}
			dst = append(appendString(append(dst, c), f.Name), ':')
			dst = f.Type.appendValue(dst, elem[f.Offset:f.Offset+f.Type.size])
		}
		return append(dst, '}')
	case subarray:
		return t.appendDims(dst, elem, t.shape)
	}
	return appendBase64(append(dst, `"base64:`...), elem) // Raw
}

// appendDims appends nested lists, one level for each dimension of shape.
func (t Type) appendDims(dst, elem []byte, shape []int) []byte {
	if len(shape) == 1 {
		return t.elem.appendList(dst, elem)
	}
	step := len(elem) / shape[0]
	for i := range shape[0] {
		c := byte(',')
		if i == 0 {
			c = '['
		}
		dst = t.appendDims(append(dst, c), elem[i*step:(i+1)*step], shape[1:])
	}
	return append(dst, ']')
}

func (t Type) appendList(dst, elems []byte) []byte {
	dst = append(dst, '[')
	for off := 0; off < len(elems); off += t.size {
		if off > 0 {
			dst = append(dst, ',')
		}
		dst = t.appendValue(dst, elems[off:off+t.size])
	}
	return append(dst, ']')
}

// loadInt reads a little-endian signed number of 1, 2, 4 or 8 bytes.
func loadInt(p []byte) int64 {
	s := 64 - 8*len(p)
	return int64(loadUint(p)<<s) >> s
}

func appendBase64(dst, p []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(dst, p), '"')
}

func appendUTF32(dst, elem []byte) []byte {
	n := len(elem) / 4
	for n > 0 && binary.LittleEndian.Uint32(elem[4*n-4:]) == 0 {
		n--
	}
	dst = append(dst, '"')
	for i := range n {
		dst = appendRune(dst, binary.LittleEndian.Uint32(elem[4*i:]))
	}
	return append(dst, '"')
}

func trimZeros(p []byte) []byte {
	n := len(p)
	for n > 0 && p[n-1] == 0 {
		n--
	}
	return p[:n]
}

// appendCompact appends JSON text without the spaces between its tokens. Text
// that is not JSON at all is appended as a JSON string, so that the output
// stays one value.
func appendCompact(dst, text []byte) []byte {
	if !validJSON(text) {
		return appendString(dst, text)
	}
	in := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case in && c == '\\':
			dst = append(dst, c)
			i++
		case c == '"':
			in = !in
		case !in && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			continue
		}
		dst = append(dst, text[i])
	}
	return dst
}

// validJSON reports whether text is one JSON value, where NaN, Infinity and
// -Infinity count as numbers: Python's json module writes them.
func validJSON(text []byte) bool {
	if json.Valid(text) {
		return true
	}
	if !bytes.Contains(text, []byte("NaN")) && !bytes.Contains(text, []byte("Infinity")) {
		return false
	}
	plain := make([]byte, 0, len(text))
	in := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if in && c == '\\' && i+1 < len(text) {
			plain = append(plain, c, text[i+1])
			i++
			continue
		}
		if c == '"' {
			in = !in
		}
		if !in {
			if n := bareNumber(text[i:]); n > 0 {
				plain = append(plain, '0')
				i += n - 1
				continue
			}
		}
		plain = append(plain, c)
	}
	return json.Valid(plain)
}

// bareNumber returns the length of the NaN or infinity that text begins with,
// or 0.
func bareNumber(text []byte) int {
	for _, s := range []string{"NaN", "Infinity", "-Infinity"} {
		if len(text) >= len(s) && string(text[:len(s)]) == s {
			return len(s)
		}
	}
	return 0
}
