package tree

import (
	"bytes"
	"context"
)

// Merge makes the map that has the changes from base to ours and from base to
// theirs. For each key that both changed, even to equal values, it calls
// resolve, which returns the new value; nil means absent, in arguments and
// result. Calls come in the order of keys, and resolve owns its arguments.
// Callers that need no decision for equal changes compare the roots first, here
// and in values that are roots.
//
// Its cost grows with the smaller set of changes: its changes are applied to the
// other side, whose changes are read only near them.
func (t *Tree) Merge(ctx context.Context, base, ours, theirs Root,
	resolve func(key []byte, base, ours, theirs *Value) (*Value, error)) (Root, error) {
	switch base {
	case theirs:
		return ours, nil
	case ours:
		return theirs, nil
	}
	swap, err := t.changesLess(ctx, base, ours, theirs)
	if err != nil {
		return Root{}, err
	}
	m := merger{t: t, ctx: ctx, onto: ours, resolve: resolve}
	from := theirs
	if swap {
		m.onto, from = theirs, ours
		m.resolve = func(key []byte, base, theirs, ours *Value) (*Value, error) {
			return resolve(key, base, ours, theirs)
		}
	}
	m.changes = t.newDiffer(ctx, base, from, &Span{})
	m.changes.lookAhead()
	defer m.changes.close()
	return t.splice(ctx, m.onto, false, m.next)
}

// changesLess reports whether there are fewer changes from base to a than from
// base to b. It counts both sets in step and stops at the end of the smaller
// one.
func (t *Tree) changesLess(ctx context.Context, base, a, b Root) (bool, error) {
	changesA, changesB := t.newDiffer(ctx, base, a, &Span{}), t.newDiffer(ctx, base, b, &Span{})
	for {
		if _, more, err := changesB.next(); err != nil || !more {
			return false, err
		}
		if _, more, err := changesA.next(); err != nil || !more {
			return true, err
		}
	}
}

// merger turns the changes of one side into splices of the other.
type merger struct {
	t       *Tree
	ctx     context.Context
	onto    Root
	changes *differ
	resolve func(key []byte, base, onto, from *Value) (*Value, error)
	s       splice
	item    [1]Entry
}

func (m *merger) next() (*splice, error) {
	for {
		d, ok, err := m.changes.next()
		if err != nil || !ok {
			return nil, err
		}
		have, found, err := m.t.Get(m.ctx, m.onto, d.key)
		if err != nil {
			return nil, err
		}
		there := &have
		if !found {
			there = nil
		}
		result := d.new
		if !equalValues(there, d.old) {
			if result, err = m.conflict(&d, there); err != nil {
				return nil, err
			}
			if equalValues(there, result) {
				continue
			}
		}
		m.s = splice{lo: d.key, hi: d.key}
		if result != nil {
			m.item[0] = Entry{Key: d.key, Value: *result}
			if err := m.item[0].check(); err != nil {
				return nil, err
			}
			m.s.items = m.item[:]
		}
		return &m.s, nil
	}
}

func (m *merger) conflict(d *delta, there *Value) (*Value, error) {
	return m.resolve(bytes.Clone(d.key), copyValue(d.old), copyValue(there), copyValue(d.new))
}

func copyValue(v *Value) *Value {
	if v == nil {
		return nil
	}
	return new(*v)
}

func equalValues(a, b *Value) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(b)
}
