package txn

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/depot"
)

// knownTags notes whether the manifest was read by the tag that it had.
type knownTags struct {
	*wire
	known *[]bool
}

func (k knownTags) GetTagged(ctx context.Context, key string, known kv.Tag, limit int64) (kv.Tagged, error) {
	got, err := k.wire.GetTagged(ctx, key, known, limit)
	*k.known = append(*k.known, err == nil && got.Value == nil)
	return got, err
}

// TestBucketCache reads a bucket by its URL: the requests of each opening, buckets that change, go, come back and are replaced, and
// every way to write.
func TestBucketCache(t *testing.T) {
	store := &wire{Store: kv.NewMem()}
	from := published(t, store)
	var known []bool
	parent := filepath.Join(t.TempDir(), "remotes")
	open := func(store *wire) (*BucketCache, error) {
		known = nil
		o := lazyOptions(store)
		o.FS = nil
		return OpenBucketCache(bg, BucketCacheOptions{
			Bucket: BucketOptions{Store: knownTags{store, &known}, Name: "mem:bucket"}, Parent: parent,
			Offline: func(err error) bool { return errors.Is(err, errWire) || errors.Is(err, depot.ErrGone) },
		}, o)
	}
	follow := func(c *BucketCache) *DB {
		db := must.Get(Open(c.Dir, lazyOptions(store)))(t)
		if c.Behind() {
			must.Do(t, c.Follow(bg, db))
		}
		return db
	}
	store.took()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			o := lazyOptions(store)
			var mine []bool
			_, err := OpenBucketCache(bg, BucketCacheOptions{Bucket: BucketOptions{Store: knownTags{store, &mine}, Name: "mem:bucket"}, Parent: parent}, o)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(strings.Fields(store.took())); n > 4*8 {
		t.Errorf("made with %d requests", n)
	}
	c := must.Get(open(store))(t)
	if ops := store.took(); ops != "look" || len(known) != 1 || !known[0] || c.Behind() || c.Note != "" {
		t.Errorf("opened again: %s, known: %v, %+v", ops, known, c)
	}
	db := follow(c)
	sameHeads(t, from, db)
	for name, write := range map[string]func() error{
		"begin":   func() error { _, err := db.Begin(bg, "main"); return err },
		"branch":  func() error { return db.CreateBranch(bg, "mine", mustHead(t, db)) },
		"tag":     func() error { return db.CreateTag(bg, "mine", mustHead(t, db)) },
		"reset":   func() error { _, err := db.Reset(bg, "main", mustHead(t, db)); return err },
		"expire":  func() error { _, err := db.Expire(bg, ExpireOptions{Keep: 1}); return err },
		"pull":    func() error { _, err := db.Pull(bg, from, TransferOptions{Force: true}); return err },
		"push to": func() error { _, err := from.Push(bg, db, TransferOptions{Force: true}); return err },
	} {
		if err := write(); !errors.Is(err, kv.ErrReadOnly) || !strings.Contains(err.Error(), "zarrdb clone mem:bucket DIR --lazy") {
			t.Errorf("%s: %v", name, err)
		}
	}
	must.Get(db.GC(bg, GCOptions{Away: true}))(t)
	must.Do(t, db.Close())

	// It follows: a branch that moves, goes back, is made and deleted.
	update(t, from, "main", map[string]string{"new": "new"})
	must.Do(t, from.DeleteBranch(bg, "side"))
	must.Do(t, from.CreateBranch(bg, "other", mustHead(t, from)))
	all := everyRef
	all.Prune, all.Force = true, true
	must.Get(from.PushTo(bg, bucketOf(t, from, store), all))(t)
	c = must.Get(open(store))(t)
	store.took()
	db = follow(c)
	if n := len(strings.Fields(store.took())); !c.Behind() || n > 3 {
		t.Errorf("%d requests to follow", n)
	}
	if len(branchesOf(db)) != len(branchesOf(from)) {
		t.Errorf("branches: %v", branchesOf(db))
	}
	sameHeads(t, from, db)
	must.Do(t, db.Close())
	if c := must.Get(open(store))(t); c.Behind() {
		t.Error("behind again")
	}

	// Offline, what is known is shown; what never was there is an error.
	store.set(func(string) netFault { return broken })
	if c := must.Get(open(store))(t); !strings.Contains(c.Note, "what is known of the remote is shown") || c.Behind() {
		t.Errorf("offline: %+v", c)
	}
	store.set(nil)
	before := must.Get(kv.Get(bg, store.Store, "manifest"))(t)

	// Another bucket at the same URL is another clone, and the first one is found again.
	other := &wire{Store: kv.NewMem()}
	machine2 := machine(t)
	update(t, machine2, "main", map[string]string{"x": "x"})
	must.Get(machine2.PushTo(bg, bucketOf(t, machine2, other), everyRef))(t)
	second := must.Get(open(other))(t)
	if second.Dir == c.Dir {
		t.Error("two buckets have one clone")
	}
	if again := must.Get(open(store))(t); again.Dir != c.Dir || again.Behind() {
		t.Errorf("%+v", again)
	}
	if len(must.Get(os.ReadDir(parent))(t)) != 4 { // with locks
		t.Errorf("%v", must.Get(os.ReadDir(parent))(t))
	}

	// A bucket that went back is told once.
	update(t, from, "main", map[string]string{"new": "newer"})
	must.Get(from.PushTo(bg, bucketOf(t, from, store), all))(t)
	must.Do(t, follow(must.Get(open(store))(t)).Close())
	must.Do(t, store.Store.Set(bg, "manifest", before))
	for i := range 2 {
		c := must.Get(open(store))(t)
		if strings.Contains(c.Note, "went back") != (i == 0) {
			t.Errorf("%q", c.Note)
		}
		db := follow(c)
		if at(t, db, "main")["new"] != "new" {
			t.Error("other values than in the bucket that went back")
		}
		must.Do(t, db.Close())
	}
	must.Do(t, store.Store.Delete(bg, "manifest"))
	if c := must.Get(open(store))(t); !strings.Contains(c.Note, "the manifest is gone") {
		t.Errorf("%q", c.Note)
	}
}
