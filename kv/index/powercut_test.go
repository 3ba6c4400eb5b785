package index

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/race"
	"github.com/zarrdb/zarrdb/internal/soaktest"
	"github.com/zarrdb/zarrdb/kv/digest"
)

// A power cut at any operation of the file system leaves an index that opens, with
// no alarm by what watches over its files, in the state behind one of the commits:
// the last that was synced, or a later one. With it is what was ingested.
func TestPowerCuts(t *testing.T) {
	histories := uint64(12)
	if testing.Short() || race.Enabled {
		histories = 4
	}
	cuts := 0
	for seed := range histories {
		cuts += powerCuts(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if cuts < int(histories) {
		t.Errorf("%d power cuts in %d histories", cuts, histories)
	}
}

// TestSoakPowerCuts is TestPowerCuts for as long as ZARRDB_SOAK says. ZARRDB_SEED is
// the seed of the first history, the next ones have those that follow; without it they
// are others each time. What Pebble does meanwhile is not the same with the same seed.
func TestSoakPowerCuts(t *testing.T) {
	d, seed := soaktest.Time(t), soaktest.Seed(t)
	histories, cuts := 0, 0
	for start := time.Now(); histories == 0 || time.Since(start) < d; seed++ {
		cuts += powerCuts(t, seed)
		histories++
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d power cuts in %d histories", cuts, histories)
}

// An edit is one of a batch. A nil value is a delete.
type edit struct {
	space Space
	key   string
	value []byte
}

// cutHistory is an index that suffers one power cut after the other.
type cutHistory struct {
	t   *testing.T
	rng *rand.Rand
	mem *vfs.MemFS
	o   Options

	made    atomic.Bool
	state   map[string]string // behind commit from
	from    int
	batches [][]edit // behind that

	begun, synced   atomic.Int64 // commits
	loading, loaded atomic.Int64 // ingests
	copied          atomic.Int64 // commit that the copy holds, -1 if there is none
}

// cutImage is what a power cut left, with what was known before and after it.
type cutImage struct {
	fs              *vfs.MemFS
	how             string
	made            bool
	synced, begun   int64
	loaded, loading int64
	copied          int64
}

// powerCuts runs a history of a few lives, each of which begins with what a power
// cut in the one before left.
func powerCuts(t *testing.T, seed uint64) (cuts int) {
	rng := rand.New(rand.NewPCG(seed, 7))
	h := &cutHistory{t: t, rng: rng, mem: vfs.NewCrashableMem(), state: map[string]string{}}
	h.o = Options{
		Create: true, MinFreeBytes: 1, ReserveBytes: -1, CacheBytes: 1 << 20, tablePause: 1,
		MemTableBytes: []int{64 << 10, 256 << 10}[rng.IntN(2)],
	}
	h.copied.Store(-1)
	for range 2 + rng.IntN(5) {
		images := h.live()
		cuts += len(images)
		for _, c := range images {
			h.check(c)
			if t.Failed() {
				t.Errorf("after %s", c.how)
				return cuts
			}
		}
		if len(images) > 0 {
			h.nextLife(images[rng.IntN(len(images))])
		}
		if t.Failed() {
			return cuts
		}
	}
	return cuts
}

// live opens the index, works with it and closes it. A few power cuts happen.
func (h *cutHistory) live() (images []cutImage) {
	rng := rand.New(rand.NewPCG(h.rng.Uint64(), 8))
	ops, next := 0, rng.IntN(1<<rng.IntN(11))
	disk := crashtest.NewDisk(h.mem, func(d *crashtest.Disk, _ errorfs.Op) error {
		if ops++; ops <= next || len(images) == 4 {
			return nil
		}
		next = ops + rng.IntN(1<<rng.IntN(11))
		percents := []int{0, 100, rng.IntN(101)}
		percent, removals := percents[rng.IntN(3)], percents[rng.IntN(3)]
		c := cutImage{
			how:  fmt.Sprintf("a power cut at operation %d, with %d %% of what was not synced and %d %% of what was removed", ops, percent, removals),
			made: h.made.Load(), synced: h.synced.Load(), loaded: h.loaded.Load(), copied: h.copied.Load(),
		}
		c.fs = d.Cut(percent, removals, rng)
		c.begun, c.loading = h.begun.Load(), h.loading.Load()
		images = append(images, c)
		return nil
	})
	h.o.FS = disk
	x := h.open()
	for range h.rng.IntN(60) {
		if x == nil || h.t.Failed() {
			break
		}
		x = h.step(x)
	}
	if x != nil {
		h.close(x)
	}
	disk.On(false)
	return images
}

func (h *cutHistory) open() *Index {
	h.o.Create = !h.made.Load()
	x, err := Open("d", &h.o)
	if err != nil {
		h.t.Errorf("open: %v", err)
		return nil
	}
	h.made.Store(true)
	return x
}

func (h *cutHistory) close(x *Index) {
	if err := x.Close(); err != nil {
		h.t.Errorf("close: %v", err)
	}
	h.synced.Store(h.begun.Load())
}

// step does one of the things that are done with an index.
func (h *cutHistory) step(x *Index) *Index {
	var err error
	switch op := h.rng.IntN(100); {
	case op < 70:
		err = h.commit(x)
	case op < 76:
		if err = x.Flush(); err == nil {
			h.synced.Store(h.begun.Load())
		}
	case op < 80:
		x.FlushSoon()
	case op < 88:
		n := h.loading.Add(1)
		if err = x.Ingest(seqOf(loadOf(n), nil)); err == nil {
			h.loaded.Store(n)
		}
	case op < 92:
		err = x.db.Compact(h.t.Context(), []byte{0}, []byte{0xff}, false)
	case op < 94:
		err = h.copy(x)
	case op < 96: // an empty batch is a request to sync
		b := x.NewBatch()
		if err = b.Commit(true); err == nil {
			h.synced.Store(h.begun.Load())
		}
		b.Close()
	default:
		h.close(x)
		return h.open()
	}
	if err != nil {
		h.t.Errorf("%v", err)
	}
	return x
}

var countKey = []byte("commits")

// commit makes the next batch, which counts itself.
func (h *cutHistory) commit(x *Index) error {
	n := h.from + len(h.batches) + 1
	edits := []edit{{space: SpaceMeta, key: string(countKey), value: fmt.Append(nil, n)}}
	for range h.rng.IntN(4) {
		e := edit{space: SpaceRef, key: fmt.Sprint("k", h.rng.IntN(30))}
		if h.rng.IntN(4) > 0 {
			size := h.rng.IntN([]int{100, 3000, 12000, 40000}[h.rng.IntN(4)])
			e.value = append(fmt.Append(nil, n, " "), bytes.Repeat([]byte{byte(n)}, size)...)
		}
		edits = append(edits, e)
	}
	b := x.NewBatch()
	defer b.Close()
	for _, e := range edits {
		if e.value != nil {
			b.Set(e.space, []byte(e.key), e.value)
		} else {
			b.Delete(e.space, []byte(e.key))
		}
	}
	h.batches = append(h.batches, edits)
	h.begun.Store(int64(n))
	sync := h.rng.IntN(2) == 0
	err := b.Commit(sync)
	if err == nil && sync {
		h.synced.Store(int64(n))
	}
	return err
}

// copy replaces the copy of the index.
func (h *cutHistory) copy(x *Index) error {
	h.copied.Store(-1)
	err := errors.Join(h.o.FS.RemoveAll("copy"), SyncDir(h.o.FS, "."))
	if err == nil {
		err = x.Checkpoint("copy")
	}
	if err == nil {
		h.copied.Store(h.begun.Load())
	}
	return err
}

// behind returns what the index holds behind commit n.
func (h *cutHistory) behind(n int) map[string]string {
	state := maps.Clone(h.state)
	for _, edits := range h.batches[:n-h.from] {
		for _, e := range edits {
			key := string(rune(e.space)) + e.key
			if e.value != nil {
				state[key] = string(e.value)
			} else {
				delete(state, key)
			}
		}
	}
	return state
}

// check opens what a power cut left, for reading, for writing and once more.
func (h *cutHistory) check(c cutImage) {
	fs := c.fs.CrashClone(vfs.CrashCloneCfg{})
	first := int64(-1)
	for i, readOnly := range []bool{true, false, true} {
		o := h.o
		o.FS, o.ReadOnly, o.Create = fs, readOnly, false
		n := h.checkOpened("d", &o, c)
		if i > 0 && n != first && !h.t.Failed() {
			h.t.Errorf("at first it was behind commit %d, now it is behind %d", first, n)
		}
		if first = n; n < 0 {
			return
		}
	}
	if c.copied >= 0 {
		o := h.o
		o.FS, o.ReadOnly, o.Create = fs, h.rng.IntN(2) == 0, false
		whole := c
		whole.synced, whole.begun, whole.loaded = c.copied, c.copied, 0
		h.checkOpened("copy", &o, whole)
	}
}

// checkOpened opens an index and compares it with the state behind the commit that
// it counts, which it returns. It is -1 if there is none yet.
func (h *cutHistory) checkOpened(dir string, o *Options, c cutImage) int64 {
	x, err := Open(dir, o)
	if errors.Is(err, ErrNotExist) && !c.made {
		return -1
	}
	if err != nil {
		h.t.Errorf("open %s: %v", dir, err)
		return -1
	}
	defer func() {
		if err := x.Close(); err != nil {
			h.t.Errorf("close: %v", err)
		}
	}()
	n := int64(0)
	if v, err := x.Get(SpaceMeta, countKey); err == nil {
		n, _ = strconv.ParseInt(string(v), 10, 64)
	} else if !errors.Is(err, ErrNotFound) {
		h.t.Error(err)
	}
	if n < c.synced || n > c.begun {
		h.t.Errorf("%s is behind commit %d; %d was synced, %d the last", dir, n, c.synced, c.begun)
		return n
	}
	got := map[string]string{}
	for _, s := range []Space{SpaceMeta, SpaceRef} {
		for r, err := range x.Scan(s, nil, nil, false) {
			if err != nil {
				h.t.Error(err)
				return n
			}
			got[string(rune(s))+string(r.Key)] = string(r.Value)
		}
	}
	if want := h.behind(int(n)); !maps.Equal(got, want) {
		h.t.Errorf("%s behind commit %d has the keys %s, want %s", dir, n, brief(got), brief(want))
	}
	h.checkLoads(x, c)
	return n
}

// checkLoads expects what was ingested, and of what was being ingested all or
// nothing.
func (h *cutHistory) checkLoads(x *Index, c cutImage) {
	for i := int64(1); i <= c.loading; i++ {
		here, list := 0, loadOf(i)
		for _, p := range list {
			v, err := x.GetPage(h.t.Context(), p.Name)
			switch {
			case err == nil && bytes.Equal(v, p.Bytes):
				here++
			case !errors.Is(err, ErrNotFound):
				h.t.Errorf("page %v: %d bytes, %v", p.Name, len(v), err)
			}
		}
		if here != len(list) && (here > 0 || i <= c.loaded) {
			h.t.Errorf("ingest %d of %d, %d of them acknowledged: %d of %d pages are there", i, c.loading, c.loaded, here, len(list))
		}
	}
}

// loadOf is what the n-th ingest brings.
func loadOf(n int64) (list []Page) {
	for i := range 1 + n%5 {
		p := bytes.Repeat(fmt.Append(nil, "page ", n, i), 200)
		list = append(list, Page{digest.Of(p), p})
	}
	slices.SortFunc(list, func(a, b Page) int { return bytes.Compare(a.Name[:], b.Name[:]) })
	return list
}

// nextLife makes what a power cut left the index of the next life.
func (h *cutHistory) nextLife(c cutImage) {
	h.mem = c.fs
	h.made.Store(c.made)
	o := h.o
	o.FS, o.ReadOnly, o.Create = c.fs, true, false
	n := max(h.checkOpened("d", &o, c), 0)
	h.state, h.batches, h.from = h.behind(int(n)), nil, int(n)
	h.begun.Store(n)
	h.synced.Store(n)
	h.loading.Store(c.loaded)
	h.loaded.Store(c.loaded)
	h.copied.Store(-1)
}

// brief shows keys with the beginning of their values.
func brief(m map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, " %s=%.6q/%d", k, m[k], len(m[k]))
	}
	return b.String()
}
