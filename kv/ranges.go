package kv

import "context"

// Spread runs reads of several parts of a value: it calls fn for 0 to n-1, several
// at a time, each of which may hold size bytes, and returns the first error when
// all running calls have returned. After an error no further call begins.
type Spread func(ctx context.Context, n int, size int64, fn func(ctx context.Context, i int) error) error

// Spreader is an optional interface of a Value that reads several parts faster at
// a time than one after the other, such as a value on a server. Use [ViewsRanges]
// and [ViewRanges].
type Spreader interface {
	// Spread returns how to do so, within bounds of the value; nil means one after
	// the other. A wrapper asks the value it wraps.
	Spread() Spread
}

// SpreadOf returns how several parts of v are read at a time, nil for one after the
// other.
func SpreadOf(v Value) Spread {
	if s, ok := v.(Spreader); ok {
		return s.Spread()
	}
	return nil
}

// ViewsRanges reports whether v reads several parts at a time.
func ViewsRanges(v Value) bool { return SpreadOf(v) != nil }

// ViewRanges reads parts of v and calls fn once for each, with its number and
// its bytes, which are valid until fn returns. Calls come in any order and from
// several goroutines at a time; all have returned when ViewRanges returns. The
// first error, of reading or of fn, ends it. The value bounds how many parts are
// read and held at a time. It does not join them.
func ViewRanges(ctx context.Context, v Value, parts []Range, fn func(i int, b []byte) error) error {
	view := func(ctx context.Context, i int) error {
		return v.View(ctx, parts[i], func(b []byte) error { return fn(i, b) })
	}
	spread := SpreadOf(v)
	if spread == nil {
		spread = oneByOne
	}
	longest := int64(0)
	for _, rng := range parts {
		_, n, err := rng.Resolve(v.Size())
		if err != nil {
			return err
		}
		longest = max(longest, n)
	}
	return spread(ctx, len(parts), longest, view)
}

// oneByOne is the Spread of a value that has none.
func oneByOne(ctx context.Context, n int, _ int64, fn func(ctx context.Context, i int) error) error {
	for i := range n {
		if err := fn(ctx, i); err != nil {
			return err
		}
	}
	return nil
}
