package namespace

import (
	"iter"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// Both sides may put an array of their own at one path, with the same metadata:
//
//	base    nothing              nothing
//	ours    array #1: c/0        array #1: c/0
//	theirs  array #2: c/1        array #2: c/0
//	merged  conflict             array #1: c/0
//
// An array has a value everywhere: where a chunk is missing, the fill value. So a
// chunk that only one of them has is not an addition to the other. Without an
// array in the base, nothing tells whether the other side wrote the fill value
// there or left it alone. Two arrays therefore become one only if they are equal.
// An array of one identity that both sides took from another branch is different:
// both sides began with the same chunks, which are merged one by one.

// twoArrays returns what differs between two arrays that the sides put at the path
// of the directory, except for chunks that both have, whose merge is refused anyway.
func (d *dirMerge) twoArrays() (found []Conflict, err error) {
	base, ours, theirs := d.infos[sideBase], d.infos[sideOurs], d.infos[sideTheirs]
	if !ours.hasID || !theirs.hasID || ours.id == theirs.id || base.hasID && (base.id == ours.id || base.id == theirs.id) {
		return nil, nil
	}
	for c, err := range d.differences() {
		if err != nil {
			return nil, err
		}
		_, silent := d.m.mergeValue(c.v[sideBase], c.v[sideOurs], c.v[sideTheirs])
		switch {
		case c.v[sideBase] != nil && !base.hasID:
			continue // it was there before both made an array of it, so it has a base
		case c.coords != nil && !silent, c.coords == nil && (!d.m.s.isMetadata(c.key) || d.m.s.policy.Derived(c.key)):
			continue
		}
		if found = append(found, d.created(c.key, c.coords, c.v)); len(found) >= d.m.o.Limit {
			break
		}
	}
	return found, nil
}

// difference is a chunk or document that ours and theirs have in different forms.
type difference struct {
	key    string // relative to the directory
	coords []int64
	v      [3]*tree.Value
}

// differences yields the documents of the directory that differ between ours and
// theirs, and the chunks of forms that both name.
func (d *dirMerge) differences() iter.Seq2[difference, error] {
	return func(yield func(difference, error) bool) {
		if !d.compare(nil, d.r, yield) {
			return
		}
		base, ours, theirs := &d.infos[sideBase].dirState, &d.infos[sideOurs].dirState, &d.infos[sideTheirs].dirState
		for _, f := range unionForms(ours, theirs) {
			if ours.names(f) && theirs.names(f) && !d.compare(&f, sides{mapOf(base, f), mapOf(ours, f), mapOf(theirs, f)}, yield) {
				return
			}
		}
	}
}

// compare yields the differences of three states of the chunk map of a form, or of
// the directory itself.
func (d *dirMerge) compare(f *Form, r sides, yield func(difference, error) bool) bool {
	for c, err := range d.m.s.Tree.Diff(d.m.ctx, r[sideOurs], r[sideTheirs], tree.Span{}) {
		if err != nil {
			yield(difference{}, err)
			return false
		}
		if f == nil && (isSub(c.Key) || isReserved(c.Key)) || SameBytes(c.Old, c.New) {
			continue
		}
		out := difference{key: string(c.Key), v: [3]*tree.Value{sideOurs: c.Old, sideTheirs: c.New}}
		if f != nil {
			key, _ := f.print(nil, c.Key)
			out.key, out.coords = string(key), f.numbers(c.Key)
		} else if d.isScalarChunk(out.key) {
			out.coords = []int64{}
		}
		base, ok, err := d.m.s.Tree.Get(d.m.ctx, r[sideBase], c.Key)
		if ok {
			out.v[sideBase] = &base
		}
		if !yield(out, err) || err != nil {
			return false
		}
	}
	return true
}
