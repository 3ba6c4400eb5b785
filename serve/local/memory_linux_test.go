package local

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// sealed is memory of n bytes that cannot be cut off, and what it holds.
func sealed(t *testing.T, n int64) (f *os.File, bytes func() []byte) {
	t.Helper()
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	f = os.NewFile(uintptr(fd), "memory")
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(n); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		t.Fatal(err)
	}
	return f, func() []byte {
		b := make([]byte, n)
		if _, err := f.ReadAt(b, 0); err != nil {
			t.Error(err)
		}
		return b
	}
}

// Only memory that cannot be cut off is mapped.
func TestShareMemory(t *testing.T) {
	f, _ := sealed(t, 100)
	b, free, err := shareMemory(f, 10, 90)
	if err != nil || len(b) != 90 {
		t.Fatal(len(b), err)
	}
	free()
	for _, c := range []struct{ off, n int64 }{{11, 90}, {1 << 40, 1}, {0, 101}} {
		if _, _, err := shareMemory(f, c.off, c.n); err == nil {
			t.Errorf("%d bytes at %d of 100", c.n, c.off)
		}
	}
	plain, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	open := os.NewFile(uintptr(fd), "memory")
	defer open.Close()
	for _, f := range []*os.File{plain, open} {
		if err := f.Truncate(100); err != nil {
			t.Fatal(err)
		}
		if b, _, err := shareMemory(f, 0, 100); b != nil || err != nil {
			t.Errorf("%s was mapped: %v", f.Name(), err)
		}
	}
}
