// Package lzma decodes and encodes LZMA data that is in memory as a whole, in
// the four forms of numcodecs' codec "lzma":
//
//	.xz     header │ blocks: filters, LZMA2, checksum … │ index │ footer
//	.lzma   properties, dictionary size, length │ LZMA
//	raw     LZMA2, or LZMA up to an end marker
//
// Before LZMA2 in a block, or in raw data, there may be delta filters; the
// filters for machine code are refused. The formats are those of the .xz file
// format 1.2 and of the LZMA specification of the LZMA SDK.
//
// Decoding goes straight into the result, which is its own dictionary: the size
// of dictionary that a header asks for costs nothing, and every length is checked
// before memory is reserved.
package lzma
