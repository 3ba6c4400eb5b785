package kv

import (
	"context"
	"errors"
)

// Want is a value to read, with the range to read first.
type Want struct {
	Key string
	// Range is the part that is read first. It may reach beyond the value.
	Range Range
	// Limit, if positive, is the length above which a value is not read at all.
	Limit int64
}

// Gathering holds the callbacks of [Gather].
type Gathering struct {
	// Has, if not nil, is called before a value is read whose identity is known
	// without reading it. If it returns true, the caller has the bytes and they
	// are not read. It is called by one goroutine.
	Has func(i int, v Value) bool
	// Take receives the value of want i. The bytes of Want.Range are in memory
	// or cheap to read; other bytes are read as usual. v is nil if the key has
	// no value, and not valid after Take returns. Take is called from several
	// goroutines at a time, once for each want; after an error some wants get no
	// call.
	Take func(ctx context.Context, i int, v Value) error
	// Run, if not nil, runs processor-bound work on several goroutines: it calls
	// fn for 0 to n-1, each at most once, and returns the first error when all
	// calls have returned.
	Run func(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error
}

// Each calls g.Run, or without it fn in order.
func (g *Gathering) Each(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	if g.Run != nil && n > 1 {
		return g.Run(ctx, n, fn)
	}
	for i := range n {
		if err := fn(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// Gatherer is an optional interface of a Reader that reads many values at less
// cost than one by one: parts of files on servers, for example. See [Gather].
type Gatherer interface {
	// Gathers reports whether Gather is the better way to read the value of key
	// and of keys like it: the other chunks of an array. It does not check that
	// the key has a value.
	Gathers(ctx context.Context, key string) bool

	// Gather is [Gather] for this view.
	Gather(ctx context.Context, wants []Want, g Gathering) error
}

// Gathers reports whether r itself gathers the value of key and of keys like it.
func Gathers(ctx context.Context, r Reader, key string) bool {
	g, ok := r.(Gatherer)
	return ok && g.Gathers(ctx, key)
}

// Gather reads many values at the least cost: in any order, several at a time,
// and values that lie close together in a file with one read. Its memory does
// not grow with the number of wants; one large value may exceed the bound. The
// first error of Take, or of reading, ends it.
//
// The fall-back locates one value after the other and reads nothing ahead.
func Gather(ctx context.Context, r Reader, wants []Want, g Gathering) error {
	if x, ok := r.(Gatherer); ok {
		if err := x.Gather(ctx, wants, g); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	for i := range wants {
		v, err := Locate(ctx, r, wants[i].Key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if err := g.Take(ctx, i, v); err != nil {
			return err
		}
	}
	return nil
}

// GatherApart gathers the wants that apart names one by one with locate, and then the
// other wants with r.
func GatherApart(ctx context.Context, r Reader, wants []Want, g Gathering, apart func(key string) bool, locate func(ctx context.Context, key string) (Value, error)) error {
	var rest []Want
	var at []int
	for i, w := range wants {
		if !apart(w.Key) {
			rest, at = append(rest, w), append(at, i)
			continue
		}
		v, err := locate(ctx, w.Key)
		if errors.Is(err, ErrNotFound) {
			v, err = nil, nil
		}
		if err == nil {
			err = g.Take(ctx, i, v)
		}
		if err != nil {
			return err
		}
	}
	if len(rest) == len(wants) {
		return Gather(ctx, r, wants, g)
	}
	inner := Gathering{Run: g.Run, Take: func(ctx context.Context, i int, v Value) error { return g.Take(ctx, at[i], v) }}
	if g.Has != nil {
		inner.Has = func(i int, v Value) bool { return g.Has(at[i], v) }
	}
	return Gather(ctx, r, rest, inner)
}

// RangeLocator is an optional interface of a Reader that can locate a value and
// read a part of it in one request; use [LocateRange].
type RangeLocator interface {
	// LocateRange is [LocateRange] for this view.
	LocateRange(ctx context.Context, key string, rng Range, limit int64) (Value, []byte, error)
}

// LocateRange locates key and reads the part of rng that lies inside the value,
// with one request to a server. The caller owns the bytes, which belong to the
// returned value. They are nil if nothing was read: rng lies outside the value,
// the value is longer than a positive limit, or r locates values without a
// request.
func LocateRange(ctx context.Context, r Reader, key string, rng Range, limit int64) (Value, []byte, error) {
	if l, ok := r.(RangeLocator); ok {
		v, b, err := l.LocateRange(ctx, key, rng, limit)
		if !errors.Is(err, errors.ErrUnsupported) {
			return v, b, err
		}
	}
	v, err := Locate(ctx, r, key)
	return v, nil, err
}

// Held returns v with its bytes from off on, b, in memory: they are not read
// again. b must not be changed while the value is used.
func Held(v Value, off int64, b []byte) Value { return held{v, off, b} }

type held struct {
	Value
	off int64
	b   []byte
}

var (
	_ Validator = held{}
	_ Stamped   = held{}
	_ Spreader  = held{}
)

func (h held) Validator() string {
	if v, ok := h.Value.(Validator); ok {
		return v.Validator()
	}
	return ""
}

func (h held) Stamp() Stamp { return StampOf(h.Value) }

func (h held) Spacing() (gap, most int64) { return Spacing(h.Value) }

func (h held) View(ctx context.Context, rng Range, fn func([]byte) error) error {
	off, n, err := rng.Resolve(h.Size())
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	if at := off - h.off; at >= 0 && at <= int64(len(h.b)) && n <= int64(len(h.b))-at {
		return fn(h.b[at : at+n : at+n])
	}
	return h.Value.View(ctx, rng, fn)
}

// Spread implements [Spreader]. It counts the bytes in memory too.
func (h held) Spread() Spread { return SpreadOf(h.Value) }

// Spacer is an optional interface of a Value or a Reader for which each read has
// a cost beside its bytes; use [Spacing].
type Spacer interface {
	// Spacing is [Spacing] for this value or view.
	Spacing() (gap, most int64)
}

// Spacing returns how to join reads of a value, or of the values of a view: two
// parts with at most gap bytes between them are read as one, up to most bytes in
// total. The fall-back fits the cost of a system call.
func Spacing(v any) (gap, most int64) {
	if s, ok := v.(Spacer); ok {
		return s.Spacing()
	}
	return 16 << 10, 8 << 20
}
