package codecs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/codecs/internal/value"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// maxDepth bounds the nesting of shards.
const maxDepth = 16

// Chain is a parsed list of codecs in encoding order. It is a value, nothing
// in it changes after parsing, and it is safe for concurrent use. The zero
// Chain cannot be bound.
type Chain struct {
	links []link
	// v2 is the source of a v2 chain.
	v2 *V2
	// member is the metadata member that held the list.
	member string
}

// link is one codec of a chain with where it came from.
type link struct {
	codec Codec // nil: not known, and need not be understood
	entry *Entry
	// list, index and name are the position of the codec; index is -1 outside a
	// list, and list is "" for implicit codecs of v2.
	list  string
	index int
	name  string
	raw   json.RawMessage
}

// fail adds the position of the codec to err.
func (l *link) fail(err error) error {
	var e *ConfigError
	if errors.As(err, &e) && e.List == "" {
		at := *e
		at.List, at.Index, at.Codec = l.list, l.index, l.name
		return &at
	}
	return &ConfigError{List: l.list, Index: l.index, Codec: l.name, Err: err}
}

// ParseV3 parses the "codecs" member of v3 metadata: a list of objects or
// short-hand names in the order of encoding. An unknown codec with
// "must_understand": false is kept and printed, and otherwise ignored.
func (r *Registry) ParseV3(list json.RawMessage) (Chain, error) {
	if c, ok := r.lookup(list); ok {
		return c, nil
	}
	c, err := r.parseV3(list, "codecs", 0)
	if err == nil {
		r.remember(list, c)
	}
	return c, err
}

// ParseInner parses a list of codecs that is a member of a codec's
// configuration, as in shards.
func (c Config) ParseInner(list json.RawMessage, member string) (Chain, error) {
	return c.Registry.parseV3(list, member, c.depth+1)
}

// parseInnerBytes is ParseInner for a list of bytes-to-bytes codecs alone, all of
// which must be known.
func (c Config) parseInnerBytes(list json.RawMessage, member string) (Chain, error) {
	chain, err := c.Registry.parseList(list, member, c.depth+1)
	if err != nil {
		return Chain{}, err
	}
	for i := range chain.links {
		l := &chain.links[i]
		if l.codec == nil {
			return Chain{}, l.fail(unknown{l.name})
		}
		if l.entry.Kind != BytesToBytes {
			return Chain{}, l.fail(fmt.Errorf("an %v codec among %v codecs", l.entry.Kind, BytesToBytes))
		}
	}
	return chain, nil
}

func (r *Registry) parseV3(list json.RawMessage, member string, depth int) (Chain, error) {
	c, err := r.parseList(list, member, depth)
	if err != nil {
		return Chain{}, err
	}
	return c, c.checkOrder()
}

// parseList parses the codecs and leaves it to the caller which may follow which.
func (r *Registry) parseList(list json.RawMessage, member string, depth int) (Chain, error) {
	whole := link{list: member, index: -1}
	if depth > maxDepth {
		return Chain{}, whole.fail(fmt.Errorf("nested more than %d deep", maxDepth))
	}
	var items []json.RawMessage
	if err := json.Unmarshal(list, &items); err != nil || items == nil {
		return Chain{}, whole.fail(errors.New("not a list"))
	}
	c := Chain{member: member, links: make([]link, len(items))}
	for i, item := range items {
		l := link{list: member, index: i, raw: compact(item)}
		if err := l.parseV3(r, depth); err != nil {
			return Chain{}, l.fail(err)
		}
		c.links[i] = l
	}
	return c, nil
}

// parseV3 parses l.raw.
func (l *link) parseV3(r *Registry, depth int) error {
	var config json.RawMessage
	mustUnderstand := true
	if len(l.raw) > 0 && l.raw[0] == '"' {
		if err := json.Unmarshal(l.raw, &l.name); err != nil {
			return errors.New("not a string")
		}
	} else {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(l.raw, &members); err != nil || members == nil {
			return errors.New("neither an object nor a name")
		}
		name := members["name"]
		if err := json.Unmarshal(name, &l.name); err != nil || name[0] != '"' {
			return errors.New("no name")
		}
		config = members["configuration"]
		if config != nil && config[0] != '{' {
			return errors.New("configuration is not an object")
		}
		if raw, ok := members["must_understand"]; ok {
			if err := json.Unmarshal(raw, &mustUnderstand); err != nil || string(raw) == "null" {
				return errors.New("must_understand is neither true nor false")
			}
		}
		for name, raw := range members {
			switch name {
			case "name", "configuration", "must_understand":
			default:
				if !optional(raw) {
					return fmt.Errorf("unknown member %q", name)
				}
			}
		}
	}
	l.entry = r.v3[l.name]
	if l.entry == nil {
		if !mustUnderstand {
			return nil
		}
		return unknown{l.name}
	}
	var err error
	l.codec, err = l.entry.Parse(Config{Name: l.name, Raw: config, Registry: r, depth: depth})
	return err
}

// checkOrder enforces array→array*, array→bytes, bytes→bytes*. In v2 filters may
// come in any order that numcodecs accepts; parsing makes sure that the chain
// ends in bytes.
func (c Chain) checkOrder() error {
	if c.v2 != nil {
		return nil
	}
	whole := link{list: c.member, index: -1}
	stored := -1
	for i := range c.links {
		l := &c.links[i]
		if l.codec == nil {
			continue
		}
		switch k := l.entry.Kind; {
		case k == ArrayToBytes && stored >= 0:
			return l.fail(fmt.Errorf("a second %v codec, after %q", k, c.links[stored].name))
		case k == ArrayToBytes:
			stored = i
		case k == ArrayToArray && stored >= 0:
			return l.fail(fmt.Errorf("an %v codec after the %v codec %q", k, ArrayToBytes, c.links[stored].name))
		case k == BytesToBytes && stored < 0:
			return l.fail(fmt.Errorf("a %v codec before an %v codec", k, ArrayToBytes))
		}
	}
	if stored < 0 {
		return whole.fail(fmt.Errorf("no %v codec", ArrayToBytes))
	}
	return nil
}

