package local

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zarrdb/zarrdb/internal/must"
)

// memoryFile is memory of n bytes, and what it holds. With seal it cannot be cut off.
func memoryFile(t *testing.T, n int64, seal bool) (f *os.File, bytes func() []byte) {
	t.Helper()
	fd := must.Get(unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING))(t)
	f = os.NewFile(uintptr(fd), "memory")
	t.Cleanup(func() { f.Close() })
	must.Do(t, f.Truncate(n))
	if seal {
		must.Get(unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK))(t)
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
func TestBlocksAreSealed(t *testing.T) {
	plain := must.Get(os.CreateTemp(t.TempDir(), ""))(t)
	defer plain.Close()
	must.Do(t, plain.Truncate(100))
	open, _ := memoryFile(t, 100, false)
	empty, _ := memoryFile(t, 0, true)
	s := blocks{limit: 1000}
	defer s.close()
	for _, f := range []*os.File{plain, open, empty} {
		if k, err := s.use(1, f); err == nil {
			t.Errorf("%s was mapped: %d bytes", f.Name(), len(k.b))
		}
	}
	long, _ := memoryFile(t, 1001, true)
	if _, err := s.use(1, long); !errors.Is(err, ErrLimit) {
		t.Errorf("more than the limit: %v", err)
	}
}

// A block that is forgotten while a request uses it stays mapped until that ends.
func TestForgottenBlockIsUsed(t *testing.T) {
	f, memory := memoryFile(t, 100, true)
	s := blocks{limit: 100}
	k := must.Get(s.use(1, f))(t)
	s.forget(1)
	s.close()
	k.b[50] = 7
	if memory()[50] != 7 {
		t.Error("it is not the memory of the client")
	}
	if s.bytes != 100 {
		t.Errorf("%d bytes in use", s.bytes)
	}
	s.give(k)
	if s.bytes != 0 {
		t.Errorf("%d bytes in use afterwards", s.bytes)
	}
}
