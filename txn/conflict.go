package txn

import (
	"errors"
	"fmt"
	"strings"
)

// ConflictError is returned by what merges when changes do not go together.
// errors.Is matches it to [ErrConflict].
type ConflictError struct {
	// Branch that was to be moved.
	Branch string
	// Base is the commit from which the changes began, Head the commit of the
	// branch.
	Base, Head CommitID
	// Conflicts are sorted by path. There may be more than are listed.
	Conflicts []Conflict
}

func (e *ConflictError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "txn: conflict with branch %s", e.Branch)
	for i, c := range e.Conflicts {
		if i == 3 {
			fmt.Fprintf(&b, "; and %d more", len(e.Conflicts)-i)
			break
		}
		fmt.Fprintf(&b, "; %v", c)
	}
	return b.String()
}

// Rewound reports whether the branch no longer has the base. No choice of one side settles such a conflict.
func (e *ConflictError) Rewound() bool {
	return len(e.Conflicts) > 0 && e.Conflicts[0].Kind == conflictBranchRewound
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return errors.Is(ErrConflict, target) }
