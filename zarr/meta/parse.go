package meta

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
)

var errMissing = errors.New("missing")

// maxFills bounds the memory that the fill values of one document may take: a
// few bytes of metadata can ask for an element of megabytes, and consolidated
// metadata can do so thousands of times.
const maxFills = 64 << 20

// parser is the state of parsing one document.
type parser struct {
	doc   string
	reg   *codecs.Registry
	fills int // bytes of fill values so far
	// zeroChunks goes into [source].
	zeroChunks bool
}

// parsed makes m remember its documents.
func (p *parser) parsed(m *Meta, docs ...sourceDoc) *Meta {
	m.src = &source{docs: docs, model: m.Clone(), zeroChunks: p.zeroChunks}
	return m
}

// fail makes an error about a member. An error of the codecs names its member
// itself.
func (p *parser) fail(field string, err error) error {
	var c *codecs.ConfigError
	if errors.As(err, &c) && c.List != "" {
		field = ""
	}
	return &FieldError{Doc: p.doc, Field: field, Err: err}
}

// unreadable makes an error carry the metadata of an array as far as it was understood.
func unreadable(m *Meta, err error) error {
	var e *FieldError
	if errors.As(err, &e) {
		e.Array = m
	}
	return err
}

// read checks a document that is an object and returns a copy of its text with
// its members.
func (p *parser) read(doc []byte) (sourceDoc, jsontext.Object, error) {
	if err := jsontext.Check(doc); err != nil {
		return sourceDoc{}, nil, p.fail("", err)
	}
	d := sourceDoc{name: p.doc, text: bytes.Clone(doc)}
	obj, err := d.open()
	if err != nil {
		return d, nil, p.fail("", err)
	}
	return d, obj, nil
}

// open takes the document apart.
func (d *sourceDoc) open() (jsontext.Object, error) {
	obj, ok := jsontext.Members(d.text)
	if !ok {
		return nil, errors.New("not an object")
	}
	d.members = obj
	return obj, nil
}

// version checks the member zarr_format.
func (p *parser) version(obj jsontext.Object, want int64) error {
	raw, ok := obj.Lookup("zarr_format")
	if !ok {
		return p.fail("zarr_format", errMissing)
	}
	if n, err := jsontext.Int(raw); err != nil || n != want {
		return p.fail("zarr_format", fmt.Errorf("%s where %d is due", jsontext.Show(raw), want))
	}
	return nil
}

// need returns a member that must be there.
func (p *parser) need(obj jsontext.Object, name string) (json.RawMessage, error) {
	raw, ok := obj.Lookup(name)
	if !ok {
		return nil, p.fail(name, errMissing)
	}
	return raw, nil
}

// object reads a member that must be an object.
func (p *parser) object(obj jsontext.Object, name string) (jsontext.Object, error) {
	raw, err := p.need(obj, name)
	if err != nil {
		return nil, err
	}
	list, ok := jsontext.Members(raw)
	if !ok {
		return nil, p.fail(name, errors.New("not an object"))
	}
	return list, nil
}

// shape reads a list of lengths.
func (p *parser) shape(obj jsontext.Object) ([]int64, error) {
	raw, err := p.need(obj, "shape")
	if err != nil {
		return nil, err
	}
	list, ok := jsontext.Items(raw)
	if !ok {
		return nil, p.fail("shape", errors.New("not a list"))
	}
	if len(list) > MaxRank {
		return nil, p.fail("shape", fmt.Errorf("%d dimensions are over the limit of %d", len(list), MaxRank))
	}
	shape := make([]int64, len(list))
	for d, raw := range list {
		n, err := jsontext.Int(raw)
		if err == nil && n < 0 {
			err = fmt.Errorf("negative length %d", n)
		}
		if err != nil {
			return nil, p.fail(fmt.Sprintf("shape[%d]", d), err)
		}
		shape[d] = n
	}
	return shape, nil
}

// regular reads the lengths of the chunks of a regular grid. A length of 0 is
// allowed along a dimension that has no elements; it is taken as 1.
func (p *parser) regular(raw json.RawMessage, field string, shape []int64) (Grid, error) {
	if raw == nil {
		return nil, p.fail(field, errMissing)
	}
	list, ok := jsontext.Items(raw)
	if !ok {
		return nil, p.fail(field, errors.New("not a list"))
	}
	if len(list) != len(shape) {
		return nil, p.fail(field, fmt.Errorf("%d lengths for %d dimensions", len(list), len(shape)))
	}
	chunk := make([]int, len(list))
	for d, raw := range list {
		n, err := jsontext.Int(raw)
		switch {
		case err != nil:
		case n == 0 && shape[d] == 0:
			n, p.zeroChunks = 1, true
		case n < 1 || n > math.MaxInt:
			err = fmt.Errorf("chunk length %d", n)
		}
		if err != nil {
			return nil, p.fail(fmt.Sprintf("%s[%d]", field, d), err)
		}
		chunk[d] = int(n)
	}
	return RegularGrid(chunk), nil
}

// room counts the memory of a fill value before it is parsed.
func (p *parser) room(t dtype.Type) error {
	if t.Size() > maxFills-p.fills { // not a sum, which many refused nodes would make overflow
		return p.fail("fill_value", fmt.Errorf("fill values take over %d bytes", maxFills))
	}
	p.fills += t.Size()
	return nil
}

// check binds the codecs once for chunks of every length, so that their errors
// show now. grid is the name of the member with the chunk lengths.
func (p *parser) check(m *Meta, grid string) error {
	if err := covers(m.Grid, m.Shape); err != nil {
		return p.fail(grid, err)
	}
	return distinct(m.Grid, m.Shape, func(shape []int) error {
		if err := chunkBytes(m.Type, shape); err != nil {
			return p.fail(grid, err)
		}
		_, err := m.Codecs.Bind(codecs.Rep{Type: m.Type, Shape: shape, Fill: m.Fill})
		if err != nil {
			return p.fail("codecs", err)
		}
		return nil
	})
}

// attributes reads the attributes that are a member of the document.
func (p *parser) attributes(obj jsontext.Object) (Attributes, error) {
	raw, ok := obj.Lookup("attributes")
	if !ok {
		return Attributes{}, nil
	}
	list, ok := jsontext.Members(raw)
	if !ok {
		return Attributes{}, p.fail("attributes", errors.New("not an object"))
	}
	return Attributes{list}, nil
}

// attributed gives m, of v1 or v2, the attributes that are a document of their own,
// unless that is nil, and makes it remember its documents.
func (p *parser) attributed(m *Meta, d sourceDoc, name string, attrs []byte) error {
	docs := []sourceDoc{d}
	if attrs != nil {
		a, _, err := (&parser{doc: name}).read(attrs)
		if err != nil {
			return err
		}
		m.setAttributesV2(Attributes{a.members})
		docs = append(docs, a)
	}
	p.parsed(m, docs...)
	return nil
}
