package mmap

import (
	"bytes"
	"errors"
	"github.com/zarrdb/zarrdb/internal/must"
	"os"
	"testing"
)

// A map has the bytes of the file, also after the file was closed.
func TestFile(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 1000)
	name := t.TempDir() + "/f"
	must.Do(t, os.WriteFile(name, want, 0o666))
	f := must.Get(os.Open(name))(t)
	defer f.Close()
	got, err := File(f.Fd(), int64(len(want)))
	if !Supported {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Fatal(err)
		}
		return
	}
	must.Do(t, err)
	must.Do(t, f.Close())
	if !bytes.Equal(got, want) {
		t.Error("the map differs from the file")
	}
	if err := Unmap(got); err != nil {
		t.Error(err)
	}
}
