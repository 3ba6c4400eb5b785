package depot

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/soaktest"
	"github.com/zarrdb/zarrdb/kv"
)

// TestModel runs pushers, readers and a collector over a store that loses, repeats, delays and
// reorders answers, and compares what is there with what must be, after every request. The
// collector deletes all that the rules allow, at any time.
func TestModel(t *testing.T) {
	seed := must.Seed(t)
	for i := range uint64(3) {
		checkModel(t, seed+i, 8_000)
	}
}

// TestSoakModel is TestModel with a million steps.
func TestSoakModel(t *testing.T) {
	if os.Getenv("ZARRDB_SOAK") == "" {
		t.Skip("ZARRDB_SOAK is not set")
	}
	seed := soaktest.Seed(t)
	for i := range uint64(50) {
		checkModel(t, seed+i, 20_000)
	}
}

func checkModel(t *testing.T, seed uint64, steps int) {
	t.Helper()
	w := runModel(t, seed, steps, "")
	t.Logf("seed %d: %v", seed, w.counts)
	if w.failed != "" {
		t.Fatalf("ZARRDB_SEED=%d: %s\n%s", seed, w.failed, strings.Join(w.log[max(0, len(w.log)-60):], "\n"))
	}
}

// TestModelBroken hides a part of the manifest from the clients, so that a rule is not followed: the
// model must notice.
func TestModelBroken(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	for _, hidden := range []string{"floor", "drops", "pushes"} {
		failed := ""
		for seed := uint64(1); seed < 60 && failed == ""; seed++ {
			failed = runModel(t, seed, 8_000, hidden).failed
		}
		if t.Logf("%s: %s", hidden, failed); failed == "" {
			t.Errorf("nobody notices that %q is not looked at", hidden)
		}
	}
}

// call is a request that waits to be answered.
type call struct {
	client  int
	op, key string
	value   []byte
	want    kv.Tag
	rng     kv.Range
	reply   chan answer
}

type answer struct {
	value []byte
	tag   kv.Tag
	err   error
}

var errNet = errors.New("the network failed")

// world is the store and all that is known of it.
type world struct {
	rnd     *rand.Rand
	objects map[string][]byte
	arrived []*call
	in      chan *call
	late    []*call
	hidden  string
	step    atomic.Int64
	log     []string

	mu        sync.Mutex // of what follows, which clients use too
	failed    string
	manifest  *Manifest
	tag       kv.Tag
	indexes   map[Name]*index
	published map[Number]bool // pushes that a manifest has had
	refused   map[Number]bool // pushes whose pusher was told that they were not published
	left      map[ID]int      // the last step at which a commit was not reached
	commits   map[ID]*version
	counts    map[string]int
}

func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

func (w *world) version(id ID) *version {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.commits[id]
}

func (w *world) now() int { return int(w.step.Load()) }

func (w *world) hasFailed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed != ""
}

func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failLocked(format, args...)
}

func (w *world) failLocked(format string, args ...any) {
	if w.failed == "" {
		w.failed = fmt.Sprintf("step %d: ", w.now()) + fmt.Sprintf(format, args...)
	}
}

// version is what a commit of the model has: some of few pages, each with a payload.
type version struct {
	Parent ID
	Pages  []int
	Salt   int
}

const universe = 10

func (v *version) record() []byte { b, _ := json.Marshal(v); return b }

func pageBytes(k int) []byte { return fmt.Appendf(nil, "page %d", k) }
func pageOf(k int) ID        { return NameOf(pageBytes(k)) }

func payload(k int) Part { return Part{[16]byte{byte(k)}, 64, 64 + 8*uint64(k+1)} }

