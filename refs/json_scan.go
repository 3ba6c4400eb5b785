package refs

import (
	"bytes"
	"fmt"
)

// peek returns the byte behind white space.
func (s *scanner) peek() (x byte, err error) {
	err = s.each(func(c *cursor) error {
		x, err = c.peek()
		return err
	})
	return x, err
}

// raw goes over a value and returns its text, which stays valid.
func (s *scanner) raw() (text []byte, err error) {
	err = s.each(func(c *cursor) error {
		err := c.skip(0)
		text = c.b[:c.i]
		return err
	})
	return bytes.Clone(text), err
}

// trailing checks that there is nothing but white space up to the end.
func (s *scanner) trailing() error {
	for {
		for ; s.pos < s.end; s.pos++ {
			switch x := s.buf[s.pos]; x {
			case ' ', '\n', '\r', '\t':
			default:
				return s.errorAt(s.pos, fmt.Sprintf("unexpected %s behind the set", printByte(x)))
			}
		}
		if s.eof {
			return nil
		}
		if err := s.fill(); err != nil {
			return err
		}
	}
}

// skipFast skips a value of any length without a full check: it parses brackets
// and strings only.
func (s *scanner) skipFast() error {
	depth, inString := 0, false
	for {
		b := s.buf[s.pos:s.end]
		i := 0
		for ; i < len(b); i++ {
			if inString {
				k := bytes.IndexByte(b[i:], '"')
				if k < 0 {
					i = len(b)
					break
				}
				i += k
				// After an odd number of backslashes it belongs to the string.
				if inString = backslashes(b[:i])&1 == 1; !inString && depth == 0 {
					s.pos += i + 1
					return nil
				}
				continue
			}
			switch x := b[i]; x {
			case '"':
				inString = true
			case '{', '[':
				depth++
			case '}', ']', ',':
				if depth == 0 { // behind a number or literal
					s.pos += i
					return nil
				}
				if x == ',' {
					break
				}
				if depth--; depth == 0 {
					s.pos += i + 1
					return nil
				}
			}
		}
		if inString {
			// Backslashes at the end are read again together with the next
			// bytes.
			if i -= backslashes(b); i == 0 && len(b) > 1 {
				return limit("a string of nothing but backslashes")
			}
		}
		s.pos += i
		if err := s.fill(); err != nil {
			return err
		}
	}
}

// backslashes counts the backslashes at the end of b.
func backslashes(b []byte) int {
	n := 0
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return n
}
