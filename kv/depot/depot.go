package depot

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/gather"
)

var (
	// ErrNone means that there is no depot. [Create] may make one.
	ErrNone = fault.New("depot: the store has no manifest", fault.ErrNotFound)
	// ErrNotEmpty means that a depot cannot be made where other objects are.
	ErrNotEmpty = errors.New("depot: not empty")
	// ErrExists means that a depot is there already.
	ErrExists = errors.New("depot: it exists already")
	// ErrGone means that the manifest of a depot that was open, or was known, is no longer there.
	ErrGone = errors.New("depot: the manifest is gone")
	// ErrOther means that another depot is there now.
	ErrOther = errors.New("depot: another one is there now")
	// ErrLost means that the store lost a push that it had acknowledged.
	ErrLost = errors.New("depot: the store lost a push that it had acknowledged")
	// ErrLeft means that a page, a commit or a payload is no longer in the depot, or never was.
	ErrLeft = fault.New("depot: not there, or no longer", fault.ErrNotFound)
)

// BackError means that a depot is at an earlier generation than before, or at another state of the
// same one: the bucket was restored from a copy, or a copy of it was changed.
type BackError struct{ Known, Now uint64 }

func (e *BackError) Error() string {
	return fmt.Sprintf("depot: it went back: generation %d was known, and now it is another or earlier one, %d", e.Known, e.Now)
}

// State is what a machine remembers of a depot from one time to the next.
type State struct {
	ID         string `json:"id"`
	Generation uint64 `json:"generation"`
	// Sum is the name of the manifest of that generation, and Tag the tag that the store gave it, if it is known.
	Sum ID     `json:"sum"`
	Tag kv.Tag `json:"tag,omitempty"`
	// Push is the last push of this machine, and Pushed the generation that it made; 0 without one.
	Push   Number `json:"push,omitempty"`
	Pushed uint64 `json:"pushed,omitempty"`
}

// check compares a manifest with what is known.
func (s *State) check(m *Manifest, sum ID) error {
	switch {
	case s.ID != m.ID:
		return fmt.Errorf("%w: %s instead of %s", ErrOther, m.ID, s.ID)
	case m.Generation < s.Generation, m.Generation == s.Generation && sum != s.Sum:
		return &BackError{s.Generation, m.Generation}
	case s.Pushed > 0 && m.Generation < s.Pushed+keptPushes && !m.Has(s.Push):
		return fmt.Errorf("%w: that of generation %d, and now it is generation %d; push again", ErrLost, s.Pushed, m.Generation)
	}
	return nil
}

// Options of [Open] and [Create]. nil and the zero value work.
type Options struct {
	// Known is what [Depot.State] returned last time. A depot whose history does not go on from that state
	// is an error. Default: any depot will do.
	Known *State
	// Cache keeps indexes of bundles and small bundles, so that they are not fetched each time. The depot checks what
	// the cache returns, so a cache may lose or damage its contents. Default: memory alone.
	Cache kv.Store
	// Cached begins with the manifest that the cache has, if it has one: Open then sends no request.
	Cached bool

	// Sleep and Rand replace the clock and the random numbers in tests.
	Sleep func(ctx context.Context, d time.Duration) error
	Rand  func() uint64
	small uint64 // instead of carried
}

// Depot is an open depot. Safe for concurrent use. It needs no Close.
type Depot struct {
	store kv.Store
	c     kv.Conditional
	o     Options
	room  *gather.Memory // of what is read

	mu  sync.Mutex
	now *snapshot

	loading ctxlock.Lock
	indexes map[Name]*index // of listed bundles; under loading
	pushed  State           // Push and Pushed; under mu
}

// snapshot is a manifest as it was read or written.
type snapshot struct {
	*Manifest
	tag  kv.Tag
	sum  ID
	time time.Time // of the store, when it was read
	read time.Time // the same by the clock of this machine
	raw  []byte    // the bytes, if it was read
}

const manifestKey = "manifest"