func payloadBytes(k int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%08d", k), k+1) }

// reach is all that a commit needs.
type reach struct {
	commits map[ID]bool
	pages   map[int]bool
}

func (w *world) reach(ids ...ID) reach {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := reach{map[ID]bool{}, map[int]bool{}}
	for _, id := range ids {
		for ; !id.IsZero() && !r.commits[id]; id = w.commits[id].Parent {
			r.commits[id] = true
			for _, k := range w.commits[id].Pages {
				r.pages[k] = true
			}
		}
	}
	return r
}

// do applies a request.
func (w *world) do(c *call) answer {
	old, exists := w.objects[c.key]
	switch c.op {
	case "get", "gettagged":
		if !exists {
			return answer{err: kv.ErrNotFound}
		}
		if c.op == "gettagged" {
			return answer{value: w.hide(old), tag: kv.TagOf(old)}
		}
		off, n, err := c.rng.Resolve(int64(len(old)))
		if err != nil {
			return answer{err: err}
		}
		return answer{value: bytes.Clone(old[off : off+n])}
	case "set":
		if exists && !bytes.Equal(old, c.value) {
			w.fail("%s is overwritten", c.key)
		}
		w.objects[c.key] = c.value
		return answer{}
	case "settagged":
		now := kv.NoValue
		if exists {
			now = kv.TagOf(old)
		}
		if now != c.want {
			return answer{err: kv.ErrChanged}
		}
		b := c.value
		if c.key == manifestKey && c.client >= 0 {
			b = w.reveal(b)
		}
		w.objects[c.key] = b
		if c.key == manifestKey {
			w.replaced(b)
		}
		return answer{tag: kv.TagOf(b)}
	}
	return answer{err: errors.ErrUnsupported}
}

// replaced checks a manifest that has just been published.
func (w *world) replaced(b []byte) {
	m, err := ParseManifest(b)
	if err != nil {
		w.fail("%v", err)
		return
	}
	old := w.manifest
	w.manifest, w.tag = m, kv.TagOf(b)
	if old == nil {
		return
	}
	n := m.Pushes[0]
	w.mu.Lock()
	switch {
	case m.Generation != old.Generation+1 || m.Floor < old.Floor || m.Drops < old.Drops || m.Drops > old.Drops+1:
		w.failLocked("generation %d floor %d drops %d after %d %d %d", m.Generation, m.Floor, m.Drops, old.Generation, old.Floor, old.Drops)
	case w.published[n]:
		w.failLocked("push %x was published twice", n)
	case w.refused[n]:
		w.failLocked("push %x was published after its pusher was told that it was not", n)
	}
	w.published[n] = true
	w.mu.Unlock()
	var indexes []*index
	for i := range m.Bundles {
		info := &m.Bundles[i]
		x := w.indexes[info.Name]
		if x == nil {
			b := w.objects[info.Name.Bundle()]
			bundle, err := ParseBundle(b)
			if err == nil {
				err = bundle.is(info)
			}
			if err != nil {
				w.fail("%v: %v", info.Name, err)
				return
			}
			x = bundle.x
			w.indexes[info.Name] = x
		} else if w.objects[info.Name.Bundle()] == nil {
			w.fail("bundle %v is listed and not there", info.Name)
			return
		}
		indexes = append(indexes, x)
		for _, e := range x.allExtents() {
			s := w.objects[e.Segment.Segment()]
			want := payloadBytes(int(e.Pack[0]))[e.From-64 : e.To-64]
			if uint64(len(s)) < e.Offset+e.To-e.From || !bytes.Equal(s[e.Offset:e.Offset+e.To-e.From], want) {
				w.fail("segment %v is listed and not there, or has other bytes", e.Segment)
				return
			}
		}
	}
	r := w.reach(slices.Collect(maps.Values(m.Refs))...)
	w.mu.Lock()
	for id := range w.commits {
		if !r.commits[id] {
			w.left[id] = w.now()
		}
	}
	w.mu.Unlock()
	for id := range r.commits {
		if !slices.ContainsFunc(indexes, func(x *index) bool { _, ok := find(x.commits, commitSize, &id); return ok }) {
			w.fail("commit %v is reached and not listed", id)
		}
	}
	for k := range r.pages {
		id, p := pageOf(k), payload(k)
		if !slices.ContainsFunc(indexes, func(x *index) bool { _, ok := find(x.pages, pageSize, &id); return ok }) {
			w.fail("page %d is reached and not listed", k)
		}
		if !slices.ContainsFunc(indexes, func(x *index) bool { _, ok := x.cover(p.Pack, p.From, p.To); return ok }) {
			w.fail("payload %d is reached and not listed", k)
		}
	}
	// A merge keeps everything: a commit that is listed is whole.
	for _, x := range indexes {
		for i := 0; i < len(x.commits); i += commitSize {
			id := ID(x.commits[i:][:20])
			for k := range w.reach(id).pages {
				p := payload(k)
				if !slices.ContainsFunc(indexes, func(x *index) bool { _, ok := x.cover(p.Pack, p.From, p.To); return ok }) {
					w.fail("commit %v is listed and not whole", id)
				}
			}
		}
	}
}

// listed reports whether an object is listed by a manifest.
func (w *world) listed(m *Manifest, key string) bool {
	return slices.ContainsFunc(m.Bundles, func(b BundleInfo) bool {
		x := w.indexes[b.Name]
		return b.Name.Bundle() == key || x != nil && slices.ContainsFunc(x.allExtents(), func(e Extent) bool { return e.Segment.Segment() == key })
	})
}

// collector is one collection at a time, in steps between which anything may happen.
type collector struct {
	base *Manifest
	tag  kv.Tag
	mine *Manifest // published
}

func (w *world) collect(c *collector) {
	switch {
	case c.base == nil && w.rnd.IntN(6) > 0:
	case c.base == nil:
		c.base, c.tag = w.manifest, w.tag
	case w.tag != c.tag && c.mine == nil:
		c.base = nil
	case c.mine == nil:
		live := w.reach(slices.Collect(maps.Values(c.base.Refs))...)
		b := newBuilder()
		for _, info := range c.base.Bundles {
			old, err := ParseBundle(w.objects[info.Name.Bundle()])
			if err != nil {
				w.fail("collector: %v", err)
				return
			}
			for p, err := range old.Pages() {
				for k := range live.pages {
					if err == nil && bytes.Equal(p.Data, pageBytes(k)) {
						_ = b.addPage(p)
					}
				}
			}
			for v, err := range old.Commits() {
				if err == nil && live.commits[NameOf(v.Record)] {
					_ = b.addCommit(v)
				}
			}
			b.extents = overlay(b.extents, slices.DeleteFunc(old.Extents(), func(e Extent) bool { return !live.pages[int(e.Pack[0])] }))
		}
		next := c.base.next(Number(w.rnd.Uint64()), 0)
		next.Bundles = nil
		if !b.empty() {
			raw, info, err := b.finish()
			if err != nil {
				w.fail("collector: %v", err)
				return
			}
			info.Name = Name{uint32(c.base.Generation), w.rnd.Uint64(), 0}
			w.objects[info.Name.Bundle()] = raw.b
			next.Bundles = []BundleInfo{info}
		}
		next.Drops++
		next.Floor = max(next.Floor, c.base.Generation-min(c.base.Generation, w.rnd.Uint64N(12)))
		raw, err := next.encode()
		if err != nil {
			w.fail("collector: %v", err)
			return
		}
		w.do(&call{client: -1, op: "settagged", key: manifestKey, value: raw, want: c.tag})
		c.mine = next
		w.count("collections")
	case w.rnd.IntN(30) == 0:
		*c = collector{}
	default:
		for _, key := range slices.Sorted(maps.Keys(w.objects)) {
			name, ok := ParseName(key[min(2, len(key)):])
			if ok && uint64(name.Generation) < c.mine.Floor && !w.listed(c.mine, key) && w.rnd.IntN(3) > 0 {
				if w.listed(w.manifest, key) {
					w.fail("%s is deleted and listed", key)
				}
				delete(w.objects, key)
				w.count("deletions")
			}
		}
	}
}

// link is the store as one client sees it.
type link struct {
	w      *world
	client int
}

func (l link) send(ctx context.Context, c *call) answer {
	c.client, c.reply = l.client, make(chan answer, 1)
	if ctx.Err() != nil {
		return answer{err: ctx.Err()}
	}
	l.w.in <- c
	select {
	case a := <-c.reply:
		return a
	case <-ctx.Done():
		return answer{err: errors.Join(kv.ErrUnknown, ctx.Err())}
	}
}

func (l link) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	a := l.send(ctx, &call{op: "get", key: key, rng: rng})
	return a.value, a.err
}
func (l link) GetTagged(ctx context.Context, key string, known kv.Tag, _ int64) (kv.Tagged, error) {
	a := l.send(ctx, &call{op: "gettagged", key: key})
	if a.err != nil {
		return kv.Tagged{}, a.err
	}
	if a.tag == known {
		return kv.Tagged{Tag: a.tag}, nil
	}
	return kv.Tagged{Value: a.value, Tag: a.tag, Time: time.Now()}, nil
}
func (l link) Set(ctx context.Context, key string, value []byte) error {
	return l.send(ctx, &call{op: "set", key: key, value: bytes.Clone(value)}).err
}
func (l link) SetTagged(ctx context.Context, key string, value []byte, want kv.Tag) (kv.Tag, error) {
	a := l.send(ctx, &call{op: "settagged", key: key, value: bytes.Clone(value), want: want})
	return a.tag, a.err
}
func (l link) Delete(context.Context, string) error { return errors.ErrUnsupported }
func (l link) List(context.Context, kv.ListOptions) iter.Seq2[string, error] {
	panic("a push or a read lists")
}

