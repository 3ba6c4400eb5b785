package local

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// source is the [txn.Remote] of a client.
type source struct{ c *Client }

// Source returns the database of the server. It works until the client is closed. [engine.OpenPeer] makes it a
// database of this process.
func (c *Client) Source() txn.Remote { return source{c} }

// Join is [engine.Options].Join. If the process that has the database open ends, this one may
// take its place, as after [Open].
func Join(ctx context.Context, held *engine.LockedError, o *engine.Options) (db *engine.DB, done func() error, err error) {
	to := OpenOptions{Engine: *o, Serve: o.Serve}
	if to.Serve == nil {
		to.Serve = func(dir string) (*engine.Serving, error) { return Serving(dir, nil, nil) }
	}
	if db, err = Open(ctx, filepath.Dir(held.Dir), to); err != nil {
		return nil, nil, err
	}
	return db, db.Close, nil
}

// lease is a version that the server keeps for this process. Where the connection ends, the
// next one renews it.
type lease struct {
	c      *Client
	commit *txn.Commit

	line int64 // of the file that lists it, plus 1; under c.mu

	mu     sync.Mutex
	l      *link
	handle uint32
	lost   error
}

// Lease implements [txn.Source].
func (s source) Lease(ctx context.Context, rev string) (txn.Lease, error) {
	out := &lease{c: s.c}
	err := s.c.again(ctx, func(l *link) error {
		if err := s.c.visitOnce(ctx, l); err != nil {
			return err
		}
		in, err := ask[wire.Lease](ctx, l, wire.OpLease, wire.Open{Rev: rev})
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

// keep notes a lease, so that the next connection renews it. If the connection of the lease
// has ended, the next one may have renewed the noted leases already: the error is an [ErrGone].
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
	c.peer.list(k)
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

// closeTime is how long the release of a lease waits for the answer. A server that answers
// later still ends the lease.
const closeTime = time.Second

// closeView closes a version at the server. The error is an [ErrGone]; other errors are ignored.
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
	l.c.peer.unlist(l)
	l.c.mu.Unlock()
	l.mu.Lock()
	at, handle, lost := l.l, l.handle, l.lost
	l.mu.Unlock()
	if open && lost == nil && !at.over() {
		_ = at.closeView(handle) // it ends with the connection at last
	}
}

// Pages implements [txn.Source].
func (s source) Pages(ctx context.Context, q txn.PageQuery) (pages [][]byte, err error) {
	in := wire.Pages{Names: pageNames(q.Names)}
	meta := in.Append(make([]byte, 0, 1+len(in.Names)*wire.IDSize))
	err = s.c.again(ctx, func(l *link) error {
		f, err := l.call(ctx, &wire.Frame{Op: wire.OpPages, Meta: meta, Body: q.Key}, false)
		if err != nil {
			return err
		}
		defer f.Close()
		pages, err = splitPages(f, q)
		return err
	})
	return pages, err
}

// PagesAtOnce implements [txn.FarSource].
func (source) PagesAtOnce() int { return wire.MaxPages }

// pageNames are the names of the pages in one request.
func pageNames(names []txn.PageName) [][wire.IDSize]byte {
	out := make([][wire.IDSize]byte, min(len(names), wire.MaxPages))
	for i := range out {
		out[i] = names[i]
	}
	return out
}

// splitPages returns the pages of an answer.
func splitPages(f *wire.Frame, q txn.PageQuery) ([][]byte, error) {
	pages, err := wire.SplitPages(f.Meta, f.Body)
	if err == nil && len(pages) > len(q.Names) && len(q.Key) == 0 {
		err = fmt.Errorf("%w: %d pages where %d were asked for", wire.ErrProtocol, len(pages), len(q.Names))
	}
	return pages, err
}

// Resolve implements [txn.Source].
func (s source) Resolve(ctx context.Context, rev string) (txn.CommitID, error) {
	out, err := query[wire.Commit](ctx, s.c, wire.OpResolve, wire.Open{Rev: rev})
	return commitID(out.ID), err
}

// Refs implements [txn.Source].
func (s source) Refs(ctx context.Context) (branches, tags []txn.Ref, err error) {
	out, err := query[wire.Refs](ctx, s.c, wire.OpRefs, none{})
	return refsIn(out.Branches), refsIn(out.Tags), err
}

// Ancestors implements [txn.Source].
func (s source) Ancestors(ctx context.Context, from txn.CommitID, n int) ([]txn.Ancestor, error) {
	records, _, err := s.records(ctx, wire.OpAncestors, &wire.Ancestors{From: from.String(), Limit: n})
	if err != nil {
		return nil, err
	}
	list := make([]txn.Ancestor, len(records))
	for i, r := range records {
		a := txn.Ancestor{Record: r.Value}
		switch n := copy(a.ID[:], r.Key); len(r.Key) {
		case n + 8:
			a.Expired = new(int64(binary.LittleEndian.Uint64(r.Key[n:])))
		case len(a.ID):
		default:
			return nil, fmt.Errorf("%w: a key of %d bytes names a commit", wire.ErrProtocol, len(r.Key))
		}
		list[i] = a
	}
	return list, nil
}

// Records implements [txn.Source].
func (s source) Records(ctx context.Context, of txn.RecordRange) (list []txn.Record, more bool, err error) {
	return s.records(ctx, wire.OpRecords, &wire.Records{Space: of.Space, From: of.From, To: of.To, Reverse: of.Reverse, Kept: of.Kept})
}

// records sends a request that is answered with records.
func (s source) records(ctx context.Context, op wire.Op, in any) (list []txn.Record, more bool, err error) {
	err = s.callJSON(ctx, op, in, func(f *wire.Frame) error {
		if len(f.Meta) != 1 {
			return fmt.Errorf("%w: %d bytes of meta with records", wire.ErrProtocol, len(f.Meta))
		}
		more = f.Meta[0] == 1
		return wire.SplitRecords(f.Body, func(key, value []byte) { list = append(list, txn.Record{Key: key, Value: value}) })
	})
	return list, more, err
}

// call sends a request that changes nothing, again on a new connection where the one before has
// ended. It passes the answer to use, and closes the descriptors that use leaves in it.
func (s source) call(ctx context.Context, op wire.Op, meta []byte, use func(f *wire.Frame) error) error {
	return s.c.again(ctx, func(l *link) error {
		f, err := l.call(ctx, &wire.Frame{Op: op, Meta: meta}, false)
		if err != nil {
			return err
		}
		defer f.Close()
		return use(f)
	})
}

// callJSON is call with a meta in JSON.
func (s source) callJSON(ctx context.Context, op wire.Op, in any, use func(f *wire.Frame) error) error {
	meta, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return s.call(ctx, op, meta, use)
}

// Payload implements [txn.Source].
func (s source) Payload(ctx context.Context, a txn.PackAddress, off, n uint64) (b []byte, err error) {
	in := wire.Pack{Pack: a.Pack.String(), Offset: a.Offset, Length: a.Length, Off: off, N: n}
	err = s.callJSON(ctx, wire.OpPayload, &in, func(f *wire.Frame) error {
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

// recalled gives the files of packs back, then answers the recall.
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
	in := wire.Pack{Pack: a.Pack.String(), Offset: a.Offset, Length: a.Length}
	err = s.callJSON(ctx, wire.OpPack, &in, func(f *wire.Frame) error {
		if len(f.Files) != 1 {
			return fmt.Errorf("%w: %d descriptors where one was asked for", wire.ErrProtocol, len(f.Files))
		}
		file, f.Files = f.Files[0], nil
		return nil
	})
	return file, err
}
