// Package filter has the codecs that compute with elements or bytes before they are compressed: the
// filters of numcodecs, the predictors of imagecodecs, and the registered v3 codecs cast_value,
// scale_offset, reshape, bitround and packbits.
//
//	elements ─▶ delta, astype, quantize, cast_value, reshape … ─▶ elements
//	elements ─▶ packbits, imagecodecs_floatpred                ─▶ bytes
//	bytes    ─▶ shuffle, base64                                ─▶ bytes
//
// Most array filters are an elementOp, a function on elements in memory layout
// each way, which bindElements makes a stage of. The filters of numcodecs
// compute with a number, as numpy does, to the bit. The codecs of v3 compute
// with a real, and lose no value unless configured so.
//
// [Entries] is the list; package builtin registers it.
package filter
