package txn

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/transfer"
)

const readsKeys = 1500

func readsKey(i int) string { return fmt.Sprintf("d/%04d", i) }

// writeMany commits a payload for each key of a range, which follow each other in
// the pack, and a small value beside.
func writeMany(t *testing.T, db *DB, seed string, from, to int) {
	t.Helper()
	s := mustBegin(t, db)
	for i := from; i < to; i++ {
		must.Do(t, s.Set(bg, readsKey(i), []byte(big(fmt.Sprint(seed, i), 600+i%50))))
		must.Do(t, s.Set(bg, fmt.Sprintf("small/%04d", i), []byte(fmt.Sprint(seed, i))))
	}
	must.Get(s.Commit(bg, CommitOptions{}))(t)
}

// twoVersions returns a function that opens a database of two versions, each time
// a new one with empty caches.
func twoVersions(t *testing.T) func(*testing.T, *Options) *DB {
	t.Helper()
	made := vfs.NewMem()
	db := must.Get(Create("db", testOptions(made)))(t)
	writeMany(t, db, "v", 0, readsKeys)
	writeMany(t, db, "w", 0, 150)
	must.Do(t, db.Close())
	return func(t *testing.T, o *Options) *DB {
		t.Helper()
		if ok, err := vfs.Clone(made, o.FS, "db", "db"); err != nil || !ok {
			t.Fatal(ok, err)
		}
		db := must.Get(Open("db", o))(t)
		return db
	}
}

// kindsOfReads are what a process may have done with a snapshot before it copies
// or collects.
var kindsOfReads = map[string]func(*DB, *Snapshot) error{
	"nothing": func(*DB, *Snapshot) error { return nil },
	"one get": func(_ *DB, s *Snapshot) error {
		_, err := s.Get(bg, readsKey(750), kv.All())
		return err
	},
	"a get of a part": func(_ *DB, s *Snapshot) error {
		_, err := s.Get(bg, readsKey(300), kv.Span(10, 5))
		return err
	},
	"gets": func(_ *DB, s *Snapshot) error {
		for i := range readsKeys {
			if _, err := s.Get(bg, readsKey(i*7%readsKeys), kv.All()); err != nil {
				return err
			}
		}
		return nil
	},
	"gets of many": func(_ *DB, s *Snapshot) error {
		var reqs []kv.Request
		for i := 0; i < readsKeys; i += 11 {
			reqs = append(reqs, kv.Request{Key: readsKey(i), Range: kv.All()})
		}
		_, err := kv.GetMany(bg, s, reqs)
		return err
	},
	"a locate": func(_ *DB, s *Snapshot) error {
		_, err := s.Locate(bg, readsKey(900))
		return err
	},
	"the address of a value": func(_ *DB, s *Snapshot) error {
		_, err := s.Value(bg, readsKey(901))
		return err
	},
	"half a scan": func(_ *DB, s *Snapshot) error {
		n := 0
		for _, err := range s.Values(bg, "") {
			if n++; err != nil || n > readsKeys/2 {
				return err
			}
		}
		return nil
	},
	"a list": func(_ *DB, s *Snapshot) error {
		for _, err := range s.List(bg, kv.ListOptions{}) {
			if err != nil {
				return err
			}
		}
		for _, err := range s.ListDir(bg, "d/") {
			if err != nil {
				return err
			}
		}
		return nil
	},
	"a difference": func(db *DB, s *Snapshot) error {
		for _, err := range db.Diff(bg, s.Commit().Parents[0], s.Commit().ID, "") {
			if err != nil {
				return err
			}
		}
		return nil
	},
	"a session": func(db *DB, _ *Snapshot) error {
		s, err := db.Begin(bg, "main")
		if err != nil {
			return err
		}
		defer s.Abort()
		if err := s.Set(bg, readsKey(5), []byte("new")); err != nil {
			return err
		}
		_, err = s.Get(bg, readsKey(800), kv.All())
		return err
	},
	"a check": func(db *DB, _ *Snapshot) error {
		_, err := db.Check(bg, CheckOptions{})
		return err
	},
}

// kindsOfTransfers copy a database into the directory "copy" of its file system.
var kindsOfTransfers = map[string]func(*DB, vfs.FS) error{
	"clone": func(db *DB, _ vfs.FS) error {
		_, err := db.Clone(bg, "copy", TransferOptions{})
		return err
	},
	"shallow clone": func(db *DB, _ vfs.FS) error {
		_, err := db.Clone(bg, "copy", TransferOptions{Branch: MainBranch, Depth: 1})
		return err
	},
	"backup": func(db *DB, _ vfs.FS) error {
		_, err := db.Backup(bg, "copy", TransferOptions{})
		return err
	},
	"push":  exchanged(func(db, to *DB) (*TransferReport, error) { return db.Push(bg, to, TransferOptions{Force: true}) }),
	"pull":  exchanged(func(db, to *DB) (*TransferReport, error) { return to.Pull(bg, db, TransferOptions{Force: true}) }),
	"fetch": exchanged(fetchBranch),
}

