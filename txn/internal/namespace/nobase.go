package namespace

import (
	"cmp"
	"context"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// MergeWithoutBase merges two sides that have no version in common. Nothing tells which
// side changed what, so each difference is a conflict for o.Choose: a node that one
// side has, or both with different metadata, is one conflict; a chunk or document of a
// node that both have is another one. What is equal is no conflict. Its cost is that of
// the differences.
func (s *Space) MergeWithoutBase(ctx context.Context, ours, theirs tree.Root, o MergeOptions) (tree.Root, []Conflict, error) {
	t := twoSides{m: newMerger(ctx, s, o), theirs: theirs, root: ours}
	root, err := t.run(ours)
	if err != nil && err != errLimit {
		return tree.Root{}, nil, err
	}
	if len(t.m.conflicts) > 0 {
		sortConflicts(t.m.conflicts)
		return tree.Root{}, t.m.conflicts, nil
	}
	return root, nil, nil
}

type twoSides struct {
	m      *merger
	theirs tree.Root
	root   tree.Root // ours, with whole nodes taken from theirs
	edits  []Edit    // of single documents and chunks
}

func (t *twoSides) run(ours tree.Root) (tree.Root, error) {
	if err := t.dir("", ours, t.theirs); err != nil {
		return tree.Root{}, err
	}
	root, err := t.m.s.Apply(t.m.ctx, t.root, sortedEdits(t.edits))
	if err != nil {
		return root, err
	}
	// An array that the sides have at different paths may be there twice now.
	all, err := t.m.s.arrayMoves(t.m.ctx, tree.Root{}, root)
	if err != nil {
		return root, err
	}
	for _, at := range all.came {
		if len(at) > 1 {
			if err := t.m.add(Conflict{Kind: ConflictRename, Path: at[0], Ours: "put at " + at[0], Theirs: "put at " + at[1]}); err != nil {
				return root, err
			}
		}
	}
	return t.m.dropStale(sides{sideOurs: ours, sideTheirs: t.theirs}, root)
}

// dir compares a directory that both sides have.
func (t *twoSides) dir(path string, ours, theirs tree.Root) error {
	if ours == theirs {
		return nil
	}
	m := t.m
	if err := CheckPath(m.ctx, path); err != nil {
		return err
	}
	d := &dirMerge{m: m, path: path, r: sides{sideOurs: ours, sideTheirs: theirs}}
	for side, root := range d.r {
		var err error
		if d.infos[side], err = m.s.readDir(m.ctx, root); err != nil {
			return err
		}
	}
	if d.infos[sideOurs].isArray() || d.infos[sideTheirs].isArray() {
		for _, name := range nodeNamesOf(d.infos[sideOurs], d.infos[sideTheirs]) {
			if v, err := d.get(name); err != nil {
				return err
			} else if !SameBytes(v[sideOurs], v[sideTheirs]) {
				return t.node(path, ours, theirs)
			}
		}
	}
	for it, err := range d.differences() {
		if err == nil {
			err = t.value(d, it)
		}
		if err != nil {
			return err
		}
	}
	for c, err := range m.s.Tree.Diff(m.ctx, ours, theirs, tree.Span{}) {
		switch {
		case err != nil:
		case !isSub(c.Key):
		case c.Old == nil || c.New == nil:
			err = t.node(path+string(c.Key), childOf(c.Old), childOf(c.New))
		default:
			err = t.dir(path+string(c.Key), childOf(c.Old), childOf(c.New))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// value asks about a document or chunk.
func (t *twoSides) value(d *dirMerge, it difference) error {
	ours, theirs := it.v[sideOurs], it.v[sideTheirs]
	if t.m.s.policy.Derived(it.key) {
		return nil
	}
	if t.m.s.IsNode(it.key) && ours != nil && theirs != nil {
		if same, err := d.sameButCopies(it.key, ours, theirs); err != nil || same {
			return err
		}
	}
	c := d.created(it.key, it.coords, it.v)
	if it.coords != nil {
		c.Kind = ConflictChunk
	}
	v, err := t.m.resolve(c, ours, theirs)
	if err == nil && v != ours {
		e := Edit{Key: c.Path, Delete: v == nil}
		if v != nil {
			e.Value = *v
		}
		t.edits = append(t.edits, e)
	}
	return err
}

// node asks about a directory as a whole.
func (t *twoSides) node(path string, ours, theirs tree.Root) (err error) {
	m := t.m
	c := Conflict{Kind: ConflictCreate, Path: NodePath(path)}
	for side, root := range map[int]tree.Root{sideOurs: ours, sideTheirs: theirs} {
		info, err := m.s.readDir(m.ctx, root)
		if err != nil {
			return err
		}
		if root.Entries > 0 {
			c.set(side, cmp.Or(nodeNames[info.kind()], "keys"))
		}
	}
	switch m.ask(c) {
	case Ours:
		return nil
	case Refuse:
		return m.add(c)
	}
	if path == "" {
		t.root = theirs
		return nil
	}
	if t.root, err = m.s.DeletePrefix(m.ctx, t.root, path); err != nil || theirs.Entries == 0 {
		return err
	}
	t.root, err = m.s.graft(m.ctx, t.root, graft{src: t.theirs, from: NodePath(path), dir: theirs}, NodePath(path))
	return err
}
