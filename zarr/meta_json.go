package zarr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Metadata is kept as the text that it came as, so that what is not changed is
// printed as it was. One strict pass over a document checks syntax, nesting
// and names; after it the functions below cut the text without looking twice.
//
// Beyond RFC 8259 a bare NaN, Infinity or -Infinity is a value, since Python's
// json module writes them into attributes and fill values; and a name may not
// stand twice in an object, since readers would disagree on what it means.

// Limits on documents. Consolidated metadata of large hierarchies takes many
// megabytes; nothing nests deeper than a few levels.
const (
	maxDocument = 128 << 20
	maxNesting  = 512
)

// jsonMember is a member of an object: its name, and its value without space
// around it.
type jsonMember struct {
	name  string
	value json.RawMessage
}

// checkJSON checks a whole document.
func checkJSON(doc []byte) error {
	switch {
	case len(doc) > maxDocument:
		return fmt.Errorf("%d bytes are over the limit of %d", len(doc), maxDocument)
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
	var seen map[string]bool // once there are many names
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
		name := unquote(s.text[from:s.at])
		if halfPair(s.text[from:s.at]) {
			return s.fail("a name that is not text") // two of them would become one
		}
		if seen == nil && len(s.names)-first >= 16 {
			seen = make(map[string]bool)
			for _, n := range s.names[first:] {
				seen[string(n)] = true
			}
		}
		if seen[string(name)] || seen == nil && slices.ContainsFunc(s.names[first:], func(n []byte) bool { return bytes.Equal(n, name) }) {
			return fmt.Errorf("member %q stands twice in an object", clipText(name))
		}
		if seen != nil {
			seen[string(name)] = true
		}
		s.names = append(s.names, name)
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

// members returns the members of raw in order, or false if it is no object.
// raw has been checked, and what is returned shares its memory.
func members(raw json.RawMessage) (object, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return nil, false
	}
	s := scanner{text: raw, at: 1}
	list := object{}
	for s.space(); s.peek() != '}'; s.space() {
		if s.peek() == ',' {
			s.at++
			s.space()
		}
		from := s.at
		s.skip()
		name := string(unquote(raw[from:s.at]))
		s.space()
		s.at++ // colon
		s.space()
		from = s.at
		s.skip()
		list = append(list, jsonMember{name, raw[from:s.at:s.at]})
	}
	return list, true
}

// items returns the elements of raw, or false if it is no list. raw has been
// checked, and what is returned shares its memory.
func items(raw json.RawMessage) ([]json.RawMessage, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '[' {
		return nil, false
	}
	s := scanner{text: raw, at: 1}
	list := []json.RawMessage{}
	for s.space(); s.peek() != ']'; s.space() {
		if s.peek() == ',' {
			s.at++
			s.space()
		}
		from := s.at
		s.skip()
		list = append(list, raw[from:s.at:s.at])
	}
	return list, true
}

// object is the members of an object in their order. There are few of them
// where one is looked up.
type object []jsonMember

// lookup returns the value of a member, if there is one.
func (o object) lookup(name string) (json.RawMessage, bool) {
	for i := range o {
		if o[i].name == name {
			return o[i].value, true
		}
	}
	return nil, false
}

// get is lookup that gives nil for no member.
func (o object) get(name string) json.RawMessage {
	raw, _ := o.lookup(name)
	return raw
}

// unquote returns the text of a checked JSON string.
func unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		panic("zarr: unchecked string: " + err.Error())
	}
	return []byte(s)
}

func asString(raw json.RawMessage) (string, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return string(unquote(raw)), true
}

var errNotInteger = errors.New("not an integer")

// asInt returns the integer that raw is, without a fraction or an exponent.
func asInt(raw json.RawMessage) (int64, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, errNotInteger
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s is out of range", show(raw))
	case err != nil:
		return 0, errNotInteger
	}
	return n, nil
}

// clipText shortens text from a document so that an error stays readable.
func clipText[T ~string | ~[]byte](text T) string {
	const most = 60
	if len(text) <= most {
		return string(text)
	}
	n := most
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return string(text[:n]) + "…"
}

