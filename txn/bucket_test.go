package txn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/depot"
	"github.com/zarrdb/zarrdb/txn/history"
	"github.com/zarrdb/zarrdb/txn/internal/bucket"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// wire is a store over a network: fail decides about each request. It counts requests, and those that run at once.
type wire struct {
	kv.Store
	mu      sync.Mutex
	failing sync.Mutex
	ops     []string
	fail    func(op string) netFault // one call at a time
	asked   func(op, key string)
}

type netFault int

const (
	fine    netFault = iota
	broken           // nothing was done
	unheard          // it was done, and the answer was lost
)

var errWire = errors.New("the network is down")

func (w *wire) does(op, key string) netFault {
	w.mu.Lock()
	w.ops = append(w.ops, op)
	fail, asked := w.fail, w.asked
	w.mu.Unlock()
	if asked != nil {
		asked(op, key)
	}
	if fail != nil {
		w.failing.Lock()
		defer w.failing.Unlock()
		return fail(op)
	}
	return fine
}

// set changes how requests fail; nil lets them through.
func (w *wire) set(fail func(op string) netFault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail = fail
}

// ask calls a function with each request from now on; nil calls none.
func (w *wire) ask(asked func(op, key string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = asked
}

// took returns the requests since the last call, sorted.
func (w *wire) took() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := slices.Sorted(slices.Values(w.ops))
	w.ops = nil
	return strings.Join(list, " ")
}

func (w *wire) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	if w.does("get", key) != fine {
		return nil, errWire
	}
	return w.Store.Get(ctx, key, rng)
}

func (w *wire) Set(ctx context.Context, key string, value []byte) error {
	switch w.does("put", key) {
	case broken:
		return errWire
	case unheard:
		return errors.Join(errWire, w.Store.Set(ctx, key, value))
	}
	return w.Store.Set(ctx, key, value)
}

func (w *wire) List(ctx context.Context, o kv.ListOptions) iter.Seq2[string, error] {
	w.does("list", o.Prefix)
	return w.Store.List(ctx, o)
}

func (w *wire) GetTagged(ctx context.Context, key string, known kv.Tag, limit int64) (kv.Tagged, error) {
	if w.does("look", key) != fine {
		return kv.Tagged{}, errWire
	}
	return w.Store.(kv.Conditional).GetTagged(ctx, key, known, limit)
}

func (w *wire) SetTagged(ctx context.Context, key string, value []byte, want kv.Tag) (kv.Tag, error) {
	switch w.does("swap", key) {
	case broken:
		return kv.NoValue, kv.ErrUnknown
	case unheard:
		_, err := w.Store.(kv.Conditional).SetTagged(ctx, key, value, want)
		return kv.NoValue, errors.Join(kv.ErrUnknown, err)
	}
	return w.Store.(kv.Conditional).SetTagged(ctx, key, value, want)
}

func noSleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// machine makes a database in a directory.
func machine(t *testing.T) *DB {
	t.Helper()
	db := must.Get(Create(filepath.Join(t.TempDir(), "db"), joined()))(t)
	t.Cleanup(func() { closeChecked(t, db) })
	return db
}

// joined are options of a database that opens others for its peers.
func joined() *Options {
	o := testOptions(nil)
	o.Other = func(_ context.Context, dir string) (*DB, func() error, error) {
		o := testOptions(nil)
		o.ReadOnly = true
		db, err := Open(dir, o)
		if err != nil {
			return nil, nil, err
		}
		return db, db.Close, nil
	}
	return o
}

func bucketOf(t *testing.T, db *DB, store kv.Store) *Bucket {
	t.Helper()
	return must.Get(db.Bucket(bg, BucketOptions{Store: store, Name: "mem:bucket", Write: true, sleep: noSleep}))(t)
}

// readOf opens a bucket to pull from.
func readOf(t *testing.T, db *DB, store kv.Store) *Bucket {
	t.Helper()
	return must.Get(db.Bucket(bg, BucketOptions{Store: store, Name: "mem:bucket", sleep: noSleep}))(t)
}

// cloneOf clones what is in a bucket.
func cloneOf(t *testing.T, store kv.Store, o TransferOptions) *DB {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	must.Get(CloneBucket(bg, BucketOptions{Store: store, Name: "mem:bucket"}, dir, testOptions(nil), o))(t)
	db := must.Get(Open(dir, joined()))(t)
	t.Cleanup(func() { closeChecked(t, db) })
	return db
}

