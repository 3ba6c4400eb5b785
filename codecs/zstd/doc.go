// Package zstd writes Zstandard frames (RFC 8878), for the levels about 3.
//
//	       ┌───────┬────────┬─ 128 KiB ──────────────┬─
//	frame  │ magic │ header │ block                  │ …
//	       └───────┴────────┴────────────────────────┴─
//	                block = literals (Huffman) + sequences (FSE)
//	                        the bytes that          how many literals, how long a
//	                        match nothing           match, how far back
//
// Why another encoder: elements are small numbers whose low bytes are noise, so
// that matches are short. Other encoders in Go search for five bytes or more;
// with four, shuffled floats get a sixth smaller, and because such a search
// finds matches more often, it is also faster. The search keeps two tables, of
// four and of eight bytes, uses the first match that it finds, and tries one
// byte further after a short match.
//
// Literals are encoded by package huff0. The other levels, and decoding, are not
// this package's.
package zstd
