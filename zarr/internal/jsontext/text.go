package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Limits on documents. Consolidated metadata of large hierarchies takes many
// megabytes; nothing nests deeper than a few levels.
const (
	MaxDocument = 128 << 20
	maxNesting  = 512
)

// Member is a member of an object: its name, and its value without space
// around it.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Members returns the members of raw in order, or false if it is no object. raw
// has been checked, and the members share its memory.
func Members(raw json.RawMessage) (Object, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return nil, false
	}
	s := scanner{text: raw, at: 1}
	list := Object{}
	for s.space(); s.peek() != '}'; s.space() {
		if s.peek() == ',' {
			s.at++
			s.space()
		}
		from := s.at
		s.skip()
		name := string(unquoteName(raw[from:s.at]))
		s.space()
		s.at++ // colon
		s.space()
		from = s.at
		s.skip()
		list = append(list, Member{name, raw[from:s.at:s.at]})
	}
	return list, true
}

// Items returns the elements of raw, or false if it is no list. raw has been
// checked, and the elements share its memory.
func Items(raw json.RawMessage) ([]json.RawMessage, bool) {
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

// Object is the members of an object in their order. There are few of them
// where one is looked up.
type Object []Member

// Lookup returns the value of a member, if there is one.
func (o Object) Lookup(name string) (json.RawMessage, bool) {
	for i := range o {
		if o[i].Name == name {
			return o[i].Value, true
		}
	}
	return nil, false
}

// Get is lookup that gives nil for no member.
func (o Object) Get(name string) json.RawMessage {
	raw, _ := o.Lookup(name)
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

// unquoteName is unquote for the name of a member, in which half a surrogate pair,
// as Python writes it, becomes the three bytes that UTF-8 would have for it. They
// keep names apart and are escaped again when they are printed.
func unquoteName(quoted []byte) []byte {
	if !halfPair(quoted) {
		return unquote(quoted)
	}
	var name []byte
	inner := quoted[1 : len(quoted)-1]
	text := func(from, to int) {
		name = append(name, unquote(slices.Concat([]byte{'"'}, inner[from:to], []byte{'"'}))...)
	}
	done := 0
	for _, at := range escapes.FindAllIndex(inner, -1) {
		if e := inner[at[0]:at[1]]; isHalf(e) {
			text(done, at[0])
			r, _ := strconv.ParseUint(string(e[2:]), 16, 16)
			name = append(name, 0xe0|byte(r>>12), 0x80|byte(r>>6&0x3f), 0x80|byte(r&0x3f))
			done = at[1]
		}
	}
	text(done, len(inner))
	return name
}

// String returns the text of a string, or false if raw is not a string.
func String(raw json.RawMessage) (string, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return string(unquote(raw)), true
}

var errNotInteger = errors.New("not an integer")

// Int returns the integer that raw is, without a fraction or an exponent.
func Int(raw json.RawMessage) (int64, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, errNotInteger
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s is out of range", Show(raw))
	case err != nil:
		return 0, errNotInteger
	}
	return n, nil
}

// Clip shortens text from a document so that an error stays readable.
func Clip[T ~string | ~[]byte](text T) string {
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

// FieldName returns the name of a member for the path of an error.
func FieldName(name string) string {
	name = Clip(name)
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(` ".[]`, r) }) {
		return strconv.Quote(name)
	}
	return name
}

// Show returns text from a document for an error: one line, not long.
func Show(raw json.RawMessage) string {
	return strings.Join(strings.Fields(Clip(string(raw))), " ")
}

// Join returns the text of an object.
func Join(list []Member) json.RawMessage {
	dst := []byte{'{'}
	for i, m := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dtype.AppendString(dst, m.Name), ':')
		dst = append(dst, m.Value...)
	}
	return append(dst, '}')
}

// OrNull returns raw, or null if it is empty.
func OrNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// AppendInts appends numbers with commas between them.
func AppendInts[T int | int64](dst []byte, list []T) []byte {
	for i, n := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(n), 10)
	}
	return dst
}
