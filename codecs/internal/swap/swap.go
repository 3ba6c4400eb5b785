package swap

import (
	"github.com/zarrdb/zarrdb/codecs/kernels"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Words swaps the bytes of some of the scalars of elements. The zero value
// swaps nothing. Safe for concurrent use.
type Words struct {
	words []dtype.Word
	size  int // bytes of an element
	flat  int // see Flat
}

// New returns a swapper of the given scalars of elements of size bytes. It
// keeps words.
func New(words []dtype.Word, size int) Words {
	return Words{words: words, size: size, flat: flat(words, size)}
}

// Stored returns a swapper of the scalars of t that are stored big-endian: in
// both directions between the stored bytes and memory.
func Stored(t dtype.Type) Words {
	var words []dtype.Word
	for _, w := range t.Words() {
		if w.Order == dtype.Big {
			words = append(words, w)
		}
	}
	return New(words, t.Size())
}

// flat finds out whether the scalars have one size and leave no gaps.
func flat(words []dtype.Word, size int) int {
	if len(words) == 0 {
		return 0
	}
	end := 0
	for _, w := range words {
		if w.Size != words[0].Size || w.Offset != end {
			return 0
		}
		end += w.Size * w.Count
	}
	if end != size {
		return 0
	}
	return words[0].Size
}

// None reports whether there is nothing to swap.
func (w *Words) None() bool { return len(w.words) == 0 }

// Flat returns the size of the scalars if all of every element is swapped, so
// that elements do not matter; else 0.
func (w *Words) Flat() int { return w.flat }

// Swap swaps the bytes of the whole elements of b, in place.
func (w *Words) Swap(b []byte) {
	if w.flat != 0 {
		kernels.Swap(b, b, w.flat)
		return
	}
	if len(w.words) == 0 {
		return
	}
	for ; len(b) >= w.size; b = b[w.size:] {
		for _, s := range w.words {
			part := b[s.Offset : s.Offset+s.Size*s.Count]
			kernels.Swap(part, part, s.Size)
		}
	}
}
