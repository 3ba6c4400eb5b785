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

// mergeable returns bundles to merge, nil if none are due: four of the smallest class that has them, with the smaller
// ones between them. They are neighbours in the list, so that the order of newer and older bundles stays. None of them is
// in bad.
func mergeable(bundles []BundleInfo, small uint64, bad map[Name]bool) []BundleInfo {
	if len(bundles) > 0 && bundles[0].Size < small {
		bundles = bundles[1:] // the next push takes it along
	}
	for c := range bits.Len(maxBundle) {
		var of []int // the places of those of the class, without a larger one between them
		for i := len(bundles) - 1; i >= 0; i-- {
			k := class(bundles[i].Size, small)
			if k > c || bad[bundles[i].Name] {
				of = nil
			}
			if k != c || bad[bundles[i].Name] {
				continue
			}
			if of = append(of, i); len(of) < fan {
				continue
			}
			sum, list := uint64(0), bundles[i:of[len(of)-fan]+1]
			for _, b := range list {
				sum += b.Size
			}
			if sum <= maxBundle {
				return list
			}
		}
	}
	return nil
}

// carry adds the contents of the newest bundle to a new one, if it is small and there. A damaged bundle stays as it is, for a check to name.
func (p *Push) carry(ctx context.Context, s *snapshot, u *uploads, w *builder) {
	if len(u.infos) > 0 || len(s.Bundles) == 0 || s.Bundles[0].Size >= p.d.o.small || w.size() >= splitAt {
		return
	}
	info := &s.Bundles[0]
	if x, err := p.d.index(ctx, info); err == nil && x.whole != nil && w.addBundle(x.whole, false) == nil {
		u.gone = []Name{info.Name}
	}
}

// errStale means that bundles whose contents are in new ones are no longer listed.
var errStale = errors.New("depot: another took the bundles along")

// Merge merges four bundles into one if that is due, and reports whether it did. Call it after a push that
// was acknowledged. It may fail, or be left out, without harm to what is stored.
func (d *Depot) Merge(ctx context.Context) (merged bool, err error) {
	p := d.Begin()
	check := func(m *Manifest) error {
		switch {
		case len(m.Writes) > 0:
			return ErrReadOnly
		case m.Floor > p.g:
			return ErrVoid
		}
		return nil
	}
	if err := check(p.base); err != nil {
		return false, err
	}
	// A damaged bundle stays as it is, and is no reason to leave the others.
	for bad := map[Name]bool{}; ; {
		from := mergeable(p.base.Bundles, d.o.small, bad)
		if from == nil {
			return false, nil
		}
		w, u := newBuilder(), &uploads{}
		for i := range from {
			b, err := d.Bundle(ctx, &from[i])
			if err == nil {
				err = w.addBundle(b, i == 0)
			}
			switch {
			case errors.Is(err, kv.ErrNotFound):
				return false, nil
			case errors.Is(err, kv.ErrCorrupt):
				bad[from[i].Name] = true
			case err != nil:
				return false, err
			}
			u.gone = append(u.gone, from[i].Name)
		}
		if !slices.ContainsFunc(u.gone, func(n Name) bool { return bad[n] }) {
			return p.merged(ctx, u, w, check)
		}
	}
}

// merged publishes a merged bundle.
func (p *Push) merged(ctx context.Context, u *uploads, w *builder, check func(*Manifest) error) (bool, error) {
	if err := p.put(ctx, u, w); err != nil {
		return false, err
	}
	err := p.publish(ctx, u, check, nil)
	if err == errStale || err == ErrVoid {
		return false, nil
	}
	return err == nil, err
}
