package txn

import (
	"context"
	"fmt"
	"sync"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// When a write or sync of a pack fails, payloads behind its durable end are
// gone, in every session. The store of packs goes on only when every session that
// may hold such an address knows. Failures are therefore counted: what
// a session stored under another count than the present one is not trusted any
// more, and its next write, savepoint or commit is ErrLost. Other sessions, and
// those that begin later, are not concerned, and the database stays open.
//
//	count   3           3                4 = one failure
//	        Set ──▶ put ──▶ … failure … ──▶ Commit: ErrLost
//
// The count changes before the store resumes, and a writer reads it before it
// appends: an address from before the failure never comes with the new count.

// resumePacks lets the store of packs write again, into new packs. The caller
// holds ends, so that no commit is between its sync and its batch.
func (db *DB) resumePacks() {
	if db.packs.Failed() != nil {
		db.packFailures.Add(1)
		db.packs.Resume()
	}
}

// afterPackFailure is resumePacks for those that do not hold ends.
func (db *DB) afterPackFailure() {
	db.care.Ends.WaitLock()
	defer db.care.Ends.Unlock()
	db.resumePacks()
}

// fresh are payloads of a session that no savepoint has made durable. Every
// payload is in it before the session, a bulk write or a merge gets its address,
// so that no commit or savepoint can name one that was not counted. Safe for
// concurrent use.
type fresh struct {
	mu sync.Mutex
	freshState
}

type freshState struct {
	bytes    int64
	any      bool
	failures uint64 // count when the first of them was stored
}

// note takes a payload that was stored under a count of failures.
func (f *fresh) note(n uint64, failures uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.lost(failures); err != nil {
		return err
	}
	f.bytes += int64(n)
	f.any, f.failures = true, failures
	return nil
}

// check reports whether all payloads are still there.
func (f *fresh) check(failures uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost(failures)
}

// lost returns the error if a failure came after the first payload. mu is held.
func (f *fresh) lost(failures uint64) error {
	if f.any && f.failures != failures {
		return errLost(failures)
	}
	return nil
}

// size returns the bytes of the payloads, and whether there are any.
func (f *fresh) size() (n int64, any bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes, f.any
}

// take empties f before a savepoint and returns what it held. Payloads that are
// noted while the savepoint is made may come after its sync, so they stay.
func (f *fresh) take() freshState {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.freshState
	f.freshState = freshState{}
	return was
}

// restore puts back what take returned, if the savepoint failed. The older count
// of failures stays.
func (f *fresh) restore(was freshState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !was.any:
	case !f.any:
		f.freshState = was
	default:
		f.bytes += was.bytes
		f.failures = min(f.failures, was.failures)
	}
}

func errLost(failures uint64) error {
	return fmt.Errorf("%w (failure %d since the database was opened)", ErrLost, failures)
}

// store puts bytes into a pack and notes them. Everything that a session stores
// goes through here: writes, bulk writes and merged documents.
func (s own) store(ctx context.Context, owner pack.Owner, value []byte, sum digest.Sum) (tree.Value, error) {
	failures := s.db.packFailures.Load()
	v, err := s.db.store(ctx, owner, value, sum)
	if err != nil {
		return tree.Value{}, err
	}
	return v, s.fresh.note(v.Length, failures)
}

// storeDoc stores a merged document.
func (s *Session) storeDoc(ctx context.Context, key string, doc []byte) (tree.Value, error) {
	if v, ok := inlineValue(key, doc); ok {
		return v, nil
	}
	return s.home.store(ctx, pack.Owner{Key: []byte(key)}, doc, digest.Of(doc))
}

// owner says whose bytes those of a key are: a chunk is that of an array, under
// its key within the array; anything else is a document under its full key. So
// a payload finds its array again wherever that was moved to.
func (s *Session) owner(ctx context.Context, key string) (pack.Owner, error) {
	s.mu.RLock()
	root, stale := s.work, s.newNodes
	s.mu.RUnlock()
	if stale {
		var err error
		if root, err = s.flushed(ctx); err != nil {
			return pack.Owner{}, err
		}
	}
	id, rel, ok, err := s.space.ChunkOwner(ctx, root, key)
	if !ok {
		return pack.Owner{Key: []byte(key)}, err
	}
	return pack.Owner{Array: id, Key: []byte(rel)}, err
}
