package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// Session is a [txn.Tx] of a session that a server has open. [engine.OpenPeer] makes it an
// [engine.Session].
//
// When the server ends or is killed, the session continues on the next one with
// everything that was acknowledged. If another client has ended it meanwhile, every call fails with
// a *[SessionLostError]. A request that was not answered is sent again to the next server where that does no
// harm; otherwise the error is an [ErrUnknown].
type Session struct {
	c  *Client
	id txn.SessionID

	opening ctxlock.Lock // held while it is opened again

	mu      sync.Mutex
	l       *link
	handle  uint32
	closed  bool
	info    txn.SessionInfo
	written bool // something, which was acknowledged
	lost    *SessionLostError
	watched watched
	// committing says that a commit was sent and not answered.
	committing bool
}

var _ txn.Tx = (*Session)(nil)

// Begin implements [txn.Remote]. The session is stored by the first savepoint or change, and
// when the server ends in order.
func (s source) Begin(ctx context.Context, o txn.BeginOptions) (txn.Tx, error) {
	in := wire.Begin{Branch: o.Branch, Label: o.Label}
	if o.ID != (txn.SessionID{}) {
		in.ID, in.Base = o.ID.String(), o.Base.String()
	}
	return s.session(ctx, wire.OpBegin, in)
}

// Resume implements [txn.Remote].
func (s source) Resume(ctx context.Context, id txn.SessionID) (txn.Tx, error) {
	return s.session(ctx, wire.OpOpen, wire.Open{Rev: sessionRev(id)})
}

func (s source) session(ctx context.Context, op wire.Op, in any) (out *Session, err error) {
	err = s.c.again(ctx, func(l *link) error {
		v, err := ask[wire.View](ctx, l, op, in)
		if err == nil {
			out, err = s.opened(l, &v)
		}
		return err
	})
	return out, err
}

func sessionRev(id txn.SessionID) string { return "~" + id.String() }

func (s source) opened(l *link, v *wire.View) (*Session, error) {
	if v.Session == nil {
		return nil, fmt.Errorf("%w: a view of no session", wire.ErrProtocol)
	}
	info := sessionIn(v.Session)
	s.c.slots.open(1)
	return &Session{c: s.c, id: info.ID, l: l, handle: v.View, info: info}, nil
}

// Info implements [txn.Tx].
func (s *Session) Info() txn.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

func (s *Session) told(out *wire.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.info = sessionIn(out)
}

// resume opens the session on another connection than was, unless something is lost. s.opening
// is held.
func (s *Session) resume(ctx context.Context, was *link) (*link, uint32, error) {
	info, written, committing, err := s.before()
	if err != nil {
		return nil, 0, err
	}
	l, err := s.c.link(ctx)
	if err != nil {
		return nil, 0, err
	}
	out, err := ask[wire.View](ctx, l, wire.OpOpen, wire.Open{Rev: sessionRev(s.id)})
	if errors.Is(err, txn.ErrNoRef) && info.Saved.IsZero() {
		if committing {
			return nil, 0, err // for Commit, which reports the unknown result
		}
		if written {
			return nil, 0, s.lose(was)
		}
		again := wire.Begin{Branch: info.Branch, Label: info.Label, ID: s.id.String(), Base: info.Base.String()}
		out, err = ask[wire.View](ctx, l, wire.OpBegin, again)
	}
	if err == nil && out.Session != nil {
		s.told(out.Session)
	}
	return l, out.View, err
}

// before returns the state of the session when its connection ended, and an error if something is
// lost.
func (s *Session) before() (info txn.SessionInfo, written, committing bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		err = s.lost
	}
	return s.info, s.written, s.committing, err
}

// lose notes that something is lost, and returns the error.
func (s *Session) lose(was *link) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = &SessionLostError{ID: s.id, Saved: s.info.Saved, Err: was.why()}
	return s.lost
}

// at returns the connection and the handle. With an error it returns the connection
// that it was tried on, if any.
func (s *Session) at(ctx context.Context) (*link, uint32, error) {
	l, handle, err := s.now()
	if err != nil || !l.over() {
		return l, handle, err
	}
	if err := s.opening.Lock(ctx); err != nil {
		return nil, 0, err
	}
	defer s.opening.Unlock()
	if l, handle, err = s.now(); err != nil || !l.over() {
		return l, handle, err // another caller was faster
	}
	l, handle, err = s.resume(ctx, l)
	if err != nil {
		return l, 0, err
	}
	s.mu.Lock()
	s.l, s.handle = l, handle
	closed := s.closed
	s.mu.Unlock()
	if closed { // meanwhile
		return nil, 0, errors.Join(txn.ErrSessionClosed, s.closeView(ctx, l, handle))
	}
	return l, handle, nil
}

