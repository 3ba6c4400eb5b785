package refs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs/parquet"
)

// ReadOptions bound the resources that reading a set uses. nil and the zero
// value work.
type ReadOptions struct {
	// MaxValue bounds a value in a JSON set, in bytes of its text, and also all
	// templates together and all generators together. Default 64 MiB.
	MaxValue int

	// MaxGenerated bounds the references that the generators ("gen") of a set
	// make: a few bytes can generate any number. Default 16 Mi.
	MaxGenerated int64

	// Partition bounds the memory for a partition file of a parquet set, in
	// bytes. Default 256 MiB.
	Partition int64

	// Skipped, if set, is called with each key that is left out with its value
	// because no store can have it: those with a NUL. It is called again whenever
	// the set is read again.
	Skipped func(key string)

	window int // initial bytes of the window; tests make it small
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
	if out.Skipped == nil {
		out.Skipped = func(string) {}
	}
	if out.window == 0 {
		out.window = windowSize
	}
	return out
}

// ReadJSON yields the entries of a JSON reference set of version 0 or 1
// (References specification, "Version 0", "Version 1"), plain or compressed with
// gzip or zstd, in the order of the text, with the entries of "gen" last. A key
// may occur more than once: the last entry is used. The sequence ends after the
// first error.
//
// Memory does not grow with the size of the set: it holds a window of some MiB,
// the templates, and the longest value. A set is read once, unless its first key
// is not "version", or "templates" comes after references that need them; then
// its beginning is first read for these.
//
// A key that ends in a slash, as VirtualiZarr writes it for the chunk of an
// array of rank 0, gets a "0" appended.
//
// Some input that fsspec ignores is an error: a reference that has neither one
// nor three elements, an offset that is no integer or negative, invalid base64,
// undefined templates and variables, text that is not UTF-8.
func ReadJSON(ctx context.Context, v kv.Value, o *ReadOptions) iter.Seq2[Entry, error] {
	opts := o.withDefaults()
	return func(yield func(Entry, error) bool) {
		r := &jsonReader{ctx: ctx, o: opts, v: v, yield: yield}
		if err := r.read(); err != nil && !r.stopped {
			yield(Entry{}, err)
		}
	}
}

// jsonReader reads one set.
type jsonReader struct {
	ctx context.Context
	o   ReadOptions
	v   kv.Value
	s   *scanner

	yield   func(Entry, error) bool
	stopped bool

	v1        bool
	version   bool // the key was read
	seen      map[string]bool
	templates *renderer // nil until they are known
	gens      []generator

	keys parquet.Arena
	urls urlTable
	// The previous URL, as quoted in the text and rendered: references to one
	// file mostly follow each other.
	lastText []byte
	lastURL  string
}

// text begins to read the set; done releases its resources.
func (r *jsonReader) text() (s *scanner, done func(), err error) {
	in, done, err := decompressed(io.NewSectionReader(kv.ReaderAt(r.ctx, r.v), 0, r.v.Size()))
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
			err = invalid("refs: the set is not a JSON object")
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

// decide finds the version from the first key, or else searches further on for
// the key "version".
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
		if err := r.ahead(); err != nil {
			return err
		}
		r.v1 = r.version
	}
	return nil
}

// ahead reads only the version and the templates of the set.
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
			return invalid(`refs: "refs" is not an object`)
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
		return invalid("refs: the version of the set is not an integer")
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
