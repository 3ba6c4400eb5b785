package namespace

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

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
			if kind := is.kind(); kind != arrayNode && was.kind() == kind || kind == noNode {
				if stays, err := d.staysBehind(x, kind, DirPath(at), base, other); err != nil {
					return err
				} else if !stays {
					continue
				}
				if kind == noNode {
					c.Kind = ConflictAncestor
				}
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

// staysBehind reports whether a side put something into a directory that does not go
// along with an array that the other side, x, renamed. Where kind is noNode, only what is
// in directories below counts.
func (d *renameDecision) staysBehind(x int, kind nodeKind, path string, was, is tree.Root) (bool, error) {
	if err := CheckPath(d.m.ctx, path); err != nil {
		return false, err
	}
	for c, err := range d.m.s.Tree.Diff(d.m.ctx, was, is, tree.Span{}) {
		if err != nil {
			return false, err
		}
		if !isSub(c.Key) {
			if kind != noNode && c.New != nil && !isReserved(c.Key) && !d.m.s.policy.Derived(string(c.Key)) && !SameBytes(c.Old, c.New) {
				return true, nil
			}
			continue
		}
		old, now := childOf(c.Old), childOf(c.New)
		below := path + string(c.Key)
		info, err := d.m.s.readDir(d.m.ctx, old)
		if err != nil {
			return false, err
		}
		stays := false
		switch {
		case info.hasID && len(d.moves[x].came[info.id]) > 0:
		case info.isArray():
			stays, err = d.m.puts(below, old, now)
		default:
			stays, err = d.staysBehind(x, groupNode, below, old, now)
		}
		if stays || err != nil {
			return stays, err
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
				c.set(x, "above it: "+cmp.Or(nodeNames[kinds[x]], "nothing"))
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
