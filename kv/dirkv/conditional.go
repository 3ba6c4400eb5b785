package dirkv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/internal/temp"
)

var (
	_ kv.Conditional = (*Store)(nil)
	_ kv.ValueWriter = (*Store)(nil)
)

// GetTagged implements [kv.Conditional]. The tag is a hash of the bytes.
func (s *Store) GetTagged(ctx context.Context, key string, known kv.Tag, limit int64) (kv.Tagged, error) {
	v, err := s.Locate(ctx, key)
	if err != nil {
		return kv.Tagged{}, err
	}
	if v.Size() > limit {
		return kv.Tagged{}, fmt.Errorf("dirkv: get %s: %w: %d bytes, at most %d are allowed", key, kv.ErrTooLarge, v.Size(), limit)
	}
	b, err := s.Get(ctx, key, kv.All())
	if err != nil {
		return kv.Tagged{}, err
	}
	return kv.NewTagged(b, known, limit)
}

// lockName is the file in the base directory whose lock orders conditional writes. No key has
// this name, and no listing shows it.
const lockName = temp.Prefix + "lock"

// SetTagged implements [kv.Conditional]. It compares and replaces under a lock of a
// file in the base directory, which the processes of this machine share; those of other
// machines do so where their network file system has common locks. [Store.Set]
// does not take the lock.
func (s *Store) SetTagged(ctx context.Context, key string, value []byte, want kv.Tag) (kv.Tag, error) {
	if _, err := s.beginWrite(ctx, key); err != nil {
		return "", err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return "", s.fail("lock", lockName, err)
	}
	defer unlock()
	now, err := s.tag(ctx, key)
	if err != nil {
		return "", err
	}
	if now != want {
		return "", fmt.Errorf("dirkv: set %s: %w", key, kv.ErrChanged)
	}
	if err := s.Set(ctx, key, value); err != nil {
		if then, unread := s.tag(context.WithoutCancel(ctx), key); unread != nil || then != now {
			err = fmt.Errorf("%w: %w", kv.ErrUnknown, err)
		}
		return "", err
	}
	return kv.TagOf(value), nil
}

// tag returns the tag of a key now.
func (s *Store) tag(ctx context.Context, key string) (kv.Tag, error) {
	b, err := s.Get(ctx, key, kv.All())
	if errors.Is(err, kv.ErrNotFound) {
		return kv.NoValue, nil
	}
	return kv.TagOf(b), err
}

// Lock takes the lock of conditional writes, in the base directory, until unlock.
func (s *Store) Lock(ctx context.Context) (unlock func(), err error) {
	unlock, err = s.lock(ctx)
	return unlock, s.fail("lock", lockName, err)
}

// lock takes the lock of conditional writes. A crash releases it.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		unlock, err := s.fsys.tryLock(lockName)
		if err == nil || !errors.Is(err, errLocked) {
			return unlock, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// errLocked means that another holds the lock.
var errLocked = errors.New("it is locked")

func (r rootFS) tryLock(rel string) (unlock func(), err error) {
	f, err := openLocked(r.root, r.dir, rel)
	if err != nil {
		return nil, err
	}
	// A lock counts for those who find the same file under the name.
	mine, err := f.Stat()
	now, err2 := r.root.Stat(rel)
	if err = errors.Join(err, err2); err == nil && !os.SameFile(mine, now) {
		err = errLocked
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}
