package cache

import "sync/atomic"

// touches remembers which chunks were wanted lately, and not kept, in a fixed
// table. It forgets a chunk when another takes its slot, or when chunks of as many
// bytes as the window were wanted after it: then the cache would have dropped it
// too. Wrong answers cost time and nothing else. Safe for concurrent use.
type touches struct {
	// slots have half a hash each, and when its chunk was wanted.
	slots  []atomic.Uint64
	window int64
	clock  atomic.Int64 // bytes wanted so far
}

// touchUnit is one tick of the times in slots, in bytes.
const touchUnit = 4 << 10

// newTouches makes a table for a cache of so many bytes, of at most 512 KiB.
func newTouches(budget int64) *touches {
	n := 1 << 10
	for int64(n) < budget>>15 && n < 1<<16 {
		n *= 2
	}
	return &touches{slots: make([]atomic.Uint64, n), window: budget}
}

// again notes a request for a chunk of so many bytes, and reports whether the table has an
// earlier request for the chunk inside the window. Then the chunk leaves the table.
func (t *touches) again(hash uint64, bytes int) bool {
	now := uint32(t.clock.Add(int64(bytes)) / touchUnit)
	hash *= 0x9e3779b97f4a7c15 // mixed: the upper bits choose the slot
	slot := &t.slots[hash>>48&uint64(len(t.slots)-1)]
	tag := hash << 32
	if was := slot.Load(); was != 0 && was&^(1<<32-1) == tag && int64(now-uint32(was))*touchUnit <= t.window {
		slot.Store(0)
		return true
	}
	slot.Store(tag | uint64(now))
	return false
}
