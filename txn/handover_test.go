package txn

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/must"
)

// relay is the connection of a peer to the process that has a database open (the holder). The holder hands the
// database over at one step: before a request of the peer, or before the holder reads or writes a file for a request. It does so
// as a server: it begins nothing, cancels the requests that last, waits for the others, and ends. The next holder
// lets the peer renew what it has, and then removes what nothing keeps.
//
// A relay is used in a bubble of synctest. Time passes there only while nothing can go on, so a wait for nothing shows as time that
// passed.
type relay struct {
	t  *testing.T
	o  *Options
	at atomic.Int64 // the step

	mu      sync.Mutex
	changed sync.Cond
	holder  *DB // nil between two
	under   map[*inHand]bool
	leases  map[*relayLease]bool
	visit   *Visit
	stop    func() // of the recalls
	letGo   func()
	steps   atomic.Int64
	asking  atomic.Int64 // requests that do something at the holder
	where   string       // the hand-over took place
}

// inHand is a request that the holder has under way.
type inHand struct {
	ctx    context.Context
	lasts  bool
	cancel context.CancelCauseFunc
}

// nextHolder is what the next holder commits.
var nextHolder = map[string]string{"a/c/0": big("next", 5000), "later": "1"}

var errHandedOver = errors.New("the holder has handed over")

func newRelay(t *testing.T, o *Options) *relay {
	r := &relay{t: t, o: o, under: map[*inHand]bool{}, leases: map[*relayLease]bool{}, stop: func() {}, letGo: func() {}}
	r.changed.L = &r.mu
	o.lives = func(string) bool { return true }
	o.FS = errorfs.Wrap(o.FS, errorfs.InjectorFunc(r.ofFile))
	r.holder = must.Get(Open("db", o))(t)
	r.connect(r.holder)
	return r
}

// connect renews the visit and the leases.
func (r *relay) connect(db *DB) {
	name := ""
	if r.visit != nil {
		name = r.visit.Name
	}
	v := must.Get(db.Visit(name, "a peer"))(r.t)
	if v.File != nil {
		must.Do(r.t, v.File.Close())
	}
	if name != "" && v.Name != name {
		r.t.Errorf("the next holder does not know the peer")
	}
	for k := range r.leases {
		k.Lease = lease{must.Get(v.Renew(bg, k.Lease.Commit().ID))(r.t)}
	}
	v.Begin()
	r.visit, r.stop = v, db.Cache(func() { r.letGo() })
}

// begin sends a request to the present holder.
func (r *relay) begin(ctx context.Context, name string, lasts bool) (*DB, *inHand) {
	q := &inHand{lasts: lasts}
	q.ctx, q.cancel = context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if db := r.step("before " + name); db != nil {
		r.handOver(db)
	}
	for r.holder == nil {
		r.changed.Wait()
	}
	r.under[q] = true
	return r.holder, q
}

func (r *relay) end(q *inHand) {
	q.cancel(nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.under, q)
	r.changed.Broadcast()
}

// ofFile is a step of the holder, which does something meanwhile.
func (r *relay) ofFile(op errorfs.Op) error {
	if r.asking.Load() > 0 && r.steps.Add(1) == r.at.Load() {
		go func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			db := r.holder
			r.where, r.holder = "at a file: "+op.Path, nil
			r.handOver(db)
		}()
	}
	return nil
}

// step returns the holder if it is to end now. It begins nothing from now on.
func (r *relay) step(what string) *DB {
	if r.steps.Add(1) != r.at.Load() {
		return nil
	}
	db := r.holder
	r.where, r.holder = what, nil
	return db
}

// handOver ends the holder and begins the next one. r.mu is held.
func (r *relay) handOver(db *DB) {
	for q := range r.under {
		if q.lasts {
			q.cancel(errHandedOver)
		}
	}
	for len(r.under) > 0 {
		r.changed.Wait()
	}
	r.stop()
	leases := maps.Clone(r.leases)
	r.visit.End(func() {
		for k := range leases {
			k.Lease.Release()
		}
	})
	must.Do(r.t, db.Close())
	db = must.Get(Open("db", r.o))(r.t)
	r.connect(db)
	update(r.t, db, "main", nextHolder)
	r.mu.Unlock() // these recall
	mustExpire(r.t, db, ExpireOptions{Keep: 1})
	mustGC(r.t, db)
	r.mu.Lock()
	r.holder = db
	r.changed.Broadcast()
}