func newDepot(store kv.Store, o *Options) (*Depot, error) {
	c, ok := store.(kv.Conditional)
	if !ok {
		return nil, fmt.Errorf("depot: %w: the store has no conditional writes", errors.ErrUnsupported)
	}
	d := &Depot{store: store, c: c, room: gather.NewMemory(64 << 20), indexes: map[Name]*index{}}
	if o != nil {
		d.o = *o
	}
	if d.o.Sleep == nil {
		d.o.Sleep = sleep
	}
	if d.o.Rand == nil {
		d.o.Rand = randomNumber
	}
	d.o.small = cmp.Or(d.o.small, carried)
	if d.o.Known != nil {
		d.pushed = *d.o.Known
	}
	return d, nil
}

func randomNumber() uint64 {
	var b [8]byte
	_, _ = crand.Read(b[:]) // it never fails
	return binary.LittleEndian.Uint64(b[:])
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Open opens a depot, with one request. store is the part of a bucket that has the depot alone, such
// as a [kv.Sub]; it must be [kv.Conditional]. Open does not try whether the store keeps its
// promises: call [Probe] before the first push of a machine.
func Open(ctx context.Context, store kv.Store, o *Options) (*Depot, error) {
	d, err := newDepot(store, o)
	if err == nil && !d.recall(ctx) {
		err = d.Refresh(ctx)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// recall begins with the manifest in the cache, and reports whether that will do. If its tag is known, it need not be sent again.
func (d *Depot) recall(ctx context.Context) bool {
	if d.o.Cache == nil || !d.o.Cached && (d.o.Known == nil || d.o.Known.Tag == kv.NoValue) {
		return false
	}
	b, err := kv.Get(ctx, d.o.Cache, manifestKey)
	if err != nil {
		return false
	}
	m, err := ParseManifest(b)
	if err != nil {
		return false
	}
	s := &snapshot{Manifest: m, sum: NameOf(b)}
	if d.o.Known != nil && d.o.Known.Sum == s.sum {
		s.tag = d.o.Known.Tag
	}
	if d.o.Cached || s.tag != kv.NoValue {
		d.set(s)
	}
	return d.o.Cached
}

// Create makes a depot in an empty store, after [Probe]. The error is [ErrExists] if one is there, and
// [ErrNotEmpty] if something else is. If another process makes one at the same time,
// one of the two gets ErrExists.
func Create(ctx context.Context, store kv.Store, o *Options) (*Depot, error) {
	d, err := newDepot(store, o)
	if err != nil {
		return nil, err
	}
	d.o.Known, d.pushed = nil, State{}
	switch err := d.Refresh(ctx); {
	case err == nil:
		return nil, ErrExists
	case !errors.Is(err, ErrNone):
		return nil, err
	}
	for key, err := range store.List(ctx, kv.ListOptions{}) {
		if err != nil {
			return nil, fmt.Errorf("depot: create: %w", err)
		}
		if len(key) < len(probePrefix) || key[:len(probePrefix)] != probePrefix {
			return nil, fmt.Errorf("%w: there is %.100q", ErrNotEmpty, key)
		}
	}
	if err := Probe(ctx, store, d.o.Rand); err != nil {
		return nil, err
	}
	m := &Manifest{ID: fmt.Sprintf("%016x%016x", d.o.Rand(), d.o.Rand()), Generation: 1, Refs: map[string]ID{}, Bundles: []BundleInfo{}, Pushes: []Number{}, Times: [][2]int64{}}
	b, err := m.encode()
	if err != nil {
		return nil, err
	}
	tag, err := d.c.SetTagged(ctx, manifestKey, b, kv.NoValue)
	switch {
	case err == nil:
		d.set(&snapshot{Manifest: m, tag: tag, sum: NameOf(b)}) // the time is not known
	case errors.Is(err, kv.ErrChanged), errors.Is(err, kv.ErrUnknown):
		if look := d.Refresh(ctx); look != nil {
			return nil, errors.Join(err, look)
		}
		if d.Manifest().ID != m.ID {
			return nil, ErrExists
		}
	default:
		return nil, fmt.Errorf("depot: create: %w", err)
	}
	// The file tells people what the bucket is. No program reads it, and the depot works without it.
	_ = store.Set(ctx, "FORMAT", []byte("zarrdb remote 1\n"+m.ID+"\n"))
	return d, nil
}

// Manifest returns the newest manifest that this process has read or written.
func (d *Depot) Manifest() *Manifest { return d.snapshot().Manifest }

func (d *Depot) snapshot() *snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

// State returns what to remember for [Options.Known].
func (d *Depot) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return State{d.now.ID, d.now.Generation, d.now.sum, d.now.tag, d.pushed.Push, d.pushed.Pushed}
}

// set takes a manifest if it is not older.
func (d *Depot) set(s *snapshot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now == nil || s.Generation >= d.now.Generation {
		d.now = s
	}
}

// Refresh reads the manifest anew, with one request; if it is the known one, its bytes are not sent.
func (d *Depot) Refresh(ctx context.Context) error {
	state, known := d.o.Known, kv.NoValue
	now := d.snapshot()
	if now != nil {
		s := d.State()
		state, known = &s, now.tag
	}
	got, err := d.c.GetTagged(ctx, manifestKey, known, maxManifest)
	switch {
	case errors.Is(err, kv.ErrNotFound) && state == nil:
		return ErrNone
	case errors.Is(err, kv.ErrNotFound):
		return ErrGone
	case err != nil:
		return fmt.Errorf("depot: read the manifest: %w", err)
	case got.Tag == known && known != kv.NoValue:
		same := *now
		same.time, same.read = got.Time, time.Now()
		d.set(&same)
		return nil
	}
	m, err := ParseManifest(got.Value)
	if err != nil {
		return err
	}
	s := &snapshot{m, got.Tag, NameOf(got.Value), got.Time, time.Now(), got.Value}
	if state != nil {
		if err := state.check(m, s.sum); err != nil {
			return err
		}
	}
	d.set(s)
	d.keepManifest(ctx, s)
	return nil
}

// keepManifest puts a manifest that was read into the cache. A cache that fails costs time alone.
func (d *Depot) keepManifest(ctx context.Context, s *snapshot) {
	if d.o.Cache != nil && s.raw != nil {
		_ = d.o.Cache.Set(ctx, manifestKey, s.raw)
	}
}

// smallWhole is the size up to which a bundle is fetched whole for its index.
const smallWhole = 1 << 20

// load returns the newest manifest and the indexes of its bundles, newest first. It fetches the indexes
// that this process does not have, one request each. The index of a damaged or lost bundle is empty and has the reason.
func (d *Depot) load(ctx context.Context) (*snapshot, []*index, error) {
	if err := d.loading.Lock(ctx); err != nil {
		return nil, nil, err
	}
	defer d.loading.Unlock()
	for range looks {
		s := d.snapshot()
		out := make([]*index, len(s.Bundles))
		err := gather.Each(ctx, 16, len(out), func(ctx context.Context, i int) (err error) {
			info := &s.Bundles[i]
			if out[i] = d.indexes[info.Name]; out[i] != nil {
				return nil
			}
			out[i], err = d.fetch(ctx, info)
			if errors.Is(err, kv.ErrNotFound) || errors.Is(err, kv.ErrCorrupt) {
				out[i], err = &index{bad: err}, nil
			}
			return err
		})
		if err != nil {
			return nil, nil, err
		}
		clear(d.indexes)
		lost := false
		for i, x := range out {
			if x.bad == nil {
				d.indexes[s.Bundles[i].Name] = x
			} else if errors.Is(x.bad, kv.ErrNotFound) {
				x.bad, lost = corrupt("%s, which the manifest lists, is missing", s.Bundles[i].Name.Bundle()), true
			}
		}
		if lost { // or merged into another
			if err := d.Refresh(ctx); err != nil {
				return nil, nil, err
			}
			if d.snapshot().Generation > s.Generation {
				continue
			}
		}
		return s, out, nil
	}
	return nil, nil, errBusy
}

// index returns the index of one bundle.
func (d *Depot) index(ctx context.Context, info *BundleInfo) (*index, error) {
	if err := d.loading.Lock(ctx); err != nil {
		return nil, err
	}
	defer d.loading.Unlock()
	if x := d.indexes[info.Name]; x != nil {
		return x, nil
	}
	return d.fetch(ctx, info)
}

// looks bounds how often reading begins again because another machine has published.
const looks = 16

var errBusy = errors.New("depot: others publish all the time; try again")

// fetch returns the index of a bundle.
func (d *Depot) fetch(ctx context.Context, info *BundleInfo) (*index, error) {
	if d.o.Cache != nil {
		if b, err := kv.Get(ctx, d.o.Cache, info.Name.String()); err == nil {
			if x, err := d.indexOf(info, b); err == nil {
				return x, nil
			}
		}
	}
	x, err := d.fetchRemote(ctx, info)
	if err == nil {
		d.keep(ctx, info.Name, x)
	}
	return x, err
}

// fetchRemote is fetch past the cache.
func (d *Depot) fetchRemote(ctx context.Context, info *BundleInfo) (*index, error) {
	rng := kv.Span(int64(info.Index), int64(info.Size-footerSize-info.Index))
	if info.Size <= smallWhole {
		rng = kv.AtMost(int64(info.Size))
	}
	b, err := d.store.Get(ctx, info.Name.Bundle(), rng)
	if err != nil {
		return nil, d.unread(info.Name.Bundle(), err)
	}
	return d.indexOf(info, b)
}

func (d *Depot) unread(key string, err error) error {
	if errors.Is(err, kv.ErrRange) || errors.Is(err, kv.ErrTooLarge) {
		return corrupt("%s does not have the size that the manifest lists: %v", key, err)
	}
	return fmt.Errorf("depot: read %s: %w", key, err)
}

// indexOf reads an index, or a whole bundle of at most smallWhole.
func (d *Depot) indexOf(info *BundleInfo, b []byte) (*index, error) {
	if uint64(len(b)) == info.Size {
		w, err := ParseBundle(b)
		if err == nil {
			err = w.is(info)
		}
		if err != nil {
			return nil, err
		}
		return w.index()
	}
	if NameOf(b) != info.Sum {
		return nil, corrupt("the index of bundle %v does not have its name", info.Name)
	}
	return parseIndex(b, info.Index)
}

// keep puts an index, or a small bundle, into the cache. A cache that fails costs time alone.
func (d *Depot) keep(ctx context.Context, name Name, x *index) {
	if d.o.Cache == nil {
		return
	}
	b := x.raw
	if x.whole != nil {
		b = x.whole.b
	}
	_ = d.o.Cache.Set(ctx, name.String(), b)
}

// SaveTo has the depot use a cache from now on, and puts there what is known.
func (d *Depot) SaveTo(ctx context.Context, cache kv.Store) {
	if d.loading.Lock(ctx) != nil {
		return
	}
	defer d.loading.Unlock()
	d.o.Cache = cache
	d.keepManifest(ctx, d.snapshot())
	for name, x := range d.indexes {
		d.keep(ctx, name, x)
	}
}

// HasCommits reports which versions the depot has whole. A version that only a damaged bundle lists counts as missing, so that a push brings it again.
func (d *Depot) HasCommits(ctx context.Context, ids []ID) ([]bool, error) {
	return d.inIndexes(ctx, ids, func(x *index, id *ID) bool {
		e, ok := find(x.commits, commitSize, id)
		return ok && binary.LittleEndian.Uint32(e[32:])&flagBare == 0
	})
}

// HasPages reports for each of ids whether the depot has that page, by the indexes of its bundles, which it fetches first if
// they are not in the cache. A page that only a damaged bundle lists counts as missing. The errors are those of [Depot.Refresh].
func (d *Depot) HasPages(ctx context.Context, ids []ID) ([]bool, error) {
	return d.inIndexes(ctx, ids, func(x *index, id *ID) bool {
		_, ok := find(x.pages, pageSize, id)
		return ok
	})
}

// inIndexes reports for each of ids whether in is true for the index of a bundle.
func (d *Depot) inIndexes(ctx context.Context, ids []ID, in func(x *index, id *ID) bool) ([]bool, error) {
	_, indexes, err := d.load(ctx)
	out := make([]bool, len(ids))
	for i := range ids {
		out[i] = slices.ContainsFunc(indexes, func(x *index) bool { return in(x, &ids[i]) })
	}
	return out, err
}

// Part is a range of a pack.
type Part struct {
	Pack     [16]byte
	From, To uint64
}

// Pages returns pages in the order of ids, which it compares with them. Neighbours share a request. The error
// is [ErrLeft] if one of them is not there.
func (d *Depot) Pages(ctx context.Context, ids []ID) ([][]byte, error) {
	return d.named(ctx, ids, "page", func(x *index) ([]byte, int) { return x.pages, pageSize })
}

// Commits is [Depot.Pages] for commit records.
func (d *Depot) Commits(ctx context.Context, ids []ID) ([][]byte, error) {
	return d.named(ctx, ids, "commit", func(x *index) ([]byte, int) { return x.commits, commitSize })
}

func (d *Depot) named(ctx context.Context, ids []ID, kind string, table func(*index) ([]byte, int)) ([][]byte, error) {
	out, err := d.read(ctx, len(ids), func(x *index, bundle Name, i int) (key string, at span, here []byte, ok bool) {
		b, size := table(x)
		e, ok := find(b, size, &ids[i])
		if ok {
			key, at = bundle.Bundle(), spanAt(e[20:])
		}
		if ok && x.whole != nil {
			here = x.whole.b[at.off : at.off+at.n]
		}
		return key, at, here, ok
	}, func(i int) string { return fmt.Sprintf("%s %v", kind, ids[i]) })
	for i := range out {
		if err == nil {
			err = named(ids[i], out[i])
		}
	}
	return out, err
}

// Payloads returns ranges of packs from the newest extents that have them. Each must lie in one
// extent. It does not check the bytes: records have checksums of their own.
func (d *Depot) Payloads(ctx context.Context, parts []Part) ([][]byte, error) {
	return d.read(ctx, len(parts), func(x *index, _ Name, i int) (string, span, []byte, bool) {
		p := &parts[i]
		e, ok := x.cover(p.Pack, p.From, p.To)
		return e.Segment.Segment(), span{e.Offset + p.From - e.From, p.To - p.From}, nil, ok
	}, func(i int) string {
		return fmt.Sprintf("%d bytes at %d of pack %x", parts[i].To-parts[i].From, parts[i].From, parts[i].Pack)
	})
}

// read reads n parts of objects, from the newest bundles in which find finds them. If an object is gone, it looks for another
// place in a newer manifest. Bytes that find returns are copied.
func (d *Depot) read(ctx context.Context, n int, find func(x *index, bundle Name, i int) (key string, at span, here []byte, ok bool), text func(i int) string) ([][]byte, error) {
	for look := range looks {
		s, indexes, err := d.load(ctx)
		if err != nil {
			return nil, err
		}
		r := reading{d: d, out: make([][]byte, n)}
		parts, files := make([]gather.Part, 0, n), map[string]int{}
		for i := 0; i < n && err == nil; i++ {
			err = fmt.Errorf("%w: %s", ErrLeft, text(i))
			for j, x := range indexes {
				key, at, here, ok := find(x, s.Bundles[j].Name, i)
				if !ok {
					if x.bad != nil {
						err = fmt.Errorf("depot: %s: %w", text(i), x.bad)
					}
					continue
				}
				if err = nil; here != nil {
					r.out[i] = slices.Clone(here)
					break
				}
				file, known := files[key]
				if !known {
					file = len(r.keys)
					files[key], r.keys = file, append(r.keys, key)
				}
				parts = append(parts, gather.Part{File: file, Off: int64(at.off), N: int64(at.n), Want: i})
				break
			}
		}
		listed := err == nil
		if listed {
			err = gather.Read(ctx, parts, &r, gather.Options{Gap: 256 << 10, Most: 8 << 20, Parallel: 16, Memory: d.room})
			if err == nil || !errors.Is(err, kv.ErrNotFound) {
				return r.out, err
			}
		} else if look > 0 {
			return nil, err // the manifest is new
		}
		if err := d.Refresh(ctx); err != nil {
			return nil, err
		}
		if d.snapshot().Generation == s.Generation {
			if listed {
				err = corrupt("the manifest lists what is missing: %v", err)
			}
			return nil, err
		}
	}
	return nil, errBusy
}

// reading implements [gather.Files].
type reading struct {
	d    *Depot
	keys []string
	out  [][]byte
}

// Open reads a part of an object with one request. The value has no bytes.
func (r *reading) Open(ctx context.Context, file int, rng kv.Range, _ int64, _ kv.Value) (kv.Value, []byte, error) {
	b, err := r.d.store.Get(ctx, r.keys[file], rng)
	if err != nil {
		return nil, nil, r.d.unread(r.keys[file], err)
	}
	off, n, _ := rng.Bounds()
	return kv.FromReaderAt(nil, off+n, kv.ID{}), b, nil
}

// Take copies bytes that may share memory with many others.
func (r *reading) Take(_ context.Context, p gather.Part, _ kv.Value, b []byte, err error) error {
	if len(b) < 1<<20 { // else they are most of what Open has read
		b = append([]byte{}, b...)
	}
	r.out[p.Want] = b
	return err
}

// PagesBeside returns the names of a page and of those that lie behind it in its bundle, up to so many bytes. A
// push writes a page before those that it names, so a reader who goes down a tree needs some of them next. The error is
// [ErrLeft] if the page is not there.
func (d *Depot) PagesBeside(ctx context.Context, id ID, most uint64) ([]ID, error) {
	s, i, err := d.listed(ctx, id, func(x *index) ([]byte, int) { return x.pages, pageSize })
	if err != nil {
		return nil, fmt.Errorf("%w: page %v", err, id)
	}
	x, err := d.index(ctx, &s.Bundles[i])
	if err != nil {
		return nil, err
	}
	e, _ := find(x.pages, pageSize, &id)
	from, ids := spanAt(e[20:]).off, []ID{id}
	for at := 0; at < len(x.pages); at += pageSize {
		if b := spanAt(x.pages[at+20:]); b.off > from && b.off+b.n <= from+most {
			ids = append(ids, ID(x.pages[at:][:20]))
		}
	}
	return ids, nil
}

// PageBundle returns the newest bundle that lists a page. The error is [ErrLeft] if there is none.
func (d *Depot) PageBundle(ctx context.Context, id ID) (BundleInfo, error) {
	s, x, err := d.listed(ctx, id, func(x *index) ([]byte, int) { return x.pages, pageSize })
	if err != nil {
		return BundleInfo{}, fmt.Errorf("%w: page %v", err, id)
	}
	return s.Bundles[x], nil
}

// CommitsBeside returns the record of a commit, and those that lie in the same bundle and in some bundles behind it, up to a bound. The error
// is [ErrLeft] if the commit is not there.
func (d *Depot) CommitsBeside(ctx context.Context, id ID, bundles int) ([][]byte, error) {
	const most = 64 << 20 // bytes of records behind the first bundle
	s, i, err := d.listed(ctx, id, func(x *index) ([]byte, int) { return x.commits, commitSize })
	if err != nil {
		return nil, fmt.Errorf("%w: commit %v", err, id)
	}
	ids, sum := []ID{id}, uint64(0)
	for k := i; k < len(s.Bundles) && k-i <= bundles; k++ {
		x, err := d.index(ctx, &s.Bundles[k])
		if err != nil && k == i {
			return nil, err
		} else if err != nil {
			break // it is damaged: its commits are asked for by themselves, if they are needed
		}
		for at := 0; at < len(x.commits); at += commitSize {
			if sum += spanAt(x.commits[at+20:]).n; k == i || sum <= most {
				ids = append(ids, ID(x.commits[at:][:20]))
			}
		}
	}
	list, err := d.Commits(ctx, ids)
	if bundles > 0 && (errors.Is(err, kv.ErrCorrupt) || errors.Is(err, ErrLeft)) {
		return d.CommitsBeside(ctx, id, 0)
	}
	return list, err
}

// listed returns the newest manifest, and the number of the newest bundle whose table has a name.
func (d *Depot) listed(ctx context.Context, id ID, table func(*index) ([]byte, int)) (*snapshot, int, error) {
	s, indexes, err := d.load(ctx)
	if err != nil {
		return nil, 0, err
	}
	err = ErrLeft
	for i, x := range indexes {
		b, size := table(x)
		if _, ok := find(b, size, &id); ok {
			return s, i, nil
		} else if x.bad != nil {
			err = x.bad
		}
	}
	return nil, 0, err
}

// HasRecord reports whether the depot lists a commit, with its version or bare.
func (d *Depot) HasRecord(ctx context.Context, id ID) (bool, error) {
	_, _, err := d.listed(ctx, id, func(x *index) ([]byte, int) { return x.commits, commitSize })
	if errors.Is(err, ErrLeft) || errors.Is(err, kv.ErrCorrupt) {
		return false, nil
	}
	return err == nil, err
}

// Bare calls fn for the commits of which only the record is there.
func (d *Depot) Bare(ctx context.Context, fn func(ID)) error {
	_, indexes, err := d.load(ctx)
	if err != nil {
		return err
	}
	bare := map[ID]bool{}
	for _, x := range indexes {
		for at := 0; at < len(x.commits); at += commitSize {
			id := ID(x.commits[at:][:20])
			is := binary.LittleEndian.Uint32(x.commits[at+32:])&flagBare != 0
			if had, ok := bare[id]; !ok || had {
				bare[id] = is
			}
		}
	}
	for id, is := range bare {
		if is {
			fn(id)
		}
	}
	return nil
}

// Extents returns the parts of a range of a pack that the depot has, ascending. The newest bundle counts.
func (d *Depot) Extents(ctx context.Context, pack [16]byte, from, to uint64) ([]Extent, error) {
	_, indexes, err := d.load(ctx)
	if err != nil {
		return nil, err
	}
	var out []Extent
	for _, x := range indexes {
		if list := x.within(pack, from, to); len(list) > 0 {
			out = overlay(out, list)
		}
	}
	return out, nil
}

// SegmentSize asks for the size of a segment, 0 if it is not there.
func (d *Depot) SegmentSize(ctx context.Context, name Name) (uint64, error) {
	v, err := kv.Locate(ctx, d.store, name.Segment())
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("depot: look for %s: %w", name.Segment(), err)
	}
	return uint64(v.Size()), nil
}

// Bundle reads a whole bundle of a manifest, with one request unless it is small and known. The error is kv.ErrNotFound if it is no longer
// there: read the manifest again.
func (d *Depot) Bundle(ctx context.Context, info *BundleInfo) (*Bundle, error) {
	if err := d.loading.Lock(ctx); err != nil {
		return nil, err
	}
	x := d.indexes[info.Name]
	d.loading.Unlock()
	if x != nil && x.whole != nil {
		return x.whole, nil
	}
	b, err := d.store.Get(ctx, info.Name.Bundle(), kv.AtMost(int64(info.Size)))
	if err != nil {
		return nil, d.unread(info.Name.Bundle(), err)
	}
	w, err := ParseBundle(b)
	if err == nil {
		err = w.is(info)
	}
	return w, err
}

// wait waits before a try, longer with each one. The random numbers of pushes spread the waits.
func (d *Depot) wait(ctx context.Context, try int, least time.Duration) error {
	most := min(50*time.Millisecond<<min(try, 10), time.Second)
	r := rand.New(rand.NewPCG(d.o.Rand(), 0))
	return d.o.Sleep(ctx, least+time.Duration(r.Int64N(int64(most))))
}
