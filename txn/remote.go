package txn

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// Remote is the process that has a database open, as its peers see it. Peers read through
// the [Source]; what changes the database happens in that process:
//
//	peer                                            process with the lock
//	Session ── SetIf, Apply, Stage and Swap, Commit ──▶ Tx: the session itself
//	DB      ── Ask: branches, merges, care ──────────▶ DB.Answer
//
// All methods are safe for concurrent use.
type Remote interface {
	Source
	// Begin opens a session on a branch.
	Begin(ctx context.Context, o BeginOptions) (Tx, error)
	// Resume joins the open session with that id, or takes it up from its last savepoint.
	Resume(ctx context.Context, id SessionID) (Tx, error)
	// Ask sends a request to the process that has the database open: name is one of the
	// requests that [DB.Answer] knows. in and the answer are JSON. progress, if not nil, is called with reports in JSON by one
	// goroutine at a time, until Ask returns.
	Ask(ctx context.Context, name string, in []byte, progress func(report []byte)) (out []byte, err error)
}

// BeginOptions describe a session that [Remote.Begin] opens.
type BeginOptions struct {
	Branch string
	Label  string
	// ID and Base, if not zero, are as for [DB.BeginWith].
	ID   SessionID
	Base CommitID
}

// Tx is a session in the process that has the database open. Safe for concurrent use.
// Lists and slices that are passed are the caller's again when a method returns.
type Tx interface {
	// Info describes the session as of the last answer. It sends no request.
	Info() SessionInfo
	// Value returns the value of a key. For a key without a value the error is kv.ErrNotFound.
	Value(ctx context.Context, key string) (Value, error)
	// Roots returns the roots of the session with every write in it.
	Roots(ctx context.Context) (Roots, error)
	// Watch has the process with the session count all writes to the session, and its end, in
	// memory of this process: each write before it is acknowledged. The counting ends with
	// the connection, and when the source recalls its files, because the pages of earlier
	// roots may be gone then. The error is errors.ErrUnsupported where memory cannot be shared.
	Watch(ctx context.Context) (Watch, error)
	// Pages is [Source.Pages] for pages of the session too.
	Pages(ctx context.Context, q PageQuery) ([][]byte, error)
	// SetIf is [Session.SetIf].
	SetIf(ctx context.Context, key string, value []byte, want Expect) (kv.ID, error)
	// Apply does what entries of the log of a session say, in the encoding of
	// docs/format.md: references, removed prefixes, moves, guards. After an error none of
	// the entries behind the one that failed is applied.
	Apply(ctx context.Context, entries []byte) error
	// Store stores bytes that a bulk write puts at a key, and returns the value that names
	// them.
	Store(ctx context.Context, key string, value []byte) (Value, error)
	// Stage sends pages that a later Swap refers to.
	Stage(ctx context.Context, pages [][]byte) error
	// Swap replaces the working root. The error is ErrOtherRoot if the session was written
	// to, or was opened by another process, since its roots were from.
	Swap(ctx context.Context, from Roots, to Root) error
	// Savepoint is [Session.Savepoint]. label is the label of the session.
	Savepoint(ctx context.Context, label string) error
	// Refresh is [Session.Refresh].
	Refresh(ctx context.Context, choices []PathChoice) error
	// Fork is [Session.Fork].
	Fork(ctx context.Context) (Tx, error)
	// Join is [Session.Join] of the session with that id, which it ends.
	Join(ctx context.Context, fork SessionID, choices []PathChoice) error
	// Commit is [Session.Commit]. It calls o.Decided for the decisions before it returns.
	Commit(ctx context.Context, o CommitOptions) (*Commit, error)
	// Close leaves the session as it is, for others and to be resumed.
	Close() error
	// Abort is [Session.Abort].
	Abort(ctx context.Context) error
}

type (
	// Value is a value as the index has it: small bytes, or where the bytes are.
	Value = tree.Value
	// Root names a version of the tree of keys.
	Root = tree.Root
)

// Roots are the roots of a session at one moment.
type Roots struct {
	// Start is the root that the session began from, Work its working root.
	Start, Work Root
	// Life names the time for which one process has the session open. What [Tx.Stage] and
	// [Tx.Store] were given in another life may be lost.
	Life uint64
}

// AppendBinary appends the binary form of r.
func (r Roots) AppendBinary(dst []byte) []byte {
	return binary.LittleEndian.AppendUint64(r.Work.AppendBinary(r.Start.AppendBinary(dst)), r.Life)
}

// AppendValue appends the binary form of a value, which docs/format.md describes.
func AppendValue(b []byte, v *Value) []byte { return catalog.AppendValue(b, v) }

// ParseValue is the inverse of [AppendValue].
func ParseValue(b []byte) (Value, error) { return catalog.ParseValue(b) }

// ParseRoots is the inverse of [Roots.AppendBinary].
func ParseRoots(b []byte) (r Roots, err error) {
	if r.Start, b, err = tree.DecodeRoot(b); err == nil {
		r.Work, b, err = tree.DecodeRoot(b)
	}
	if err == nil && len(b) != 8 {
		err = fmt.Errorf("txn: %d bytes behind two roots, where 8 belong", len(b))
	}
	if err != nil {
		return Roots{}, err
	}
	r.Life = binary.LittleEndian.Uint64(b)
	return r, nil
}

// CommitOf finds the commit of a session that has ended, whose answer was lost, in the reflog of its
// branch. If the session has made no commit, the error is [ErrNoRef]. Other errors mean that
// this is not known: an earlier version has made commits since, or entries of the reflog are gone.
func CommitOf(ctx context.Context, r Remote, s SessionInfo) (*Commit, error) {
	in, err := json.Marshal(commitOf{s.ID, s.Branch, s.Base})
	if err != nil {
		return nil, err
	}
	b, err := r.Ask(ctx, "committed", in, nil)
	var a commitAnswer
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	if err != nil {
		return nil, err
	}
	return DecodeCommit(a.ID, a.Record)
}

