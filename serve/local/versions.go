package local

import (
	"context"

	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// Resolve returns the commit that a revision names.
func (c *Client) Resolve(ctx context.Context, rev string) (*txn.Commit, error) {
	out, err := query[wire.Commit](ctx, c, wire.OpResolve, wire.Open{Rev: rev})
	if err != nil {
		return nil, err
	}
	return commitIn(&out), nil
}

// Refs returns the branches and tags, by name.
func (c *Client) Refs(ctx context.Context) (branches, tags []txn.Ref, err error) {
	out, err := query[wire.Refs](ctx, c, wire.OpRefs, none{})
	return refsIn(out.Branches), refsIn(out.Tags), err
}
