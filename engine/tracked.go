package engine

import (
	"context"

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

func (t tracked) DeletePrefix(ctx context.Context, prefix string) error {
	if err := t.copies.Above(ctx, names.Clean(prefix)); err != nil {
		return err
	}
	t.copies.Gone(names.Clean(prefix))
	return t.Session.DeletePrefix(ctx, prefix)
}
