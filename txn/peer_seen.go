package txn

import (
	"hash/maphash"
	"maps"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
)

// seen are the values that a session of a peer has read last, by key; the zero identity is no
// value. Several processes may write to a session. A key that was read is written only if its
// value is still the one that was read, or that this process has put there since: otherwise
// the error is a *[ChangedError]. A key that was never read is written without a condition.
type seen struct {
	// Reads and writes of a key exclude each other, so that the last value read is known.
	keys [64]sync.RWMutex

	mu  sync.Mutex
	ids map[string]kv.ID
}

// maxSeen bounds the keys. Beyond it, writes of keys that were read first have no condition.
const maxSeen = 1 << 20

var seenSeed = maphash.MakeSeed()

func (n *seen) of(key string) *sync.RWMutex {
	return &n.keys[maphash.String(seenSeed, key)%uint64(len(n.keys))]
}

// lock excludes reads and writes of a key.
func (n *seen) lock(key string) (unlock func()) {
	m := n.of(key)
	m.Lock()
	return m.Unlock
}

// rlock excludes writes of a key.
func (n *seen) rlock(key string) (unlock func()) {
	m := n.of(key)
	m.RLock()
	return m.RUnlock
}

// lockAll excludes reads and writes of all keys.
func (n *seen) lockAll() (unlock func()) {
	for i := range n.keys {
		n.keys[i].Lock()
	}
	return func() {
		for i := range n.keys {
			n.keys[i].Unlock()
		}
	}
}

// expect is the condition for a write of a key.
func (n *seen) expect(key string) *Expect {
	n.mu.Lock()
	defer n.mu.Unlock()
	id, ok := n.ids[key]
	return &Expect{Absent: ok && id == kv.ID{}, ID: id}
}

// read notes the value that a key was seen to have.
func (n *seen) read(key string, id kv.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.ids[key]; !ok && len(n.ids) >= maxSeen {
		for old := range n.ids {
			delete(n.ids, old)
			break
		}
	}
	n.ids[key] = id
}

// wrote notes the value that this process has given a key.
func (n *seen) wrote(key string, id kv.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.ids[key]; ok {
		n.ids[key] = id
	}
}

// change notes values that this process has given many keys.
func (n *seen) change(fn func(ids map[string]kv.ID)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if fn != nil {
		fn(n.ids)
	}
}

// all returns a copy.
func (n *seen) all() map[string]kv.ID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.ids)
}