// pusher pushes versions until ctx ends. journal has what an earlier life uploaded.
func (w *world) pusher(ctx context.Context, d *Depot, rnd *rand.Rand, journal *[]Extent) {
	for ctx.Err() == nil {
		if d.Refresh(ctx) != nil {
			continue
		}
		p := d.Begin()
		ref := fmt.Sprintf("heads/%d", rnd.IntN(3))
		tip := p.Base().Refs[ref]
		w.push(ctx, d, p, rnd, ref, tip, journal)
		if rnd.IntN(2) == 0 {
			if merged, _ := d.Merge(ctx, nil); merged {
				w.count("merges")
			}
		}
	}
}

func (w *world) push(ctx context.Context, d *Depot, p *Push, rnd *rand.Rand, ref string, tip ID, journal *[]Extent) {
	change := Change{Refs: []RefChange{{Ref: ref, Old: tip}}, Moves: [][]byte{fmt.Appendf(nil, "%s %x", ref, p.n)}}
	v := &version{Parent: tip, Salt: rnd.IntN(3)}
	depth := len(w.reach(tip).commits)
	switch {
	case rnd.IntN(8) == 0 && !tip.IsZero():
		v = nil // the branch is deleted
	case rnd.IntN(6) == 0 && !tip.IsZero() && !w.version(tip).Parent.IsZero():
		v = w.version(w.version(tip).Parent) // reset
	case depth > 4 || rnd.IntN(6) == 0:
		v.Parent = ID{} // old content, perhaps after it was dropped
		fallthrough
	default:
		for len(v.Pages) < 3 {
			v.Pages = append(v.Pages, rnd.IntN(universe))
		}
	}
	var id ID
	if v != nil {
		id = NameOf(v.record())
		w.mu.Lock()
		if w.commits[id] == nil {
			w.commits[id] = v
			w.left[id] = w.now()
		}
		w.mu.Unlock()
	}
	change.Refs[0].New = id
	for range 3 {
		// What is below a commit that the depot has is relied on.
		need := w.reach(id)
		w.mu.Lock()
		known := slices.SortedFunc(maps.Keys(w.commits), compareIDs)
		w.mu.Unlock()
		have, err := d.HasCommits(ctx, known)
		if err != nil {
			return
		}
		for i, q := range known {
			if have[i] && (q == id || q == tip || v != nil && q == v.Parent || rnd.IntN(3) == 0) {
				below := w.reach(q)
				maps.DeleteFunc(need.commits, func(id ID, _ bool) bool { return below.commits[id] })
				maps.DeleteFunc(need.pages, func(k int, _ bool) bool { return below.pages[k] })
			}
		}
		pages := slices.Sorted(maps.Keys(need.pages))
		change.Pages = func(yield func(Page, error) bool) {
			for _, k := range pages {
				if !yield(Page{Data: pageBytes(k), Hot: k < 3}, nil) {
					return
				}
			}
		}
		change.Commits = func(yield func(Commit, error) bool) {
			for id := range need.commits {
				if !yield(Commit{Record: w.version(id).record()}, nil) {
					return
				}
			}
		}
		change.Stored = nil
		for _, k := range pages {
			part := payload(k)
			sent := func(e Extent) bool { return e.Pack == part.Pack }
			if slices.ContainsFunc(change.Segments, func(s *Segment) bool { return slices.ContainsFunc(s.Extents, sent) }) {
				continue
			}
			if i := slices.IndexFunc(*journal, sent); i >= 0 {
				change.Stored = append(change.Stored, (*journal)[i])
				w.count("taken up")
				continue
			}
			s, err := p.Segment([]Range{{part.Pack, part.From, part.To, bytes.NewReader(payloadBytes(k))}})
			if err != nil {
				w.fail("%v", err)
				return
			}
			if rnd.IntN(2) == 0 {
				if p.Upload(ctx, s) != nil {
					return
				}
				*journal = append(*journal, s.Extents...)
			}
			change.Segments = append(change.Segments, s)
		}
		for {
			err = p.Publish(ctx, change)
			if !errors.Is(err, kv.ErrUnknown) || ctx.Err() != nil || rnd.IntN(4) == 0 {
				break
			}
		}
		w.outcome(p, err)
		switch {
		case errors.Is(err, ErrReplan) && p.Replan(ctx) == nil && p.Base().Refs[ref] == tip:
			w.count("replans")
			w.mu.Lock()
			delete(w.refused, p.n)
			w.mu.Unlock()
			continue
		case errors.Is(err, ErrVoid):
			w.count("voids")
			*journal = nil
		case err == nil:
			w.count("pushes")
			*journal = nil
		}
		return
	}
}

