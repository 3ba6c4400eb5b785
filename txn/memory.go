package txn

import (
	"sync/atomic"

	"github.com/zarrdb/zarrdb/internal/budget"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// pages is the cache of all databases that set no size.
var pages = budget.Shared[*tree.Cache]{Part: budget.Pages, New: tree.NewCache, Used: (*tree.Cache).Bytes, Resize: (*tree.Cache).SetLimit}

// memory is the part of a database in the memory of the process.
type memory struct {
	pages tree.Options // of the tree of the database
	leave []func()

	sessions atomic.Int64 // that are open
}

// joinMemory makes the database count in the budget of the process, until db.memory.end is called.
func (db *DB) joinMemory() {
	m := &db.memory
	m.leave = []func(){budget.Join(db.opts.MemoryBytes).Leave, budget.Count(budget.Sessions, db.sessionUse)}
	m.pages.CacheBytes = db.opts.PageCacheBytes
	if m.pages.CacheBytes == 0 {
		var release func()
		m.pages.Cache, release = pages.Get()
		m.leave = append(m.leave, release)
	}
}

// end gives the memory back. A second call does nothing.
func (m *memory) end() {
	for _, leave := range m.leave {
		leave()
	}
}

// sessionBytes is what one more session may hold in memory of pages, and of edits.
func (db *DB) sessionBytes() int64 {
	if db.opts.SessionBytes > 0 {
		return db.opts.SessionBytes
	}
	return budget.Sessions.Allowance(int(db.memory.sessions.Load())+1, 256<<10, 64<<20)
}

// sessionUse is the memory of the pages of open sessions.
func (db *DB) sessionUse() (n int64) {
	for _, s := range db.openSessions() {
		n += s.pages.Size()
	}
	return n
}