func relayed[T any](ctx context.Context, r *relay, name string, fn func(ctx context.Context, s source) (T, error)) (T, error) {
	db, q := r.begin(ctx, name, false)
	defer r.end(q)
	return fn(q.ctx, source{db})
}

type relayLease struct {
	Lease
	r *relay
}

func (k *relayLease) Commit() *Commit {
	k.r.mu.Lock()
	defer k.r.mu.Unlock()
	return k.Lease.Commit()
}

func (k *relayLease) Check() error {
	k.r.mu.Lock()
	defer k.r.mu.Unlock()
	return k.Lease.Check()
}

func (k *relayLease) Release() {
	k.r.mu.Lock()
	defer k.r.mu.Unlock()
	delete(k.r.leases, k)
	k.Lease.Release() // again, if it was not renewed
}

func (r *relay) Lease(ctx context.Context, rev string) (Lease, error) {
	return relayed(ctx, r, "lease", func(ctx context.Context, s source) (Lease, error) {
		at, err := s.Lease(ctx, rev)
		if err != nil {
			return nil, err
		}
		k := &relayLease{at, r}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.leases[k] = true
		return k, nil
	})
}

func (r *relay) Pages(ctx context.Context, q PageQuery) ([][]byte, error) {
	return relayed(ctx, r, "pages", func(ctx context.Context, s source) ([][]byte, error) { return s.Pages(ctx, q) })
}

func (r *relay) Pack(ctx context.Context, a PackAddress) (PackFile, error) {
	return relayed(ctx, r, "pack", func(ctx context.Context, s source) (PackFile, error) { return s.Pack(ctx, a) })
}

func (r *relay) Payload(ctx context.Context, a PackAddress, off, n uint64) ([]byte, error) {
	return relayed(ctx, r, "payload", func(ctx context.Context, s source) ([]byte, error) { return s.Payload(ctx, a, off, n) })
}

func (r *relay) Resolve(ctx context.Context, rev string) (CommitID, error) {
	return relayed(ctx, r, "resolve", func(ctx context.Context, s source) (CommitID, error) { return s.Resolve(ctx, rev) })
}

func (r *relay) Refs(ctx context.Context) (branches, tags []Ref, err error) {
	_, err = relayed(ctx, r, "refs", func(ctx context.Context, s source) (none, error) {
		branches, tags, err = s.Refs(ctx)
		return none{}, err
	})
	return branches, tags, err
}

func (r *relay) Ancestors(ctx context.Context, from CommitID, n int) ([]Ancestor, error) {
	return relayed(ctx, r, "ancestors", func(ctx context.Context, s source) ([]Ancestor, error) { return s.Ancestors(ctx, from, min(n, 3)) })
}

func (r *relay) Records(ctx context.Context, of RecordRange) (list []Record, more bool, err error) {
	_, err = relayed(ctx, r, "records", func(ctx context.Context, s source) (none, error) {
		list, more, err = s.Records(ctx, of)
		return none{}, err
	})
	return list, more, err
}

func (r *relay) Watch(ctx context.Context) (Watch, error) {
	return relayed(ctx, r, "watch", func(ctx context.Context, s source) (Watch, error) {
		w, err := s.Watch(ctx)
		w.Live = func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.holder == s.db
		}
		return w, err
	})
}

func (r *relay) Recalled(letGo func()) (stop func()) {
	r.letGo = letGo
	return func() {}
}

func (r *relay) Begin(context.Context, BeginOptions) (Tx, error) { return nil, errors.ErrUnsupported }

func (r *relay) Resume(context.Context, SessionID) (Tx, error) { return nil, errors.ErrUnsupported }

// Ask asks the next holder again for what was cancelled.
func (r *relay) Ask(ctx context.Context, name string, in []byte, progress func([]byte)) ([]byte, error) {
	for {
		db, q := r.begin(ctx, name, Lasts(name))
		if name != "keep" { // it is under way while other requests come
			r.asking.Add(1)
		}
		out, err := db.Answer(q.ctx, name, in, progress)
		if name != "keep" {
			r.asking.Add(-1)
		}
		gone := errors.Is(context.Cause(q.ctx), errHandedOver)
		r.end(q)
		if err == nil || !gone || ctx.Err() != nil {
			return out, err
		}
	}
}

// handoverCase is what a peer of db does, beside another database.
type handoverCase struct {
	name string
	do   func(ctx context.Context, t *testing.T, p, other *DB) error
}

