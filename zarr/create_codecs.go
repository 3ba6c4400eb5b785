package zarr

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
)

// setCodecs parses the codecs of the spec or chooses some.
func (s *Spec) setCodecs(m *Meta, chunks []int64, reg *codecs.Registry) error {
	var err error
	if m.Version == V3 {
		list := spellOut(s.Codecs)
		if list == nil {
			list = defaultCodecs(m.Type)
		}
		if s.Shards != nil {
			list = shardCodecs(chunks, list)
		}
		m.Codecs, err = reg.ParseV3(list)
		return err
	}
	if s.Shards != nil {
		return fmt.Errorf("shards: %w", ErrNoForm)
	}
	given, err := s.codecsV2()
	if err != nil {
		return err
	}
	v2 := codecs.V2{Type: m.Type, Order: given.Order, Rank: len(m.Shape), Filters: given.Filters, Compressor: given.Compressor}
	if s.Codecs == nil && m.Version == V1 {
		v2.Compressor = json.RawMessage(`{"id":"blosc","cname":"lz4","clevel":5,"shuffle":1}`)
	}
	if unordered(m.Type) {
		v2.Type = m.Type.WithOrder(dtype.Little)
		m.Type = v2.Type
	}
	if len(v2.Filters) == 0 {
		if v2.Filters, err = objectFilter(m.Type); err != nil {
			return err
		}
	}
	m.Codecs, err = reg.ParseV2(v2)
	return err
}

// spellOut writes short-hand names in a list of codecs, and in shards in it, as
// objects with a configuration: the specification allows both, but zarr-python
// 3.1 knows no names alone, and of most codecs no objects without a
// configuration. Anything but a list of codecs stays as it is: the parser
// reports the error.
func spellOut(list json.RawMessage) json.RawMessage {
	if !json.Valid(list) {
		return list
	}
	codecs, ok := jsontext.Items(list)
	if !ok {
		return list
	}
	out := []byte{'['}
	for i, c := range codecs {
		if _, short := jsontext.String(c); short {
			c = jsontext.Join([]jsontext.Member{{Name: "name", Value: c}})
		}
		if obj, ok := jsontext.Members(c); ok {
			c = jsontext.Join(spellOutMembers(obj))
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, c...)
	}
	return append(out, ']')
}

// spellOutMembers is spellOut for the members of one codec.
func spellOutMembers(obj jsontext.Object) []jsontext.Member {
	config, ok := obj.Lookup("configuration")
	if !ok {
		return append(slices.Clip(obj), jsontext.Member{Name: "configuration", Value: json.RawMessage("{}")})
	}
	inner, ok := jsontext.Members(config)
	if name, _ := jsontext.String(obj.Get("name")); !ok || name != "sharding_indexed" {
		return obj
	}
	inner, out := slices.Clone(inner), slices.Clone(obj)
	for i, m := range inner {
		if m.Name == "codecs" || m.Name == "index_codecs" {
			inner[i].Value = spellOut(m.Value)
		}
	}
	for i, m := range out {
		if m.Name == "configuration" {
			out[i].Value = jsontext.Join(inner)
		}
	}
	return out
}

// codecsV2 are the codecs of the spec where v2 spells them.
func (s *Spec) codecsV2() (v2 codecs.V2, err error) {
	v2.Order = "C"
	if s.Codecs == nil {
		v2.Compressor = json.RawMessage(`{"id":"zstd","level":3}`)
		return v2, nil
	}
	var given struct {
		ID         *string
		Order      *string
		Filters    json.RawMessage
		Compressor json.RawMessage
	}
	if err := json.Unmarshal(s.Codecs, &given); err != nil {
		return v2, fmt.Errorf("%w: codecs: neither a compressor nor an object with filters and compressor", ErrMetadata)
	}
	if given.ID != nil {
		v2.Compressor = s.Codecs
		return v2, nil
	}
	v2.Filters, v2.Compressor = given.Filters, given.Compressor
	if given.Order != nil {
		v2.Order = *given.Order
	}
	return v2, nil
}

// unordered reports whether a scalar of t has no byte order yet, which v2 wants.
func unordered(t dtype.Type) bool {
	if elem, _ := t.Elem(); t.Kind() == dtype.Ragged {
		t = elem
	}
	return slices.ContainsFunc(t.Words(), func(w dtype.Word) bool { return w.Order == dtype.None })
}

// objectFilter is the filter of a v2 array of objects that names none, nil for
// other types.
func objectFilter(t dtype.Type) (json.RawMessage, error) {
	if t.Kind() == dtype.Ragged {
		elem, _ := t.Elem()
		raw, err := elem.PrintV2()
		return fmt.Appendf(nil, `[{"id":"vlen-array","dtype":%s}]`, raw), err
	}
	if id := objectCodec(t); id != "" {
		return fmt.Appendf(nil, `[{"id":%q}]`, id), nil
	}
	return nil, nil
}

// objectCodec is the codec that turns elements of a variable-length type into
// bytes, "" for other types.
func objectCodec(t dtype.Type) string {
	switch t.Kind() {
	case dtype.String:
		return "vlen-utf8"
	case dtype.Bytes:
		return "vlen-bytes"
	case dtype.JSON:
		return "json2"
	}
	return ""
}

// defaultCodecs is the chain of a v3 array that names none.
func defaultCodecs(t dtype.Type) json.RawMessage {
	array := `{"name":"bytes"}`
	if id := objectCodec(t); id != "" {
		array = fmt.Sprintf(`{"name":%q}`, id)
	} else if len(t.Words()) > 0 {
		endian := "little"
		if t.Order() == dtype.Big {
			endian = "big"
		}
		array = fmt.Sprintf(`{"name":"bytes","configuration":{"endian":%q}}`, endian)
	}
	return json.RawMessage("[" + array + `,{"name":"zstd","configuration":{"level":3,"checksum":false}}]`)
}

// shardCodecs puts a chain into shards.
func shardCodecs(inner []int64, list json.RawMessage) json.RawMessage {
	shape := append(jsontext.AppendInts([]byte{'['}, inner), ']')
	return fmt.Appendf(nil, `[{"name":"sharding_indexed","configuration":{"chunk_shape":%s,"codecs":%s,`+
		`"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}],"index_location":"end"}}]`, shape, list)
}