// outcome compares what a pusher was told with what happened.
func (w *world) outcome(p *Push, err error) {
	var moved *MovedError
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil && !w.published[p.n]:
		w.failLocked("push %x is said to be published", p.n)
	case err == nil, errors.Is(err, kv.ErrUnknown), errors.Is(err, context.Canceled):
	case errors.Is(err, errNet), errors.As(err, &moved), errors.Is(err, ErrReplan), errors.Is(err, ErrVoid), errors.Is(err, errBusy):
		if w.refused[p.n] = true; w.published[p.n] {
			w.failLocked("push %x was published, and its pusher was told %v", p.n, err)
		}
	default:
		w.failLocked("push: %v", err)
	}
}

// reader reads versions whole until ctx ends.
func (w *world) reader(ctx context.Context, d *Depot, rnd *rand.Rand) {
	for ctx.Err() == nil {
		if d.Refresh(ctx) != nil {
			continue
		}
		began := w.now()
		refs := slices.Sorted(maps.Keys(d.Manifest().Refs))
		if len(refs) == 0 {
			continue
		}
		id := d.Manifest().Refs[refs[rnd.IntN(len(refs))]]
		r := w.reach(id)
		err := func() error {
			for c := range r.commits {
				if _, err := d.Commits(ctx, []ID{c}); err != nil {
					return err
				}
			}
			for k := range r.pages {
				if _, err := d.Pages(ctx, []ID{pageOf(k)}); err != nil {
					return err
				}
				b, err := d.Payloads(ctx, []Part{payload(k)})
				if err == nil && !bytes.Equal(b[0], payloadBytes(k)) {
					w.fail("payload %d has other bytes", k)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}()
		switch {
		case err == nil:
			w.count("reads")
		case errors.Is(err, errNet), ctx.Err() != nil, errors.Is(err, errBusy):
		default:
			w.mu.Lock()
			if w.counts["left"]++; !errors.Is(err, ErrLeft) || w.left[id] < began {
				w.failLocked("read of %v, unreached at step %d, begun at %d: %v", id, w.left[id], began, err)
			}
			w.mu.Unlock()
		}
	}
}

// runModel runs some steps.
func runModel(t *testing.T, seed uint64, steps int, hidden string) *world {
	w := &world{
		rnd: rand.New(rand.NewPCG(seed, 1)), objects: map[string][]byte{}, hidden: hidden,
		indexes: map[Name]*index{}, published: map[Number]bool{}, refused: map[Number]bool{}, left: map[ID]int{}, commits: map[ID]*version{}, counts: map[string]int{},
	}
	first := &Manifest{ID: strings.Repeat("0", 32), Generation: 1, Refs: map[string]ID{}}
	b := must.Get(first.encode())(t)
	w.objects[manifestKey] = b
	w.replaced(b)
	synctest.Test(t, func(*testing.T) { w.run(steps) })
	return w
}

const pushers, readers = 4, 2

// run lets something happen at each step, while all clients wait for an answer or a time.
func (w *world) run(steps int) {
	w.in = make(chan *call, 1000)
	var end [pushers + readers]func()
	var journals [pushers]([]Extent)
	var wg sync.WaitGroup
	start := func(i int) {
		ctx, cancel := context.WithCancel(context.Background())
		rnd := rand.New(rand.NewPCG(w.rnd.Uint64(), uint64(i)))
		ended := make(chan bool)
		end[i] = func() { cancel(); <-ended }
		wg.Go(func() {
			defer close(ended)
			for ctx.Err() == nil {
				d, err := Open(ctx, link{w, i}, &Options{Rand: rnd.Uint64, small: 400})
				if err != nil {
					continue
				}
				if i < pushers {
					w.pusher(ctx, d, rnd, &journals[i])
				} else {
					w.reader(ctx, d, rnd)
				}
			}
		})
	}
	for i := range end {
		start(i)
	}
	var c collector
	for ; w.now() < steps && !w.hasFailed(); w.step.Add(1) {
		synctest.Wait()
		for len(w.in) > 0 {
			w.arrived = append(w.arrived, <-w.in)
		}
		slices.SortStableFunc(w.arrived, func(a, b *call) int {
			return cmp.Or(cmp.Compare(a.client, b.client), strings.Compare(a.op, b.op), strings.Compare(a.key, b.key))
		})
		switch r := w.rnd.IntN(200); {
		case r == 0: // a machine is killed: what it has sent may arrive
			i := w.rnd.IntN(len(end))
			end[i]()
			w.arrived = slices.DeleteFunc(w.arrived, func(c *call) bool {
				if c.client == i && w.rnd.IntN(2) == 0 {
					w.late = append(w.late, c)
				}
				return c.client == i
			})
			start(i)
		case r < 16 && len(w.late) > 0:
			i := w.rnd.IntN(len(w.late))
			w.do(w.late[i])
			w.late = slices.Delete(w.late, i, i+1)
		case r < 40:
			w.collect(&c)
		case len(w.arrived) == 0 || r < 45:
			time.Sleep(time.Duration(w.rnd.Int64N(int64(time.Second))))
		default:
			i := w.rnd.IntN(len(w.arrived))
			if w.serve(w.arrived[i]) {
				w.arrived = slices.Delete(w.arrived, i, i+1)
			}
		}
	}
	for _, f := range end {
		f()
	}
	wg.Wait()
}

// serve answers a request, or leaves it for later.
func (w *world) serve(c *call) bool {
	r := w.rnd.IntN(100)
	unknown := answer{err: kv.ErrUnknown}
	if c.op != "settagged" {
		unknown.err = errNet
	}
	a := unknown
	switch read := strings.HasPrefix(c.op, "get"); {
	case r < 65 || read && r < 92:
		a = w.do(c)
	case read:
	case r < 72: // the answer is lost
		w.do(c)
	case r < 76: // the request is lost
	case r < 84:
		w.late = append(w.late, c)
	case r < 90: // something on the way repeats it
		w.do(c)
		a = w.do(c)
	case r < 93 && c.op == "settagged":
		a = answer{err: kv.ErrChanged} // "a conflict", on a whim
	default:
		return false
	}
	w.log = append(w.log, fmt.Sprintf("%d: client %d %s %s: %v", w.now(), c.client, c.op, c.key, a.err))
	c.reply <- a
	return true
}

// hide returns a manifest as the clients see it.
func (w *world) hide(b []byte) []byte {
	m, err := ParseManifest(b)
	if err != nil || w.hidden == "" {
		return b
	}
	switch w.hidden {
	case "floor":
		m.Floor = 0
	case "drops":
		m.Drops = 0
	case "pushes":
		m.Pushes = nil
	}
	b, _ = m.encode()
	return b
}

// reveal returns a manifest of a client with what was hidden from it.
func (w *world) reveal(b []byte) []byte {
	m, err := ParseManifest(b)
	if err != nil || w.hidden == "" {
		return b
	}
	switch w.hidden {
	case "floor":
		m.Floor = w.manifest.Floor
	case "drops":
		m.Drops = w.manifest.Drops
	}
	b, _ = m.encode()
	return b
}
