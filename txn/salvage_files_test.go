package txn

import (
	"errors"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
)

// killedHistory is salvageHistory and one commit more, killed then: of what was not
// synced that many percent are there.
func killedHistory(t *testing.T, percent int) (fs *vfs.MemFS, before, last map[string]string) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	_, before = salvageHistory(t, mem)
	o := testOptions(mem)
	o.Policy = toyPolicy{}
	db, err := Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	update(t, db, "main", map[string]string{"small": "later", "a/b/c/0/0": payload("later")})
	last = at(t, db, "main")
	return cloneFS(mem, percent), before, last
}

func cloneFS(mem *vfs.MemFS, percent int) *vfs.MemFS {
	return mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(uint64(percent), 1))})
}

// Whichever file of the index is gone, opening says so and names the command that
// helps, or every commit is there.
func TestDeletedIndexFiles(t *testing.T) {
	for how, make := range map[string]func() (*vfs.MemFS, map[string]string){
		"closed": func() (*vfs.MemFS, map[string]string) {
			mem := vfs.NewCrashableMem()
			_, last := salvageHistory(t, mem)
			return mem, last
		},
		"killed":  func() (*vfs.MemFS, map[string]string) { fs, _, last := killedHistory(t, 100); return fs, last },
		"crashed": func() (*vfs.MemFS, map[string]string) { fs, _, last := killedHistory(t, 0); return fs, last },
		"torn":    func() (*vfs.MemFS, map[string]string) { fs, _, last := killedHistory(t, 50); return fs, last },
	} {
		t.Run(how, func(t *testing.T) {
			mem, last := make()
			lost := 0
			for _, path := range indexFiles(t, mem, "") {
				fs := cloneFS(mem, 100)
				if err := fs.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				o := testOptions(fs)
				o.Policy = toyPolicy{}
				db, err := Open("db", o)
				if err != nil {
					kind, _, _ := strings.Cut(strings.TrimPrefix(fs.PathBase(path), "marker."), ".")
					if !errors.Is(err, ErrIndexLost) || !errors.Is(err, kv.ErrCorrupt) || !strings.Contains(err.Error(), kind) ||
						!strings.Contains(err.Error(), "fsck --salvage") {
						t.Errorf("without %s: %v", path, err)
					}
					lost++
					continue
				}
				if got := at(t, db, "main"); !maps.Equal(got, last) {
					t.Errorf("without %s there are %d values of %d, or others", path, len(got), len(last))
				}
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			}
			if lost < 3 {
				t.Errorf("only %d files were missed", lost)
			}
		})
	}
}
