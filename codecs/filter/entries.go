package filter

import "github.com/zarrdb/zarrdb/codecs"

// Entries returns the codecs of this package for a registry. The caller owns the
// slice.
func Entries() []codecs.Entry {
	return []codecs.Entry{
		{V3: []string{"packbits"}, Kind: codecs.ArrayToBytes, Flat: true, Parse: parsePackbits},
		{V2: "delta", V3: []string{"numcodecs.delta"}, Kind: codecs.ArrayToArray, Flat: true, Parse: parseDelta},
		{V2: "astype", V3: []string{"numcodecs.astype"}, Kind: codecs.ArrayToArray, Flat: true, Parse: parseAsType},
		{V2: "fixedscaleoffset", V3: []string{"numcodecs.fixedscaleoffset"}, Kind: codecs.ArrayToArray, Flat: true, Parse: parseFixedScaleOffset},
		{V2: "quantize", V3: []string{"numcodecs.quantize"}, Kind: codecs.ArrayToArray, Flat: true, Parse: parseQuantize},
		{V2: "bitround", V3: []string{"numcodecs.bitround", "bitround"}, Kind: codecs.ArrayToArray, Flat: true, Parse: parseBitround},
		{V2: "packbits", V3: []string{"numcodecs.packbits"}, Kind: codecs.ArrayToArray, Flat: true, Parse: parsePackBool},
		{V3: []string{"cast_value"}, Kind: codecs.ArrayToArray, Parse: parseCastValue},
		{V3: []string{"scale_offset"}, Kind: codecs.ArrayToArray, Parse: parseScaleOffset},
		{V3: []string{"reshape"}, Kind: codecs.ArrayToArray, Parse: parseReshape},
		{V2: "categorize", Kind: codecs.ArrayToArray, Parse: parseCategorize},
		{V2: "shuffle", V3: []string{"numcodecs.shuffle"}, Kind: codecs.BytesToBytes, Lossless: true, Parse: parseShuffle},
		{V2: "base64", Kind: codecs.BytesToBytes, Parse: parseBase64},
		{V2: "imagecodecs_delta", Kind: codecs.ArrayToArray, Parse: parsePredictor("imagecodecs_delta")},
		{V3: []string{"imagecodecs_delta"}, Kind: codecs.ArrayToArray, Parse: parsePredictor("imagecodecs_delta")}, // configured otherwise
		{V2: "imagecodecs_floatpred", Kind: codecs.ArrayToArray, Parse: parsePredictor("imagecodecs_floatpred")},
		{V3: []string{"imagecodecs_floatpred"}, Kind: codecs.ArrayToBytes, Parse: parsePredictor("imagecodecs_floatpred")},
	}
}
