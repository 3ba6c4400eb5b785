package txn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
)

// Refs are stored under these prefixes.
const (
	headPrefix = "heads/"
	tagPrefix  = "tags/"
)

func headRef(branch string) string { return headPrefix + branch }
func tagRef(tag string) string     { return tagPrefix + tag }

// Ref is a named commit: a branch, which moves, or a tag, which does not.
type Ref struct {
	Name   string
	Commit CommitID
}

// refTable holds what refs point at as far as it is durable: a batch can be
// read from the index before it is synced, so readers ask here instead.
type refTable struct {
	mu   sync.RWMutex
	m    map[string]CommitID
	next map[string]uint64 // numbers of the next reflog entries, of refs that were moved since the database was opened
}

func (t *refTable) load(idx *index.Index) error {
	t.m, t.next = map[string]CommitID{}, map[string]uint64{}
	for rec, err := range idx.Scan(index.SpaceRef, nil, nil, false) {
		if err != nil {
			return err
		}
		if len(rec.Value) != digest.Size {
			return corrupt("ref %q of %d bytes", rec.Key, len(rec.Value))
		}
		t.m[string(rec.Key)] = CommitID(rec.Value)
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

// nextSeq returns the number that a ref's next reflog entry has, if it is known.
func (t *refTable) nextSeq(ref string) (uint64, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	seq, ok := t.next[ref]
	return seq, ok
}

// logged notes which reflog entries are durable. A ref that is gone is not kept,
// so that the table does not grow by refs that come and go.
func (t *refTable) logged(next map[string]uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ref, seq := range next {
		if _, ok := t.m[ref]; ok {
			t.next[ref] = seq
		} else {
			delete(t.next, ref)
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

// CheckRefName reports whether s can name a branch or tag. Names are UTF-8
// without spaces, control characters and the characters that revisions use
// (~ ^ : @ and \); their parts between slashes are not empty, "." or "..".
func CheckRefName(s string) error {
	bad := func(why string) error { return fmt.Errorf("%w %q: %s", ErrRefName, s, why) }
	if s == "" || len(s) > 255 {
		return bad("its length must be 1 to 255 bytes")
	}
	if strings.HasPrefix(s, "-") {
		return bad("it begins with a dash")
	}
	for _, r := range s {
		if r <= ' ' || r == 0x7f || r == 0xfffd || strings.ContainsRune(`~^:@\?*[`, r) {
			return bad(fmt.Sprintf("it holds %q", r))
		}
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part == "." || part == ".." {
			return bad("a part between slashes is empty or dots")
		}
	}
	return nil
}

// commitRefs adds ref moves and their reflog entries to batch, commits it
// synced and then publishes them, but for the earlier ones, which were published
// when they were acknowledged. The caller holds ends, or locks commits if nothing
// waits (or is alone).
func (db *DB) commitRefs(batch *index.Batch, earlier, moves []RefMove) error {
	next := map[string]uint64{}
	for i := range len(earlier) + len(moves) {
		var m *RefMove
		if i < len(earlier) {
			m = &earlier[i]
		} else {
			m = &moves[i-len(earlier)]
		}
		seq, ok := next[m.Ref]
		if !ok {
			seq, ok = db.heads.nextSeq(m.Ref)
		}
		if !ok {
			var err error
			if seq, err = db.nextReflogSeq(m.Ref); err != nil {
				return err
			}
		}
		m.Seq, next[m.Ref] = seq, seq+1
		batch.Set(index.SpaceReflog, reflogKey(m.Ref, seq), m.encode())
		if m.New.IsZero() {
			batch.Delete(index.SpaceRef, []byte(m.Ref))
		} else {
			batch.Set(index.SpaceRef, []byte(m.Ref), m.New[:])
		}
	}
	n := len(earlier) + len(moves)
	db.checkpoints.count(batch, n)
	size := batch.Len()
	if err := batch.Commit(true); err != nil {
		return err
	}
	db.checkpoints.counted(n, size)
	db.heads.publish(moves)
	db.heads.logged(next)
	return nil
}

// nextReflogSeq returns the number after that of the newest entry in the reflog
// of ref, 0 if it has none.
func (db *DB) nextReflogSeq(ref string) (uint64, error) {
	from, to := reflogKey(ref, 0), append([]byte(ref), 1)
	for rec, err := range db.idx.Scan(index.SpaceReflog, from, to, true) {
		if err != nil {
			return 0, err
		}
		return binary.BigEndian.Uint64(rec.Key[len(rec.Key)-8:]) + 1, nil
	}
	return 0, nil
}

// moveRef makes one ref move under the commit lock. decide gets the current
// target (zero if none) and returns the new one.
func (db *DB) moveRef(ref, author, op string, decide func(old CommitID) (CommitID, error)) (RefMove, error) {
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
	if author == "" {
		author = db.opts.Author
	}
	moves := []RefMove{{Ref: ref, Old: old, New: id, Time: db.opts.Now().UTC(), Author: author, Op: op}}
	if db.delayed() {
		err = db.acknowledge(generation{moves: moves}, db.packFailures.Load())
	} else {
		batch := db.idx.NewBatch()
		defer batch.Close()
		if !old.IsZero() { // what is deleted or moved back may let versions go
			batch.MakesRoom()
		}
		err = db.commitRefs(batch, nil, moves)
	}
	if err != nil {
		return RefMove{}, err
	}
	return moves[0], nil
}

// Branches lists the branches by name.
func (db *DB) Branches() []Ref { return db.heads.list(headPrefix) }

// Tags lists the tags by name.
func (db *DB) Tags() []Ref { return db.heads.list(tagPrefix) }

// Head returns the commit that a branch ("" is main) points at, or ErrNoRef.
func (db *DB) Head(branch string) (CommitID, error) {
	branch = orMain(branch)
	if id, ok := db.heads.get(headRef(branch)); ok {
		return id, nil
	}
	return CommitID{}, fmt.Errorf("branch %q: %w", branch, ErrNoRef)
}

// CreateBranch makes a branch that points at a commit. Its cost does not
// depend on what the commit holds.
func (db *DB) CreateBranch(ctx context.Context, name string, at CommitID) error {
	return db.createRef(ctx, headRef(name), name, "branch", at)
}

// CreateTag makes a tag, which never moves.
func (db *DB) CreateTag(ctx context.Context, name string, at CommitID) error {
	return db.createRef(ctx, tagRef(name), name, "tag", at)
}

func (db *DB) createRef(ctx context.Context, ref, name, kind string, at CommitID) error {
	if err := CheckRefName(name); err != nil {
		return err
	}
	_, err := db.moveRef(ref, "", kind, func(old CommitID) (CommitID, error) {
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
func (db *DB) DeleteBranch(name string) error { return db.deleteRef(headRef(name), "branch", name) }

// DeleteTag removes a tag.
func (db *DB) DeleteTag(name string) error { return db.deleteRef(tagRef(name), "tag", name) }

func (db *DB) deleteRef(ref, kind, name string) error {
	_, err := db.moveRef(ref, "", "delete", func(old CommitID) (CommitID, error) {
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
	return db.moveRef(headRef(branch), "", "reset", func(old CommitID) (CommitID, error) {
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
	return db.reflog(ctx, headRef(orMain(branch)))
}

// TagReflog is [DB.Reflog] of a tag: where it was made and that it was deleted.
func (db *DB) TagReflog(ctx context.Context, tag string) iter.Seq2[RefMove, error] {
	return db.reflog(ctx, tagRef(tag))
}

func (db *DB) reflog(ctx context.Context, ref string) iter.Seq2[RefMove, error] {
	return func(yield func(RefMove, error) bool) {
		if err := errors.Join(db.check(), db.writePending(ctx)); err != nil {
			yield(RefMove{}, err)
			return
		}
		for rec, err := range db.idx.Scan(index.SpaceReflog, reflogKey(ref, 0), append([]byte(ref), 1), true) {
			if err == nil {
				err = ctx.Err()
			}
			var m RefMove
			if err == nil {
				m, err = decodeRefMove(rec.Key, rec.Value)
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// Commit reads one commit by its full id, or ErrNoRef. Its slices and maps must
// not be changed.
func (db *DB) Commit(_ context.Context, id CommitID) (*Commit, error) {
	if err := db.check(); err != nil {
		return nil, err
	}
	if c, ok := db.commits.get(id); ok {
		return &c, nil
	}
	b := db.pending.commit(id)
	if b == nil {
		var err error
		if b, err = db.idx.Get(index.SpaceCommit, id[:]); errors.Is(err, index.ErrNotFound) {
			return nil, fmt.Errorf("commit %v: %w", id, ErrNoRef)
		} else if err != nil {
			return nil, err
		}
	}
	return db.commits.learn(id, b)
}

// commitRecord is a commit as it is stored. value is valid until the next one.
type commitRecord struct {
	id    CommitID
	value []byte
}

// commitRecords yields the commits of an index, or of a snapshot of it, in the
// order of their ids, from the first on that is not less than from. The end of
// ctx is an error.
func commitRecords(ctx context.Context, in interface {
	Scan(s index.Space, from, to []byte, reverse bool) iter.Seq2[index.Record, error]
}, from []byte) iter.Seq2[commitRecord, error] {
	return func(yield func(commitRecord, error) bool) {
		for rec, err := range in.Scan(index.SpaceCommit, from, nil, false) {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil && len(rec.Key) != len(CommitID{}) {
				err = corrupt("commit key %x", rec.Key)
			}
			if err != nil {
				yield(commitRecord{}, err)
				return
			}
			if !yield(commitRecord{CommitID(rec.Key), rec.Value}, nil) {
				return
			}
		}
	}
}

// commitCache keeps commits that were read lately: what is asked of a history is
// asked of its newest part. They never change, an id is the hash of one. Safe
// for concurrent use; the zero cache is empty.
type commitCache struct {
	mu         sync.Mutex
	young, old map[CommitID]Commit
}

const (
	commitsCached   = 2048 // twice that, some 2 MiB
	maxCachedCommit = 4 << 10
)

func (c *commitCache) get(id CommitID) (Commit, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.young[id]; ok {
		return v, true
	}
	v, ok := c.old[id]
	if ok {
		c.add(v)
	}
	return v, ok
}

// learn decodes the record of a commit and keeps it.
func (c *commitCache) learn(id CommitID, record []byte) (*Commit, error) {
	v, err := decodeCommit(id, record)
	if err == nil && len(record) <= maxCachedCommit {
		c.put(v)
	}
	return v, err
}

func (c *commitCache) put(v *Commit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(*v)
}

// add makes room by forgetting what was not asked for since the last time. mu
// is held.
func (c *commitCache) add(v Commit) {
	if c.young == nil || len(c.young) >= commitsCached {
		c.young, c.old = make(map[CommitID]Commit, commitsCached/8), c.young
	}
	c.young[v.ID] = v
}

// forget drops everything.
func (c *commitCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.young, c.old = nil, nil
}
