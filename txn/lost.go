package txn

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// When a write or sync of a pack fails, payloads behind its durable end are
// gone, whoever wrote them. The store of packs goes on only when everybody who
// may hold such an address has been told. Failures are therefore counted: what
// a session stored under another count than the present one is not trusted any
// more, and its next write, savepoint or commit is ErrLost. Other sessions, and
// those that begin later, are not concerned, so nobody has to open again.
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
	db.ends.Lock()
	defer db.ends.Unlock()
	db.resumePacks()
}

// fresh are payloads of a session that no savepoint has made durable.
type fresh struct {
	bytes    int64
	any      bool
	failures uint64 // count when the first of them was stored
}

// note takes a payload that was stored under a count of failures.
func (f *fresh) note(n uint64, failures uint64) error {
	if f.any && f.failures != failures {
		return errLost(failures)
	}
	f.bytes += int64(n)
	f.any, f.failures = true, failures
	return nil
}

// check reports whether all payloads are still there.
func (f *fresh) check(failures uint64) error {
	if f.any && f.failures != failures {
		return errLost(failures)
	}
	return nil
}

func errLost(failures uint64) error {
	return fmt.Errorf("%w (failure %d since the database was opened)", ErrLost, failures)
}

// storeChunk stores the bytes of a key that are too many for a page.
func (s *Session) storeChunk(ctx context.Context, key string, value []byte, sum digest.Sum) (v tree.Value, failures uint64, err error) {
	owner, err := s.owner(ctx, key)
	if err != nil {
		return v, 0, err
	}
	failures = s.db.packFailures.Load()
	v, err = s.db.store(ctx, owner, value, sum)
	return v, failures, err
}

// storeDoc stores a merged document. It runs inside a change, which holds mu.
func (s *Session) storeDoc(ctx context.Context, key string, doc []byte) (tree.Value, error) {
	if v, ok := inlineValue(key, doc); ok {
		return v, nil
	}
	failures := s.db.packFailures.Load()
	v, err := s.db.store(ctx, pack.Owner{Key: []byte(key)}, doc, digest.Of(doc))
	return v, errors.Join(err, s.fresh.note(uint64(len(doc)), failures))
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
	id, rel, ok, err := s.space.chunkOwner(ctx, root, key)
	if !ok {
		return pack.Owner{Key: []byte(key)}, err
	}
	return pack.Owner{Array: id, Key: []byte(rel)}, err
}

// chunkOwner finds the array that a key is a chunk of, and the key relative to
// it. ok is false for a document.
func (s *space) chunkOwner(ctx context.Context, root tree.Root, key string) (id [16]byte, rel string, ok bool, err error) {
	var buf [maxCoordsLen]byte
	for rest := key; ; {
		info, err := s.dir(ctx, root)
		if err != nil {
			return id, "", false, err
		}
		for i := range info.forms {
			if _, spells := info.forms[i].parse(buf[:0], rest); spells && info.hasID {
				id, rel, ok = info.id, rest, true
			}
		}
		slash := strings.IndexByte(rest, '/')
		if slash < 0 {
			return id, rel, ok, nil
		}
		child, exists, err := s.sub(ctx, root, info, rest[:slash+1])
		if err != nil || !exists {
			return id, rel, ok, err
		}
		root, rest = child, rest[slash+1:]
	}
}
