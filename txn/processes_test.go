package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/transfer"
)

// processes are several processes that use one disk, in a history of versionsRun:
//
//	peers ── link: requests, some without an answer ──▶ holder ──▶ disk
//	                                                      │ killed: a new holder opens the disk
//	                                                      └ power cut: so do new peers, on what was synced
type processes struct {
	mu    sync.Mutex // files are written in the background too
	mem   *vfs.MemFS
	left  int        // writes until the power fails; 0 for never
	image *vfs.MemFS // what the power cut of this step left
	cut   *rand.Rand

	lives map[string]bool // peers, by the names of their files
}

func newProcesses(o *Options) *processes {
	p := &processes{mem: vfs.NewCrashableMem(), lives: map[string]bool{}}
	o.FS = p.fs()
	o.lives = func(peer string) bool { return p.lives[peer] }
	o.Durability = DurabilitySync
	return p
}

// fs is the present disk, whose power may fail at any write.
func (p *processes) fs() vfs.FS {
	mem := p.mem
	return crashtest.NewDisk(mem, func(d *crashtest.Disk, _ errorfs.Op) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if mem == p.mem && p.left > 0 {
			if p.left--; p.left == 0 {
				p.image = d.Cut(p.cut.IntN(101), p.cut.IntN(101), p.cut)
			}
		}
		return nil
	})
}

// presentFS is the disk as a process sees it that is not killed with the holder: it opens
// packs of a database from which it pushes.
type presentFS struct {
	vfs.FS
	p *processes
}

func (f presentFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.p.mem.Open(name, opts...)
}

func (f presentFS) Stat(name string) (vfs.FileInfo, error) { return f.p.mem.Stat(name) }

// off reports whether the power has failed in this step.
func (p *processes) off() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.image != nil
}

// link is the connection of a peer to the holder.
type link struct {
	r      *versionsRun
	peer   *DB
	holder *DB // that it is connected to
	leases map[*linkLease]struct{}

	name     string // of its file
	visit    *Visit // of holder
	letGo    func()
	recalls  atomic.Uint64
	recalled func() // ends the recalls by the holder

	mu   sync.Mutex
	asks map[*underWay]bool

	left     int  // requests that change something, until one is not answered; 0 for never
	arrives  bool // that request is executed
	asked    string
	answered any // nil, or the answer to asked that was lost
}

var errCut = errors.New("the connection has ended")

// connect renews the leases at the present holder.
func (l *link) connect() error {
	if l.holder == l.r.db {
		return nil
	}
	l.recalled()
	l.holder = l.r.db
	l.recalled = l.holder.Cache(l.letGo)
	if l.r.p == nil {
		return nil
	}
	visit, err := l.holder.Visit(l.name, "a peer")
	if err == nil && visit.File != nil {
		err = visit.File.Close()
	}
	if err != nil || l.name != "" && visit.Name != l.name {
		return fmt.Errorf("visit of %q: %+v, %w", l.name, visit, err)
	}
	for k := range l.leases {
		at, err := visit.Renew(bg, k.id)
		if err != nil {
			return err
		}
		k.Lease = lease{at}
	}
	visit.Begin()
	l.visit, l.name = visit, visit.Name
	l.r.p.lives[l.name] = true
	return nil
}

// end ends the peer.
func (l *link) end() {
	delete(l.r.p.lives, l.name)
	if l.visit != nil && l.holder == l.r.db {
		l.visit.End(func() {
			for k := range l.leases {
				k.Release()
			}
		})
	}
}

// lose ends the connection of a peer that lives.
func (r *versionsRun) lose(s step) error {
	l := r.link(s.a)
	if l.visit == nil || l.holder != r.db {
		return nil
	}
	var leases []Lease
	for k := range l.leases {
		leases = append(leases, k.Lease)
	}
	l.visit.End(func() {
		for _, at := range leases {
			at.Release()
		}
	})
	l.holder, l.visit = nil, nil
	l.letGo()
	return nil
}

