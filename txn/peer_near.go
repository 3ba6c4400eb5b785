package txn

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// near answers reads of a session of a peer without requests, while this process alone writes
// to the session:
//
//	last answer of Tx.Roots ── pages ──▶ keys as they were then
//	edits ─────────────────────────────▶ keys that this process has written since
//	Tx.Watch ── counter in memory ─────▶ how many writes everybody has made since
//
// near is valid while the counter shows the writes of this process and no others.
type near struct {
	mu       sync.RWMutex
	on       bool
	roots    Roots
	watch    Watch
	want     uint64 // what the counter shows if only this process has written
	flying   int    // writes of this process without an answer
	began    uint64 // counts them
	edits    map[string]nearEdit
	size     int          // of edits, in bytes
	dirs     dirSet       // above the keys of edits
	asked    int          // requests for values while near was not valid
	patience int          // so many of them are made before the roots are asked for
	hits     atomic.Int64 // reads without a request
}

// nearEdit is a write of this process.
type nearEdit struct {
	value   tree.Value
	deleted bool
	unknown bool // only the other process knows where the bytes are
}

// Watch counts the writes to a session, or the moves of refs, whoever writes; see [Tx.Watch] and [Source]. Safe for
// concurrent use.
type Watch struct {
	// Writes is the number of writes or moves. It is readable as long as Live is kept.
	Writes *atomic.Uint64
	// Live reports whether writes are still counted. It sends no request.
	Live func() bool
}

// Patience in requests: one process that writes to a session soon reads it without requests,
// and two processes that write in turn do not ask for the roots after each write.
const (
	minPatience = 2
	maxPatience = 1024
	maxNear     = 4 << 20 // bytes of edits
)

// look is what near says of a key, as of one moment.
type look struct {
	ok    bool // near is valid
	roots Roots
	edit  nearEdit
	wrote bool // this process has written the key since roots
}

// valid reports whether only this process has written. The caller holds mu.
func (n *near) valid() bool {
	return n.on && n.watch.Live() && n.watch.Writes.Load() == n.want
}

// stale reports whether near cannot become valid again: with writes of this process under
// way, the counter may be ahead for a moment. The caller holds mu.
func (n *near) stale() bool { return n.on && (!n.watch.Live() || n.flying == 0) }

// look looks a key up.
func (n *near) look(key string) (l look) {
	n.mu.RLock()
	if l.ok = n.valid(); l.ok {
		n.hits.Add(1)
		l.roots = n.roots
		l.edit, l.wrote = n.edits[key]
	}
	stale := !l.ok && n.stale()
	n.mu.RUnlock()
	if stale {
		n.mu.Lock()
		if !n.valid() && n.stale() {
			n.drop()
			if n.patience = min(2*n.patience, maxPatience); n.hits.Swap(0) > int64(n.patience) {
				n.patience = minPatience
			}
		}
		n.mu.Unlock()
	}
	return l
}

// below returns roots that have every key with a prefix as it is now.
func (n *near) below(prefix string) (r Roots, ok bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if !n.valid() {
		return r, false
	}
	return n.roots, !n.dirs.mayHold(prefix)
}

// drop ends the validity. The caller holds mu.
func (n *near) drop() {
	n.on, n.asked, n.size = false, 0, 0
	clear(n.edits)
	clear(n.dirs)
}

// forget ends the validity: this process changes more than single keys.
func (n *near) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop()
}

// tire lets many values be asked for: writes cannot be counted.
func (n *near) tire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked, n.patience = 0, maxPatience
}

// still reports whether no write of this process is under way. began tells later whether one
// has begun since.
func (n *near) still() (began uint64, ok bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.began, n.flying == 0
}

// set takes over roots, unless a write of this process has begun since still. writes is what
// the counter showed before the roots were asked for.
func (n *near) set(r Roots, w Watch, writes, began uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.began != began {
		n.asked = 0
		return
	}
	n.drop()
	if n.edits == nil {
		n.edits, n.dirs = map[string]nearEdit{}, dirSet{}
	}
	n.on, n.roots, n.watch, n.want = true, r, w, writes
}

// due reports whether to ask for the roots, before a value is asked for.
func (n *near) due() bool {
	n.mu.RLock()
	on := n.on
	n.mu.RUnlock()
	if on {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.patience = max(n.patience, minPatience)
	n.asked++
	return n.asked > n.patience
}

// begin notes that a write leaves.
func (n *near) begin() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.flying++
	n.began++
}

// end notes the answer to a write. After an error, whether the key was written is not known.
func (n *near) end(key string, e nearEdit, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.flying--
	switch {
	case !n.on:
		return
	case err != nil || n.size >= maxNear:
		n.drop()
		return
	}
	n.want++
	n.edits[key] = e
	n.size += len(key) + len(e.value.Inline) + 256
	n.dirs.add(key)
}

// endMany notes the answer to a change of many keys: near is not valid any more.
func (n *near) endMany() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.flying--
	n.drop()
}

// learn notes the value of a key that l called unknown, unless somebody has written since. The
// caller excludes writes of the key by this process.
func (n *near) learn(key string, l look, v tree.Value) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.ok && l.wrote && n.valid() && n.roots == l.roots && n.edits[key].unknown {
		n.edits[key] = nearEdit{value: v}
	}
}

// lookupNear looks a key up without a request for the value. ok is false if that is not possible.
func (s *there) lookupNear(ctx context.Context, key string, l look) (v tree.Value, ok bool, err error) {
	switch {
	case !l.ok || l.edit.unknown:
		return v, false, nil
	case l.edit.deleted:
		return v, true, kv.ErrNotFound
	case l.wrote:
		return l.edit.value, true, nil
	}
	v, has, err := s.space.Get(ctx, l.roots.Work, key)
	if err != nil { // the other process may have dropped pages of the root
		s.near.forget()
		return v, false, ctx.Err()
	}
	if !has {
		err = kv.ErrNotFound
	}
	return v, true, err
}

func (s *there) below(prefix string) (root tree.Root, ok bool) {
	r, ok := s.near.below(prefix)
	return r.Work, ok
}

// dropped is for the other process, which may have dropped pages of the root.
func (s *there) dropped(ctx context.Context, _ error) error {
	s.near.forget()
	return ctx.Err()
}

func (s *there) virtualBeside(ctx context.Context, key string) (bool, error) {
	if known := s.known.Load(); known != nil {
		any, err := s.space.VirtualBeside(ctx, *known, key)
		if err == nil {
			return any, nil // else the other process may have dropped pages of that root
		}
	}
	r, err := s.roots(ctx)
	if err != nil {
		return false, err
	}
	return s.space.VirtualBeside(ctx, r.Work, key)
}

// roots holds no lock of the session while it waits: other reads end with their own contexts if
// the other process does not answer.
func (s *there) roots(ctx context.Context) (Roots, error) {
	if s.Ended() {
		return Roots{}, s.errClosed()
	}
	if r, ok := s.near.below(""); ok {
		return r, nil
	}
	began, still := s.near.still()
	w, failed := s.tx.Watch(ctx)
	var writes uint64
	if failed == nil {
		writes = w.Writes.Load()
	}
	r, err := s.tx.Roots(ctx)
	switch {
	case err != nil:
		return r, err
	case failed != nil:
		s.near.tire()
	case still:
		s.near.set(r, w, writes, began)
	}
	s.near.mu.RLock() // a write that begins later forgets the root
	defer s.near.mu.RUnlock()
	if still && s.near.began == began {
		s.known.Store(&r.Work)
	}
	return r, nil
}
