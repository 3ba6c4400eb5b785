//go:build unix

package mmap

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// A page behind the end of a file is an error of the goroutine that touches it, and other panics
// pass through.
func TestFault(t *testing.T) {
	f := must.Get(os.Create(filepath.Join(t.TempDir(), "f")))(t)
	defer f.Close()
	size := int64(4 * os.Getpagesize())
	must.Do(t, f.Truncate(size))
	cut := func(b []byte) error {
		must.Do(t, f.Truncate(1))
		Touch(b)
		return nil
	}
	if err := With(f, size, cut); !errors.Is(err, ErrFault) {
		t.Errorf("a file that was cut: %v", err)
	}
	must.Do(t, f.Truncate(size))
	b := must.Get(File(f.Fd(), size))(t)
	defer func() { _ = Unmap(b) }()
	Touch(b)
	Touch(nil)
	must.Do(t, f.Truncate(1))
	done := make(chan error)
	go func() { done <- Catch(func() error { Touch(b[len(b)-1:]); return nil }) }()
	if err := <-done; err != ErrFault {
		t.Errorf("on another goroutine: %v", err)
	}
	other := errors.New("other")
	if err := Catch(func() error { return other }); err != other {
		t.Error(err)
	}
	defer func() {
		if p := recover(); p != other {
			t.Errorf("panic %v", p)
		}
		if _, ok := Faulted(other, b); ok {
			t.Error("another panic is a fault")
		}
	}()
	_ = Catch(func() error { panic(other) })
}