// secondPasses has peers forget what they were told of expired versions: a peer without a
// connection believes the last answer for a second.
func (r *versionsRun) secondPasses() {
	for _, l := range r.peers {
		if l != nil {
			l.letGo()
		}
	}
}

// through sends a request. what describes a request that changes something; one whose answer
// was lost is answered when it comes again.
func through[T any](l *link, what string, fn func(r remote) (T, error)) (out T, err error) {
	if what != "" && l.answered != nil && what == l.asked {
		again := l.answered.(func() (T, error))
		l.answered = nil
		return again()
	}
	cut := false
	if what != "" && l.left > 0 {
		l.left--
		cut = l.left == 0
	}
	if cut && !l.arrives {
		return out, errCut
	}
	if err := l.connect(); err != nil {
		return out, err
	}
	out, err = fn(remote{source{l.holder}})
	if cut {
		kept, failed := out, err
		l.asked, l.answered = what, func() (T, error) { return kept, failed }
		return out, errCut
	}
	return out, err
}

func done(err error) (none, error) { return none{}, err }

type linkLease struct {
	Lease
	l  *link
	id CommitID
}

func (k *linkLease) Check() error { return nil }

func (k *linkLease) Release() {
	delete(k.l.leases, k)
	if k.l.holder != nil {
		k.Lease.Release()
	}
}

// Lease implements [Source].
func (l *link) Lease(ctx context.Context, rev string) (Lease, error) {
	at, err := through(l, "", func(r remote) (Lease, error) { return r.Lease(ctx, rev) })
	if err != nil {
		return nil, err
	}
	k := &linkLease{Lease: at, l: l, id: at.Commit().ID}
	l.leases[k] = struct{}{}
	return k, nil
}

func (l *link) Pages(ctx context.Context, q PageQuery) ([][]byte, error) {
	return through(l, "", func(r remote) ([][]byte, error) { return r.Pages(ctx, q) })
}

func (l *link) Pack(ctx context.Context, a PackAddress) (PackFile, error) {
	return through(l, "", func(r remote) (PackFile, error) { return r.Pack(ctx, a) })
}

func (l *link) Payload(ctx context.Context, a PackAddress, off, n uint64) ([]byte, error) {
	return through(l, "", func(r remote) ([]byte, error) { return r.Payload(ctx, a, off, n) })
}

func (l *link) Resolve(ctx context.Context, rev string) (CommitID, error) {
	return through(l, "", func(r remote) (CommitID, error) { return r.Resolve(ctx, rev) })
}

func (l *link) Refs(ctx context.Context) (branches, tags []Ref, err error) {
	_, err = through(l, "", func(r remote) (none, error) {
		var err error
		branches, tags, err = r.Refs(ctx)
		return done(err)
	})
	return branches, tags, err
}

func (l *link) Ancestors(ctx context.Context, from CommitID, n int) ([]Ancestor, error) {
	return through(l, "", func(r remote) ([]Ancestor, error) { return r.Ancestors(ctx, from, n) })
}

func (l *link) Records(ctx context.Context, of RecordRange) (list []Record, more bool, err error) {
	list, err = through(l, "", func(r remote) (list []Record, err error) {
		list, more, err = r.Records(ctx, of)
		return list, err
	})
	return list, more, err
}

// Recalled implements [Source].
func (l *link) Recalled(letGo func()) (stop func()) {
	l.letGo = func() {
		l.recalls.Add(1)
		letGo()
	}
	return func() { l.recalled() }
}

func (l *link) Ask(ctx context.Context, name string, in []byte, progress func([]byte)) ([]byte, error) {
	what := ""
	if Changes(name, in) {
		what = name + string(in)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &underWay{name, cancel, make(chan struct{})}
	l.mu.Lock()
	if l.asks == nil {
		l.asks = map[*underWay]bool{}
	}
	l.asks[a] = true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.asks, a)
		close(a.done)
	}()
	return through(l, what, func(r remote) ([]byte, error) { return r.Ask(ctx, name, in, progress) })
}

