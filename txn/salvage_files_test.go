package txn

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// Whichever file of the index is gone, opening says so and names the command that
// helps, or every commit is there.
func TestDeletedIndexFiles(t *testing.T) {
	mem := vfs.NewCrashableMem()
	_, last := salvageHistory(t, mem)
	lost := 0
	for _, path := range indexFiles(t, mem, "") {
		fs := all(mem)
		must.Do(t, fs.RemoveAll(path))
		db, err := Open("db", testOptions(fs))
		if err != nil {
			if !errors.Is(err, ErrIndexLost) || !errors.Is(err, kv.ErrCorrupt) || !strings.Contains(err.Error(), "fsck --salvage") {
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
}
