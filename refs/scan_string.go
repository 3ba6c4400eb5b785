package refs

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// rawString skips a string and returns the bytes between the quotes.
func (c *cursor) rawString() (raw []byte, escaped, ascii bool, err error) {
	x, err := c.peek()
	if err != nil {
		return nil, false, false, err
	}
	if x != '"' {
		return nil, false, false, c.fail("unexpected " + printByte(x) + " instead of a string")
	}
	b := c.b
	i := c.i + 1
	from := i
	ascii = true
	for {
		// Eight bytes at a time until a quote, a backslash, a control byte or
		// one that is not ASCII. Bits above the lowest one may be wrong.
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			q, s := w^(ones*'"'), w^(ones*'\\')
			m := ((q-ones)&^q | (s-ones)&^s | (w-ones*0x20)&^w | w) & highs
			if m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		for i < len(b) && b[i] >= 0x20 && b[i] < 0x80 && b[i] != '"' && b[i] != '\\' {
			i++
		}
		if i == len(b) {
			return nil, false, false, c.short()
		}
		switch x := b[i]; {
		case x == '"':
			c.i = i + 1
			return b[from:i], escaped, ascii, nil
		case x == '\\':
			if i+1 == len(b) {
				return nil, false, false, c.short()
			}
			escaped = true
			i += 2
		case x >= 0x80:
			ascii = false
			i++
		default:
			c.i = i
			return nil, false, false, c.fail(printByte(x) + " in a string")
		}
	}
}

// str reads a string. The bytes lie in the text or in c.scratch.
func (c *cursor) str() ([]byte, error) {
	raw, escaped, ascii, err := c.rawString()
	if err != nil {
		return nil, err
	}
	if escaped {
		if c.scratch, err = unquote(c.scratch[:0], raw); err != nil {
			return nil, c.fail(err.Error())
		}
		raw = c.scratch
	}
	if !ascii && !utf8.Valid(raw) {
		return nil, c.fail("a string is not UTF-8")
	}
	return raw, nil
}

// unquote appends a string with its escapes decoded. Half of a surrogate pair is
// an error.
func unquote(dst, raw []byte) ([]byte, error) {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			dst = append(dst, raw[i])
			continue
		}
		i++ // a byte follows: the string does not end in a backslash
		switch raw[i] {
		case '"', '\\', '/':
			dst = append(dst, raw[i])
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, ok := hex4(raw, i+1)
			i += 4
			if ok && utf16.IsSurrogate(r) {
				var low rune
				if i+2 < len(raw) && raw[i+1] == '\\' && raw[i+2] == 'u' {
					low, ok = hex4(raw, i+3)
				}
				if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
					return dst, errors.New("half of a surrogate pair")
				}
				i += 6
			}
			if !ok {
				return dst, errors.New(`bad escape \u`)
			}
			dst = utf8.AppendRune(dst, r)
		default:
			return dst, errors.New("bad escape " + printByte(raw[i]))
		}
	}
	return dst, nil
}

func hex4(b []byte, i int) (r rune, ok bool) {
	if i+4 > len(b) {
		return 0, false
	}
	v, err := strconv.ParseUint(string(b[i:i+4]), 16, 16)
	return rune(v), err == nil
}
