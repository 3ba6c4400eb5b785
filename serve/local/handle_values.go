package local

import (
	"context"
	"fmt"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// rangeIn is the range of a request.
func rangeIn(r wire.Range) kv.Range {
	switch r.Kind {
	case wire.RangeFrom:
		return kv.From(r.Off)
	case wire.RangeSpan:
		return kv.Span(r.Off, r.N)
	case wire.RangeLast:
		return kv.Last(r.N)
	case wire.RangeAtMost:
		return kv.AtMost(r.N)
	}
	return kv.All()
}

func (c *conn) get(ctx context.Context, f *wire.Frame, v *view, in wire.Get) error {
	value, err := kv.Locate(ctx, v, in.Key)
	if err != nil {
		return err
	}
	return c.sendValue(ctx, f, v, value, rangeIn(in.Range))
}

// sendValue sends a range of a value: its place in a file, or its bytes.
func (c *conn) sendValue(ctx context.Context, f *wire.Frame, v *view, value kv.Value, rng kv.Range) error {
	size := value.Size()
	off, n, err := rng.Resolve(size)
	if err != nil {
		return err
	}
	found := wire.Found{Size: size, ID: value.ID()}
	if n >= wire.SmallBody && c.places(f, v) {
		if done, err := c.sendPlace(ctx, f, value, &found, off, n); done || err != nil {
			return err
		}
	}
	if n > int64(c.s.o.MaxBody) {
		return fmt.Errorf("%w: %d bytes at once, where %d are sent; read it in parts", kv.ErrTooLarge, n, c.s.o.MaxBody)
	}
	h, err := c.hold(ctx, n)
	if err != nil {
		return err
	}
	defer h.free()
	var buf [32]byte
	meta := found.Append(buf[:0])
	return value.View(ctx, kv.Span(off, n), func(b []byte) error {
		return c.send(f, &wire.Frame{Meta: meta, Body: b})
	})
}

func (c *conn) stat(ctx context.Context, f *wire.Frame, v *view, in wire.Stat) error {
	value, err := kv.Locate(ctx, v, in.Key)
	if err != nil {
		return err
	}
	found := wire.Found{Size: value.Size(), ID: value.ID()}
	if f.Flags&wire.FlagAhead != 0 && found.Size <= wire.MaxAhead {
		if found.Size < wire.SmallBody {
			return c.sendValue(ctx, f, v, value, kv.All())
		}
		if c.places(f, v) {
			if done, err := c.sendPlace(ctx, f, value, &found, 0, found.Size); done || err != nil {
				return err
			}
		}
	}
	return c.send(f, &wire.Frame{Meta: found.Append(nil)})
}

// places reports whether the reply to f may say where a value of a view is, in place
// of the bytes. Values of sessions may not have been committed, and are not kept.
func (c *conn) places(f *wire.Frame, v *view) bool {
	return c.files && v.Session == nil && f.Flags&wire.FlagBytes == 0
}

// expected is the condition of a write.
func expected(in wire.Set) engine.Expect {
	return engine.Expect{Absent: in.Expect == wire.ExpectAbsent, ID: kv.ID(in.ID)}
}

func (c *conn) set(ctx context.Context, f *wire.Frame, v *view, in wire.Set) error {
	id, err := v.Session.Engine().SetIf(ctx, in.Key, f.Body, expected(in))
	if err != nil {
		return err
	}
	return c.send(f, &wire.Frame{Meta: id[:]})
}

func (c *conn) delete(ctx context.Context, f *wire.Frame, v *view, in wire.Set) error {
	if err := v.Session.Engine().DeleteIf(ctx, in.Key, expected(in)); err != nil {
		return err
	}
	return c.send(f, &wire.Frame{})
}

// A page of a listing ends at its limit, or when it is as long as this.
const (
	defaultPage = 1000
	maxPage     = 10_000
	maxPageSize = 2 << 20
	// pageMemory is held while a page is made.
	pageMemory = 2 * maxPageSize
)

func pageLimit(n int) int {
	if n <= 0 {
		return defaultPage
	}
	return min(n, maxPage)
}

func (c *conn) list(ctx context.Context, f *wire.Frame, v *view, in wire.List) error {
	return c.sendPage(ctx, f, in, func(add func(name string) bool) error {
		for key, err := range v.List(ctx, kv.ListOptions{Prefix: in.Prefix, After: in.After}) {
			if err != nil {
				return err
			}
			if !add(key) {
				break
			}
		}
		return nil
	})
}

func (c *conn) listDir(ctx context.Context, f *wire.Frame, v *view, in wire.List) error {
	return c.sendPage(ctx, f, in, func(add func(name string) bool) error {
		for e, err := range kv.ListDir(ctx, v, in.Prefix) {
			if err != nil {
				return err
			}
			if (in.After != "" || in.AfterPrefix) && (e.Name < in.After || e.Name == in.After && (in.AfterPrefix || !e.Prefix)) {
				continue
			}
			name := e.Name
			if e.Prefix {
				name += "/"
			}
			if !add(name) {
				break
			}
		}
		return nil
	})
}

// sendPage sends a page of names. list calls add with each until that returns false.
func (c *conn) sendPage(ctx context.Context, f *wire.Frame, in wire.List, list func(add func(name string) bool) error) error {
	h, err := c.hold(ctx, min(pageMemory, c.s.o.Memory/memoryLarge))
	if err != nil {
		return err
	}
	defer h.free()
	var out wire.Page
	limit, size := pageLimit(int(min(in.Limit, maxPage))), 0
	err = list(func(name string) bool {
		if len(out.Names) >= limit || size > maxPageSize {
			out.More = true
			return false
		}
		out.Names, size = append(out.Names, name), size+len(name)
		return true
	})
	if err != nil {
		return err
	}
	h.set(int64(size))
	return c.send(f, out.Frame())
}
