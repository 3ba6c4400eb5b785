package namespace

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// Conflicts about where arrays are come first, because all other steps of a merge find
// arrays by their paths. A choice is made true on the side that loses: there an array
// goes back to its old path, or to the path that the winner gave it. Then the sides
// agree, and the merge goes on as if the loser had not renamed it.
//
//	base    a           a           a
//	ours    b      ──▶  c           c    (theirs chosen)
//	theirs  c           c           c

// maxDecisions bounds how often choices change the sides. Choices that contradict each
// other are conflicts then.
const maxDecisions = 16

// decideRenames decides the conflicts of renames and returns the moves of each side
// since the base.
func (m *merger) decideRenames(r *sides) (moves [3]arrayMoves, err error) {
	for round := 0; ; round++ {
		if round == maxDecisions {
			m.o.Choose = nil
		}
		d := &renameDecision{m: m, r: r, groups: map[string][3]nodeKind{}}
		if d.moves, err = m.movesOf(r); err != nil {
			return moves, err
		}
		for side := sideOurs; side <= sideTheirs; side++ {
			d.renames[side] = d.moves[side].renames()
			d.index[side] = indexRenames(d.renames[side])
			d.byTo[side], d.to[side], d.dropped[side] = map[string]rename{}, map[[16]byte]string{}, map[string]bool{}
			for _, mv := range d.renames[side] {
				d.byTo[side][mv.To] = mv
			}
		}
		changed := false
		for _, check := range []func() error{d.occupied, d.cycles, d.intoRemoved, d.places} {
			if err = check(); err == nil {
				changed, err = d.apply()
			}
			if changed || err != nil {
				break
			}
		}
		if err != nil || !changed {
			m.noteCame(&d.moves)
			return d.moves, err
		}
	}
}

// movesOf returns the moves of each side since the base.
func (m *merger) movesOf(r *sides) (moves [3]arrayMoves, err error) {
	for side := sideOurs; side <= sideTheirs; side++ {
		if moves[side], err = m.s.arrayMoves(m.ctx, r[sideBase], r[side]); err != nil {
			return moves, err
		}
	}
	return moves, nil
}

// noteCame notes for movedIn where the sides renamed arrays to.
func (m *merger) noteCame(moves *[3]arrayMoves) {
	for side := range m.came {
		m.came[side] = nil
		for _, mv := range moves[side].renames() {
			m.came[side] = append(m.came[side], DirPath(mv.To))
		}
		slices.Sort(m.came[side])
	}
}

// movedIn reports whether an array that a side renamed is in a directory.
func (m *merger) movedIn(side int, dir string) bool {
	i, _ := slices.BinarySearch(m.came[side], dir)
	return i < len(m.came[side]) && strings.HasPrefix(m.came[side][i], dir)
}

// renameDecision collects what choices change on the sides.
type renameDecision struct {
	m       *merger
	r       *sides
	moves   [3]arrayMoves
	renames [3][]rename
	index   [3]renameIndex
	byTo    [3]map[string]rename
	groups  map[string][3]nodeKind // by directory

	to       [3]map[[16]byte]string // where arrays of a side are to be
	reverted [3][]string            // paths of a side that are to be as in the base
	dropped  [3]map[string]bool     // arrays of a side that are to go
	restored [3][]string            // directories whose nodes a side is to have as the base has them
}

// askOrAdd asks about a conflict, and records it if there is no answer.
func (m *merger) askOrAdd(c Conflict) (Choice, error) {
	choice := m.ask(c)
	if choice != Refuse {
		return choice, nil
	}
	return Refuse, m.add(c)
}

// sideOf returns the side that a choice takes, and the other.
func sideOf(c Choice) (winner, loser int) {
	if c == Ours {
		return sideOurs, sideTheirs
	}
	return sideTheirs, sideOurs
}

func otherSide(side int) int { return sideOurs + sideTheirs - side }