// underWay is a request of a peer that has no answer yet.
type underWay struct {
	name   string
	cancel func()
	done   chan struct{}
}

// leave ends what peers have under way at the holder, as a process does that gives the database up.
// All that goes on is here, beside those requests: if one of them is not cancelled, the holder waits
// for it, and its peer for the next holder.
func (r *versionsRun) leave() error {
	for _, l := range r.peers {
		if l == nil {
			continue
		}
		l.mu.Lock()
		asks := slices.Collect(maps.Keys(l.asks))
		l.mu.Unlock()
		for _, a := range asks {
			if !Lasts(a.name) {
				return fmt.Errorf("the holder waits for %q, and the peer for the next holder", a.name)
			}
			a.cancel()
			<-a.done
		}
	}
	return nil
}

func (l *link) Begin(ctx context.Context, o BeginOptions) (Tx, error) {
	return l.tx(through(l, "", func(r remote) (Tx, error) { return r.Begin(ctx, o) }))
}

func (l *link) Resume(ctx context.Context, id SessionID) (Tx, error) {
	return l.tx(through(l, "", func(r remote) (Tx, error) { return r.Resume(ctx, id) }))
}

func (l *link) tx(tx Tx, err error) (Tx, error) {
	if err != nil {
		return nil, err
	}
	return &linkTx{Tx: tx, l: l, holder: l.holder, id: tx.Info().ID}, nil
}

// linkTx is a session in the holder. A new holder resumes it. In a history of processes, it has
// a log from its first change on, as all sessions of other processes have.
type linkTx struct {
	Tx
	l      *link
	holder *DB
	id     SessionID
}

func onTx[T any](t *linkTx, what string, fn func(tx Tx) (T, error)) (T, error) {
	return through(t.l, what, func(r remote) (out T, err error) {
		if t.holder != r.db {
			tx, err := r.Resume(bg, t.id)
			if err != nil {
				return out, err
			}
			t.Tx, t.holder = tx, r.db
		}
		if what != "" && t.l.r.p != nil {
			if err := t.Tx.(sessionTx).Log(bg); err != nil {
				return out, err
			}
		}
		return fn(t.Tx)
	})
}

func (t *linkTx) Value(ctx context.Context, key string) (Value, error) {
	return onTx(t, "", func(tx Tx) (Value, error) { return tx.Value(ctx, key) })
}

func (t *linkTx) Watch(ctx context.Context) (Watch, error) {
	w, err := onTx(t, "", func(tx Tx) (Watch, error) { return tx.Watch(ctx) })
	holder, recalls := t.holder, t.l.recalls.Load()
	w.Live = func() bool { return holder == t.l.r.db && recalls == t.l.recalls.Load() }
	return w, err
}

func (t *linkTx) Roots(ctx context.Context) (Roots, error) {
	return onTx(t, "", func(tx Tx) (Roots, error) { return tx.Roots(ctx) })
}

func (t *linkTx) Pages(ctx context.Context, q PageQuery) ([][]byte, error) {
	return onTx(t, "", func(tx Tx) ([][]byte, error) { return tx.Pages(ctx, q) })
}

func (t *linkTx) SetIf(ctx context.Context, key string, value []byte, want Expect) (kv.ID, error) {
	return onTx(t, fmt.Sprintf("%v set %s %s", t.id, key, value), func(tx Tx) (kv.ID, error) { return tx.SetIf(ctx, key, value, want) })
}

func (t *linkTx) Apply(ctx context.Context, entries []byte) error {
	_, err := onTx(t, fmt.Sprintf("%v apply %x", t.id, entries), func(tx Tx) (none, error) { return done(tx.Apply(ctx, entries)) })
	return err
}

func (t *linkTx) Store(ctx context.Context, key string, value []byte) (Value, error) {
	return onTx(t, "", func(tx Tx) (Value, error) { return tx.Store(ctx, key, value) })
}