func manifestOf(t *testing.T, store kv.Store) *depot.Manifest {
	t.Helper()
	return must.Get(depot.Open(bg, store, nil))(t).Manifest()
}

var everyRef = TransferOptions{AllBranches: true, AllTags: true}

// TestBucketRequests is the table of what each transfer costs.
func TestBucketRequests(t *testing.T) {
	store := &wire{Store: kv.NewMem()}
	db := machine(t)
	grow(t, db, 3, 0)
	b := bucketOf(t, db, store)
	must.Get(db.PushTo(bg, b, TransferOptions{}))(t)
	store.took()
	const push = "look put put swap"
	check := func(what, want string, do func() (*TransferReport, error)) *TransferReport {
		t.Helper()
		r := must.Get(do())(t)
		if got := store.took(); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
		if n := int64(len(strings.Fields(want))); r.Requests != n {
			t.Errorf("%s: reports %d requests", what, r.Requests)
		}
		return r
	}
	update(t, db, "main", map[string]string{"x": big("x", 5000)})
	check("push by an open bucket", "put put swap", func() (*TransferReport, error) { return db.PushTo(bg, b, TransferOptions{}) })
	update(t, db, "main", map[string]string{"x": big("y", 5000)})
	check("push", push, func() (*TransferReport, error) { return db.PushTo(bg, bucketOf(t, db, store), TransferOptions{}) })
	many := map[string]string{}
	for i := range 300 {
		many[fmt.Sprintf("many/a%d/c/0", i)] = fmt.Sprint(i)
	}
	update(t, db, "main", many)
	check("push of many arrays", "look put swap", func() (*TransferReport, error) { return db.PushTo(bg, bucketOf(t, db, store), TransferOptions{}) })
	update(t, db, "main", map[string]string{"x": "small"})
	check("push without payloads", "look put swap", func() (*TransferReport, error) { return db.PushTo(bg, bucketOf(t, db, store), TransferOptions{}) })
	must.Do(t, db.CreateTag(bg, "v1", mustHead(t, db)))
	check("push of a tag", "look put swap", func() (*TransferReport, error) {
		return db.PushTo(bg, bucketOf(t, db, store), TransferOptions{Refs: []RefSpec{{From: "v1"}}})
	})
	check("push of nothing", "look look", func() (*TransferReport, error) { return db.PushTo(bg, bucketOf(t, db, store), TransferOptions{}) })
	dir := filepath.Join(t.TempDir(), "clone")
	check("clone", "get get get get look", func() (*TransferReport, error) {
		return CloneBucket(bg, BucketOptions{Store: store, Name: "mem:bucket"}, dir, testOptions(nil), TransferOptions{})
	})
	copied := must.Get(Open(dir, testOptions(nil)))(t)
	defer closeChecked(t, copied)
	sameVersions(t, db, copied)
	check("pull of nothing", "look look", func() (*TransferReport, error) { return copied.PullFrom(bg, readOf(t, copied, store), everyRef) })
	update(t, db, "main", map[string]string{"x": big("z", 5000)})
	must.Get(db.PushTo(bg, b, TransferOptions{}))(t)
	store.took()
	check("pull", "get get look look", func() (*TransferReport, error) { return copied.PullFrom(bg, readOf(t, copied, store), everyRef) })
	sameVersions(t, db, copied)
}

// TestBucketModel lets three machines commit, push, pull and merge over a network that fails. Whatever is in the bucket is whole and
// right, and every answer is true.
func TestBucketModel(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { bucketModel(t, seed, 120) })
	}
}

