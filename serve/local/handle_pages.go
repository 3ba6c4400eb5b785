package local

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// Peers read pages of the index and the files of packs, and decode arrays themselves.

// lease opens a version as open does, for a client that reads its pages.
func (c *conn) lease(ctx context.Context, in *wire.Open) (*wire.Lease, error) {
	v, err := c.s.t.View(ctx, c.who, c.s.name, in.Rev)
	if err != nil {
		return nil, err
	}
	if v.Commit == nil {
		v.Release()
		return nil, fmt.Errorf("%w: %s is not a version", ErrRequest, in.Rev)
	}
	handle, err := c.add(v)
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
	db, err := c.db()
	if err != nil {
		return err
	}
	return c.sendPages(ctx, f, in.Names, db.Versions().Remote().Pages)
}

// pageBuffers holds memory for the pages of an answer to a request for more than pooledFrom
// pages. A short answer that a client does not read must not hold a long buffer.
var pageBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 256<<10); return &b }}

const pooledFrom = 16

// sendPages sends pages that from has.
func (c *conn) sendPages(ctx context.Context, f *wire.Frame, in [][wire.IDSize]byte, from func(context.Context, txn.PageQuery) ([][]byte, error)) error {
	if len(f.Body) > 0 && len(in) > 1 {
		return fmt.Errorf("%w: a key with %d names", ErrRequest, len(in))
	}
	h, err := c.hold(ctx, memoryFirst)
	if err != nil {
		return err
	}
	defer h.free()
	names := make([]txn.PageName, len(in))
	for i := range names {
		names[i] = in[i]
	}
	var into []byte
	if len(names) > pooledFrom {
		b := pageBuffers.Get().(*[]byte)
		defer pageBuffers.Put(b)
		into = *b
	}
	pages, err := from(ctx, txn.PageQuery{Names: names, Key: f.Body, Into: into})
	if err != nil {
		return err
	}
	body := pages[0]
	if len(pages) > 1 {
		body = into
		for _, page := range pages {
			body = append(body, page...) // in into it lies there already
		}
	}
	h.set(int64(max(cap(into), len(body))))
	return c.send(f, &wire.Frame{Meta: wire.PageSizes(pages), Body: body})
}

// ancestors sends the records of commits.
func (c *conn) ancestors(ctx context.Context, f *wire.Frame) error {
	var in wire.Ancestors
	return c.sendRecords(ctx, f, &in, func() (body []byte, more bool, err error) {
		db, err := c.db()
		if err != nil {
			return nil, false, err
		}
		c.lent.Store(true) // a recall tells the client that versions may have expired
		list, err := db.Versions().Remote().Ancestors(ctx, commitID(in.From), in.Limit)
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
		db, err := c.db()
		if err != nil {
			return nil, false, err
		}
		list, more, err := db.Versions().Remote().Records(ctx, txn.RecordRange{Space: in.Space, From: in.From, To: in.To, Reverse: in.Reverse, Kept: in.Kept})
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

// packAddress returns the source of the database and the address of the payload in a request.
func (c *conn) packAddress(f *wire.Frame) (in wire.Pack, src txn.Source, a txn.PackAddress, err error) {
	if err = wire.ParseJSON(f.Op, f.Meta, &in); err != nil {
		return in, nil, a, err
	}
	db, err := c.db()
	if err != nil {
		return in, nil, a, err
	}
	id, ok := txn.ParsePackID(in.Pack)
	if !ok {
		return in, nil, a, fmt.Errorf("%w: %q does not name a pack", ErrRequest, in.Pack)
	}
	return in, db.Versions().Remote(), txn.PackAddress{Pack: id, Offset: in.Offset, Length: in.Length}, nil
}

// pack sends the descriptor of a pack. The file is leased until the client has closed the
// descriptor and all maps of the file.
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

// recallTime is how long a collection waits for clients to close files. Space in a file that
// a client closes later is reclaimed by the next collection.
const recallTime = time.Second

// recall asks all clients to close the files of packs, and waits up to recallTime for them.
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

// askBack sends a recall. The channel that it returns is closed when the client has answered
// or the connection has ended.
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

// returned notes the answer to all recalls that were sent.
func (c *conn) returned() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, back := range c.recalls {
		close(back)
	}
	c.recalls = nil
}