func (t *linkTx) Stage(ctx context.Context, pages [][]byte) error {
	_, err := onTx(t, "", func(tx Tx) (none, error) { return done(tx.Stage(ctx, pages)) })
	return err
}

func (t *linkTx) Swap(ctx context.Context, from Roots, to Root) error {
	_, err := onTx(t, fmt.Sprintf("%v swap %v %v", t.id, from, to), func(tx Tx) (none, error) { return done(tx.Swap(ctx, from, to)) })
	return err
}

func (t *linkTx) Savepoint(ctx context.Context, label string) error {
	_, err := onTx(t, fmt.Sprintf("%v save", t.id), func(tx Tx) (none, error) { return done(tx.Savepoint(ctx, label)) })
	return err
}

func (t *linkTx) Refresh(ctx context.Context, choices []PathChoice) error {
	_, err := onTx(t, fmt.Sprintf("%v refresh", t.id), func(tx Tx) (none, error) { return done(tx.Refresh(ctx, choices)) })
	return err
}

func (t *linkTx) Commit(ctx context.Context, o CommitOptions) (*Commit, error) {
	return onTx(t, fmt.Sprintf("%v commit %v", t.id, o.DryRun), func(tx Tx) (*Commit, error) { return tx.Commit(ctx, o) })
}

func (t *linkTx) Abort(ctx context.Context) error {
	_, err := onTx(t, fmt.Sprintf("%v abort", t.id), func(tx Tx) (none, error) { return done(tx.Abort(ctx)) })
	return err
}

func (t *linkTx) Close() error {
	if t.holder != t.l.r.db {
		return nil
	}
	return t.Tx.Close()
}

// worldState is what a step may change of the model.
type worldState struct {
	m        model
	sessions []*modelSession
	copies   []modelSession
	fresh    int
}

func (r *versionsRun) state() *worldState {
	w := &worldState{m: r.m, sessions: slices.Clone(r.sessions), fresh: r.fresh}
	w.m.order, w.m.refs, w.m.moved, w.m.expired = slices.Clone(r.m.order), maps.Clone(r.m.refs), maps.Clone(r.m.moved), maps.Clone(r.m.expired)
	w.m.moves = maps.Clone(r.m.moves)
	for _, m := range r.sessions {
		c := *m
		c.work, c.states = m.work.clone(), slices.Clone(m.states)
		w.copies = append(w.copies, c)
	}
	return w
}

func (r *versionsRun) restore(w *worldState) {
	r.m, r.sessions, r.fresh = w.m, w.sessions, w.fresh
	for i, m := range w.sessions {
		*m = w.copies[i]
	}
	*w = *r.state()
}

// step runs a step. A peer repeats what was not answered.
func (r *versionsRun) step(run func(*versionsRun, step) error, s step) error {
	if r.p == nil {
		return run(r, s)
	}
	before := r.state()
	err := run(r, s)
	for errors.Is(err, errCut) {
		r.restore(before)
		for _, m := range r.sessions {
			m.unread = true
		}
		err = run(r, s)
	}
	for _, m := range r.sessions {
		if n := len(m.states); n == 0 || !m.states[n-1].work.equal(m.work) || m.states[n-1].base != m.base {
			m.states = append(m.states, pastState{m.base, m.work.clone()})
		}
	}
	if err == nil && r.p.off() {
		return r.takeOver(before)
	}
	for _, m := range r.sessions {
		if m.settled {
			m.states, m.settled = m.states[len(m.states)-1:], false
		}
	}
	return err
}

// pastState is a state of a session that may be found after a power cut.
type pastState struct {
	base CommitID
	work content
}

// kill kills the holder. What it had written is there.
func (r *versionsRun) kill(step) error { return r.takeOver(nil) }

// powerCut makes the power fail soon.
func (r *versionsRun) powerCut(s step) error {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	r.p.left, r.p.cut = 1+s.a%40, rand.New(rand.NewPCG(uint64(s.b), uint64(s.c)))
	return nil
}

