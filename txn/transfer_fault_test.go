package txn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/race"
)

// After a power cut at any write, the destination of a transfer is what it was or
// what it was to become, and the same transfer goes on from there.
func TestTransferSurvivesCrashes(t *testing.T) {
	if race.Enabled {
		t.Skip("the work of one goroutine, many times")
	}
	points := 16
	if testing.Short() {
		points = 5
	}
	for _, kind := range carryings() {
		t.Run(kind.name, func(t *testing.T) {
			transferCrashes(t, kind, must.Seed(t), func(n int) bool { return n >= points })
		})
	}
}

// TestSoakTransferCrashes cuts the power at every write, as far as the time goes.
func TestSoakTransferCrashes(t *testing.T) {
	s := startSoak(t)
	for i, kind := range carryings() {
		over := s.part(i, len(carryings()))
		t.Run(kind.name, func(t *testing.T) {
			s.ops += transferCrashes(t, kind, s.seed(), func(n int) bool { return n > 0 && over() })
		})
	}
}

// transferCrashes cuts the power at writes in random order, until over says that
// so many are enough, and returns how many it were.
func transferCrashes(t *testing.T, kind carrying, seed uint64, over func(n int) bool) (n int) {
	rng := rand.New(rand.NewPCG(seed, 0))
	c := kind.prepare(t)
	disk, list := imagesOf(all(c.image), rng, 1)
	must.Do(t, c.run(disk))
	images := *list
	if len(images) < 10 {
		t.Fatalf("%d images", len(images))
	}
	at := 0
	defer func() {
		if t.Failed() {
			t.Logf("seed %d, write %d of %d", seed, at, len(images))
		}
	}()
	for _, at = range rng.Perm(len(images)) {
		if over(n) {
			break
		}
		n++
		c.again(t, images[at].fs)
	}
	return n
}

// A transfer that was ended copies what is left when it is run again.
func TestTransferIsTakenUpAgain(t *testing.T) {
	fs := vfs.NewMem()
	db := openTest(t, testOptions(fs))
	const values, size = 20, 100_000
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
	next := must.Get(db.Clone(bg, "copy", TransferOptions{}))(t)
	if next.PresentBytes == 0 || next.PresentBytes < r.PayloadBytes-size-8192 || next.PayloadBytes+next.PresentBytes < values*size ||
		next.PayloadBytes+next.PresentBytes > values*(size+8192) {
		t.Errorf("first %+v, then %+v", *r, *next)
	}
	sameVersions(t, db, openCopy(t, fs, "copy"))
}

func openPlain(t *testing.T, fs vfs.FS, dir string) *DB {
	t.Helper()
	db := must.Get(Open(dir, testOptions(fs)))(t)
	return db
}

// Backups, pushes and clones run while the source is written by several, expired
// and collected, and each is one state of it. So do those of a peer.
func TestTransferBesideWritersAndGC(t *testing.T) {
	t.Run("holder", func(t *testing.T) { transferBesideWriters(t, func(db *DB) *DB { return db }) })
	t.Run("peer", func(t *testing.T) { transferBesideWriters(t, func(db *DB) *DB { return remotePeer(t, db) }) })
}

func transferBesideWriters(t *testing.T, source func(*DB) *DB) {
	rounds := 8
	if testing.Short() {
		rounds = 4
	}
	fs := vfs.NewMem()
	o := testOptions(fs)
	o.Now = nil
	db := openTest(t, o)
	grow(t, db, 5, 0)
	must.Get(db.Clone(bg, "copy", TransferOptions{}))(t)
	to := openCopy(t, fs, "copy")
	from := source(db)
	var working sync.WaitGroup
	var stop atomic.Bool
	for w := range 3 {
		working.Go(func() {
			for i := 0; i < 100 && !stop.Load(); i++ {
				if err := writeBeside(db, w, i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	working.Go(func() {
		for !stop.Load() {
			if _, err := db.Expire(bg, ExpireOptions{Keep: 2}); err != nil {
				t.Error(err)
			}
			if _, err := db.GC(bg, GCOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	defer working.Wait()
	defer stop.Store(true)
	for n := range rounds {
		if n == rounds-1 { // the last one has everything
			stop.Store(true)
			working.Wait()
		}
		must.Get(from.Backup(bg, "backup", TransferOptions{}))(t)
		must.Get(from.Push(bg, to, TransferOptions{}))(t)
		looksLikeAVersion(t, to)
		if n%4 == 0 {
			dir := fmt.Sprint("clone", n)
			must.Get(from.Clone(bg, dir, TransferOptions{Depth: 1}))(t)
			c := openPlain(t, fs, dir)
			looksLikeAVersion(t, c)
			closeChecked(t, c)
		}
	}
	sameVersions(t, db, openCopy(t, fs, "backup"))
	if mustHead(t, to) != mustHead(t, db) {
		t.Error("heads differ")
	}
}

// writeBeside commits a value and its number together.
func writeBeside(db *DB, w, i int) error {
	s, err := db.Begin(bg, "main")
	if err != nil {
		return err
	}
	defer s.Abort()
	for key, value := range map[string]string{
		fmt.Sprintf("w%d/c/%d", w, i%7): big(fmt.Sprint("w", w, ",", i), 4000),
		fmt.Sprintf("w%d/n", w):         fmt.Sprint(i),
	} {
		if err := s.Set(bg, key, []byte(value)); err != nil {
			return err
		}
	}
	_, err = s.Commit(bg, CommitOptions{Message: "w"})
	return err
}

// looksLikeAVersion fails unless the newest value of each writer is that of its
// number.
func looksLikeAVersion(t *testing.T, db *DB) {
	t.Helper()
	mustBeSound(t, db)
	got := at(t, db, "main")
	for w := range 3 {
		n := got[fmt.Sprintf("w%d/n", w)]
		if n == "" {
			continue
		}
		i, err := strconv.Atoi(n)
		if err != nil || got[fmt.Sprintf("w%d/c/%d", w, i%7)] != big(fmt.Sprint("w", w, ",", i), 4000) {
			t.Fatalf("writer %d: the copy is not a version of the source: n is %s", w, n)
		}
	}
}
