package temp

import (
	"github.com/zarrdb/zarrdb/internal/must"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Names lie beside the path, are known again, differ, and do not grow with it.
func TestName(t *testing.T) {
	path := filepath.Join("a", "b", strings.Repeat("x", 250))
	seen := map[string]bool{}
	for range 100 {
		name := Name(path)
		if filepath.Dir(name) != filepath.Join("a", "b") || !Is(filepath.Base(name)) || len(filepath.Base(name)) > 64 {
			t.Fatalf("%q", name)
		}
		if seen[name] {
			t.Fatalf("%q came twice", name)
		}
		seen[name] = true
	}
	for _, name := range []string{"", "c", "zarr.json", Prefix[1:], "x" + Prefix} {
		if Is(name) {
			t.Errorf("%q is not a temporary", name)
		}
	}
}

// A directory can be synced; one that is closed is an error.
func TestSyncDir(t *testing.T) {
	f := must.Get(os.Open(t.TempDir()))(t)
	if err := SyncDir(f); err != nil {
		t.Error(err)
	}
	f.Close()
	if err := SyncDir(f); err == nil && os.PathSeparator == '/' {
		t.Error("a closed directory was synced")
	}
}
