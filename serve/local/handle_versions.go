package local

import (
	"context"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// db is the database. [engine.ErrMoved] if it is not in its place.
func (c *conn) db() (*engine.DB, error) { return c.s.t.Database(c.ctx, c.s.name) }

func (c *conn) resolve(ctx context.Context, in *wire.Open) (*wire.Commit, error) {
	db, err := c.db()
	if err != nil {
		return nil, err
	}
	id, err := db.Resolve(ctx, in.Rev)
	if err != nil {
		return nil, err
	}
	commit, err := db.Versions().Lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	return commitOut(commit), nil
}

func (c *conn) refs(ctx context.Context, _ *none) (*wire.Refs, error) {
	db, err := c.db()
	if err != nil {
		return nil, err
	}
	branches, tags, err := db.Refs(ctx)
	if err != nil {
		return nil, err
	}
	return &wire.Refs{Branches: refsOut(branches), Tags: refsOut(tags)}, nil
}
