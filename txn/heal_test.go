package txn

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/race"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// sharedHistory is a database with a payload that several versions, arrays and keys name,
// and the contents of its versions.
func sharedHistory(t *testing.T, fs vfs.FS) (*DB, map[string]map[string]string) {
	t.Helper()
	db := must.Get(Create("db", testOptions(fs)))(t)
	t.Cleanup(func() { db.Close() })
	values := map[string]string{"a/zarr.json": "array f=c/:/:1", "doc": payload("doc")}
	for i := range 6 {
		values[fmt.Sprintf("a/c/%d", i)] = big(fmt.Sprint("chunk ", i), 700+i*40_000)
	}
	update(t, db, "main", values)
	s := mustBegin(t, db)
	must.Do(t, s.Copy(bg, nil, "a", "b"))
	must.Get(s.Commit(bg, CommitOptions{}))(t)
	must.Do(t, db.CreateTag(bg, "v1", mustHead(t, db)))
	update(t, db, "main", map[string]string{"a/c/0": big("other", 900)})
	return db, versionsOf(t, db)
}

// versionsOf reads everything at the branch main, the tag v1 and the version before it.
func versionsOf(t *testing.T, db *DB) map[string]map[string]string {
	t.Helper()
	out := map[string]map[string]string{}
	for _, rev := range []string{"main", "v1", "v1~1"} {
		out[rev] = at(t, db, rev)
	}
	return out
}

func sameContents(t *testing.T, db *DB, want map[string]map[string]string) {
	t.Helper()
	mustBeSound(t, db)
	for rev, got := range versionsOf(t, db) {
		if !maps.Equal(got, want[rev]) {
			t.Errorf("%s has other contents", rev)
		}
	}
}

// A write of the bytes that a key has heals them in every version and array, by each way to
// write, and says so. Sound bytes are no change.
func TestWriteHealsDamage(t *testing.T) {
	for name, write := range map[string]func(s *Session, key, value string) error{
		"set": func(s *Session, key, value string) error { return s.Set(bg, key, []byte(value)) },
		"twice": func(s *Session, key, value string) error {
			return errors.Join(s.Set(bg, key, []byte("1")), s.Set(bg, key, []byte(value)))
		},
		"after equal ones": func(s *Session, key, value string) error {
			return errors.Join(s.Set(bg, "doc", []byte(payload("doc"))), s.Set(bg, key, []byte(value)))
		},
		"bulk": func(s *Session, key, value string) error {
			b, err := s.Bulk(bg, "", true)
			if err == nil {
				err = errors.Join(b.Set(bg, "doc", []byte(payload("doc"))), b.Set(bg, key, []byte(value)), b.Finish(bg))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			db, want := sharedHistory(t, fs)
			base := mustHead(t, db)
			for _, damage := range []bool{true, false} {
				if damage {
					damageOf(t, db, fs, "main", "a/c/4")
				}
				s := mustBegin(t, db)
				must.Do(t, write(s, "a/c/4", want["main"]["a/c/4"]))
				c, err := s.Commit(bg, CommitOptions{})
				if err != nil || c.ID != base || (s.Healed() == 1) != damage {
					t.Errorf("commit %v of %v, %d healed, %v", c, base, s.Healed(), err)
				}
				sameContents(t, db, want)
			}
		})
	}
}

// Where the pack is gone, a write stores the bytes once more, and a repair heals the other
// versions from there.
func TestWriteWithoutPack(t *testing.T) {
	fs := vfs.NewMem()
	db, want := sharedHistory(t, fs)
	must.Do(t, db.Close())
	for _, name := range packFiles(t, fs) {
		must.Do(t, fs.Remove(name))
	}
	db = openCopy(t, fs, "db")
	s := mustBegin(t, db)
	set(t, s, want["main"])
	set(t, s, map[string]string{"old": want["v1"]["a/c/0"]})
	c, err := s.Commit(bg, CommitOptions{})
	if err != nil || len(c.Parents) == 0 {
		t.Fatal(err)
	}
	r, err := db.Repair(bg, CheckOptions{})
	if err != nil || r.After.Found != 0 {
		t.Fatalf("%q, left %v, %v", r.Done, r.After.Problems, err)
	}
	sameContents(t, db, map[string]map[string]string{"main": at(t, db, "main"), "v1": want["v1"], "v1~1": want["v1~1"]})
}

