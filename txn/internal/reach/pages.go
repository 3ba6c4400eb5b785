package reach

import (
	"sync"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// Pages is a set of page names with a number for each, 28 to 56 bytes a name. Names
// are spread by their first bits: each part holds a range of names. Safe for
// concurrent use.
type Pages struct {
	parts [Parts]struct {
		mu sync.Mutex
		m  map[tree.Name]uint32
	}
}

// Parts is the number of parts that page names are divided into.
const Parts = 64

const namesPerPart = 256 / Parts // first bytes

// PartRange returns the names of a part as a range of keys; to is nil in the last.
func PartRange(part int) (from, to []byte) {
	if part < Parts-1 {
		to = []byte{byte((part + 1) * namesPerPart)}
	}
	return []byte{byte(part * namesPerPart)}, to
}

// NewPages returns an empty set.
func NewPages() *Pages {
	s := &Pages{}
	for i := range s.parts {
		s.parts[i].m = map[tree.Name]uint32{}
	}
	return s
}

// Add adds a name and reports whether it is new; if not, it keeps its number.
func (s *Pages) Add(name tree.Name, n uint32) bool {
	p := &s.parts[name[0]/namesPerPart]
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.m[name]; ok {
		return false
	}
	p.m[name] = n
	return true
}

// read returns the number of a name, and sets it to 0: the page has been read.
func (s *Pages) read(name tree.Name) (n uint32, ok bool) {
	p := &s.parts[name[0]/namesPerPart]
	p.mu.Lock()
	defer p.mu.Unlock()
	if n, ok = p.m[name]; n != 0 {
		p.m[name] = 0
	}
	return n, ok
}
