package pack

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/internal/osfs"
)

// A pack that another program has open, and does not share for deletion, keeps its
// bytes until a later Reclaim.
func TestReclaimOfAnotherProgramsFile(t *testing.T) {
	s, all := sealedWith(t, filepath.Join(t.TempDir(), "packs"), osfs.FS, 70_000, 90_000, 70_000)
	id := all[0].Pack
	for _, live := range [][]Extent{{extentOf(all[0])}, nil} {
		foreign, err := os.Open(s.path(id))
		if err != nil {
			t.Fatal(err)
		}
		defer foreign.Close()
		r, err := s.Reclaim(bg, id, live, math.MaxUint64)
		if err != nil || !r.Leased || r.Held == 0 || r.Bytes > 0 || r.Removed || r.Rewritten {
			t.Fatalf("%d live, while it is open: %+v, %v", len(live), r, err)
		}
		for _, a := range all[:len(live)] {
			if b, err := readAll(s, a); err != nil || uint64(len(b)) != a.Length {
				t.Fatalf("%d bytes, %v", len(b), err)
			}
		}
		must.Do(t, foreign.Close())
		r, err = s.Reclaim(bg, id, live, math.MaxUint64)
		if err != nil || r.Leased || r.Bytes == 0 || r.Removed != (live == nil) {
			t.Fatalf("%d live, after it was closed: %+v, %v", len(live), r, err)
		}
	}
}