// A backup, clone or push of a damaged database names the chunk and its versions. With
// SkipDamaged it has all else, the copy knows its holes, copies of it too, and a later run
// or a repair fills them.
func TestSkipDamaged(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	for _, missing := range []bool{false, true} {
		t.Run(fmt.Sprint("missing=", missing), func(t *testing.T) {
			fs := vfs.NewMem()
			db, want := sharedHistory(t, fs)
			must.Get(db.Clone(bg, "good", TransferOptions{}))(t)
			if missing {
				must.Do(t, db.Close())
				must.Do(t, fs.Remove(packFiles(t, fs)[0]))
				db = openPlain(t, fs, "db")
				defer db.Close()
			} else {
				damageOf(t, db, fs, "main", "a/c/5")
			}
			var damage *DamageError
			if _, err := db.Backup(bg, "backup", TransferOptions{}); !errors.As(err, &damage) || !errors.Is(err, kv.ErrCorrupt) ||
				!missing && !strings.Contains(err.Error(), `of array "a"`) || !strings.Contains(err.Error(), "(main, v1, ") {
				t.Fatalf("backup: %v", err)
			}
			r := must.Get(db.Backup(bg, "backup", TransferOptions{SkipDamaged: true}))(t)
			if len(r.Skipped) == 0 || r.Holes == 0 || !missing && (r.Holes != 1 || len(r.Skipped) != 2) {
				t.Errorf("%d holes, skipped %v", r.Holes, r.Skipped)
			}
			if again, err := db.Backup(bg, "backup", TransferOptions{}); err != nil || again.Holes != r.Holes {
				t.Errorf("second backup: %+v, %v", again, err)
			}
			from := must.Get(Open("backup", &Options{FS: fs, ReadOnly: true, Policy: toyPolicy{}}))(t)
			if _, err := from.Clone(bg, "copy", TransferOptions{}); !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("clone of the copy: %v", err)
			}
			must.Get(from.Clone(bg, "copy", TransferOptions{SkipDamaged: true}))(t)
			must.Do(t, from.Close())
			good := openCopy(t, fs, "good")
			for i, dir := range []string{"backup", "copy"} {
				to := must.Get(Open(dir, testOptions(fs)))(t)
				defer to.Close()
				mustGC(t, to)
				found := checkReport(t, to, CheckOptions{}).Problems
				if len(found) != len(r.Skipped) || !found[0].Hole || !missing && found[0].Array != "a" || found[0].Versions < 2 {
					t.Errorf("%s: found %v", dir, found)
				}
				snap := must.Get(to.At(bg, "main"))(t)
				if _, err := snap.Get(bg, "a/c/5", kv.All()); !errors.Is(err, kv.ErrCorrupt) {
					t.Errorf("%s: a hole reads: %v", dir, err)
				}
				snap.Close()
				if i == 0 {
					fill, err := to.Pull(bg, good, TransferOptions{})
					if err != nil || fill.Filled != r.Holes || fill.Holes != 0 {
						t.Errorf("pull: %+v, %v", fill, err)
					}
				} else if r, err := to.Repair(bg, CheckOptions{}, good); err != nil || r.After.Found != 0 {
					t.Errorf("repair: %+v, %v", r, err)
				}
				mustBeSound(t, to)
				if got := at(t, to, "main"); !maps.Equal(got, want["main"]) {
					t.Errorf("%s: other contents", dir)
				}
			}
		})
	}
}

// What a version named alone is no known hole any more when it has expired.
func TestGCForgetsHoles(t *testing.T) {
	fs := vfs.NewMem()
	db, _ := sharedHistory(t, fs)
	damageOf(t, db, fs, "v1", "a/c/0")
	r, err := db.Clone(bg, "copy", TransferOptions{SkipDamaged: true})
	if err != nil || r.Holes != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	to := openCopy(t, fs, "copy")
	update(t, to, "main", map[string]string{"b/c/0": ""})
	must.Do(t, to.DeleteTag(bg, "v1"))
	mustExpire(t, to, ExpireOptions{Keep: 1})
	mustGC(t, to)
	if known, err := catalog.KnownHoles(to.idx); err != nil || len(known) != 0 {
		t.Errorf("%v, %v", known, err)
	}
}

