// Package lzma decodes and encodes LZMA data that is in memory as a whole, in
// the four forms of numcodecs' codec "lzma":
//
//	.xz     header │ blocks: filters, LZMA2, checksum … │ index │ footer
//	.lzma   properties, dictionary size, length │ LZMA
//	raw     LZMA2, or LZMA up to an end marker
//
// Package github.com/ulikunitz/xz/lzma reads and writes the streams of LZMA and
// LZMA2; this package adds: the container with delta filters, all checksums and
// padding verified, and a dictionary bounded by the length of the result
// instead of the size in the header. Filters for machine code are refused. The
// format is the .xz file format 1.2.
package lzma
