package codecs

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/codecs/internal/value"
)

// Config is the source that a codec is parsed from.
type Config struct {
	// Name is the name or id in the metadata.
	Name string
	// V2 means that the codec is in v2 metadata.
	V2 bool
	// Raw is the configuration: the object in "configuration" of v3, nil without
	// one; the whole object with its "id" of v2.
	Raw json.RawMessage
	// Registry parses codecs inside the configuration.
	Registry *Registry

	depth int
}

// Fields returns the members of the configuration for reading.
func (c Config) Fields() *Fields {
	f := &Fields{v2: c.V2, used: make([]string, 0, 8)}
	if c.V2 {
		f.used = append(f.used, "id")
	}
	if len(c.Raw) == 0 {
		return f
	}
	if err := json.Unmarshal(c.Raw, &f.members); err != nil || f.members == nil {
		f.Fail("", "configuration is not an object")
	}
	return f
}

// Fields reads the members of a configuration object one by one. The first error
// is kept and returned by Err; after an error the readers return the results for
// a missing member. Not safe for concurrent use.
type Fields struct {
	v2      bool
	members map[string]json.RawMessage
	used    []string
	err     error
}

// Err returns the first error. In v3, where a reader must understand all
// members, a member that was not read is an error; in v2 it is ignored, as by
// other readers.
func (f *Fields) Err() error {
	if f.err != nil || f.v2 {
		return f.err
	}
	var unknown []string
	for name, raw := range f.members {
		if !slices.Contains(f.used, name) && !optional(raw) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	f.Fail(unknown[0], "unknown member")
	return f.err
}

// optional reports whether raw is an object with "must_understand": false.
func optional(raw json.RawMessage) bool {
	var o struct {
		MustUnderstand *bool `json:"must_understand"`
	}
	return json.Unmarshal(raw, &o) == nil && o.MustUnderstand != nil && !*o.MustUnderstand
}

// Fail records an error about a member that was read.
func (f *Fields) Fail(field, format string, args ...any) {
	if f.err == nil {
		f.err = BadField(field, format, args...)
	}
}

// Raw returns the text of a member, or nil if it is missing. In v2 null means
// missing.
func (f *Fields) Raw(name string) json.RawMessage {
	if !slices.Contains(f.used, name) {
		f.used = append(f.used, name)
	}
	raw := f.members[name]
	if f.v2 && bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return nil
	}
	return raw
}

// Require makes it an error that one of the members is missing.
func (f *Fields) Require(names ...string) {
	for _, name := range names {
		if f.Raw(name) == nil {
			f.Fail(name, "missing")
		}
	}
}

// decode unmarshals a member into v and reports whether it was there.
func (f *Fields) decode(name, want string, v any) bool {
	raw := f.Raw(name)
	if raw == nil || f.err != nil {
		return false
	}
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) || json.Unmarshal(raw, v) != nil {
		f.Fail(name, "%s is not %s", value.Clip(raw), want)
		return false
	}
	return true
}

// Int returns an integer member between lo and hi, or def if it is missing.
func (f *Fields) Int(name string, def, lo, hi int64) int64 {
	var n int64
	if !f.decode(name, "an integer", &n) {
		return def
	}
	if n < lo || n > hi {
		f.Fail(name, "%d is not in %d to %d", n, lo, hi)
		return def
	}
	return n
}

// Float returns a number member, or def if it is missing.
func (f *Fields) Float(name string, def float64) float64 {
	var n float64
	if !f.decode(name, "a number", &n) {
		return def
	}
	return n
}

// Bool returns a boolean member, or def if it is missing.
func (f *Fields) Bool(name string, def bool) bool {
	var b bool
	if !f.decode(name, "true or false", &b) {
		return def
	}
	return b
}

// String returns a string member, or def if it is missing.
func (f *Fields) String(name, def string) string {
	var s string
	if !f.decode(name, "a string", &s) {
		return def
	}
	return s
}

// Enum returns a string member that is one of values, or def if it is missing.
func (f *Fields) Enum(name, def string, values ...string) string {
	s := f.String(name, def)
	if f.err == nil && s != def && !slices.Contains(values, s) {
		f.Fail(name, "%q is not one of %s", s, strings.Join(values, ", "))
		return def
	}
	return s
}

// Ints returns a member that is a list of integers, nil if it is missing.
func (f *Fields) Ints(name string) []int {
	var n []int
	if !f.decode(name, "a list of integers", &n) {
		return nil
	}
	return n
}

// Strings returns a member that is a list of strings, nil if it is missing.
func (f *Fields) Strings(name string) []string {
	var s []string
	if !f.decode(name, "a list of strings", &s) {
		return nil
	}
	return s
}

// Given prints the named members that the configuration has, as they stand
// there, for [Codec.Config]. Unlike Raw it keeps the null of v2.
func (f *Fields) Given(names ...string) json.RawMessage {
	var members []any
	for _, name := range names {
		if raw, ok := f.members[name]; ok {
			f.Raw(name)
			members = append(members, name, raw)
		}
	}
	return Object(members...)
}

// Object prints a configuration from names and values in turn. A value that
// cannot be printed is a bug.
func Object(members ...any) json.RawMessage {
	b := []byte{'{'}
	for i := 0; i < len(members); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSON(b, members[i].(string))
		b = append(b, ':')
		b = appendJSON(b, members[i+1])
	}
	return append(b, '}')
}

// appendJSON appends v without escapes for web pages, so that "<i4" stays
// readable.
func appendJSON(b []byte, v any) []byte {
	if raw, ok := v.(json.RawMessage); ok {
		return append(b, raw...)
	}
	buf := bytes.NewBuffer(b)
	e := json.NewEncoder(buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // a bug, see Object
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// joinJSON prints a list.
func joinJSON(items []json.RawMessage) json.RawMessage {
	b := []byte{'['}
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	return append(b, ']')
}
