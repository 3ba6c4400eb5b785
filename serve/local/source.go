package local

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// source is the [txn.Source] of a client.
type source struct {
	c  *Client
	db string
}

// Source returns what reads a database page by page through the process that has it
// open, "" for the database of the socket.
func (c *Client) Source(db string) txn.Source { return source{c, db} }

// Peer returns what reads a database, "" for that of the socket, with the caches and
// workers of this process. The caller closes it before the client.
func (c *Client) Peer(db string, o *engine.Options) (*engine.DB, error) {
	return engine.OpenPeer(c.o.Dir, c.Identity(), c.Source(db), o)
}

// lease is a version that the server keeps for this process. Where the connection ends, the
// next one renews it.
type lease struct {
	c      *Client
	db     string
	commit *txn.Commit

	mu     sync.Mutex
	l      *link
	handle uint32
	lost   error
}

// Lease implements [txn.Source].
func (s source) Lease(ctx context.Context, rev string) (txn.Lease, error) {
	out := &lease{c: s.c, db: s.db}
	err := s.c.again(ctx, func(l *link) error {
		in, err := ask[wire.Lease](ctx, l, wire.OpLease, wire.Open{Database: s.db, Rev: rev})
		if err != nil {
			return err
		}
		if out.commit, err = txn.DecodeCommit(commitID(in.ID), in.Record); err != nil {
			return err
		}
		out.l, out.handle = l, in.View
		return s.c.keep(out)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// keep notes a lease, to be renewed on the next connection. If that of the lease has ended,
// others may have been renewed already, and the error is an [ErrGone].
func (c *Client) keep(k *lease) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.l.over() {
		return k.l.why()
	}
	if c.leases == nil {
		c.leases = map[*lease]struct{}{}
	}
	c.leases[k] = struct{}{}
	return nil
}

// renew leases every version again, on a new connection, before anything else is read on
// it.
func (c *Client) renew(ctx context.Context, l *link) error {
	c.mu.Lock()
	leases := slices.Collect(maps.Keys(c.leases))
	c.mu.Unlock()
	for _, k := range leases {
		in, err := ask[wire.Lease](ctx, l, wire.OpLease, wire.Open{Database: k.db, Rev: k.commit.ID.String()})
		if err == nil && commitID(in.ID) != k.commit.ID { // a branch has this name
			err = fmt.Errorf("commit %s: %w", k.commit.ID.Short(), txn.ErrNoRef)
		}
		if err != nil && (errors.Is(err, ErrGone) || ctx.Err() != nil) {
			return err
		}
		if c.renewed(k, l, in.View, err) || err != nil {
			continue
		}
		if err := l.closeView(in.View); err != nil {
			return err
		}
	}
	return nil
}

// renewed notes where a version is kept now. It is false if the lease was released meanwhile.
func (c *Client) renewed(k *lease, l *link, handle uint32, lost error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, open := c.leases[k]
	if open {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.l, k.handle, k.lost = l, handle, lost
	}
	return open
}

// closeTime is how long a process that does not answer keeps the end of a lease waiting. It
// does what it was asked to later.
const closeTime = time.Second

// closeView gives a version up. The error is an [ErrGone].
func (l *link) closeView(handle uint32) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if _, err := ask[none](ctx, l, wire.OpClose, wire.Handle{View: handle}); errors.Is(err, ErrGone) {
		return err
	}
	return nil
}

// Commit implements [txn.Lease].
func (l *lease) Commit() *txn.Commit { return l.commit }

// Check implements [txn.Lease].
func (l *lease) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// Release implements [txn.Lease].
func (l *lease) Release() {
	l.c.mu.Lock()
	_, open := l.c.leases[l]
	delete(l.c.leases, l)
	l.c.mu.Unlock()
	l.mu.Lock()
	at, handle, lost := l.l, l.handle, l.lost
	l.mu.Unlock()
	if open && lost == nil && !at.over() {
		_ = at.closeView(handle) // it ends with the connection at last
	}
}

// Pages implements [txn.Source].
func (s source) Pages(ctx context.Context, names []txn.PageName) (pages [][]byte, err error) {
	in := wire.Pages{Names: make([][wire.IDSize]byte, min(len(names), wire.MaxPages)), Database: s.db}
	for i := range in.Names {
		in.Names[i] = names[i]
	}
	meta := in.Append(make([]byte, 0, 1+len(in.Names)*wire.IDSize+len(s.db)))
	err = s.c.again(ctx, func(l *link) error {
		f, err := l.call(ctx, &wire.Frame{Op: wire.OpPages, Meta: meta}, false)
		if err != nil {
			return err
		}
		defer f.Close()
		pages, err = wire.SplitPages(f.Meta, f.Body)
		return err
	})
	if err == nil && len(pages) > len(names) {
		err = fmt.Errorf("%w: %d pages where %d were asked for", wire.ErrProtocol, len(pages), len(names))
	}
	return pages, err
}

// Resolve implements [txn.Source].
func (s source) Resolve(ctx context.Context, rev string) (txn.CommitID, error) {
	c, err := s.c.Resolve(ctx, s.db, rev)
	if err != nil {
		return txn.CommitID{}, err
	}
	return c.ID, nil
}

// Refs implements [txn.Source].
func (s source) Refs(ctx context.Context) (branches, tags []txn.Ref, err error) {
	return s.c.Refs(ctx, s.db)
}

// Ancestors implements [txn.Source].
func (s source) Ancestors(ctx context.Context, from txn.CommitID, n int) (list []txn.Ancestor, err error) {
	in := wire.Ancestors{Database: s.db, From: from.String(), Limit: n}
	_, err = s.records(ctx, wire.OpAncestors, &in, func() { list = nil }, func(key, value []byte) error {
		a := txn.Ancestor{Record: value}
		switch n := copy(a.ID[:], key); len(key) {
		case n + 8:
			a.Expired = new(int64(binary.LittleEndian.Uint64(key[n:])))
		case len(a.ID):
		default:
			return fmt.Errorf("%w: a key of %d bytes names a commit", wire.ErrProtocol, len(key))
		}
		list = append(list, a)
		return nil
	})
	return list, err
}

// Records implements [txn.Source].
func (s source) Records(ctx context.Context, of txn.RecordRange) (list []txn.Record, more bool, err error) {
	in := wire.Records{Database: s.db, Space: of.Space, From: of.From, To: of.To, Reverse: of.Reverse}
	more, err = s.records(ctx, wire.OpRecords, &in, func() { list = nil }, func(key, value []byte) error {
		list = append(list, txn.Record{Key: key, Value: value})
		return nil
	})
	return list, more, err
}

// records asks for records. It calls begin before the first one of an answer.
func (s source) records(ctx context.Context, op wire.Op, in any, begin func(), fn func(key, value []byte) error) (more bool, err error) {
	meta, err := json.Marshal(in)
	if err != nil {
		return false, err
	}
	err = s.c.again(ctx, func(l *link) error {
		f, err := l.call(ctx, &wire.Frame{Op: op, Meta: meta}, false)
		if err != nil {
			return err
		}
		defer f.Close()
		if len(f.Meta) != 1 {
			return fmt.Errorf("%w: %d bytes of meta with records", wire.ErrProtocol, len(f.Meta))
		}
		begin()
		more = f.Meta[0] == 1
		return wire.SplitRecords(f.Body, fn)
	})
	return more, err
}

// Payload implements [txn.Source].
func (s source) Payload(ctx context.Context, a txn.PackAddress, off, n uint64) (b []byte, err error) {
	meta, err := json.Marshal(wire.Pack{Database: s.db, Pack: a.Pack.String(), Offset: a.Offset, Length: a.Length, Off: off, N: n})
	if err != nil {
		return nil, err
	}
	err = s.c.again(ctx, func(l *link) error {
		f, err := l.call(ctx, &wire.Frame{Op: wire.OpPayload, Meta: meta}, false)
		if err != nil {
			return err
		}
		defer f.Close()
		b = f.Body
		return nil
	})
	return b, err
}

// Recalled implements [txn.Source].
func (s source) Recalled(letGo func()) (stop func()) {
	c := s.c
	c.recalls.Lock()
	defer c.recalls.Unlock()
	c.letGo = append(c.letGo, &letGo)
	return func() {
		c.recalls.Lock()
		defer c.recalls.Unlock()
		c.letGo = slices.DeleteFunc(c.letGo, func(f *func()) bool { return f == &letGo })
	}
}

// recalled gives the files of packs back, and says so.
func (l *link) recalled() {
	l.client.recalls.Lock()
	letGo := slices.Clone(l.client.letGo)
	l.client.recalls.Unlock()
	for _, fn := range letGo {
		(*fn)()
	}
	_ = l.w.Send(&wire.Frame{Op: wire.OpRecall}) // if it fails the connection ends
}

// Pack implements [txn.Source].
func (s source) Pack(ctx context.Context, a txn.PackAddress) (file txn.PackFile, err error) {
	meta, err := json.Marshal(wire.Pack{Database: s.db, Pack: a.Pack.String(), Offset: a.Offset, Length: a.Length})
	if err != nil {
		return nil, err
	}
	err = s.c.again(ctx, func(l *link) error {
		f, err := l.call(ctx, &wire.Frame{Op: wire.OpPack, Meta: meta}, false)
		if err != nil {
			return err
		}
		if len(f.Files) != 1 {
			f.Close()
			return fmt.Errorf("%w: %d descriptors where one was asked for", wire.ErrProtocol, len(f.Files))
		}
		file = f.Files[0]
		return nil
	})
	return file, err
}