// occupied finds renames to a path where the other side put or changed something.
func (d *renameDecision) occupied() error {
	for x := sideOurs; x <= sideTheirs; x++ {
		y := otherSide(x)
		for _, mv := range d.renames[x] {
			at := d.index[y].along(mv.To)
			was, base, err := d.m.s.dirAt(d.m.ctx, d.r[sideBase], DirPath(mv.To))
			if err != nil {
				return err
			}
			is, other, err := d.m.s.dirAt(d.m.ctx, d.r[y], DirPath(at))
			if err != nil {
				return err
			}
			if was == nil {
				was = emptyDir
			}
			if other.Entries == 0 || other == base || is.hasID && is.id == mv.id {
				continue
			}
			c := Conflict{Kind: ConflictRename, Path: mv.To, Also: []string{mv.From}}
			if is.kind() == noNode {
				if below, err := d.putsBelow(DirPath(at), base, other); err != nil || !below {
					if err != nil {
						return err
					}
					continue
				}
				c.Kind = ConflictAncestor
			}
			c.set(x, "renamed from "+mv.From)
			c.set(y, "put something else")
			if is.hasID && was.hasID && is.id == was.id {
				if len(d.moves[x].came[is.id]) > 0 {
					continue // it goes along
				}
				c.Kind, c.Base = ConflictGone, "array"
				c.set(y, "changed")
			}
			choice, err := d.m.askOrAdd(c)
			if err != nil {
				return err
			}
			switch winner, _ := sideOf(choice); {
			case choice == Refuse:
			case winner == y:
				d.to[x][mv.id] = mv.From
			case c.Kind != ConflictAncestor: // what is below is asked about by its own path
				d.reverted[y] = append(d.reverted[y], at)
			}
		}
	}
	return nil
}

// putsBelow reports whether a side put something into directories of one that has no node.
func (d *renameDecision) putsBelow(path string, was, is tree.Root) (bool, error) {
	for c, err := range d.m.s.Tree.Diff(d.m.ctx, was, is, tree.Span{}) {
		if err == nil && !isSub(c.Key) {
			continue
		}
		puts := false
		if err == nil {
			puts, err = d.m.puts(path+string(c.Key), childOf(c.Old), childOf(c.New))
		}
		if puts || err != nil {
			return puts, err
		}
	}
	return false, nil
}

// cycles finds pairs of renames in which each side moves an array into the one that
// the other moves.
func (d *renameDecision) cycles() error {
	for _, mv := range d.renames[sideOurs] {
		for other, ok := d.index[sideTheirs].around(mv.To); ok; other, ok = d.index[sideTheirs].around(other.From) {
			if !strings.HasPrefix(other.To, DirPath(mv.From)) {
				continue
			}
			c := Conflict{Kind: ConflictRename, Path: min(mv.From, other.From), Also: []string{mv.From, mv.To, other.From, other.To}, Base: "arrays"}
			c.set(sideOurs, mv.From+" renamed to "+mv.To)
			c.set(sideTheirs, other.From+" renamed to "+other.To)
			choice, err := d.m.askOrAdd(c)
			if err != nil {
				return err
			}
			switch choice {
			case Refuse:
				d.m.refused[mv.id], d.m.refused[other.id] = true, true
			case Ours:
				d.to[sideTheirs][other.id] = other.From
			case Theirs:
				d.to[sideOurs][mv.id] = mv.From
			}
		}
	}
	return nil
}

// intoRemoved finds arrays that one side moved below a group that the other removed,
// renamed, or made an array of.
func (d *renameDecision) intoRemoved() error {
	for y := sideOurs; y <= sideTheirs; y++ {
		x := otherSide(y)
		var renamed map[string]string
		for _, mv := range d.renames[y] {
			for up, more := parentDir(DirPath(mv.To)); more && up != ""; up, more = parentDir(up) {
				kinds, err := d.kinds(up)
				if err != nil {
					return err
				}
				if !takesAway(kinds[sideBase], kinds[x], kinds[y]) {
					continue
				}
				if _, moved := d.index[x][up]; moved {
					continue // what is in an array goes along
				}
				if renamed == nil {
					renamed = groupMoves(d.renames[x])
				}
				c := Conflict{Kind: ConflictRename, Path: mv.To, Also: []string{mv.From}}
				c.set(x, "above it: "+orNone(nodeNames[kinds[x]]))
				c.set(y, "renamed to it")
				group, along := renamed[NodePath(up)]
				if along = along && kinds[x] == noNode; along {
					c.Also = append(c.Also, DirPath(group)+mv.To[len(up):])
					c.set(x, "above it: renamed to "+group)
				}
				choice, err := d.m.askOrAdd(c)
				if err != nil {
					return err
				}
				switch winner, _ := sideOf(choice); {
				case choice == Refuse:
				case winner == x:
					d.to[y][mv.id] = mv.From
				case along:
					d.to[y][mv.id] = DirPath(group) + mv.To[len(up):]
				case d.sendHome(x, NodePath(up)):
				default:
					for ; up != ""; up, _ = parentDir(up) {
						if kinds, err = d.kinds(up); err != nil {
							return err
						}
						if takesAway(kinds[sideBase], kinds[x], kinds[y]) && !slices.Contains(d.restored[x], up) && (kinds[sideBase] == groupNode || kinds[x] == arrayNode) {
							d.restored[x] = append(d.restored[x], up)
						}
					}
				}
				break
			}
		}
	}
	return nil
}

