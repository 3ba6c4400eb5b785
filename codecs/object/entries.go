package object

import (
	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Entries returns the codecs of this package for a registry. The caller owns the
// slice.
func Entries() []codecs.Entry {
	return []codecs.Entry{
		{V2: "vlen-utf8", V3: []string{"vlen-utf8"}, Kind: codecs.ArrayToBytes, Lossless: true, Flat: true, Parse: parseVlen("vlen-utf8", dtype.String)},
		{V2: "vlen-bytes", V3: []string{"vlen-bytes"}, Kind: codecs.ArrayToBytes, Lossless: true, Flat: true, Parse: parseVlen("vlen-bytes", dtype.Bytes)},
		{V2: "vlen-array", Kind: codecs.ArrayToBytes, Parse: parseVlenArray},
		{V2: "fill_hdf_strings", Kind: codecs.ArrayToBytes, Parse: parseHDFStrings},
		{V2: "json2", Kind: codecs.ArrayToBytes, Parse: parseJSON2},
		{V2: "json", Kind: codecs.ArrayToBytes, Parse: parseJSON2},
		{V2: "msgpack2", Kind: codecs.ArrayToBytes, Parse: parseMsgpack2},
		{V2: "msgpack", Kind: codecs.ArrayToBytes, Parse: parseMsgpack2},
	}
}
