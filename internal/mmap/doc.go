// Package mmap maps files into memory for reading, where the system can, and makes memory for large
// results.
//
//	file ──File──▶ []byte ──Unmap──▶ gone
//	       └─▶ errors.ErrUnsupported, if not Supported
//	n ──Make──▶ []T, not cleared ──PreferHuge──▶ on huge pages
package mmap
