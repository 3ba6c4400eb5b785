package mmap

import (
	"io"
	"os"
)

// With calls fn with the first n bytes of a file, mapped where the system can. No other
// process may shorten the file meanwhile: then, and where the file cannot be read, the error is
// ErrFault, if fn touches the bytes on its own goroutine.
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
	if err = Catch(func() error { return fn(b) }); err == ErrFault {
		err = &os.PathError{Op: "read", Path: f.Name(), Err: err}
	}
	return err
}
