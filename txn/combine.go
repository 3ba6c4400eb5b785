package txn

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/history"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// Merge brings the changes of another branch, tag or commit onto a branch, as
// a commit with both as parents. If the branch's head is an ancestor of other,
// it still gets a merge commit, so that the log tells what happened. If other is
// an ancestor of the head, nothing is done and the head returned. The error is a
// *[ConflictError] where both changed the same and o.Choices do not decide;
// nothing is changed then. Its cost is that of the changes on both sides.
//
// If the two have no common ancestor, or it has expired, every difference between
// them is a conflict. A *[BaseError] refuses an o.Base that is no ancestor of both.
func (db *DB) Merge(ctx context.Context, branch string, other CommitID, o CommitOptions) (*Commit, error) {
	return db.home.combine(ctx, combineRequest{Do: "merge", Branch: branch, Version: other, Commit: o})
}

func (db *DB) merge(ctx context.Context, branch string, other CommitID, o CommitOptions) (*Commit, error) {
	return db.combine(ctx, branch, o, "merge", func(head *Commit) (base *tree.Root, theirs tree.Root, err error) {
		c, err := db.version(ctx, other)
		if err != nil {
			return nil, theirs, err
		}
		id := o.Base
		if id.IsZero() {
			if id, err = db.MergeBase(ctx, head.ID, other); err == nil && id == other {
				err = errMerged
			}
		} else if !o.ForceBase {
			err = db.checkBase(ctx, id, head.ID, other)
		}
		var from *Commit
		if err == nil {
			from, err = db.version(ctx, id)
		}
		switch {
		case o.Base.IsZero() && (errors.Is(err, history.ErrNoBase) || errors.Is(err, ErrExpired)):
			return nil, c.Root, nil
		case err != nil:
			return nil, theirs, err
		}
		return &from.Root, c.Root, nil
	}, other)
}

// BaseError refuses a base for a merge that is no ancestor of both sides: a merge would
// take what the base has and a side lacks as removed by that side.
type BaseError struct {
	Base CommitID
	// Undone are the commits whose changes would be undone, newest first.
	Undone []*Commit
}

func (e *BaseError) Error() string {
	var list []string
	for _, c := range e.Undone[:min(len(e.Undone), 5)] {
		list = append(list, fmt.Sprintf("%s %q", c.ID.Short(), firstLine(c.Message)))
	}
	if n := len(e.Undone) - len(list); n > 0 {
		list = append(list, fmt.Sprintf("and %d more", n))
	}
	return fmt.Sprintf("base %s is not an ancestor of both sides; the merge would undo %s", e.Base.Short(), strings.Join(list, ", "))
}

// checkBase returns a *BaseError unless a base is an ancestor of both sides.
func (db *DB) checkBase(ctx context.Context, base CommitID, ours, theirs CommitID) error {
	both := map[CommitID]int{}
	for _, head := range []CommitID{ours, theirs} {
		for c, err := range db.Log(ctx, head) {
			if err != nil {
				return err
			}
			both[c.ID]++
		}
	}
	refused := &BaseError{Base: base}
	for c, err := range history.Ancestors(ctx, db.Lookup, []CommitID{base}, func(c *Commit) bool { return both[c.ID] < 2 }) {
		if err != nil {
			return err
		}
		if both[c.ID] < 2 {
			refused.Undone = append(refused.Undone, c)
		}
	}
	if len(refused.Undone) == 0 {
		return nil
	}
	return refused
}

// errMerged ends a merge of what the branch has.
var errMerged = errors.New("txn: it was merged")

// Revert undoes one commit on a branch by a new commit. parent chooses, from 1
// on, which parent of a merge commit to go back to; 0 is for commits with one.
func (db *DB) Revert(ctx context.Context, branch string, id CommitID, parent int, o CommitOptions) (*Commit, error) {
	return db.home.combine(ctx, combineRequest{Do: "revert", Branch: branch, Version: id, Parent: parent, Commit: o})
}

func (db *DB) revert(ctx context.Context, branch string, id CommitID, parent int, o CommitOptions) (*Commit, error) {
	c, p, err := db.withParent(ctx, "revert", id, parent)
	if err != nil {
		return nil, err
	}
	if o.Message == "" {
		o.Message = fmt.Sprintf("revert %q\n\nThis reverts commit %v.", firstLine(c.Message), c.ID)
	}
	return db.combine(ctx, branch, o, "revert", func(*Commit) (*tree.Root, tree.Root, error) {
		return &c.Root, p.Root, db.stillKept(ctx, c, p)
	})
}

// RevertTo makes a commit on a branch that holds what another version holds, so that a
// branch goes back by going forward: copies that pull it go back too. If commits were
// made meanwhile, their changes stay, or conflict. A branch that holds the same gets no commit.
func (db *DB) RevertTo(ctx context.Context, branch string, to CommitID, o CommitOptions) (*Commit, error) {
	return db.home.combine(ctx, combineRequest{Do: "revert to", Branch: branch, Version: to, Commit: o})
}

func (db *DB) revertTo(ctx context.Context, branch string, to CommitID, o CommitOptions) (*Commit, error) {
	if o.Message == "" {
		o.Message = fmt.Sprintf("revert to %s", to.Short())
	}
	return db.combine(ctx, branch, o, "revert", func(head *Commit) (*tree.Root, tree.Root, error) {
		c, err := db.version(ctx, to)
		if err != nil {
			return nil, tree.Root{}, err
		}
		return &head.Root, c.Root, nil
	})
}

