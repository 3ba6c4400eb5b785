//go:build !unix

package s3

import (
	"io"
	"os"
)

// mapped calls fn with the bytes of a file.
func mapped(f *os.File, size int64, fn func([]byte) error) error {
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		return err
	}
	return fn(b)
}