func bucketModel(t *testing.T, seed uint64, steps int) {
	r := rand.New(rand.NewPCG(seed, 1))
	mem := kv.NewMem()
	known := map[CommitID]map[string]string{}
	note := func(db *DB) {
		for _, ref := range append(branchesOf(db), tagsOf(db)...) {
			if known[ref.Commit] == nil {
				known[ref.Commit] = at(t, db, ref.Commit.String())
			}
		}
	}
	var dbs []*DB
	var wires []*wire
	var buckets []*Bucket
	for i := range 3 {
		w := &wire{Store: mem}
		db := machine(t)
		if i > 0 {
			db = cloneOf(t, mem, everyRef)
		}
		grow(t, db, 1, i)
		dbs, wires, buckets = append(dbs, db), append(wires, w), append(buckets, bucketOf(t, db, w))
		if i == 0 {
			must.Get(db.PushTo(bg, buckets[0], TransferOptions{}))(t)
		}
		note(db)
	}
	faults := rand.New(rand.NewPCG(r.Uint64(), 0)) // the order of requests that run at once varies
	flaky := func(op string) netFault {
		if n := faults.IntN(12); n < 2 {
			return netFault(n + 1)
		}
		return fine
	}
	verify := func() {
		got := cloneOf(t, mem, everyRef)
		for _, ref := range append(branchesOf(got), tagsOf(got)...) {
			if have := at(t, got, ref.Commit.String()); !maps.Equal(have, known[ref.Commit]) {
				t.Fatalf("%s: the clone has other values", ref.Name)
			}
		}
		report := must.Get(CheckBucket(bg, BucketOptions{Store: mem}, true))(t)
		for _, p := range report.Problems {
			t.Fatal(p)
		}
	}
	pushed, unknown := 0, 0
	for step := range steps {
		i := r.IntN(3)
		db, w := dbs[i], wires[i]
		branch := []string{"main", "main", "b"}[r.IntN(3)]
		if _, err := db.Head(bg, branch); err != nil {
			must.Do(t, db.CreateBranch(bg, branch, mustHead(t, db)))
		}
		w.set(flaky)
		if r.IntN(2) == 0 {
			w.set(nil)
		}
		if r.IntN(4) == 0 { // the process was killed
			w.set(nil)
			buckets[i] = bucketOf(t, db, w)
			w.set(flaky)
		}
		spec := TransferOptions{Refs: []RefSpec{{From: branch}}}
		before := manifestOf(t, mem)
		switch r.IntN(5) {
		case 0, 1:
			update(t, db, branch, map[string]string{fmt.Sprintf("k%d/%d", i, r.IntN(5)): big(fmt.Sprint(step), 600+r.IntN(5000))})
			note(db)
		case 2:
			_, err := db.PullFrom(bg, buckets[i], spec)
			if errors.Is(err, ErrDiverged) {
				if got, err := db.FetchFrom(bg, buckets[i], spec); err == nil {
					_, err := db.Merge(bg, branch, got.Refs[0].Commit, CommitOptions{Message: "merge", Choices: []PathChoice{{Choice: Ours}}})
					if !errors.Is(err, history.ErrManyBases) { // as after merges of each other's merges
						must.Do(t, err)
					}
				}
			} else if err != nil && w.fail == nil && !errors.Is(err, ErrNoRef) {
				t.Fatalf("step %d: pull: %v", step, err)
			}
			note(db)
		default:
			if r.IntN(6) == 0 {
				spec.Force = true
			}
			head := must.Get(db.Head(bg, branch))(t)
			_, err := db.PushTo(bg, buckets[i], spec)
			now := manifestOf(t, mem)
			switch {
			case err == nil:
				if pushed++; now.Refs[catalog.HeadRef(branch)] != depot.ID(head) {
					t.Fatalf("step %d: pushed %s, and it is not there", step, branch)
				}
			case errors.Is(err, kv.ErrUnknown):
				unknown++
			case !maps.Equal(before.Refs, now.Refs):
				t.Fatalf("step %d: %v, and refs moved", step, err)
			case w.fail == nil && !errors.Is(err, ErrDiverged):
				t.Fatalf("step %d: %v", step, err)
			}
		}
		if step%15 == 0 {
			verify()
		}
	}
	verify()
	for i, db := range dbs { // the same push settles what is unknown
		wires[i].set(nil)
		b := bucketOf(t, db, wires[i])
		if _, err := db.PushTo(bg, b, TransferOptions{Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	verify()
	t.Logf("%d pushes, %d of unknown outcome", pushed, unknown)
}

// TestBucketFree changes and collects the database at every request of a push and a pull, by the process that has it open and by a
// peer: no lock is held meanwhile.
func TestBucketFree(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	store := &wire{Store: kv.NewMem()}
	first := machine(t)
	grow(t, first, 2, 0)
	must.Get(first.PushTo(bg, bucketOf(t, first, store), TransferOptions{}))(t)
	db := cloneOf(t, store, everyRef)
	must.Do(t, db.CreateBranch(bg, "side", mustHead(t, db)))
	peer := NewPeer(db.Dir(), db.Identity(), db.Remote(), testOptions(nil))
	defer peer.Close()
	n := 0
	var one sync.Mutex
	store.ask(func(string, string) {
		one.Lock()
		defer one.Unlock()
		n++
		update(t, db, "side", map[string]string{"n": big(fmt.Sprint(n), 3000)})
		must.Get(db.Expire(bg, ExpireOptions{Keep: 1}))(t)
		must.Get(db.GC(bg, GCOptions{}))(t)
	})
	for i, from := range []*DB{db, peer} {
		asked := store.asked
		store.ask(nil)
		update(t, first, "main", map[string]string{"x": big("x", 5000+i)})
		must.Get(first.PushTo(bg, bucketOf(t, first, store), TransferOptions{}))(t)
		store.ask(asked)
		before := n
		r := must.Get(from.PullFrom(bg, readOf(t, from, store), TransferOptions{}))(t)
		if len(r.Moves) != 1 || r.PayloadBytes == 0 || mustHead(t, db) != mustHead(t, first) {
			t.Errorf("pull: %+v", r)
		}
		must.Get(from.PushTo(bg, bucketOf(t, from, store), TransferOptions{Refs: []RefSpec{{From: "side", Force: true}}}))(t)
		if n-before < 7 {
			t.Errorf("%d requests", n-before)
		}
	}
	store.ask(nil)
	if got := cloneOf(t, store, everyRef); len(branchesOf(got)) != 2 {
		t.Errorf("%v", branchesOf(got))
	}
}

// TestBucketResume ends pushes and clones in the middle. What was carried is used by the next one.
func TestBucketResume(t *testing.T) {
	store := &wire{Store: kv.NewMem()}
	db := machine(t)
	values := map[string]string{}
	for i := range 40 {
		values[fmt.Sprintf("a/k%02d", i)] = big(fmt.Sprint(i), 1<<20)
	}
	s := must.Get(db.Begin(bg, "main"))(t)
	set(t, s, values)
	must.Get(s.Commit(bg, CommitOptions{Message: "40 MiB"}))(t)
	puts := 0
	store.set(func(op string) netFault {
		if op == "put" {
			if puts++; puts == 6 {
				return broken
			}
		}
		return fine
	})
	open := func() *Bucket {
		return must.Get(db.Bucket(bg, BucketOptions{Store: store, Name: "mem:bucket", Write: true, sleep: noSleep, segment: 4 << 20}))(t)
	}
	opened := open()
	puts = 0
	if _, err := db.PushTo(bg, opened, TransferOptions{}); !errors.Is(err, errWire) {
		t.Fatal(err)
	}
	store.set(nil)
	// A segment was lost since, and one entry of the journal overlaps another.
	lost := ""
	for key, err := range store.Store.List(bg, kv.ListOptions{Prefix: "s/"}) {
		must.Do(t, err)
		lost = cmp.Or(lost, key)
	}
	must.Do(t, store.Store.Delete(bg, lost))
	journal := filepath.Join(bucket.Dir(db.fs, db.dir, opened.name), "uploaded")
	lines := strings.SplitAfter(string(must.Get(os.ReadFile(journal))(t)), "\n")
	var list []depot.Extent
	must.Do(t, json.Unmarshal([]byte(lines[2]), &list))
	list[0].From, list[0].Offset = list[0].From+8, list[0].Offset+8
	line := string(must.Get(json.Marshal(list))(t)) + "\n"
	must.Do(t, os.WriteFile(journal, []byte(lines[0]+line+strings.Join(lines[1:], "")), 0o666))
	r := must.Get(db.PushTo(bg, open(), TransferOptions{}))(t)
	if got := must.Get(CheckBucket(bg, BucketOptions{Store: store}, false))(t); len(got.Problems) > 0 {
		t.Errorf("published: %v", got.Problems)
	}
	if r.PresentBytes < 8<<20 || r.PayloadBytes+r.PresentBytes < 40<<20 || r.PayloadBytes+r.PresentBytes > 41<<20 {
		t.Errorf("uploaded %d, used %d", r.PayloadBytes, r.PresentBytes)
	}
	dir := filepath.Join(t.TempDir(), "clone")
	var gets atomic.Int64
	store.set(func(op string) netFault { // of 16 requests or so, 12 are answered each time
		if op == "get" && gets.Add(1) > 12 {
			return broken
		}
		return fine
	})
	o := BucketOptions{Store: store, Name: "mem:bucket"}
	tries, err := 0, errWire
	for ; tries < 50 && errors.Is(err, errWire); tries++ {
		gets.Store(0)
		var got *TransferReport
		if got, err = CloneBucket(bg, o, dir, testOptions(nil), everyRef); err == nil && got.PresentBytes < 1<<20 {
			t.Errorf("try %d: present %d, received %d", tries, got.PresentBytes, got.Received)
		}
	}
	if err != nil || tries < 2 {
		t.Fatalf("%d tries: %v", tries, err)
	}
	copied := must.Get(Open(dir, testOptions(nil)))(t)
	defer closeChecked(t, copied)
	sameVersions(t, db, copied)
}

// TestBucketRefusals are pushes and pulls that change nothing, and how they are told.
func TestBucketRefusals(t *testing.T) {
	store := &wire{Store: kv.NewMem()}
	db := machine(t)
	grow(t, db, 2, 0)
	if _, err := db.Bucket(bg, BucketOptions{Store: store, Name: "mem:bucket"}); !errors.Is(err, depot.ErrNone) {
		t.Errorf("pull from nothing: %v", err)
	}
	b := bucketOf(t, db, store)
	must.Get(db.PushTo(bg, b, TransferOptions{}))(t)
	copied := cloneOf(t, store, everyRef)
	c := bucketOf(t, copied, store)
	refused := func(what string, db *DB, b *Bucket, o TransferOptions, want error) {
		t.Helper()
		before := manifestOf(t, store).Refs
		if _, err := db.PushTo(bg, b, o); !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
		if now := manifestOf(t, store).Refs; !maps.Equal(now, before) {
			t.Errorf("%s: refs moved", what)
		}
	}
	update(t, db, "main", map[string]string{"a/x": big("x", 3000)})
	must.Get(db.PushTo(bg, b, TransferOptions{}))(t)
	update(t, copied, "main", map[string]string{"a/y": big("y", 3000)})
	refused("behind", copied, c, TransferOptions{}, ErrDiverged)
	refused("no such ref", copied, c, TransferOptions{Refs: []RefSpec{{From: "none"}}}, ErrNoRef)
	if _, err := copied.PullFrom(bg, c, TransferOptions{}); !errors.Is(err, ErrDiverged) {
		t.Errorf("pull: %v", err)
	}
	must.Do(t, db.CreateTag(bg, "v", mustHead(t, db)))
	must.Get(db.PushTo(bg, b, everyRef))(t)
	must.Do(t, copied.CreateTag(bg, "v", mustHead(t, copied)))
	refused("another tag", copied, c, TransferOptions{AllTags: true}, ErrDiverged)

	// A branch is deleted between the plan and the publication.
	must.Do(t, db.CreateBranch(bg, "side", mustHead(t, db)))
	must.Get(db.PushTo(bg, b, TransferOptions{AllBranches: true}))(t)
	update(t, db, "side", map[string]string{"a/s": big("s", 3000)})
	fresh := bucketOf(t, db, store)
	deletes := sync.OnceFunc(func() {
		d := must.Get(depot.Open(bg, store.Store, nil))(t)
		must.Do(t, d.Begin().Publish(bg, depot.Change{Refs: []depot.RefChange{{Ref: "heads/side", Old: d.Manifest().Refs["heads/side"]}}}))
	})
	store.ask(func(op, key string) {
		if op == "put" && strings.HasPrefix(key, "b/") {
			deletes()
		}
	})
	if _, err := db.PushTo(bg, fresh, TransferOptions{Refs: []RefSpec{{From: "side"}}}); !errors.Is(err, ErrRefMoved) || manifestOf(t, store).Refs["heads/side"] != (depot.ID{}) {
		t.Errorf("deleted meanwhile: %v", err)
	}

	// Two copies of one directory.
	here := machine(t)
	update(t, here, "main", map[string]string{"z": big("z", 3000)})
	must.Do(t, here.Close())
	there := filepath.Join(t.TempDir(), "copied")
	must.Do(t, os.CopyFS(there, os.DirFS(here.Dir())))
	other := &wire{Store: kv.NewMem()}
	for i, dir := range []string{here.Dir(), there} {
		db := must.Get(Open(dir, testOptions(nil)))(t)
		update(t, db, "main", map[string]string{"z": big(fmt.Sprint("z", i), 3000)})
		b := bucketOf(t, db, other)
		if i == 0 {
			must.Get(db.PushTo(bg, b, TransferOptions{}))(t)
		} else if _, err := db.PushTo(bg, b, TransferOptions{Force: true}); !errors.Is(err, ErrOtherBytes) {
			t.Errorf("other bytes: %v", err)
		}
		must.Do(t, db.Close())
	}

	// A remote that lists a version only bare, and one with names that no ref can have.
	for _, c := range []struct{ ref, want string }{{"heads/main", "only its record"}, {"x", "no branch or tag"}, {"heads/", "no branch or tag"}, {"tags/a b", "no branch or tag"}} {
		strange, id := kv.NewMem(), mustHead(t, copied)
		record := EncodeCommit(must.Get(copied.Lookup(bg, id))(t))
		must.Do(t, must.Get(depot.Create(bg, strange, &depot.Options{Sleep: noSleep}))(t).Begin().Publish(bg, depot.Change{
			Commits: func(yield func(depot.Commit, error) bool) { yield(depot.Commit{Record: record, Bare: true}, nil) },
			Refs:    []depot.RefChange{{Ref: c.ref, New: depot.ID(id)}},
		}))
		_, err := CloneBucket(bg, BucketOptions{Store: strange, Name: "mem:strange"}, filepath.Join(t.TempDir(), "clone"), testOptions(nil), everyRef)
		if !errors.Is(err, kv.ErrCorrupt) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: clone: %v", c.ref, err)
		}
		from := must.Get(db.Bucket(bg, BucketOptions{Store: strange, Name: "mem:" + c.ref}))(t)
		if _, err := db.PullFrom(bg, from, TransferOptions{Force: true}); !errors.Is(err, kv.ErrCorrupt) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: pull: %v", c.ref, err)
		}
	}

	// A bucket that went back.
	old := kv.NewMem()
	for key, err := range store.List(bg, kv.ListOptions{}) {
		must.Do(t, err)
		must.Do(t, old.Set(bg, key, must.Get(kv.Get(bg, store.Store, key))(t)))
	}
	update(t, db, "main", map[string]string{"a/x": big("xx", 3000)})
	must.Get(db.PushTo(bg, b, TransferOptions{}))(t)
	if _, err := db.Bucket(bg, BucketOptions{Store: old, Name: "mem:bucket", Write: true}); !errors.Is(err, ErrBucketChanged) || !strings.Contains(err.Error(), "generation") {
		t.Errorf("back: %v", err)
	}
	back := must.Get(db.Bucket(bg, BucketOptions{Store: old, Name: "mem:bucket"}))(t)
	if r := must.Get(db.PullFrom(bg, back, TransferOptions{}))(t); !strings.Contains(r.Note, "went back") {
		t.Errorf("back: note %q", r.Note)
	}
	if _, err := db.Bucket(bg, BucketOptions{Store: old, Name: "mem:bucket", Write: true}); !errors.Is(err, ErrBucketChanged) {
		t.Errorf("back, after a pull: %v", err)
	}
	if _, err := db.PushTo(bg, back, TransferOptions{}); !errors.Is(err, kv.ErrReadOnly) {
		t.Errorf("push to a bucket that was opened to pull from: %v", err)
	}
	none := kv.NewMem()
	if _, err := db.Bucket(bg, BucketOptions{Store: none, Name: "mem:bucket", Accept: true}); !errors.Is(err, ErrBucketChanged) {
		t.Errorf("gone: %v", err)
	}
	dry := must.Get(db.Bucket(bg, BucketOptions{Store: none, Name: "mem:none", Write: true, DryRun: true, sleep: noSleep}))(t)
	if r := must.Get(db.PushTo(bg, dry, TransferOptions{DryRun: true}))(t); len(r.Moves) != 1 || r.Commits == 0 {
		t.Errorf("dry run: %+v", r)
	}
	if _, err := db.PushTo(bg, dry, TransferOptions{}); !errors.Is(err, kv.ErrReadOnly) {
		t.Errorf("push after a dry run: %v", err)
	}
	for key := range none.List(bg, kv.ListOptions{}) {
		t.Errorf("a dry run, or opening to pull, wrote %s", key)
	}
	if _, err := os.Stat(bucket.Dir(db.fs, db.dir, "mem:none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a dry run wrote here: %v", err)
	}
	back = must.Get(db.Bucket(bg, BucketOptions{Store: old, Name: "mem:bucket", Write: true, Accept: true, sleep: noSleep}))(t)
	must.Get(db.PushTo(bg, back, TransferOptions{}))(t)
	if manifestOf(t, old).Refs["heads/main"] != depot.ID(mustHead(t, db)) {
		t.Error("accepted, and not pushed")
	}
	if _, err := db.PushTo(bg, back, TransferOptions{SkipDamaged: true}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("skip damaged: %v", err)
	}
}

// TestBucketPull pulls beside another pull, beside a collection, after a broken one, and into a database that is not to be written.
func TestBucketPull(t *testing.T) {
	store := &wire{Store: kv.NewMem()}
	db := machine(t)
	grow(t, db, 2, 0)
	b := bucketOf(t, db, store)
	must.Get(db.PushTo(bg, b, TransferOptions{}))(t)
	copied := cloneOf(t, store, everyRef)
	news := func() {
		update(t, db, "main", map[string]string{"a/x": big(mustHead(t, db).String(), 3000)})
		must.Get(db.PushTo(bg, b, TransferOptions{}))(t)
	}
	news()
	in := readOf(t, copied, store)
	store.took()
	copied.opts.ReadOnly = true
	if _, err := copied.PullFrom(bg, in, TransferOptions{}); !errors.Is(err, kv.ErrReadOnly) || store.took() != "" {
		t.Errorf("read only: %v", err)
	}
	copied.opts.ReadOnly = false

	other, asked := readOf(t, copied, store), 0
	store.ask(func(string, string) {
		store.ask(nil)
		asked++
		ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
		defer cancel()
		if _, err := copied.PullFrom(ctx, other, TransferOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("beside another pull: %v", err)
		}
	})
	must.Get(copied.PullFrom(bg, in, TransferOptions{}))(t)
	if sameVersions(t, db, copied); asked != 1 {
		t.Errorf("%d other pulls", asked)
	}

	news()
	copied.collecting.Lock()
	time.AfterFunc(100*time.Millisecond, copied.collecting.Unlock)
	must.Get(copied.PullFrom(bg, in, TransferOptions{}))(t)
	sameVersions(t, db, copied)

	news()
	must.Do(t, os.MkdirAll(filepath.Join(in.state.Incoming, "strange"), 0o777))
	if _, err := copied.PullFrom(bg, in, TransferOptions{}); !errors.Is(err, ErrExists) {
		t.Errorf("broken: %v", err)
	}
	must.Get(copied.PullFrom(bg, in, TransferOptions{}))(t)
	sameVersions(t, db, copied)

	news()
	must.Do(t, copied.Protect(bg, "", false, Frozen))
	if _, err := copied.PullFrom(bg, in, TransferOptions{DryRun: true}); !errors.Is(err, ErrProtected) {
		t.Errorf("into a frozen branch: %v", err)
	}
}

// TestBucketDepth carries parts of histories: shallow clones, pulls that deepen them, one branch, and pruning.
func TestBucketDepth(t *testing.T) {
	store := kv.NewMem()
	db := machine(t)
	grow(t, db, 6, 0)
	must.Do(t, db.CreateBranch(bg, "side", mustHead(t, db)))
	update(t, db, "side", map[string]string{"a/s": big("s", 3000)})
	b := bucketOf(t, db, store)
	must.Get(db.PushTo(bg, b, everyRef))(t)
	one := cloneOf(t, store, TransferOptions{Branch: "main", Depth: 2})
	older := mustHead(t, db).String() + "~4"
	if _, err := one.At(bg, older); len(branchesOf(one)) != 1 || !errors.Is(err, ErrExpired) {
		t.Errorf("shallow: %v", err)
	}
	must.Get(one.PullFrom(bg, readOf(t, one, store), TransferOptions{Unshallow: true, AllBranches: true}))(t)
	sameVersions(t, db, one)
	if !maps.Equal(at(t, one, older), at(t, db, older)) {
		t.Error("unshallow: other values")
	}
	must.Do(t, db.DeleteBranch(bg, "side"))
	must.Get(db.PushTo(bg, b, TransferOptions{AllBranches: true, Prune: true}))(t)
	if _, ok := manifestOf(t, store).Refs["heads/side"]; ok {
		t.Error("prune: the branch is there")
	}
	if r := must.Get(db.PushTo(bg, b, TransferOptions{DryRun: true, Refs: []RefSpec{{From: "main", To: "new"}}}))(t); len(r.Moves) != 1 || manifestOf(t, store).Refs["heads/new"] != (depot.ID{}) {
		t.Errorf("dry run: %+v", r)
	}
}
