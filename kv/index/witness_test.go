package index

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/race"
	"github.com/zarrdb/zarrdb/kv"
)

func mustList(t *testing.T, fs vfs.FS, dir string) []string {
	t.Helper()
	names := must.Get(fs.List(dir))(t)
	return names
}

// logsOf returns the logs of an index.
func logsOf(t *testing.T, fs vfs.FS, dir string) (names []string) {
	t.Helper()
	for _, name := range mustList(t, fs, dir) {
		if strings.HasSuffix(name, ".log") {
			names = append(names, name)
		}
	}
	return names
}

// rewrite replaces a file by what change makes of it.
func rewrite(t *testing.T, fs vfs.FS, path string, change func([]byte) []byte) {
	t.Helper()
	f := must.Get(fs.Open(path))(t)
	b, err := io.ReadAll(f)
	must.Do(t, errors.Join(err, f.Close()))
	must.Do(t, writeSmall(fs, path, change(b)))
}

// Damage of any file of an index that was closed, or of a checkpoint, is an error of
// Open or of a read, or everything is there: nothing is left out silently.
func TestDamageOfAClosedIndex(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	const commits = 12
	size := func(i int) int { return 100 + 3000*(i%7) }
	build := func(closes int) *vfs.MemFS {
		mem := vfs.NewCrashableMem()
		for c := range closes {
			x := mustOpen(t, "d", small(mem))
			for i := c * commits / closes; i < (c+1)*commits/closes; i++ {
				must.Do(t, put(x, SpaceMeta, fmt.Sprint(i), strings.Repeat("v", size(i)), i%3 == 0))
				if i == commits/2 {
					must.Do(t, x.Flush())
				}
			}
			if c == closes-1 {
				must.Do(t, x.Checkpoint("copy"))
			}
			mustClose(t, x)
		}
		return mem
	}
	noticed, places := 0, 12
	if race.Enabled {
		places = 4
	}
	try := func(t *testing.T, image *vfs.MemFS, dir, what string, change func(fs vfs.FS) error) {
		t.Helper()
		fs := image.CrashClone(vfs.CrashCloneCfg{})
		must.Do(t, change(fs))
		x, err := Open(dir, small(fs))
		if err != nil {
			if !errors.Is(err, kv.ErrCorrupt) && !errors.Is(err, ErrNotExist) && !errors.Is(err, ErrFormat) {
				t.Errorf("%s: %v", what, err)
			}
			noticed++
			return
		}
		defer x.Close()
		for i := range commits {
			v, err := x.Get(SpaceMeta, fmt.Append(nil, i))
			if err == nil && len(v) != size(i) || errors.Is(err, ErrNotFound) {
				t.Errorf("%s: commit %d is gone: %v", what, i, err)
				return
			}
		}
	}
	for _, closes := range []int{1, 3} {
		image := build(closes)
		for _, dir := range []string{"d", "copy"} {
			for _, name := range mustList(t, image, dir) {
				if name == lockFile || name == holderFile || isTable(name) { // a damaged table is an error of reads
					continue
				}
				path := image.PathJoin(dir, name)
				what := fmt.Sprintf("%d closes, %s", closes, path)
				try(t, image, dir, what+" deleted", func(fs vfs.FS) error { return fs.Remove(path) })
				info := must.Get(image.Stat(path))(t)
				step := max(1, int(info.Size())/places)
				for at := 0; at < int(info.Size()); at += step {
					try(t, image, dir, fmt.Sprintf("%s cut off at %d", what, at), func(fs vfs.FS) error {
						rewrite(t, fs, path, func(b []byte) []byte { return b[:at] })
						return nil
					})
					try(t, image, dir, fmt.Sprintf("%s, a flipped bit in byte %d", what, at), func(fs vfs.FS) error {
						rewrite(t, fs, path, func(b []byte) []byte { b[at] ^= 0x20; return b })
						return nil
					})
				}
			}
		}
	}
	if noticed == 0 {
		t.Error("no damage was noticed")
	}
}

// The file is a lower bound: an index that was written to and killed since is sound.
func TestWitnessIsALowerBound(t *testing.T) {
	mem := vfs.NewCrashableMem()
	x := mustOpen(t, "d", small(mem))
	must.Do(t, put(x, SpaceMeta, "a", "1", true))
	mustClose(t, x)
	x = mustOpen(t, "d", small(mem))
	must.Do(t, put(x, SpaceMeta, "a", "2", true))
	killed := mem.CrashClone(vfs.CrashCloneCfg{})
	mustClose(t, x)
	for _, fs := range []vfs.FS{killed, mem} {
		for range 2 { // for writing, and once more
			x := mustOpen(t, "d", small(fs))
			if v, err := x.Get(SpaceMeta, []byte("a")); err != nil || string(v) != "2" {
				t.Errorf("%q, %v", v, err)
			}
			mustClose(t, x)
		}
	}
}
