package txn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/internal/budget"
	"github.com/zarrdb/zarrdb/internal/lru"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// refTable holds what refs point at as far as it is durable: a batch can be
// read from the index before it is synced, so readers ask here instead.
type refTable struct {
	mu sync.RWMutex
	m  map[string]CommitID
}

func (t *refTable) load(idx catalog.Scanner) error {
	t.m = map[string]CommitID{}
	for r, err := range catalog.Refs.All(idx) {
		if err != nil {
			return err
		}
		t.m[r.Name] = r.Commit
	}
	return nil
}

func (t *refTable) get(ref string) (CommitID, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	id, ok := t.m[ref]
	return id, ok
}

func (t *refTable) publish(moves []RefMove) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range moves {
		if m.New.IsZero() {
			delete(t.m, m.Ref)
		} else {
			t.m[m.Ref] = m.New
		}
	}
}

func (t *refTable) list(prefix string) []Ref {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var refs []Ref
	for _, name := range slices.Sorted(maps.Keys(t.m)) {
		if short, ok := strings.CutPrefix(name, prefix); ok {
			refs = append(refs, Ref{Name: short, Commit: t.m[name]})
		}
	}
	return refs
}

// moveRef makes one ref move under the commit lock. decide gets the current
// target (zero if none) and returns the new one.
func (db *DB) moveRef(ref, op string, decide func(old CommitID) (CommitID, error)) (RefMove, error) {
	if err := db.writable(); err != nil {
		return RefMove{}, err
	}
	defer db.checkpointIfDue()
	db.commit.lock()
	defer db.commit.unlock()
	old, _ := db.heads.get(ref)
	id, err := decide(old)
	if err != nil {
		return RefMove{}, err
	}
	c := newChange(db.packFailures.Load())
	c.moves = []RefMove{{Ref: ref, Old: old, New: id, Time: db.opts.Now().UTC(), Author: db.opts.Author, Op: op}}
	// What is deleted or moved back may let versions go.
	c.noPayloads, c.makesRoom = true, !old.IsZero()
	if err := db.publish(context.Background(), c); err != nil {
		return RefMove{}, err
	}
	return c.moves[0], nil
}

// Refs returns the branches and tags, each by name.
func (db *DB) Refs(ctx context.Context) (branches, tags []Ref, err error) {
	if db.peer != nil {
		return db.peer.Refs(ctx)
	}
	return db.heads.list(catalog.HeadPrefix), db.heads.list(catalog.TagPrefix), nil
}

// Head returns the commit that a branch ("" is main) points at, or ErrNoRef.
func (db *DB) Head(ctx context.Context, branch string) (CommitID, error) {
	branch = orMain(branch)
	if db.peer == nil {
		if id, ok := db.heads.get(catalog.HeadRef(branch)); ok {
			return id, nil
		}
		return CommitID{}, fmt.Errorf("branch %q: %w", branch, ErrNoRef)
	}
	branches, _, err := db.peer.Refs(ctx)
	if i := slices.IndexFunc(branches, func(r Ref) bool { return r.Name == branch }); i >= 0 {
		return branches[i].Commit, nil
	}
	return CommitID{}, fmt.Errorf("branch %q: %w", branch, cmp.Or(err, ErrNoRef))
}

// CreateBranch makes a branch that points at a commit. Its cost does not
// depend on what the commit holds.
func (db *DB) CreateBranch(ctx context.Context, name string, at CommitID) error {
	if db.peer != nil {
		_, err := db.peer.moveRef(ctx, refRequest{Do: "create", Name: name, To: at})
		return err
	}
	return db.createRef(ctx, catalog.HeadRef(name), name, "branch", at)
}

// CreateTag makes a tag, which never moves.
func (db *DB) CreateTag(ctx context.Context, name string, at CommitID) error {
	if db.peer != nil {
		_, err := db.peer.moveRef(ctx, refRequest{Do: "create", Tag: true, Name: name, To: at})
		return err
	}
	return db.createRef(ctx, catalog.TagRef(name), name, "tag", at)
}

func (db *DB) createRef(ctx context.Context, ref, name, kind string, at CommitID) error {
	if err := CheckRefName(name); err != nil {
		return err
	}
	_, err := db.moveRef(ref, kind, func(old CommitID) (CommitID, error) {
		if !old.IsZero() {
			return old, fmt.Errorf("%s %q: %w", kind, name, ErrRefExists)
		}
		_, err := db.version(ctx, at)
		return at, err
	})
	return err
}

