package index

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv/digest"
)

// pageTables reads pages of large tables past Pebble, which takes a third of the
// time of a first look-up less (docs/design/pages.md): the place of a block is
// found in an array, and the block is read into a buffer that is used again, not
// into a cache that would hold the page a second time.
//
//	ViewPage ──▶ large tables whose filter may have the name ──▶ block ──▶ page
//	   │              (none, not there, unreadable)
//	   └────────────────────────────────────────────────────▶ Pebble
//
// It need not know what Pebble knows of a page, because a name never has other
// bytes: the page that a table holds is the page, whatever is above that table. A
// page that was deleted may be found until its table is. What is not found here is
// asked of Pebble, and so is what fails, so that errors are Pebble's.
type pageTables struct {
	fs   vfs.FS
	dir  string
	opts *pebble.Options // with defaults
	db   *pebble.DB
	min  uint64 // size of the tables that are taken

	stale   atomic.Bool  // tables may have been made or replaced
	waited  atomic.Int32 // views since then
	running atomic.Bool  // a refresh is under way
	runs    atomic.Pointer[[]pageRun]
	readers pageReaders

	mu     sync.Mutex // a refresh
	closed bool
}

// pageRun is tables that do not overlap, in order of names.
type pageRun []*pageTable

const (
	// minPageTable is a size below which the blocks of a table are soon in the
	// cache.
	minPageTable = 256 << 10
	// maxPageBlocks bounds the memory for places of blocks, some 18 bytes each.
	maxPageBlocks = 2 << 20
	// refreshAfter is how many views pay for looking at the tables.
	refreshAfter = 16
)

func newPageTables(x *Index, o *Options) *pageTables {
	opts := x.opts.Clone()
	opts.EnsureDefaults()
	p := &pageTables{fs: x.fs, dir: x.dir, opts: opts, min: uint64(o.pageTable)}
	p.readers.schema = opts.KeySchemas[opts.KeySchema]
	p.stale.Store(true)
	return p
}

// changed says that tables were made or replaced.
func (p *pageTables) changed() { p.stale.Store(true) }

// view calls fn with a page, and tells whether it did.
func (p *pageTables) view(name digest.Sum, fn func([]byte) error) (done bool, err error) {
	runs, h := p.tables(), head(name[:])
	if len(runs) == 0 {
		return false, nil
	}
	r := p.readers.get()
	defer p.readers.put(r)
	for _, run := range runs {
		if t := run.find(h); t != nil && t.use.enter() {
			done, err = t.view(r, name, fn)
			t.use.leave()
			if done {
				break
			}
		}
	}
	return done, err
}

// find returns the table that a name with this head would be in, or nil.
func (r pageRun) find(h uint64) *pageTable {
	i, _ := slices.BinarySearchFunc(r, h, func(t *pageTable, h uint64) int { return cmp.Compare(t.last, h) })
	if i == len(r) || r[i].first > h {
		return nil
	}
	return r[i]
}

func (p *pageTables) tables() []pageRun {
	if runs := p.runs.Load(); runs != nil {
		return *runs
	}
	return nil
}

// all yields the tables.
func (p *pageTables) all() iter.Seq[*pageTable] {
	return func(yield func(*pageTable) bool) {
		for _, run := range p.tables() {
			for _, t := range run {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// due tells whether the tables should be looked at again, by a call of refresh that
// the caller makes.
func (p *pageTables) due() bool {
	return p.stale.Load() && p.waited.Add(1) > refreshAfter && p.running.CompareAndSwap(false, true)
}

// refresh looks at the tables that there are.
func (p *pageTables) refresh() {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.running.Store(false)
	if p.closed {
		return
	}
	p.waited.Store(0)
	p.stale.Store(false)
	levels, err := p.db.SSTables()
	if err != nil {
		return
	}
	old := map[uint64]*pageTable{}
	for t := range p.all() {
		old[t.number] = t
	}
	var next []pageRun
	room := maxPageBlocks
	for level, infos := range slices.Backward(levels) { // most are in the last one
		var run pageRun
		for _, info := range infos {
			t := p.open(info, old, room)
			if t == nil {
				continue
			}
			delete(old, t.number)
			room -= len(t.blocks)
			if level == 0 { // its tables overlap
				next = append(next, pageRun{t})
			} else {
				run = append(run, t)
			}
		}
		if len(run) > 0 {
			next = append(next, run)
		}
	}
	p.runs.Store(&next)
	for _, t := range old {
		t.close()
	}
}

// open returns the table if it is large enough and of a kind that can be read, out
// of old if it is there.
func (p *pageTables) open(info pebble.SSTableInfo, old map[uint64]*pageTable, room int) *pageTable {
	first, last := headOf(info.Smallest.UserKey), headOf(info.Largest.UserKey)
	number := uint64(info.BackingSSTNum)
	if info.Virtual || info.Size < p.min || first == last {
		return nil
	}
	if t := old[number]; t != nil {
		return t
	}
	t, err := openPageTable(p.fs, p.fs.PathJoin(p.dir, tableName(number)), p.opts, room)
	if err != nil {
		return nil // Pebble reads it, or says what is wrong with it
	}
	t.number, t.first, t.last = number, first, last
	return t
}

func tableName(number uint64) string { return fmt.Sprintf("%06d.sst", number) }

// drop closes a table that is about to be removed. It is called with locks of
// Pebble held and waits for nothing but reads of that table.
func (p *pageTables) drop(base string) {
	for t := range p.all() {
		if tableName(t.number) == base {
			t.close()
		}
	}
}

// close ends it. No view is running.
func (p *pageTables) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for t := range p.all() {
		t.close()
	}
	p.runs.Store(nil)
	p.readers.close()
}