// V2 is the encoding of a chunk in v1 and v2 metadata.
type V2 struct {
	// Type is the data type with the byte order that is stored.
	Type dtype.Type
	// Order is "C" or "F".
	Order string
	// Rank is the number of dimensions.
	Rank int
	// Filters is a list of objects or null, Compressor an object or null; nil
	// counts as null.
	Filters, Compressor json.RawMessage
}

// ParseV2 makes one chain of order, filters and compressor. Before the first
// codec that needs bytes, or at the end, the elements become bytes in the byte
// order of their data type.
func (r *Registry) ParseV2(v V2) (Chain, error) {
	c := Chain{v2: &v, member: "filters"}
	switch v.Order {
	case "C":
	case "F":
		if v.Rank > 1 {
			order := make([]int, v.Rank)
			for i := range order {
				order[i] = v.Rank - 1 - i
			}
			c.links = append(c.links, implicit("transpose", r, &transpose{order: order}))
		}
	default:
		return Chain{}, &ConfigError{List: "order", Index: -1, Err: fmt.Errorf("%q is neither C nor F", v.Order)}
	}
	stored := false
	add := func(l link) error {
		if err := l.parseV2(r); err != nil {
			return l.fail(err)
		}
		if l.entry.Kind == BytesToBytes && !stored {
			stored = true
			c.links = append(c.links, implicit("bytes", r, &bytesCodec{typed: true}))
		}
		stored = stored || l.entry.Kind == ArrayToBytes
		c.links = append(c.links, l)
		return nil
	}
	if !value.Absent(v.Filters) {
		var items []json.RawMessage
		if err := json.Unmarshal(v.Filters, &items); err != nil {
			return Chain{}, &ConfigError{List: "filters", Index: -1, Err: errors.New("neither a list nor null")}
		}
		for i, item := range items {
			if err := add(link{list: "filters", index: i, raw: compact(item)}); err != nil {
				return Chain{}, err
			}
		}
	}
	if !value.Absent(v.Compressor) {
		if err := add(link{list: "compressor", index: -1, raw: compact(v.Compressor)}); err != nil {
			return Chain{}, err
		}
	}
	if !stored {
		c.links = append(c.links, implicit("bytes", r, &bytesCodec{typed: true}))
	}
	return c, nil
}

// implicit returns the link of a codec that v2 leaves unsaid.
func implicit(name string, r *Registry, c Codec) link {
	e := r.v3[name]
	if e == nil {
		// A registry without it can still read v2, where it has no name.
		e = &Entry{V3: []string{name}, Kind: ArrayToBytes, Lossless: true, Flat: true}
		if name == "transpose" {
			e.Kind, e.Flat = ArrayToArray, false
		}
	}
	return link{codec: c, entry: e, index: -1, name: name}
}

// parseV2 parses l.raw.
func (l *link) parseV2(r *Registry) error {
	var head struct {
		ID *string `json:"id"`
	}
	if err := json.Unmarshal(l.raw, &head); err != nil || l.raw[0] != '{' {
		return errors.New("not an object")
	}
	if head.ID == nil {
		return errors.New("no id")
	}
	l.name = *head.ID
	l.entry = r.v2[l.name]
	if l.entry == nil {
		return unknown{l.name}
	}
	var err error
	l.codec, err = l.entry.Parse(Config{Name: l.name, V2: true, Raw: l.raw, Registry: r})
	return err
}

// Codecs returns the codecs in encoding order, with those that v2 implies. It
// leaves out unknown codecs.
func (c Chain) Codecs() []Codec {
	var list []Codec
	for _, l := range c.links {
		if l.codec != nil {
			list = append(list, l.codec)
		}
	}
	return list
}

// Lossless reports whether decoding gives back every element that was encoded.
func (c Chain) Lossless() bool {
	return !slices.ContainsFunc(c.links, func(l link) bool {
		s, shards := l.codec.(*sharding)
		return l.codec == nil || !l.entry.Lossless || shards && !s.codecs.Lossless()
	})
}

// stacker is an optional interface of a codec whose configuration has a member for each
// dimension.
type stacker interface {
	// stacked returns the codec for arrays with another first dimension, of length 1.
	stacked(*Registry) (Codec, error)
}

// Stacked returns the chain that encodes arrays with another first dimension, of length 1,
// as the same bytes. The error names a codec that cannot.
func (c Chain) Stacked(r *Registry) (Chain, error) {
	out := c
	out.links = slices.Clone(c.links)
	for i := range out.links {
		l := &out.links[i]
		s, ok := l.codec.(stacker)
		switch {
		case ok:
			var err error
			if l.codec, err = s.stacked(r); err != nil {
				return Chain{}, err
			}
			l.raw = Object("name", l.name, "configuration", l.codec.Config())
		case l.codec == nil || l.entry.Kind != BytesToBytes && !l.entry.Flat:
			return Chain{}, fmt.Errorf("the codec %s encodes arrays of a fixed number of dimensions", l.name)
		}
	}
	if c.v2 != nil {
		v := *c.v2
		v.Rank++
		return r.ParseV2(v)
	}
	return out, nil
}

// IsV2 reports whether the chain was parsed from v1 or v2 metadata.
func (c Chain) IsV2() bool { return c.v2 != nil }

// compact returns raw without white space, in memory of its own.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return slices.Clone(raw)
	}
	return b.Bytes()
}