// fetchBranch fetches and then names the version.
func fetchBranch(db, to *DB) (*TransferReport, error) {
	r, err := to.Fetch(bg, db, TransferOptions{})
	if err != nil {
		return r, err
	}
	_, err = to.Reset(bg, MainBranch, r.Refs[0].Commit)
	return r, err
}

// exchanged makes a database to exchange with.
func exchanged(f func(db, to *DB) (*TransferReport, error)) func(*DB, vfs.FS) error {
	return func(db *DB, fs vfs.FS) error {
		to, err := Create("copy", testOptions(fs))
		if err != nil {
			return err
		}
		_, err = f(db, to)
		return errors.Join(err, to.Close())
	}
}

// soundDir fails unless all payloads of a closed database are there.
func soundDir(t *testing.T, fs vfs.FS, dir string) {
	t.Helper()
	db := must.Get(Open(dir, &Options{FS: fs, ReadOnly: true}))(t)
	defer db.Close()
	if r := checkReport(t, db, CheckOptions{Payloads: true}); r.Found > 0 {
		t.Fatalf("%s: %d problems, the first: %v", dir, r.Found, r.Problems[0])
	}
}

// TestTransfersAfterReads copies a database after each kind of read in the same
// process: what readers left in the caches changes nothing in the copy.
func TestTransfersAfterReads(t *testing.T) {
	if testing.Short() {
		t.Skip("many kinds of reads, with one goroutine")
	}
	open := twoVersions(t)
	db := open(t, testOptions(vfs.NewMem()))
	want := at(t, db, MainBranch)
	must.Do(t, db.Close())
	for reads, read := range kindsOfReads {
		for name, copyTo := range kindsOfTransfers {
			t.Run(name+" after "+reads, func(t *testing.T) {
				fs := vfs.NewMem()
				db := open(t, testOptions(fs))
				defer db.Close()
				s, err := db.At(bg, MainBranch)
				must.Do(t, err)
				err = read(db, s)
				s.Close()
				must.Do(t, err)
				must.Do(t, copyTo(db, fs))
				soundDir(t, fs, "copy")
				to := must.Get(Open("copy", testOptions(fs)))(t)
				defer to.Close()
				if !maps.Equal(want, at(t, to, MainBranch)) {
					t.Error("the copy reads differently")
				}
			})
		}
	}
}

// faultsOfTransfers take something from what a transfer found to copy.
var faultsOfTransfers = map[string]func(*transfer.Walk){
	"a range of payloads": func(w *transfer.Walk) {
		for id, list := range w.Need {
			w.Need[id] = slices.Delete(list, len(list)/2, len(list)/2+1)
		}
	},
	"the end of a range": func(w *transfer.Walk) {
		for _, list := range w.Need {
			list[len(list)-1].To -= 5000
		}
	},
	"all payloads": func(w *transfer.Walk) { clear(w.Need) },
	"a page of payloads": func(w *transfer.Walk) {
		i := slices.Index(w.Pages, w.Leaves[len(w.Leaves)/2].Name)
		w.Pages = slices.Delete(w.Pages, i, i+1)
	},
	"all pages but the roots": func(w *transfer.Walk) {
		var roots []tree.Name
		for _, r := range w.T.Records {
			if slices.Contains(w.Pages, r.Commit.Root.Name) {
				roots = append(roots, r.Commit.Root.Name)
			}
		}
		w.Pages = roots
	},
	"each page that names nothing": func(w *transfer.Walk) {
		w.Pages = slices.DeleteFunc(w.Pages, func(n tree.Name) bool {
			p, err := w.T.From.SourceDB.(carriedFrom).idx.GetPage(bg, n)
			var l tree.Links
			if err == nil {
				_, err = l.Read(n, p)
			}
			return err == nil && len(l.Pages)+len(l.Payloads) == 0
		})
	},
}

// TestVerifyDoesNotTrustWhatWasCopied leaves out something of what is to be copied:
// the transfer fails, and no version of it is seen.
func TestVerifyDoesNotTrustWhatWasCopied(t *testing.T) {
	open := twoVersions(t)
	for fault, breaks := range faultsOfTransfers {
		for name, copyTo := range kindsOfTransfers {
			t.Run(name+" without "+fault, func(t *testing.T) {
				fs := vfs.NewMem()
				o := testOptions(fs)
				broken := false
				o.transferFault = func(broke *transfer.Transfer) {
					if !broken {
						breaks(broke.Found)
					}
					broken = true
				}
				db := open(t, o)
				defer db.Close()
				if err := copyTo(db, fs); err == nil || !broken {
					t.Fatalf("broken: %v, but the transfer succeeded", broken)
				}
				if exists(fs, "copy/"+FormatFile) && !slices.Contains([]string{"push", "pull", "fetch"}, name) {
					t.Fatal("the copy is there")
				}
				if !exists(fs, "copy/"+FormatFile) {
					return
				}
				soundDir(t, fs, "copy")
				to := must.Get(Open("copy", testOptions(fs)))(t)
				defer to.Close()
				if n := len(at(t, to, MainBranch)); n != 0 {
					t.Errorf("%d values arrived", n)
				}
			})
		}
	}
}