// sendHome sends an array that a side renamed to a path back to where it was.
func (d *renameDecision) sendHome(side int, path string) bool {
	mv, ok := d.byTo[side][path]
	if ok {
		d.to[side][mv.id] = mv.From
	}
	return ok
}

// takesAway reports whether one side took away, or made an array of, the node that what
// the other side puts is below.
func takesAway(was, is, other nodeKind) bool {
	return is == arrayNode && was != arrayNode && other != arrayNode || is == noNode && was != noNode && other == was
}

// kinds returns what a directory is on each side.
func (d *renameDecision) kinds(dir string) (kinds [3]nodeKind, err error) {
	kinds, ok := d.groups[dir]
	if ok {
		return kinds, nil
	}
	if kinds, err = d.m.kinds(d.r, dir); err == nil {
		d.groups[dir] = kinds
	}
	return kinds, err
}

func (m *merger) kinds(r *sides, dir string) (kinds [3]nodeKind, err error) {
	for side, root := range r {
		info, _, err := m.s.dirAt(m.ctx, root, dir)
		if err != nil {
			return kinds, err
		}
		if info != nil {
			kinds[side] = info.kind()
		}
	}
	return kinds, nil
}

// parentDir returns the directory that one is in; the root is in none.
func parentDir(dir string) (up string, ok bool) {
	path := NodePath(dir)
	return path[:strings.LastIndexByte(path, '/')+1], path != ""
}

// places finds arrays to which the sides gave two paths, and those that one side renamed
// and the other removed. An array that the base lacks may be at two paths too, as when
// the commit that made it is picked into a branch that has renamed it since.
func (d *renameDecision) places() error {
	ids := map[[16]byte]bool{}
	for side := sideOurs; side <= sideTheirs; side++ {
		for id := range d.moves[side].came {
			ids[id] = true
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(ids), func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) }) {
		if err := d.place(id); err != nil {
			return err
		}
	}
	return nil
}

func (d *renameDecision) place(id [16]byte) error {
	var at [3]string
	var has [3]bool
	for side := sideOurs; side <= sideTheirs; side++ {
		if left := d.moves[side].left[id]; len(left) > 0 {
			at[sideBase], has[sideBase] = left[0], true
		}
		if came := d.moves[side].came[id]; len(came) > 0 {
			at[side], has[side] = came[0], true
		}
	}
	c := Conflict{Kind: ConflictRename, Path: at[sideBase], Base: "array"}
	switch {
	case has[sideOurs] && has[sideTheirs]:
		text := "renamed to "
		if !has[sideBase] {
			c.Path, c.Base, text = at[sideOurs], "", "put at "
		}
		c.Same = at[sideOurs] == at[sideTheirs]
		c.Ours, c.Theirs = text+at[sideOurs], text+at[sideTheirs]
		if c.Same && (!d.m.o.Strict || !has[sideBase] || d.m.placed[id]) {
			return nil
		}
	case !has[sideBase]:
		return nil // new
	case len(d.moves[sideOurs].left[id]) == 0 || len(d.moves[sideTheirs].left[id]) == 0:
		return nil // the other side left it where it was
	default:
		mover := sideOurs
		if has[sideTheirs] {
			mover = sideTheirs
		}
		c.Kind = ConflictGone
		c.set(mover, "renamed to "+at[mover])
		c.set(otherSide(mover), "removed")
	}
	for side := sideOurs; side <= sideTheirs; side++ {
		if has[side] && at[side] != c.Path {
			c.Also = append(c.Also, at[side])
		}
	}
	choice, err := d.m.askOrAdd(c)
	if choice == Refuse || err != nil || c.Same {
		return err
	}
	d.m.placed[id] = true
	winner, loser := sideOf(choice)
	if has[winner] {
		d.to[loser][id] = at[winner]
	} else {
		d.dropped[loser][at[loser]] = true
	}
	return nil
}

