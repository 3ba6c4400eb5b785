package depot

import (
	"context"
	"errors"
	"iter"
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
	if x, err := p.d.index(ctx, info); err == nil && x.whole != nil && w.addBundles([]*Bundle{x.whole}, false) == nil {
		u.gone = []Name{info.Name}
	}
}

// errStale means that bundles whose contents are in new ones are no longer listed.
var errStale = errors.New("depot: another took the bundles along")

// Reached yields the pages that refs reach, of each version the upper ones first. It may pass over a page for which listed is false, and
// what is below that page. What it yields decides the order of pages alone.
type Reached func(ctx context.Context, refs map[string]ID, listed func(page ID) bool) iter.Seq[ID]

// Merge merges four bundles into one if that is due, and reports whether it did. Call it after a push that
// was acknowledged. It may fail, or be left out, without harm to what is stored. The pages that reached yields come first, in its
// order, so that readers of the refs find what they need side by side. nil keeps the order.
func (d *Depot) Merge(ctx context.Context, reached Reached) (merged bool, err error) {
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
		u, all := &uploads{}, make([]*Bundle, len(from))
		for i := range from {
			if all[i], err = d.Bundle(ctx, &from[i]); err == nil {
				err = all[i].check()
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
		if slices.ContainsFunc(u.gone, func(n Name) bool { return bad[n] }) {
			continue
		}
		w := newBuilder()
		if reached != nil {
			if err := d.addReached(ctx, w, from, all, reached); err != nil {
				return false, err
			}
		}
		if err := w.addBundles(all, reached == nil); err != nil {
			return false, err
		}
		return p.merged(ctx, u, w, check)
	}
}

// addReached adds the pages of bundles that refs reach. A page or ref that names a page was pushed with that page or later,
// so it is in these bundles or in a newer bundle.
func (d *Depot) addReached(ctx context.Context, w *builder, from []BundleInfo, all []*Bundle, reached Reached) error {
	s, indexes, err := d.load(ctx)
	if err != nil {
		return err
	}
	newer := indexes[:max(0, slices.IndexFunc(s.Bundles, func(b BundleInfo) bool { return b.Name == from[0].Name }))]
	place := func(id ID) (page []byte, listed bool) {
		for _, b := range all {
			if e, ok := find(b.x.pages, pageSize, &id); ok {
				at := spanAt(e[20:])
				return b.b[at.off : at.off+at.n], true
			}
		}
		return nil, slices.ContainsFunc(newer, func(x *index) bool { _, ok := find(x.pages, pageSize, &id); return ok })
	}
	for id := range reached(ctx, s.Refs, func(id ID) bool { _, listed := place(id); return listed }) {
		if page, _ := place(id); page != nil {
			if err := w.addPage(Page{page, true}); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
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
