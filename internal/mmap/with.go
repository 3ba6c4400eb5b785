package mmap

import (
	"io"
	"os"
)

// With calls fn with the first n bytes of a file, mapped where the system can. No other
// process may shorten the file meanwhile.
func With(f *os.File, n int64, fn func([]byte) error) error {
	if !Supported || n == 0 {
		b := make([]byte, n)
		if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
			return err
		}
		return fn(b)
	}
	b, err := File(f.Fd(), n)
	if err != nil {
		return &os.PathError{Op: "map", Path: f.Name(), Err: err}
	}
	defer func() { _ = Unmap(b) }()
	return fn(b)
}
