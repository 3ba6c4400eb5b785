package txn

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// ErrExpired means that a version was removed by [DB.Expire]. It is ErrNoRef too.
var ErrExpired = catalog.ErrExpired

// ErrShallow means that a shallow copy has no content of a version; a pull with
// [TransferOptions] Deepen or Unshallow fetches it. It is ErrExpired too.
var ErrShallow error = catalog.ErrShallow

// version reads a commit whose content is wanted: one that has expired is an
// ErrExpired.
func (db *DB) version(ctx context.Context, id CommitID) (*Commit, error) {
	c, err := db.Lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	gone, at, err := db.home.gone(ctx, id)
	switch {
	case err != nil || !gone:
	case at.Equal(catalog.NotCopied):
		err = fmt.Errorf("commit %s: %w", id.Short(), ErrShallow)
	default:
		err = fmt.Errorf("commit %s: %w on %s", id.Short(), ErrExpired, at.Format(time.DateOnly))
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// currentVersions remembers versions that were looked up and had not expired, so that
// opening one again does not read the index. The zero value is ready.
type currentVersions struct {
	mu  sync.Mutex
	age uint64 // counts calls of clear
	ids map[CommitID]struct{}
}

// maxCurrent bounds the versions that are remembered.
const maxCurrent = 4096

// has reports whether a version is remembered, and the age for add.
func (c *currentVersions) has(id CommitID) (ok bool, age uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok = c.ids[id]
	return ok, c.age
}

// add remembers a version that was looked up at an age, unless versions have expired
// since.
func (c *currentVersions) add(id CommitID, age uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.age != age {
		return
	}
	if c.ids == nil || len(c.ids) >= maxCurrent {
		c.ids = map[CommitID]struct{}{}
	}
	c.ids[id] = struct{}{}
}

// clear forgets all versions: some have expired.
func (c *currentVersions) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.age++
	c.ids = nil
}

// Expired reports whether a version was let go by [DB.Expire]: its record is
// there, its content is not.
func (db *DB) Expired(ctx context.Context, id CommitID) (bool, error) {
	if err := db.check(); err != nil {
		return false, err
	}
	gone, _, err := db.home.expired(ctx, id)
	return gone, err
}
