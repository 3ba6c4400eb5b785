package index

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
)

// Remove leaves files of others, or no directory.
func TestRemove(t *testing.T) {
	for _, other := range []string{"", "d/README"} {
		fs := vfs.NewMem()
		x := mustOpen(t, "d", small(fs))
		if !x.Made() {
			t.Error("a new index was not made")
		}
		if err := put(x, SpaceMeta, "k", "v", true); err != nil {
			t.Fatal(err)
		}
		if other != "" {
			if err := writeSmall(fs, other, []byte("mine")); err != nil {
				t.Fatal(err)
			}
		}
		if err := x.Remove(); err != nil || !x.Made() {
			t.Fatalf("removed: %v, made: %v", err, x.Made())
		}
		names, err := fs.List("d")
		if other == "" && !errors.Is(err, os.ErrNotExist) || other != "" && !slices.Equal(names, []string{"README"}) {
			t.Errorf("in the directory is %q, %v", names, err)
		}
		if again, closed := x.Remove(), x.Close(); again != kv.ErrClosed || closed != kv.ErrClosed {
			t.Errorf("again: %v, closed: %v", again, closed)
		}
	}
}

// What may not be written is not removed.
func TestRemoveReadOnly(t *testing.T) {
	fs := vfs.NewMem()
	x := mustOpen(t, "d", small(fs))
	if err := put(x, SpaceMeta, "k", "v", true); err != nil {
		t.Fatal(err)
	}
	mustClose(t, x)
	x = mustOpen(t, "d", &Options{FS: fs, ReadOnly: true})
	if x.Made() {
		t.Error("an index that was there was made")
	}
	if err := x.Remove(); err != kv.ErrReadOnly {
		t.Errorf("read-only: %v", err)
	}
	if v, err := x.Get(SpaceMeta, []byte("k")); err != nil || string(v) != "v" {
		t.Errorf("afterwards: %q, %v", v, err)
	}
	mustClose(t, x)
}

// stuck is a file system of which some files stay.
type stuck struct {
	vfs.FS
	why error
}

func (f stuck) Remove(name string) error {
	if strings.Contains(name, "MANIFEST") {
		return f.why
	}
	return f.FS.Remove(name)
}

// If files cannot be removed the index is closed, and what is left is taken up by
// who makes one.
func TestRemoveHalf(t *testing.T) {
	fs, boom := vfs.NewMem(), errors.New("boom")
	x := mustOpen(t, "d", small(stuck{fs, boom}))
	if err := x.Remove(); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if err := x.Close(); err != kv.ErrClosed {
		t.Errorf("closed: %v", err)
	}
	x = mustOpen(t, "d", small(fs))
	if !x.Made() {
		t.Error("it was still there")
	}
	mustClose(t, x)
}
