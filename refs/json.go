package refs

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/zarrdb/zarrdb/kv"
)

// ReadOptions bound what reading a set may take. nil and the zero value work.
type ReadOptions struct {
	// MaxValue is the longest value in a JSON set, in bytes of its text; also
	// that of all templates together and of all generators. Default 64 MiB.
	MaxValue int

	// MaxGenerated is how many references the generators ("gen") of a set may
	// stand for. A few bytes can ask for any number. Default 16 Mi.
	MaxGenerated int64

	// Partition bounds the memory for a partition file of a parquet set, in
	// bytes. Default 256 MiB.
	Partition int64

	window int // bytes that the window begins with; small ones are for tests
}

func (o *ReadOptions) withDefaults() ReadOptions {
	var out ReadOptions
	if o != nil {
		out = *o
	}
	if out.MaxValue <= 0 {
		out.MaxValue = 64 << 20
	}
	if out.MaxGenerated <= 0 {
		out.MaxGenerated = 1 << 24
	}
	if out.Partition <= 0 {
		out.Partition = 256 << 20
	}
	if out.window == 0 {
		out.window = windowSize
	}
	return out
}

// ReadJSON yields the entries of a JSON reference set of version 0 or 1
// (References specification, "Version 0", "Version 1"), plain or compressed
// with gzip or zstd, in the order of the text and those of "gen" last. A key
// may occur more than once: the last entry counts. The sequence ends after the
// first error.
//
// Memory is bounded whatever the size of the set: a window of some MiB, the
// templates, and the longest value. A set is read once, except where its first
// key is not "version", or where "templates" stands behind references that need
// them; then its beginning is read for these first.
//
// A key that ends in a slash, as VirtualiZarr writes that of the one chunk of an
// array of rank 0, gets the "0" that it lacks.
//
// What fsspec would pass over is an error: a reference that has neither one nor
// three elements, an offset that is no integer or negative, base64 that is
// none, templates and variables that are not defined, text that is not UTF-8.
func ReadJSON(ctx context.Context, v kv.Value, o *ReadOptions) iter.Seq2[Entry, error] {
	return readJSON(ctx, o, func() io.Reader { return &valueReader{ctx: ctx, v: v} }, true)
}

// ReadJSONFrom is [ReadJSON] for text that can be read only once. A set whose
// templates stand behind references that need them is [ErrLimit], and one that
// begins with "templates", "gen" or "refs" is taken to be of version 1.
func ReadJSONFrom(ctx context.Context, r io.Reader, o *ReadOptions) iter.Seq2[Entry, error] {
	return readJSON(ctx, o, func() io.Reader { return ctxReader{ctx, r} }, false)
}

func readJSON(ctx context.Context, o *ReadOptions, open func() io.Reader, again bool) iter.Seq2[Entry, error] {
	opts := o.withDefaults()
	return func(yield func(Entry, error) bool) {
		r := &jsonReader{ctx: ctx, o: opts, open: open, again: again, yield: yield}
		if err := r.read(); err != nil && !r.stopped {
			yield(Entry{}, err)
		}
	}
}

// jsonReader reads one set.
type jsonReader struct {
	ctx   context.Context
	o     ReadOptions
	open  func() io.Reader
	again bool // open may be called again
	s     *scanner

	yield   func(Entry, error) bool
	stopped bool

	v1        bool
	version   bool // it was seen
	seen      map[string]bool
	templates *renderer // nil until they are known
	gens      []generator

	keys arena
	urls urlTable
	// The URL before, as it stands in the text with its quotes, and rendered:
	// the references to a file mostly follow each other.
	lastText []byte
	lastURL  string
}

