package index

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
)

// TestGate makes a writer wait for compactions that never catch up, and lets
// it go in each of the three ways.
func TestGate(t *testing.T) {
	for _, way := range []string{"compaction", "failure", "close"} {
		t.Run(way, func(t *testing.T) {
			guard := newGuardFS(vfs.NewMem(), "d", 1)
			var g gate
			g.init(guard)
			guard.onFail = g.wake
			var u usage
			u.init()
			g.pass(func() int { t.Fatal("asked without a flush"); return 0 }, u.closed)

			g.check.Store(true)
			asked := make(chan struct{})
			answer := make(chan int)
			done := make(chan struct{})
			go func() {
				defer close(done)
				g.pass(func() int {
					asked <- struct{}{}
					return <-answer
				}, u.closed)
			}()
			<-asked
			answer <- stopSublevels
			g.wake() // a compaction that did not help
			<-asked
			answer <- stopSublevels + 1
			switch way {
			case "compaction":
				g.wake()
				<-asked
				answer <- stopSublevels - 1
			case "failure":
				guard.fail("write", "x", errors.New("broken"))
			case "close":
				u.close()
				g.wake()
			}
			<-done
			if way == "compaction" && g.check.Load() {
				t.Error("the gate is still closed")
			}
		})
	}
}

// TestFrozen looks at what a failed index does to its directory: nothing.
func TestFrozen(t *testing.T) {
	mem := vfs.NewMem()
	must.Do(t, mem.MkdirAll("d", 0o777))
	g := newGuardFS(mem, "d", 1)
	g.opened()
	write := func(name string, content string) {
		t.Helper()
		f, err := g.Create(name, "pebble-memtable-flush")
		must.Do(t, err)
		_, err = f.Write([]byte(content))
		must.Do(t, errors.Join(err, f.Sync(), f.Close()))
	}
	write("d/1.log", "log")
	write("d/2.sst", "table")
	g.fail("write", "d/1.log", errors.New("broken"))
	before := mem.String()

	write("d/3.log", "more")
	write("d/4.sst", "new table")
	for name, err := range map[string]error{
		"remove":        errors.Join(g.Remove("d/1.log"), g.Remove("d/2.sst")),
		"remove all":    g.RemoveAll("d"),
		"rename":        g.Rename("d/1.log", "d/5.log"),
		"make":          g.MkdirAll("d", 0o777),
		"sync the rest": func() error { d, _ := g.OpenDir("d"); return errors.Join(d.Sync(), d.Close()) }(),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if f, err := g.ReuseForWrite("d/1.log", "d/6.log", ""); err != nil {
		t.Error(err)
	} else if _, err := f.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if err := g.Link("d/2.sst", "d/7.sst"); !errors.Is(err, ErrFailed) {
		t.Errorf("link: %v", err)
	}
	if after := mem.String(); after != before {
		t.Errorf("the directory changed from\n%s\nto\n%s", before, after)
	}
	// Tables old and new can be read.
	for name, want := range map[string]string{"d/2.sst": "table", "d/4.sst": "new table"} {
		if b, err := ReadSmall(g, name); err != nil || string(b) != want {
			t.Errorf("%s: %q %v", name, b, err)
		}
		if fi, err := g.Stat(name); err != nil || fi.Size() != int64(len(want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A compaction waits for Close.
	done := make(chan error)
	go func() {
		_, err := g.Create("d/8.sst", "pebble-compaction")
		done <- err
	}()
	g.stop()
	if err := <-done; !errors.Is(err, ErrFailed) {
		t.Errorf("compaction: %v", err)
	}
}

// TestTableErrors fails table after table: Pebble tries again, until it is too
// often.
func TestTableErrors(t *testing.T) {
	g := newGuardFS(vfs.NewMem(), "d", 1)
	for i := range maxTableErrors {
		if g.isFailed() {
			t.Fatalf("failed after %d", i)
		}
		if i == 5 {
			g.tableDone("d/1.sst", nil) // one that worked
			for range i {
				g.tableDone("d/1.sst", errors.New("broken"))
			}
		}
		g.tableDone("d/1.sst", errors.New("broken"))
	}
	if !errors.Is(g.err(), ErrFailed) {
		t.Fatal("not failed")
	}
}
