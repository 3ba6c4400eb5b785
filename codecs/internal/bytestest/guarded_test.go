//go:build unix

package bytestest

import (
	"os"
	"runtime/debug"
	"testing"
	"unsafe"
)

var sink byte

// All bytes can be used, and the one behind them cannot be read.
func TestGuarded(t *testing.T) {
	n := 2 * os.Getpagesize()
	b := Guarded(t, n)
	if len(b) != n || cap(b) != n {
		t.Fatalf("%d bytes of %d, want %d", len(b), cap(b), n)
	}
	for i := range b {
		b[i] = byte(i)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() == nil {
			t.Error("the page behind can be read")
		}
	}()
	sink = *behind(b)
}

// behind points to the byte after the last one.
func behind(b []byte) *byte { return (*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), len(b))) }
