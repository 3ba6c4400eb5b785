package mmap

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"unsafe"
)

// ErrFault means that a page of mapped memory cannot be read: the disk is damaged, or the
// file was cut.
var ErrFault = errors.New("mmap: a page cannot be read")

// Catch calls fn, and returns ErrFault where a page that cannot be read would end the process.
// That is so on the goroutine of the call only: a goroutine that touches the mapped memory of
// another one calls Catch itself. Other panics pass through.
func Catch(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(fault); !ok {
				panic(p)
			}
			err = ErrFault
		}
	}()
	return fn()
}

// fault is the panic of a goroutine that has set [debug.SetPanicOnFault].
type fault interface {
	runtime.Error
	Addr() uintptr
}

// Faulted reports whether a value that was recovered is the fault of a page of b, and which
// byte was touched.
func Faulted(recovered any, b []byte) (off uint64, ok bool) {
	f, ok := recovered.(fault)
	if !ok {
		return 0, false
	}
	at := f.Addr() - uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return uint64(at), at < uintptr(len(b))
}

// Touch reads a byte of each page of b. A system call that is given b fails, perhaps
// half-way, where a page cannot be read; Touch faults before it.
func Touch(b []byte) {
	for i := 0; i < len(b); i += pageSize {
		touched(b[i])
	}
	if len(b) > 0 {
		touched(b[len(b)-1])
	}
}

var pageSize = os.Getpagesize()

// touched keeps the compiler from leaving out a read.
//
//go:noinline
func touched(byte) {}
