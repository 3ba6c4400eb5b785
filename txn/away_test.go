package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/txn/internal/away"
	"github.com/zarrdb/zarrdb/txn/internal/bucket"
)

// lazyOptions are options of a lazy clone of what is in a store.
func lazyOptions(store kv.Store) *Options {
	o := joined()
	o.Bucket = func(context.Context, string) (kv.Store, error) { return store, nil }
	o.Other = func(_ context.Context, dir string) (*DB, func() error, error) {
		to := testOptions(nil)
		to.ReadOnly, to.Bucket = true, o.Bucket
		db, err := Open(dir, to)
		if err != nil {
			return nil, nil, err
		}
		return db, db.Close, nil
	}
	return o
}

// lazyClone makes a lazy clone, which is checked when the test ends.
func lazyClone(t *testing.T, store kv.Store) *DB {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "lazy")
	must.Get(CloneBucket(bg, BucketOptions{Store: store, Name: "mem:bucket"}, dir, lazyOptions(store), TransferOptions{Lazy: true}))(t)
	db := must.Get(Open(dir, lazyOptions(store)))(t)
	t.Cleanup(func() { closeChecked(t, db) })
	return db
}

// published is a database with several versions and many pages, which was pushed to a bucket.
func published(t *testing.T, store kv.Store) *DB {
	t.Helper()
	db := machine(t)
	many := map[string]string{}
	for i := range 12000 {
		many[fmt.Sprintf("m/k%05d", i)] = fmt.Sprintf("%0100d", i*i)
	}
	update(t, db, "main", many)
	grow(t, db, 5, 0)
	must.Do(t, db.CreateTag(bg, "v1", mustHead(t, db)))
	must.Do(t, db.CreateBranch(bg, "side", mustHead(t, db)))
	update(t, db, "side", map[string]string{"side": big("side", 70_000), "m/k00007": "other"})
	grow(t, db, 3, 5)
	must.Get(db.PushTo(bg, bucketOf(t, db, store), everyRef))(t)
	return db
}

// sameHeads is sameVersions of what branches and tags point at.
func sameHeads(t *testing.T, a, b *DB) {
	t.Helper()
	for _, r := range append(branchesOf(a), tagsOf(a)...) {
		if !maps.Equal(at(t, a, r.Commit.String()), at(t, b, r.Commit.String())) {
			t.Errorf("%s: other values", r.Name)
		}
	}
}

// hung is a store that does not answer a request for the manifest as long as waits is set.
type hung struct {
	*wire
	waits bool
}

func (h *hung) GetTagged(ctx context.Context, key string, known kv.Tag, limit int64) (kv.Tagged, error) {
	if h.waits {
		<-ctx.Done()
		return kv.Tagged{}, ctx.Err()
	}
	return h.wire.GetTagged(ctx, key, known, limit)
}

// TestBucketCacheForward has a clone follow its bucket, and not back.
func TestBucketCacheForward(t *testing.T) {
	store := &hung{wire: &wire{Store: kv.NewMem()}}
	from := machine(t)
	publish := func(value string) {
		update(t, from, "main", map[string]string{"k": value})
		must.Get(from.PushTo(bg, bucketOf(t, from, store), everyRef))(t)
	}
	o := BucketCacheOptions{Bucket: BucketOptions{Store: store, Name: "mem:bucket"}, Parent: t.TempDir(), Offline: func(error) bool { return false }, Wait: time.Hour}
	open := func() *BucketCache { return must.Get(OpenBucketCache(bg, o, lazyOptions(store)))(t) }
	publish("one")
	db := must.Get(Open(open().Dir, lazyOptions(store)))(t)
	defer closeChecked(t, db)
	publish("two")
	slow := open() // its manifest is old when it follows
	publish("three")
	for _, c := range []*BucketCache{open(), slow} {
		must.Do(t, c.Follow(bg, db))
		if got := at(t, db, "main")["k"]; got != "three" {
			t.Errorf("%q", got)
		}
	}
	if open().Behind() {
		t.Error("it does not know that it has followed")
	}
	store.waits, o.Wait = true, time.Millisecond
	if c := open(); c.Dir != db.Dir() || !strings.Contains(c.Note, "what is known") {
		t.Errorf("a bucket that does not answer: %+v", c)
	}
}

// TestLazyListing opens all members of a group whose pages many pushes have scattered, with few requests.
func TestLazyListing(t *testing.T) {
	store := &wire{Store: kv.NewMem()}
	from := machine(t)
	const n = 3000
	key := func(i int) string { return fmt.Sprintf("g/a%04d/doc", i) }
	want := map[string]string{}
	for i := range n {
		want[key(i)] = fmt.Sprintf("%0200d", i)
	}
	update(t, from, "main", want)
	b := bucketOf(t, from, store)
	for i := range 60 {
		must.Get(from.PushTo(bg, b, everyRef))(t)
		some := map[string]string{}
		for k := range 40 {
			at := key((i*40 + k) * 1013 % n)
			some[at] = fmt.Sprintf("%0200d", -i)
			want[at] = some[at]
		}
		update(t, from, "main", some)
	}
	must.Get(from.PushTo(bg, b, everyRef))(t)
	bundles := len(manifestOf(t, store).Bundles)
	for _, who := range []string{"holder", "peer"} {
		store.took()
		db := lazyClone(t, store)
		cloned := len(strings.Fields(store.took()))
		if who == "peer" {
			db = NewPeer(db.Dir(), db.Identity(), db.Remote(), lazyOptions(store))
			defer db.Close()
		}
		s := must.Get(db.At(bg, "main"))(t)
		defer s.Close()
		var reqs []kv.Request
		found := 0
		open := func() {
			for i, b := range must.Get(kv.GetMany(bg, s, reqs))(t) {
				if found++; string(b) != want[reqs[i].Key] {
					t.Errorf("%s: %q", reqs[i].Key, b)
				}
			}
			reqs = reqs[:0]
		}
		for e, err := range s.ListDir(bg, "g/") {
			must.Do(t, err)
			if reqs = append(reqs, kv.Request{Key: "g/" + e.Name + "/doc", Range: kv.All()}); len(reqs) == 64 {
				open()
			}
		}
		open()
		// Pages of the root and the group, in three steps, then 256 members, then the rest.
		if asked := len(strings.Fields(store.took())); found != n || cloned > 2*bundles+2 || asked > 5*bundles {
			t.Errorf("%s: %d of %d members, %d requests to clone and %d to list, %d bundles", who, found, n, cloned, asked, bundles)
		}
	}
}

