package zarr

import (
	"context"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/lru"
)

// Documents keeps parsed metadata documents, so that a document is parsed once for all
// nodes that have it, and once however often a node is opened:
//
//	bytes of zarr.json ──▶ kept? ──▶ Meta and bound codecs, shared by arrays
//	                        │ no
//	                        └──▶ parse, bind, keep
//
// Safe for concurrent use.
type Documents struct {
	c *lru.Cache[documentKey, *parsed]
}

// documentKey is a document and the options on which its meaning depends.
type documentKey struct {
	doc          string
	registry     *codecs.Registry
	limit        int64
	consolidated bool
}

// parsed is a document that was parsed. It does not change.
type parsed struct {
	meta *Meta
	lens []int      // as in an arrayState
	form *chunkForm // nil for a group, and for an array whose chunks are not all alike
	size int64
}

// maxKept bounds the documents that are kept: attributes may be long.
const maxKept = 16 << 10

// NewDocuments returns a cache that takes about so many bytes.
func NewDocuments(most int64) *Documents {
	return &Documents{lru.New[documentKey](most, func(p *parsed) int64 { return p.size })}
}

// parse parses a document and binds the codecs of an array, or returns the kept result.
func (d *Documents) parse(doc []byte, o *OpenOptions, parse func() (*Meta, error)) (*parsed, error) {
	read := func() (*parsed, error) {
		m, err := parse()
		if err != nil {
			return nil, err
		}
		p, err := bind(m, o.MaxChunkBytes)
		if err != nil {
			return nil, err
		}
		p.size = 8*int64(len(doc)) + 4<<10 // a guess: the parts of Meta and the codecs
		return p, nil
	}
	if d == nil || len(doc) > maxKept {
		return read()
	}
	return d.c.Get(context.Background(), documentKey{string(doc), o.Registry, o.MaxChunkBytes, o.Consolidated}, read)
}

// bind binds the codecs of an array.
func bind(m *Meta, limit int64) (p *parsed, err error) {
	p = &parsed{meta: m}
	if m.Array {
		p.lens = m.Grid.Regular()
	}
	if p.lens != nil {
		p.form, err = newForm(m, p.lens, limit)
	}
	return p, err
}
