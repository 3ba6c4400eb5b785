package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/engine/internal/virtual"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

// tracked is a session as arrays and groups write to it.
type tracked struct {
	*txn.Session
	copies *policy.Copies
	files  *virtual.Resolver
}

var (
	_ kv.Store         = tracked{}
	_ kv.PrefixDeleter = tracked{}
)

func (t tracked) Set(ctx context.Context, key string, value []byte) error {
	if err := t.copies.Key(ctx, key); err != nil {
		return err
	}
	return t.Session.Set(ctx, key, value)
}

func (t tracked) Delete(ctx context.Context, key string) error {
	if err := t.copies.Key(ctx, key); err != nil {
		return err
	}
	return t.Session.Delete(ctx, key)
}

// shared is tracked for a session that other processes write to.
type shared struct{ tracked }

var _ kv.Replacer = shared{}

// Replace implements [kv.Replacer]. In the process that has the database open, the locks of chunks
// exclude what this does.
func (s shared) Replace(ctx context.Context, key string, value []byte, was kv.ID) error {
	if err := s.copies.Key(ctx, key); err != nil {
		return err
	}
	_, err := s.Session.SetIf(ctx, key, value, Expect{Absent: was == kv.ID{}, ID: was})
	if errors.Is(err, txn.ErrConflict) {
		return fmt.Errorf("%w: %w", kv.ErrChanged, err)
	}
	return err
}

func (t tracked) DeletePrefix(ctx context.Context, prefix string) error {
	if err := t.copies.Above(ctx, names.Clean(prefix)); err != nil {
		return err
	}
	t.copies.Gone(names.Clean(prefix))
	return t.Session.DeletePrefix(ctx, prefix)
}