// TestVerifiedStays remembers in the next process which payloads were compared with their hashes, until a file of them changes or
// something is fetched.
func TestVerifiedStays(t *testing.T) {
	store := &wire{Store: kv.NewMem()}
	from := published(t, store)
	update(t, from, "main", map[string]string{"one": big("one", 90_000), "two": big("two", 90_000)})
	must.Get(from.PushTo(bg, bucketOf(t, from, store), everyRef))(t)
	dir := filepath.Join(t.TempDir(), "lazy")
	must.Get(CloneBucket(bg, BucketOptions{Store: store, Name: "mem:bucket"}, dir, lazyOptions(store), TransferOptions{Lazy: true}))(t)
	known := func(db *DB, key string) bool {
		s := must.Get(db.At(bg, "main"))(t)
		defer s.Close()
		v := must.Get(s.lookup(bg, key))(t)
		return db.away.Known(false, pack.Address{Pack: pack.ID(v.Pack), Offset: v.Offset, Length: v.Length}, v.Sum)
	}
	process := func(what, key string, before, after bool) {
		t.Helper()
		db := must.Get(Open(dir, lazyOptions(store)))(t)
		defer closeChecked(t, db)
		if got := known(db, "one"); got != before {
			t.Errorf("%s: one is known at the beginning: %v", what, got)
		}
		if key != "" && at(t, db, "main")[key] == "" {
			t.Errorf("%s: no %s", what, key)
		}
		if got := known(db, "one"); got != after {
			t.Errorf("%s: one is known at the end: %v", what, got)
		}
	}
	process("nothing is here", "one", false, true)
	process("it was read", "", true, true)
	process("nothing has changed", "one", true, true)
	files := must.Get(filepath.Glob(filepath.Join(dir, away.Dir, "*")))(t)
	for _, f := range files {
		must.Do(t, os.Chtimes(f, time.Time{}, time.Unix(1, 0)))
	}
	if len(files) == 0 {
		t.Error("no files")
	}
	process("a file has changed", "", false, false)
	process("it is compared again", "one", false, true)
	process("it is known again", "", true, true)
	db := must.Get(Open(dir, lazyOptions(store)))(t)
	defer closeChecked(t, db)
	if db.away.Fetching(); known(db, "one") {
		t.Error("it may be fetched anew, and is known")
	}
	if at(t, db, "main")["one"] == "" || !known(db, "one") {
		t.Error("it was read, and is not known")
	}
	if must.Get(db.GC(bg, GCOptions{Away: true}))(t); known(db, "one") {
		t.Error("it was removed, and is known")
	}
}

// TestAwayReads reads a lazy clone, offline what was read before, and by a peer.
func TestAwayReads(t *testing.T) {
	store := &wire{Store: kv.NewMem()}
	from := published(t, store)
	store.took()
	db := lazyClone(t, store)
	cloned := len(strings.Fields(store.took()))
	r := must.Get(db.Check(bg, CheckOptions{Payloads: true}))(t)
	if cloned > 6 || r.AwayPages == 0 || len(r.Problems) > 0 || r.Commits != must.Get(from.Check(bg, CheckOptions{}))(t).Commits {
		t.Errorf("%d requests, %+v", cloned, r)
	}
	down := func(string) netFault { return broken }
	store.took()
	store.set(down)
	get := func(db *DB, key string) (string, error) {
		s := must.Get(db.At(bg, "main"))(t)
		defer s.Close()
		b, err := s.Get(bg, key, kv.All())
		return string(b), err
	}
	if _, err := get(db, "a/c/0"); !errors.Is(err, ErrAway) || errors.Is(err, kv.ErrNotFound) || errors.Is(err, kv.ErrCorrupt) || !strings.Contains(err.Error(), "mem:bucket") {
		t.Errorf("offline: %v", err)
	}
	store.set(nil)
	want := at(t, from, "main")
	if got := must.Get(get(db, "a/c/0"))(t); got != want["a/c/0"] {
		t.Error("other bytes")
	}
	store.set(down)
	if got := must.Get(get(db, "a/c/0"))(t); got != want["a/c/0"] {
		t.Error("offline: other bytes")
	}
	if _, err := get(db, "a/c/3"); !errors.Is(err, ErrAway) || !strings.Contains(err.Error(), "a/c/3") {
		t.Errorf("offline: %v", err)
	}
	if _, err := get(db, "a/c/999"); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("a key that is not there: %v", err)
	}
	store.set(nil)
	peer := NewPeer(db.Dir(), db.Identity(), db.Remote(), lazyOptions(store))
	if got := at(t, peer, "side"); !maps.Equal(got, at(t, from, "side")) {
		t.Error("a peer reads other values")
	}
	must.Do(t, peer.Close())
	sameHeads(t, from, db)
	store.set(down)
	sameHeads(t, from, db)
	must.Do(t, db.Close())
	only := lazyOptions(store)
	only.ReadOnly = true
	again := must.Get(Open(db.Dir(), only))(t)
	sameHeads(t, from, again)
	must.Do(t, again.Close())
	// Nothing is lost with what was fetched, or with what is known of the remote.
	must.Do(t, os.RemoveAll(filepath.Join(db.Dir(), away.Dir)))
	must.Do(t, os.RemoveAll(filepath.Join(db.Dir(), bucket.RemotesDir)))
	store.set(nil)
	for _, readOnly := range []bool{true, false} {
		o := lazyOptions(store)
		o.ReadOnly = readOnly
		again := must.Get(Open(db.Dir(), o))(t)
		sameHeads(t, from, again)
		must.Do(t, again.Close())
	}
}

