package txn

import (
	"errors"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// A power loss at any write of an erasure, which another process asks for, leaves all branches and tags where they
// were or where they go. All versions are as before, but for what was erased.
func TestErase(t *testing.T) {
	t.Parallel()
	seed := must.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 5))
	var images []*vfs.MemFS
	disk := crashtest.NewDisk(vfs.NewCrashableMem(), func(d *crashtest.Disk, op errorfs.Op) error {
		if !strings.Contains(op.Path, "/"+checkpointDir+"/") {
			images = append(images, d.Cut(rng.IntN(101), rng.IntN(101), rng))
		}
		return nil
	})
	disk.On(false)
	r := collectable(t, seed, disk, 30)
	db, branches := r.db, branchesOf(r.db)
	head := branches[0].Commit
	must.Get(db.Merge(bg, branches[len(branches)-1].Name, head, CommitOptions{Choices: []PathChoice{{Choice: Ours}}}))(t)
	must.Do(t, db.CreateTag(bg, "v1", head))
	must.Get(db.Expire(bg, ExpireOptions{Keep: 8}))(t)
	peer := NewPeer(db.Dir(), db.Identity(), db.Remote(), testOptions(nil))
	for id := range r.sessions {
		if _, err := db.Erase(bg, "d1", EraseOptions{}); err != nil && !errors.Is(err, ErrErase) {
			t.Error(err)
		}
		must.Do(t, db.AbortSession(bg, id))
	}
	must.Do(t, db.KeepVersion(bg, "job", head, ""))
	if _, err := peer.Erase(bg, "d1", EraseOptions{}); !errors.Is(err, ErrErase) {
		t.Errorf("with a version that is kept: %v", err)
	}
	must.Do(t, db.EndKept(bg, "job"))
	must.Do(t, db.Protect(bg, "v1", true, Protected))
	if _, err := peer.Erase(bg, "d1", EraseOptions{}); !errors.Is(err, ErrProtected) {
		t.Errorf("with a protected tag: %v", err)
	}
	must.Do(t, db.Protect(bg, "v1", true, Unprotected))
	before := refsOf(db)
	want := map[string]map[string]string{}
	log := map[string][]string{}
	for ref := range before {
		_, name, _ := strings.Cut(ref, "/")
		want[name], log[name] = at(t, db, name), messages(t, db, name)
		maps.DeleteFunc(want[name], func(key, _ string) bool { return strings.HasPrefix(key, "d1/") })
	}
	dry := must.Get(peer.Erase(bg, "d1", EraseOptions{DryRun: true}))(t)
	must.Do(t, db.Sync(bg))
	disk.On(true)
	report := must.Get(peer.Erase(bg, "d1", EraseOptions{}))(t)
	disk.On(false)
	if len(report.Moves) == 0 || len(dry.Moves) != len(report.Moves) || dry.Rewritten != report.Rewritten || dry.Dropped != report.Dropped {
		t.Errorf("it is %+v, a dry run %+v", report, dry)
	}
	after := refsOf(db)
	check := func(db *DB) {
		t.Helper()
		mustBeSound(t, db)
		for name, want := range want {
			if got := at(t, db, name); !maps.Equal(got, want) {
				t.Errorf("%s has %d keys, want %d", name, len(got), len(want))
			}
			if got := messages(t, db, name); strings.Join(got, "|") != strings.Join(log[name], "|") {
				t.Errorf("history of %s is %q, want %q", name, got, log[name])
			}
		}
		for id := range r.versions {
			if v, err := db.Snapshot(bg, id); err == nil {
				for key := range contentsIn(v) {
					if strings.HasPrefix(key, "d1/") {
						t.Errorf("version %s has %s", id.Short(), key)
						break
					}
				}
				must.Do(t, v.Close())
			} else if !errors.Is(err, ErrExpired) {
				t.Error(err)
			}
		}
	}
	check(db)
	if _, err := db.UndoBranch(bg, branches[0].Name); !errors.Is(err, ErrExpired) {
		t.Errorf("undo: %v", err)
	}
	if _, err := db.Erase(bg, "d1", EraseOptions{}); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("erased again: %v", err)
	}
	must.Do(t, peer.Close())
	gc := must.Get(db.GC(bg, GCOptions{}))(t)
	if check(db); gc.Erased || len(db.roots) > 0 {
		t.Errorf("%d roots are held, and the collection is %+v", len(db.roots), gc)
	}
	// What is erased while a collection runs is left to the next one.
	update(t, db, "", map[string]string{"d7/a": big("a", 9000), "d8/a": big("b", 9000)})
	must.Get(db.Erase(bg, "d7", EraseOptions{}))(t)
	meanwhile := false
	must.Get(db.GC(bg, GCOptions{Progress: func(p GCProgress) {
		if !meanwhile && p.Phase == "reclaim" {
			meanwhile = true
			must.Get(db.Erase(bg, "d8", EraseOptions{}))(t)
		}
	}}))(t)
	if left := must.Get(catalog.Erased(db.idx))(t); !meanwhile || left == "" {
		t.Errorf("erased meanwhile: %v, and the collection left %q", meanwhile, left)
	}
	must.Get(db.GC(bg, GCOptions{}))(t)
	if left := must.Get(catalog.Erased(db.idx))(t); left != "" {
		t.Errorf("the next one left %q", left)
	}
	must.Do(t, db.Close())
	states := map[bool]int{}
	for i, fs := range images {
		o := *r.o
		o.FS = fs
		db := must.Get(Open("db", &o))(t)
		refs := refsOf(db)
		moved := maps.Equal(refs, after)
		if states[moved]++; !moved && !maps.Equal(refs, before) {
			t.Fatalf("image %d of %d: refs %v, want those before, %v, or after, %v", i, len(images), refs, before, after)
		}
		if moved {
			check(db)
		}
		closeChecked(t, db)
	}
	if states[false] == 0 {
		t.Errorf("images with refs that moved: %v", states)
	}
}
