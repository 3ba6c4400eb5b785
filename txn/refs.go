package txn

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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
	// protected are refs that do not move freely; the map is replaced, not changed.
	protected map[string]Protection
	moves     atomic.Uint64 // counts those that readers see
	onMove    callbacks
}

func (t *refTable) load(idx *index.Index) (err error) {
	if t.protected, err = catalog.Protections(idx); err != nil {
		return err
	}
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

// publish has readers see moves. Who counts moves is told first, while readers wait: nobody sees a ref that has moved
// and a counter that has not.
func (t *refTable) publish(moves []RefMove) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.moves.Add(1)
	t.onMove.call()
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
	defer db.care.Checkpoints.MakeIfDue()
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

// refRequest is a move of a branch or tag.
type refRequest struct {
	Do   string // create, delete, reset or undo
	Tag  bool   // else a branch
	Name string
	To   CommitID
}

func (db *DB) ref(ctx context.Context, r refRequest) (RefMove, error) {
	return asked(ctx, db, "ref", r, db.doRef)
}

func (db *DB) doRef(ctx context.Context, r refRequest) (m RefMove, err error) {
	kind, ref := "branch", catalog.HeadRef(r.Name)
	if r.Tag {
		kind, ref = "tag", catalog.TagRef(r.Name)
	}
	what, op := fmt.Sprintf("%s %q", kind, r.Name), r.Do
	switch r.Do {
	case "create":
		op, err = kind, checkRefName(r.Name)
	case "delete", "undo":
	case "reset":
		if r.Tag {
			err = fmt.Errorf("%w: a tag never moves", ErrRequest)
		}
	default:
		err = fmt.Errorf("%w: %q is nothing to do with a branch or tag", ErrRequest, r.Do)
	}
	if err == nil {
		err = db.changeable()
	}
	if err != nil {
		return m, err
	}
	return db.moveRef(ref, op, func(old CommitID) (CommitID, error) {
		switch {
		case r.Do == "undo":
			return db.beforeMove(ctx, ref, what, old)
		case r.Do == "create" && !old.IsZero():
			return old, fmt.Errorf("%s: %w", what, ErrRefExists)
		case r.Do != "create" && old.IsZero():
			return old, fmt.Errorf("%s: %w", what, ErrNoRef)
		case r.Do == "delete":
			return CommitID{}, nil
		}
		_, err := db.version(ctx, r.To)
		return r.To, err
	})
}

// Refs returns the branches and tags, each by name.
func (db *DB) Refs(ctx context.Context) (branches, tags []Ref, err error) {
	return db.home.refs(ctx)
}

// Head returns the commit that a branch ("" is main) points at, or ErrNoRef.
func (db *DB) Head(ctx context.Context, branch string) (CommitID, error) {
	return db.home.head(ctx, orMain(branch))
}

// CreateBranch makes a branch that points at a commit. Its cost does not
// depend on what the commit holds.
func (db *DB) CreateBranch(ctx context.Context, name string, at CommitID) error {
	_, err := db.ref(ctx, refRequest{Do: "create", Name: name, To: at})
	return err
}

// CreateTag makes a tag, which never moves.
func (db *DB) CreateTag(ctx context.Context, name string, at CommitID) error {
	_, err := db.ref(ctx, refRequest{Do: "create", Tag: true, Name: name, To: at})
	return err
}

// DeleteBranch removes a branch. Its commits stay until they are collected;
// the reflog still names them.
func (db *DB) DeleteBranch(ctx context.Context, name string) error {
	_, err := db.ref(ctx, refRequest{Do: "delete", Name: name})
	return err
}

// DeleteTag removes a tag.
func (db *DB) DeleteTag(ctx context.Context, name string) error {
	_, err := db.ref(ctx, refRequest{Do: "delete", Tag: true, Name: name})
	return err
}

// Reset moves a branch ("" is main) to any commit. Sessions that began on it see a conflict
// when they commit, unless the new head has their base as an ancestor.
func (db *DB) Reset(ctx context.Context, branch string, to CommitID) (RefMove, error) {
	return db.ref(ctx, refRequest{Do: "reset", Name: orMain(branch), To: to})
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
		for m, err := range catalog.MovesOf(db.home.records(ctx), ref, 0, true) {
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
	c, err := db.commits.Load().Get(ctx, id, func() (*Commit, error) { return db.home.readCommit(ctx, id) })
	if err != nil {
		return nil, err
	}
	db.home.reached(ctx, id)
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
