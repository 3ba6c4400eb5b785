package codecs

import "github.com/zarrdb/zarrdb/zarr/dtype"

// builtin is the one list of codecs that Default knows.
func builtin() []Entry {
	return []Entry{
		{V3: []string{"bytes", "endian"}, Kind: ArrayToBytes, Parse: parseBytes},
		{V3: []string{"transpose"}, Kind: ArrayToArray, Parse: parseTranspose},
		{V3: []string{"sharding_indexed"}, Kind: ArrayToBytes, Parse: parseSharding},
		{V2: "vlen-utf8", V3: []string{"vlen-utf8"}, Kind: ArrayToBytes, Parse: parseVlen("vlen-utf8", dtype.String)},
		{V2: "vlen-bytes", V3: []string{"vlen-bytes"}, Kind: ArrayToBytes, Parse: parseVlen("vlen-bytes", dtype.Bytes)},
		{V2: "blosc", V3: []string{"blosc", "numcodecs.blosc"}, Kind: BytesToBytes, Parse: parseBlosc},
		{V2: "gzip", V3: []string{"gzip", "numcodecs.gzip"}, Kind: BytesToBytes, Parse: parseDeflate("gzip")},
		{V2: "zlib", V3: []string{"numcodecs.zlib"}, Kind: BytesToBytes, Parse: parseDeflate("zlib")},
		{V2: "zstd", V3: []string{"zstd", "numcodecs.zstd"}, Kind: BytesToBytes, Parse: parseZstd},
		{V2: "crc32c", V3: []string{"crc32c", "numcodecs.crc32c"}, Kind: BytesToBytes, Parse: parseCRC32C},
	}
}
