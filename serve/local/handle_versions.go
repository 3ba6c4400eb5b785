package local

import (
	"context"
	"iter"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
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

func (c *conn) log(ctx context.Context, in *wire.Log) (*wire.Commits, error) {
	db, err := c.db(in.Database)
	if err != nil {
		return nil, err
	}
	from, err := db.Resolve(ctx, in.Rev)
	if err != nil {
		return nil, err
	}
	all := db.Versions().Log(ctx, from)
	if in.Path != "" {
		all = func(yield func(*txn.Commit, error) bool) {
			for c, err := range db.Versions().History(ctx, from, in.Path, false) {
				if !yield(c.Commit, err) {
					return
				}
			}
		}
	}
	list, more, err := page(in.Skip, in.Limit, all, func(commit *txn.Commit) (wire.Commit, int) {
		size := 300 + len(commit.Message)
		for k, v := range commit.Properties {
			size += len(k) + len(v)
		}
		return *commitOut(commit), size
	})
	return &wire.Commits{Commits: list, More: more}, err
}

func (c *conn) diff(ctx context.Context, in *wire.Diff) (*wire.Changes, error) {
	db, err := c.db(in.Database)
	if err != nil {
		return nil, err
	}
	from, err := db.Resolve(ctx, in.From)
	if err != nil {
		return nil, err
	}
	to, err := db.Resolve(ctx, in.To)
	if err != nil {
		return nil, err
	}
	return changePage(in, db.Versions().Diff(ctx, from, to, in.Prefix))
}

// changePage is the page of a sequence of changes that was asked for.
func changePage(in *wire.Diff, all iter.Seq2[txn.Change, error]) (*wire.Changes, error) {
	list, more, err := page(in.Skip, in.Limit, all, func(change txn.Change) (wire.Change, int) {
		size := 300 + len(change.Key)
		for _, v := range []*txn.KeyValue{change.Old, change.New} {
			if v != nil {
				size += len(v.URL) + len(v.Validator)
			}
		}
		return changeOut(&change), size
	})
	return &wire.Changes{Changes: list, More: more}, err
}

// page is a page of a sequence: up to limit elements behind the skipped ones, or fewer if
// they are long. convert returns an element of the reply and about its size.
func page[T, Out any](skip, limit int, all iter.Seq2[T, error], convert func(T) (Out, int)) (out []Out, more bool, err error) {
	out = []Out{}
	n, size := 0, 0
	for v, err := range all {
		if err != nil {
			return nil, false, err
		}
		if n++; n <= skip {
			continue
		}
		if len(out) >= pageLimit(limit) || size > maxPageSize {
			return out, true, nil
		}
		item, length := convert(v)
		out, size = append(out, item), size+length
	}
	return out, false, nil
}