// wantEither looks at a copy of db before or after the next holder has begun.
func wantEither(t *testing.T, db *DB, branch string) {
	t.Helper()
	got := at(t, db, branch)
	if now := got["a/c/0"]; now != big("v7", 3400) && (now != nextHolder["a/c/0"] || got["later"] != "1") || got["a/note"] != "7" || len(got) < 8 {
		t.Errorf("%s has %d keys, %.5s, later %q", branch, len(got), now, got["later"])
	}
	if r, err := db.Check(bg, CheckOptions{Payloads: true}); err != nil || r.Found > 0 {
		t.Errorf("the copy: %+v, %v", r, err)
	}
}

func copied(t *testing.T, p *DB, dir, branch string) {
	t.Helper()
	o := p.opts
	db := must.Get(Open(dir, &o))(t)
	wantEither(t, db, branch)
	must.Do(t, db.Close())
}

var handoverCases = []handoverCase{
	{"backup", func(ctx context.Context, t *testing.T, p, _ *DB) error {
		_, err := p.Backup(ctx, "saved", TransferOptions{})
		if err == nil {
			copied(t, p, "saved", "main")
		}
		return err
	}},
	{"clone", func(ctx context.Context, t *testing.T, p, _ *DB) error {
		_, err := p.Clone(ctx, "cloned", TransferOptions{})
		if err == nil {
			copied(t, p, "cloned", "main")
		}
		return err
	}},
	{"restore", func(ctx context.Context, t *testing.T, p, _ *DB) error {
		_, err := p.RestoreTo(ctx, "restored", TransferOptions{})
		if err == nil {
			copied(t, p, "restored", "main")
		}
		return err
	}},
	{"push", func(ctx context.Context, t *testing.T, p, other *DB) error {
		_, err := p.Push(ctx, other, TransferOptions{Refs: []RefSpec{{From: "main", To: "pushed"}}})
		if err == nil {
			wantEither(t, other, "pushed")
		}
		return err
	}},
	{"push to it", func(ctx context.Context, t *testing.T, p, other *DB) error {
		_, err := other.Push(ctx, p, TransferOptions{Refs: []RefSpec{{From: "main", To: "pushed"}}})
		if err == nil && at(t, p, "pushed")["o"] != big("other", 9000) {
			t.Error("the pushed version is another one")
		}
		return err
	}},
	{"pull", func(ctx context.Context, t *testing.T, p, other *DB) error {
		_, err := p.Pull(ctx, other, TransferOptions{Refs: []RefSpec{{From: "main", To: "pulled"}}})
		if err == nil && at(t, p, "pulled")["o"] != big("other", 9000) {
			t.Error("the pulled version is another one")
		}
		return err
	}},
	{"gc", func(ctx context.Context, _ *testing.T, p, _ *DB) error {
		_, err := p.GC(ctx, GCOptions{Explain: true, Progress: func(GCProgress) {}})
		return err
	}},
	{"check", func(ctx context.Context, t *testing.T, p, _ *DB) error {
		r, err := p.Check(ctx, CheckOptions{Payloads: true, Progress: func(CheckProgress) {}})
		if err == nil && (r.Found > 0 || r.Commits < 8) {
			t.Errorf("check: %+v", r)
		}
		return err
	}},
	{"repair", func(ctx context.Context, _ *testing.T, p, other *DB) error {
		_, err := p.Repair(ctx, CheckOptions{Payloads: true, Progress: func(CheckProgress) {}}, other)
		return err
	}},
	{"expire, checkpoint, sync", func(ctx context.Context, _ *testing.T, p, _ *DB) error {
		_, err := p.Expire(ctx, ExpireOptions{Keep: 2})
		return errors.Join(err, p.Checkpoint(ctx), p.Sync(ctx))
	}},
	{"keep by name", func(ctx context.Context, t *testing.T, p, _ *DB) error {
		head := must.Get(p.Head(ctx, ""))(t)
		err := p.KeepVersion(ctx, "another", head, "")
		if list := must.Get(p.KeptVersions(ctx))(t); err == nil && len(list) != 2 {
			t.Errorf("%d versions are kept", len(list))
		}
		return errors.Join(err, p.EndKept(ctx, "another"))
	}},
	{"erase", func(ctx context.Context, t *testing.T, p, _ *DB) error {
		_, err := p.Erase(ctx, "aside", EraseOptions{})
		if _, has := at(t, p, "side")["aside"]; err == nil && has {
			t.Error("it is still there")
		}
		return err
	}},
	{"merge", func(ctx context.Context, t *testing.T, p, _ *DB) error {
		side := must.Get(p.Resolve(ctx, "side"))(t)
		_, err := p.Merge(ctx, "main", side, CommitOptions{})
		if err == nil && at(t, p, "main")["aside"] != "1" {
			t.Error("the merge has lost its side")
		}
		return err
	}},
	{"log", func(ctx context.Context, t *testing.T, p, _ *DB) error {
		n := 0
		for _, err := range p.Log(ctx, must.Get(p.Head(ctx, ""))(t)) {
			if err != nil {
				return err
			}
			n++
		}
		if n < 9 {
			t.Errorf("%d commits in the log", n)
		}
		for _, err := range p.Reflog(ctx, "main") {
			if err != nil {
				return err
			}
		}
		return nil
	}},
	{"difference", func(ctx context.Context, _ *testing.T, p, _ *DB) error {
		old, err := p.At(ctx, "main~1") // expires, and is open
		if err != nil {
			return err
		}
		defer old.Close()
		now, err := p.At(ctx, "main")
		if err != nil {
			return err
		}
		defer now.Close()
		for _, err := range p.Diff(ctx, old.Commit().ID, now.Commit().ID, "") {
			if err != nil {
				return err
			}
		}
		return nil
	}},
}

