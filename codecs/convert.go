package codecs

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/codecs/internal/value"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// V3Printer is an optional interface of a codec whose configuration in v3
// metadata differs from its Config.
type V3Printer interface {
	// ConfigV3 prints the configuration for v3; in is the codec's input when
	// encoding. The error wraps ErrNoForm if v3 cannot express the
	// configuration.
	ConfigV3(in Rep) (json.RawMessage, error)
}

// v2Printer is the same for v2 metadata, without the id.
type v2Printer interface {
	ConfigV2(in Rep) json.RawMessage
}

// PrintV3 prints the chain as the "codecs" member of v3 metadata. A chain parsed
// from v3 is printed as it was, except white space. A v2 chain is converted; the
// error is ErrNoForm if v3 has no equivalent.
func (c Chain) PrintV3() (json.RawMessage, error) {
	var list []json.RawMessage
	if c.v2 == nil {
		for _, l := range c.links {
			list = append(list, l.raw)
		}
		return joinJSON(list), nil
	}
	reps, err := c.reps()
	if err != nil {
		return nil, err
	}
	for i := range c.links {
		l := &c.links[i]
		if l.entry.Kind == ArrayToArray && !reps[i].Array {
			return nil, l.fail(noForm("an %v filter behind one that makes bytes", ArrayToArray))
		}
		if len(l.entry.V3) == 0 {
			return nil, l.fail(noForm("codec %q has no name in v3", l.name))
		}
		config := l.codec.Config()
		if p, ok := l.codec.(V3Printer); ok {
			if config, err = p.ConfigV3(reps[i]); err != nil {
				return nil, l.fail(err)
			}
		}
		if _, ok := l.codec.(*bytesCodec); ok {
			endian, err := storedOrder(reps[i].Type)
			if err != nil {
				return nil, l.fail(err)
			}
			config = (&bytesCodec{endian: endian}).Config()
		}
		if config == nil && strings.HasPrefix(l.entry.V3[0], "numcodecs.") {
			config = json.RawMessage("{}") // zarr-python 3.1 opens no codec without one
		}
		item := Object("name", l.entry.V3[0])
		if config != nil {
			item = Object("name", l.entry.V3[0], "configuration", config)
		}
		list = append(list, item)
	}
	return joinJSON(list), nil
}

// reps returns the input of each codec of a v2 chain, for a chunk of one
// element.
func (c Chain) reps() ([]Rep, error) {
	shape := make([]int, c.v2.Rank)
	for i := range shape {
		shape[i] = 1
	}
	cur, err := ArrayRep(c.v2.Type, shape, nil)
	if err != nil {
		return nil, err
	}
	reps := make([]Rep, len(c.links))
	for i := range c.links {
		reps[i] = cur
		if _, cur, err = c.links[i].codec.Bind(cur); err != nil {
			return nil, c.links[i].fail(err)
		}
	}
	return reps, nil
}

// storedOrder returns the byte order of the stored scalars of a v2 data type,
// None if they are bytes.
func storedOrder(t dtype.Type) (dtype.Order, error) {
	order := dtype.None
	for _, w := range t.Words() {
		o := w.Order
		if o == dtype.None {
			o = dtype.Little
		}
		if order != dtype.None && o != order {
			return dtype.None, noForm("fields of both byte orders")
		}
		order = o
	}
	return order, nil
}

// Endian returns the byte order of the bytes codec of a v3 chain, None without
// one. In v2 metadata the data type has this byte order.
func (c Chain) Endian() dtype.Order {
	for _, l := range c.links {
		if b, ok := l.codec.(*bytesCodec); ok {
			return b.endian
		}
	}
	return dtype.None
}

// V2 returns the members of v2 metadata for the same encoding. A chain parsed
// from v2 is returned as it was. A v3 chain is converted, without Type, which
// must have the byte order that [Chain.Endian] returns. The error is ErrNoForm
// if v2 has no equivalent.
func (c Chain) V2() (V2, error) {
	if c.v2 != nil {
		return *c.v2, nil
	}
	v := V2{Order: "C"}
	var perm []int
	var filters []json.RawMessage
	lead := true
	for i := range c.links {
		l := &c.links[i]
		if l.codec == nil {
			return V2{}, l.fail(noForm("codec %q is not known", l.name))
		}
		if t, ok := l.codec.(*transpose); ok && lead {
			if perm == nil {
				perm = t.order
			} else if len(perm) == len(t.order) {
				perm = permuted(t.order, perm)
			}
			continue
		}
		lead = false
		if _, ok := l.codec.(*bytesCodec); ok {
			continue
		}
		if l.entry.V2 == "" {
			return V2{}, l.fail(noForm("codec %q has no id in v2", l.name))
		}
		if l.entry.V2 == "crc32c" {
			return V2{}, l.fail(noForm("codec %q, which most readers of v2 do not have", l.name))
		}
		item, err := l.printV2()
		if err != nil {
			return V2{}, err
		}
		if i == len(c.links)-1 && l.entry.Kind == BytesToBytes {
			v.Compressor = item
		} else {
			filters = append(filters, item)
		}
	}
	v.Rank = len(perm)
	if !identityOrder(perm) {
		for i, axis := range perm {
			if axis != len(perm)-1-i {
				return V2{}, c.links[0].fail(noForm("axis order %v is neither C nor F", perm))
			}
		}
		v.Order = "F"
	}
	if filters != nil {
		v.Filters = joinJSON(filters)
	}
	return v, nil
}

// printV2 prints the codec as an object with an id.
func (l *link) printV2() (json.RawMessage, error) {
	config := l.codec.Config()
	if p, ok := l.codec.(v2Printer); ok {
		config = p.ConfigV2(Rep{})
	}
	item := Object("id", l.entry.V2)
	if len(config) <= len("{}") {
		return item, nil
	}
	if config[0] != '{' {
		return nil, l.fail(fmt.Errorf("configuration %s is not an object", value.Clip(config)))
	}
	return append(append(item[:len(item)-1], ','), config[1:]...), nil
}
