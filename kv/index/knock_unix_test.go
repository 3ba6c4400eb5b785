//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package index

import (
	"os"
	"path/filepath"
	"testing"
)

// A knock is heard until the process has the lock, and leaves nothing in the directory.
func TestKnock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	mustClose(t, mustOpen(t, dir, &Options{Create: true}))
	if Knocked(dir) {
		t.Error("nobody knocks")
	}
	names := listing(t, dir)
	locked := &LockedError{Dir: dir}
	locked.Knock()
	locked.Knock() // goes on
	for range 2 {  // listening does not end it
		if !Knocked(dir) {
			t.Error("the knock is not heard")
		}
	}
	if now := listing(t, dir); len(now) != len(names) {
		t.Errorf("files %v, then %v", names, now)
	}
	x := mustOpen(t, dir, nil)
	if Knocked(dir) {
		t.Error("it knocks and has the lock")
	}
	mustClose(t, x)
	locked.Dir = filepath.Join(dir, "missing")
	locked.Knock()
	if _, err := os.Stat(locked.Dir); err == nil || Knocked(locked.Dir) {
		t.Error("a knock made the directory")
	}
}

// The holder file tells machines apart by the boot id. Two containers of one machine are one host.
func TestHolderHere(t *testing.T) {
	host, _ := os.Hostname()
	boot := bootID()
	for _, c := range []struct {
		h    Holder
		want bool
	}{
		{Holder{Host: host}, true},
		{Holder{Host: host + "x"}, false},
		{Holder{Host: host + "x", Boot: boot}, boot != ""},
		{Holder{Host: host, Boot: "another"}, boot == ""},
	} {
		if got := c.h.Here(); got != c.want {
			t.Errorf("%+v: %v", c.h, got)
		}
	}
}