// apply changes the sides as it was chosen.
func (d *renameDecision) apply() (changed bool, err error) {
	for side := sideOurs; side <= sideTheirs; side++ {
		before := d.r[side]
		for _, dir := range d.restored[side] {
			if err := d.m.restore(d.r, side, dir); err != nil {
				return false, err
			}
		}
		if len(d.to[side])+len(d.reverted[side])+len(d.dropped[side]) > 0 {
			if err := d.relocate(side); err != nil {
				return false, err
			}
		}
		changed = changed || d.r[side] != before
	}
	return changed, nil
}

// restore makes a directory of a side what it is in the base, but for what is below.
func (m *merger) restore(r *sides, side int, dir string) error {
	_, base, err := m.s.dirAt(m.ctx, r[sideBase], dir)
	if err != nil {
		return err
	}
	_, at, err := m.s.dirAt(m.ctx, r[side], dir)
	if err == nil {
		at, err = m.s.takeOwn(m.ctx, at, base, m.s.isMetadata)
	}
	if err == nil {
		r[side], err = m.s.setDir(m.ctx, r[side], dir, at)
	}
	return err
}

// takeOwn replaces the node of a directory, with its chunks, by that of another.
// Directories below stay, and so do documents that are not named by own.
func (s *Space) takeOwn(ctx context.Context, dst, src tree.Root, own func(name string) bool) (tree.Root, error) {
	scalars := map[string]bool{}
	for _, root := range []tree.Root{dst, src} {
		info, err := s.readDir(ctx, root)
		if err != nil {
			return tree.Root{}, err
		}
		for _, n := range info.nodes {
			for _, f := range n.forms {
				scalars[f.Prefix] = scalars[f.Prefix] || f.Rank == 0
			}
		}
	}
	var edits []tree.Edit
	for c, err := range s.Tree.Diff(ctx, dst, src, tree.Span{}) {
		if err != nil {
			return tree.Root{}, err
		}
		if isReserved(c.Key) || !isSub(c.Key) && (own(string(c.Key)) || scalars[string(c.Key)]) {
			edits = append(edits, valueEdit(bytes.Clone(c.Key), c.New))
		}
	}
	return s.Tree.Apply(ctx, dst, edits)
}

// valueEdit puts a value, or deletes the key for nil.
func valueEdit(key []byte, v *tree.Value) tree.Edit {
	if v == nil {
		return tree.Edit{Key: key, Delete: true}
	}
	return tree.Edit{Key: key, Value: *v}
}

