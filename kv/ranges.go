package kv

import "context"

// RangesViewer is an optional interface of a Value of which several parts are
// better read at a time than one after the other, such as one on a server. Use
// [ViewsRanges] and [ViewRanges].
type RangesViewer interface {
	// ViewsRanges reports whether that is so of this value; a wrapper asks what
	// it wraps.
	ViewsRanges() bool

	// ViewRanges is [ViewRanges] for this value.
	ViewRanges(ctx context.Context, parts []Range, fn func(i int, b []byte) error) error
}

// ViewsRanges reports whether v has a way of its own to read several parts.
func ViewsRanges(v Value) bool {
	x, ok := v.(RangesViewer)
	return ok && x.ViewsRanges()
}

// ViewRanges reads parts of v and calls fn once for each, with its number and
// its bytes, which are not valid any more when fn returns. Calls come in any order
// and from several goroutines at a time; none is under way when ViewRanges
// returns. The first error, of reading or of fn, ends it. The value bounds how
// many parts are read and held at a time. It does not join them.
//
// The fall-back reads one part after the other.
func ViewRanges(ctx context.Context, v Value, parts []Range, fn func(i int, b []byte) error) error {
	if x, ok := v.(RangesViewer); ok && x.ViewsRanges() {
		return x.ViewRanges(ctx, parts, fn)
	}
	for i, rng := range parts {
		if err := v.View(ctx, rng, func(b []byte) error { return fn(i, b) }); err != nil {
			return err
		}
	}
	return nil
}

// Within returns parts of a value of n bytes that lies off bytes inside of
// another, as parts of that one: for what passes ViewRanges on.
func Within(parts []Range, off, n int64) ([]Range, error) {
	out := make([]Range, len(parts))
	for i, rng := range parts {
		from, length, err := rng.Resolve(n)
		if err != nil {
			return nil, err
		}
		out[i] = Span(off+from, length)
	}
	return out, nil
}
