package local

import (
	"context"
	"fmt"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// The methods of [txn.Tx] that a session of a peer is made of, beside savepoint, rebase, fork, join, commit and discard.

// expected is the condition of a write.
func expected(in wire.Set) engine.Expect {
	return engine.Expect{Absent: in.Expect == wire.ExpectAbsent, ID: kv.ID(in.ID)}
}

func (c *conn) set(ctx context.Context, f *wire.Frame, v *view, in wire.Set) error {
	id, err := v.Session.Engine().SetIf(ctx, in.Key, f.Body, expected(in))
	if err != nil {
		return err
	}
	return c.send(f, &wire.Frame{Meta: id[:]})
}

func (c *conn) delete(ctx context.Context, f *wire.Frame, v *view, in wire.Set) error {
	if err := v.Session.Engine().DeleteIf(ctx, in.Key, expected(in)); err != nil {
		return err
	}
	return c.send(f, &wire.Frame{})
}

func (c *conn) value(ctx context.Context, f *wire.Frame, v *view, in wire.Stat) error {
	value, err := v.Session.Engine().Versions().Tx().Value(ctx, in.Key)
	if err != nil {
		return err
	}
	return c.send(f, &wire.Frame{Meta: txn.AppendValue(nil, &value)})
}

func (c *conn) roots(ctx context.Context, f *wire.Frame, v *view, _ wire.Stat) error {
	r, err := v.Session.Engine().Versions().Tx().Roots(ctx)
	if err != nil {
		return err
	}
	return c.send(f, &wire.Frame{Meta: r.AppendBinary(nil)})
}

func (c *conn) ownPages(ctx context.Context, f *wire.Frame, v *view, in wire.OwnPages) error {
	return c.sendPages(ctx, f, in.Names, v.Session.Engine().Versions().Tx().Pages)
}

func (c *conn) apply(ctx context.Context, f *wire.Frame, v *view, _ wire.Stat) error {
	s := v.Session.Engine()
	s.Untracked()
	if err := s.Versions().Tx().Apply(ctx, f.Body); err != nil {
		return err
	}
	return c.send(f, &wire.Frame{})
}

func (c *conn) store(ctx context.Context, f *wire.Frame, v *view, in wire.Stat) error {
	value, err := v.Session.Engine().Versions().Tx().Store(ctx, in.Key, f.Body)
	if err != nil {
		return err
	}
	return c.send(f, &wire.Frame{Meta: txn.AppendValue(nil, &value)})
}

func (c *conn) stage(ctx context.Context, f *wire.Frame, v *view, in wire.Stage) error {
	pages, err := wire.SplitPages(in.Sizes, f.Body)
	if err == nil {
		err = v.Session.Engine().Versions().Tx().Stage(ctx, pages)
	}
	if err != nil {
		return err
	}
	return c.send(f, &wire.Frame{})
}

func (c *conn) swap(ctx context.Context, f *wire.Frame, v *view, _ wire.Stat) error {
	r, err := txn.ParseRoots(f.Body)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRequest, err)
	}
	s := v.Session.Engine()
	s.Untracked()
	if err := s.Versions().Tx().Swap(ctx, txn.Roots{Work: r.Start, Life: r.Life}, r.Work); err != nil {
		return err
	}
	return c.send(f, &wire.Frame{})
}