// relocate moves the arrays of a side to where they are to be. What lies there gives
// way: arrays go back to where the base has them, and anything else that the side put
// there is a conflict of its own.
func (d *renameDecision) relocate(side int) error {
	m, base, root := d.m, d.r[sideBase], d.r[side]
	if err := d.makeRoom(side); err != nil {
		return err
	}
	var list, absent []rename
	for id, to := range d.to[side] {
		if came := d.moves[side].came[id]; len(came) > 0 {
			list = append(list, rename{id, came[0], to})
		} else if info, _, err := m.s.dirAt(m.ctx, root, DirPath(d.basePath(id))); err != nil {
			return err
		} else if info != nil && info.hasID && info.id == id {
			list = append(list, rename{id, d.basePath(id), to})
		} else {
			absent = append(absent, rename{id, d.basePath(id), to})
		}
	}
	slices.SortFunc(list, func(a, b rename) int { return strings.Compare(a.From, b.From) })
	root, grafts, err := m.detachAll(root, list)
	if err != nil {
		return err
	}
	for _, mv := range absent {
		g := graft{src: base, from: mv.From}
		if _, g.dir, err = m.s.dirAt(m.ctx, base, DirPath(mv.From)); err == nil {
			g.dir, err = m.s.takeOwn(m.ctx, tree.Root{}, g.dir, func(string) bool { return true })
		}
		if err != nil {
			return err
		}
		grafts[mv.id] = g
	}
	for _, path := range slices.Sorted(maps.Keys(d.dropped[side])) {
		_, at, err := m.s.dirAt(m.ctx, root, DirPath(path))
		if err == nil {
			at, err = m.s.takeOwn(m.ctx, at, tree.Root{}, func(string) bool { return true })
		}
		if err == nil {
			root, err = m.s.setDir(m.ctx, root, DirPath(path), at)
		}
		if err != nil {
			return err
		}
	}
	for _, path := range d.reverted[side] {
		if root, err = d.revert(side, root, path); err != nil {
			return err
		}
	}
	all := slices.Concat(list, absent)
	slices.SortFunc(all, func(a, b rename) int { return strings.Compare(a.To, b.To) })
	p := replacer{s: m.s, root: root}
	for _, mv := range all {
		if _, err := p.enter(m.ctx, mv.To); err != nil {
			return err
		}
		_, there, err := m.s.dirAt(m.ctx, p.root, DirPath(mv.To))
		if err != nil {
			return err
		}
		if there.Entries > 0 {
			if ok, err := d.vacated(side, mv, there); err != nil || !ok {
				return err
			}
		}
		if err := p.put(m.ctx, grafts[mv.id], mv.To); err != nil {
			return err
		}
	}
	if err := p.flush(m.ctx); err != nil {
		return err
	}
	d.r[side], err = d.carry(side, p.root, list)
	return err
}

// basePath returns where the base has an array that a side moved or removed.
func (d *renameDecision) basePath(id [16]byte) string {
	for side := sideOurs; side <= sideTheirs; side++ {
		if left := d.moves[side].left[id]; len(left) > 0 {
			return left[0]
		}
	}
	return ""
}

// makeRoom sends away the arrays that a side has where others are to be.
func (d *renameDecision) makeRoom(side int) error {
	came := slices.Clone(d.renames[side])
	slices.SortFunc(came, func(a, b rename) int { return strings.Compare(a.To, b.To) })
	var paths []string
	goHome := func(path string) {
		for _, end := range []string{path, DirPath(path)} {
			i, _ := slices.BinarySearchFunc(came, end, func(mv rename, end string) int { return strings.Compare(mv.To, end) })
			for ; i < len(came) && (came[i].To == path || strings.HasPrefix(came[i].To, DirPath(path))); i++ {
				if _, ok := d.to[side][came[i].id]; !ok && !d.dropped[side][came[i].To] {
					d.to[side][came[i].id] = came[i].From
					paths = append(paths, came[i].From)
				}
			}
		}
	}
	for _, path := range d.reverted[side] {
		goHome(path)
	}
	for _, path := range d.to[side] {
		paths = append(paths, path)
	}
	for len(paths) > 0 {
		path := paths[0]
		paths = paths[1:]
		goHome(path)
		info, _, err := d.m.s.dirAt(d.m.ctx, d.r[side], DirPath(path))
		if err != nil {
			return err
		}
		if info == nil || !info.hasID {
			continue
		}
		// An array that is still where the base has it follows the other side.
		if to := d.moves[otherSide(side)].came[info.id]; len(to) > 0 && len(d.moves[side].came[info.id]) == 0 {
			if _, ok := d.to[side][info.id]; !ok {
				d.to[side][info.id] = to[0]
				paths = append(paths, to[0])
			}
		}
	}
	return nil
}

// revert makes what a side has at a path what the base has there, without arrays that
// the side has elsewhere.
func (d *renameDecision) revert(side int, root tree.Root, path string) (tree.Root, error) {
	s, ctx := d.m.s, d.m.ctx
	root, err := s.DeletePrefix(ctx, root, DirPath(path))
	if err != nil {
		return tree.Root{}, err
	}
	g := graft{src: d.r[sideBase], from: path}
	info, dir, err := s.dirAt(ctx, d.r[sideBase], DirPath(path))
	if err != nil || info == nil || info.hasID && len(d.moves[side].came[info.id]) > 0 {
		return root, err
	}
	g.dir = dir
	return s.graft(ctx, root, g, path)
}

