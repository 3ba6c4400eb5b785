package codecs

import "hash/crc32"

// Entries returns the codecs of this package for a registry: bytes, shards,
// compressors and checksums. Package builtin adds the rest. The caller owns the
// slice.
func Entries() []Entry {
	return []Entry{
		{V3: []string{"bytes", "endian"}, Kind: ArrayToBytes, Lossless: true, Flat: true, Parse: parseBytes},
		{V3: []string{"transpose"}, Kind: ArrayToArray, Lossless: true, Parse: parseTranspose},
		{V3: []string{"sharding_indexed"}, Kind: ArrayToBytes, Lossless: true, Parse: parseSharding},
		{V2: "pcodec", V3: []string{"numcodecs.pcodec"}, Kind: ArrayToBytes, Parse: parsePcodec},
		{V3: []string{"n5_default"}, Kind: ArrayToBytes, Parse: parseN5Default},
		{V2: "blosc", V3: []string{"blosc", "numcodecs.blosc"}, Kind: BytesToBytes, Lossless: true, Parse: parseBlosc},
		{V2: "gzip", V3: []string{"gzip", "numcodecs.gzip"}, Kind: BytesToBytes, Lossless: true, Parse: parseDeflate("gzip")},
		{V2: "zlib", V3: []string{"numcodecs.zlib", "zlib"}, Kind: BytesToBytes, Lossless: true, Parse: parseDeflate("zlib")},
		{V2: "zstd", V3: []string{"zstd", "numcodecs.zstd"}, Kind: BytesToBytes, Lossless: true, Parse: parseZstd},
		{V2: "lz4", V3: []string{"numcodecs.lz4"}, Kind: BytesToBytes, Lossless: true, Parse: parseLZ4},
		{V2: "bz2", V3: []string{"numcodecs.bz2", "bz2"}, Kind: BytesToBytes, Lossless: true, Parse: parseBZ2},
		{V2: "lzma", V3: []string{"numcodecs.lzma"}, Kind: BytesToBytes, Lossless: true, Parse: parseLZMA},
		{V3: []string{"conditional"}, Kind: BytesToBytes, Parse: parseConditional},
		{V2: "imagecodecs_lzw", V3: []string{"imagecodecs_lzw"}, Kind: BytesToBytes, Parse: parseLZW},
		{V2: "imagecodecs_packbits", V3: []string{"imagecodecs_packbits"}, Kind: BytesToBytes, Parse: parseImagePackbits},
		{V2: "imagecodecs_bitorder", V3: []string{"imagecodecs_bitorder"}, Kind: BytesToBytes, Parse: parseImageBitorder},
		{V2: "imagecodecs_deflate", V3: []string{"imagecodecs_deflate"}, Kind: BytesToBytes, Parse: parseImageDeflate},
		{V2: "imagecodecs_lzf", V3: []string{"imagecodecs_lzf"}, Kind: BytesToBytes, Lossless: true, Parse: parseLZF},
		{V2: "imagecodecs_lz4h5", V3: []string{"imagecodecs_lz4h5"}, Kind: BytesToBytes, Lossless: true, Parse: parseLZ4H5},
		{V2: "imagecodecs_bitshuffle", V3: []string{"imagecodecs_bitshuffle"}, Kind: BytesToBytes, Lossless: true, Parse: parseBitshuffle},
		{V2: "bshuf", V3: []string{"numcodecs.bshuf"}, Kind: BytesToBytes, Lossless: true, Parse: parseBshuf},
		{V2: "imagecodecs_bz2", V3: []string{"imagecodecs_bz2"}, Kind: BytesToBytes, Lossless: true, Parse: parseBZ2},
		{V2: "imagecodecs_zstd", Kind: BytesToBytes, Parse: parseZstd},
		{V2: "crc32c", V3: []string{"crc32c", "numcodecs.crc32c"}, Kind: BytesToBytes, Lossless: true, Parse: parseLocated("crc32c", "end", crc32c)},
		{V2: "crc32", V3: []string{"numcodecs.crc32"}, Kind: BytesToBytes, Lossless: true, Parse: parseLocated("crc32", "start", crc32.ChecksumIEEE)},
		{V2: "adler32", V3: []string{"numcodecs.adler32"}, Kind: BytesToBytes, Lossless: true, Parse: parseLocated("adler32", "start", adler32)},
		{V2: "fletcher32", V3: []string{"numcodecs.fletcher32"}, Kind: BytesToBytes, Lossless: true, Parse: parseFletcher32},
		{V2: "jenkins_lookup3", V3: []string{"numcodecs.jenkins_lookup3"}, Kind: BytesToBytes, Parse: parseJenkins},
	}
}

// refusals are the codecs that are known by name and not supported.
var refusals = []Refusal{
	{V2: []string{"pickle"}, V3: []string{"numcodecs.pickle"}, Why: "unpickling runs code"},
	{V2: []string{"imagecodecs_szip"}, V3: []string{"imagecodecs_szip"}, Why: "szip streams are not supported"},
	{V2: []string{"zfpy"}, V3: []string{"zfp", "zarrs.zfp", "numcodecs.zfpy"}, Why: "zfp streams are not supported"},
}