// fieldName returns the name of a member for the path of an error.
func fieldName(name string) string {
	name = clipText(name)
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(` ".[]`, r) }) {
		return strconv.Quote(name)
	}
	return name
}

// show returns text from a document for an error: one line, not long.
func show(raw json.RawMessage) string {
	return strings.Join(strings.Fields(clipText(string(raw))), " ")
}

// appendIndented appends checked JSON text with every member and element on
// its own line, as Python's json module does, and tokens as they are.
func appendIndented(dst []byte, raw json.RawMessage, indent string, level int) []byte {
	newline := func(n int) {
		dst = append(dst, '\n')
		for range n {
			dst = append(dst, indent...)
		}
	}
	for s := (scanner{text: raw}); ; {
		s.space()
		from := s.at
		switch c := s.peek(); c {
		case 0:
			return dst
		case '{', '[':
			s.at++
			s.space()
			dst = append(dst, c)
			if e := s.peek(); e == '}' || e == ']' {
				s.at++
				dst = append(dst, e)
				continue
			}
			level++
			newline(level)
		case '}', ']':
			s.at++
			level--
			newline(level)
			dst = append(dst, c)
		case ',':
			s.at++
			dst = append(dst, c)
			newline(level)
		case ':':
			s.at++
			dst = append(dst, ": "...)
		default:
			s.skip()
			dst = append(dst, raw[from:s.at]...)
		}
	}
}

func sortMembers(list []jsonMember) {
	slices.SortFunc(list, func(a, b jsonMember) int { return strings.Compare(a.name, b.name) })
}

// canonical returns checked JSON text in a form that is the same for values
// that mean the same: no space, members ordered by name, strings without
// needless escapes. Numbers stay as they are.
func canonical(raw json.RawMessage) json.RawMessage { return appendCanonical(nil, raw) }

func appendCanonical(dst []byte, raw json.RawMessage) []byte {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return dst
	}
	switch raw[0] {
	case '{':
		list, _ := members(raw)
		sortMembers(list)
		dst = append(dst, '{')
		for i, m := range list {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dtype.AppendString(dst, m.name), ':')
			dst = appendCanonical(dst, m.value)
		}
		return append(dst, '}')
	case '[':
		list, _ := items(raw)
		dst = append(dst, '[')
		for i, v := range list {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendCanonical(dst, v)
		}
		return append(dst, ']')
	case '"':
		if halfPair(raw) {
			return append(dst, raw...) // half a pair alone is lost when unquoted
		}
		return dtype.AppendString(dst, string(unquote(raw)))
	}
	return append(dst, raw...)
}

// escapes finds the escapes of a JSON string, a surrogate pair as one.
var escapes = regexp.MustCompile(`\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.`)

// halfPair reports whether a checked JSON string has a surrogate without the
// other. It is no text; unquoting turns it into U+FFFD.
func halfPair(quoted []byte) bool {
	if !bytes.Contains(quoted, []byte(`\u`)) {
		return false
	}
	return slices.ContainsFunc(escapes.FindAll(quoted, -1), func(e []byte) bool {
		return len(e) == 6 && e[2]|0x20 == 'd' && e[3] >= '8'
	})
}

// appendStrict appends checked JSON text with bare NaN, Infinity and -Infinity
// as strings, so that every JSON reader takes it.
func appendStrict(dst []byte, raw json.RawMessage) []byte {
	for s := (scanner{text: raw}); s.at < len(raw); {
		from := s.at
		switch s.peek() {
		case '{', '[', '}', ']', ',', ':', ' ', '\t', '\n', '\r':
			s.at++
			dst = append(dst, raw[from])
			continue
		}
		s.skip()
		token := raw[from:s.at]
		switch string(token) {
		case "NaN", "Infinity", "-Infinity":
			dst = append(append(append(dst, '"'), token...), '"')
		default:
			dst = append(dst, token...)
		}
	}
	return dst
}