// vacated reports whether a side gives up what it has at a path, for an array.
func (d *renameDecision) vacated(side int, mv rename, there tree.Root) (bool, error) {
	_, base, err := d.m.s.dirAt(d.m.ctx, d.r[sideBase], DirPath(mv.To))
	if err != nil || base == there {
		return err == nil, err
	}
	c := Conflict{Kind: ConflictRename, Path: mv.To}
	c.set(side, "put something else")
	c.set(otherSide(side), "has the array "+mv.From+" there")
	if choice := d.m.ask(c); choice != Refuse {
		if winner, _ := sideOf(choice); winner != side {
			return true, nil
		}
	}
	return false, d.m.add(c)
}

// carry moves what else is in a group that a side made by a rename, when its arrays were
// moved on.
func (d *renameDecision) carry(side int, root tree.Root, moved []rename) (tree.Root, error) {
	groups := groupMoves(moved)
	for _, from := range slices.Sorted(maps.Keys(groups)) {
		kinds, err := d.m.kinds(d.r, DirPath(from))
		if err != nil {
			return tree.Root{}, err
		}
		stays := slices.ContainsFunc(d.renames[side], func(mv rename) bool {
			_, sent := d.to[side][mv.id]
			return !sent && strings.HasPrefix(mv.To, DirPath(from))
		})
		if kinds[sideBase] != noNode || stays {
			continue
		}
		if root, err = d.m.carryDir(root, from, groups[from]); err != nil {
			return tree.Root{}, err
		}
	}
	return root, nil
}

func (m *merger) carryDir(root tree.Root, from, to string) (tree.Root, error) {
	info, dir, err := m.s.dirAt(m.ctx, root, DirPath(from))
	if err != nil || info == nil || info.kind() == arrayNode {
		return root, err
	}
	for e, err := range m.s.Tree.Scan(m.ctx, dir, tree.Span{}) {
		name := string(e.Key)
		switch {
		case err != nil:
		case isReserved(e.Key):
		case isSub(e.Key):
			was, is := DirPath(from)+NodePath(name), DirPath(to)+NodePath(name)
			moved, moveErr := m.s.Move(m.ctx, root, was, is)
			switch {
			case moveErr == nil:
				root = moved
			case errors.Is(moveErr, ErrExists):
				root, err = m.carryDir(root, was, is)
			case !errors.Is(moveErr, errInside):
				err = moveErr
			}
		default:
			root, _, err = m.moveDocument(root, DirPath(from)+name, DirPath(to)+name)
		}
		if err != nil {
			return tree.Root{}, err
		}
	}
	return root, nil
}

// moveDocument moves a document of a root unless there is one at its new key.
func (m *merger) moveDocument(root tree.Root, from, to string) (tree.Root, bool, error) {
	v, ok, err := m.s.Get(m.ctx, root, from)
	if err != nil || !ok {
		return root, false, err
	}
	if _, taken, err := m.s.Get(m.ctx, root, to); err != nil || taken {
		return root, false, err
	}
	root, err = m.s.Apply(m.ctx, root, sortedEdits([]Edit{{Key: from, Delete: true}, {Key: to, Value: v}}))
	return root, true, err
}

// groupMoves infers which groups were renamed: all arrays that left a group came to the
// same other one, at the same places. Groups have no identity.
func groupMoves(moves []rename) map[string]string {
	out := map[string]string{}
	for _, mv := range moves {
		from, to, same := mv.From, mv.To, true // an array may have got another name
		for {
			up, dest := parentPath(from), parentPath(to)
			if up == "" {
				break
			}
			if same = same && dest != ""; !same {
				dest = ""
			}
			if old, ok := out[up]; ok && old != dest {
				dest = ""
			}
			out[up] = dest
			same = same && up[strings.LastIndexByte(up, '/')+1:] == dest[strings.LastIndexByte(dest, '/')+1:]
			from, to = up, parentPath(to)
		}
	}
	maps.DeleteFunc(out, func(from, to string) bool { return to == "" || strings.HasPrefix(DirPath(to), DirPath(from)) })
	return out
}

func parentPath(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }

