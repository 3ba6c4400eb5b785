package refs

import (
	"context"
	"errors"
	"io"
	"strconv"
)

// The JSON of a reference set is read through a window that moves over the text.
// An entry or a template object lies in the window as a whole; if it does not,
// the window is refilled and reading begins again at the same position.
//
//	            pos            end
//	┌────────────┬──────────────┬───────┐
//	│ done with  │ unread       │ free  │  buf
//	└────────────┴──────────────┴───────┘

// errMore means that the window ends within the item.
var errMore = errors.New("refs: more bytes are needed")

// scanner holds the window.
type scanner struct {
	ctx  context.Context
	r    io.Reader
	buf  []byte
	pos  int
	end  int
	base int64 // offset of buf[0] in the text
	eof  bool
	max  int // largest bytes of an item
}

func newScanner(ctx context.Context, r io.Reader, window, max int) *scanner {
	return &scanner{ctx: ctx, r: r, buf: make([]byte, min(window, max)), max: max}
}

// fill moves the window to pos and reads until it is full or the text ends.
func (s *scanner) fill() error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if s.eof {
		return s.errorAt(s.end, "the text ends early")
	}
	s.end = copy(s.buf, s.buf[s.pos:s.end])
	s.base += int64(s.pos)
	s.pos = 0
	if s.end == len(s.buf) {
		if len(s.buf) >= s.max {
			return limit("more than %d bytes (MaxValue) at byte %d, which begin %q", s.max, s.base, s.buf[:min(s.end, 60)])
		}
		bigger := make([]byte, min(2*len(s.buf), s.max))
		copy(bigger, s.buf[:s.end])
		s.buf = bigger
	}
	n, err := io.ReadFull(s.r, s.buf[s.end:])
	s.end += n
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		s.eof = true
		return nil
	}
	return err
}

// each calls read with a cursor at pos, again while it needs more bytes, and
// moves to the position of the cursor.
func (s *scanner) each(read func(c *cursor) error) error {
	for {
		c := cursor{b: s.buf[s.pos:s.end], eof: s.eof}
		err := read(&c)
		if err == nil {
			s.pos += c.i
			return nil
		}
		if err == errMore {
			if err = s.fill(); err != nil {
				return err
			}
			continue
		}
		return s.explain(err)
	}
}

// explain adds the position to an error of a cursor at pos.
func (s *scanner) explain(err error) error {
	var syn *syntaxError
	if errors.As(err, &syn) && !syn.placed {
		return &syntaxError{text: syn.text, at: s.base + int64(s.pos) + syn.at, placed: true}
	}
	return err
}

func (s *scanner) errorAt(i int, text string) error {
	return &syntaxError{text: text, at: s.base + int64(i), placed: true}
}

// syntaxError is a violation of the JSON grammar.
type syntaxError struct {
	text   string
	at     int64 // byte in the text; in the window before explain
	placed bool
}

func (e *syntaxError) Error() string {
	return "refs: JSON at byte " + strconv.FormatInt(e.at, 10) + ": " + e.text
}

func (e *syntaxError) Is(target error) bool { return target == ErrInvalid }

// cursor reads JSON in a slice. At the end of a slice that is not the end of
// the text its methods return errMore.
type cursor struct {
	b       []byte
	i       int
	eof     bool
	scratch []byte // for strings with escapes; valid until the next one
}

func (c *cursor) fail(text string) error { return &syntaxError{text: text, at: int64(c.i)} }

// short is the error at the end of the slice.
func (c *cursor) short() error {
	if c.eof {
		c.i = len(c.b)
		return c.fail("the text ends early")
	}
	return errMore
}

// peek skips white space and returns the byte that follows.
func (c *cursor) peek() (byte, error) {
	for ; c.i < len(c.b); c.i++ {
		switch x := c.b[c.i]; x {
		case ' ', '\n', '\r', '\t':
		default:
			return x, nil
		}
	}
	return 0, c.short()
}

// expect skips white space and a byte.
func (c *cursor) expect(want byte) error {
	x, err := c.peek()
	if err != nil {
		return err
	}
	if x != want {
		return c.fail("unexpected " + printByte(x) + " instead of " + printByte(want))
	}
	c.i++
	return nil
}

func printByte(x byte) string {
	if x < 0x20 || x >= 0x7f {
		const hex = "0123456789abcdef"
		return "byte 0x" + string(hex[x>>4]) + string(hex[x&15])
	}
	return "'" + string(rune(x)) + "'"
}

