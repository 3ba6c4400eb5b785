package txn

import (
	"context"
	"errors"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// A merge of ours and theirs, which both came from base, compares states:
//
//	      base
//	     /    \            a key that one side changed is taken from there,
//	  ours    theirs       a key that both changed is a conflict; but in a
//	     \    /            merge of branches one that both changed alike is
//	     merged            taken from either
//
// Pages of the base are skipped, so it costs the changes. Before the three roots are
// merged directory by directory, they are made comparable: arrays that one side
// renamed and the other changed are moved in the base and the other side too
// (ns_follow.go), and forms that one side brought in are brought in on the
// others where they take up keys (ns_align.go). Then every key has the same
// home in all three, and what is left is a merge of trees with questions
// (ns_mergedir.go) and a look at what keys depend on (ns_guard.go).

// mergeOptions say how to merge. The zero value is a merge of branches that
// refuses every conflict.
type mergeOptions struct {
	// strict makes equal changes of both sides conflicts too, except that both
	// removed the same, but for chunks of an array that stays, or made the same
	// empty group. Commits of sessions need
	// it: if two read 0 and each writes 1, one increment would be lost.
	strict bool
	// guards are node paths that theirs relies on: it is a conflict if ours
	// changed anything at or below them.
	guards []string
	// choose decides conflicts, if not nil. It is asked once for a document or
	// chunk, and once for a whole node where the conflict is about more than
	// its bytes; a side is then taken with all that is below. Guards and
	// renames are never asked.
	choose func(Conflict) Choice
	// limit bounds how many conflicts are returned; default 1000.
	limit int
}

const defaultConflicts = 1000

// errEnough ends a merge that found as many conflicts as are wanted.
var errEnough = errors.New("txn: enough conflicts")

// merge merges theirs into ours. If there are conflicts they are returned,
// sorted by path, and no root.
func (s *space) merge(ctx context.Context, base, ours, theirs tree.Root, o mergeOptions) (tree.Root, []Conflict, error) {
	m := newMerger(ctx, s, o)
	root, err := m.run(base, ours, theirs)
	if err != nil && err != errEnough {
		return tree.Root{}, nil, err
	}
	if len(m.conflicts) > 0 {
		sortConflicts(m.conflicts)
		return tree.Root{}, m.conflicts, nil
	}
	return root, nil, nil
}

type merger struct {
	s         *space
	ctx       context.Context
	o         mergeOptions
	conflicts []Conflict
	told      map[conflictID]struct{}
	docs      []edit          // merged documents that are put again at the end
	moved     map[string]bool // directories of arrays that were followed
	chose     bool            // more than the bytes of chunks was decided by choose
}

func newMerger(ctx context.Context, s *space, o mergeOptions) *merger {
	if o.limit <= 0 {
		o.limit = defaultConflicts
	}
	return &merger{s: s, ctx: ctx, o: o, told: map[conflictID]struct{}{}, moved: map[string]bool{}}
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

// simple decides a merge that needs no look inside.
func (m *merger) simple(r sides) (tree.Root, bool) {
	switch {
	case r[sideBase] == r[sideTheirs]:
		return r[sideOurs], true
	case r[sideBase] == r[sideOurs]:
		return r[sideTheirs], true
	case r[sideOurs] == r[sideTheirs] && (!m.o.strict || r[sideOurs].Entries == 0):
		return r[sideOurs], true
	}
	return tree.Root{}, false
}

// one merges values of which at most one is a change, or both the same one
// where that is no conflict.
func (m *merger) one(base, ours, theirs *tree.Value) (*tree.Value, bool) {
	switch {
	case sameBytes(base, theirs), ours == nil && theirs == nil:
		return ours, true
	case sameBytes(base, ours):
		return theirs, true
	case !m.o.strict && sameBytes(ours, theirs):
		return ours, true
	}
	return nil, false
}

func (m *merger) run(base, ours, theirs tree.Root) (tree.Root, error) {
	for _, path := range m.o.guards {
		if err := m.guard(path, base, ours); err != nil {
			return tree.Root{}, err
		}
	}
	r := sides{base, ours, theirs}
	was := r
	if root, ok := m.simple(r); ok {
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
	if root, err = m.s.apply(m.ctx, root, sortedEdits(m.docs)); err != nil {
		return root, err
	}
	return m.dropStale(was, root)
}

// guard checks that ours left a path alone that theirs has read.
func (m *merger) guard(path string, base, ours tree.Root) error {
	if path != "" {
		b, inBase, err := m.s.get(m.ctx, base, path)
		if err != nil {
			return err
		}
		o, inOurs, err := m.s.get(m.ctx, ours, path)
		if err != nil {
			return err
		}
		if inBase != inOurs || inBase && !sameBytes(&b, &o) {
			return m.add(Conflict{Kind: ConflictGuard, Path: path, Base: briefOf(inBase, &b), Ours: briefOf(inOurs, &o)})
		}
	}
	for it, err := range m.s.diff(m.ctx, base, ours, dirPath(path)) {
		if err != nil {
			return err
		}
		return m.add(Conflict{
			Kind: ConflictGuard, Path: it.key, Coords: it.coords,
			Base: brief(it.old), Ours: brief(it.new),
		})
	}
	return nil
}

// add records a conflict that nobody may decide or nobody did. What is found
// from both sides is told once.
func (m *merger) add(c Conflict) error {
	id := conflictID{c.Kind, c.Path, c.Field}
	if _, ok := m.told[id]; ok {
		return nil
	}
	m.told[id] = struct{}{}
	m.conflicts = append(m.conflicts, c)
	if len(m.conflicts) >= m.o.limit {
		return errEnough
	}
	return nil
}

// ask returns what to take for a conflict. Refuse means that it is still to be
// recorded.
func (m *merger) ask(c Conflict) Choice {
	if m.o.choose == nil {
		return Refuse
	}
	choice := m.o.choose(c)
	m.chose = m.chose || choice != Refuse && c.Kind != ConflictChunk
	return choice
}

// settleValue decides a conflict about one value, or records it.
func (m *merger) settleValue(c Conflict, ours, theirs *tree.Value) (*tree.Value, error) {
	switch m.ask(c) {
	case Ours:
		return ours, nil
	case Theirs:
		return theirs, nil
	}
	return ours, m.add(c)
}
