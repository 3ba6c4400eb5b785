package refs

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/refs/jinja"
)

// generator is an element of "gen": templates of a reference for each
// combination of the values of its dimensions.
type generator struct {
	key, url, offset, length string // sources; offset and length may be missing
	ranged                   bool
	dims                     []dimension
}

// dimension is a variable with its values: those listed, or start, start+step
// and so on, count times.
type dimension struct {
	name              string
	values            []jinja.Value
	start, step, size int64
}

// maxListed bounds how many values all dimensions of a set list together. Tests
// make it small.
var maxListed = 1 << 20

// parseGenerators reads the list "gen".
func parseGenerators(raw []byte) ([]generator, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, invalid(`refs: "gen" is not a list`)
	}
	out := make([]generator, len(list))
	listed := 0
	for i, raw := range list {
		if err := out[i].parse(raw, &listed); err != nil {
			return nil, wrapGen(i, err)
		}
	}
	return out, nil
}

func wrapGen(i int, err error) error {
	if errors.Is(err, ErrLimit) || errors.Is(err, ErrInvalid) {
		return &genError{i, err}
	}
	return err
}

// genError is an error with the number of its generator.
type genError struct {
	i   int
	err error
}

func (e *genError) Error() string {
	return "refs: gen[" + strconv.Itoa(e.i) + "]: " + strings.TrimPrefix(e.err.Error(), "refs: ")
}

func (e *genError) Unwrap() error { return e.err }

func (g *generator) parse(raw []byte, listed *int) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return invalid("it is not an object")
	}
	texts := []struct {
		name string
		dst  *string
	}{{"key", &g.key}, {"url", &g.url}, {"offset", &g.offset}, {"length", &g.length}}
	for _, t := range texts {
		raw, ok := fields[t.name]
		if !ok {
			if t.name == "key" || t.name == "url" {
				return invalid("%q is missing", t.name)
			}
			continue
		}
		// A number is its own template.
		if err := json.Unmarshal(raw, t.dst); err != nil {
			var n json.Number
			if json.Unmarshal(raw, &n) != nil || string(raw) == "null" {
				return invalid("%q is not a string", t.name)
			}
			*t.dst = n.String()
		}
	}
	_, offset := fields["offset"]
	_, length := fields["length"]
	if g.ranged = offset; offset != length {
		return invalid("offset and length need each other")
	}
	dims, ok := fields["dimensions"]
	if !ok {
		return invalid("dimensions are missing")
	}
	return g.parseDimensions(dims, listed)
}

// parseDimensions reads an object, in its order: the last dimension varies
// fastest.
func (g *generator) parseDimensions(raw []byte, listed *int) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return invalid("dimensions are no object")
	}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return &invalidError{"dimensions", err}
		}
		name, _ := t.(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return &invalidError{"dimensions", err}
		}
		d := dimension{name: name}
		if value[0] == '[' {
			err = d.parseList(value, listed)
		} else {
			err = d.parseRange(value)
		}
		if err != nil {
			return invalidOrLimit(err, "dimension "+quote(name))
		}
		g.dims = append(g.dims, d)
	}
	return nil
}

func invalidOrLimit(err error, what string) error {
	if errors.Is(err, ErrLimit) {
		return err
	}
	return invalidBecause(err, "%s", what)
}

func (d *dimension) parseList(raw []byte, listed *int) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		if *listed++; *listed > maxListed {
			return limit("more than %d values in dimensions", maxListed)
		}
		var v any
		if err := dec.Decode(&v); err != nil {
			return err
		}
		switch v := v.(type) {
		case string:
			d.values = append(d.values, jinja.Str(v))
		case json.Number:
			i, err := v.Int64()
			if err != nil {
				return invalid("value %s is not an integer of 64 bits", v)
			}
			d.values = append(d.values, jinja.Int(i))
		default:
			return invalid("a value is neither an integer nor a string")
		}
	}
	d.size = int64(len(d.values))
	return nil
}

func (d *dimension) parseRange(raw []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return invalid("it is neither a list nor an object")
	}
	get := func(name string, missing int64) (v int64, err error) {
		raw, ok := fields[name]
		if !ok {
			return missing, nil
		}
		if json.Unmarshal(raw, &v) != nil || string(raw) == "null" {
			err = invalid("%s is not an integer", name)
		}
		return v, err
	}
	if _, ok := fields["stop"]; !ok {
		return invalid("stop is missing")
	}
	start, err := get("start", 0)
	if err != nil {
		return err
	}
	stop, err := get("stop", 0)
	if err != nil {
		return err
	}
	step, err := get("step", 1)
	if err != nil {
		return err
	}
	if step == 0 {
		return invalid("step is 0")
	}
	d.start, d.step = start, step
	// The distance of two integers and their step fit into 64 bits unsigned.
	var distance, stride uint64
	if step > 0 && stop > start {
		distance, stride = uint64(stop)-uint64(start), uint64(step)
	} else if step < 0 && stop < start {
		distance, stride = uint64(start)-uint64(stop), -uint64(step)
	} else {
		return nil
	}
	n := (distance-1)/stride + 1
	if n > 1<<62 {
		n = 1 << 62
	}
	d.size = int64(n)
	return nil
}

