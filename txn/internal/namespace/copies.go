package namespace

import (
	"bytes"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// A document may hold copies of those below it (consolidated metadata). Its readers
// trust the copies, so a merge must not keep the copies of one side if the other
// changed the originals:
//
//	base    zarr.json                  x/zarr.json
//	ours    zarr.json                  x/zarr.json  y/zarr.json (new)
//	theirs  zarr.json + copy of x      x/zarr.json
//	merged  zarr.json                  x/zarr.json  y/zarr.json
//
// dropStale removes stale copies from a merged root. The copies of a side stay if its
// metadata below is that of the merged root. Copies that both sides changed were
// merged like the originals and stay too, with two exceptions: if the base had no
// copies, a removal cannot be told from an absence; and if choose decided more than
// the bytes of a chunk, the originals may be of one side.
func (m *merger) dropStale(r sides, merged tree.Root) (tree.Root, error) {
	c := copyCheck{m: m}
	if err := c.dir("", r, merged); err != nil {
		return tree.Root{}, err
	}
	return m.s.Apply(m.ctx, merged, sortedEdits(c.edits))
}

func sortedEdits(edits []Edit) []Edit {
	slices.SortFunc(edits, func(a, b Edit) int { return strings.Compare(a.Key, b.Key) })
	return edits
}

// copyCheck looks for stale copies.
type copyCheck struct {
	m     *merger
	edits []Edit
}

// dir looks at and below a directory that the merge changed on both sides.
func (c *copyCheck) dir(path string, r sides, merged tree.Root) error {
	s, ctx := c.m.s, c.m.ctx
	if merged == r[sideOurs] || merged == r[sideTheirs] || merged.Entries == 0 {
		return nil
	}
	if err := CheckPath(ctx, path); err != nil {
		return err
	}
	info, err := s.readDir(ctx, merged)
	if err != nil || info.isArray() {
		return err
	}
	seen := map[string]bool{}
	for _, side := range []int{sideOurs, sideTheirs} {
		for d, err := range s.Tree.Diff(ctx, r[side], merged, tree.Span{}) {
			if err != nil {
				return err
			}
			name := string(d.Key)
			if d.New == nil || isReserved(d.Key) || seen[name] || !isSub(d.Key) && !s.IsNode(name) && !s.policy.Derived(name) {
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
	below, err := c.m.childrenOf(r, name)
	if err != nil {
		return err
	}
	return c.dir(path+name, below, merged)
}

// document removes the copies from a document if they are stale.
func (c *copyCheck) document(path, name string, r sides, merged tree.Root, v *tree.Value) error {
	s, ctx := c.m.s, c.m.ctx
	copies, rest, err := c.copies(name, v)
	if err != nil || copies == nil {
		return err
	}
	var of [3][]byte
	for side, root := range r {
		old, ok, err := s.Tree.Get(ctx, root, keyBytes(name))
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
		return nil // both sides have the same
	}
	fromSide := false
	for _, side := range []int{sideOurs, sideTheirs} {
		if !bytes.Equal(of[side], copies) {
			continue
		}
		fromSide = true
		if same, err := c.sameMetadata(path, r[side], merged, s.policy.Derived(name)); err != nil || same {
			return err
		}
	}
	if !fromSide && of[sideBase] != nil && !c.m.chose {
		return nil
	}
	e := Edit{Key: path + name, Delete: rest == nil}
	if rest != nil {
		var ok bool
		if e.Value, ok, err = s.makeDoc(ctx, e.Key, rest); err != nil {
			return err
		}
		if !ok {
			return c.m.add(Conflict{Kind: ConflictDocument, Path: e.Key, Ours: brief(v), Theirs: brief(v)})
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
	if err := CheckPath(c.m.ctx, path); err != nil {
		return false, err
	}
	for d, err := range c.m.s.Tree.Diff(c.m.ctx, a, b, tree.Span{}) {
		same := true
		switch {
		case err != nil:
			return false, err
		case isReserved(d.Key):
		case isSub(d.Key):
			same, err = c.sameMetadata(path+string(d.Key), childOf(d.Old), childOf(d.New), true)
		case own && c.m.s.isMetadata(string(d.Key)) && !c.m.s.policy.Derived(string(d.Key)):
			same = SameBytes(d.Old, d.New)
		}
		if err != nil || !same {
			return false, err
		}
	}
	return true, nil
}
