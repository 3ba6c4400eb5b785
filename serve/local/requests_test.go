package local

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// Requests of other clients, such as the one in Python: the Go client does without them.

// session is a session of a peer, with the requests of other clients.
type session struct {
	*engine.Session
	requests
}

// requests are about a view on a connection.
type requests struct{ tx *Session }

// ArrayInfo describes the array at a path.
func (s requests) ArrayInfo(ctx context.Context, path string) (out wire.ArrayInfo, err error) {
	err = s.tx.on(ctx, func(l *link, handle uint32, _ bool) (err error) {
		out, err = ask[wire.ArrayInfo](ctx, l, wire.OpArray, wire.Array{View: handle, Path: path})
		return err
	})
	return out, err
}

// ReadArray returns the elements that a selection names, as on a command line: in C
// order, little-endian. The server decodes them, with the chunks that it has cached.
func (s requests) ReadArray(ctx context.Context, path, sel string) (b []byte, shape []int64, err error) {
	err = s.tx.on(ctx, func(l *link, handle uint32, _ bool) error {
		meta, err := json.Marshal(wire.Array{View: handle, Path: path, Select: sel})
		if err != nil {
			return err
		}
		f, err := l.call(ctx, &wire.Frame{Op: wire.OpRead, Meta: meta}, false)
		if err != nil {
			return err
		}
		defer f.Close()
		var out wire.Elements
		if err := wire.ParseJSON(f.Op, f.Meta, &out); err != nil {
			return err
		}
		b, shape = f.Body, out.Shape
		return nil
	})
	return b, shape, err
}

// WriteArray writes elements to a selection; see [requests.ReadArray]. Unselected
// elements of a chunk keep their values, even under concurrent writes. The write
// does not depend on earlier reads.
func (s requests) WriteArray(ctx context.Context, path, sel string, b []byte) error {
	return s.tx.wrote(s.tx.on(ctx, func(l *link, handle uint32, _ bool) error {
		meta, err := json.Marshal(wire.Array{View: handle, Path: path, Select: sel})
		if err != nil {
			return err
		}
		f, err := l.call(ctx, &wire.Frame{Op: wire.OpWrite, Meta: meta, Body: b}, false)
		if err == nil {
			f.Close()
		}
		return err
	}))
}

// Sessions lists the sessions that can be resumed or are open, oldest first.
func (c *Client) Sessions(ctx context.Context, db string) ([]txn.SessionInfo, error) {
	out, err := query[wire.Sessions](ctx, c, wire.OpSessions, wire.Database{Database: db})
	list := make([]txn.SessionInfo, len(out.Sessions))
	for i := range out.Sessions {
		list[i] = sessionIn(&out.Sessions[i])
	}
	return list, err
}

// Databases returns the served names.
func (c *Client) Databases(ctx context.Context) ([]string, error) {
	out, err := query[wire.Names](ctx, c, wire.OpDatabases, none{})
	return out.Names, err
}

// handles opens a version that requests name by a handle, as those of clients in other
// languages do.
func handles(t testing.TB, c *Client, rev string) requests {
	t.Helper()
	l := must.Get(c.link(bg))(t)
	out := must.Get(ask[wire.View](bg, l, wire.OpOpen, wire.Open{Rev: rev}))(t)
	v := requests{&Session{c: c, l: l, handle: out.View}}
	t.Cleanup(func() { _ = v.tx.Close() })
	return v
}
