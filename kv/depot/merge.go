package depot

import (
	"context"
	"errors"
	"math/bits"
	"slices"

	"github.com/zarrdb/zarrdb/kv"
)

// Bundles stay few, because reading a page means searching all of their indexes:
//
//   - A push takes the newest bundle along in its own while that is smaller than carried.
//   - Four bundles of a class become one. A class reaches up to four times the size of the class before.
const (
	carried = 128 << 10
	fan     = 4
)

// class is 0 for bundles below four times small, and one more for each fourfold.
func class(size, small uint64) int { return max(0, bits.Len64(size/small)-1) / 2 }

// mergeable returns the names of four bundles to merge, oldest class first; nil if none are due.
func mergeable(bundles []BundleInfo, small uint64) []BundleInfo {
	classes := map[int][]BundleInfo{}
	for i, b := range bundles {
		if i == 0 && b.Size < small {
			continue // the next push takes it along
		}
		c := class(b.Size, small)
		classes[c] = append(classes[c], b)
	}
	for c := range bits.Len(maxBundle) {
		list := classes[c]
		if len(list) < fan {
			continue
		}
		list = list[len(list)-fan:]
		sum := uint64(0)
		for _, b := range list {
			sum += b.Size
		}
		if sum <= maxBundle {
			return list
		}
	}
	return nil
}

// carry adds the contents of the newest bundle to a new one, if it is small and fits.
func (p *Push) carry(ctx context.Context, s *snapshot, u *uploads, w *builder) error {
	if len(s.Bundles) == 0 || s.Bundles[0].Size >= p.d.o.small || w.size() >= splitAt {
		return nil
	}
	info := &s.Bundles[0]
	now, indexes, err := p.d.load(ctx)
	if err != nil {
		return err
	}
	var old *Bundle
	if len(indexes) > 0 && now.Bundles[0].Name == info.Name && indexes[0].whole != nil {
		old, err = ParseBundle(indexes[0].whole)
	} else {
		old, err = p.d.Bundle(ctx, info)
	}
	if err == nil {
		err = w.addBundle(old, false)
	}
	switch {
	case err == nil:
		u.gone = append(u.gone, info.Name)
	case errors.Is(err, kv.ErrNotFound), errors.Is(err, kv.ErrCorrupt):
		return nil // another has merged it meanwhile, or a check will tell of it
	}
	return err
}

// errStale means that bundles which were to be merged are no longer listed.
var errStale = errors.New("depot: the bundles were merged by another")

// Merge merges four bundles into one if that is due, and reports whether it did. Call it after a push that
// was acknowledged. It may fail, or be left out, without harm to what is stored.
func (d *Depot) Merge(ctx context.Context) (merged bool, err error) {
	p := d.Begin()
	from := mergeable(p.base.Bundles, d.o.small)
	if from == nil {
		return false, nil
	}
	w, u := newBuilder(), &uploads{}
	for i := range from {
		b, err := d.Bundle(ctx, &from[i])
		if errors.Is(err, kv.ErrNotFound) {
			return false, nil
		}
		if err == nil {
			err = w.addBundle(b, i == 0)
		}
		if err != nil {
			return false, err
		}
		u.gone = append(u.gone, from[i].Name)
	}
	check := func(m *Manifest) error {
		switch {
		case len(m.Writes) > 0:
			return ErrReadOnly
		case m.Floor > p.g:
			return ErrVoid
		}
		for _, name := range u.gone {
			if !slices.ContainsFunc(m.Bundles, func(b BundleInfo) bool { return b.Name == name }) {
				return errStale
			}
		}
		return nil
	}
	if err := p.put(ctx, u, w); err != nil {
		return false, err
	}
	err = p.publish(ctx, u, check, func(next *Manifest) { next.Bundles = replace(next.Bundles, u.infos, u.gone, true) })
	if err == errStale || err == ErrVoid {
		return false, nil
	}
	return err == nil, err
}
