package zarrdb

import (
	"context"
	"strings"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/local"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// WritableKeys are keys that can be set and deleted.
type WritableKeys interface {
	Keys
	kv.Writer
	kv.PrefixDeleter
}

// Session is a transaction on a branch. It sees its own writes, and nothing of others
// that are not committed. Several processes may work in one, by its ID. Safe for
// concurrent use; it ends with Commit or Abort.
type Session struct {
	Nodes
	WritableKeys
	held   *engine.Session // where this process has the database open
	remote *joined         // where another one has
}

// joined is a session in another process as arrays and groups write to it: they keep
// consolidated metadata up to date, as those of an engine.Session do.
type joined struct {
	*local.Session
	copies *engine.Copies
}

var (
	_ kv.Store         = (*joined)(nil)
	_ kv.PrefixDeleter = (*joined)(nil)
)

func (j *joined) Set(ctx context.Context, key string, value []byte) error {
	if err := j.copies.Key(ctx, key); err != nil {
		return err
	}
	return j.Session.Set(ctx, key, value)
}

func (j *joined) Delete(ctx context.Context, key string) error {
	if err := j.copies.Key(ctx, key); err != nil {
		return err
	}
	return j.Session.Delete(ctx, key)
}

func (j *joined) DeletePrefix(ctx context.Context, prefix string) error {
	node := strings.Trim(prefix, "/")
	if err := j.copies.Above(ctx, node); err != nil {
		return err
	}
	j.copies.Gone(node)
	return j.Session.DeletePrefix(ctx, prefix)
}

// joinedKeys are the keys of a joined session: single ones are stored as they are given.
type joinedKeys struct {
	*local.Session
	nodes *joined
}

func (k joinedKeys) DeletePrefix(ctx context.Context, prefix string) error {
	return k.nodes.DeletePrefix(ctx, prefix)
}

var _ kv.Store = (*Session)(nil)

// Begin opens a session on a branch; "" is main.
func (db *DB) Begin(ctx context.Context, branch string) (*Session, error) {
	held, client, err := db.writable()
	if err != nil {
		return nil, err
	}
	if held != nil {
		s, err := held.Begin(ctx, branch)
		if err != nil {
			return nil, err
		}
		return inProcess(s), nil
	}
	s, err := client.Begin(ctx, "", branch, "")
	if err != nil {
		return nil, err
	}
	return elsewhere(s), nil
}

// Resume takes up a session: one that is open, in whatever process, or as it was last
// saved.
func (db *DB) Resume(ctx context.Context, id txn.SessionID) (*Session, error) {
	held, client, err := db.writable()
	if err != nil {
		return nil, err
	}
	if held != nil {
		s, err := held.Join(ctx, id)
		if err != nil {
			return nil, err
		}
		return inProcess(s), nil
	}
	s, err := client.Session(ctx, "", id)
	if err != nil {
		return nil, err
	}
	return elsewhere(s), nil
}

func inProcess(s *engine.Session) *Session {
	return &Session{Nodes: s, WritableKeys: s, held: s}
}

func elsewhere(s *local.Session) *Session {
	j := &joined{Session: s, copies: engine.NewCopies(s)}
	return &Session{Nodes: through{j}, WritableKeys: joinedKeys{s, j}, remote: j}
}

// Update runs fn in a session on a branch and commits what it wrote. If fn fails
// nothing is written and its error is returned. If another commit changed what fn
// changed, or what it guards, the error is a *[txn.ConflictError]; [DB.Retry] calls fn
// again then.
func (db *DB) Update(ctx context.Context, branch, message string, fn func(*Session) error) (*txn.Commit, error) {
	s, err := db.Begin(ctx, branch)
	if err != nil {
		return nil, err
	}
	var c *txn.Commit
	defer func() { // also if fn panics
		if c == nil {
			_ = s.Abort(context.WithoutCancel(ctx))
		}
	}()
	if err = fn(s); err == nil {
		c, err = s.Commit(ctx, CommitOptions{Message: message})
	}
	return c, err
}

// Retry is Update that calls fn again, in a new session, after a conflict, with growing
// pauses, until it is committed, fails otherwise, or ctx ends.
func (db *DB) Retry(ctx context.Context, branch, message string, fn func(*Session) error) (c *txn.Commit, err error) {
	err = txn.Retry(ctx, func() error {
		c, err = db.Update(ctx, branch, message, fn)
		return err
	})
	return c, err
}

// Guard names paths that the session read and relies on: Commit fails with a conflict
// if anything at or below them changed on the branch since the session's base, even if
// the session wrote elsewhere. A path is that of a node, or the key of a chunk or
// document. Savepoints keep guards.
func (s *Session) Guard(ctx context.Context, paths ...string) error {
	if s.held != nil {
		return s.held.Guard(ctx, paths...)
	}
	return s.remote.Guard(ctx, paths...)
}

// GuardRead guards the metadata of an array that was opened from the session, and the
// chunks that sel touches. A selection of more than 4096 chunks guards the whole array.
// It reads nothing, and may be called before or after the read.
func (s *Session) GuardRead(ctx context.Context, a *zarr.Array, sel zarr.Selection) error {
	paths, err := engine.GuardedPaths(a, sel)
	if err != nil {
		return err
	}
	return s.Guard(ctx, paths...)
}

// ID names the session for [DB.Resume], after a Savepoint.
func (s *Session) ID() txn.SessionID {
	if s.held != nil {
		return s.held.ID()
	}
	return s.remote.ID()
}

// Branch is the branch that Commit moves.
func (s *Session) Branch() string {
	if s.held != nil {
		return s.held.Branch()
	}
	return s.remote.Branch()
}

// CreateArray makes an array, and groups above it where they are missing. If there is
// a node already the error is zarr.ErrExists.
func (s *Session) CreateArray(ctx context.Context, path string, spec zarr.Spec) (*zarr.Array, error) {
	if s.held != nil {
		return s.held.CreateArray(ctx, path, spec)
	}
	return zarr.Create(ctx, s.remote, path, spec, nil)
}

// CreateGroup makes a group of a format, 0 for that of the group above, else v3, and
// groups above it where they are missing.
func (s *Session) CreateGroup(ctx context.Context, path string, version zarr.Version, attrs zarr.Attributes) (*zarr.Group, error) {
	if s.held != nil {
		return s.held.CreateGroup(ctx, path, version, attrs)
	}
	return zarr.CreateGroup(ctx, s.remote, path, attrs, &zarr.OpenOptions{Version: version})
}

// CommitOptions describe a commit.
type CommitOptions struct {
	Message string
	// Author is who made it; default the user of the process.
	Author string
	// Properties are free metadata.
	Properties map[string]string
	// Choices decide conflicts by path; none refuses them all.
	Choices []txn.PathChoice
}

func (o *CommitOptions) remote() local.CommitOptions {
	return local.CommitOptions{Message: o.Message, Author: o.Author, Properties: o.Properties, Choices: o.Choices}
}

func (o *CommitOptions) held() txn.CommitOptions {
	return txn.CommitOptions{Message: o.Message, Author: o.Author, Properties: o.Properties, Choices: o.Choices}
}

// Commit publishes all that the session wrote, durably, or nothing. If the branch has
// moved, changes that do not touch each other merge; others are a
// *[txn.ConflictError], and the session stays open.
func (s *Session) Commit(ctx context.Context, o CommitOptions) (*txn.Commit, error) {
	if s.held == nil {
		if err := s.remote.copies.Refresh(ctx); err != nil {
			return nil, err
		}
		return s.remote.Commit(ctx, o.remote())
	}
	return s.held.Commit(ctx, o.held())
}

// Savepoint makes everything written so far survive a crash, to be resumed. It
// publishes nothing.
func (s *Session) Savepoint(ctx context.Context) error {
	if s.held != nil {
		return s.held.Savepoint(ctx)
	}
	if err := s.remote.copies.Refresh(ctx); err != nil {
		return err
	}
	return s.remote.Savepoint(ctx)
}

// Abort ends the session and forgets what it wrote. After a commit it does nothing.
func (s *Session) Abort(ctx context.Context) error {
	if s.held != nil {
		return s.held.Abort()
	}
	return s.remote.Discard(ctx)
}
