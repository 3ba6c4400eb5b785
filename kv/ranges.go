package kv

import "context"

// RangesViewer is an optional interface of a Value that reads several parts
// faster at a time than one after the other, such as a value on a server. Use
// [ViewsRanges] and [ViewRanges].
type RangesViewer interface {
	// ViewsRanges reports whether this value does so; a wrapper asks the value
	// it wraps.
	ViewsRanges() bool

	// ViewRanges is [ViewRanges] for this value.
	ViewRanges(ctx context.Context, parts []Range, fn func(i int, b []byte) error) error
}

// ViewsRanges reports whether v itself reads several parts at a time.
func ViewsRanges(v Value) bool {
	x, ok := v.(RangesViewer)
	return ok && x.ViewsRanges()
}

// ViewRanges reads parts of v and calls fn once for each, with its number and
// its bytes, which are valid until fn returns. Calls come in any order and from
// several goroutines at a time; all have returned when ViewRanges returns. The
// first error, of reading or of fn, ends it. The value bounds how many parts are
// read and held at a time. It does not join them.
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

// Within converts parts of a value of n bytes, which begins at byte off of an
// outer value, to parts of the outer value. Wrappers use it to pass ViewRanges
// on.
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