// takeOver opens the disk in a new holder: after a kill, or with the state before the step in
// which the power failed.
func (r *versionsRun) takeOver(before *worldState) error {
	if err := r.leave(); err != nil {
		return err
	}
	p, power := r.p, before != nil
	old, other := r.db, r.other
	p.mu.Lock()
	if !power {
		p.image = all(p.mem)
	}
	p.mem, p.image, p.left = p.image, nil, 0
	p.mu.Unlock()
	r.o.FS = p.fs()
	r.views = slices.DeleteFunc(r.views, func(h *heldView) bool { return power || h.l == nil })
	if power {
		r.peers, p.lives = [3]*link{}, map[string]bool{}
	}
	err := errors.Join(old.Close(), other.Close()) // on the disk of before
	if err != nil {
		return err
	}
	if r.db, err = Open("db", r.o); err != nil {
		return err
	}
	if r.other, err = Open("other", r.o); err != nil {
		return err
	}
	r.secondPasses()
	if power {
		if err := r.wasBefore(before); err != nil {
			return err
		}
	} else {
		before = r.state()
	}
	all := r.sessions
	for i, m := range before.sessions {
		if !slices.Contains(all, m) {
			*m = before.copies[i]
			m.left = true
			all = append(slices.Clip(all), m)
		}
	}
	r.sessions = nil
	for _, m := range all {
		i := slices.Index(before.sessions, m)
		saved := i >= 0 && before.copies[i].saved != nil
		if err := r.found(m, power, saved); err != nil {
			return fmt.Errorf("session %v after power %v: %w", m.s.ID(), power, err)
		}
	}
	return nil
}

// wasBefore finds out whether the disk has the state before or after the last step.
func (r *versionsRun) wasBefore(before *worldState) error {
	refs := refsOf(r.db)
	if !maps.Equal(refs, r.m.refs) {
		if !maps.Equal(refs, before.m.refs) {
			return fmt.Errorf("after a power cut the refs are %v, neither %v nor %v", refs, before.m.refs, r.m.refs)
		}
		r.restore(before)
		return nil
	}
	for ref, moves := range r.m.moves { // a ref may have moved to where it was
		log := r.db.Reflog
		name, ok := strings.CutPrefix(ref, catalog.HeadPrefix)
		if !ok {
			name, log = strings.TrimPrefix(ref, catalog.TagPrefix), r.db.TagReflog
		}
		n := 0
		for range log(bg, name) {
			n++
		}
		if n != len(moves) && n == len(before.m.moves[ref]) {
			r.restore(before)
			return nil
		}
	}
	for id := range r.m.expired {
		if gone, err := r.db.Expired(bg, id); err != nil {
			return err
		} else if !gone && !before.m.expired[id] {
			r.restore(before)
			return nil
		}
	}
	return nil
}

