package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/internal/sockets"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// What is away of a database is fetched with the credentials of the process that asks for it. A client that reads
// buckets itself passes one end of a pair of connections, on which the server asks it:
//
//	client ── bucket, descriptor ──▶ conn
//	client ◀── bucket: what to read ── lender
//	client ── reply ──▶ lender

// lender asks a client to read its buckets.
type lender struct {
	w     *wire.Conn
	heard atomic.Uint64 // frames received

	mu    sync.Mutex
	last  uint32
	waits map[uint32]chan *wire.Frame // nil when the connection has ended
}

// lend takes the connection to the buckets of a client.
func (c *conn) lend(_ context.Context, f *wire.Frame) error {
	if len(f.Files) != 1 {
		return fmt.Errorf("%w: %d descriptors where one is expected", ErrRequest, len(f.Files))
	}
	u, err := net.FileConn(f.Files[0])
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRequest, err)
	}
	l := &lender{w: wire.NewConn(u, wire.Limits{}, c.s.o.WriteTimeout), waits: map[uint32]chan *wire.Frame{}}
	context.AfterFunc(c.ctx, func() { _ = u.Close() })
	go l.receive()
	c.s.mu.Lock()
	c.lender = l
	c.s.mu.Unlock()
	return c.send(f, &wire.Frame{})
}

func (l *lender) receive() {
	defer l.w.Release()
	for {
		f, err := l.w.Receive()
		l.heard.Add(1)
		l.mu.Lock()
		if err != nil {
			for _, reply := range l.waits {
				close(reply)
			}
			l.waits = nil
			l.mu.Unlock()
			return
		}
		f.Close()
		if reply := l.waits[f.ID]; reply != nil {
			delete(l.waits, f.ID)
			reply <- f // there is room for one
		}
		l.mu.Unlock()
	}
}

func (l *lender) ask(ctx context.Context, in wire.Bucket) (*wire.Frame, error) {
	meta, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	reply := make(chan *wire.Frame, 1)
	l.mu.Lock()
	if l.waits == nil {
		l.mu.Unlock()
		return nil, ErrGone
	}
	l.last++
	id := l.last
	l.waits[id] = reply
	l.mu.Unlock()
	if err := l.w.Send(&wire.Frame{ID: id, Op: wire.OpBucket, Meta: meta}); err != nil {
		return nil, gone(err)
	}
	look := time.NewTicker(lenderTime)
	defer look.Stop()
	heard := l.heard.Load()
	for pinged := false; ; {
		select {
		case f, ok := <-reply:
			if !ok {
				return nil, ErrGone
			}
			if f.Flags&wire.FlagError != 0 {
				return nil, remote(f.Meta)
			}
			return f, nil
		case <-ctx.Done():
			err = ctx.Err()
		case <-look.C: // a process that is stopped must not keep others waiting
			now := l.heard.Load()
			if !pinged || now != heard {
				pinged, heard = true, now
				err = l.w.Send(&wire.Frame{Op: wire.OpPing})
			} else {
				err = fmt.Errorf("the process that asks for it does not answer: %w", os.ErrDeadlineExceeded)
			}
		}
		if err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.waits, id)
			return nil, err
		}
	}
}

// Bucket implements [txn.Asker].
func (c *conn) Bucket(url string) kv.Store { return lentBucket{c: c, url: url} }

// lentBucket reads a bucket through the client.
type lentBucket struct {
	kv.Store // nil
	c        *conn
	url      string
}

// lenderTime is how long a client that lends its buckets may take to say so, and to answer a ping.
var lenderTime = 10 * time.Second // tests change it