// now returns the connection and the handle that the session had last.
func (s *Session) now() (*link, uint32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, 0, txn.ErrSessionClosed
	}
	return s.l, s.handle, nil
}

// on runs fn, and repeats it on a new connection while the one before has ended. unknown says
// that an earlier try was sent and not answered.
func (s *Session) on(ctx context.Context, fn func(l *link, handle uint32, unknown bool) error) error {
	unknown := false
	for n := 0; ; n++ {
		l, handle, err := s.at(ctx)
		if l == nil {
			return err
		}
		if err == nil {
			err = fn(l, handle, unknown)
		}
		if err == nil || !errors.Is(err, ErrGone) || n >= reconnects || ctx.Err() != nil {
			return err
		}
		unknown = unknown || errors.Is(err, ErrUnknown)
		<-l.ended
	}
}

// call sends a request. use, if not nil, gets the answer.
func (s *Session) call(ctx context.Context, op wire.Op, meta func(handle uint32) []byte, body []byte, use func(f *wire.Frame) error) error {
	return s.on(ctx, func(l *link, handle uint32, _ bool) error {
		f, err := l.call(ctx, &wire.Frame{Op: op, Meta: meta(handle), Body: body}, false)
		if err != nil {
			return err
		}
		defer f.Close()
		if use == nil {
			return nil
		}
		return use(f)
	})
}

// about makes the meta of a request about a key.
func about(key string) func(handle uint32) []byte {
	return func(handle uint32) []byte {
		in := wire.Stat{View: handle, Key: key}
		return in.Append(make([]byte, 0, 4+len(key)))
	}
}

// Value implements [txn.Tx].
func (s *Session) Value(ctx context.Context, key string) (v txn.Value, err error) {
	err = s.call(ctx, wire.OpValue, about(key), nil, func(f *wire.Frame) (err error) {
		v, err = txn.ParseValue(f.Meta)
		return err
	})
	return v, err
}

// Roots implements [txn.Tx].
func (s *Session) Roots(ctx context.Context) (r txn.Roots, err error) {
	err = s.call(ctx, wire.OpRoots, about(""), nil, func(f *wire.Frame) (err error) {
		r, err = txn.ParseRoots(f.Meta)
		return err
	})
	return r, err
}

// Pages implements [txn.Tx].
func (s *Session) Pages(ctx context.Context, q txn.PageQuery) (pages [][]byte, err error) {
	in := wire.OwnPages{Names: pageNames(q.Names)}
	err = s.call(ctx, wire.OpOwnPages, func(handle uint32) []byte {
		in.View = handle
		return in.Append(nil)
	}, q.Key, func(f *wire.Frame) (err error) {
		pages, err = splitPages(f, q)
		return err
	})
	return pages, err
}

// wrote notes a write that was acknowledged.
func (s *Session) wrote(err error) error {
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.written = true
	}
	return err
}

// unknownIf returns an [ErrUnknown] for an error of a request that was sent before, and may
// have taken place then.
func unknownIf(unknown bool, err error, what string) error {
	if err == nil || !unknown || errors.Is(err, ErrGone) {
		return err
	}
	return fmt.Errorf("%w: whether %s is not known: read it again (%v)", ErrUnknown, what, err)
}

// SetIf implements [txn.Tx]. If a repeated request finds the value that it writes, it has taken place. If it finds another one than
// the expected one, this write or one of another client has taken place: the error is [ErrUnknown].
func (s *Session) SetIf(ctx context.Context, key string, value []byte, want txn.Expect) (id kv.ID, err error) {
	in, op := wire.Set{Key: key, ID: want.ID}, wire.OpSet
	switch {
	case want.Absent:
		in.Expect = wire.ExpectAbsent
	case want.ID != kv.ID{}:
		in.Expect = wire.ExpectID
	}
	if value == nil {
		op = wire.OpDelete
	}
	err = s.on(ctx, func(l *link, handle uint32, unknown bool) error {
		in.View = handle
		f, err := l.put(ctx, &wire.Frame{Op: op, Meta: in.Append(nil), Body: value})
		var changed *engine.ChangedError
		if unknown = unknown && errors.As(err, &changed); unknown && changed.Have == contentID(value) {
			id = changed.Have
			return nil
		}
		if err != nil {
			return unknownIf(unknown, err, key+" was written")
		}
		defer f.Close()
		if op == wire.OpSet {
			if len(f.Meta) != len(id) {
				return fmt.Errorf("%w: an identity of %d bytes", wire.ErrProtocol, len(f.Meta))
			}
			id = kv.ID(f.Meta)
		}
		return nil
	})
	return id, s.wrote(err)
}

// contentID is the identity of a value in the index, zero for none.
func contentID(value []byte) kv.ID {
	if value == nil {
		return kv.ID{}
	}
	return kv.ID(digest.Of(value))
}

