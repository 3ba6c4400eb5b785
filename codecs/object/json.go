package object

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

func parseJSON2(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	f.Enum("encoding", "utf-8", "utf-8", "utf8", "UTF-8", "ascii", "us-ascii")
	config := f.Given("encoding", "skipkeys", "ensure_ascii", "check_circular", "allow_nan", "indent", "separators", "sort_keys", "strict")
	shape := c.Name != "json" // the list ends with it
	return codecs.NewCodec(config, func(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
		return bindObjects(in, shape, 2, func(o objects) codecs.Stage { return &jsonStage{o} })
	}), f.Err()
}

// jsonStage is numcodecs' "json2": any values as one JSON list, which ends with
// the data type and the shape of the array, and the older "json" without the
// shape.
type jsonStage struct{ objects }

func (s *jsonStage) Encode(dst, src []byte) ([]byte, error) {
	v, err := s.open(src)
	if err != nil {
		return dst, err
	}
	dst = scratch.Grow(dst, int64(len(src))+64)
	dst = append(dst, '[')
	for i := range s.n {
		dst = append(append(dst, v.At(i)...), ',')
	}
	dst = dtype.AppendString(dst, s.name)
	if s.shape {
		// One dimension, for every chunk: then elements have the order of the
		// list, even if the array has order F.
		dst = append(dst, ",["...)
		dst = append(strconv.AppendInt(dst, int64(s.n), 10), ']')
	}
	return append(dst, ']'), nil
}

func (s *jsonStage) Decode(dst, src []byte) ([]byte, error) {
	if !utf8.Valid(src) {
		return dst, codecs.Corruptf("json2", "the text is not UTF-8")
	}
	p, tail := jsonScanner{text: src}, s.tail()
	// No more items than there can be: each costs more memory than text.
	items, err := p.list(nil, max(s.n, 1024)+tail)
	if err == nil && p.skipBlanks() != len(src) {
		err = codecs.Corruptf("json2", "text behind the list")
	}
	if err != nil {
		return dst, err
	}
	if len(items) < tail {
		return dst, codecs.Corruptf("json2", "a list of %d items has no data type", len(items))
	}
	var stored []int
	if s.shape && json.Unmarshal(items[len(items)-1], &stored) != nil {
		return dst, codecs.Corruptf("json2", "no shape at the end")
	}
	items = items[:len(items)-tail]
	shape, ok := s.nesting(stored, len(items))
	if !ok {
		return dst, codecs.Corruptf("json2", "the shape is %v for %d elements", shape, s.n)
	}
	// Further dimensions are lists in the list.
	for d := 1; d < len(shape); d++ {
		inner := make([]json.RawMessage, 0, min(s.n, len(src)))
		for _, item := range items {
			q := jsonScanner{text: item}
			if inner, err = q.list(inner, max(s.n, 1024)); err != nil {
				return dst, err
			}
		}
		items = inner
	}
	return buildJSON(dst, "json2", items, s.n, s.max)
}

// buildJSON appends n elements.
func buildJSON(dst []byte, codec string, items []json.RawMessage, n int, limit int64) ([]byte, error) {
	if len(items) != n {
		return dst, codecs.Corruptf(codec, "%d elements in a chunk of %d", len(items), n)
	}
	w, err := dtype.NewBuilder(dst, n)
	if err != nil {
		return dst, err
	}
	for _, item := range items {
		if int64(w.Size()+len(item)) > limit {
			return dst, codecs.Corruptf(codec, "more than the %d bytes that there may be", limit)
		}
		if err := w.Append(item); err != nil {
			return dst, err
		}
	}
	return w.Finish()
}

// jsonScanner divides JSON text into its parts. NaN, Infinity and -Infinity
// count as numbers, since Python writes them.
type jsonScanner struct {
	text []byte
	pos  int
}

const maxJSONDepth = 1000

// skipBlanks skips white space and returns the position.
func (p *jsonScanner) skipBlanks() int {
	for p.pos < len(p.text) && (p.text[p.pos] == ' ' || p.text[p.pos] == '\n' || p.text[p.pos] == '\t' || p.text[p.pos] == '\r') {
		p.pos++
	}
	return p.pos
}

// next passes over white space and c, and reports whether c was there.
func (p *jsonScanner) next(c byte) bool {
	if p.skipBlanks() < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *jsonScanner) bad(what string) error {
	return codecs.Corruptf("json2", "%s at byte %d", what, p.pos)
}

// list appends the texts of the items of a list, so that there are at most
// limit.
func (p *jsonScanner) list(items []json.RawMessage, limit int) ([]json.RawMessage, error) {
	if p.skipBlanks() == len(p.text) || p.text[p.pos] != '[' {
		return items, p.bad("no list")
	}
	err := p.each('[', func() error {
		start := p.skipBlanks()
		if err := p.value(0); err != nil {
			return err
		}
		if len(items) == limit {
			return p.bad("more items than elements")
		}
		items = append(items, json.RawMessage(p.text[start:p.pos:p.pos]))
		return nil
	})
	return items, err
}

// value passes over a value.
func (p *jsonScanner) value(depth int) error {
	if depth > maxJSONDepth {
		return p.bad("nested too deep")
	}
	if p.skipBlanks() == len(p.text) {
		return p.bad("no value")
	}
	switch c := p.text[p.pos]; c {
	case '"':
		return p.string()
	case '[', '{':
		return p.members(c, depth)
	}
	for _, word := range []string{"null", "true", "false", "NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(p.text[p.pos:], []byte(word)) {
			p.pos += len(word)
			return nil
		}
	}
	return p.number()
}

// members passes over a list or object.
func (p *jsonScanner) members(open byte, depth int) error {
	return p.each(open, func() error {
		if open == '{' {
			if err := p.name(p.string); err != nil {
				return err
			}
		}
		return p.value(depth + 1)
	})
}

// each calls fn where each member of a list or object begins, to pass over it.
func (p *jsonScanner) each(open byte, fn func() error) error {
	p.next(open)
	end := open + 2 // ] and } in ASCII
	if p.next(end) {
		return nil
	}
	for {
		if err := fn(); err != nil {
			return err
		}
		if p.next(end) {
			return nil
		}
		if !p.next(',') {
			return p.bad("no ,")
		}
	}
}

// name passes over the name of a member with fn, and the colon.
func (p *jsonScanner) name(fn func() error) error {
	if p.skipBlanks() == len(p.text) || p.text[p.pos] != '"' {
		return p.bad("no name")
	}
	if err := fn(); err != nil {
		return err
	}
	if !p.next(':') {
		return p.bad("no :")
	}
	return nil
}

func (p *jsonScanner) string() error {
	start := p.pos
	for p.pos++; p.pos < len(p.text); p.pos++ {
		switch c := p.text[p.pos]; {
		case c == '\\':
			p.pos++
		case c == '"':
			p.pos++
			if !json.Valid(p.text[start:p.pos]) {
				return p.bad("a string that cannot be read")
			}
			return nil
		}
	}
	return p.bad("a string without an end")
}

func (p *jsonScanner) number() error {
	start := p.pos
	for p.pos < len(p.text) && bytes.IndexByte([]byte("+-.0123456789eE"), p.text[p.pos]) >= 0 {
		p.pos++
	}
	if !json.Valid(p.text[start:p.pos]) {
		return p.bad("no value")
	}
	return nil
}
