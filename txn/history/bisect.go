package history

import (
	"context"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// Verdict is the result of a test of a version.
type Verdict uint8

const (
	// Good: the version does not have the change that is searched.
	Good Verdict = iota + 1
	// Bad: it has the change.
	Bad
	// Skip: it cannot be tested.
	Skip
)

// Bisection finds the first bad commit between good ones and a bad one with as few
// tests as possible. It holds what it needs of the history in
// memory, about 100 bytes a commit, so the database may be closed meanwhile. It
// is for one goroutine at a time.
type Bisection struct {
	ids     []catalog.CommitID
	parents [][]int32 // in ids; a parent comes after its children
	at      map[catalog.CommitID]int32
	alive   []bool // may be the first bad one
	skipped []bool
	bad     int32
	left    int
}

// Bisect begins a search. Every good commit must be an ancestor of the bad one;
// none is fine, if there was nothing bad in the beginning.
func Bisect(ctx context.Context, get Get, good []catalog.CommitID, bad catalog.CommitID) (*Bisection, error) {
	b := &Bisection{at: map[catalog.CommitID]int32{}}
	for c, err := range Ancestors(ctx, get, []catalog.CommitID{bad}, All) {
		if err != nil {
			return nil, fmt.Errorf("bisect: %w", err)
		}
		b.at[c.ID] = int32(len(b.ids))
		b.ids = append(b.ids, c.ID)
	}
	b.parents = make([][]int32, len(b.ids))
	b.alive, b.skipped = make([]bool, len(b.ids)), make([]bool, len(b.ids))
	for i, id := range b.ids {
		c, err := get(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("bisect: %w", err)
		}
		for _, p := range c.Parents {
			b.parents[i] = append(b.parents[i], b.at[p])
		}
		b.alive[i] = true
	}
	b.left = len(b.ids)
	for _, id := range good {
		i, ok := b.at[id]
		if id == bad {
			return nil, fmt.Errorf("bisect: the good and the bad version are the same, %s", id.Short())
		}
		if !ok {
			return nil, fmt.Errorf("bisect: %s is not an ancestor of %s", id.Short(), bad.Short())
		}
		b.drop(b.ancestors(i))
	}
	return b, nil
}

// ancestors marks a commit and its ancestors.
func (b *Bisection) ancestors(of int32) []bool {
	seen := make([]bool, len(b.ids))
	seen[of] = true
	for i := of; int(i) < len(b.ids); i++ { // children come first
		if seen[i] {
			for _, p := range b.parents[i] {
				seen[p] = true
			}
		}
	}
	return seen
}

func (b *Bisection) drop(which []bool) {
	for i, gone := range which {
		if gone && b.alive[i] {
			b.alive[i] = false
			b.left--
		}
	}
}

// Left is how many commits may still be the first bad one.
func (b *Bisection) Left() int { return b.left }

// Next returns the commit whose test excludes most others, whatever its result; ok is
// false when no test helps any more.
func (b *Bisection) Next() (id catalog.CommitID, ok bool) {
	best, most := int32(-1), -1
	weights := b.weights()
	for i, w := range weights {
		if !b.alive[i] || b.skipped[i] || int32(i) == b.bad {
			continue
		}
		if excludes := min(w, b.left-w); excludes > most {
			best, most = int32(i), excludes
		}
	}
	if best < 0 {
		return catalog.CommitID{}, false
	}
	return b.ids[best], true
}

// maxVisits bounds how exactly commits behind merges are counted. A wrong count
// costs a question more, no more.
const maxVisits = 50_000_000

// weights counts for each commit that is left how many of its ancestors, with
// itself, are left too.
func (b *Bisection) weights() []int {
	weights := make([]int, len(b.ids))
	stamp := make([]int32, len(b.ids))
	visits := 0
	for i := len(b.ids) - 1; i >= 0; i-- {
		if !b.alive[i] {
			continue
		}
		weights[i] = 1
		alive := 0
		for _, p := range b.parents[i] {
			if b.alive[p] {
				alive++
				weights[i] = max(weights[i], weights[p]+1)
			}
		}
		if alive < 2 || visits > maxVisits {
			continue
		}
		n := 0
		stamp[i] = int32(i) + 1
		for j := i; j < len(b.ids); j++ {
			visits++
			if stamp[j] != int32(i)+1 {
				continue
			}
			n++
			for _, p := range b.parents[j] {
				if b.alive[p] {
					stamp[p] = int32(i) + 1
				}
			}
		}
		weights[i] = n
	}
	return weights
}

// Mark notes the verdict on a commit.
func (b *Bisection) Mark(id catalog.CommitID, v Verdict) error {
	i, ok := b.at[id]
	if !ok {
		return fmt.Errorf("bisect: %s: %w in what is searched", id.Short(), catalog.ErrNoRef)
	}
	switch v {
	case Skip:
		b.skipped[i] = true
	case Good:
		if b.ancestors(i)[b.bad] {
			return fmt.Errorf("bisect: %s cannot be good, %s is bad", id.Short(), b.ids[b.bad].Short())
		}
		b.drop(b.ancestors(i))
	case Bad:
		if !b.alive[i] {
			return fmt.Errorf("bisect: %s cannot be bad, a descendant of it is good", id.Short())
		}
		below := b.ancestors(i)
		for j := range below {
			below[j] = !below[j]
		}
		b.drop(below)
		b.bad = i
	default:
		return fmt.Errorf("bisect: no verdict %d", v)
	}
	return nil
}

// Result returns the first bad commit as far as it is known and, where skipped
// commits hide it, all that may be it, newest first.
func (b *Bisection) Result() (first catalog.CommitID, others []catalog.CommitID) {
	for i, alive := range b.alive {
		if alive && int32(i) != b.bad {
			others = append(others, b.ids[i])
		}
	}
	return b.ids[b.bad], slices.Clip(others)
}
