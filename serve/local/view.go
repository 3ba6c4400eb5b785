package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// View is a version, read through a server. It never changes. Safe for concurrent
// use; Close when done.
type View struct {
	c      *Client
	db     string
	commit *txn.Commit
	shelf
}

var (
	_ kv.ReadLister = (*View)(nil)
	_ kv.Locator    = (*View)(nil)
	_ kv.DirLister  = (*View)(nil)

	_ kv.BatchReader = (*View)(nil)
)

// View opens what a revision names: a branch, a tag, a commit, and all else that
// the command line takes. db is "" for the database of the socket.
func (c *Client) View(ctx context.Context, db, rev string) (*View, error) {
	v := &View{c: c, db: db}
	err := c.again(ctx, func(l *link) error {
		out, err := ask[wire.View](ctx, l, wire.OpOpen, wire.Open{Database: db, Rev: rev})
		if err != nil {
			return err
		}
		if out.Session != nil {
			_, _ = ask[none](ctx, l, wire.OpClose, wire.Handle{View: out.View}) // it ends with the connection at last
			return fmt.Errorf("%w: %s is a session", ErrRequest, rev)
		}
		if out.Commit != nil {
			v.commit = commitIn(out.Commit)
		}
		v.l, v.handle = l, out.View
		return nil
	})
	if err != nil {
		return nil, err
	}
	v.shelf.reopen = v.reopen
	return v, nil
}

// Commit is the version; nil for what is no database.
func (v *View) Commit() *txn.Commit { return v.commit }

// reopen opens the same version on another connection.
func (v *View) reopen(ctx context.Context) (*link, uint32, error) {
	l, err := v.c.link(ctx)
	if err != nil {
		return nil, 0, err
	}
	rev := ""
	if v.commit != nil {
		rev = v.commit.ID.String()
	}
	out, err := ask[wire.View](ctx, l, wire.OpOpen, wire.Open{Database: v.db, Rev: rev})
	return l, out.View, err
}

// Close gives the version up. Calling it twice is fine.
func (v *View) Close() error { return v.shelf.close() }

// shelf is a handle of a view on a connection: what versions and sessions have in
// common.
type shelf struct {
	reopen func(ctx context.Context) (*link, uint32, error)
	// note, if not nil, is told what was read of a key; the zero id is no value.
	note func(key string, id kv.ID, err error)

	mu     sync.Mutex // held while it is opened again
	l      *link
	handle uint32
	closed bool
}

// at returns the connection and the handle. With an error it returns the connection
// that it was tried on, if any.
func (s *shelf) at(ctx context.Context) (*link, uint32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, 0, kv.ErrClosed
	}
	if !s.l.over() {
		return s.l, s.handle, nil
	}
	l, handle, err := s.reopen(ctx)
	if err == nil {
		s.l, s.handle = l, handle
	}
	return l, handle, err
}

// read runs fn, and repeats it on a new connection while the one before has ended.
func (s *shelf) read(ctx context.Context, fn func(l *link, handle uint32) error) error {
	for n := 0; ; n++ {
		l, handle, err := s.at(ctx)
		if l == nil {
			return err
		}
		if err == nil {
			err = fn(l, handle)
		}
		if err == nil || !errors.Is(err, ErrGone) || n >= reconnects || ctx.Err() != nil {
			return err
		}
		<-l.ended
	}
}

// close closes the view at the server, if that is there.
func (s *shelf) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.l.over() {
		return nil
	}
	_, err := ask[none](context.Background(), s.l, wire.OpClose, wire.Handle{View: s.handle})
	if errors.Is(err, ErrGone) || errors.Is(err, txn.ErrClosed) {
		err = nil
	}
	return err
}

func (s *shelf) noted(key string, id kv.ID, err error) {
	if s.note != nil {
		s.note(key, id, err)
	}
}

// bytesAtOnce is how much of a value is read in one piece.
const bytesAtOnce = 64 << 20

// fetch asks for a range of a value and gives the reply to fn.
func (s *shelf) fetch(ctx context.Context, key string, rng kv.Range, fn func(size int64, id kv.ID, b []byte) error) error {
	meta := wire.Get{Range: rangeOut(rng), Key: key}
	err := s.read(ctx, func(l *link, handle uint32) error {
		meta.View = handle
		f, err := l.call(ctx, &wire.Frame{Op: wire.OpGet, Meta: meta.Append(make([]byte, 0, 24+len(key)))}, false)
		if err != nil {
			return err
		}
		defer f.Close()
		found, err := wire.ParseFound(f.Meta)
		if err != nil {
			return err
		}
		return fn(found.Size, kv.ID(found.ID), f.Body)
	})
	return err
}

// Get implements [kv.Reader].
func (s *shelf) Get(ctx context.Context, key string, rng kv.Range) (out []byte, err error) {
	err = s.fetch(ctx, key, rng, func(_ int64, id kv.ID, b []byte) error {
		s.noted(key, id, nil)
		if out = b; out == nil {
			out = []byte{}
		}
		return nil
	})
	if err != nil {
		s.noted(key, kv.ID{}, err)
		return nil, err
	}
	return out, nil
}

