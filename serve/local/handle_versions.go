package local

import (
	"context"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// db is the database that a request names, if the client may see it.
func (c *conn) db(name string) (*engine.DB, error) {
	name, err := c.database(name)
	if err != nil {
		return nil, err
	}
	return c.s.t.Database(c.ctx, name)
}

func (c *conn) resolve(ctx context.Context, in *wire.Rev) (*wire.Commit, error) {
	db, err := c.db(in.Database)
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

func (c *conn) refs(ctx context.Context, in *wire.Database) (*wire.Refs, error) {
	db, err := c.db(in.Database)
	if err != nil {
		return nil, err
	}
	branches, tags, err := db.Refs(ctx)
	if err != nil {
		return nil, err
	}
	return &wire.Refs{Branches: refsOut(branches), Tags: refsOut(tags)}, nil
}
