package index

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zarrdb/zarrdb/internal/must"
)

// Tidy removes the files of old logs, which Pebble then does without, and a checkpoint
// copies only what a log has written itself.
func TestTidyRemovesLogs(t *testing.T) {
	mem := vfs.NewCrashableMem()
	x := mustOpen(t, "db", &Options{FS: mem, Create: true, MemTableBytes: 1 << 20, ReserveBytes: -1})
	logs := func(dir string) (n int64) {
		t.Helper()
		for _, name := range logsOf(t, mem, dir) {
			fi := must.Get(mem.Stat(mem.PathJoin(dir, name)))(t)
			n += fi.Size()
		}
		return n
	}
	fill := func(from int) {
		t.Helper()
		for i := range 40 {
			must.Do(t, put(x, SpaceMeta, fmt.Sprint(from+i), strings.Repeat("x", 100_000), true))
		}
		must.Do(t, x.Flush())
	}
	for round := range 3 {
		fill(1000 * round)
		if n := logs("db"); n < 1<<20 {
			t.Fatalf("%d bytes of logs: they are not used again", n)
		}
		copied := fmt.Sprint("copy", round)
		must.Do(t, x.Checkpoint(copied))
		if n := logs(copied); n > 10_000 {
			t.Errorf("round %d: a checkpoint has %d bytes of logs", round, n)
		}
		mustClose(t, mustOpen(t, copied, &Options{FS: mem, ReadOnly: true}))
		must.Do(t, x.Tidy(t.Context(), 0))
		if n := logs("db"); n > 10_000 {
			t.Errorf("round %d: %d bytes of logs are left", round, n)
		}
	}
	crashed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0})
	mustClose(t, x)
	for _, fs := range []vfs.FS{mem, crashed} {
		x = mustOpen(t, "db", &Options{FS: fs})
		for _, key := range []string{"0", "1039", "2000", "2039"} {
			if v, err := x.Get(SpaceMeta, []byte(key)); err != nil || len(v) != 100_000 {
				t.Errorf("%s: %d bytes, %v", key, len(v), err)
			}
		}
		mustClose(t, x)
	}
}

// noLinks has no hard links, as FAT and exFAT.
type noLinks struct{ vfs.FS }

func (noLinks) Link(oldname, newname string) error {
	return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: syscall.EPERM}
}

// Where link answers EPERM, all that links copies.
func TestWithoutLinks(t *testing.T) {
	fs := noLinks{vfs.NewMem()}
	x := mustOpen(t, "db", &Options{FS: fs, Create: true})
	must.Do(t, x.Ingest(seqOf(pages(0, 3), nil)))
	must.Do(t, x.Checkpoint("copy"))
	mustClose(t, x)
	must.Do(t, Clone(fs, "copy", "clone"))
	must.Do(t, fs.RemoveAll("db"))
	x = mustOpen(t, "clone", &Options{FS: fs})
	defer mustClose(t, x)
	for _, p := range pages(0, 3) {
		if b, err := x.GetPage(t.Context(), p.Name); err != nil || !bytes.Equal(b, p.Bytes) {
			t.Errorf("%q, %v", b, err)
		}
	}
}
