package seen

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"sync"

	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv"
)

// Keys are the values that a session of a peer has read last, by key; the zero identity is no
// value. Several processes may write to a session. A key that was read is written only if its
// value is still the one that was read, or that this process has put there since: otherwise
// the error is a *[ChangedError]. A key that was never read is written without a condition. A key
// that was forgotten, because very many others were read, is not written until it is read again.
type Keys struct {
	// Reads and writes of a key exclude each other, so that the last value read is known.
	keys [64]keyLock

	mu      sync.Mutex
	ids     map[string]kv.ID
	gone    forgotten
	deleted map[string]bool // prefixes that this process has deleted since it forgot keys
}

// New returns what a session has seen at its begin: nothing.
func New() *Keys { return &Keys{ids: map[string]kv.ID{}} }

// Size is how many keys are remembered.
func (n *Keys) Size() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.ids)
}

// Most bounds the keys that are remembered.
var Most = 1 << 20 // tests change it

// forgotten is a set of keys in bounded memory, which may hold others too: a Bloom filter with two
// bits for each key. nil is empty.
type forgotten []uint64

const forgottenBits = 1 << 26

func (f forgotten) bits(key string) [2]uint64 {
	h := maphash.String(seenSeed, key)
	return [2]uint64{h % forgottenBits, h >> 32 % forgottenBits}
}

func (f forgotten) has(key string) bool {
	if f == nil {
		return false
	}
	for _, b := range f.bits(key) {
		if f[b/64]&(1<<(b%64)) == 0 {
			return false
		}
	}
	return true
}

func (f *forgotten) add(key string) {
	if *f == nil {
		*f = make(forgotten, forgottenBits/64)
	}
	for _, b := range f.bits(key) {
		(*f)[b/64] |= 1 << (b % 64)
	}
}

var seenSeed = maphash.MakeSeed()

// keyLock is the lock of some keys: shared by reads, and held alone by a write.
type keyLock struct{ ctxlock.Lock }

func (l *keyLock) Hold(ctx context.Context) (unlock func(), err error) {
	return l.Unlock, l.Lock.Lock(ctx)
}

// Of returns the lock of a key.
func (n *Keys) Of(key string) *keyLock {
	return &n.keys[maphash.String(seenSeed, key)%uint64(len(n.keys))]
}

// HoldAll excludes reads and writes of all keys.
func (n *Keys) HoldAll(ctx context.Context) (unlock func(), err error) {
	locked := 0
	unlock = func() {
		for i := range locked {
			n.keys[i].Unlock()
		}
	}
	for locked < len(n.keys) {
		if err := n.keys[locked].Lock.Lock(ctx); err != nil {
			unlock()
			return nil, err
		}
		locked++
	}
	return unlock, nil
}

// Expect is the condition for a write of a key. The error is a *[ChangedError] if the key may be
// one that was forgotten.
func (n *Keys) Expect(key string) (*Expect, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id, ok := n.ids[key]
	if !ok && n.gone.has(key) {
		for end := 0; end <= len(key) && !ok; end++ {
			ok = n.deleted[key[:end]]
		}
		if !ok {
			return nil, fmt.Errorf("%q was read before %d other keys were, so that its value is forgotten; read it again, or commit and begin another session: %w",
				key, Most, &ChangedError{Key: key})
		}
	}
	return &Expect{Absent: ok && id == kv.ID{}, ID: id}, nil
}

// Deletes notes that this process has deleted all keys with a prefix. n.mu is held.
func (n *Keys) Deletes(prefix string) {
	if n.gone == nil {
		return
	}
	if n.deleted == nil {
		n.deleted = map[string]bool{}
	}
	n.deleted[prefix] = true
}

// Read notes the value that a key was seen to have.
func (n *Keys) Read(key string, id kv.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.ids[key]; !ok && len(n.ids) >= Most {
		for old := range n.ids {
			n.gone.add(old)
			delete(n.ids, old)
			break
		}
	}
	n.ids[key] = id
}

// Wrote notes the value that this process has given a key.
func (n *Keys) Wrote(key string, id kv.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.ids[key]; ok {
		n.ids[key] = id
	}
}

// Change notes values that this process has given many keys.
func (n *Keys) Change(fn func(ids map[string]kv.ID)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if fn != nil {
		fn(n.ids)
	}
}

// All returns a copy.
func (n *Keys) All() map[string]kv.ID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.ids)
}