// meter counts the bytes of segments that are asked for.
type meter struct {
	*wire
	bytes atomic.Int64
}

func (m *meter) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	b, err := m.wire.Get(ctx, key, rng)
	if strings.HasPrefix(key, "s/") {
		m.bytes.Add(int64(len(b)))
	}
	return b, err
}

// TestAwayRow reads payloads in the order in which they were written, through several packs: each byte comes once, in long ranges, also
// if readers overtake each other. Few bytes are fetched ahead of a reader who stops.
func TestAwayRow(t *testing.T) {
	store := &meter{wire: &wire{Store: kv.NewMem()}}
	o := joined()
	o.PackBytes = 8 << 20
	from := must.Get(Create(filepath.Join(t.TempDir(), "from"), o))(t)
	defer closeChecked(t, from)
	const n, size = 100, 300_000
	key := func(i int) string { return fmt.Sprintf("a/c/%03d", i) }
	want := map[string]string{}
	writer := must.Get(from.Begin(bg, "main"))(t)
	for i := range n {
		want[key(i)] = big(fmt.Sprint(i), size)
		must.Do(t, writer.Set(bg, key(i), []byte(want[key(i)])))
	}
	must.Get(writer.Commit(bg, CommitOptions{Message: "all"}))(t)
	must.Get(from.PushTo(bg, bucketOf(t, from, store), everyRef))(t)
	for _, c := range []struct{ readers, most int }{{1, n}, {3, n}, {1, 12}} {
		db := lazyClone(t, store)
		must.Do(t, db.Close())
		db = must.Get(Open(db.Dir(), lazyOptions(store)))(t)
		s := must.Get(db.At(bg, "main"))(t)
		for i := range n { // the pages
			must.Get(s.lookup(bg, key(i)))(t)
		}
		store.took()
		store.bytes.Store(0)
		var next atomic.Int64
		var wg sync.WaitGroup
		for range c.readers {
			wg.Go(func() {
				for i := next.Add(1) - 1; i < int64(c.most); i = next.Add(1) - 1 {
					if b, err := s.Get(bg, key(int(i)), kv.All()); err != nil || string(b) != want[key(int(i))] {
						t.Errorf("%s: %v", key(int(i)), err)
					}
				}
			})
		}
		wg.Wait()
		must.Do(t, s.Close())
		must.Do(t, db.Close())
		asked, came := len(strings.Fields(store.took())), store.bytes.Load()
		least := int64(c.most) * size
		if most := min(3*least, n*size) * 102 / 100; came < least || came > most || asked > 24 {
			t.Errorf("%+v: %d requests, %d bytes", c, asked, came)
		}
	}
}