// A holder hands over at each step of everything that a peer may have under way. The peer goes on with the next one,
// nothing waits, and what was kept for it is there: open versions, versions that are kept by name.
func TestHandoverAtEveryStep(t *testing.T) {
	mem := vfs.NewCrashableMem()
	db := must.Get(Create("db", testOptions(mem)))(t)
	grow(t, db, 3, 0)
	first := mustHead(t, db)
	must.Do(t, db.KeepVersion(bg, "job", first, ""))
	grow(t, db, 5, 3)
	must.Do(t, db.CreateBranch(bg, "side", mustHead(t, db)))
	update(t, db, "side", map[string]string{"aside": "1"})
	kept, held := at(t, db, first.String()), at(t, db, "main~2")
	closeChecked(t, db)
	other := must.Get(Create("other", testOptions(mem)))(t)
	update(t, other, "main", map[string]string{"o": big("other", 9000)})
	closeChecked(t, other)
	each := 30 // of so many steps
	if testing.Short() {
		each = 4
	}
	for _, c := range handoverCases {
		t.Run(c.name, func(t *testing.T) {
			for step := 1; ; step += 1 + step/each {
				where := ""
				synctest.Test(t, func(t *testing.T) { where = handOverAt(t, all(mem), c, step, first, kept, held) })
				if where == "" {
					t.Logf("up to %d steps", step-1)
					break
				}
				if t.Failed() {
					t.Fatalf("handed over at step %d, %s", step, where)
				}
			}
		})
	}
}

// handOverAt runs a case in a bubble, and returns where the hand-over took place.
func handOverAt(t *testing.T, mem vfs.FS, c handoverCase, step int, first CommitID, kept, held map[string]string) string {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(bg, time.Minute) // of the bubble
	defer cancel()
	o := testOptions(mem)
	other := must.Get(Open("other", testOptions(mem)))(t)
	o.Other = func(context.Context, string) (*DB, func() error, error) {
		p := NewPeer("other", other.Identity(), other.Remote(), testOptions(mem))
		return p, p.Close, nil
	}
	r := newRelay(t, o)
	to := testOptions(mem)
	to.PageCacheBytes = -1
	p := NewPeer("db", r.holder.Identity(), r, to)
	open := must.Get(p.At(ctx, "main~2"))(t)
	r.steps.Store(0)
	r.at.Store(int64(step))
	if err := c.do(ctx, t, p, other); err != nil {
		t.Errorf("%s: %v", c.name, err)
	}
	synctest.Wait() // for a hand-over at the last step
	r.at.Store(0)
	if got := contentsIn(open); !maps.Equal(got, held) {
		t.Errorf("the open version has other values: %d of %d", len(got), len(held))
	}
	if got := at(t, p, first.String()); !maps.Equal(got, kept) {
		t.Errorf("the version that is kept by name has other values: %d of %d", len(got), len(kept))
	}
	must.Do(t, open.Close())
	if took := time.Since(begun); took > 0 {
		t.Errorf("something waited, as %v passed, while nothing went on", took)
	}
	must.Do(t, errors.Join(p.Close(), other.Close()))
	r.stop()
	closeChecked(t, r.holder)
	return r.where
}
