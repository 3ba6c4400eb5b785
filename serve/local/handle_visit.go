package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// visit renews the leases of a client, and keeps them until the process of the client ends,
// also in the next process that has the database open.
func (c *conn) visit(ctx context.Context, f *wire.Frame) error {
	var in wire.Visit
	if err := wire.ParseJSON(f.Op, f.Meta, &in); err != nil {
		return err
	}
	db, err := c.db()
	if err != nil {
		return err
	}
	var visit *txn.Visit
	if c.files {
		visit, err = db.Versions().Visit(in.Peer, fmt.Sprintf("process %d of %s", c.pid, c.who.Name))
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	out, reply := &wire.Visited{}, &wire.Frame{}
	if visit != nil && visit.File != nil {
		defer visit.File.Close()
		reply.Pass = []wire.Descriptor{visit.File}
	}
	for _, id := range in.Versions {
		out.Leases = append(out.Leases, c.renew(ctx, visit, id))
	}
	if visit != nil {
		out.Peer = visit.Name
		if err := c.beginVisit(visit); err != nil {
			return err
		}
	}
	if reply.Meta, err = json.Marshal(out); err != nil {
		return err
	}
	return c.send(f, reply)
}

// renew leases a version again.
func (c *conn) renew(ctx context.Context, visit *txn.Visit, id string) (out wire.Renewed) {
	v, err := c.s.t.Renew(ctx, c.s.name, visit, commitID(id))
	if err == nil {
		out.View, err = c.add(v)
	}
	if err != nil {
		out.Failure, _ = json.Marshal(failure(err))
	}
	return out
}

func (c *conn) beginVisit(visit *txn.Visit) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.visited != nil {
		return fmt.Errorf("%w: a second visit", ErrRequest)
	}
	c.visited = visit
	visit.Begin()
	return nil
}

// endVisit ends the visit of a connection that has ended. The versions of a client that lives
// are kept.
func (c *conn) endVisit() {
	if c.visited == nil {
		return
	}
	var versions []*view
	for handle, v := range c.views {
		if v.Commit != nil {
			versions = append(versions, v)
			delete(c.views, handle)
		}
	}
	c.visited.End(func() {
		for _, v := range versions {
			v.Release()
		}
	})
}