// TestAwayOnce lets many readers want the same at the same time.
func TestAwayOnce(t *testing.T) {
	store := &wire{Store: kv.NewMem()}
	from := published(t, store)
	db := lazyClone(t, store)
	want := at(t, from, "main")
	store.took()
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			s, err := db.At(bg, "main")
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if b, err := s.Get(bg, "a/c/1", kv.All()); err != nil || string(b) != want["a/c/1"] {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(strings.Fields(store.took())); n > 8 { // the pages on the way, and the payload
		t.Errorf("%d requests", n)
	}
}

// TestAwayDamage finds what a bucket has damaged or lost, and what a crash leaves in away/.
func TestAwayDamage(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	mem := kv.NewMem()
	from := published(t, mem)
	db := lazyClone(t, mem)
	want := at(t, from, "main")
	read := func(key string) error {
		s := must.Get(db.At(bg, "main"))(t)
		defer s.Close()
		b, err := s.Get(bg, key, kv.All())
		if err == nil && string(b) != want[key] {
			t.Errorf("%s: other bytes", key)
		}
		return err
	}
	must.Do(t, read("a/c/0"))
	// Half of a record, or other bytes, in a pack of away/.
	for _, damage := range []func(b []byte){func(b []byte) { clear(b[len(b)/2:]) }, func(b []byte) { clear(b[:len(b)/2]) }, func(b []byte) {
		for i := range b {
			b[i] ^= 0x55
		}
	}} {
		must.Do(t, db.Close())
		for _, f := range must.Get(filepath.Glob(filepath.Join(db.Dir(), away.Dir, "*.pack")))(t) {
			b := must.Get(os.ReadFile(f))(t)
			damage(b[64:])
			must.Do(t, os.WriteFile(f, b, 0o666))
		}
		db = must.Get(Open(db.Dir(), lazyOptions(mem)))(t)
		for _, key := range []string{"a/c/0", "a/c/2", "a/c/5"} {
			must.Do(t, read(key))
		}
	}
	for key, err := range mem.List(bg, kv.ListOptions{Prefix: "s/"}) {
		must.Do(t, err)
		b := must.Get(kv.Get(bg, mem, key))(t)
		for i := range b {
			b[i] ^= 0x55
		}
		must.Do(t, mem.Set(bg, key, b))
	}
	if err := read("a/c/3"); !errors.Is(err, kv.ErrCorrupt) || !strings.Contains(err.Error(), "mem:bucket") {
		t.Errorf("damaged there: %v", err)
	}
	must.Do(t, read("a/c/0"))
	must.Do(t, db.Close())
}

// TestAwaySalvage salvages lazy clones: pages that are away are not lost, and a salvage does not guess what a remote has
// that cannot be read.
func TestAwaySalvage(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	store := &wire{Store: kv.NewMem()}
	from := published(t, store)
	dir := filepath.Join(t.TempDir(), "lazy")
	must.Do(t, os.MkdirAll(dir, 0o777))
	must.Do(t, os.WriteFile(filepath.Join(dir, away.File+".tmp"), nil, 0o666)) // of a clone that was killed
	must.Get(CloneBucket(bg, BucketOptions{Store: store, Name: "mem:bucket"}, dir, lazyOptions(store), TransferOptions{Lazy: true}))(t)
	salvage := func(to string, o *Options) error {
		_, err := Salvage(bg, dir, SalvageOptions{Options: *o, To: to})
		return err
	}
	must.Do(t, os.RemoveAll(filepath.Join(dir, bucket.RemotesDir)))
	for i, want := range []error{ErrAway, ErrSound} {
		o := lazyOptions(store)
		if i == 0 {
			o.Bucket = nil
		}
		if err := salvage("", o); !errors.Is(err, want) {
			t.Errorf("%v, not %v", err, want)
		}
	}
	must.Do(t, os.RemoveAll(filepath.Join(dir, indexDir)))
	must.Do(t, salvage("", lazyOptions(store)))
	db := must.Get(Open(dir, lazyOptions(store)))(t)
	sameHeads(t, from, db)
	closeChecked(t, db)
}

// TestAwayBatches asks for pages in batches, each page once, whoever reads.
func TestAwayBatches(t *testing.T) {
	store := &wire{Store: kv.NewMem()}
	from := published(t, store)
	want := at(t, from, "main")
	counts := map[string]int{}
	for _, who := range []string{"owner", "peer", "read only"} {
		db := lazyClone(t, store)
		as := db
		switch who {
		case "peer":
			as = NewPeer(db.Dir(), db.Identity(), db.Remote(), lazyOptions(store))
		case "read only":
			must.Do(t, db.Close())
			o := lazyOptions(store)
			o.ReadOnly = true
			as = must.Get(Open(db.Dir(), o))(t)
		}
		store.took()
		if !maps.Equal(at(t, as, "main"), want) {
			t.Errorf("%s: other values", who)
		}
		counts[who] = len(strings.Fields(store.took()))
		if as != db {
			must.Do(t, as.Close())
		}
	}
	// Beside a lone page the owner fetches its neighbours, and who may not write keeps none.
	if most := counts["owner"] + counts["owner"]/4 + 3; counts["owner"] > 16 || counts["peer"] > most || counts["read only"] > 2*most {
		t.Errorf("requests: %v", counts)
	}
}

// TestAwayFork reads what another copy of the directory has put at an address where this one has other bytes.
func TestAwayFork(t *testing.T) {
	store := &wire{Store: kv.NewMem()}
	published(t, store)
	one := lazyClone(t, store)
	update(t, one, "main", map[string]string{"first": big("first", 9000)})
	must.Do(t, one.Close())
	dir := filepath.Join(t.TempDir(), "copy")
	must.Do(t, os.CopyFS(dir, os.DirFS(one.Dir())))
	one = must.Get(Open(one.Dir(), lazyOptions(store)))(t)
	defer one.Close()
	two := must.Get(Open(dir, lazyOptions(store)))(t)
	defer two.Close()
	update(t, one, "main", map[string]string{"x": big("x", 9000)})
	must.Get(one.PushTo(bg, bucketOf(t, one, store), TransferOptions{}))(t)
	update(t, two, "main", map[string]string{"y": big("y", 9000)})
	r := must.Get(two.FetchFrom(bg, readOf(t, two, store), TransferOptions{}))(t)
	for range 2 {
		s := must.Get(two.At(bg, r.Refs[0].Commit.String()))(t)
		for _, rng := range []kv.Range{kv.Span(10, 100), kv.All()} {
			off, n, err := rng.Resolve(9000)
			must.Do(t, err)
			if got := string(must.Get(s.Get(bg, "x", rng))(t)); got != big("x", 9000)[off:off+n] {
				t.Errorf("%v: other bytes", rng)
			}
		}
		must.Do(t, s.Close())
		if at(t, two, "main")["y"] != big("y", 9000) {
			t.Error("y: other bytes")
		}
		must.Get(two.GC(bg, GCOptions{Away: true}))(t)
	}
}

// TestAwayLost reads beside a segment that the bucket has lost, and looks at damage that is only here while the bucket cannot be read.
func TestAwayLost(t *testing.T) {
	mem := kv.NewMem()
	store := &wire{Store: mem}
	segments := func() map[string]bool {
		out := map[string]bool{}
		for key, err := range mem.List(bg, kv.ListOptions{Prefix: "s/"}) {
			must.Do(t, err)
			out[key] = true
		}
		return out
	}
	from := machine(t)
	for i := range 3 {
		update(t, from, "main", map[string]string{fmt.Sprint("k", i): big(fmt.Sprint("k", i), 5000)})
	}
	must.Get(from.PushTo(bg, bucketOf(t, from, store), everyRef))(t)
	before := segments()
	update(t, from, "main", map[string]string{"k3": big("k3", 5000)})
	must.Get(from.PushTo(bg, bucketOf(t, from, store), everyRef))(t)
	db := lazyClone(t, store)
	get := func(key string) error {
		s := must.Get(db.At(bg, "main"))(t)
		defer s.Close()
		b, err := s.Get(bg, key, kv.All())
		if err == nil && string(b) != big(key, 5000) {
			t.Errorf("%s: other bytes", key)
		}
		return err
	}
	kept := map[string][]byte{}
	for key := range segments() {
		if !before[key] {
			kept[key] = must.Get(kv.Get(bg, mem, key))(t)
			must.Do(t, mem.Delete(bg, key))
		}
	}
	must.Do(t, get("k0"))
	must.Do(t, get("k2"))
	if err := get("k3"); !errors.Is(err, ErrAway) || !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("k3, which is lost: %v", err)
	}
	for key, b := range kept {
		must.Do(t, mem.Set(bg, key, b))
	}
	must.Do(t, get("k3"))
	// A record of which a part is here does not cost what lies beside it.
	must.Do(t, db.Close())
	for _, f := range must.Get(filepath.Glob(filepath.Join(db.Dir(), away.Dir, "*.pack")))(t) {
		b := must.Get(os.ReadFile(f))(t)
		clear(b[len(b)-2500:])
		must.Do(t, os.WriteFile(f, b, 0o666))
	}
	db = must.Get(Open(db.Dir(), lazyOptions(store)))(t)
	must.Do(t, get("k3"))
	store.set(func(string) netFault { return broken })
	must.Do(t, get("k0"))
	store.set(nil)
	// After a push, what is known of the remote is known offline.
	update(t, db, "main", map[string]string{"own": big("own", 5000)})
	must.Get(db.PushTo(bg, bucketOf(t, db, store), TransferOptions{}))(t)
	update(t, db, "main", map[string]string{"own": big("own2", 5000)})
	must.Do(t, db.Close())
	store.set(func(string) netFault { return broken })
	db = must.Get(Open(db.Dir(), lazyOptions(store)))(t)
	r := must.Get(db.Check(bg, CheckOptions{Payloads: true}))(t)
	if r.Found > 0 {
		t.Errorf("%+v", r)
	}
	must.Do(t, db.Close())
	for _, f := range must.Get(filepath.Glob(filepath.Join(db.Dir(), packDir, "*.pack")))(t) {
		b := must.Get(os.ReadFile(f))(t)
		for i := range b[len(b)-9000:] {
			b[len(b)-9000+i] ^= 0x55
		}
		must.Do(t, os.WriteFile(f, b, 0o666))
	}
	db = must.Get(Open(db.Dir(), lazyOptions(store)))(t)
	r = must.Get(db.Check(bg, CheckOptions{Payloads: true}))(t)
	if r.Found == 0 || !errors.Is(r.Problems[0].Err, ErrAway) || !errors.Is(r.Problems[0].Err, kv.ErrCorrupt) {
		t.Errorf("damage that is only here: %+v", r)
	}
	must.Do(t, db.Close())
}

