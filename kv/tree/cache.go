package tree

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"sync/atomic"
)

// Cache holds parsed pages up to a number of bytes. Trees over several page stores may share
// one. Safe for concurrent use.
//
// It is a table of sets of eight places. The name of a page (a hash already)
// selects its set. Lookups take no lock: a set's tags are one cache line, and if
// a tag matches, the name of its page is compared. Insertions and evictions take
// one lock, which is cheap beside reading, hashing and parsing a page. Eviction
// is by the clock algorithm: a hand moves over the places and evicts pages that
// were not used since its last pass.
//
// The table begins small and grows with the pages: in a large and mostly empty
// one, each page would cost a page fault.
type Cache struct {
	sets atomic.Pointer[[]cacheSet] // as many as a power of two

	mu    sync.Mutex
	limit int64
	most  int // sets that the table may have
	bytes int64
	pages int
	hand  uint64
}

const (
	cacheWays  = 8
	cacheFirst = 64 // sets at first
	cacheGrows = 4  // times as many
)

type cacheSet struct {
	tags  [cacheWays]atomic.Uint64 // of the page in the same place, 0 for a free place
	pages [cacheWays]atomic.Pointer[page]
}

// free returns a place without a page, -1 if the set is full.
func (s *cacheSet) free() int {
	for i := range s.tags {
		if s.tags[i].Load() == 0 {
			return i
		}
	}
	return -1
}

// NewCache makes room for limit bytes, and places for pages of 1 KiB; a cache of
// smaller pages does not use all its bytes.
func NewCache(limit int64) *Cache {
	c := &Cache{}
	c.SetLimit(limit)
	sets := make([]cacheSet, min(c.most, cacheFirst))
	c.sets.Store(&sets)
	return c
}

// SetLimit changes the number of bytes. It drops pages that have no room.
func (c *Cache) SetLimit(limit int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = max(limit, 0)
	c.most = min(1<<bits.Len64(uint64(max(limit-1, 0))>>10/cacheWays), 1<<22)
	for c.bytes > c.limit {
		c.tick(*c.sets.Load(), nil)
	}
}

// Bytes returns the memory of the pages in the cache.
func (c *Cache) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// place returns the set and the tag of a name.
func place(sets []cacheSet, name *Name) (*cacheSet, uint64) {
	tag := binary.LittleEndian.Uint64(name[:])
	return &sets[binary.LittleEndian.Uint64(name[8:])&uint64(len(sets)-1)], tag | 1
}

// get returns a page or nil.
func (c *Cache) get(name *Name) *page {
	set, tag := place(*c.sets.Load(), name)
	for i := range set.tags {
		if set.tags[i].Load() != tag {
			continue
		}
		if p := set.pages[i].Load(); p != nil && p.self.Name == *name {
			if !p.used.Load() { // most pages are; keep their cache line shared
				p.used.Store(true)
			}
			return p
		}
	}
	return nil
}

// grow makes the table larger. Concurrent lookups in the old table still find
// its pages.
func (c *Cache) grow(old []cacheSet) []cacheSet {
	sets := make([]cacheSet, min(len(old)*cacheGrows, c.most))
	for i := range old {
		for j := range old[i].pages {
			p := old[i].pages[j].Load()
			if p == nil {
				continue
			}
			set, tag := place(sets, &p.self.Name)
			at := set.free() // there is one, as the pages of a set come from one
			set.pages[at].Store(p)
			set.tags[at].Store(tag)
		}
	}
	c.sets.Store(&sets)
	return sets
}

// put keeps p, unless it is larger than half of the cache, and evicts other pages for it.
func (c *Cache) put(p *page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.memory() > c.limit/2 {
		return
	}
	sets := *c.sets.Load()
	set, tag := place(sets, &p.self.Name)
	at := -1
	for i := range set.pages {
		old := set.pages[i].Load()
		if set.tags[i].Load() == tag && old.self.Name == p.self.Name {
			return
		}
		if old == nil && at < 0 {
			at = i
		}
	}
	for len(sets) < c.most && (at < 0 || c.pages >= len(sets)*cacheWays/2) {
		sets = c.grow(sets)
		set, _ = place(sets, &p.self.Name)
		at = set.free()
	}
	if at < 0 {
		at = c.evictFrom(set)
	}
	set.pages[at].Store(p)
	set.tags[at].Store(tag)
	c.bytes += p.memory()
	c.pages++
	for c.bytes > c.limit {
		c.tick(sets, p)
	}
}

// evictFrom frees a place in a full set, preferably the place of an unused page.
func (c *Cache) evictFrom(set *cacheSet) int {
	at := int(c.hand % cacheWays)
	for i := range set.pages {
		if !set.pages[i].Load().used.Swap(false) {
			at = i
			break
		}
	}
	c.drop(set, at)
	c.hand++
	return at
}

// tick moves the hand by one place. The page that was put last is spared.
func (c *Cache) tick(sets []cacheSet, spare *page) {
	set := &sets[c.hand/cacheWays&uint64(len(sets)-1)]
	at := int(c.hand % cacheWays)
	c.hand++
	p := set.pages[at].Load()
	if p == nil || p == spare || p.used.Swap(false) {
		return
	}
	c.drop(set, at)
}

func (c *Cache) drop(set *cacheSet, at int) {
	p := set.pages[at].Load()
	set.tags[at].Store(0)
	set.pages[at].Store(nil)
	c.bytes -= p.memory()
	c.pages--
}
