package depot

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/gather"
)

// CheckReport is what [Depot.Check] found.
type CheckReport struct {
	Bundles, Segments int
	// Pages and Commits were compared with their names, with full.
	Pages, Commits int
	// Unlisted objects come from pushes that were not published and from bundles that were merged. They
	// stay until a collection.
	Unlisted int
	// Problems name damaged and missing objects, at most 1000. More is the number of further problems.
	Problems []error
	More     int
}

func (r *CheckReport) add(err error) {
	if len(r.Problems) == 1000 {
		r.More++
		return
	}
	r.Problems = append(r.Problems, err)
}

// Check looks for the objects that the newest manifest lists: bundles by reading
// their indexes and segments by asking for their sizes, and whether segments end before their extents do. With full it reads each bundle and compares all names. It does
// not read payloads, and does not look whether a commit has all that it names. The error says that the check could not be
// made; damage is in the report.
func (d *Depot) Check(ctx context.Context, full bool) (*CheckReport, error) {
	for range looks {
		r := &CheckReport{}
		s := d.snapshot()
		there := map[string]bool{}
		for _, prefix := range []string{"b/", "s/"} {
			for key, err := range d.store.List(ctx, kv.ListOptions{Prefix: prefix}) {
				if err != nil {
					return nil, fmt.Errorf("depot: check: %w", err)
				}
				there[key] = true
			}
		}
		r.Unlisted = len(there)
		ends := map[string]uint64{} // of segments: where the last extent ends
		tips := map[ID]bool{}       // versions that refs point at, and whether a bundle has them whole
		for _, id := range s.Refs {
			tips[id] = false
		}
		for i := range s.Bundles {
			if err := d.checkBundle(ctx, r, &s.Bundles[i], there, ends, tips, full); err != nil {
				return nil, err
			}
		}
		for _, ref := range slices.Sorted(maps.Keys(s.Refs)) {
			if id := s.Refs[ref]; !tips[id] {
				r.add(corrupt("%s: no sound bundle has version %v, at which it points", ref, id))
			}
		}
		keys := slices.Sorted(maps.Keys(ends))
		errs := make([]error, len(keys))
		if err := gather.Each(ctx, 16, len(keys), func(ctx context.Context, i int) error {
			v, err := kv.Locate(ctx, d.store, keys[i])
			switch {
			case errors.Is(err, kv.ErrNotFound):
				errs[i] = corrupt("%s is missing: a push to a new URL, from a database that has it all, brings it back", keys[i])
			case err != nil:
				return fmt.Errorf("depot: check %s: %w", keys[i], err)
			case uint64(v.Size()) < ends[keys[i]]:
				errs[i] = corrupt("%s has %d bytes of at least %d", keys[i], v.Size(), ends[keys[i]])
			}
			return nil
		}); err != nil {
			return nil, err
		}
		for i, err := range errs {
			if r.Segments++; there[keys[i]] {
				r.Unlisted--
			}
			if err != nil {
				r.add(err)
			}
		}
		if err := d.Refresh(ctx); err != nil {
			return nil, err
		}
		// What is missing may have been collected meanwhile.
		if len(r.Problems) == 0 || d.snapshot().Generation == s.Generation {
			return r, nil
		}
	}
	return nil, errBusy
}

// checkBundle checks one bundle, and notes where its extents end and which tips it has.
func (d *Depot) checkBundle(ctx context.Context, r *CheckReport, info *BundleInfo, there map[string]bool, ends map[string]uint64, tips map[ID]bool, full bool) error {
	r.Bundles++
	key := info.Name.Bundle()
	if there[key] {
		r.Unlisted--
	}
	note := func(err error) error {
		switch {
		case errors.Is(err, kv.ErrNotFound):
			err = corrupt("%s is missing", key)
		case !errors.Is(err, kv.ErrCorrupt):
			return err
		}
		r.add(fmt.Errorf("%s: %w", strings.TrimPrefix(key, "b/"), err))
		return nil
	}
	var x *index
	if full {
		b, err := d.Bundle(ctx, info)
		if err == nil {
			x, err = b.index()
		}
		if err != nil {
			return note(err)
		}
		for _, err := range b.Pages() {
			if r.Pages++; err != nil {
				_ = note(err)
			}
		}
		for _, err := range b.Commits() {
			if r.Commits++; err != nil {
				_ = note(err)
			}
		}
	} else {
		var err error
		if x, err = d.fetchRemote(ctx, info); err != nil {
			return note(err)
		}
	}
	for id := range tips {
		if e, ok := find(x.commits, commitSize, &id); ok && binary.LittleEndian.Uint32(e[32:])&flagBare == 0 {
			tips[id] = true
		}
	}
	for _, e := range x.allExtents() {
		s := e.Segment.Segment()
		ends[s] = max(ends[s], e.Offset+e.To-e.From)
	}
	return nil
}