// text begins to read the set; done releases what that takes.
func (r *jsonReader) text() (s *scanner, done func(), err error) {
	in, done, err := decompressed(r.open())
	if err != nil {
		return nil, nil, err
	}
	s = newScanner(r.ctx, in, r.o.window, r.o.MaxValue)
	if err = s.fill(); err == nil {
		if bytes.HasPrefix(s.buf[:s.end], []byte("\ufeff")) {
			s.pos = 3
		}
		var x byte
		if x, err = s.peek(); err == nil && x != '{' {
			err = invalid("refs: the set is no JSON object")
		}
	}
	if err == nil {
		err = s.each(func(c *cursor) error { return c.expect('{') })
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return s, done, nil
}

func (r *jsonReader) read() error {
	var done func()
	var err error
	if r.s, done, err = r.text(); err != nil {
		return err
	}
	defer done()
	if err := r.decide(); err != nil {
		return err
	}
	if !r.v1 {
		if err := r.entries(); err != nil || r.stopped {
			return err
		}
		return r.s.trailing()
	}
	r.seen = map[string]bool{}
	if err := r.members(r.s, r.member); err != nil || r.stopped {
		return err
	}
	if err := r.s.trailing(); err != nil {
		return err
	}
	if !r.version {
		return invalid("refs: the set does not say its version")
	}
	return r.generate()
}

// decide looks at the first key and, where that does not tell the version, for
// a version further on.
func (r *jsonReader) decide() error {
	x, err := r.s.peek()
	if err != nil || x == '}' {
		return err
	}
	name := ""
	back := 0
	err = r.s.each(func(c *cursor) error {
		key, err := c.str()
		name, back = string(key), c.i
		return err
	})
	if err != nil {
		return err
	}
	r.s.pos -= back
	switch name {
	case "version":
		r.v1 = true
	case "templates", "gen", "refs":
		r.v1 = true
		if r.again {
			if err := r.ahead(); err != nil {
				return err
			}
			r.v1 = r.version
		}
	}
	return nil
}

// ahead reads the set for its version and templates only.
func (r *jsonReader) ahead() error {
	s, done, err := r.text()
	if err != nil {
		return err
	}
	defer done()
	err = r.members(s, func(s *scanner, name string) error {
		switch name {
		case "version":
			return r.readVersion(s)
		case "templates":
			return r.readTemplates(s)
		}
		return s.skipFast()
	})
	if err == nil && r.templates == nil {
		r.templates = &renderer{}
	}
	return err
}

// members calls fn at the value of each member of the object that s is in,
// until there are no more or the reader has stopped.
func (r *jsonReader) members(s *scanner, fn func(s *scanner, name string) error) error {
	for first := true; !r.stopped; first = false {
		name, end := "", false
		err := s.each(func(c *cursor) error {
			x, err := c.peek()
			if err != nil {
				return err
			}
			if end = x == '}'; end {
				c.i++
				return nil
			}
			if !first {
				if err := c.expect(','); err != nil {
					return err
				}
			}
			key, err := c.str()
			if err != nil {
				return err
			}
			name = string(key)
			return c.expect(':')
		})
		if err != nil || end {
			return err
		}
		if err := fn(s, name); err != nil {
			return err
		}
	}
	return nil
}

// member reads a member of a set of version 1.
func (r *jsonReader) member(s *scanner, name string) error {
	switch name {
	case "version", "templates", "gen", "refs":
		if r.seen[name] {
			return invalid("refs: the set has %q twice", name)
		}
		r.seen[name] = true
	}
	switch name {
	case "version":
		return r.readVersion(s)
	case "templates":
		if r.templates != nil { // read ahead
			return s.skipFast()
		}
		return r.readTemplates(s)
	case "gen":
		raw, err := s.raw()
		if err != nil {
			return err
		}
		r.gens, err = parseGenerators(raw)
		return err
	case "refs":
		if x, err := s.peek(); err != nil {
			return err
		} else if x != '{' {
			return invalid(`refs: "refs" is no object`)
		}
		if err := s.each(func(c *cursor) error { return c.expect('{') }); err != nil {
			return err
		}
		return r.entries()
	}
	return s.each(func(c *cursor) error { return c.skip(0) })
}

func (r *jsonReader) readVersion(s *scanner) error {
	var v int64
	var bad error
	err := s.each(func(c *cursor) error {
		v, bad = c.integer()
		if errors.Is(bad, errNoInteger) {
			return nil
		}
		return bad
	})
	switch {
	case err != nil:
		return err
	case bad != nil:
		return invalid("refs: the version of the set is no integer")
	case v != 1:
		return invalid("refs: version %d of reference sets is not known", v)
	}
	r.version = true
	return nil
}

func (r *jsonReader) readTemplates(s *scanner) error {
	raw, err := s.raw()
	if err != nil {
		return err
	}
	r.templates, err = parseTemplates(raw)
	return err
}

// entries yields what is in the object that the scanner is in, to its end.
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
	e.Key = r.keys.string(key)
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
		err = checkKey(e.Key)
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
				err = invalid("the URL is no string")
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
		// They may stand further on.
		if !r.again {
			return "", limit("templates behind the references that use them need a set that can be read twice")
		}
		if err := r.ahead(); err != nil {
			return "", err
		}
	}
	if r.templates == nil {
		r.templates = &renderer{}
	}
	url, err := r.templates.url(raw, &r.urls)
	if err == nil && url == "" {
		err = invalid("the URL is empty")
	}
	return url, err
}

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

// skipFast goes over a value of any length, of which it looks at brackets and
// strings only: whoever needs the value reads it properly.
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
			// Backslashes at the end are looked at again with what follows.
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

// backslashes counts those at the end of b.
func backslashes(b []byte) int {
	n := 0
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return n
}
