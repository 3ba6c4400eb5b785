package txn

import (
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"io/fs"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
)

// Where chunks that stay lie between those that go, the file system gets holes: the
// space comes back without a pack being written anew.
func TestGCMakesHoles(t *testing.T) {
	if !punches(t) {
		t.Skip("this file system makes no holes")
	}
	o := testOptions(nil)
	dir := t.TempDir() + "/db"
	db := must.Get(Create(dir, o))(t)
	const chunks, chunk = 16, 256 << 10
	rng := rand.New(rand.NewPCG(2, 1))
	write := func(every int) {
		s := mustBegin(t, db)
		for i := 0; i < chunks; i += every {
			b := make([]byte, chunk)
			for j := range b {
				b[j] = byte(rng.Uint32())
			}
			must.Do(t, s.Set(bg, fmt.Sprint("c/", i), b))
		}
		must.Get(s.Commit(bg, CommitOptions{}))(t)
	}
	write(1)
	write(2)
	mustExpire(t, db, ExpireOptions{Keep: 1})
	r := mustGC(t, db)
	after := allocated(t, dir+"/packs")
	t.Logf("%d bytes are live, %d allocated; %+v", chunks*chunk, after, r)
	if r.Punched == 0 || r.Rewritten != 0 || after > chunks*chunk*11/10 {
		t.Errorf("%d bytes are allocated for %d: %+v", after, chunks*chunk, r)
	}
	if again := mustGC(t, db); again.FreedBytes != 0 {
		t.Errorf("a second collection: %+v", again)
	}
	closeChecked(t, db)

	// A copy in which the holes are zeros gets them again.
	cp := t.TempDir() + "/copy"
	must.Do(t, os.CopyFS(cp, writesZeros{os.DirFS(dir)}))
	db = must.Get(Open(cp, o))(t)
	filled := allocated(t, cp+"/packs")
	plan := must.Get(db.GC(bg, GCOptions{DryRun: true}))(t)
	r = mustGC(t, db)
	if got := allocated(t, cp+"/packs"); filled < after*5/4 || got > after*11/10 || r.FreedBytes < filled-after*11/10 || plan.FreedBytes < r.FreedBytes/2 {
		t.Errorf("%d bytes were allocated, %d in the copy, then %d: %+v, by the dry run %+v", after, filled, got, r, plan)
	}
	if again := mustGC(t, db); again.FreedBytes != 0 {
		t.Errorf("a second collection of the copy: %+v", again)
	}
	closeChecked(t, db)
}

// writesZeros is a directory whose files io.Copy can only copy by reading them.
type writesZeros struct{ fs.FS }

func (f writesZeros) Open(name string) (fs.File, error) {
	file, err := f.FS.Open(name)
	if d, ok := file.(fs.ReadDirFile); ok && err == nil {
		if fi, err := file.Stat(); err == nil && fi.IsDir() {
			return d, nil
		}
	}
	return struct{ fs.File }{file}, err
}

// punches reports whether the file system of temporary files makes holes.
func punches(t *testing.T) bool {
	t.Helper()
	f := must.Get(os.Create(t.TempDir() + "/holes"))(t)
	defer f.Close()
	must.Get(f.Write(make([]byte, 64<<10)))(t)
	const keepSize, punchHole = 1, 2
	return syscall.Fallocate(int(f.Fd()), keepSize|punchHole, 0, 64<<10) == nil
}
