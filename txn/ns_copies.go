package txn

import (
	"bytes"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// A document may hold copies of those below it (consolidated metadata). Its readers
// believe the copies, so a merge must not take them from one side if the other
// changed what they are copies of:
//
//	base    zarr.json                  x/zarr.json
//	ours    zarr.json                  x/zarr.json  y/zarr.json (new)
//	theirs  zarr.json + copy of x      x/zarr.json
//	merged  zarr.json                  x/zarr.json  y/zarr.json
//
// dropStale takes them out of a merged root. Copies stay that are of a side whose
// metadata below is that of the merged root, and those that both sides changed,
// which were merged like the documents themselves. These go too if there were none in
// the base, so that nothing tells what a side removed from what it never had, or
// if choose has decided more than the bytes of a chunk.
func (m *merger) dropStale(r sides, merged tree.Root) (tree.Root, error) {
	c := copyCheck{m: m}
	if err := c.dir("", r, merged); err != nil {
		return tree.Root{}, err
	}
	return m.s.apply(m.ctx, merged, sortedEdits(c.edits))
}

func sortedEdits(edits []edit) []edit {
	slices.SortFunc(edits, func(a, b edit) int { return strings.Compare(a.key, b.key) })
	return edits
}

// copyCheck looks for stale copies.
type copyCheck struct {
	m     *merger
	edits []edit
}

// dir looks at and below a directory that the merge changed on both sides.
func (c *copyCheck) dir(path string, r sides, merged tree.Root) error {
	s, ctx := c.m.s, c.m.ctx
	if merged == r[sideOurs] || merged == r[sideTheirs] || merged.Entries == 0 {
		return nil
	}
	if err := checkPath(ctx, path); err != nil {
		return err
	}
	info, err := s.dir(ctx, merged)
	if err != nil || info.isArray() {
		return err
	}
	seen := map[string]bool{}
	for _, side := range []int{sideOurs, sideTheirs} {
		for d, err := range s.t.Diff(ctx, r[side], merged, tree.Span{}) {
			if err != nil {
				return err
			}
			name := string(d.Key)
			if d.New == nil || isReserved(d.Key) || seen[name] || !isSub(d.Key) && !s.isNode(name) && !s.policy.Derived(name) {
				continue
			}
			seen[name] = true
			if isSub(d.Key) {
				err = c.sub(path, name, r, d.New.Child)
			} else {
				err = c.document(path, name, r, merged, d.New)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *copyCheck) sub(path, name string, r sides, merged tree.Root) error {
	var below sides
	for side, root := range r {
		info, err := c.m.s.dir(c.m.ctx, root)
		if err != nil {
			return err
		}
		if below[side], _, err = c.m.s.sub(c.m.ctx, root, info, name); err != nil {
			return err
		}
	}
	return c.dir(path+name, below, merged)
}

// document takes the copies out of a document if they are stale.
func (c *copyCheck) document(path, name string, r sides, merged tree.Root, v *tree.Value) error {
	s, ctx := c.m.s, c.m.ctx
	copies, rest, err := c.copies(name, v)
	if err != nil || copies == nil {
		return err
	}
	var of [3][]byte
	for side, root := range r {
		old, ok, err := s.t.Get(ctx, root, keyBytes(name))
		if err != nil {
			return err
		}
		if ok {
			if of[side], _, err = c.copies(name, &old); err != nil {
				return err
			}
		}
	}
	if bytes.Equal(of[sideOurs], of[sideTheirs]) {
		return nil // they are what both sides say
	}
	taken := false
	for _, side := range []int{sideOurs, sideTheirs} {
		if !bytes.Equal(of[side], copies) {
			continue
		}
		taken = true
		if same, err := c.sameMetadata(path, r[side], merged, s.policy.Derived(name)); err != nil || same {
			return err
		}
	}
	if !taken && of[sideBase] != nil && !c.m.chose {
		return nil
	}
	e := edit{key: path + name, del: rest == nil}
	if rest != nil {
		var ok bool
		if e.value, ok, err = s.makeDoc(ctx, e.key, rest); err != nil {
			return err
		}
		if !ok {
			return c.m.add(Conflict{Kind: ConflictDocument, Path: e.key, Ours: brief(v), Theirs: brief(v)})
		}
	}
	c.edits = append(c.edits, e)
	return nil
}

// copies returns the copies that a document holds, nil for none, and the document
// without them, nil if nothing is left.
func (c *copyCheck) copies(name string, v *tree.Value) (copies, rest []byte, err error) {
	if c.m.s.policy.Derived(name) { // which may be of any size
		sum := v.ContentSum()
		return sum[:], nil, nil
	}
	doc, ok, err := c.m.s.readDoc(c.m.ctx, *v)
	if err != nil || !ok {
		return nil, nil, err
	}
	copies, rest = c.m.s.policy.Copies(name, doc)
	return copies, rest, nil
}

// sameMetadata reports whether the metadata below two directories is the same, and
// that of the directories themselves if own.
func (c *copyCheck) sameMetadata(path string, a, b tree.Root, own bool) (bool, error) {
	if err := checkPath(c.m.ctx, path); err != nil {
		return false, err
	}
	for d, err := range c.m.s.t.Diff(c.m.ctx, a, b, tree.Span{}) {
		same := true
		switch {
		case err != nil:
			return false, err
		case isReserved(d.Key):
		case isSub(d.Key):
			same, err = c.sameMetadata(path+string(d.Key), childOf(d.Old), childOf(d.New), true)
		case own && c.m.s.isMetadata(string(d.Key)) && !c.m.s.policy.Derived(string(d.Key)):
			same = sameBytes(d.Old, d.New)
		}
		if err != nil || !same {
			return false, err
		}
	}
	return true, nil
}
