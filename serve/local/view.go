package local

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// shelf reads the keys of a session of the server, by its handle on a connection.
type shelf struct {
	reopen func(ctx context.Context) (*link, uint32, error)
	// note, if not nil, is called after a read of a key; the zero id is no value.
	note func(key string, id kv.ID, err error)

	mu     sync.Mutex // held while it is opened again
	l      *link
	handle uint32
	closed error // the error of calls after close or end
}

// at returns the connection and the handle. With an error it returns the connection
// that it was tried on, if any.
func (s *shelf) at(ctx context.Context) (*link, uint32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return nil, 0, s.closed
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
	if s.closed != nil {
		return nil
	}
	s.closed = kv.ErrClosed
	if s.l.over() {
		return nil
	}
	_, err := ask[none](context.Background(), s.l, wire.OpClose, wire.Handle{View: s.handle})
	if errors.Is(err, ErrGone) || errors.Is(err, txn.ErrClosed) {
		err = nil
	}
	return err
}

// end is close for a session that has ended: the server has closed it. Later calls
// return err.
func (s *shelf) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return
	}
	s.closed = err
}

func (s *shelf) noted(key string, id kv.ID, err error) {
	if s.note != nil {
		s.note(key, id, err)
	}
}

// part is the size, id and bytes of a value in a reply.
type part struct {
	size int64
	id   kv.ID
	l    *link
	b    []byte
}

func (s *shelf) ask(ctx context.Context, op wire.Op, flags wire.Flags, meta func(handle uint32) []byte) (p part, err error) {
	err = s.read(ctx, func(l *link, handle uint32) error {
		f, err := l.call(ctx, &wire.Frame{Op: op, Flags: flags, Meta: meta(handle)}, false)
		if err != nil {
			return err
		}
		defer f.Close()
		found, err := wire.ParseFound(f.Meta)
		p = part{size: found.Size, id: kv.ID(found.ID), l: l, b: f.Body}
		if p.b == nil {
			p.b = []byte{}
		}
		return err
	})
	return p, err
}

// fetch asks for a range of a value.
func (s *shelf) fetch(ctx context.Context, key string, rng kv.Range, flags wire.Flags) (part, error) {
	return s.ask(ctx, wire.OpGet, flags, func(handle uint32) []byte {
		in := wire.Get{View: handle, Range: rangeOut(rng), Key: key}
		return in.Append(make([]byte, 0, 24+len(key)))
	})
}

// view calls fn with a part of a value. check, if not nil, is called before,
// with the size and id of the value.
func (s *shelf) view(ctx context.Context, key string, rng kv.Range, check func(*part) error, fn func([]byte) error) error {
	p, err := s.fetch(ctx, key, rng, 0)
	if err == nil && check != nil {
		err = check(&p)
	}
	if err == nil {
		err = fn(p.b)
	}
	_, limited := rng.Limit()
	if errors.Is(err, kv.ErrTooLarge) && !limited {
		return s.viewPieces(ctx, key, rng, check, fn)
	}
	return err
}

// viewPieces is view with bytes that are sent, piece by piece.
func (s *shelf) viewPieces(ctx context.Context, key string, rng kv.Range, check func(*part) error, fn func([]byte) error) error {
	at, err := s.stat(ctx, key, 0)
	if err == nil && check != nil {
		err = check(&at)
	}
	if err != nil {
		return err
	}
	off, n, err := rng.Resolve(at.size)
	if err == nil {
		err = kv.CheckHeld(n)
	}
	if err != nil {
		return err
	}
	var out []byte
	for int64(len(out)) < n || out == nil {
		p, err := s.fetch(ctx, key, kv.Span(off+int64(len(out)), min(at.l.piece(), n-int64(len(out)))), wire.FlagBytes)
		if err == nil && (p.size != at.size || p.id != at.id) {
			err = fmt.Errorf("%s: %w", key, kv.ErrChanged)
		}
		if err != nil {
			return err
		}
		out = append(out, p.b...)
		if out == nil {
			out = []byte{}
		}
	}
	return fn(out)
}

func (s *shelf) stat(ctx context.Context, key string, flags wire.Flags) (part, error) {
	return s.ask(ctx, wire.OpStat, flags, func(handle uint32) []byte {
		in := wire.Stat{View: handle, Key: key}
		return in.Append(make([]byte, 0, 4+len(key)))
	})
}

// Get implements [kv.Reader].
func (s *shelf) Get(ctx context.Context, key string, rng kv.Range) (out []byte, err error) {
	var id kv.ID
	err = s.view(ctx, key, rng, func(p *part) error {
		id = p.id
		return nil
	}, func(b []byte) error {
		out = b // this call made it
		return nil
	})
	s.noted(key, id, err)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Locate implements [kv.Locator].
func (s *shelf) Locate(ctx context.Context, key string) (kv.Value, error) {
	p, err := s.stat(ctx, key, wire.FlagAhead)
	s.noted(key, p.id, err)
	if err != nil {
		return nil, err
	}
	v := &remoteValue{s: s, key: key, size: p.size, id: p.id}
	if int64(len(p.b)) == p.size {
		v.ahead = &p
	}
	return v, nil
}

// remoteValue is a value that a server has.
type remoteValue struct {
	s     *shelf
	key   string
	size  int64
	id    kv.ID
	ahead *part // all of it, if it came with the size
}

// Size implements [kv.Value].
func (v *remoteValue) Size() int64 { return v.size }

// ID implements [kv.Value].
func (v *remoteValue) ID() kv.ID { return v.id }

// View implements [kv.Value].
func (v *remoteValue) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	off, n, err := rng.Resolve(v.size)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	if p := v.ahead; p != nil {
		return fn(p.b[off : off+n : off+n])
	}
	var failed error
	err = v.s.view(ctx, v.key, kv.Span(off, n), func(p *part) error {
		if p.size != v.size || p.id != v.id {
			return kv.ErrChanged
		}
		return nil
	}, func(b []byte) error {
		failed = fn(b)
		return nil
	})
	switch {
	case err == nil:
		return failed
	case errors.Is(err, kv.ErrNotFound) || errors.Is(err, kv.ErrRange) || err == kv.ErrChanged:
		return fmt.Errorf("%s: %w", v.key, kv.ErrChanged)
	}
	return err
}

// pageKeys is the number of keys per request.
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

// pages yields names page by page. The caller updates the position in the
// request.
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
