package local

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// Requests of other clients, such as the one in Python: the Go client does without them.

// ArrayInfo describes the array at a path.
func (s *shelf) ArrayInfo(ctx context.Context, path string) (out wire.ArrayInfo, err error) {
	err = s.read(ctx, func(l *link, handle uint32) (err error) {
		out, err = ask[wire.ArrayInfo](ctx, l, wire.OpArray, wire.Array{View: handle, Path: path})
		return err
	})
	return out, err
}

// ReadArray returns the elements that a selection names, as on a command line: in C
// order, little-endian. The server decodes them, with the chunks that it has cached.
func (s *shelf) ReadArray(ctx context.Context, path, sel string) (b []byte, shape []int64, err error) {
	err = s.read(ctx, func(l *link, handle uint32) error {
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

// WriteArray writes elements to a selection; see [View.ReadArray]. Unselected
// elements of a chunk keep their values, even under concurrent writes. The write
// does not depend on earlier reads.
func (s *Session) WriteArray(ctx context.Context, path, sel string, b []byte) error {
	err := s.read(ctx, func(l *link, handle uint32) error {
		meta, err := json.Marshal(wire.Array{View: handle, Path: path, Select: sel})
		if err != nil {
			return err
		}
		f, err := l.call(ctx, &wire.Frame{Op: wire.OpWrite, Meta: meta, Body: b}, false)
		if err == nil {
			f.Close()
		}
		return err
	})
	if err != nil {
		return err
	}
	s.state.Lock()
	defer s.state.Unlock()
	s.dirty++
	return nil
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

// Report answers a question about a database with the JSON that a command prints, one
// value on each line where it prints lines; see [serve.Table.Report]. A server of another
// build may not know the request: errors.ErrUnsupported.
func (c *Client) Report(ctx context.Context, db string, r serve.Report) (answer []byte, err error) {
	meta, err := json.Marshal(wire.Report{Database: db, Kind: r.Kind, Rev: r.Rev, To: r.To, Path: r.Path, Number: r.Number, Values: r.Values})
	if err != nil {
		return nil, err
	}
	err = c.again(ctx, func(l *link) error {
		f, err := l.call(ctx, &wire.Frame{Op: wire.OpReport, Meta: meta}, false)
		if err != nil {
			return err
		}
		defer f.Close()
		answer = f.Body
		return nil
	})
	return answer, err
}

// Databases returns the served names.
func (c *Client) Databases(ctx context.Context) ([]string, error) {
	out, err := query[wire.Names](ctx, c, wire.OpDatabases, none{})
	return out.Names, err
}

// handleView is a version that requests name by a handle, as those of clients in other
// languages do.
type handleView struct{ shelf }

func handles(t testing.TB, c *Client, rev string) *handleView {
	t.Helper()
	v := &handleView{}
	v.reopen = func(ctx context.Context) (*link, uint32, error) {
		l, err := c.link(ctx)
		if err != nil {
			return nil, 0, err
		}
		out, err := ask[wire.View](ctx, l, wire.OpOpen, wire.Open{Rev: rev})
		return l, out.View, err
	}
	var err error
	if v.l, v.handle, err = v.reopen(bg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.close() })
	return v
}
