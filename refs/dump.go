package refs

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"
)

// A value that is a JSON object stands for its text, and programs print objects in
// different ways. The bytes printed here equal the output of other programs
// for the same set:
//
//   - in JSON sets, the output of ujson, as of kerchunk and fsspec: no white space,
//     "/" as "\/", ASCII only;
//   - in parquet sets, the output of Python's json: ", " and ": ", ASCII only.
//
// Numbers are printed as Python prints them. All members with one name are
// printed; Python keeps the last.
type dumpStyle struct {
	comma, colon string
	slash        bool // "/" is escaped
	delete       bool // byte 0x7f is escaped
	exponent     bool // exponents have two digits
}

var (
	ujsonStyle  = dumpStyle{comma: ",", colon: ":", slash: true}
	pythonStyle = dumpStyle{comma: ", ", colon: ": ", delete: true, exponent: true}
)

// dump appends the value at the cursor.
func (st *dumpStyle) dump(dst []byte, c *cursor, depth int) ([]byte, error) {
	x, err := c.peek()
	if err != nil {
		return dst, err
	}
	switch {
	case depth > maxNesting:
		return dst, c.fail("nested too deep")
	case x == '"':
		return st.dumpString(dst, c)
	case x == '-' || x >= '0' && x <= '9':
		if x != '-' || c.i+1 >= len(c.b) || c.b[c.i+1] != 'I' {
			return st.dumpNumber(dst, c)
		}
	case x == '{' || x == '[':
		dst = append(dst, x)
		first, object := true, x == '{'
		err := c.members(object, func(key bool) (err error) {
			if (key || !object) && !first {
				dst = append(dst, st.comma...)
			}
			if first = false; key {
				dst, err = st.dumpString(dst, c)
				dst = append(dst, st.colon...)
				return err
			}
			dst, err = st.dump(dst, c, depth+1)
			return err
		})
		return append(dst, x+2), err // in ASCII the closing bracket is two further
	}
	from := c.i
	err = c.skip(depth)
	return append(dst, bytes.TrimSpace(c.b[from:c.i])...), err
}

func (st *dumpStyle) dumpString(dst []byte, c *cursor) ([]byte, error) {
	s, err := c.str()
	if err != nil {
		return dst, err
	}
	return st.appendString(dst, s), nil
}

const hexDigits = "0123456789abcdef"

// appendString appends a string in quotes.
func (st *dumpStyle) appendString(dst, s []byte) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		x := s[i]
		if x >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(s[i:])
			i += n
			if r >= 0x10000 {
				r -= 0x10000
				dst = appendEscape(dst, 0xd800+r>>10)
				r = 0xdc00 + r&0x3ff
			}
			dst = appendEscape(dst, r)
			continue
		}
		i++
		switch {
		case x == '"' || x == '\\' || x == '/' && st.slash:
			dst = append(dst, '\\', x)
		case x >= 0x20 && (x != 0x7f || !st.delete):
			dst = append(dst, x)
		case x == '\n':
			dst = append(dst, `\n`...)
		case x == '\t':
			dst = append(dst, `\t`...)
		case x == '\r':
			dst = append(dst, `\r`...)
		case x == '\b':
			dst = append(dst, `\b`...)
		case x == '\f':
			dst = append(dst, `\f`...)
		default:
			dst = appendEscape(dst, rune(x))
		}
	}
	return append(dst, '"')
}

func appendEscape(dst []byte, r rune) []byte {
	return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// dumpNumber prints an integer as it is and a float with the fewest digits.
func (st *dumpStyle) dumpNumber(dst []byte, c *cursor) ([]byte, error) {
	text, integral, err := c.number()
	if err != nil {
		return dst, err
	}
	if integral {
		if string(text) == "-0" {
			text = text[1:]
		}
		return append(dst, text...), nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	switch { // the only error is that f is too large, and then infinite
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...), nil
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...), nil
	case err != nil:
		return dst, c.fail("not a number")
	}
	from := len(dst)
	dst = appendFloat(dst, f)
	if !st.exponent {
		// 1e-07 -> 1e-7
		if e := bytes.IndexByte(dst[from:], 'e'); e >= 0 && dst[from+e+2] == '0' {
			dst = append(dst[:from+e+2], dst[from+e+3:]...)
		}
	}
	return dst, nil
}

// appendFloat appends a finite float as Python's repr prints it: the shortest
// digits that give f back, with an exponent below 1e-4 and from 1e16 on.
func appendFloat(dst []byte, f float64) []byte {
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if f == math.Trunc(f) {
		dst = append(dst, ".0"...)
	}
	return dst
}
