// Package pco decodes and encodes pcodec files, which hold a list of numbers of
// one type: numcodecs' codec "pcodec" stores chunks that way.
//
//	"pco!" │ versions │ count │ chunks │ 0
//
//	chunk    type │ count │ mode │ delta encoding │ bins … │ page
//	page     states │ batches of 256 numbers
//	batch    of each variable: bins of its latents │ offsets within the bins
//
// A number is split into one or two unsigned "latents" with the same order as
// the numbers; the mode defines the split. Latents may be replaced by
// differences of neighbours. The results are put in bins, ranges of values: the
// number of the bin is coded with tANS, a coding by a table of states, and the
// offset within the bin is stored as raw bits.
//
//	number ─ mode ─> latents ─ delta ─> residuals ─ bins ─> symbols, offsets
//
// All versions of the standalone format up to 4.1 are read, with all modes and
// delta encodings. The writer uses the mode "classic" and consecutive deltas, in
// a version that readers support since 0.4.
//
// All bits are packed from the lowest on, and bytes are little-endian.
package pco
