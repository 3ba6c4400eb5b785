package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// Clone makes a new database in dir with the branches and tags of this one, or
// one branch, and their history; commits keep their ids. It is verified when
// Clone returns. The database goes on being used meanwhile. A clone that was
// interrupted is no database; the same call takes it up again.
//
// Errors: ErrExists if dir holds a database or other files, ErrNoRef if there is
// no such branch, kv.ErrCorrupt if the source is damaged.
func (db *DB) Clone(ctx context.Context, dir string, o TransferOptions) (_ *TransferReport, err error) {
	if o.Branch != "" {
		if _, err := db.Head(ctx, o.Branch); err != nil {
			return nil, fmt.Errorf("clone: %w", err)
		}
	}
	defer wrap(&err, "clone to %s", dir)
	return db.copyTo(ctx, dir, db.copyOptions(), o, func(ctx context.Context, t *transfer) error {
		if o.Branch != "" {
			refs, err := t.branchOnly(ctx, catalog.HeadRef(o.Branch))
			if err != nil {
				return err
			}
			t.heads = refs
		}
		return t.commits(ctx, slices.Collect(maps.Values(t.heads)))
	}, func(ctx context.Context, t *transfer) error {
		return t.move(ctx, opClone, t.heads, func(string, CommitID) (bool, error) { return true, nil })
	})
}

// branchOnly returns the ref of a branch and the tags within the depth of its
// history.
func (t *transfer) branchOnly(ctx context.Context, ref string) (map[string]CommitID, error) {
	id, ok := t.heads[ref]
	if !ok {
		return nil, fmt.Errorf("branch %q: %w", ref[len(catalog.HeadPrefix):], ErrNoRef)
	}
	near := map[CommitID]struct{}{}
	level := []CommitID{id}
	for n := 0; len(level) > 0 && (t.o.Depth <= 0 || n < t.o.Depth); n++ {
		var parents []CommitID
		for _, id := range level {
			if _, ok := near[id]; ok {
				continue
			}
			near[id] = struct{}{}
			c, err := t.from.Lookup(ctx, id)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return nil, err
			}
			parents = append(parents, c.Parents...)
		}
		level = parents
	}
	refs := map[string]CommitID{ref: id}
	for name, at := range t.heads {
		if _, ok := near[at]; ok && strings.HasPrefix(name, catalog.TagPrefix) {
			refs[name] = at
		}
	}
	return refs, nil
}

// copyTo makes a new database by a transfer. The FORMAT file comes last: without it the
// directory is no database.
func (db *DB) copyTo(ctx context.Context, dir string, opts Options, o TransferOptions, plan, publish func(context.Context, *transfer) error) (r *TransferReport, err error) {
	if err := db.check(); err != nil {
		return nil, err
	}
	fs := opts.FS
	if err := prepareDir(fs, dir); err != nil {
		return nil, err
	}
	to, err := open(dir, fs.PathJoin(dir, indexDir), opts, true)
	if err != nil {
		return nil, err
	}
	if err = db.begunBy(ctx, to); err == nil {
		r, err = transferred(ctx, db, to, o, plan, publish)
	}
	if err == nil {
		err = to.sound(ctx)
	}
	if err == nil && db.opts.CheckpointCommits > 0 {
		_ = to.Checkpoint(ctx) // the copy is whole without one; see noteCheckpoint
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return r, err
	}
	return r, writeFormat(fs, dir)
}

// begunBy refuses to go on with a database that is there, unless there is nothing
// in it or it is a copy of this one that was interrupted: the versions that its refs
// name are known here then.
func (db *DB) begunBy(ctx context.Context, to *DB) error {
	if blank, err := to.blank(); blank || err != nil {
		return err
	}
	for _, r := range to.heads.list("") {
		if _, err := db.Lookup(ctx, r.Commit); errors.Is(err, ErrNoRef) {
			return fmt.Errorf("create %s: %w", to.dir, errIsLeft(to.dir, "there is another database without "+FormatFile))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// sound is a check of the index; payloads were compared as they were copied.
func (db *DB) sound(ctx context.Context) error {
	r, err := db.Check(ctx, CheckOptions{})
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(r.Problems, func(p Problem) bool { return !p.Hole }); i >= 0 {
		return r.Problems[i]
	}
	return nil
}

// copyOptions are those of a copy that is open only to be written.
func (db *DB) copyOptions() Options {
	opts := db.opts
	opts.ReadOnly, opts.Durability, opts.CheckpointCommits = false, DurabilitySync, -1
	return opts
}
