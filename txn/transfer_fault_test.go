package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// After a power cut at any write, the destination of a transfer is what it was or
// what it was to become, and the same transfer goes on from there.
func TestTransferSurvivesCrashes(t *testing.T) {
	for _, kind := range []string{"clone", "backup", "push"} {
		t.Run(kind, func(t *testing.T) { testTransferCrashes(t, kind) })
	}
}

func testTransferCrashes(t *testing.T, kind string) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	mem := vfs.NewCrashableMem()
	var images []*vfs.MemFS
	watching := false
	fs := crashFS(mem, func(op errorfs.Op) error {
		if watching && (strings.Contains(op.Path, "copy") || op.Path == "") {
			cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rand.New(rand.NewPCG(rng.Uint64(), 0))}
			// The index makes a manifest and the mark that leads to it known by one
			// sync of their directory, which disks do, and this one may tear.
			if strings.Contains(op.Path, "marker") || strings.HasSuffix(op.Path, "/index") {
				cfg.UnsyncedDataPercent = 0
			}
			images = append(images, mem.CrashClone(cfg))
		}
		return nil
	})
	src, err := Create("src", testOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	grow(t, src, 6, 0)
	run := func(fs vfs.FS) error {
		db := src
		if fs != src.opts.FS {
			var err error
			if db, err = Open("src", testOptions(fs)); err != nil {
				return err
			}
			defer db.Close()
		}
		switch kind {
		case "backup":
			_, err := db.Backup(bg, "copy", TransferOptions{})
			return err
		case "clone":
			_, err := db.Clone(bg, "copy", TransferOptions{})
			if errors.Is(err, ErrExists) {
				return nil // it was complete
			}
			return err
		}
		to, err := Open("copy", testOptions(fs))
		if err != nil {
			return err
		}
		_, err = db.Push(bg, to, TransferOptions{})
		return errors.Join(err, to.Close())
	}
	var old CommitID
	if kind != "clone" { // the second transfer is cut
		old = mustHead(t, src)
		if _, err := src.Backup(bg, "copy", TransferOptions{}); err != nil {
			t.Fatal(err)
		}
		grow(t, src, 3, 6)
	}
	watching = true
	if err := run(fs); err != nil {
		t.Fatal(err)
	}
	watching = false
	want := at(t, src, "main")
	head := mustHead(t, src)
	if err := src.Close(); err != nil {
		t.Fatal(err)
	}
	if len(images) < 10 {
		t.Fatalf("%d images", len(images))
	}
	step := 1 + len(images)/60
	if testing.Short() {
		step = 1 + len(images)/15
	}
	for i := 0; i < len(images); i += step {
		fs := images[i]
		db, err := Open("copy", testOptions(fs))
		switch {
		case errors.Is(err, ErrNotDatabase) && kind == "clone":
		case err != nil:
			t.Fatalf("image %d of %d: %v", i, len(images), err)
		default:
			mustBeSound(t, db)
			if got := mustHead(t, db); got != head && (got != old || kind == "clone") {
				t.Fatalf("image %d: head %v, neither %v nor %v", i, got, old, head)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := run(fs); err != nil {
			t.Fatalf("image %d: again: %v", i, err)
		}
		if db, err = Open("copy", testOptions(fs)); err != nil {
			t.Fatal(err)
		}
		if got := at(t, db, "main"); !maps.Equal(got, want) {
			t.Fatalf("image %d: the copy differs", i)
		}
		closeChecked(t, db)
	}
}

// A transfer that was ended copies what is left when it is run again.
func TestTransferIsTakenUpAgain(t *testing.T) {
	fs := vfs.NewMem()
	db := openTest(t, testOptions(fs))
	const values, size = 20, 300_000
	all := map[string]string{}
	for i := range values {
		all[fmt.Sprintf("a/c/%d", i)] = big(fmt.Sprint("v", i), size)
	}
	update(t, db, "main", all)
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	copied := int64(0)
	r, err := db.Clone(ctx, "copy", TransferOptions{Progress: func(p TransferProgress) {
		if p.Phase == "copy" {
			copied = p.Done
			cancel()
		}
	}})
	if copied == 0 || !errors.Is(err, context.Canceled) || r.PayloadBytes == 0 || r.PayloadBytes >= values*size {
		t.Fatalf("interrupted: %+v, %v", r, err)
	}
	if _, err := Open("copy", testOptions(fs)); !errors.Is(err, ErrNotDatabase) {
		t.Fatalf("half a clone opens: %v", err)
	}
	next, err := db.Clone(bg, "copy", TransferOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if next.PresentBytes != r.PayloadBytes || next.PayloadBytes+r.PayloadBytes < values*size ||
		next.PayloadBytes+r.PayloadBytes > values*(size+8192) {
		t.Errorf("first %+v, then %+v", *r, *next)
	}
	sameVersions(t, db, openCopy(t, fs, "copy"))
}

// An error of the file system at any write of the destination is an error of
// the transfer, and the next one is complete.
func TestTransferFails(t *testing.T) {
	mem := vfs.NewMem()
	db := openTest(t, testOptions(mem))
	grow(t, db, 4, 0)
	if _, err := db.Backup(bg, "copy", TransferOptions{}); err != nil {
		t.Fatal(err)
	}
	failing := errors.New("the disk says no")
	for k := 0; ; k++ {
		grow(t, db, 1, 10+k)
		n := 0
		fs := crashOrFail(mem, func() error {
			if n++; n > k {
				return failing
			}
			return nil
		})
		opts := testOptions(fs)
		to, err := Open("copy", opts)
		if err != nil {
			continue
		}
		_, err = db.Push(bg, to, TransferOptions{})
		moved := mustHead(t, to) == mustHead(t, db)
		_ = to.Close()
		if err == nil && !moved {
			t.Fatalf("write %d failed, and nobody was told", k)
		}
		again := openPlain(t, mem, "copy")
		mustBeSound(t, again)
		if _, err := db.Push(bg, again, TransferOptions{}); err != nil {
			t.Fatalf("after a failure of write %d: %v", k, err)
		}
		if got, want := at(t, again, "main"), at(t, db, "main"); !maps.Equal(got, want) {
			t.Fatalf("after a failure of write %d: versions differ", k)
		}
		closeChecked(t, again)
		if err == nil && n <= k {
			return // nothing failed any more
		}
	}
}

func openPlain(t *testing.T, fs vfs.FS, dir string) *DB {
	t.Helper()
	db, err := Open(dir, testOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// crashOrFail asks before each write to packs.
func crashOrFail(fs vfs.FS, before func() error) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.Contains(op.Path, "packs/") {
			return before()
		}
		return nil
	}))
}

// Backups and pushes run while the source is written, expired and collected, and
// each is one state of it.
func TestTransferBesideWritersAndGC(t *testing.T) {
	fs := vfs.NewMem()
	o := testOptions(fs)
	o.Now = nil
	db := openTest(t, o)
	grow(t, db, 5, 0)
	if _, err := db.Clone(bg, "copy", TransferOptions{}); err != nil {
		t.Fatal(err)
	}
	to := openCopy(t, fs, "copy")
	done := make(chan error, 1)
	go func() {
		done <- func() error {
			for i := range 40 {
				s, err := db.Begin(bg, "main")
				if err != nil {
					return err
				}
				err = errors.Join(s.Set(bg, fmt.Sprintf("a/c/%d", i%7), []byte(big(fmt.Sprint("w", i), 4000))),
					s.Set(bg, "n", []byte(fmt.Sprint(i))))
				if err != nil {
					return err
				}
				if _, err := s.Commit(bg, CommitOptions{Message: "w"}); err != nil {
					return err
				}
				if i%5 == 4 {
					if _, err := db.Expire(bg, ExpireOptions{Keep: 2}); err != nil {
						return err
					}
					if _, err := db.GC(bg, GCOptions{}); err != nil {
						return err
					}
				}
			}
			return nil
		}()
	}()
	for running := true; running; {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			running = false
		default:
		}
		if _, err := db.Backup(bg, "backup", TransferOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Push(bg, to, TransferOptions{}); err != nil {
			t.Fatal(err)
		}
		mustBeSound(t, to)
		if got := at(t, to, "main"); got["n"] != "" {
			i, err := strconv.Atoi(got["n"])
			if err != nil || got[fmt.Sprintf("a/c/%d", i%7)] != big(fmt.Sprint("w", i), 4000) {
				t.Fatalf("the copy is no version of the source: %d keys, n is %s", len(got), got["n"])
			}
		}
	}
	sameVersions(t, db, openCopy(t, fs, "backup"))
	if mustHead(t, to) != mustHead(t, db) {
		t.Error("heads differ")
	}
}
