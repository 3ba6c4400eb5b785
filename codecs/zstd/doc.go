// Package zstd writes Zstandard frames (RFC 8878), for the levels about 3.
//
//	       ┌───────┬────────┬─ 128 KiB ──────────────┬─
//	frame  │ magic │ header │ block                  │ …
//	       └───────┴────────┴────────────────────────┴─
//	                block = literals (Huffman) + sequences (FSE)
//	                        the bytes that          how many literals, how long a
//	                        match nothing           match, how far back
//
// Why there is one more encoder: elements are small numbers whose low bytes are
// noise, so that matches are short. Other encoders in Go look for five bytes or more;
// with four, floats that are shuffled get a sixth smaller, and since such a search
// finds something more often, it is also done sooner. The search keeps two tables,
// of four and of eight bytes, takes the first match that it finds, and looks one
// byte further where that match is a short one.
//
// Literals are encoded by package huff0. The other levels, and decoding, are not
// this package's.
package zstd