// TestAwayFull reads while pages that were fetched cannot be written to the index.
func TestAwayFull(t *testing.T) {
	store := kv.NewMem()
	from := published(t, store)
	full := crashtest.Faults{Err: syscall.ENOSPC, Match: func(op errorfs.Op) bool {
		return strings.Contains(op.Path, indexDir) && (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpFileSync)
	}}
	full.Off.Store(true)
	o := lazyOptions(store)
	o.FS = full.Wrap(vfs.NewMem())
	must.Get(CloneBucket(bg, BucketOptions{Store: store, Name: "mem:bucket"}, "lazy", o, TransferOptions{Lazy: true}))(t)
	db := must.Get(Open("lazy", o))(t)
	full.Off.Store(false)
	sameHeads(t, from, db)
	if full.Hits.Load() == 0 {
		t.Error("nothing was written")
	}
	full.Off.Store(true)
	_ = db.Close()
}

// TestAwayLog takes up a session from its log where what it changes is away: a collection does it, too.
func TestAwayLog(t *testing.T) {
	store := kv.NewMem()
	published(t, store)
	db, killed := lazyClone(t, store), lazyClone(t, store)
	s := must.Get(killed.Begin(bg, "main"))(t)
	must.Do(t, s.Log(bg))
	set(t, s, map[string]string{"m/k00101": "changed"})
	must.Do(t, db.Close())
	log := db.logPath(s.ID())
	must.Do(t, os.MkdirAll(filepath.Dir(log), 0o777))
	must.Do(t, os.WriteFile(log, must.Get(os.ReadFile(killed.logPath(s.ID())))(t), 0o666))
	must.Do(t, s.Abort())
	db = must.Get(Open(db.Dir(), lazyOptions(store)))(t)
	defer closeChecked(t, db)
	if len(db.unapplied) != 1 {
		t.Fatalf("%v", db.unapplied)
	}
	must.Get(db.GC(bg, GCOptions{}))(t)
	again := must.Get(db.Resume(bg, s.ID()))(t)
	if b := must.Get(again.Get(bg, "m/k00101", kv.All()))(t); string(b) != "changed" {
		t.Errorf("%q", b)
	}
	must.Do(t, again.Abort())
}

