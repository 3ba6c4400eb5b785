// Package zstd writes Zstandard frames (RFC 8878), for the levels about 3, and reads frames
// of one kind.
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
// Why another decoder: the library copies matches that overlap themselves byte by byte, which takes
// a third of the time for shuffled floats, and keeps the recent distances and the values of a
// sequence in memory. This one decodes the frames that encoders write where the whole input is at
// hand. The library decodes other frames, and gives the errors for damaged frames.
//
// Literals are encoded and decoded by package huff0. The library has the other
// levels.
package zstd
