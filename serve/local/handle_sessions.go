package local

import (
	"context"
	"fmt"

	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

func (c *conn) begin(ctx context.Context, in *wire.Begin) (*wire.View, error) {
	o := serve.BeginOptions{Branch: in.Branch, Label: in.Label, Unsaved: true, By: c.origin()}
	if in.ID != "" {
		var err error
		if o.ID, err = txn.ParseSessionID(in.ID); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRequest, err)
		}
		o.Base = commitID(in.Base)
	}
	s, err := c.s.t.Begin(ctx, c.who, c.s.name, o)
	if err != nil {
		return nil, err
	}
	return c.opened(s.View())
}

// origin describes the process at the other end.
func (c *conn) origin() txn.Origin { return txn.Origin{Program: c.program, PID: c.pid} }

func (c *conn) savepoint(ctx context.Context, v *view, in *wire.Savepoint) (*wire.Session, error) {
	v.Session.Engine().SetLabel(in.Label)
	if err := v.Session.Engine().Savepoint(ctx); err != nil {
		return nil, err
	}
	return sessionOut(v.Session.Engine().Info()), nil
}

// maxDecided bounds the decisions in an answer.
const maxDecided = 1000

func (c *conn) commit(ctx context.Context, v *view, in *wire.Publish) (*wire.Commit, error) {
	o := txn.CommitOptions{Message: in.Message, Author: in.Author, Time: in.Time, Properties: in.Properties, AllowEmpty: in.AllowEmpty, DryRun: in.DryRun}
	var decided []wire.Decided
	if in.Decided {
		o.Decided = func(conflict txn.Conflict, choice txn.Choice) {
			if len(decided) < maxDecided {
				decided = append(decided, wire.Decided{Conflict: conflictOut(&conflict), Take: takes[choice]})
			}
		}
	}
	var err error
	if o.Choices, err = choicesIn(in.Choices); err != nil {
		return nil, err
	}
	commit, err := v.Session.Commit(ctx, o)
	c.closeEnded(v)
	if err != nil {
		return nil, err
	}
	out := commitOut(commit)
	out.Record, out.Decided = txn.EncodeCommit(commit), decided
	return out, nil
}

func (c *conn) discard(ctx context.Context, v *view, _ *wire.Handle) (none, error) {
	err := v.Session.Discard(ctx)
	c.closeEnded(v)
	return none{}, err
}

// closeEnded closes all views of a session if it has ended, so that the client need not.
func (c *conn) closeEnded(ended *view) {
	s := ended.Session.Engine()
	if !s.Ended() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for handle, v := range c.views {
		if v.Session != nil && v.Session.Engine() == s {
			delete(c.views, handle) // nothing else is released with it
			v.counted.set(nil)
		}
	}
}
