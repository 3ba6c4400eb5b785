package refs

import (
	"context"
	"iter"
	"math"
	"sort"

	"github.com/zarrdb/zarrdb/internal/chunklist"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs/parquet"
)

// List yields the keys of a parquet set in byte order. It reads from about one partition for
// each number of digits at a time, and not where no partition is.
func (s *lazySet) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	document, prefix := func(d *doc) string { return d.key }, func(a *array) string { return a.prefix }
	return func(yield func(string, error) bool) {
		var keys parquet.Arena
		chunklist.Merge(ctx, opts, s.docs, document, s.arrays, prefix, func(a *array) iter.Seq2[string, error] {
			return func(yield func(string, error) bool) {
				if err := s.chunks(ctx, a, opts, &keys, yield); err != nil && err != errStopped {
					yield("", err)
				}
			}
		})(yield)
	}
}

// chunks yields the keys of the chunks of an array that have a value.
func (s *lazySet) chunks(ctx context.Context, a *array, opts kv.ListOptions, keys *parquet.Arena, yield func(string, error) bool) error {
	if a.total == 0 {
		return nil
	}
	present, all, err := s.existing(ctx, a)
	if err != nil {
		return err
	}
	grid := chunklist.Array{Prefix: a.prefix, Separator: a.sep, Counts: a.counts}
	if !all {
		grid.Enter = func(coords []int64) bool { return a.anyPresent(present, coords) }
	}
	var part *partition // the one used last, and its number
	at := int64(-1)
	return grid.Walk(ctx, opts, func(key []byte, coords []int64) error {
		number := a.ordinal(coords)
		if n := number / a.record; n != at {
			if part, err = s.partition(ctx, a, n); err != nil {
				return err
			}
			at = n
		}
		if part.exists(number%a.record) && !yield(keys.Text(key), nil) {
			return errStopped
		}
		return nil
	})
}

// ordinal returns the number in C order of a chunk, among the chunks of the first dimensions.
func (a *array) ordinal(coords []int64) int64 {
	n := int64(0)
	for d, c := range coords {
		n = n*a.counts[d] + c
	}
	return n
}

// anyPresent reports whether one of the present partitions may have chunks with these first
// coordinates, the last of which begins with the digits of v: those with v itself, 10 v to
// 10 v + 9, and so on.
func (a *array) anyPresent(present, coords []int64) bool {
	d := len(coords) - 1
	base, v, count, inner := a.ordinal(coords[:d]), coords[d], a.counts[d], int64(1)
	for _, n := range a.counts[d+1:] {
		inner *= n
	}
	for low, high := v, v; low < count; low, high = 10*low, 10*high+9 {
		high = min(high, count-1)
		first := (base*count + low) * inner / a.record
		last := ((base*count+high+1)*inner - 1) / a.record
		i := sort.Search(len(present), func(i int) bool { return present[i] >= first })
		if i < len(present) && present[i] <= last {
			return true
		}
		if low == 0 || low > count/10 {
			break
		}
		high = min(high, math.MaxInt64/10-1) // count bounds the coordinates
	}
	return false
}
