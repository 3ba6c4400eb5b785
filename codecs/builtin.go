package codecs

import "github.com/zarrdb/zarrdb/zarr/dtype"

// builtin is the list of codecs of Default.
func builtin() []Entry {
	return []Entry{
		{V3: []string{"bytes", "endian"}, Kind: ArrayToBytes, Parse: parseBytes},
		{V3: []string{"transpose"}, Kind: ArrayToArray, Parse: parseTranspose},
		{V3: []string{"sharding_indexed"}, Kind: ArrayToBytes, Parse: parseSharding},
		{V2: "vlen-utf8", V3: []string{"vlen-utf8"}, Kind: ArrayToBytes, Parse: parseVlen("vlen-utf8", dtype.String)},
		{V2: "vlen-bytes", V3: []string{"vlen-bytes"}, Kind: ArrayToBytes, Parse: parseVlen("vlen-bytes", dtype.Bytes)},
		{V2: "vlen-array", Kind: ArrayToBytes, Parse: parseVlenArray},
		{V2: "json2", Kind: ArrayToBytes, Parse: parseJSON2},
		{V2: "json", Kind: ArrayToBytes, Parse: parseJSON2},
		{V2: "msgpack2", Kind: ArrayToBytes, Parse: parseMsgpack2},
		{V2: "msgpack", Kind: ArrayToBytes, Parse: parseMsgpack2},
		{V3: []string{"packbits"}, Kind: ArrayToBytes, Parse: parsePackbits},
		{V2: "pcodec", V3: []string{"numcodecs.pcodec"}, Kind: ArrayToBytes, Parse: parsePcodec},
		{V2: "delta", V3: []string{"numcodecs.delta"}, Kind: ArrayToArray, Parse: parseDelta},
		{V2: "astype", V3: []string{"numcodecs.astype"}, Kind: ArrayToArray, Parse: parseAsType},
		{V2: "fixedscaleoffset", V3: []string{"numcodecs.fixedscaleoffset"}, Kind: ArrayToArray, Parse: parseFixedScaleOffset},
		{V2: "quantize", V3: []string{"numcodecs.quantize"}, Kind: ArrayToArray, Parse: parseQuantize},
		{V2: "bitround", V3: []string{"bitround", "numcodecs.bitround"}, Kind: ArrayToArray, Parse: parseBitround},
		{V2: "packbits", V3: []string{"numcodecs.packbits"}, Kind: ArrayToArray, Parse: parsePackBool},
		{V3: []string{"cast_value"}, Kind: ArrayToArray, Parse: parseCastValue},
		{V3: []string{"scale_offset"}, Kind: ArrayToArray, Parse: parseScaleOffset},
		{V3: []string{"reshape"}, Kind: ArrayToArray, Parse: parseReshape},
		{V3: []string{"n5_default"}, Kind: ArrayToBytes, Parse: parseN5Default},
		{V2: "categorize", Kind: ArrayToArray, Parse: parseCategorize},
		{V2: "blosc", V3: []string{"blosc", "numcodecs.blosc"}, Kind: BytesToBytes, Parse: parseBlosc},
		{V2: "gzip", V3: []string{"gzip", "numcodecs.gzip"}, Kind: BytesToBytes, Parse: parseDeflate("gzip")},
		{V2: "zlib", V3: []string{"numcodecs.zlib", "zlib"}, Kind: BytesToBytes, Parse: parseDeflate("zlib")},
		{V2: "zstd", V3: []string{"zstd", "numcodecs.zstd"}, Kind: BytesToBytes, Parse: parseZstd},
		{V2: "lz4", V3: []string{"numcodecs.lz4"}, Kind: BytesToBytes, Parse: parseLZ4},
		{V2: "bz2", V3: []string{"numcodecs.bz2", "bz2"}, Kind: BytesToBytes, Parse: parseBZ2},
		{V2: "lzma", V3: []string{"numcodecs.lzma"}, Kind: BytesToBytes, Parse: parseLZMA},
		{V3: []string{"conditional"}, Kind: BytesToBytes, Parse: parseConditional},
		{V2: "shuffle", V3: []string{"numcodecs.shuffle"}, Kind: BytesToBytes, Parse: parseShuffle},
		{V2: "base64", Kind: BytesToBytes, Parse: parseBase64},
		{V2: "adler32", V3: []string{"numcodecs.adler32"}, Kind: BytesToBytes, Parse: parseAdler32},
		{V2: "crc32", V3: []string{"numcodecs.crc32"}, Kind: BytesToBytes, Parse: parseCRC32},
		{V2: "fletcher32", V3: []string{"numcodecs.fletcher32"}, Kind: BytesToBytes, Parse: parseFletcher32},
		{V2: "jenkins_lookup3", V3: []string{"numcodecs.jenkins_lookup3"}, Kind: BytesToBytes, Parse: parseJenkins},
		{V2: "imagecodecs_delta", Kind: ArrayToArray, Parse: parsePredictor("imagecodecs_delta")},
		{V3: []string{"imagecodecs_delta"}, Kind: ArrayToArray, Parse: parsePredictor("imagecodecs_delta")}, // configured otherwise
		{V2: "imagecodecs_floatpred", Kind: ArrayToArray, Parse: parsePredictor("imagecodecs_floatpred")},
		{V3: []string{"imagecodecs_floatpred"}, Kind: ArrayToBytes, Parse: parsePredictor("imagecodecs_floatpred")},
		{V2: "imagecodecs_lzw", V3: []string{"imagecodecs_lzw"}, Kind: BytesToBytes, Parse: parseLZW},
		{V2: "imagecodecs_packbits", V3: []string{"imagecodecs_packbits"}, Kind: BytesToBytes, Parse: parseImagePackbits},
		{V2: "imagecodecs_deflate", V3: []string{"imagecodecs_deflate"}, Kind: BytesToBytes, Parse: parseImageDeflate},
		{V2: "imagecodecs_zstd", Kind: BytesToBytes, Parse: parseZstd},
		{V2: "crc32c", V3: []string{"crc32c", "numcodecs.crc32c"}, Kind: BytesToBytes, Parse: parseCRC32C},
	}
}

// refusals are the codecs that are known by name and not supported.
var refusals = []Refusal{
	{V2: []string{"pickle"}, V3: []string{"numcodecs.pickle"}, Why: "unpickling runs code"},
	{V2: []string{"zfpy"}, V3: []string{"zfp", "zarrs.zfp", "numcodecs.zfpy"}, Why: "zfp streams are not supported"},
}