// Apply implements [txn.Tx]. To put, remove or guard once more changes nothing; to move a node
// once more is an error, which becomes an [ErrUnknown].
func (s *Session) Apply(ctx context.Context, entries []byte) error {
	return s.wrote(s.on(ctx, func(l *link, handle uint32, unknown bool) error {
		f, err := l.call(ctx, &wire.Frame{Op: wire.OpApply, Meta: about("")(handle), Body: entries}, false)
		if err != nil {
			return unknownIf(unknown, err, "the session was changed")
		}
		f.Close()
		return nil
	}))
}

// Store implements [txn.Tx].
func (s *Session) Store(ctx context.Context, key string, value []byte) (v txn.Value, err error) {
	err = s.on(ctx, func(l *link, handle uint32, _ bool) error {
		f, err := l.put(ctx, &wire.Frame{Op: wire.OpStore, Meta: about(key)(handle), Body: value})
		if err != nil {
			return err
		}
		defer f.Close()
		v, err = txn.ParseValue(f.Meta)
		return err
	})
	return v, err
}

// Stage implements [txn.Tx].
func (s *Session) Stage(ctx context.Context, pages [][]byte) error {
	for len(pages) > 0 {
		n := min(len(pages), wire.MaxPages)
		var body []byte
		for _, page := range pages[:n] {
			body = append(body, page...)
		}
		in := wire.Stage{Sizes: wire.PageSizes(pages[:n])}
		err := s.call(ctx, wire.OpStage, func(handle uint32) []byte {
			in.View = handle
			return in.Append(nil)
		}, body, nil)
		if err != nil {
			return err
		}
		pages = pages[n:]
	}
	return nil
}

// Swap implements [txn.Tx]. If the answer is lost, the roots tell whether the root was replaced.
func (s *Session) Swap(ctx context.Context, from txn.Roots, to txn.Root) error {
	body := txn.Roots{Start: from.Work, Work: to, Life: from.Life}.AppendBinary(nil)
	return s.wrote(s.on(ctx, func(l *link, handle uint32, unknown bool) error {
		f, err := l.call(ctx, &wire.Frame{Op: wire.OpSwap, Meta: about("")(handle), Body: body}, false)
		if err == nil {
			f.Close()
			return nil
		}
		if !unknown || errors.Is(err, ErrGone) {
			return err
		}
		now, failed := s.Roots(ctx)
		switch {
		case failed == nil && now.Work == to:
			return nil
		case failed == nil && now.Work == from.Work:
			return err
		}
		return unknownIf(true, errors.Join(err, failed), "the session was changed")
	}))
}

// do runs a request in JSON, and repeats it where that changes nothing.
func (s *Session) do(ctx context.Context, op wire.Op, in func(handle uint32) any, out any) error {
	return s.on(ctx, func(l *link, handle uint32, _ bool) error {
		got, err := ask[json.RawMessage](ctx, l, op, in(handle))
		if err != nil || out == nil {
			return err
		}
		return wire.ParseJSON(op, got, out)
	})
}

// Savepoint implements [txn.Tx].
func (s *Session) Savepoint(ctx context.Context, label string) error {
	var out wire.Session
	err := s.do(ctx, wire.OpSavepoint, func(handle uint32) any {
		return wire.Savepoint{Handle: wire.Handle{View: handle}, Label: label}
	}, &out)
	if err == nil {
		s.told(&out)
	}
	return err
}

// Refresh implements [txn.Tx].
func (s *Session) Refresh(ctx context.Context, choices []txn.PathChoice) error {
	var out wire.Session
	err := s.do(ctx, wire.OpRebase, func(handle uint32) any {
		return wire.Rebase{Handle: wire.Handle{View: handle}, Choices: choicesOut(choices)}
	}, &out)
	if err == nil {
		s.told(&out)
	}
	return s.wrote(err)
}

// Fork implements [txn.Tx].
func (s *Session) Fork(ctx context.Context) (fork txn.Tx, err error) {
	err = s.on(ctx, func(l *link, handle uint32, _ bool) error {
		v, err := ask[wire.View](ctx, l, wire.OpFork, wire.Fork{Handle: wire.Handle{View: handle}})
		if err == nil {
			fork, err = source{s.c}.opened(l, &v)
		}
		return err
	})
	return fork, err
}

// Join implements [txn.Tx].
func (s *Session) Join(ctx context.Context, fork txn.SessionID, choices []txn.PathChoice) error {
	return s.wrote(s.on(ctx, func(l *link, handle uint32, unknown bool) error {
		in := wire.Join{Handle: wire.Handle{View: handle}, Session: fork.String(), Choices: choicesOut(choices)}
		_, err := ask[none](ctx, l, wire.OpJoin, in)
		ended := errors.Is(err, txn.ErrNoRef) || errors.Is(err, txn.ErrSessionClosed) // as the fork has after it was joined
		return unknownIf(unknown && ended, err, "the fork was joined")
	}))
}

