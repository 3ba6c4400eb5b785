package mmap

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// Advice is given for whole huge pages inside the memory, and for no byte beside it.
func TestInside(t *testing.T) {
	const h = hugePage
	for _, c := range []struct{ at, n, from, to uintptr }{
		{8 * h, 2 * h, 0, 2 * h},
		{8 * h, 2*h + 5, 0, 2 * h},
		{8*h + 1, h, h - 1, h - 1},
		{8*h + 1, 2 * h, h - 1, 2*h - 1},
		{8 * h, h - 1, 0, 0},
		{8*h - 1, 2 * h, 1, h + 1},
		{8*h + 4096, 4 * h, h - 4096, 3*h + h - 4096},
	} {
		from, to := inside(c.at, c.n)
		if from != c.from || to != c.to {
			t.Errorf("%d bytes at %#x: %d to %d, want %d to %d", c.n, c.at, from, to, c.from, c.to)
		}
		if from < to && ((c.at+from)%h != 0 || (c.at+to)%h != 0 || to > c.n) {
			t.Errorf("%d bytes at %#x: %d to %d are no huge pages inside", c.n, c.at, from, to)
		}
	}
}

// Memory of every size and type has its elements, aligned, and is the caller's alone.
func TestMake(t *testing.T) {
	for _, n := range []int{0, 1, clearFrom - 1, clearFrom, clearFrom + 1, hugeFrom, 3*hugeFrom + 7} {
		a, b := Make[byte](n), Make[complex128](n/16)
		if len(a) != n || len(b) != n/16 {
			t.Fatalf("%d and %d elements, want %d and %d", len(a), len(b), n, n/16)
		}
		if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%unsafe.Alignof(complex128(0)) != 0 {
			t.Errorf("%d elements are not aligned", n)
		}
		PreferHuge(a)
		for i := range a {
			a[i] = byte(i)
		}
		runtime.GC()
		for i := range b {
			b[i] = 1
		}
		for i := range a {
			if a[i] != byte(i) {
				t.Fatalf("byte %d of %d is %d", i, n, a[i])
			}
		}
	}
	if got := len(Make[struct{}](7)); got != 7 {
		t.Errorf("%d elements without a size, want 7", got)
	}
}

// Large memory is on huge pages where the system has them on request.
func TestPreferHuge(t *testing.T) {
	enabled, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil || strings.Contains(string(enabled), "[never]") {
		t.Skip("the system has no huge pages")
	}
	b := Make[byte](64 << 20)
	PreferHuge(b)
	clear(b)
	maps, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(maps)) {
		if f := strings.Fields(line); f[0] == "AnonHugePages:" && f[1] == "0" {
			t.Error("64 MiB lie on no huge page")
		}
	}
	runtime.KeepAlive(b)
}
