package meta_test

import (
	"encoding/json"
	"slices"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// testRegistry has the built-in codecs and, for names that stand in documents
// of others and are not built in, codecs that do nothing: what metadata means
// does not depend on which codecs there are.
func testRegistry() *codecs.Registry {
	r := builtin.Registry()
	add := func(kind codecs.Kind, v2 bool, names ...string) {
		for _, name := range names {
			if _, ok := r.Lookup(name, v2); ok {
				continue
			}
			e := codecs.Entry{Kind: kind, Parse: func(c codecs.Config) (codecs.Codec, error) { return standIn{kind, c.Raw}, nil }}
			if e.V3 = []string{name}; v2 {
				e.V2, e.V3 = name, nil
			}
			r.Register(e)
		}
	}
	add(codecs.BytesToBytes, true, "blosc", "bz2", "lz4", "lzma", "adler32", "crc32", "fletcher32", "jenkins_lookup3", "shuffle", "base64")
	add(codecs.ArrayToArray, true, "delta", "astype", "bitround", "fixedscaleoffset", "packbits", "quantize")
	add(codecs.ArrayToBytes, true, "categorize", "json2", "msgpack2", "vlen-array")
	add(codecs.BytesToBytes, false, "blosc", "numcodecs.blosc", "numcodecs.bz2", "numcodecs.lz4", "numcodecs.lzma", "numcodecs.adler32",
		"numcodecs.crc32", "numcodecs.fletcher32", "numcodecs.jenkins_lookup3", "numcodecs.shuffle")
	add(codecs.ArrayToArray, false, "cast_value", "scale_offset", "numcodecs.delta", "numcodecs.astype", "numcodecs.bitround",
		"numcodecs.fixedscaleoffset", "numcodecs.packbits", "numcodecs.quantize")
	add(codecs.ArrayToBytes, false, "numcodecs.pcodec")
	return r
}

type standIn struct {
	kind codecs.Kind
	raw  json.RawMessage
}

func (s standIn) Config() json.RawMessage { return s.raw }

func (s standIn) Bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	if s.kind == codecs.ArrayToBytes {
		in = codecs.BytesRep(in.Size, in.Max)
	}
	return nil, in, nil
}

// hasStandIn reports whether m was parsed without its real codecs.
func hasStandIn(m *meta.Meta) bool {
	return m != nil && slices.ContainsFunc(m.Codecs.Codecs(), func(c codecs.Codec) bool {
		_, ok := c.(standIn)
		return ok
	})
}
