package history

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// Writes finds since when keys have their values, along first parents. It reads a key in about
// 2·log₂(n) of n versions, where Blame reads every version. The zero value is ready. Safe for
// concurrent use.
type Writes struct {
	mu    ctxlock.Lock
	known map[catalog.CommitID]*link
}

// link is a commit on a chain of first parents. jump is an ancestor, so far away that any
// ancestor is reached in a logarithmic number of steps.
type link struct {
	id           catalog.CommitID
	parent, jump *link // nil for the first commit, and for the first commit that has not expired
	depth        int
}

// maxLinks bounds the links that are remembered, each about 100 bytes.
const maxLinks = 1 << 20

// Since returns the time of a commit that gave a key the value which it has in the version
// at: the value is that of the commit, and not that of its first parent. Between the
// commit and the version at, the key may have had another value for a while. So two values of a
// key never get the same time, and no value gets a time later than its last change.
// exact is false if the commit before has the same second. If earlier versions have expired,
// Since returns the time of the first version that has not.
func (w *Writes) Since(ctx context.Context, v *Versions, at catalog.CommitID, key string, value *tree.Value) (when time.Time, exact bool, err error) {
	n, err := w.link(ctx, v, at)
	if err != nil {
		return when, false, err
	}
	same := func(l *link) bool {
		if l == nil || err != nil {
			return false
		}
		var c *catalog.Commit
		if c, err = v.Kept(ctx, l.id); err != nil {
			if errors.Is(err, catalog.ErrExpired) {
				err = nil
			}
			return false
		}
		var was tree.Value
		var ok bool
		was, ok, err = v.Space.Get(ctx, c.Root, key)
		return err == nil && ok && namespace.SameBytes(&was, value)
	}
	for {
		next := n.jump
		if !same(next) {
			if next = n.parent; next == n.jump || !same(next) {
				break
			}
		}
		n = next
	}
	if err != nil {
		return when, false, err
	}
	c, err := v.Commit(ctx, n.id)
	if err != nil {
		return when, false, err
	}
	if n.parent == nil {
		return c.Time, true, nil
	}
	p, err := v.Commit(ctx, n.parent.id)
	if err != nil {
		return when, false, err
	}
	if exact = p.Time.Unix() < c.Time.Unix(); !exact && len(p.Parents) == 0 {
		_, ok, err := v.Space.Get(ctx, p.Root, key)
		return c.Time, !ok, err // the first commit of a database mostly has no keys
	}
	return c.Time, exact, nil
}

// link returns the link of a commit. It makes the links of the commit and of its ancestors
// that have none.
func (w *Writes) link(ctx context.Context, v *Versions, id catalog.CommitID) (*link, error) {
	if err := w.mu.Lock(ctx); err != nil {
		return nil, err
	}
	defer w.mu.Unlock()
	if len(w.known) >= maxLinks {
		w.known = nil
	}
	if w.known == nil {
		w.known = map[catalog.CommitID]*link{}
	}
	var unlinked []catalog.CommitID // commits without a link, newest first
	next := id
	for w.known[next] == nil {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c, err := v.Kept(ctx, next)
		if len(unlinked) > 0 && errors.Is(err, catalog.ErrExpired) {
			break
		}
		if err != nil {
			return nil, err
		}
		unlinked = append(unlinked, next)
		if len(c.Parents) == 0 {
			break
		}
		next = c.Parents[0]
	}
	parent := w.known[next] // nil if the chain begins with the last of unlinked
	for _, id := range slices.Backward(unlinked) {
		l := &link{id: id, parent: parent, jump: parent}
		if parent != nil {
			l.depth = parent.depth + 1
			if j := parent.jump; j != nil && j.jump != nil && parent.depth-j.depth == j.depth-j.jump.depth {
				l.jump = j.jump
			}
		}
		w.known[id], parent = l, l
	}
	return parent, nil
}