// lender returns the lender of the client.
func (s lentBucket) lender(ctx context.Context) (*lender, error) {
	c := s.c
	late := time.Now().Add(lenderTime)
	for {
		c.s.mu.Lock()
		l := c.lender
		c.s.mu.Unlock()
		if l != nil {
			return l, nil
		}
		if !c.lends || time.Now().After(late) {
			return nil, fmt.Errorf("process %d, which asks for it, does not read remotes: %w", c.pid, errors.ErrUnsupported)
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s lentBucket) ask(ctx context.Context, in wire.Bucket) (*wire.Frame, error) {
	l, err := s.lender(ctx)
	if err != nil {
		return nil, err
	}
	in.URL = s.url
	return l.ask(ctx, in)
}

// Get implements [kv.Reader].
func (s lentBucket) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	in := wire.Bucket{Key: key}
	in.Limit, _ = rng.Limit()
	in.Off, in.N, _ = rng.Bounds()
	f, err := s.ask(ctx, in)
	if err != nil {
		return nil, err
	}
	return f.Body, nil
}

var _ kv.Conditional = lentBucket{}

// GetTagged implements [kv.Conditional]. A user who may only read the database says nothing of what the bucket has now.
func (s lentBucket) GetTagged(ctx context.Context, key string, known kv.Tag, limit int64) (got kv.Tagged, err error) {
	if !s.c.who.Admin {
		return got, fmt.Errorf("%w: it is looked up in what is known of the remote", kv.ErrReadOnly)
	}
	f, err := s.ask(ctx, wire.Bucket{Key: key, Tagged: true, Tag: string(known), Limit: limit})
	if err == nil {
		got.Value = f.Body
		err = json.Unmarshal(f.Meta, &wire.BucketTag{Tag: (*string)(&got.Tag), Time: &got.Time})
	}
	return got, err
}

// SetTagged implements [kv.Conditional].
func (lentBucket) SetTagged(context.Context, string, []byte, kv.Tag) (kv.Tag, error) {
	return kv.NoValue, kv.ErrReadOnly
}

// LendBucket has the server read a bucket through this process.
func (s source) LendBucket(url string, store kv.Store) {
	s.c.mu.Lock()
	if s.c.buckets == nil {
		s.c.buckets = map[string]kv.Store{}
	}
	s.c.buckets[url] = store
	l := s.c.l
	s.c.mu.Unlock()
	l.lend(s.c.open)
}

// lend passes a connection to the buckets of this process, once. If it fails, requests that need them do.
func (l *link) lend(ctx context.Context) {
	l.lending.Do(func() {
		ours, theirs, err := sockets.Pair()
		if err != nil {
			return
		}
		file, err := theirs.File()
		if err == nil {
			var f *wire.Frame
			if f, err = l.call(ctx, &wire.Frame{Op: wire.OpBucket, Pass: []wire.Descriptor{file}}, false); err == nil {
				f.Close()
			}
			_ = file.Close()
		}
		_ = theirs.Close()
		if err != nil {
			_ = ours.Close()
			return
		}
		go l.client.readBuckets(ours)
	})
}

// readBuckets answers a lender.
func (c *Client) readBuckets(u net.Conn) {
	w := wire.NewConn(u, wire.Limits{}, 0)
	ctx, cancel := context.WithCancel(c.open)
	var wg sync.WaitGroup
	defer func() {
		cancel()
		_ = w.Close()
		wg.Wait()
		w.Release()
	}()
	context.AfterFunc(ctx, func() { _ = w.Close() })
	room := make(chan struct{}, 64)
	for {
		f, err := w.Receive()
		if err != nil {
			return
		}
		f.Close()
		if f.Op == wire.OpPing {
			if w.Send(&wire.Frame{Op: f.Op, Flags: wire.FlagReply}) != nil {
				return
			}
			continue
		}
		room <- struct{}{}
		wg.Go(func() {
			reply, err := c.readBucket(ctx, f)
			if err != nil {
				reply = &wire.Frame{Flags: wire.FlagError}
				reply.Meta, _ = json.Marshal(failure(err))
			}
			reply.ID, reply.Op, reply.Flags = f.ID, f.Op, reply.Flags|wire.FlagReply
			if w.Send(reply) != nil {
				_ = w.Close()
			}
			<-room
		})
	}
}

func (c *Client) readBucket(ctx context.Context, f *wire.Frame) (*wire.Frame, error) {
	var in wire.Bucket
	if err := wire.ParseJSON(f.Op, f.Meta, &in); err != nil {
		return nil, err
	}
	c.mu.Lock()
	store := c.buckets[in.URL]
	c.mu.Unlock()
	if store == nil {
		return nil, fmt.Errorf("%w: this process does not read the remote %s", ErrRequest, in.URL)
	}
	if t, ok := store.(kv.Conditional); ok && in.Tagged {
		got, err := t.GetTagged(ctx, in.Key, kv.Tag(in.Tag), in.Limit)
		if err != nil {
			return nil, err
		}
		meta, err := json.Marshal(wire.BucketTag{Tag: (*string)(&got.Tag), Time: &got.Time})
		return &wire.Frame{Meta: meta, Body: got.Value}, err
	}
	rng := kv.Span(in.Off, in.N)
	switch {
	case in.Limit > 0:
		rng = kv.AtMost(in.Limit)
	case in.N < 0:
		rng = kv.From(in.Off)
	}
	b, err := store.Get(ctx, in.Key, rng)
	return &wire.Frame{Body: b}, err
}

var _ txn.Asker = (*conn)(nil)