// TestAwayCollect collects a lazy clone: what is away is not missing.
func TestAwayCollect(t *testing.T) {
	store := &wire{Store: kv.NewMem()}
	from := published(t, store)
	db := lazyClone(t, store)
	at(t, db, "main")
	c := update(t, db, "main", map[string]string{"own": big("own", 5000)})
	want := at(t, db, c.ID.String())
	must.Do(t, db.CreateBranch(bg, "tmp", c.ID))
	update(t, db, "tmp", map[string]string{"tmp": big("tmp", 100_000)})
	must.Do(t, db.DeleteBranch(bg, "tmp"))
	must.Get(db.Expire(bg, ExpireOptions{Keep: 1, Branches: nil}))(t)
	store.set(func(string) netFault { return broken }) // it needs no request
	r := must.Get(db.GC(bg, GCOptions{Explain: true}))(t)
	if r.FreedBytes < 90_000 {
		t.Errorf("%+v", r)
	}
	if got := at(t, db, "main"); !maps.Equal(got, want) {
		t.Error("main changed")
	}
	mustBeSound(t, db)
	must.Do(t, db.Checkpoint(bg))
	store.set(nil)
	if got := at(t, db, "side"); !maps.Equal(got, at(t, from, "side")) {
		t.Error("side changed")
	}
}

// TestAwayCommits writes to lazy clones and their peers. No request is sent while commits are locked.
func TestAwayCommits(t *testing.T) {
	store := &wire{Store: kv.NewMem()}
	from := published(t, store)
	db := lazyClone(t, store)
	free := func(string, string) {
		if !db.commit.mu.TryLock() {
			t.Error("a request, and commits are locked")
			return
		}
		db.commit.mu.Unlock()
	}
	store.ask(free)
	peer := NewPeer(db.Dir(), db.Identity(), db.Remote(), lazyOptions(store))
	a, b := must.Get(db.Begin(bg, "main"))(t), must.Get(peer.Begin(bg, "main"))(t)
	set(t, a, map[string]string{"x": big("x", 3000), "m/k00101": "a"})
	changes := map[string]string{"a/c/0": big("b", 3000)} // many, so that they are merged
	for i := range 600 {
		changes[fmt.Sprintf("m/k%05d", 20*i)] = "b"
	}
	set(t, b, changes)
	must.Get(a.Commit(bg, CommitOptions{Message: "a"}))(t)
	c := must.Get(b.Commit(bg, CommitOptions{Message: "b"}))(t)
	must.Do(t, peer.Close())
	want := at(t, from, "main")
	maps.Copy(want, map[string]string{"x": big("x", 3000), "m/k00101": "a"})
	maps.Copy(want, changes)
	if got := at(t, db, c.ID.String()); !maps.Equal(got, want) {
		t.Error("other values after a merge")
	}
	side := must.Get(db.Head(bg, "side"))(t)
	if _, err := db.Merge(bg, "main", side, CommitOptions{Message: "merge", Choices: []PathChoice{{Choice: Theirs}}}); err != nil {
		t.Error(err)
	}
	if got := at(t, db, "main")["side"]; got != big("side", 70_000) {
		t.Error("the merge has other values")
	}
	// The head moved to a version that was never read in this clone.
	v0 := must.Get(db.Resolve(bg, "v1~5"))(t)
	for i, more := range []int{0, 300} { // few edits are made on the head, many are merged
		branch := fmt.Sprint("late", i)
		must.Do(t, db.CreateBranch(bg, branch, v0))
		c := must.Get(db.Begin(bg, branch))(t)
		edits := map[string]string{"late": "late"}
		for i := range more {
			edits[fmt.Sprintf("late/%d", i)] = "late"
		}
		set(t, c, edits)
		to := must.Get(db.Resolve(bg, []string{"v1~1", "v1"}[i]))(t)
		must.Get(db.Reset(bg, branch, to))(t)
		made := must.Get(c.Commit(bg, CommitOptions{Message: "late"}))(t)
		want := at(t, from, to.String())
		maps.Copy(want, edits)
		if got := at(t, db, made.ID.String()); !maps.Equal(got, want) {
			t.Error("other values on top of what was away")
		}
	}
	// The same value again is no change.
	before := mustHead(t, db)
	if c := update(t, db, "main", map[string]string{"a/c/1": want["a/c/1"]}); c.ID != before {
		t.Error("a commit of nothing")
	}
	// A push home opens nothing that both have, and sends what is new.
	store.ask(nil)
	peer = NewPeer(db.Dir(), db.Identity(), db.Remote(), lazyOptions(store))
	defer peer.Close()
	r := must.Get(peer.PushTo(bg, bucketOf(t, peer, store), TransferOptions{}))(t)
	if r.PayloadBytes > 300_000 || r.Received > 1<<20 {
		t.Errorf("push home: %+v", r)
	}
	full := cloneOf(t, store, everyRef)
	if got := at(t, full, "main"); !maps.Equal(got, at(t, db, "main")) {
		t.Error("other values after a push")
	}
}

