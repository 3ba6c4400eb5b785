package transfer

import "iter"

// BatchKeys is how many keys are handed out to workers at a time: enough to
// keep them busy, few enough to hold in memory. Tests make it small.
var BatchKeys = 4096

// Batches cuts a listing into slices of at most BatchKeys, calls fn with each, and stops
// at the first error. The last one may be empty. The slices are reused.
func Batches[T any](listed iter.Seq2[T, error], fn func([]T) error) error {
	var batch []T
	for x, err := range listed {
		if err != nil {
			return err
		}
		if batch = append(batch, x); len(batch) < BatchKeys {
			continue
		}
		if err := fn(batch); err != nil {
			return err
		}
		batch = batch[:0]
	}
	return fn(batch)
}

// Count returns the number of keys of a listing.
func Count(keys iter.Seq2[string, error]) (n int64, err error) {
	for _, err := range keys {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
