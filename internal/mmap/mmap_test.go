package mmap

import (
	"bytes"
	"errors"
	"os"
	"testing"
)

// A map has the bytes of the file, also after the file was closed.
func TestFile(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 1000)
	name := t.TempDir() + "/f"
	if err := os.WriteFile(name, want, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := File(f.Fd(), int64(len(want)))
	if !Supported {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the map differs from the file")
	}
	if err := Unmap(got); err != nil {
		t.Error(err)
	}
}