// TestAwayCopies carries versions of a lazy clone elsewhere: what is away is fetched.
func TestAwayCopies(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	store := &wire{Store: kv.NewMem()}
	from := published(t, store)
	db := lazyClone(t, store)
	update(t, db, "main", map[string]string{"own": big("own", 5000)})
	peer := NewPeer(db.Dir(), db.Identity(), db.Remote(), lazyOptions(store))
	defer peer.Close()
	dir := t.TempDir()
	for name, carry := range map[string]func(dir string) error{
		"clone":         func(dir string) error { _, err := db.Clone(bg, dir, TransferOptions{}); return err },
		"backup":        func(dir string) error { _, err := db.Backup(bg, dir, TransferOptions{}); return err },
		"clone by peer": func(dir string) error { _, err := peer.Clone(bg, dir, TransferOptions{}); return err },
		"push": func(dir string) error {
			to, err := Create(dir, testOptions(nil))
			if err == nil {
				_, err = db.Push(bg, to, everyRef)
				err = errors.Join(err, to.Close())
			}
			return err
		},
	} {
		to := filepath.Join(dir, name)
		must.Do(t, carry(to))
		copied := must.Get(Open(to, testOptions(nil)))(t) // it needs no remote
		sameHeads(t, db, copied)
		closeChecked(t, copied)
	}
	for name, who := range map[string]*DB{"mem:other": db, "mem:another": peer} {
		other := kv.NewMem()
		must.Get(who.PushTo(bg, must.Get(who.Bucket(bg, BucketOptions{Store: other, Name: name, Write: true, sleep: noSleep}))(t), everyRef))(t)
		sameHeads(t, db, cloneOf(t, other, everyRef))
	}
	if left := must.Get(filepath.Glob(filepath.Join(db.Dir(), bucket.RemotesDir, "*", "outgoing")))(t); len(left) > 0 {
		t.Errorf("%v stays", left)
	}
	// What others add comes by a pull, from the remote and from a directory.
	grow(t, from, 2, 20)
	must.Get(from.PushTo(bg, bucketOf(t, from, store), TransferOptions{}))(t)
	for _, who := range []*DB{db, peer} {
		r := must.Get(who.FetchFrom(bg, readOf(t, who, store), TransferOptions{}))(t)
		if who == db && (r.Requests > 4 || r.PayloadBytes+r.PageBytes > 0) {
			t.Errorf("fetched more than the history: %+v", r)
		}
		if !maps.Equal(at(t, who, r.Refs[0].Commit.String()), at(t, from, "main")) {
			t.Error("other values were fetched")
		}
	}
	update(t, from, "side", map[string]string{"m/k00001": big("later", 3000), "a/c/1": ""})
	must.Get(db.Pull(bg, from, TransferOptions{Refs: []RefSpec{{From: "side"}}}))(t)
	if !maps.Equal(at(t, peer, "side"), at(t, from, "side")) {
		t.Error("other values were pulled")
	}
	r := must.Get(peer.GC(bg, GCOptions{Away: true}))(t)
	if left := must.Get(filepath.Glob(filepath.Join(db.Dir(), away.Dir, "*")))(t); r.AwayBytes == 0 || len(left) > 0 {
		t.Errorf("%+v, %v", r, left)
	}
	if !maps.Equal(at(t, peer, "v1"), at(t, from, "v1")) {
		t.Error("other values after the collection")
	}
}

// emptied is a remote whose files of packs go before they are lent, as beside a collection.
type emptied struct{ Remote }

func (e emptied) Pack(_ context.Context, at PackAddress) (PackFile, error) {
	return nil, &pack.CorruptError{Pack: at.Pack, Reason: "there is no such pack"}
}

// TestAwayReadBesideCollection has a peer read while what was fetched is removed.
func TestAwayReadBesideCollection(t *testing.T) {
	store := &wire{Store: kv.NewMem()}
	from := published(t, store)
	db := lazyClone(t, store)
	peer := NewPeer(db.Dir(), db.Identity(), emptied{db.Remote()}, lazyOptions(store))
	defer peer.Close()
	sameHeads(t, from, peer)
	dir := filepath.Join(t.TempDir(), "removed")
	must.Get(CloneBucket(bg, BucketOptions{Store: store, Name: "mem:bucket"}, dir, lazyOptions(store), TransferOptions{Lazy: true}))(t)
	removed := must.Get(Open(dir, lazyOptions(store)))(t)
	s := must.Get(removed.At(bg, "v1"))(t)
	must.Do(t, os.RemoveAll(dir))
	if _, err := s.Get(bg, "a/c/3", kv.All()); errors.Is(err, kv.ErrCorrupt) || !strings.Contains(fmt.Sprint(err), "moved, removed or replaced") {
		t.Errorf("a database that was removed: %v", err)
	}
	_ = errors.Join(s.Close(), removed.Close())
}

