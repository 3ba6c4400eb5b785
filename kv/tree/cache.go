package tree

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"sync/atomic"
)

// cache holds parsed pages up to a number of bytes.
//
// It is a table of sets of eight places. A page may lie in one set only, which
// its name says (names are hashes already). Lookups take no lock: a set's tags
// are one cache line, and a tag that fits leads to the page, whose name decides.
// Insertions and evictions take one lock; they stand beside reading, hashing
// and parsing a page. The hand of a clock goes over the places and evicts pages
// that were not used since it last came by.
type cache struct {
	limit int64
	mask  uint64
	sets  []cacheSet

	mu    sync.Mutex
	bytes int64
	pages int
	hand  uint64
}

const cacheWays = 8

type cacheSet struct {
	tags  [cacheWays]atomic.Uint64 // of the page in the same place, 0 if there is none
	pages [cacheWays]atomic.Pointer[page]
}

// newCache makes room for limit bytes, and places for pages of 1 KiB; a cache of
// smaller pages does not use all its bytes.
func newCache(limit int64) *cache {
	sets := min(uint64(1)<<bits.Len64(uint64(max(limit-1, 0))>>10/cacheWays), 1<<22)
	return &cache{limit: limit, mask: sets - 1, sets: make([]cacheSet, sets)}
}

// place returns the set and the tag of a name.
func (c *cache) place(name *Name) (*cacheSet, uint64) {
	tag := binary.LittleEndian.Uint64(name[:])
	return &c.sets[binary.LittleEndian.Uint64(name[8:])&c.mask], tag | 1
}

// get returns a page or nil.
func (c *cache) get(name *Name) *page {
	set, tag := c.place(name)
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

// put keeps p if there is room for it, at the cost of others. A page that was
// glanced at makes place for the whole one.
func (c *cache) put(p *page) {
	if p.memory() > c.limit/2 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	set, tag := c.place(&p.self.Name)
	at := -1
	for i := range set.pages {
		old := set.pages[i].Load()
		if old != nil && old.self.Name == p.self.Name {
			if !old.glanced || p.glanced {
				return
			}
			c.drop(set, i)
			old = nil
		}
		if old == nil && at < 0 {
			at = i
		}
	}
	if at < 0 {
		at = c.evictFrom(set)
	}
	set.pages[at].Store(p)
	set.tags[at].Store(tag)
	c.bytes += p.memory()
	c.pages++
	for c.bytes > c.limit {
		c.tick(p)
	}
}

// evictFrom frees a place in a full set, of a page that was not used if there
// is one.
func (c *cache) evictFrom(set *cacheSet) int {
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
func (c *cache) tick(spare *page) {
	set := &c.sets[c.hand/cacheWays&c.mask]
	at := int(c.hand % cacheWays)
	c.hand++
	p := set.pages[at].Load()
	if p == nil || p == spare || p.used.Swap(false) {
		return
	}
	c.drop(set, at)
}

func (c *cache) drop(set *cacheSet, at int) {
	p := set.pages[at].Load()
	set.tags[at].Store(0)
	set.pages[at].Store(nil)
	c.bytes -= p.memory()
	c.pages--
}