// intoRenamed finds what one side put into a group that the other renamed. If it is
// chosen, it goes into the renamed group, as the arrays of the group do. moves become
// those of the sides afterwards.
func (m *merger) intoRenamed(r *sides, moves *[3]arrayMoves) (err error) {
	before := *r
	for x := sideOurs; x <= sideTheirs; x++ {
		groups := groupMoves(moves[x].renames())
		for _, from := range slices.Sorted(maps.Keys(groups)) {
			to := groups[from]
			up, dest := parentPath(from), parentPath(to)
			if up != "" && groups[up] == dest && from[len(up):] == to[len(dest):] {
				continue // found from the outer group
			}
			if err := m.newInRenamed(r, x, from, to); err != nil {
				return err
			}
		}
	}
	if *r != before {
		if *moves, err = m.movesOf(r); err == nil {
			m.noteCame(moves)
		}
	}
	return err
}

func (m *merger) newInRenamed(r *sides, x int, from, to string) error {
	y := otherSide(x)
	kinds, err := m.kinds(r, DirPath(from))
	if err != nil || kinds[sideBase] == arrayNode || kinds[x] != noNode || kinds[y] == arrayNode {
		return err
	}
	_, base, err := m.s.dirAt(m.ctx, r[sideBase], DirPath(from))
	if err != nil {
		return err
	}
	_, dir, err := m.s.dirAt(m.ctx, r[y], DirPath(from))
	if err != nil || dir.Entries == 0 {
		return err
	}
	for c, err := range m.s.Tree.Diff(m.ctx, base, dir, tree.Span{}) {
		if err == nil && c.New != nil && !isReserved(c.Key) {
			err = m.putInRenamed(r, x, DirPath(from)+string(c.Key), DirPath(to)+string(c.Key), &c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *merger) putInRenamed(r *sides, x int, from, to string, put *tree.Change) error {
	y := otherSide(x)
	if isSub(put.Key) && put.Old != nil {
		return m.newInRenamed(r, x, NodePath(from), NodePath(to))
	}
	if !isSub(put.Key) && (m.s.policy.Derived(string(put.Key)) || SameBytes(put.Old, put.New)) {
		return nil
	}
	c := Conflict{Kind: ConflictAncestor, Path: NodePath(from), Also: []string{NodePath(to)}}
	c.set(x, "renamed to "+NodePath(to[:len(to)-len(put.Key)]))
	c.set(y, "put")
	if put.Old != nil {
		c.Kind, c.Base = ConflictGone, brief(put.Old)
		c.set(y, "changed")
	}
	choice, err := m.askOrAdd(c)
	if err != nil || choice == Refuse {
		return err
	}
	winner, _ := sideOf(choice)
	switch {
	case winner == x && put.Old != nil:
		r[y], err = m.s.Apply(m.ctx, r[y], []Edit{{Key: from, Value: *put.Old}})
	case winner == x && isSub(put.Key):
		home, err := m.sentHome(r, y, from)
		if err != nil {
			return err
		}
		if !home {
			return m.add(c) // the arrays would be lost
		}
		r[y], err = m.s.DeletePrefix(m.ctx, r[y], from)
		return err
	case winner == x:
		r[y], err = m.s.Apply(m.ctx, r[y], []Edit{{Key: from, Delete: true}})
	case isSub(put.Key):
		root, moveErr := m.s.Move(m.ctx, r[y], NodePath(from), NodePath(to))
		if moveErr == nil {
			r[y] = root
		} else if !errors.Is(moveErr, ErrExists) && !errors.Is(moveErr, errInside) {
			return moveErr
		}
	default:
		root, ok, err := m.moveDocument(r[y], from, to)
		if err != nil || !ok {
			return err
		}
		r[y] = root
		if put.Old != nil { // the document itself went along
			r[sideBase], _, err = m.moveDocument(r[sideBase], from, to)
			return err
		}
	}
	return err
}

// sentHome moves the arrays that a side renamed into a directory back to where the base has
// them. It reports whether there is room for all.
func (m *merger) sentHome(r *sides, side int, dir string) (bool, error) {
	if !m.movedIn(side, dir) {
		return true, nil
	}
	moves, err := m.s.Renames(m.ctx, r[sideBase], r[side])
	for _, mv := range moves {
		if err != nil {
			break
		}
		if strings.HasPrefix(DirPath(mv.To), dir) {
			r[side], err = m.s.Move(m.ctx, r[side], mv.To, mv.From)
		}
	}
	if errors.Is(err, ErrExists) || errors.Is(err, errInside) || errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
