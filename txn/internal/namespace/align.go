package namespace

import (
	"errors"
	"iter"
	"slices"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// align adds a form that one of the three roots has to the others, where it
// matches keys. For example, ours creates the metadata of an array while theirs
// puts chunks that are still documents there: after align both have chunks.
func (m *merger) align(r *sides) error {
	var missing [3][]formAt
	if err := m.findMissing("", *r, *r, nil, &missing); err != nil {
		return err
	}
	for side, forms := range missing {
		if len(forms) == 0 {
			continue
		}
		var err error
		same := func(root tree.Root) (tree.Root, error) { return root, nil }
		if r[side], err = m.s.rehome(m.ctx, r[side], forms, same); err != nil {
			return err
		}
	}
	return nil
}

// findMissing collects the forms that align adds, at and below a directory. Only
// directories that both sides changed are merged key by key; others matter if a
// form above them has chunks there.
func (m *merger) findMissing(path string, r, all sides, above []formAt, missing *[3][]formAt) error {
	_, simple := m.trivial(r)
	unchanged := r[sideBase] == r[sideOurs] && r[sideBase] == r[sideTheirs]
	covered := slices.ContainsFunc(above, func(at formAt) bool {
		_, ok := at.cut(path[len(at.dir):])
		return ok
	})
	if unchanged || simple && !covered {
		return nil
	}
	if err := CheckPath(m.ctx, path); err != nil {
		return err
	}
	var infos [3]*dirInfo
	for side := range r {
		var err error
		if infos[side], err = m.s.readDir(m.ctx, r[side]); err != nil {
			return err
		}
	}
	for _, f := range unionForms(&infos[0].dirState, &infos[1].dirState, &infos[2].dirState) {
		at := formAt{path, f}
		above = append(clipForms(above), at)
		for side := range all {
			if infos[side].form(f) != nil {
				continue
			}
			matches, err := m.s.captures(m.ctx, all[side], at)
			if err != nil {
				return err
			}
			if matches {
				missing[side] = append(missing[side], at)
			}
		}
	}
	for sub, err := range m.changedSubs(r) {
		if err == nil {
			err = m.findMissing(path+sub.name, sub.sides, all, above, missing)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func clipForms(f []formAt) []formAt { return f[:len(f):len(f)] }

// subSides is a sub-directory in three states.
type subSides struct {
	name string
	sides
}

// changedSubs yields the sub-directories that either side changed, ascending.
func (m *merger) changedSubs(r sides) iter.Seq2[subSides, error] {
	return func(yield func(subSides, error) bool) {
		next, stop := iter.Pull2(m.subChanges(r, sideTheirs))
		defer stop()
		theirs, err, more := next()
		for ours, oursErr := range m.subChanges(r, sideOurs) {
			for more && err == nil && theirs.name < ours.name {
				if !yield(theirs, nil) {
					return
				}
				theirs, err, more = next()
			}
			if more && err == nil && theirs.name == ours.name {
				ours.sides[sideTheirs] = theirs.sides[sideTheirs]
				theirs, err, more = next()
			}
			if !yield(ours, errors.Join(oursErr, err)) {
				return
			}
		}
		for ; more; theirs, err, more = next() {
			if !yield(theirs, err) {
				return
			}
		}
	}
}

// subChanges yields the sub-directories that one side changed; the other is as
// in the base.
func (m *merger) subChanges(r sides, side int) iter.Seq2[subSides, error] {
	return func(yield func(subSides, error) bool) {
		for c, err := range m.s.Tree.Diff(m.ctx, r[sideBase], r[side], tree.Span{}) {
			if err == nil && !isSub(c.Key) {
				continue
			}
			base := childOf(c.Old)
			sub := subSides{string(c.Key), sides{base, base, base}}
			sub.sides[side] = childOf(c.New)
			if !yield(sub, err) || err != nil {
				return
			}
		}
	}
}
