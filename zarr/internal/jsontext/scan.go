package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"unicode/utf8"
)

// checkJSON checks a whole document.
func Check(doc []byte) error {
	switch {
	case len(doc) > MaxDocument:
		return fmt.Errorf("%d bytes are over the limit of %d", len(doc), MaxDocument)
	case !utf8.Valid(doc):
		return errors.New("not UTF-8")
	}
	s := scanner{text: doc}
	s.space()
	if s.at == len(doc) {
		return errors.New("empty")
	}
	if err := s.value(); err != nil {
		return err
	}
	s.space()
	if s.at < len(doc) {
		return s.fail("text after the value")
	}
	return nil
}

// First returns the first member of that name in an object that need not have been
// checked; nothing behind the member is read. It is nil if there is none, or if the text
// before is not JSON.
func First(doc []byte, name string) json.RawMessage {
	s := scanner{text: doc}
	s.space()
	for open := byte('{'); s.peek() == open; open = ',' {
		s.at++
		s.space()
		from := s.at
		if s.peek() != '"' || s.str() != nil {
			return nil
		}
		found := string(unquoteName(doc[from:s.at])) == name
		s.space()
		if s.peek() != ':' {
			return nil
		}
		s.at++
		s.space()
		from = s.at
		if s.value() != nil {
			return nil
		}
		if found {
			return doc[from:s.at]
		}
		s.space()
	}
	return nil
}

// scanner reads JSON from text[at:].
type scanner struct {
	text  []byte
	at    int
	depth int
	names [][]byte // of the objects that are open, one after another
}

func (s *scanner) fail(what string) error {
	return fmt.Errorf("not JSON: %s at byte %d", what, s.at)
}

func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

func (s *scanner) value() error {
	switch c := s.peek(); c {
	case '{':
		return s.nested(s.object)
	case '[':
		return s.nested(s.list)
	case '"':
		return s.str()
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	case 'N':
		return s.word("NaN")
	case 'I':
		return s.word("Infinity")
	}
	return s.number()
}

func (s *scanner) nested(read func() error) error {
	if s.depth++; s.depth > maxNesting {
		return fmt.Errorf("nested deeper than %d at byte %d", maxNesting, s.at)
	}
	err := read()
	s.depth--
	return err
}

func (s *scanner) object() error {
	first := len(s.names)
	var seen nameSet // once there are many names
	s.at++
	for s.space(); s.peek() != '}'; s.space() {
		if len(s.names) > first {
			if s.peek() != ',' {
				return s.fail("no comma or brace after a member")
			}
			s.at++
			s.space()
		}
		from := s.at
		if s.peek() != '"' {
			return s.fail("a member has no name")
		}
		if err := s.str(); err != nil {
			return err
		}
		name := unquoteName(s.text[from:s.at])
		s.names = append(s.names, name)
		if names := s.names[first:]; len(names) > 16 && !seen.add(names) ||
			len(names) <= 16 && slices.ContainsFunc(names[:len(names)-1], func(n []byte) bool { return bytes.Equal(n, name) }) {
			return fmt.Errorf("member %q stands twice in an object", Clip(name))
		}
		s.space()
		if s.peek() != ':' {
			return s.fail("no colon after a name")
		}
		s.at++
		s.space()
		if err := s.value(); err != nil {
			return err
		}
	}
	s.at++
	s.names = s.names[:first]
	return nil
}

// nameSet finds duplicate names: a hash table of the indices of names, each plus one. Unlike a map it
// needs no copies of the names.
type nameSet struct {
	seed  maphash.Seed
	slots []uint32 // as many as a power of two, or none
	used  int      // how many of the names are in slots
}

// add adds the last of names, and all names if the table has to grow. It reports whether the last name
// differs from all names before it.
func (n *nameSet) add(names [][]byte) bool {
	if 2*len(names) > len(n.slots) {
		*n = nameSet{seed: maphash.MakeSeed(), slots: make([]uint32, max(4*len(n.slots), 64))}
	}
	mask := uint64(len(n.slots) - 1)
next:
	for ; n.used < len(names); n.used++ {
		at := maphash.Bytes(n.seed, names[n.used]) & mask
		for ; n.slots[at] != 0; at = (at + 1) & mask {
			if bytes.Equal(names[n.slots[at]-1], names[n.used]) {
				break next
			}
		}
		n.slots[at] = uint32(n.used + 1)
	}
	return n.used == len(names)
}

func (s *scanner) list() error {
	s.at++
	for i := 0; ; i++ {
		s.space()
		if s.peek() == ']' && i == 0 {
			break
		}
		if err := s.value(); err != nil {
			return err
		}
		s.space()
		if s.peek() == ']' {
			break
		}
		if s.peek() != ',' {
			return s.fail("no comma or bracket after an element")
		}
		s.at++
	}
	s.at++
	return nil
}

func (s *scanner) str() error {
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return nil
		case c < ' ':
			return s.fail("control character in a string")
		case c == '\\':
			s.at++
			switch s.peek() {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if s.at+4 >= len(s.text) {
					return s.fail("unknown escape in a string")
				}
				if _, err := strconv.ParseUint(string(s.text[s.at+1:s.at+5]), 16, 16); err != nil {
					return s.fail("unknown escape in a string")
				}
				s.at += 4
			default:
				return s.fail("unknown escape in a string")
			}
		}
	}
	return s.fail("a string without end")
}

func (s *scanner) word(w string) error {
	if !bytes.HasPrefix(s.text[s.at:], []byte(w)) {
		return s.fail("no value")
	}
	s.at += len(w)
	return nil
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.at++
		if s.peek() == 'I' {
			return s.word("Infinity")
		}
	}
	switch {
	case s.peek() == '0':
		s.at++
	case !s.digits():
		return s.fail("no value")
	}
	if s.peek() == '.' {
		if s.at++; !s.digits() {
			return s.fail("no digit after a point")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.at++
		if c := s.peek(); c == '+' || c == '-' {
			s.at++
		}
		if !s.digits() {
			return s.fail("no digit in an exponent")
		}
	}
	return nil
}

func (s *scanner) digits() bool {
	from := s.at
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.at++
	}
	return s.at > from
}

// skip moves past a value of text that has been checked.
func (s *scanner) skip() {
	depth := 0
	for {
		switch c := s.peek(); c {
		case '"':
			for s.at++; s.text[s.at] != '"'; s.at++ {
				if s.text[s.at] == '\\' {
					s.at++
				}
			}
			s.at++
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			depth--
			s.at++
		case ',', ':', ' ', '\t', '\n', '\r':
			s.at++
		default: // a number or a word: none of the above can stand in it
			for c := s.peek(); c != 0 && bytes.IndexByte([]byte(",:]} \t\n\r"), c) < 0; c = s.peek() {
				s.at++
			}
		}
		if depth == 0 {
			return
		}
	}
}