// number reads a number and reports whether it has neither fraction nor
// exponent.
func (c *cursor) number() (text []byte, integral bool, err error) {
	b, i := c.b, c.i
	digits := func() bool {
		from := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > from
	}
	at := func(set string) bool {
		for k := range len(set) {
			if i < len(b) && b[i] == set[k] {
				return true
			}
		}
		return false
	}
	if at("-") {
		i++
	}
	ok := true
	if at("0") {
		i++
	} else {
		ok = digits()
	}
	integral = true
	if ok && at(".") {
		i++
		integral, ok = false, digits()
	}
	if ok && at("eE") {
		if i++; at("+-") {
			i++
		}
		integral, ok = false, digits()
	}
	if i == len(b) && !c.eof {
		return nil, false, errMore
	}
	if !ok {
		return nil, false, c.fail("not a number")
	}
	text, c.i = b[c.i:i], i
	return text, integral, nil
}

var errNoInteger = errors.New("not an integer of 64 bits")

// integer reads an integer; another value is skipped, with the error
// errNoInteger.
func (c *cursor) integer() (int64, error) {
	x, err := c.peek()
	if err != nil {
		return 0, err
	}
	if x != '-' && (x < '0' || x > '9') {
		if err := c.skip(0); err != nil {
			return 0, err
		}
		return 0, errNoInteger
	}
	// The usual number: some digits and a comma or bracket behind them.
	var v int64
	i := c.i
	for ; i < len(c.b) && i < c.i+18 && c.b[i] >= '0' && c.b[i] <= '9'; i++ {
		v = v*10 + int64(c.b[i]-'0')
	}
	if i > c.i && i < len(c.b) && (c.b[c.i] != '0' || i == c.i+1) {
		switch c.b[i] {
		case ',', ']', '}', ' ', '\n', '\r', '\t':
			c.i = i
			return v, nil
		}
	}
	text, integral, err := c.number()
	if err != nil {
		return 0, err
	}
	if !integral {
		return 0, errNoInteger
	}
	if v, err = strconv.ParseInt(string(text), 10, 64); err != nil {
		return 0, errNoInteger
	}
	return v, nil
}

// maxNesting bounds the depth of values.
const maxNesting = 1000

// skip skips a value and checks it. NaN, Infinity and -Infinity are allowed as
// numbers, since Python writes them.
func (c *cursor) skip(depth int) error {
	if depth > maxNesting {
		return c.fail("nested too deep")
	}
	x, err := c.peek()
	if err != nil {
		return err
	}
	switch {
	case x == '"':
		_, err := c.str()
		return err
	case x == '{' || x == '[':
		return c.members(x == '{', func(bool) error { return c.skip(depth + 1) })
	case x == '-' && c.i+1 < len(c.b) && c.b[c.i+1] == 'I':
		return c.word("-Infinity")
	case x == '-' || x >= '0' && x <= '9':
		_, _, err := c.number()
		return err
	}
	for _, w := range []string{"true", "false", "null", "NaN", "Infinity"} {
		if x == w[0] {
			return c.word(w)
		}
	}
	return c.fail("unexpected " + printByte(x))
}

// word reads a literal.
func (c *cursor) word(w string) error {
	for i := range len(w) {
		if c.i+i == len(c.b) {
			return c.short()
		}
		if c.b[c.i+i] != w[i] {
			return c.fail("unexpected " + printByte(c.b[c.i+i]))
		}
	}
	c.i += len(w)
	return nil
}

// members calls value before each value of an object or array, behind the key
// and the colon of an object; with key, before each key instead.
func (c *cursor) members(object bool, value func(key bool) error) error {
	open, end := byte('['), byte(']')
	if object {
		open, end = '{', '}'
	}
	if err := c.expect(open); err != nil {
		return err
	}
	for first := true; ; first = false {
		x, err := c.peek()
		if err != nil {
			return err
		}
		if x == end && first {
			c.i++
			return nil
		}
		if object {
			if x != '"' {
				return c.fail("unexpected " + printByte(x) + " instead of a key")
			}
			if err := value(true); err != nil {
				return err
			}
			if err := c.expect(':'); err != nil {
				return err
			}
		}
		if err := value(false); err != nil {
			return err
		}
		if x, err = c.peek(); err != nil {
			return err
		}
		c.i++
		if x == end {
			return nil
		}
		if x != ',' {
			c.i--
			return c.fail("unexpected " + printByte(x) + " instead of ',' or " + printByte(end))
		}
	}
}