// CherryPick repeats on a branch what one commit changed elsewhere.
func (db *DB) CherryPick(ctx context.Context, branch string, id CommitID, parent int, o CommitOptions) (*Commit, error) {
	return db.home.combine(ctx, combineRequest{Do: "cherry-pick", Branch: branch, Version: id, Parent: parent, Commit: o})
}

func (db *DB) cherryPick(ctx context.Context, branch string, id CommitID, parent int, o CommitOptions) (*Commit, error) {
	c, p, err := db.withParent(ctx, "cherry-pick", id, parent)
	if err != nil {
		return nil, err
	}
	if o.Message == "" {
		o.Message = c.Message
	}
	return db.combine(ctx, branch, o, "cherry-pick", func(*Commit) (*tree.Root, tree.Root, error) {
		return &p.Root, c.Root, db.stillKept(ctx, c, p)
	})
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// withParent reads a commit and the parent that its change is relative to.
func (db *DB) withParent(ctx context.Context, op string, id CommitID, parent int) (c, p *Commit, err error) {
	if c, err = db.version(ctx, id); err != nil {
		return nil, nil, err
	}
	switch n := len(c.Parents); {
	case n == 0:
		return nil, nil, fmt.Errorf("%s %s: the first commit has no parent", op, id.Short())
	case n > 1 && parent == 0:
		return nil, nil, fmt.Errorf("%s %s: a merge commit needs the number of a parent, 1 to %d", op, id.Short(), n)
	case parent < 0 || parent > n:
		return nil, nil, fmt.Errorf("%s %s: there is no parent %d", op, id.Short(), parent)
	}
	if p, err = db.version(ctx, c.Parents[max(parent-1, 0)]); err != nil {
		way := ""
		if errors.Is(err, ErrExpired) {
			way = "; what the commit changed is not known any more: merge a branch that has it, or pull from a copy that has the version before it"
		}
		err = fmt.Errorf("%s %s: the version before it: %w%s", op, id.Short(), err, way)
	}
	return c, p, err
}

// stillKept returns an error if a version expired since it was read. The caller holds
// keeping, and then the roots.
func (db *DB) stillKept(ctx context.Context, versions ...*Commit) error {
	for _, c := range versions {
		if _, err := db.version(ctx, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// combine makes a commit on a branch by a three-way merge of its head with a
// change from elsewhere, or without a base if pick returns none.
func (db *DB) combine(ctx context.Context, branch string, o CommitOptions, op string, pick func(head *Commit) (base *tree.Root, theirs tree.Root, err error), parents ...CommitID) (*Commit, error) {
	s, err := db.Begin(ctx, branch)
	if err != nil {
		return nil, err
	}
	defer s.Abort() // does nothing after the commit
	head, err := db.Lookup(ctx, s.base)
	if err != nil {
		return nil, err
	}
	if err := db.keeping.RLock(ctx); err != nil {
		return nil, err
	}
	base, theirs, err := pick(head)
	if err == nil {
		if base != nil {
			s.hold(*base)
		}
		s.hold(theirs)
	}
	db.keeping.RUnlock()
	if err == errMerged {
		return head, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	err = s.home.change(ctx, nil, func(work tree.Root) (tree.Root, error) {
		var root tree.Root
		var conflicts []Conflict
		if base == nil {
			root, conflicts, err = s.space.MergeWithoutBase(ctx, work, theirs, namespace.MergeOptions{Choose: o.chooser()})
		} else {
			root, conflicts, err = s.space.Merge(ctx, *base, work, theirs, namespace.MergeOptions{Choose: o.chooser()})
		}
		if err == nil && len(conflicts) > 0 {
			err = &ConflictError{Branch: s.branch, Base: s.base, Head: s.base, Conflicts: conflicts}
			if base == nil {
				err = fmt.Errorf("the two have no common version that is kept, so each difference is a conflict: %w", err)
			}
		}
		return root, err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	o.op, o.merge, o.parents = op, true, parents
	return s.Commit(ctx, o)
}

// Refresh takes what the branch got since the session's base into the session
// and makes the head its new base. Choices decide conflicts as in [CommitOptions]: Ours
// takes what the branch has, Theirs keeps what the session wrote. On a conflict that is not
// decided nothing changes.
func (s *Session) Refresh(ctx context.Context, choices []PathChoice) error {
	return s.home.refresh(ctx, choices)
}

func (s own) refresh(ctx context.Context, choices []PathChoice) error {
	id, err := s.db.Head(ctx, s.branch)
	if err != nil {
		return err
	}
	on, err := s.db.Snapshot(ctx, id)
	if err != nil {
		return err
	}
	defer on.Close()
	head := on.commit
	return s.change(ctx, nil, func(work tree.Root) (tree.Root, error) {
		if id == s.base {
			return work, nil
		}
		root, conflicts, err := s.space.Merge(ctx, s.start, head.Root, work, namespace.MergeOptions{Strict: true, Guards: s.guarded(), Choose: chooser(choices, nil)})
		if err == nil && len(conflicts) > 0 {
			err = &ConflictError{Branch: s.branch, Base: s.base, Head: id, Conflicts: conflicts}
		}
		if err == nil {
			s.replace(id, head.Root, false, work)
		}
		return root, err
	})
}
