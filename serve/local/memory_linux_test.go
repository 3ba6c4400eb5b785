package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/serve/wire"
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

// The descriptor of a block is passed once. Results have any length then.
func TestBlocks(t *testing.T) {
	h, c := served(t, &Options{MaxBody: 1000}, nil)
	makeArray(t, h, 1000, 100)
	s := begin(t, c)
	must.Do(t, s.WriteArray(bg, "x", "0:200", elementsOf(200, 0)))
	for i := 200; i < 1000; i += 200 {
		must.Do(t, s.WriteArray(bg, "x", fmt.Sprintf("%d:%d", i, i+200), elementsOf(200, i)))
	}
	f, memory := memoryFile(t, 8192, true)
	read := func(sel string, d wire.Destination, pass ...wire.Descriptor) error {
		out, body, err := callJSON[wire.Elements](t, s, wire.OpRead, wire.Array{View: s.tx.handle, Path: "x", Select: sel, Destination: d}, pass...)
		if err == nil && (len(body) > 0 || out.ItemSize != 4) {
			t.Errorf("%+v, %d bytes", out, len(body))
		}
		return err
	}
	if err := read("", wire.Destination{Block: 3}); !errors.Is(err, ErrRequest) {
		t.Errorf("a block without a descriptor: %v", err)
	}
	if err := read("", wire.Destination{Block: 3, At: 5000}, f); !errors.Is(err, ErrRequest) {
		t.Errorf("behind the end of the block: %v", err)
	}
	if err := read("", wire.Destination{Block: 3, At: 100}); err != nil || !slices.Equal(memory()[100:4100], elementsOf(1000, 0)) {
		t.Errorf("the whole array: %v", err)
	}
	if err := read("", wire.Destination{Block: 3}, f); !errors.Is(err, ErrRequest) {
		t.Errorf("a descriptor of a block that is known: %v", err)
	}
	many := wire.ArrayMany{View: s.tx.handle, Path: "x", Selects: []string{"5", "::-1"}, Destination: wire.Destination{Block: 3}}
	if _, body, err := callJSON[wire.ElementsMany](t, s, wire.OpReadMany, many); err != nil || len(body) > 0 ||
		binary.LittleEndian.Uint32(memory()) != 5 || binary.LittleEndian.Uint32(memory()[4:]) != 999 {
		t.Errorf("several selections: %v", err)
	}
	must.Get(f.WriteAt(elementsOf(10, 7000), 0))(t)
	if _, _, err := callJSON[struct{}](t, s, wire.OpWrite, wire.Array{View: s.tx.handle, Path: "x", Select: "20:30", Destination: wire.Destination{Block: 3}}); err != nil {
		t.Errorf("write: %v", err)
	}
	if err := read("19:31", wire.Destination{Block: 3}); err != nil || !slices.Equal(memory()[:48], slices.Concat(elementsOf(1, 19), elementsOf(10, 7000), elementsOf(1, 30))) {
		t.Errorf("what was written: %v, %v", memory()[:48], err)
	}
	// A block that is forgotten is another one afterwards.
	must.Do(t, s.tx.l.w.Send(&wire.Frame{Op: wire.OpForget, Meta: []byte(`{"block":3}`)}))
	if err := read("", wire.Destination{Block: 3}); !errors.Is(err, ErrRequest) {
		t.Errorf("a forgotten block: %v", err)
	}
	other, memory2 := memoryFile(t, 4000, true)
	if err := read("", wire.Destination{Block: 3}, other); err != nil || !slices.Equal(memory2(), slices.Concat(elementsOf(20, 0), elementsOf(10, 7000), elementsOf(970, 30))) {
		t.Errorf("another block: %v", err)
	}
	for i := range uint32(maxBlocks) {
		f, _ := memoryFile(t, 8, true)
		want := error(nil)
		if i == maxBlocks-1 {
			want = ErrLimit
		}
		if err := read("5", wire.Destination{Block: 10 + i}, f); !errors.Is(err, want) {
			t.Errorf("block %d: %v", i, err)
		}
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
