package catalog

import "sync"

// CommitCache keeps commits that were read or made lately, because most questions
// are about the newest part of a history. Safe for concurrent use; the zero cache is
// empty.
type CommitCache struct {
	mu         sync.Mutex
	young, old map[CommitID]Commit
}

const (
	commitsCached   = 2048 // twice that, some 2 MiB
	maxCachedCommit = 4 << 10
)

// Get returns a commit if the cache has it.
func (c *CommitCache) Get(id CommitID) (Commit, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.young[id]; ok {
		return v, true
	}
	v, ok := c.old[id]
	if ok {
		c.add(v)
	}
	return v, ok
}

// Learn decodes the record of a commit and keeps it.
func (c *CommitCache) Learn(id CommitID, record []byte) (*Commit, error) {
	v, err := DecodeCommit(id, record)
	if err == nil && len(record) <= maxCachedCommit {
		c.put(v)
	}
	return v, err
}

func (c *CommitCache) put(v *Commit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(*v)
}

// add drops the older half of the cache when the younger one is full. mu is held.
func (c *CommitCache) add(v Commit) {
	if c.young == nil || len(c.young) >= commitsCached {
		c.young, c.old = make(map[CommitID]Commit, commitsCached/8), c.young
	}
	c.young[v.ID] = v
}

// Forget drops everything.
func (c *CommitCache) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.young, c.old = nil, nil
}