// Commit implements [txn.Tx]. If the server ends meanwhile, the next one makes the commit if
// the session is still there. If it is not, the next one tells which commit the session has made, or
// that it made none. The error is a *[SessionLostError] with Committing if ctx ends before an answer;
// another Commit asks for it. After a dry run that was not answered, the session goes on.
func (s *Session) Commit(ctx context.Context, o txn.CommitOptions) (*txn.Commit, error) {
	in := wire.Publish{
		Message: o.Message, Author: o.Author, Time: o.Time, Properties: o.Properties, AllowEmpty: o.AllowEmpty, DryRun: o.DryRun,
		Choices: choicesOut(o.Choices), Decided: o.Decided != nil,
	}
	var out wire.Commit
	err := s.on(ctx, func(l *link, handle uint32, _ bool) (err error) {
		in.View = handle
		if err := ctx.Err(); err != nil {
			return err // nothing was sent
		}
		out, err = ask[wire.Commit](ctx, l, wire.OpCommit, &in)
		if !o.DryRun {
			s.answered(ctx, err)
		}
		return err
	})
	switch {
	case err != nil && o.DryRun:
		return nil, err
	case err != nil:
		return s.committed(ctx, err)
	case !o.DryRun:
		s.end()
	}
	for i := range out.Decided {
		choice := txn.Ours
		if out.Decided[i].Take == takes[txn.Theirs] {
			choice = txn.Theirs
		}
		o.Decided(conflictIn(&out.Decided[i].Conflict), choice)
	}
	return txn.DecodeCommit(commitID(out.ID), out.Record)
}

// answered notes whether a commit was answered.
func (s *Session) answered(ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.committing = false
	case errors.Is(err, ErrUnknown), ctx.Err() != nil:
		s.committing = true
	}
}

// committed returns the error of a commit. If that was sent before and not answered, it returns the
// commit that was made then. A conflict answers for both.
func (s *Session) committed(ctx context.Context, err error) (*txn.Commit, error) {
	s.mu.Lock()
	info, committing := s.info, s.committing && !errors.Is(err, txn.ErrConflict)
	s.committing = committing && ctx.Err() != nil
	s.mu.Unlock()
	if !committing {
		return nil, err
	}
	c, unknown := txn.CommitOf(ctx, source{s.c}, info)
	if unknown != nil && ctx.Err() != nil {
		return nil, &SessionLostError{ID: s.id, Saved: info.Saved, Committing: true, Err: err}
	}
	if unknown == nil {
		s.end()
		return c, nil
	}
	none := errors.Is(unknown, txn.ErrNoRef)
	if none && !errors.Is(err, txn.ErrNoRef) && !errors.Is(err, txn.ErrSessionClosed) {
		return nil, err // the session is there
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := &SessionLostError{ID: s.id, Saved: info.Saved, Committing: !none, Err: err}
	if s.committing = !none; none {
		s.lost = lost
	}
	return nil, lost
}

// takes are the names of choices.
var takes = map[txn.Choice]string{txn.Ours: "ours", txn.Theirs: "theirs"}

func choicesOut(list []txn.PathChoice) (out []wire.Choice) {
	for _, c := range list {
		out = append(out, wire.Choice{Path: c.Path, Take: takes[c.Choice]})
	}
	return out
}

// Abort implements [txn.Tx].
func (s *Session) Abort(ctx context.Context) error {
	err := s.do(ctx, wire.OpDiscard, func(handle uint32) any { return wire.Handle{View: handle} }, nil)
	if errors.Is(err, txn.ErrNoRef) || errors.Is(err, txn.ErrSessionClosed) {
		err = nil // it has ended
	}
	if err == nil {
		s.end()
	}
	return err
}

// Close implements [txn.Tx]. The session stays open in the server.
func (s *Session) Close() error {
	l, handle, was := s.end()
	if was || l.over() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return s.closeView(ctx, l, handle)
}

func (s *Session) closeView(ctx context.Context, l *link, handle uint32) error {
	_, err := ask[none](ctx, l, wire.OpClose, wire.Handle{View: handle})
	if errors.Is(err, ErrGone) || errors.Is(err, txn.ErrClosed) {
		err = nil
	}
	return err
}

// end notes that the session is closed here, and returns where it was open, and whether it was closed
// before. The server has closed a session that was committed or aborted.
func (s *Session) end() (l *link, handle uint32, was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was = s.closed; !was {
		s.closed = true
		s.c.slots.open(-1)
	}
	return s.l, s.handle, was
}
