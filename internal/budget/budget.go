// Package budget bounds the memory that all databases of a process take together.
//
//	memory of the process ─ a quarter ─▶ budget ─┬─ 8/16 Chunks    one cache
//	(machine, cgroup, GOMEMLIMIT)                ├─ 2/16 Pages     one cache
//	                                             ├─ 3/16 Index     memtables of each database, one cache of blocks
//	                                             ├─ 1/16 Records   caches of directories and commits of each database
//	                                             ├─ 1/16 Sessions  buffers of each session
//	                                             └─ 1/16 Requests  of clients that are under way
//
// Each open database joins, and may set a limit; the least limit counts. Connections to other
// processes join with the number of processes that share a database; the largest number divides
// the budget.
package budget

import (
	"math"
	"sync"
	"sync/atomic"
)

// Part is a part of the budget.
type Part int

// The parts of the budget.
const (
	Chunks   Part = iota // decoded chunks
	Pages                // parsed pages
	Index                // memtables and blocks of tables
	Records              // parsed directories and commits; Use does not count them
	Sessions             // pages and edits of sessions
	Requests             // requests and replies of clients
	parts
)

var sixteenths = [parts]int64{8, 2, 3, 1, 1, 1}

var (
	total   atomic.Int64 // of the process, 0 before the first database was opened
	members atomic.Int64 // how many databases are open

	mu      sync.Mutex
	joined  = map[*Member]struct{}{}
	entries = map[*entry]struct{}{}
)

// entry is something that takes memory of a part.
type entry struct {
	part   Part
	used   func() int64
	resize func(bytes int64) // nil if the size is fixed
}

// Total returns the budget of the process in bytes.
func Total() int64 {
	if n := total.Load(); n > 0 {
		return n
	}
	return Default()
}

// Bytes returns the size of a part.
func (p Part) Bytes() int64 { return max(Total()*sixteenths[p]/16, 1) }

// Allowance returns the bytes that each open database may take of a part, or each of n
// owners in a database: an eighth of an equal share, but at least least and at most most bytes. An
// owner keeps its first allowance. The j-th owner gets at most an eighth of a j-th, so that all
// owners together stay within the part even if each takes twice its allowance.
func (p Part) Allowance(n int, least, most int64) int64 {
	return min(max(p.Bytes()/8/max(members.Load(), 1)/int64(max(n, 1)), least), most)
}

// Member is an open database, or a connection to a process that shares one.
type Member struct{ limit, processes int64 }

// Join adds a database, with a limit of the process in bytes if that is not 0.
func Join(bytes int64) *Member { return join(&Member{limit: bytes}) }

// Divide adds a connection, with the number of processes that share the budget.
func Divide(processes int) *Member { return join(&Member{processes: int64(processes)}) }

func join(m *Member) *Member {
	update(func() { joined[m] = struct{}{} })
	return m
}

// Share changes the number of processes that share the budget.
func (m *Member) Share(processes int) { update(func() { m.processes = int64(max(processes, 1)) }) }

// Leave removes the member. A second call does nothing.
func (m *Member) Leave() { update(func() { delete(joined, m) }) }

// update changes members, then the sizes of caches.
func update(change func()) {
	mu.Lock()
	defer mu.Unlock()
	change()
	limit, processes, databases := int64(math.MaxInt64), int64(1), int64(0)
	for m := range joined {
		limit, processes = least(limit, m.limit), max(processes, m.processes)
		if m.processes == 0 {
			databases++
		}
	}
	members.Store(databases)
	if limit == math.MaxInt64 {
		limit = Default()
	}
	if now := max(limit/processes, 1); total.Swap(now) == now {
		return
	}
	for e := range entries {
		if e.resize != nil {
			e.resize(e.part.Bytes())
		}
	}
}

// Count adds the result of used to the use of a part, until stop is called. used must not
// call this package.
func Count(p Part, used func() int64) (stop func()) {
	e := &entry{part: p, used: used}
	mu.Lock()
	defer mu.Unlock()
	entries[e] = struct{}{}
	return func() {
		mu.Lock()
		defer mu.Unlock()
		delete(entries, e)
	}
}

// Use is the memory that the process uses of its budget, in bytes.
type Use struct {
	// Limit is the budget.
	Limit int64 `json:"limit_bytes"`
	// Processes is how many processes share the memory, this one included: the most of any
	// database that is open.
	Processes int64 `json:"processes"`
	// Used is the sum of the parts.
	Used     int64 `json:"used_bytes"`
	Chunks   int64 `json:"chunks_bytes"`
	Pages    int64 `json:"pages_bytes"`
	Index    int64 `json:"index_bytes"`
	Sessions int64 `json:"sessions_bytes"`
	Requests int64 `json:"requests_bytes"`
}

// Used returns the present use.
func Used() Use {
	var n [parts]int64
	mu.Lock()
	for e := range entries {
		n[e.part] += e.used()
	}
	processes := int64(1)
	for m := range joined {
		processes = max(processes, m.processes)
	}
	mu.Unlock()
	u := Use{Limit: Total(), Processes: processes, Chunks: n[Chunks], Pages: n[Pages], Index: n[Index], Sessions: n[Sessions], Requests: n[Requests]}
	for _, b := range n {
		u.Used += b
	}
	return u
}

// Shared is a cache that the databases of the process share. The first user makes the cache,
// the last user closes it.
type Shared[C any] struct {
	Part Part
	New  func(bytes int64) C
	// Used returns the bytes in the cache. Resize changes its size; nil keeps it. Close, if
	// not nil, drops the cache. They are called one at a time, and must not call this package.
	Used   func(C) int64
	Resize func(c C, bytes int64)
	Close  func(C)

	users int
	c     C
	e     *entry
}

// Get returns the cache. The caller calls release once, when it does not use the cache any more.
func (s *Shared[C]) Get() (c C, release func()) {
	mu.Lock()
	defer mu.Unlock()
	if s.users == 0 {
		s.c = s.New(s.Part.Bytes())
		s.e = &entry{part: s.Part, used: func() int64 { return s.Used(s.c) }}
		if s.Resize != nil {
			s.e.resize = func(bytes int64) { s.Resize(s.c, bytes) }
		}
		entries[s.e] = struct{}{}
	}
	s.users++
	return s.c, sync.OnceFunc(s.put)
}

func (s *Shared[C]) put() {
	mu.Lock()
	defer mu.Unlock()
	if s.users--; s.users > 0 {
		return
	}
	delete(entries, s.e)
	if s.Close != nil {
		s.Close(s.c)
	}
	s.c = *new(C)
}
