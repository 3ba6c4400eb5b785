//go:build unix

package zarrdb_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/zarrdb/zarrdb"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// look opens a database of another user, and prints the counter and whether a write is refused.
func look(dir string) {
	db, err := zarrdb.Open(bg, dir, nil)
	exitOn(err)
	s, err := db.At(bg, "")
	exitOn(err)
	b, err := kv.Get(bg, s, "counter/zarr.json")
	exitOn(err)
	_, err = db.Update(bg, "", "try", func(s *engine.Session) error { return s.Set(bg, "k", b) })
	fmt.Print(len(b) > 0, " ", errors.Is(err, zarrdb.ErrReadOnly))
	exitOn(errors.Join(s.Close(), db.Close()))
}

// A database of another user opens to read without an option.
func TestDatabaseOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	dir := counterDB(t)
	b, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Skip("the test program is not known:", err)
	}
	up := filepath.Dir(dir)
	exe := filepath.Join(up, "look")
	for _, d := range []string{up, filepath.Dir(up)} {
		err = errors.Join(err, os.Chmod(d, 0o755))
	}
	must.Do(t, errors.Join(err, os.WriteFile(exe, b, 0o755)))
	c := process(t, dir, "look")
	c.Path, c.Dir = exe, "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := c.Output(); err != nil || string(out) != "true true" {
		t.Errorf("%q, %v", out, err)
	}
}