// DeleteBranch removes a branch. Its commits stay until they are collected;
// the reflog still names them.
func (db *DB) DeleteBranch(ctx context.Context, name string) error {
	return db.deleteRef(ctx, catalog.HeadRef(name), "branch", name)
}

// DeleteTag removes a tag.
func (db *DB) DeleteTag(ctx context.Context, name string) error {
	return db.deleteRef(ctx, catalog.TagRef(name), "tag", name)
}

func (db *DB) deleteRef(ctx context.Context, ref, kind, name string) error {
	if db.peer != nil {
		_, err := db.peer.moveRef(ctx, refRequest{Do: "delete", Tag: kind == "tag", Name: name})
		return err
	}
	_, err := db.moveRef(ref, "delete", func(old CommitID) (CommitID, error) {
		if old.IsZero() {
			return old, fmt.Errorf("%s %q: %w", kind, name, ErrNoRef)
		}
		return CommitID{}, nil
	})
	return err
}

// Reset moves a branch ("" is main) to any commit. Sessions that began on it see a conflict
// when they commit, unless the new head has their base as an ancestor.
func (db *DB) Reset(ctx context.Context, branch string, to CommitID) (RefMove, error) {
	branch = orMain(branch)
	if db.peer != nil {
		return db.peer.moveRef(ctx, refRequest{Do: "reset", Name: branch, To: to})
	}
	return db.moveRef(catalog.HeadRef(branch), "reset", func(old CommitID) (CommitID, error) {
		if old.IsZero() {
			return old, fmt.Errorf("branch %q: %w", branch, ErrNoRef)
		}
		_, err := db.version(ctx, to)
		return to, err
	})
}

// Reflog yields the moves of a branch ("" is main), newest first. Branches that
// were deleted keep theirs.
func (db *DB) Reflog(ctx context.Context, branch string) iter.Seq2[RefMove, error] {
	return db.reflog(ctx, catalog.HeadRef(orMain(branch)))
}

// TagReflog is [DB.Reflog] of a tag: where it was made and that it was deleted.
func (db *DB) TagReflog(ctx context.Context, tag string) iter.Seq2[RefMove, error] {
	return db.reflog(ctx, catalog.TagRef(tag))
}

func (db *DB) reflog(ctx context.Context, ref string) iter.Seq2[RefMove, error] {
	return func(yield func(RefMove, error) bool) {
		if err := errors.Join(db.check(), db.writePending(ctx)); err != nil {
			yield(RefMove{}, err)
			return
		}
		for m, err := range catalog.MovesOf(db.records(ctx), ref, 0, true) {
			if err == nil {
				err = ctx.Err()
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// Lookup reads one commit by its full id, or ErrNoRef. Its slices and maps must
// not be changed.
func (db *DB) Lookup(ctx context.Context, id CommitID) (*Commit, error) {
	if err := db.check(); err != nil {
		return nil, err
	}
	c, err := db.commits.Load().Get(ctx, id, func() (*Commit, error) {
		if db.peer != nil {
			c, _, err := db.peer.ancestors(ctx, id)
			return c, err
		}
		b, err := db.storedCommit(id)
		if err != nil {
			return nil, err
		}
		return catalog.DecodeCommit(id, b)
	})
	if err != nil {
		return nil, err
	}
	if db.peer != nil {
		db.peer.reached(ctx, id)
	}
	return new(*c), nil
}

// storedCommit reads the record of a commit.
func (db *DB) storedCommit(id CommitID) ([]byte, error) {
	if b := db.pending.commit(id); b != nil {
		return b, nil
	}
	b, err := catalog.Commits.Record(db.idx, id)
	if errors.Is(err, index.ErrNotFound) {
		err = fmt.Errorf("commit %v: %w", id, ErrNoRef)
	}
	return b, err
}

// forgetCommits empties the cache of commits. Most questions are about the newest part
// of a history.
func (db *DB) forgetCommits() {
	db.commits.Store(lru.New[CommitID](budget.Records.Allowance(1, 256<<10, 4<<20), func(c *Commit) int64 {
		n := 400 + len(c.Parents)*len(CommitID{}) + len(c.Message)
		for name, value := range c.Properties {
			n += 100 + len(name) + len(value)
		}
		return int64(n)
	}))
}