// Locate implements [kv.Locator].
func (s *shelf) Locate(ctx context.Context, key string) (kv.Value, error) {
	v := &value{s: s, key: key}
	err := s.read(ctx, func(l *link, handle uint32) error {
		meta := wire.Stat{View: handle, Key: key}
		f, err := l.call(ctx, &wire.Frame{Op: wire.OpStat, Meta: meta.Append(nil)}, false)
		if err != nil {
			return err
		}
		defer f.Close()
		found, err := wire.ParseFound(f.Meta)
		v.size, v.id = found.Size, kv.ID(found.ID)
		return err
	})
	s.noted(key, v.id, err)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// value is a value that a server has.
type value struct {
	s    *shelf
	key  string
	size int64
	id   kv.ID
}

// Size implements [kv.Value].
func (v *value) Size() int64 { return v.size }

// ID implements [kv.Value].
func (v *value) ID() kv.ID { return v.id }

// View implements [kv.Value].
func (v *value) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	off, n, err := rng.Resolve(v.size)
	if err != nil {
		return err
	}
	var failed error
	err = v.s.fetch(ctx, v.key, kv.Span(off, n), func(size int64, id kv.ID, b []byte) error {
		if size != v.size || id != v.id {
			return fmt.Errorf("%s: %w", v.key, kv.ErrChanged)
		}
		failed = fn(b)
		return nil
	})
	if errors.Is(err, kv.ErrNotFound) || errors.Is(err, kv.ErrRange) {
		err = fmt.Errorf("%s: %w", v.key, kv.ErrChanged)
	}
	if err != nil {
		return err
	}
	return failed
}

// pageKeys is how many keys are asked for at a time.
const pageKeys = 5000

// List implements [kv.Lister].
func (s *shelf) List(ctx context.Context, o kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		in := wire.List{Prefix: o.Prefix, After: o.After, Limit: pageKeys}
		for name, err := range s.pages(ctx, wire.OpList, &in) {
			if !yield(name, err) {
				return
			}
			in.After = name
		}
	}
}

// ListDir implements [kv.DirLister].
func (s *shelf) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	return func(yield func(kv.DirEntry, error) bool) {
		in := wire.List{Prefix: prefix, Limit: pageKeys}
		for name, err := range s.pages(ctx, wire.OpListDir, &in) {
			var e kv.DirEntry
			e.Name, e.Prefix = strings.CutSuffix(name, "/")
			if !yield(e, err) {
				return
			}
			in.After, in.AfterPrefix = e.Name, e.Prefix
		}
	}
}

// pages yields names page by page. The caller notes in the request how far it got.
func (s *shelf) pages(ctx context.Context, op wire.Op, in *wire.List) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for more := true; more; {
			var page wire.Page
			err := s.read(ctx, func(l *link, handle uint32) error {
				in.View = handle
				f, err := l.call(ctx, &wire.Frame{Op: op, Meta: in.Append(nil)}, false)
				if err != nil {
					return err
				}
				defer f.Close()
				page, err = wire.ParsePage(f.Meta, f.Body)
				return err
			})
			for i := 0; err == nil && i < len(page.Names); i++ {
				if !yield(page.Names[i], nil) {
					return
				}
				err = ctx.Err()
			}
			if err != nil {
				yield("", err)
				return
			}
			more = page.More && len(page.Names) > 0
		}
	}
}

// GetMany implements [kv.BatchReader].
func (s *View) GetMany(ctx context.Context, reqs []kv.Request) ([][]byte, error) {
	in := wire.GetMany{Items: make([]wire.Item, len(reqs))}
	for i, q := range reqs {
		r := rangeOut(q.Range)
		in.Items[i] = wire.Item{Key: q.Key, Kind: int(r.Kind), Off: r.Off, Bytes: r.N}
	}
	out := make([][]byte, len(reqs))
	err := s.read(ctx, func(l *link, handle uint32) error {
		in.View = handle
		meta, err := json.Marshal(&in)
		if err != nil {
			return err
		}
		f, err := l.call(ctx, &wire.Frame{Op: wire.OpGetMany, Meta: meta}, false)
		if err != nil {
			return err
		}
		defer f.Close()
		var sizes wire.Sizes
		if err := wire.ParseJSON(f.Op, f.Meta, &sizes); err != nil {
			return err
		}
		return split(out, sizes.Sizes, f.Body)
	})
	var long *wire.TooLongError
	if errors.Is(err, kv.ErrTooLarge) || errors.As(err, &long) {
		return nil, errors.ErrUnsupported // then they are read one by one
	}
	return out, err
}

// split cuts a body into values.
func split(out [][]byte, sizes []int64, body []byte) error {
	if len(sizes) != len(out) {
		return fmt.Errorf("%w: %d values for %d keys", wire.ErrProtocol, len(sizes), len(out))
	}
	for i, n := range sizes {
		if n > int64(len(body)) {
			return fmt.Errorf("%w: a value of %d bytes in a body of %d", wire.ErrProtocol, n, len(body))
		}
		if n >= 0 {
			out[i], body = body[:n:n], body[n:]
		}
		if n == 0 {
			out[i] = []byte{}
		}
	}
	return nil
}
