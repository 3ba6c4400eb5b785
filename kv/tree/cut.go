package tree

import "github.com/cespare/xxhash/v2"

// Where a page ends.
//
// Walking the items of one level in key order, W0 is the weight of the page
// before an item and W1 the weight with it. The page ends after the item if
//
//	W1 ≥ max                                  or
//	W1 ≥ min  and  H(key) < W1⁴ − W0⁴
//
// where H is XXH64 of the key with the level as seed, shifted right to 4·scale
// bits. The sum of W1⁴−W0⁴ up to weight W is W⁴, so the hazard of a page that
// has reached W is that of a Weibull distribution with shape 4 and scale
// 2^scale: small pages seldom end, large ones soon do, and the weight of most
// pages is near its mean. A rule that looked at one threshold would have a
// geometric distribution, and the page that a random edit hits would be twice
// as large as the average one.
//
// Only keys and kinds of values count, so changing the bytes of a value never
// moves a cut. The level is part of the hash because the keys that end pages of
// one level are exactly the items of the next.
//
// In an interior page no cut follows the first child, and a last page with one
// child is joined to the one before.
type shape struct {
	scale    uint   // log2 of the Weibull scale; at most 14
	min, max uint64 // weights; max is at most 1<<15
}

var defaultShape = shape{scale: 12, min: 512, max: 16 << 10}

// The nominal weight of an item is the length of its key and this much per kind
// of value (and the length of an inline one): about what it takes in a page.
// They are part of the format.
const (
	weightInline  = 2
	weightNative  = 20
	weightVirtual = 2
	weightChild   = 26
	weightEdge    = 26 // of an item of an interior page

	// maxPageWeight is more than any page has: a page stops growing at the
	// shape's max, an item weighs at most MaxKey+MaxInline+weightInline, and
	// one more may be joined to a last page.
	maxPageWeight = 32 << 10
	// maxPageItems is the largest number of items that a decoder accepts.
	maxPageItems = maxPageWeight / weightInline
)

// weight is the nominal weight of an item at a level.
func weight(level uint8, e *Entry) uint64 {
	w := uint64(len(e.Key))
	if level > 0 {
		return w + weightEdge
	}
	switch e.Value.Kind {
	case KindInline:
		return w + uint64(len(e.Value.Inline)) + weightInline
	case KindNative:
		return w + weightNative
	case KindVirtual:
		return w + weightVirtual
	default:
		return w + weightChild
	}
}

// cuts reports whether a page ends after the item that took it from w0 to w1.
func (s *shape) cuts(level uint8, key []byte, w0, w1 uint64) bool {
	if w1 < s.min {
		return false
	}
	if w1 >= s.max {
		return true
	}
	return xxh64(key, uint64(level))>>(64-4*s.scale) < w1*w1*w1*w1-w0*w0*w0*w0
}

// xxh64 is the XXH64 hash of b with a seed.
func xxh64(b []byte, seed uint64) uint64 {
	if seed == 0 {
		return xxhash.Sum64(b)
	}
	var d xxhash.Digest
	d.ResetWithSeed(seed)
	_, _ = d.Write(b) // never fails
	return d.Sum64()
}
