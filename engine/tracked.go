package engine

import (
	"context"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/engine/internal/virtual"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// Copies keeps the consolidated metadata of a session up to date; see [NewCopies].
type Copies = policy.Copies

// NewCopies returns what keeps consolidated metadata of a session up to date that is not
// a [Session]: Key is called before a key changes through an array or group, Above
// before a node comes or goes with everything below it, and Refresh before a commit.
// Others may write to the session too, so copies are made again from all nodes.
func NewCopies(s kv.Store) *Copies {
	c := policy.NewCopies(s, &zarr.OpenOptions{})
	c.Untracked()
	return c
}

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
