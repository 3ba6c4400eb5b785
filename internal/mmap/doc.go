// Package mmap maps files into memory for reading, where the system can.
//
//	file ──File──▶ []byte ──Unmap──▶ gone
//	       └─▶ errors.ErrUnsupported, if not Supported
package mmap
