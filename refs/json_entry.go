package refs

import (
	"bytes"
	"encoding/base64"
	"slices"
)

// entries yields the entries of the current object, to its end.
func (r *jsonReader) entries() error {
	first := true
	for {
		c := cursor{b: r.s.buf[r.s.pos:r.s.end], eof: r.s.eof}
		for {
			from := c.i
			e, end, err := r.entry(&c, first)
			if err == errMore {
				r.s.pos += from
				break
			}
			if err != nil {
				return r.s.explain(err)
			}
			if end {
				r.s.pos += c.i
				return nil
			}
			first = false
			if hasNUL(e.Key) {
				r.o.Skipped(e.Key)
				continue
			}
			if !r.yield(e, nil) {
				r.stopped = true
				return nil
			}
		}
		if err := r.s.fill(); err != nil {
			return err
		}
	}
}

// entry reads `"key": value`, with the comma before it, or the end of the
// object.
func (r *jsonReader) entry(c *cursor, first bool) (e Entry, end bool, err error) {
	x, err := c.peek()
	if err != nil {
		return e, false, err
	}
	if x == '}' {
		c.i++
		return e, true, nil
	}
	if !first {
		if err := c.expect(','); err != nil {
			return e, false, err
		}
	}
	key, err := c.str()
	if err != nil {
		return e, false, err
	}
	if len(key) > 1 && key[len(key)-1] == '/' {
		key = append(slices.Clip(key), '0')
	}
	e.Key = r.keys.Text(key)
	if err := c.expect(':'); err != nil {
		return e, false, err
	}
	if x, err = c.peek(); err != nil {
		return e, false, err
	}
	switch x {
	case '[':
		err = r.list(c, &e.Reference)
	case '"':
		err = text(c, &e.Reference)
	case '{':
		e.Form = FormText
		e.Data, err = ujsonStyle.dump(nil, c, 0)
	default:
		if err = c.skip(0); err == nil {
			err = invalid("a value is a string, an object or a list")
		}
	}
	if err == nil {
		if !hasNUL(e.Key) {
			err = checkKey(e.Key)
		}
		if !r.v1 && e.Key == "version" {
			err = invalid("a set of version 1 that names its version behind other keys")
		}
	}
	if err != nil && err != errMore {
		if _, ok := err.(*syntaxError); !ok {
			err = keyError(e.Key, err)
		}
	}
	return e, false, err
}

const base64Prefix = "base64:"

// text reads a value that is a string.
func text(c *cursor, ref *Reference) error {
	s, err := c.str()
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(s, []byte(base64Prefix)) {
		ref.Form, ref.Data = FormText, append(make([]byte, 0, len(s)), s...)
		return nil
	}
	ref.Form = FormBase64
	ref.Data, err = decodeBase64(s[len(base64Prefix):])
	return err
}

func decodeBase64(s []byte) ([]byte, error) {
	b := make([]byte, base64.StdEncoding.DecodedLen(len(s)))
	n, err := base64.StdEncoding.Decode(b, s)
	if err != nil {
		return nil, invalidBecause(err, "bad base64")
	}
	return b[:n], nil
}

// list reads [url] or [url, offset, length].
func (r *jsonReader) list(c *cursor, ref *Reference) error {
	c.i++
	x, err := c.peek()
	if err != nil {
		return err
	}
	if x != '"' {
		if x != ']' {
			if err = c.skip(0); err == nil {
				err = invalid("the URL is not a string")
			}
			return err
		}
		return invalid("a reference has 1 or 3 elements, not 0")
	}
	if len(r.lastText) > 0 && bytes.HasPrefix(c.b[c.i:], r.lastText) {
		c.i += len(r.lastText)
		ref.URL = r.lastURL
	} else {
		from := c.i
		url, err := c.str()
		if err != nil {
			return err
		}
		if ref.URL, err = r.url(url); err != nil {
			return err
		}
		r.lastText, r.lastURL = append(r.lastText[:0], c.b[from:c.i]...), ref.URL
	}
	if x, err = c.peek(); err != nil {
		return err
	}
	if x == ']' {
		c.i++
		ref.Length = WholeFile
		return nil
	}
	if err := c.expect(','); err != nil {
		return err
	}
	if ref.Offset, err = number(c, "offset"); err != nil {
		return err
	}
	if x, err = c.peek(); err != nil {
		return err
	}
	if x == ']' {
		return invalid("a reference has 1 or 3 elements, not 2")
	}
	if err := c.expect(','); err != nil {
		return err
	}
	if ref.Length, err = number(c, "length"); err != nil {
		return err
	}
	if x, err = c.peek(); err == nil && x == ',' {
		return invalid("a reference has 1 or 3 elements, not more")
	}
	if err != nil {
		return err
	}
	return c.expect(']')
}

func number(c *cursor, what string) (int64, error) {
	v, err := c.integer()
	if err == errNoInteger {
		return 0, invalidBecause(err, "%s", what)
	}
	if err == nil && v < 0 {
		err = invalid("negative %s %d", what, v)
	}
	return v, err
}

// url returns the rendered URL as a string that may be shared.
func (r *jsonReader) url(raw []byte) (string, error) {
	if len(raw) == 0 {
		return "", invalid("the URL is empty")
	}
	if !r.v1 || !bytes.Contains(raw, []byte("{{")) {
		return r.urls.string(raw), nil
	}
	if r.templates == nil && !r.seen["templates"] {
		// They may follow further on.
		if err := r.ahead(); err != nil {
			return "", err
		}
	}
	if r.templates == nil || r.templates.plain == nil {
		return r.urls.string(raw), nil // fsspec too renders only the URLs of sets that have templates
	}
	url, err := r.templates.url(raw, &r.urls)
	if err == nil && url == "" {
		err = invalid("the URL is empty")
	}
	return url, err
}
