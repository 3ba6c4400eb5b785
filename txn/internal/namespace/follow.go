package namespace

import (
	"context"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// follow makes renames disappear from a merge: where one side moved an array
// and the other changed it, the array is moved in the base and on the other
// side too, and the three meet at the new path. Arrays are known by their
// identity, so this also finds those that moved with a group.
//
//	base    a  b                       z  z/b
//	ours    a  a/b   (b renamed)  ──▶  z  z/b
//	theirs  z  b     (a renamed)       z  z/b
func (m *merger) follow(r *sides) error {
	moves, err := m.decideRenames(r)
	if err != nil {
		return err
	}
	if err := m.intoRenamed(r, &moves); err != nil {
		return err
	}
	var accepted [3][]rename
	var both []rename
	for side := sideOurs; side <= sideTheirs; side++ {
		other := otherSide(side)
		for _, mv := range moves[side].renames() {
			switch {
			case m.refused[mv.id]:
			case len(moves[other].left[mv.id]) == 0:
				ok, err := m.followed(r, mv, other)
				if err != nil {
					return err
				}
				if ok {
					accepted[side] = append(accepted[side], mv)
				}
			case side == sideOurs && slices.Equal(moves[other].came[mv.id], []string{mv.To}):
				both = append(both, mv)
			}
		}
	}
	if err := m.moveArrays(r, both, sideOurs, []int{sideBase}, []renameIndex{nil}); err != nil {
		return err
	}
	// A new path has the names of the side that moved the array. On the other side it is
	// translated by the renames of that side, and likewise in the base once the base has
	// made those renames.
	ours, theirs := accepted[sideOurs], accepted[sideTheirs]
	if err := m.moveArrays(r, ours, sideOurs, []int{sideBase, sideTheirs}, []renameIndex{nil, indexRenames(theirs)}); err != nil {
		return err
	}
	return m.moveArrays(r, theirs, sideTheirs, []int{sideBase, sideOurs}, []renameIndex{indexRenames(ours), indexRenames(ours)})
}

// followed reports whether a rename is followed on the other side: not if that side
// left the array as it was.
func (m *merger) followed(r *sides, mv rename, other int) (bool, error) {
	frames, err := m.s.walk(m.ctx, r[sideBase], DirPath(mv.From))
	if err != nil {
		return false, err
	}
	_, is, err := m.s.dirAt(m.ctx, r[other], DirPath(mv.From))
	if err != nil || frames[len(frames)-1].root != is {
		return true, err
	}
	// Chunk maps above may have keys below it.
	if !slices.ContainsFunc(frames[:len(frames)-1], func(fr dirFrame) bool { return len(fr.info.forms) > 0 }) {
		return false, nil
	}
	c, err := m.s.FirstChange(m.ctx, r[sideBase], r[other], mv.From)
	return c != nil, err
}

// moveArrays makes the renames of one side in other roots, to paths that have
// moved along with others there.
func (m *merger) moveArrays(r *sides, all []rename, side int, in []int, along []renameIndex) error {
	var moves []rename // without those that follow from another
	index := indexRenames(all)
	for _, mv := range all {
		if index.along(mv.From) != mv.To {
			moves = append(moves, mv)
		}
	}
	grafts := make([]map[[16]byte]graft, len(in))
	for i, at := range in {
		var err error
		if r[at], grafts[i], err = m.detachAll(r[at], moves); err != nil {
			return err
		}
	}
	// Renames of outer directories come first: the inner ones lie in them.
	slices.SortFunc(moves, func(a, b rename) int { return strings.Compare(a.To, b.To) })
	replacers := make([]replacer, len(in))
	for i, at := range in {
		replacers[i] = replacer{s: m.s, root: r[at]}
	}
	for _, mv := range moves {
		// What lies at the new place made room on the side of the rename. So
		// it goes here too, unless the other side changed it.
		var there [2]tree.Root
		for i, at := range in {
			var err error
			if _, there[i], err = m.s.dirAt(m.ctx, r[at], DirPath(along[i].along(mv.To))); err != nil {
				return err
			}
		}
		puts := false
		if len(in) > 1 {
			var err error
			if puts, err = m.puts(DirPath(mv.To), there[0], there[1]); err != nil {
				return err
			}
		}
		if puts {
			c := Conflict{Kind: ConflictRename, Path: mv.To}
			c.set(side, "renamed from "+mv.From)
			c.set(otherSide(side), "put something else")
			if err := m.add(c); err != nil {
				return err
			}
			continue
		}
		for i, at := range in {
			to := along[i].along(mv.To)
			if m.moved[DirPath(to)] = side; len(in) == 1 {
				m.moved[DirPath(to)] = sideBase
			}
			if err := replacers[i].put(m.ctx, grafts[i][mv.id], to); err != nil {
				return err
			}
			r[at] = replacers[i].root
		}
	}
	for i, at := range in {
		if err := replacers[i].flush(m.ctx); err != nil {
			return err
		}
		r[at] = replacers[i].root
	}
	return nil
}

// detachAll removes the arrays of renames from a root, inner ones first, and returns
// them by identity.
func (m *merger) detachAll(root tree.Root, moves []rename) (tree.Root, map[[16]byte]graft, error) {
	grafts := map[[16]byte]graft{}
	p := replacer{s: m.s, root: root}
	for _, mv := range slices.Backward(moves) { // ascending: what is inside comes later
		g := graft{from: mv.From}
		var err error
		if g.plain, err = p.enter(m.ctx, mv.From); err != nil {
			return tree.Root{}, nil, err
		}
		g.src = p.root
		if _, g.dir, err = m.s.dirAt(m.ctx, p.root, DirPath(mv.From)); err != nil {
			return tree.Root{}, nil, err
		}
		grafts[mv.id] = g
		if err := p.put(m.ctx, graft{plain: true}, mv.From); err != nil {
			return tree.Root{}, nil, err
		}
	}
	err := p.flush(m.ctx)
	return p.root, grafts, err
}

// replacer replaces nodes of a root. Nodes of one directory that follow each other are
// replaced at once, so that moving many arrays costs the pages of their directory once.
type replacer struct {
	s     *Space
	root  tree.Root // without the edits that wait
	dir   string    // of the edits
	known bool      // dir is set
	plain bool      // no form at or above dir matches keys below it
	edits []tree.Edit
}

// enter prepares for a node. It reports whether no chunk map above the node can hold
// its keys.
func (p *replacer) enter(ctx context.Context, path string) (plain bool, err error) {
	dir, _ := SplitKey(path)
	if p.known && dir == p.dir {
		return p.plain, nil
	}
	if err := p.flush(ctx); err != nil {
		return false, err
	}
	frames, err := p.s.walk(ctx, p.root, dir)
	if err != nil {
		return false, err
	}
	p.dir, p.known = dir, true
	p.plain = !slices.ContainsFunc(frames, func(fr dirFrame) bool { return len(fr.info.forms) > 0 })
	return p.plain, nil
}

// put replaces what is at a path. An empty graft removes it.
func (p *replacer) put(ctx context.Context, g graft, path string) error {
	plain, err := p.enter(ctx, path)
	if err != nil {
		return err
	}
	if plain && g.plain {
		_, name := SplitKey(path)
		p.edits = append(p.edits, subEdit([]byte(name+"/"), g.dir))
		return nil
	}
	if err := p.flush(ctx); err != nil {
		return err
	}
	if p.root, err = p.s.DeletePrefix(ctx, p.root, DirPath(path)); err != nil || g.src.Entries == 0 {
		return err
	}
	p.root, err = p.s.graft(ctx, p.root, g, path)
	return err
}

// flush makes the edits that wait.
func (p *replacer) flush(ctx context.Context) error {
	p.known = false
	if len(p.edits) == 0 {
		return nil
	}
	sortEdits(p.edits)
	_, dir, err := p.s.dirAt(ctx, p.root, p.dir)
	if err == nil {
		dir, err = p.s.Tree.Apply(ctx, dir, p.edits)
	}
	if err == nil {
		p.root, err = p.s.setDir(ctx, p.root, p.dir, dir)
	}
	p.edits = nil
	return err
}
