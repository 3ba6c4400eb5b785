package namespace

import (
	"context"
	"errors"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// A merge of ours and theirs, which both came from base, compares states:
//
//	      base
//	     /    \            a key that one side changed is merged as there;
//	  ours    theirs       a key that both changed is a conflict, but in a
//	     \    /            merge of branches not if both changed it alike
//	     merged
//
// Pages of the base are skipped, so it costs the changes. Before the three roots are
// merged directory by directory, they are made comparable: arrays that one side
// renamed and the other changed are moved in the base and the other side too
// (follow.go), and forms that one side added are added to the others
// where they match keys (align.go). Then every key has the same
// home in all three. What is left is a merge of trees (mergedir.go) and the conflicts
// between different entries (guard.go).

// MergeOptions say how to merge. The zero value is a merge of branches that
// refuses every conflict.
type MergeOptions struct {
	// Strict makes equal changes of both sides conflicts too, except that both
	// removed the same, but for chunks of an array that stays, or made the same
	// empty group. Commits of sessions need
	// it: if two read 0 and each writes 1, one increment would be lost.
	Strict bool
	// Guards are node paths that theirs relies on: it is a conflict if ours
	// changed anything at or below them.
	Guards []string
	// Choose decides conflicts, if not nil. It is asked about every kind of
	// conflict, and may be asked about one several times. Conflicts that can only be
	// decided together, such as chunks of an array whose structure the other side
	// changed, need one answer for all of them. The side that loses is merged as if it
	// had not made the change that conflicts; its other changes stay.
	Choose func(Conflict) Choice
	// Limit bounds how many conflicts are returned; default 1000.
	Limit int
}

const defaultConflicts = 1000

// errLimit ends a merge that found as many conflicts as are wanted.
var errLimit = errors.New("txn: enough conflicts")

// Merge merges theirs into ours. If there are conflicts they are returned,
// sorted by path, and no root.
func (s *Space) Merge(ctx context.Context, base, ours, theirs tree.Root, o MergeOptions) (tree.Root, []Conflict, error) {
	m := newMerger(ctx, s, o)
	root, err := m.run(base, ours, theirs)
	if err != nil && err != errLimit {
		return tree.Root{}, nil, err
	}
	if len(m.conflicts) > 0 {
		sortConflicts(m.conflicts)
		return tree.Root{}, m.conflicts, nil
	}
	return root, nil, nil
}

type merger struct {
	s         *Space
	ctx       context.Context
	o         MergeOptions
	conflicts []Conflict
	reported  map[conflictID]struct{}
	docs      []Edit            // merged documents that are put again at the end
	moved     map[string]int    // directories of arrays that were followed: the side that moved them, sideBase for both
	came      [3][]string       // directories that a side renamed arrays to, sorted
	refused   map[[16]byte]bool // arrays that the sides move into each other
	placed    map[[16]byte]bool // arrays whose path was decided
	chose     bool              // more than the bytes of chunks was decided by choose
}

func newMerger(ctx context.Context, s *Space, o MergeOptions) *merger {
	if o.Limit <= 0 {
		o.Limit = defaultConflicts
	}
	return &merger{s: s, ctx: ctx, o: o, reported: map[conflictID]struct{}{}, moved: map[string]int{}, refused: map[[16]byte]bool{}, placed: map[[16]byte]bool{}}
}

type conflictID struct {
	kind        ConflictKind
	path, field string
}

// sides are three states of the same thing. side numbers index them.
type sides [3]tree.Root

const (
	sideBase = iota
	sideOurs
	sideTheirs
)

// trivial decides a merge that needs no look inside.
func (m *merger) trivial(r sides) (tree.Root, bool) {
	switch {
	case r[sideBase] == r[sideTheirs]:
		return r[sideOurs], true
	case r[sideBase] == r[sideOurs]:
		return r[sideTheirs], true
	case r[sideOurs] == r[sideTheirs] && (!m.o.Strict || r[sideOurs].Entries == 0):
		return r[sideOurs], true
	}
	return tree.Root{}, false
}

// mergeValue merges values of which at most one is a change, or both the same one
// where that is no conflict.
func (m *merger) mergeValue(base, ours, theirs *tree.Value) (*tree.Value, bool) {
	switch {
	case SameBytes(base, theirs), ours == nil && theirs == nil:
		return ours, true
	case SameBytes(base, ours):
		return theirs, true
	case !m.o.Strict && SameBytes(ours, theirs):
		return ours, true
	}
	return nil, false
}

func (m *merger) run(base, ours, theirs tree.Root) (tree.Root, error) {
	for _, path := range m.o.Guards {
		if err := m.guarded(base, ours, path); err != nil {
			return tree.Root{}, err
		}
	}
	r := sides{base, ours, theirs}
	was := r
	if root, ok := m.trivial(r); ok {
		return root, nil
	}
	if err := m.follow(&r); err != nil {
		return tree.Root{}, err
	}
	if err := m.align(&r); err != nil {
		return tree.Root{}, err
	}
	root, err := m.dir("", r)
	if err != nil || len(m.conflicts) > 0 {
		return root, err
	}
	if m.chose {
		if root, err = m.rehomed(r[sideOurs], root); err != nil {
			return root, err
		}
	}
	if root, err = m.s.Apply(m.ctx, root, sortedEdits(m.docs)); err != nil {
		return root, err
	}
	return m.dropStale(was, root)
}

// rehomed moves documents into the chunk map of a form that matches their keys, where a
// choice between the sides left them beside the form.
func (m *merger) rehomed(ours, root tree.Root) (tree.Root, error) {
	var found []Edit
	err := m.s.changedDirs(m.ctx, "", ours, root, func(path string, _, info *dirInfo) error {
		for _, f := range info.forms {
			_, dir, err := m.s.dirAt(m.ctx, root, path)
			if err == nil {
				err = m.s.matchingDocs(m.ctx, dir, path, "", &f.Form, func(key string, v tree.Value) error {
					found = append(found, Edit{Key: key, Value: v})
					return nil
				})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, e := range found {
		path, name := SplitKey(e.Key)
		_, dir, dirErr := m.s.dirAt(m.ctx, root, path)
		if err = errors.Join(err, dirErr); err == nil {
			dir, err = m.s.Tree.Apply(m.ctx, dir, []tree.Edit{{Key: keyBytes(name), Delete: true}})
		}
		if err == nil {
			root, err = m.s.setDir(m.ctx, root, path, dir)
		}
		if err == nil {
			root, err = m.s.Apply(m.ctx, root, []Edit{e})
		}
	}
	return root, err
}

// guarded asks about what changed at and below a path that theirs relies on. The first
// change that is not decided is recorded.
func (m *merger) guarded(base, ours tree.Root, path string) error {
	if group, ok := strings.CutSuffix(path, "/"); ok {
		return m.guardedMembers(base, ours, DirPath(group))
	}
	refuse := func(c *Change) (bool, error) {
		choice, err := m.askOrAdd(Conflict{Kind: ConflictGuard, Path: c.Key, Also: []string{path}, Coords: c.Coords, Base: brief(c.Old), Ours: brief(c.New)})
		return choice == Refuse, err
	}
	c, err := m.s.FirstChange(m.ctx, base, ours, path)
	if err != nil || c == nil {
		return err
	}
	if refused, err := refuse(c); refused || err != nil {
		return err
	}
	for c, err := range m.s.Diff(m.ctx, base, ours, DirPath(path)) {
		if err != nil {
			return err
		}
		if refused, err := refuse(&c); refused || err != nil {
			return err
		}
	}
	return nil
}

// guardedMembers asks about the nodes directly in a directory that were added or removed, or are
// of another kind.
func (m *merger) guardedMembers(base, ours tree.Root, dir string) error {
	r := [2]tree.Root{base, ours}
	for i := range r {
		var err error
		if _, r[i], err = m.s.dirAt(m.ctx, r[i], dir); err != nil {
			return err
		}
	}
	for c, err := range m.s.Tree.Diff(m.ctx, r[0], r[1], tree.Span{}) {
		if err != nil {
			return err
		}
		if !isSub(c.Key) {
			continue
		}
		was, err := m.s.readDir(m.ctx, childOf(c.Old))
		if err != nil {
			return err
		}
		is, err := m.s.readDir(m.ctx, childOf(c.New))
		if err != nil {
			return err
		}
		if was.kind() == is.kind() {
			continue
		}
		choice, err := m.askOrAdd(Conflict{
			Kind: ConflictGuard, Path: NodePath(dir + string(c.Key)), Also: []string{NodePath(dir)},
			Base: nodeNames[was.kind()], Ours: nodeNames[is.kind()],
		})
		if choice == Refuse || err != nil {
			return err
		}
	}
	return nil
}

// add records a conflict that was not decided. One that is found from both sides is
// recorded once.
func (m *merger) add(c Conflict) error {
	id := conflictID{c.Kind, c.Path, c.Field}
	if _, ok := m.reported[id]; ok {
		return nil
	}
	m.reported[id] = struct{}{}
	m.conflicts = append(m.conflicts, c)
	if len(m.conflicts) >= m.o.Limit {
		return errLimit
	}
	return nil
}

// ask returns the decision of choose. Refuse means that the conflict is still to be
// recorded.
func (m *merger) ask(c Conflict) Choice {
	if m.o.Choose == nil {
		return Refuse
	}
	choice := m.o.Choose(c)
	m.chose = m.chose || choice != Refuse && c.Kind != ConflictChunk && c.Kind != ConflictGuard
	return choice
}

// resolve decides a conflict about one value, or records it.
func (m *merger) resolve(c Conflict, ours, theirs *tree.Value) (*tree.Value, error) {
	switch m.ask(c) {
	case Ours:
		return ours, nil
	case Theirs:
		return theirs, nil
	}
	return ours, m.add(c)
}