// found compares a session with what it may be in a new holder. saved says that it had a
// savepoint before the last step.
func (r *versionsRun) found(m *modelSession, power, saved bool) error {
	s, err := r.db.Resume(bg, m.s.ID())
	logged := isAway(m.s) || m.s.logged.on
	if errors.Is(err, ErrNoRef) {
		if saved && !m.left || logged && !power && len(m.states) > 1 {
			return fmt.Errorf("it is lost: %w", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	got := contentsIn(s)
	at := slices.IndexFunc(m.states, func(c pastState) bool { return c.base == s.Base() && maps.Equal(c.work.keys, got) })
	switch {
	case at < 0:
		return fmt.Errorf("it holds %v, and never did: %v", got, m.states)
	case !power && logged && at < len(m.states)-1 && !maps.Equal(got, m.work.keys):
		return fmt.Errorf("it holds %v, want %v", got, m.work.keys)
	case !power && !logged && !maps.Equal(got, m.saved.keys):
		return fmt.Errorf("it holds %v, and %v was saved", got, m.saved.keys)
	}
	c := m.states[at]
	stored := c.work.clone()
	m.base, m.start, m.work, m.saved, m.states, m.left, m.settled = c.base, r.m.commits[c.base].content, c.work.clone(), &stored, []pastState{c}, false, false
	r.sessions = append(r.sessions, m)
	if !power && isAway(m.s) {
		return s.Close() // the peer resumes it
	}
	m.s = s
	return nil
}

// contentsIn reads everything that a view lists. An error is a value of its key.
func contentsIn(v kv.ReadLister) map[string]string {
	got := map[string]string{}
	for key, err := range v.List(bg, kv.ListOptions{}) {
		var b []byte
		if err == nil {
			b, err = v.Get(bg, key, kv.All())
		}
		if err != nil {
			b = []byte("error " + err.Error())
		}
		got[key] = string(b)
	}
	return got
}

// killPeer kills a peer. Its leases end; its sessions wait for others.
func (r *versionsRun) killPeer(s step) error {
	l := r.peers[s.a%len(r.peers)]
	if l == nil {
		return nil
	}
	r.peers[s.a%len(r.peers)] = nil
	r.views = slices.DeleteFunc(r.views, func(h *heldView) bool { return h.l == l })
	l.end()
	for _, m := range r.sessions {
		if tx, ok := m.s.Tx().(*linkTx); ok && tx.l == l {
			if tx.holder == r.db {
				m.s = tx.Tx.(sessionTx).Session
				continue
			}
			var err error
			if m.s, err = r.db.Resume(bg, m.s.ID()); err != nil {
				return err
			}
		}
	}
	return l.peer.Close()
}

// cut lets a request of a peer go without an answer.
func (r *versionsRun) cut(s step) error {
	l := r.link(s.a)
	l.left, l.arrives = 1+s.b%3, s.c%2 == 0
	return nil
}

// carry copies the database through a peer to a disk of its own. Meanwhile holders give the database
// up, and the next ones expire and collect what nothing keeps.
func (r *versionsRun) carry(s step) error {
	if r.p == nil {
		return nil
	}
	l, times := r.link(s.a), s.b%3
	var failed error
	l.peer.opts.transferFault = func(*transfer.Transfer) {
		if times--; times < 0 || failed != nil {
			return
		}
		if failed = r.reopen(s); failed == nil && s.c%2 == 0 {
			failed = r.expire(step{a: s.b, b: s.c, c: 1 + s.b + s.c}) // in the holder
		}
		if failed == nil && s.c%3 == 0 {
			failed = r.whenAllAreHere(func() error { return second(r.db.GC(bg, GCOptions{})) })
		}
	}
	defer func() { l.peer.opts.transferFault = nil }()
	o := *testOptions(vfs.NewMem())
	_, err := l.peer.copyTo(bg, "copy", o, l.peer.mirror(bg, nil, TransferOptions{}))
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	c, err := Open("copy", &o)
	if err != nil {
		return err
	}
	defer c.Close()
	return r.holds(c, "copy", 0)
}

// bulk writes a directory at once.
func (r *versionsRun) bulk(s step) error {
	m := r.session(s)
	if m == nil {
		return nil
	}
	dir, add := fmt.Sprint("d", s.a%3), s.b%2 == 0
	b, err := m.s.Bulk(bg, dir, add)
	if err != nil {
		return err
	}
	if !add {
		m.work.remove(dir + "/")
	}
	for i := range 1 + s.b%9 {
		key, value := fmt.Sprintf("k%d", i*(1+s.c%3)), strings.Repeat(fmt.Sprint(s.c%5), 1+s.a%2*700)
		if err := b.Set(bg, key, []byte(value)); err != nil {
			return err
		}
		m.work.keys[dir+"/"+key] = value
	}
	return b.Finish(bg)
}

// away reports whether the peer lives and has not been connected to the present holder.
func (l *link) away() bool { return l.name != "" && l.r.db.visits.peers[l.name] == nil }