func (d *dimension) at(i int64) jinja.Value {
	if d.values != nil {
		return d.values[i]
	}
	return jinja.Int(d.start + i*d.step)
}

// count returns the number of references of a generator, if it is at most most.
func (g *generator) count(most int64) (int64, bool) {
	n := int64(1)
	for _, d := range g.dims {
		if d.size == 0 {
			return 0, true
		}
	}
	for _, d := range g.dims {
		if d.size > most/n {
			return 0, false
		}
		n *= d.size
	}
	return n, n <= most
}

// generate yields the references of all generators. It counts all of them first.
func (r *jsonReader) generate() error {
	if r.templates == nil {
		r.templates = &renderer{}
	}
	left := r.o.MaxGenerated
	for i := range r.gens {
		n, ok := r.gens[i].count(left)
		if !ok {
			return wrapGen(i, limit("it generates more than %d references (MaxGenerated)", r.o.MaxGenerated))
		}
		left -= n
	}
	for i := range r.gens {
		if err := r.expand(&r.gens[i]); err != nil || r.stopped {
			return wrapGen(i, err)
		}
	}
	return nil
}

// expand yields the references of one generator.
func (r *jsonReader) expand(g *generator) error {
	scope := r.templates.scope.Clone()
	for _, d := range g.dims {
		if err := scope.Var(d.name); err != nil {
			return &invalidError{"", err}
		}
	}
	var key, url, offset, length *jinja.Template
	for _, t := range []struct {
		name, source string
		dst          **jinja.Template
	}{{"key", g.key, &key}, {"url", g.url, &url}, {"offset", g.offset, &offset}, {"length", g.length, &length}} {
		var err error
		if *t.dst, err = scope.Compile(t.source); err != nil {
			return invalidBecause(err, "%s", t.name)
		}
	}
	n, _ := g.count(r.o.MaxGenerated)
	index, vars := make([]int64, len(g.dims)), make([]jinja.Value, len(g.dims))
	for d := range vars {
		if n > 0 {
			vars[d] = g.dims[d].at(0)
		}
	}
	var buf []byte
	for i := range n {
		if i%4096 == 0 {
			if err := r.ctx.Err(); err != nil {
				return err
			}
		}
		var e Entry
		var err error
		if buf, err = key.Append(buf[:0], vars); err != nil {
			return invalidBecause(err, "key")
		}
		e.Key = r.keys.Text(buf)
		if buf, err = url.Append(buf[:0], vars); err != nil {
			return keyError(e.Key, invalidBecause(err, "URL"))
		}
		e.URL, e.Length = r.urls.string(buf), WholeFile
		if g.ranged {
			if e.Offset, buf, err = renderInt(buf, offset, vars, "offset"); err == nil {
				e.Length, buf, err = renderInt(buf, length, vars, "length")
			}
		}
		if err == nil && e.URL == "" {
			err = invalid("the URL is empty")
		}
		if err == nil {
			err = checkKey(e.Key)
		}
		if err != nil {
			return keyError(e.Key, err)
		}
		if !r.yield(e, nil) {
			r.stopped = true
			return nil
		}
		for d := len(index) - 1; d >= 0; d-- {
			if index[d]++; index[d] == g.dims[d].size {
				index[d] = 0
			}
			vars[d] = g.dims[d].at(index[d])
			if index[d] > 0 {
				break
			}
		}
	}
	return nil
}

func renderInt(buf []byte, t *jinja.Template, vars []jinja.Value, what string) (int64, []byte, error) {
	buf, err := t.Append(buf[:0], vars)
	if err != nil {
		return 0, buf, invalidBecause(err, "%s", what)
	}
	v, ok, err := jinja.ParseInt(string(buf))
	switch {
	case err != nil:
		err = invalidBecause(err, "%s", what)
	case !ok:
		err = invalid("%s %s is not an integer", what, quote(string(buf)))
	case v < 0:
		err = invalid("negative %s %d", what, v)
	}
	return v, buf, err
}
