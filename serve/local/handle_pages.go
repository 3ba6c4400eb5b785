package local

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// Peers read pages of the index and the files of packs, and decode arrays themselves.

// lease opens a version as open does, for a client that reads its pages.
func (c *conn) lease(ctx context.Context, in *wire.Open) (*wire.Lease, error) {
	name, v, err := c.viewOf(ctx, in)
	if err != nil {
		return nil, err
	}
	if v.Commit == nil {
		v.Release()
		return nil, fmt.Errorf("%w: %s is no version", ErrRequest, in.Rev)
	}
	handle, err := c.add(name, v)
	if err != nil {
		return nil, err
	}
	return &wire.Lease{View: handle, ID: v.Commit.ID.String(), Record: txn.EncodeCommit(v.Commit)}, nil
}

// pages sends pages of the index.
func (c *conn) pages(ctx context.Context, f *wire.Frame) error {
	in, err := wire.ParsePages(f.Meta)
	if err != nil {
		return err
	}
	db, err := c.db(in.Database)
	if err != nil {
		return err
	}
	h, err := c.hold(ctx, memoryFirst)
	if err != nil {
		return err
	}
	defer h.free()
	names := make([]txn.PageName, len(in.Names))
	for i := range names {
		names[i] = in.Names[i]
	}
	pages, err := db.PageSource().Pages(ctx, names)
	if err != nil {
		return err
	}
	var body []byte
	if len(pages) == 1 {
		body = pages[0]
	} else {
		for _, p := range pages {
			body = append(body, p...)
		}
	}
	h.set(int64(len(body)))
	return c.send(f, &wire.Frame{Meta: wire.PageSizes(pages), Body: body})
}

// ancestors sends the records of commits.
func (c *conn) ancestors(ctx context.Context, f *wire.Frame) error {
	var in wire.Ancestors
	return c.sendRecords(ctx, f, &in, func() (body []byte, more bool, err error) {
		db, err := c.db(in.Database)
		if err != nil {
			return nil, false, err
		}
		c.lent.Store(true) // it is to know when versions expire
		list, err := db.PageSource().Ancestors(ctx, commitID(in.From), in.Limit)
		for _, a := range list {
			key := a.ID[:]
			if a.Expired != nil {
				key = binary.LittleEndian.AppendUint64(key[:len(key):len(key)], uint64(*a.Expired))
			}
			body = wire.AppendRecord(body, key, a.Record)
		}
		return body, false, err
	})
}

// records sends records of the index.
func (c *conn) records(ctx context.Context, f *wire.Frame) error {
	var in wire.Records
	return c.sendRecords(ctx, f, &in, func() (body []byte, more bool, err error) {
		db, err := c.db(in.Database)
		if err != nil {
			return nil, false, err
		}
		list, more, err := db.PageSource().Records(ctx, txn.RecordRange{Space: in.Space, From: in.From, To: in.To, Reverse: in.Reverse})
		for _, r := range list {
			body = wire.AppendRecord(body, r.Key, r.Value)
		}
		return body, more, err
	})
}

// sendRecords answers a request for records.
func (c *conn) sendRecords(ctx context.Context, f *wire.Frame, in any, read func() (body []byte, more bool, err error)) error {
	if err := wire.ParseJSON(f.Op, f.Meta, in); err != nil {
		return err
	}
	h, err := c.hold(ctx, memoryFirst)
	if err != nil {
		return err
	}
	defer h.free()
	body, more, err := read()
	if err != nil {
		return err
	}
	h.set(int64(len(body)))
	meta := []byte{0}
	if more {
		meta[0] = 1
	}
	return c.send(f, &wire.Frame{Meta: meta, Body: body})
}

// packAddress is the database and the payload that a request is about.
func (c *conn) packAddress(f *wire.Frame) (in wire.Pack, src txn.Source, a txn.PackAddress, err error) {
	if err = wire.ParseJSON(f.Op, f.Meta, &in); err != nil {
		return in, nil, a, err
	}
	db, err := c.db(in.Database)
	if err != nil {
		return in, nil, a, err
	}
	id, ok := txn.ParsePackID(in.Pack)
	if !ok {
		return in, nil, a, fmt.Errorf("%w: %q does not name a pack", ErrRequest, in.Pack)
	}
	return in, db.PageSource(), txn.PackAddress{Pack: id, Offset: in.Offset, Length: in.Length}, nil
}

// pack sends the descriptor of a pack, which is leased until the client and all maps of it
// have ended.
func (c *conn) pack(ctx context.Context, f *wire.Frame) error {
	_, src, a, err := c.packAddress(f)
	if err != nil {
		return err
	}
	if !c.files {
		return wire.ErrNoFiles
	}
	file, err := src.Pack(ctx, a)
	if err != nil {
		return err
	}
	defer file.Close()
	c.lent.Store(true)
	return c.send(f, &wire.Frame{Pass: []wire.Descriptor{file}})
}

// payload sends bytes of a payload.
func (c *conn) payload(ctx context.Context, f *wire.Frame) error {
	in, src, a, err := c.packAddress(f)
	if err != nil {
		return err
	}
	n := min(in.N, uint64(c.s.o.MaxBody))
	h, err := c.hold(ctx, int64(n))
	if err != nil {
		return err
	}
	defer h.free()
	b, err := src.Payload(ctx, a, in.Off, n)
	if err != nil {
		return err
	}
	return c.send(f, &wire.Frame{Body: b})
}

// recallTime is how long a client may take to give files back. What it keeps for longer
// keeps its space until the next collection.
const recallTime = time.Second

// recall asks all clients for the files of packs that they have.
func (s *server) recall() {
	s.mu.Lock()
	var asked []chan struct{}
	for c := range s.conns {
		if c.lent.Swap(false) {
			asked = append(asked, c.askBack())
		}
	}
	s.mu.Unlock()
	late := time.After(recallTime)
	for _, back := range asked {
		select {
		case <-back:
		case <-late:
			return
		}
	}
}

// askBack sends a recall, and returns what is closed when the client has answered or the
// connection has ended.
func (c *conn) askBack() chan struct{} {
	back := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recalls = append(c.recalls, back)
	go func() {
		if c.w.Send(&wire.Frame{Op: wire.OpRecall}) != nil {
			c.returned()
		}
	}()
	return back
}

// returned takes note that a client has given files back.
func (c *conn) returned() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, back := range c.recalls {
		close(back)
	}
	c.recalls = nil
}