// A pack is damaged at random places, cut off or removed, and payloads are healed by writes,
// a repair from a copy, or a pull after a repair that found nothing.
func TestHealModel(t *testing.T) {
	if race.Enabled {
		t.Skip("the work of one goroutine, many times")
	}
	rounds := 40
	if testing.Short() {
		rounds = 12
	}
	seeds := rand.New(rand.NewPCG(must.Seed(t), 0))
	for range rounds {
		seed := seeds.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			fs := vfs.NewMem()
			db, want := sharedHistory(t, fs)
			must.Get(db.Clone(bg, "good", TransferOptions{}))(t)
			good := openCopy(t, fs, "good")
			must.Do(t, db.Close())
			path := packFiles(t, fs)[0]
			whole := readFile(t, fs, path)
			switch rng.IntN(5) {
			case 0:
				must.Do(t, fs.Remove(path))
			case 1:
				writeFile(t, fs, path, []byte(whole[:rng.IntN(len(whole))]))
			default:
				for range 1 + rng.IntN(8) {
					flipByte(t, fs, path, rng.Int64N(int64(len(whole))))
				}
			}
			db = must.Get(Open("db", testOptions(fs)))(t)
			defer db.Close()
			for range rng.IntN(3) { // writes of right bytes heal, or store them elsewhere
				values := map[string]string{}
				for k, v := range want["main"] {
					if rng.IntN(2) == 0 {
						values[k] = v
					}
				}
				update(t, db, "main", values)
			}
			if rng.IntN(2) == 0 {
				must.Get(db.Repair(bg, CheckOptions{Payloads: true}))(t)
				must.Get(db.Pull(bg, good, TransferOptions{}))(t)
			} else if _, err := db.Repair(bg, CheckOptions{}, good); err != nil {
				t.Fatal(err)
			}
			sameContents(t, db, want)
		})
	}
}

// The power is cut, or the disk fails, at every write of a session that heals: every version
// reads its bytes or says that they are damaged, and the same session heals afterwards.
func TestHealSurvivesCrashes(t *testing.T) {
	mem := vfs.NewCrashableMem()
	db, want := sharedHistory(t, mem)
	damageOf(t, db, mem, "main", "a/c/5")
	must.Do(t, db.Close())
	image := all(mem)
	heal := func(fs vfs.FS) error {
		db, err := Open("db", testOptions(fs))
		if err != nil {
			return err
		}
		defer db.Close()
		s, err := db.Begin(bg, "main")
		if err != nil {
			return err
		}
		if err := s.Set(bg, "a/c/5", []byte(want["main"]["a/c/5"])); err != nil {
			return err
		}
		_, err = s.Commit(bg, CommitOptions{})
		return err
	}
	var images []*vfs.MemFS
	must.Do(t, heal(crashtest.NewDisk(all(image), func(d *crashtest.Disk, op errorfs.Op) error {
		if percent := len(images) * 29 % 101; strings.Contains(op.Path, "packs") {
			images = append(images, d.Cut(percent, percent, rand.New(rand.NewPCG(uint64(len(images)), 0))))
		}
		return nil
	})))
	if len(images) < 2 {
		t.Fatalf("%d writes", len(images))
	}
	for stop := range len(images) { // the disk fails: the payload is stored elsewhere, or the error is told
		disk := all(image)
		f := crashtest.Faults{At: int64(stop), Once: true, Match: func(op errorfs.Op) bool { return crashtest.IsWrite(op) && strings.Contains(op.Path, "packs") }}
		_ = heal(f.Wrap(disk))
		images = append(images, disk)
	}
	for i, fs := range images {
		db := openPlain(t, fs, "db")
		for rev, values := range want {
			s := must.Get(db.At(bg, rev))(t)
			for k, v := range values {
				b, err := s.Get(bg, k, kv.All())
				if err == nil && string(b) != v || err != nil && (!errors.Is(err, kv.ErrCorrupt) || !strings.HasSuffix(k, "/c/5")) {
					t.Errorf("image %d: %s of %s: %v", i, k, rev, err)
				}
			}
			s.Close()
		}
		must.Do(t, db.Close())
		must.Do(t, heal(fs))
		db = openPlain(t, fs, "db")
		if _, err := db.Repair(bg, CheckOptions{Payloads: true}); err != nil { // where it was stored elsewhere
			t.Fatal(err)
		}
		sameContents(t, db, want)
		must.Do(t, db.Close())
	}
}

// A damaged payload of the source is not written over a sound one of the destination.
func TestTransferDoesNotSpreadDamage(t *testing.T) {
	fs := vfs.NewMem()
	db, want := sharedHistory(t, fs)
	must.Get(db.Clone(bg, "copy", TransferOptions{}))(t)
	s := mustBegin(t, db) // names the old payload again, as something new
	v1 := must.Get(db.At(bg, "v1"))(t)
	defer v1.Close()
	must.Do(t, s.Copy(bg, v1, "a/c/0", "again/c/0"))
	must.Do(t, s.Delete(bg, "b/c/0"))
	must.Get(s.Commit(bg, CommitOptions{}))(t)
	v := damageOf(t, db, fs, "v1", "a/c/0")
	to := openPlain(t, fs, "copy")
	defer to.Close()
	if _, err := db.Push(bg, to, TransferOptions{}); err != nil {
		t.Errorf("push of what the destination has: %v", err)
	}
	if err := to.care.VerifyPayload(bg, pack.Address(catalog.AddressOf(v)), v.Sum); err != nil {
		t.Error(err)
	}
	if got := at(t, to, "v1"); !maps.Equal(got, want["v1"]) {
		t.Error("the destination has other contents")
	}
}
