package refs

import (
	"bytes"
	"encoding/json"

	"github.com/zarrdb/zarrdb/refs/jinja"
)

// renderer renders the URLs of a set of version 1. The zero renderer has no
// templates.
type renderer struct {
	scope jinja.Scope
	plain map[string]string // templates without markup, which are constants; nil if the set has no templates
	known map[string]string // URLs as they stand in the set -> rendered
	buf   []byte
}

// parseTemplates reads the object "templates". As in fsspec, a text with
// markup is a function, to be called with names of its own.
func parseTemplates(raw []byte) (*renderer, error) {
	var texts map[string]json.RawMessage
	if err := json.Unmarshal(raw, &texts); err != nil || texts == nil {
		return nil, invalid(`refs: "templates" is not an object`)
	}
	r := &renderer{plain: make(map[string]string, len(texts))}
	for name, raw := range texts {
		var text *string
		if err := json.Unmarshal(raw, &text); err != nil || text == nil {
			return nil, invalid("refs: template %s is not a string", quote(name))
		}
		var err error
		if jinja.Markup(*text) {
			err = r.scope.Func(name, *text)
		} else {
			r.plain[name] = *text
			err = r.scope.Const(name, jinja.Str(*text))
		}
		if err != nil {
			return nil, invalidBecause(err, "refs: template %s", quote(name))
		}
	}
	return r, nil
}

// maxKnown bounds the rendered URLs that are kept.
const maxKnown = 4096

// url renders a URL.
func (r *renderer) url(raw []byte, urls *urlTable) (string, error) {
	if buf, ok := r.simple(r.buf[:0], raw); ok {
		r.buf = buf
		return urls.string(buf), nil
	}
	if s, ok := r.known[string(raw)]; ok {
		return s, nil
	}
	source := string(raw)
	t, err := r.scope.Compile(source)
	if err != nil {
		return "", &invalidError{"", err}
	}
	if r.buf, err = t.Append(r.buf[:0], nil); err != nil {
		return "", invalidBecause(err, "URL %s", quoteURL(source))
	}
	if r.known == nil || len(r.known) >= maxKnown {
		r.known = make(map[string]string, 64)
	}
	s := urls.string(r.buf)
	r.known[source] = s
	return s, nil
}

// simple renders the markup of nearly all sets: names of plain templates in
// double braces. It returns false for other markup, which the template language
// renders.
func (r *renderer) simple(dst, raw []byte) ([]byte, bool) {
	if bytes.ContainsAny(raw, "\r\n") || bytes.Contains(raw, []byte("{%")) || bytes.Contains(raw, []byte("{#")) {
		return dst, false
	}
	for {
		i := bytes.Index(raw, []byte("{{"))
		if i < 0 {
			return append(dst, raw...), true
		}
		dst, raw = append(dst, raw[:i]...), raw[i+2:]
		if i = bytes.Index(raw, []byte("}}")); i < 0 {
			return dst, false
		}
		text, ok := r.plain[string(bytes.Trim(raw[:i], " "))]
		if !ok || !identifier(bytes.Trim(raw[:i], " ")) {
			return dst, false
		}
		if dst = append(dst, text...); len(dst) > jinja.MaxOutput {
			return dst, false
		}
		raw = raw[i+2:]
	}
}

// identifier reports whether the template language reads b as a name. Names
// beyond ASCII are left to it.
func identifier(b []byte) bool {
	for i, x := range b {
		letter := x == '_' || x|0x20 >= 'a' && x|0x20 <= 'z'
		if !letter && (i == 0 || x < '0' || x > '9') {
			return false
		}
	}
	return len(b) > 0 && !jinja.Reserved(string(b))
}