// TestAwaySize reads round and round in a lazy clone that keeps little of what it fetches.
func TestAwaySize(t *testing.T) {
	store := &wire{Store: kv.NewMem()}
	from := machine(t)
	for i := range 12 {
		values := map[string]string{}
		for j := range 20 {
			values[fmt.Sprintf("a/c/%d", 20*i+j)] = big(fmt.Sprint(i, j), 50_000)
		}
		update(t, from, "main", values)
	}
	must.Get(from.PushTo(bg, bucketOf(t, from, store), everyRef))(t)
	want := at(t, from, "main")
	db := lazyClone(t, store)
	const most = 4 << 20 // of 12 MB
	use := func() int64 {
		var u DiskUse
		u.Measure(db.fs, filepath.Join(db.Dir(), away.Dir))
		return u.Total()
	}
	must.Get(db.GC(bg, GCOptions{AwaySize: most}))(t)
	read := func(db *DB, key string) {
		s := must.Get(db.At(bg, "main"))(t)
		defer s.Close()
		if b := must.Get(s.Get(bg, key, kv.All()))(t); string(b) != want[key] {
			t.Errorf("%s: other bytes", key)
		}
		if n := use(); n > most+most/20 {
			t.Errorf("%d bytes of at most %d", n, most)
		}
	}
	peer := NewPeer(db.Dir(), db.Identity(), db.Remote(), lazyOptions(store))
	for _, as := range []*DB{db, peer} {
		for range 2 {
			for i := range 240 {
				read(as, fmt.Sprintf("a/c/%d", i))
				read(as, "a/c/7") // it is used all the time
			}
		}
	}
	must.Do(t, peer.Close())
	store.set(func(string) netFault { return broken })
	read(db, "a/c/7") // it was used last
	store.set(nil)
	// The limit is that of the directory, and counts what an earlier process fetched.
	must.Do(t, db.Close())
	db = must.Get(Open(db.Dir(), lazyOptions(store)))(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 60 {
				read(db, fmt.Sprintf("a/c/%d", (30*i+j)%240))
			}
		})
	}
	wg.Wait()
	for i := range 240 { // readers side by side make room for what each may fetch; one that is alone leaves most of it full
		read(db, fmt.Sprintf("a/c/%d", i))
	}
	if use() < most*3/4 {
		t.Errorf("%d bytes of %d are used", use(), most)
	}
	if r := must.Get(db.GC(bg, GCOptions{AwaySize: most / 4}))(t); r.AwayBytes == 0 || use() > most/4 {
		t.Errorf("freed %d bytes, %d stay", r.AwayBytes, use())
	}
	mustBeSound(t, db)
	must.Do(t, db.Close())
}

// TestFetchPayloads brings a part of a version here, with few requests, and goes on after an interruption.
func TestFetchPayloads(t *testing.T) {
	store := &wire{Store: kv.NewMem()}
	from := machine(t)
	values, want := map[string]string{}, int64(0)
	for i := range 300 {
		some := map[string]string{fmt.Sprintf("a/c/%d", i): big(fmt.Sprint("a", i), 30_000), fmt.Sprintf("ab/c/%d", i): big(fmt.Sprint("b", i), 30_000)}
		update(t, from, "main", some)
		maps.Copy(values, some)
		want += 30_000
	}
	update(t, from, "main", map[string]string{"lone": big("lone", 9000)})
	must.Get(from.PushTo(bg, bucketOf(t, from, store), everyRef))(t)
	db := lazyClone(t, store)
	head := mustHead(t, db)
	peer := NewPeer(db.Dir(), db.Identity(), db.Remote(), lazyOptions(store))
	defer peer.Close()
	ctx, cancel := context.WithCancel(bg)
	var sent atomic.Int64 // requests go side by side
	store.ask(func(string, string) {
		if sent.Add(1) == 4 {
			cancel()
		}
	})
	if _, err := db.FetchPayloads(ctx, FetchPayloadsOptions{Commit: head, Path: "a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	store.ask(nil)
	calls := 0
	r := must.Get(peer.FetchPayloads(bg, FetchPayloadsOptions{Commit: head, Path: "a", Progress: func(FetchPayloadsReport) { calls++ }}))(t)
	if r.Payloads != 300 || r.Bytes != want || r.Total != want || r.Requests > 30 || calls == 0 {
		t.Errorf("%+v, %d calls", r, calls)
	}
	again := must.Get(db.FetchPayloads(bg, FetchPayloadsOptions{Commit: head, Path: "a"}))(t)
	if again.Fetched != 0 || again.Requests != 0 || again.Payloads != 300 {
		t.Errorf("again: %+v", again)
	}
	store.set(func(string) netFault { return broken })
	if _, err := db.FetchPayloads(bg, FetchPayloadsOptions{Commit: head}); !errors.Is(err, ErrAway) {
		t.Errorf("offline: %v", err)
	}
	s := must.Get(db.At(bg, "main"))(t)
	for key, value := range values {
		if strings.HasPrefix(key, "a/") {
			if b := must.Get(s.Get(bg, key, kv.All()))(t); string(b) != value {
				t.Errorf("%s: other bytes", key)
			}
		}
	}
	must.Do(t, s.Close())
	store.set(nil)
	if one := must.Get(db.FetchPayloads(bg, FetchPayloadsOptions{Commit: head, Path: "lone"}))(t); one.Payloads != 1 || one.Total != 9000 {
		t.Errorf("a key: %+v", one)
	}
	if _, err := db.FetchPayloads(bg, FetchPayloadsOptions{Commit: head, Path: "none"}); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("nothing: %v", err)
	}
	must.Get(db.GC(bg, GCOptions{AwaySize: want / 2}))(t)
	if _, err := db.FetchPayloads(bg, FetchPayloadsOptions{Commit: head, Path: "a"}); !errors.Is(err, kv.ErrTooLarge) {
		t.Errorf("more than is kept: %v", err)
	}
	if r := must.Get(from.FetchPayloads(bg, FetchPayloadsOptions{Commit: head}))(t); r.Payloads != 601 || r.Fetched != 0 {
		t.Errorf("no lazy clone: %+v", r)
	}
}
