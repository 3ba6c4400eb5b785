package namespace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ConflictKind names why two sides of a merge do not go together. Package txn
// documents the kinds.
type ConflictKind uint8

const (
	ConflictChunk ConflictKind = iota + 1
	ConflictStructure
	ConflictShrink
	ConflictDocument
	ConflictCreate
	ConflictGone
	ConflictRename
	ConflictAncestor
	ConflictGuard
	ConflictBranchRewound

	numConflictKinds
)

var conflictNames = [numConflictKinds]string{
	"", "chunk", "structure", "shrink", "document", "create", "gone", "rename", "ancestor", "guard", "branch rewound",
}

func (k ConflictKind) String() string {
	if k > 0 && k < numConflictKinds {
		return conflictNames[k]
	}
	return fmt.Sprintf("ConflictKind(%d)", uint8(k))
}

// MarshalText prints the name.
func (k ConflictKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText is the inverse of MarshalText. The kind of a newer program is 0.
func (k *ConflictKind) UnmarshalText(b []byte) error {
	*k = 0
	for kind := ConflictChunk; kind <= ConflictBranchRewound; kind++ {
		if kind.String() == string(b) {
			*k = kind
		}
	}
	return nil
}

// Conflict is one reason why a merge is refused. Its strings are for people.
type Conflict struct {
	Kind ConflictKind `json:"kind"`
	// Path is the key of a chunk or document, or the path of a node.
	Path string `json:"path"`
	// Also are other paths of the same thing: where a side has renamed an array to, or
	// where it was. A choice for any of the paths decides the conflict.
	Also []string `json:"also,omitempty"`
	// Coords are a chunk's coordinates in its array, nil for anything else.
	Coords []int64 `json:"coords,omitempty"`
	// Field is the part of a document, "" for all of it.
	Field string `json:"field,omitempty"`
	// Base, Ours and Theirs are short forms of the three states.
	Base   string `json:"base"`
	Ours   string `json:"ours"`
	Theirs string `json:"theirs"`
	// Same says that both sides made the same change. That is a conflict only
	// where a session commits or is refreshed: if both read 0 and wrote 1, one
	// of two increments would be lost.
	Same bool `json:"same,omitempty"`
}

func (c Conflict) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s", c.Kind, c.Path)
	if c.Field != "" {
		fmt.Fprintf(&b, ": %s", c.Field)
	}
	switch {
	case c.Same:
		fmt.Fprintf(&b, " (both commits changed it, to the same value; it was %s, now %s)", cmp.Or(c.Base, "missing"), c.side(c.Ours))
	case c.Base != "":
		fmt.Fprintf(&b, " (was %s; ours %s, theirs %s)", c.Base, c.side(c.Ours), c.side(c.Theirs))
	case c.Ours != "" || c.Theirs != "":
		fmt.Fprintf(&b, " (new; ours %s, theirs %s)", c.side(c.Ours), c.side(c.Theirs))
	}
	return b.String()
}

// side is what a side made of it.
func (c *Conflict) side(s string) string {
	switch {
	case s != "":
		return s
	case c.Base != "":
		return "removed"
	}
	return "missing"
}

func sortConflicts(cs []Conflict) {
	slices.SortStableFunc(cs, func(a, b Conflict) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Field, b.Field))
	})
}

// Choice is a side of a conflict, or neither.
type Choice uint8

const (
	Refuse Choice = iota // neither: the merge fails
	Ours
	Theirs
)

// PathChoice is a choice for all conflicts at and below a path. A choice for everything
// does not decide guards: those are decided by a path.
type PathChoice struct {
	Path   string // "" is everything
	Choice Choice
}

// ChooseByPath makes a function for merges out of rules: the one with the
// longest path that a conflict is at or below, with any of its paths, decides. Without
// one the conflict is refused.
func ChooseByPath(rules ...PathChoice) func(Conflict) Choice {
	rules = slices.Clone(rules)
	slices.SortStableFunc(rules, func(a, b PathChoice) int { return cmp.Compare(len(b.Path), len(a.Path)) })
	return func(c Conflict) Choice {
		found := PathChoice{}
		for _, r := range rules {
			switch {
			case found.Choice != Refuse && len(r.Path) < len(found.Path):
				return found.Choice
			case r.covers(c.Path), r.Path == "" && c.Kind != ConflictGuard:
				return r.Choice
			case found.Choice == Refuse && slices.ContainsFunc(c.Also, r.covers):
				found = r // unless a path as long covers the first
			}
		}
		return found.Choice
	}
}

// covers reports whether a path is that of the choice or below it.
func (r PathChoice) covers(path string) bool {
	return r.Path != "" && (path == r.Path || strings.HasPrefix(path, r.Path+"/"))
}
