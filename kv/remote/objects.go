package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/zarrdb/zarrdb/kv"
)

// Objects reads the values of one server. Views embed it. Safe for concurrent
// use.
type Objects struct {
	c *Client
	p Protocol
}

var (
	_ kv.Reader       = (*Objects)(nil)
	_ kv.Locator      = (*Objects)(nil)
	_ kv.BatchReader  = (*Objects)(nil)
	_ kv.RangeLocator = (*Objects)(nil)
	_ kv.Gatherer     = (*Objects)(nil)
	_ kv.Spacer       = (*Objects)(nil)
)

// NewObjects returns a reader that sends the requests of p through c.
func NewObjects(c *Client, p Protocol) *Objects { return &Objects{c, p} }

// Get implements [kv.Reader]: one request, unless the range is empty or the
// server does not send the size.
func (o *Objects) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	off, n, valid := rng.Bounds()
	limit, limited := rng.Limit()
	if !valid || n == 0 || limited && limit <= 0 {
		info, err := o.Stat(ctx, key)
		if err != nil {
			return nil, err
		}
		_, _, err = rng.Resolve(info.Size)
		return []byte{}, err
	}
	got, err := o.fetch(ctx, key, ask{off: off, n: n, size: -1, limit: limit}, nil)
	switch {
	case limited && errors.Is(err, errNoSize):
		return nil, fmt.Errorf("%w: more than the limit of %d bytes", kv.ErrTooLarge, limit)
	case errors.Is(err, errNoSize):
		return o.getAtEnd(ctx, key, rng)
	case limited && err == nil && got.bytes == nil:
		_, _, err = rng.Resolve(got.size)
	}
	return got.bytes, err
}

// getAtEnd resolves a range that the server refuses without sending the size of
// the value.
func (o *Objects) getAtEnd(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	info, err := o.Stat(ctx, key)
	if err != nil {
		return nil, err
	}
	_, n, err := rng.Resolve(info.Size)
	if err != nil {
		return nil, err
	}
	if n > 0 {
		return nil, fmt.Errorf("%w: the server refuses the range %v of %d bytes", ErrAnswer, rng, info.Size)
	}
	return []byte{}, nil
}

// Locate implements [kv.Locator]. The value is a [kv.Validator].
func (o *Objects) Locate(ctx context.Context, key string) (kv.Value, error) {
	info, err := o.Stat(ctx, key)
	if err != nil {
		return nil, err
	}
	return &value{o: o, key: key, info: info}, nil
}

// Stat returns the size and version of a key, or kv.ErrNotFound.
func (o *Objects) Stat(ctx context.Context, key string) (Info, error) {
	if s, ok := o.p.(Stater); ok {
		return s.Stat(ctx, key)
	}
	info, err := o.head(ctx, key)
	if errors.Is(err, errNoHead) {
		return o.probe(ctx, key)
	}
	return info, err
}

// errNoHead means that the answer to HEAD has no size.
var errNoHead = errors.New("remote: no answer to HEAD")

func (o *Objects) head(ctx context.Context, key string) (info Info, err error) {
	err = o.do(ctx, http.MethodHead, key, "", nil, func(resp *http.Response) error {
		switch {
		case o.p.Missing(resp):
			return kv.ErrNotFound
		case resp.StatusCode == http.StatusMethodNotAllowed || resp.StatusCode == http.StatusNotImplemented:
			return errNoHead
		case resp.StatusCode != http.StatusOK:
			return o.c.Failed(resp, o.p.Code(resp))
		case resp.ContentLength < 0:
			return errNoHead
		}
		if err := plain(resp); err != nil {
			return err
		}
		info = Info{resp.ContentLength, o.p.Version(resp.Header), stampOf(resp.Header)}
		return nil
	})
	return info, err
}

// probe finds a key by reading its first byte, if HEAD does not work.
func (o *Objects) probe(ctx context.Context, key string) (Info, error) {
	got, err := o.fetch(ctx, key, ask{off: 0, n: 1, size: -1}, nil)
	switch {
	case err == nil && got.size >= 0:
		return got.info(), nil
	case err == nil:
		// The length is known only after reading everything.
		got, err = o.fetch(ctx, key, ask{off: 0, n: -1, size: -1, measure: true}, nil)
		return got.info(), err
	case errors.Is(err, kv.ErrRange):
		return Info{0, got.version, got.stamp}, nil // no first byte
	}
	return Info{}, err
}

// do sends a request for key. edit may be nil.
func (o *Objects) do(ctx context.Context, method, key string, pin Version, edit func(*http.Request), handle func(*http.Response) error) error {
	return o.c.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		req, err := o.p.Request(ctx, method, key, pin)
		if err == nil && edit != nil {
			edit(req)
		}
		return req, err
	}, handle)
}

// value is a located key.
type value struct {
	o    *Objects
	key  string
	info Info
}

var (
	_ kv.Validator = (*value)(nil)
	_ kv.Stamped   = (*value)(nil)
	_ kv.Spacer    = (*value)(nil)
	_ kv.Spreader  = (*value)(nil)
)

func (v *value) Size() int64 { return v.info.Size }

// ID implements [kv.Value]; it is zero, because objects of servers change.
func (v *value) ID() kv.ID { return kv.ID{} }

func (v *value) Validator() string {
	if v.info.Version == "" {
		return ""
	}
	return fmt.Sprintf("%s size:%d", v.info.Version, v.info.Size)
}

func (v *value) Stamp() kv.Stamp { return v.info.Stamp }

// maxPooled is the length up to which View trusts the size of a value and reads
// into a pooled buffer.
const maxPooled = 16 << 20

func (v *value) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	off, n, err := rng.Resolve(v.info.Size)
	if err != nil {
		return err
	}
	if n == 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		return fn([]byte{})
	}
	if n <= maxPooled {
		return kv.FromReaderAt(reader{ctx, v}, v.info.Size, kv.ID{}).View(ctx, rng, fn)
	}
	b, err := v.read(ctx, off, n, nil)
	if err != nil {
		return err
	}
	return fn(b)
}

// Spread implements [kv.Spreader]: a request for each part, several at a time
// within Options.Parallel and Options.Memory, which all reads share.
func (v *value) Spread() kv.Spread { return v.o.c.spare.Each }

// read reads a part that lies inside the value, into dst if that is not nil.
func (v *value) read(ctx context.Context, off, n int64, dst []byte) ([]byte, error) {
	got, err := v.o.fetch(ctx, v.key, ask{off: off, n: n, size: v.info.Size, pin: v.info.Version}, dst)
	switch {
	case err == kv.ErrNotFound:
		return nil, fmt.Errorf("%w: it is gone", kv.ErrChanged)
	case errors.Is(err, kv.ErrRange), errors.Is(err, errNoSize):
		return nil, fmt.Errorf("%w: it was %d bytes long", kv.ErrChanged, v.info.Size)
	}
	return got.bytes, err
}

// reader is a located value under one context.
type reader struct {
	ctx context.Context
	v   *value
}

// ReadAt implements io.ReaderAt for parts that lie inside the value.
func (r reader) ReadAt(p []byte, off int64) (int, error) {
	b, err := r.v.read(r.ctx, off, int64(len(p)), p)
	return copy(p, b), err // b is mostly p itself
}