// commitOf asks for the commit of a session.
type commitOf struct {
	Session SessionID
	Branch  string
	Base    CommitID
}

func (db *DB) commitOf(ctx context.Context, of commitOf) (commitAnswer, error) {
	for db.isCommitting(of.Session) { // for a request whose connection has ended
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return commitAnswer{}, ctx.Err()
		}
	}
	whole := false
	for m, err := range db.Reflog(ctx, of.Branch) {
		if err != nil {
			return commitAnswer{}, err
		}
		if m.Session == of.Session {
			c, err := db.Lookup(ctx, m.New)
			if err != nil { // not ErrNoRef: there is a commit
				return commitAnswer{}, fmt.Errorf("commit %v of session %v: %v", m.New, of.Session, err)
			}
			return commitAnswer{ID: c.ID, Record: EncodeCommit(c)}, nil
		}
		if m.New == of.Base {
			whole = true
		}
		if !whole && m.Op == "commit" && m.Session == (SessionID{}) {
			break
		}
	}
	if !whole {
		return commitAnswer{}, fmt.Errorf("commit of session %v: the log of branch %q does not tell whether there is one", of.Session, of.Branch)
	}
	return commitAnswer{}, fmt.Errorf("session %v has made no commit: %w", of.Session, ErrNoRef)
}

func (db *DB) isCommitting(id SessionID) bool {
	db.mu.Lock()
	s := db.sessions[id]
	db.mu.Unlock()
	if s == nil {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.state == sessionCommitting
}

// ErrOtherRoot means that a session has another working root than one that was to be replaced.
var ErrOtherRoot = errors.New("txn: the session has another working root")

// Remote returns the database as other processes of this machine use it. A peer returns what
// it was opened with; nil if that is a source alone.
func (db *DB) Remote() Remote { return db.home.remote() }

// remote is the Remote of a database that this process has open.
type remote struct{ source }

func (r remote) Begin(ctx context.Context, o BeginOptions) (Tx, error) {
	s, err := r.db.BeginWith(ctx, o)
	if err != nil {
		return nil, err
	}
	return sessionTx{s}, nil
}

func (r remote) Resume(ctx context.Context, id SessionID) (Tx, error) {
	s, err := r.db.Resume(ctx, id)
	if err != nil {
		return nil, err
	}
	return sessionTx{s}, nil
}

// Tx returns the session as other processes of this machine use it.
func (s *Session) Tx() Tx { return s.home.asTx() }

// sessionTx is the Tx of a session of this process.
type sessionTx struct{ *Session }

func (t sessionTx) Value(ctx context.Context, key string) (Value, error) {
	return t.home.lookup(ctx, key)
}

func (t sessionTx) Roots(ctx context.Context) (Roots, error) { return t.home.roots(ctx) }

func (t sessionTx) Watch(context.Context) (Watch, error) {
	return Watch{&t.writes, func() bool { return true }}, nil
}

func (t sessionTx) Pages(ctx context.Context, q PageQuery) ([][]byte, error) {
	return somePages(ctx, t.pages, q)
}

func (t sessionTx) Apply(ctx context.Context, entries []byte) error {
	done := 0
	for e, err := range catalog.Entries(entries) {
		if err == nil {
			err = t.applied(ctx, e)
		}
		if err != nil {
			return err
		}
		done++
	}
	if done == 0 {
		return fmt.Errorf("%w: no entry", errEntries)
	}
	return nil
}

var errEntries = errors.New("txn: the changes of a session cannot be read")

// applied applies an entry of a peer, which has no logs: it names no payload.
func (t sessionTx) applied(ctx context.Context, e *catalog.Entry) error {
	switch {
	case e.Kind == catalog.EntryPut && e.Value.Kind != tree.KindVirtual, e.Kind == catalog.EntryBegin, e.Kind == catalog.EntryCommit:
		return fmt.Errorf("%w: entry %q", errEntries, e.Kind)
	}
	return t.apply(ctx, e)
}

func (t sessionTx) Store(ctx context.Context, key string, value []byte) (Value, error) {
	return t.home.store(ctx, pack.Owner{Key: []byte(key)}, value, digest.Of(value))
}

func (t sessionTx) Stage(ctx context.Context, pages [][]byte) error {
	for _, b := range pages {
		page := slices.Clone(b)
		if err := t.pages.PutPage(ctx, digest.Of(page), page); err != nil {
			return err
		}
	}
	return nil
}

func (t sessionTx) Swap(ctx context.Context, from Roots, to Root) error {
	return t.home.change(ctx, nil, func(root tree.Root) (tree.Root, error) {
		if root != from.Work || t.life != from.Life {
			return root, ErrOtherRoot
		}
		return to, nil
	})
}

func (t sessionTx) Savepoint(ctx context.Context, label string) error {
	t.SetLabel(label)
	return t.Session.Savepoint(ctx)
}

func (t sessionTx) Fork(ctx context.Context) (Tx, error) {
	f, err := t.Session.Fork(ctx)
	if err != nil {
		return nil, err
	}
	return sessionTx{f}, nil
}

func (t sessionTx) Join(ctx context.Context, fork SessionID, choices []PathChoice) error {
	t.db.mu.Lock()
	f := t.db.sessions[fork]
	t.db.mu.Unlock()
	if f == nil {
		return fmt.Errorf("session %v: %w", fork, ErrNoRef)
	}
	return t.Session.Join(ctx, f, choices)
}

func (t sessionTx) Close() error { return t.Session.Close() }

func (t sessionTx) Abort(context.Context) error { return t.Session.Abort() }
