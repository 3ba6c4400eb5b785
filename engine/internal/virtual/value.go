package virtual

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/refs"
)

// value is a part of a file. It keeps to the version of the file that was seen
// when it was located, as soon as a caller has its identity, under which caches
// keep its bytes, or has read bytes of it: the index of a shard is wrong for
// another version. Before that it may follow the file to a newer version, unless
// the reference records one.
type value struct {
	r      *Resolver
	p      *referent
	src    tree.Source
	file   kv.Value // nil if it was not looked for
	off, n int64
	id     kv.ID

	state atomic.Int32
	// next replaces the value: the located file of a value that was not located yet, or another
	// version of the file if the state is stateMoved.
	next atomic.Pointer[value]
}

const (
	stateFree   = iota // no caller has its identity or bytes
	statePinned        // a caller has
	stateMoved         // it is of another version
)

var _ kv.Validator = (*value)(nil)

// current is the part that is read, v if it was not looked for yet.
func (v *value) current() *value {
	if next := v.next.Load(); next != nil && (v.file == nil || v.state.Load() == stateMoved) {
		return next.current()
	}
	return v
}

// pin keeps v at its version of the file, and reports whether v still has that version.
func (v *value) pin() bool {
	return v.state.CompareAndSwap(stateFree, statePinned) || v.state.Load() == statePinned
}

func (v *value) Size() int64 { return v.n }

// ID implements [kv.Value]: the identity of the bytes in the version of the
// file that was seen, zero if versions cannot be told apart.
func (v *value) ID() kv.ID {
	for {
		at := v.current()
		if at.id == (kv.ID{}) || at.pin() {
			return at.id
		}
	}
}

// Validator implements [kv.Validator]: the validator of the file.
func (v *value) Validator() string {
	at := v.current()
	if at.file == nil {
		return at.src.Validator
	}
	return ValidatorOf(at.file)
}

func (v *value) Spacing() (gap, most int64) {
	if at := v.current(); at.file != nil {
		return kv.Spacing(at.file)
	}
	return v.r.spacing(context.Background(), v.p) // opens a view, and sends no request
}

// found is the part that is read, which is looked for if need be.
func (v *value) found(ctx context.Context) (*value, error) {
	at := v.current()
	if at.file != nil {
		return at, nil
	}
	found, err := v.r.find(ctx, v.src, uint64(v.off), uint64(v.n), nil)
	if err != nil {
		return nil, virtualError(v.src, err)
	}
	if v.id != (kv.ID{}) && found.id != v.id {
		return nil, virtualError(v.src, fmt.Errorf("%w since its identity was told", kv.ErrChanged))
	}
	if v.state.Load() == statePinned {
		found.pin()
	}
	v.next.CompareAndSwap(nil, found)
	return v.current(), nil
}

// moved is the part in another version of the file than was seen when it was
// located, if there may be one.
func (v *value) moved(ctx context.Context, changed error) (*value, error) {
	if v.state.Load() == statePinned {
		v.r.forget(v.p, v.file)
		return nil, changed
	}
	again, err := v.r.find(ctx, v.src, uint64(v.off), uint64(v.n), v.file)
	if err != nil {
		return nil, err
	}
	if again.n != v.n { // a whole file, whose size a caller knows
		return nil, changed
	}
	again.pin() // this is as often as it is tried
	v.next.CompareAndSwap(nil, again)
	if !v.state.CompareAndSwap(stateFree, stateMoved) && v.state.Load() == statePinned {
		return nil, changed
	}
	return v.next.Load(), nil
}

// errMoved is for bytes of a version that new readers no longer see.
var errMoved = fmt.Errorf("%w while it was read", kv.ErrChanged)

func (v *value) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	off, n, err := rng.Resolve(v.n)
	if err != nil {
		return err
	}
	at, err := v.found(ctx)
	if err != nil {
		return err
	}
	called := false
	err = at.file.View(ctx, kv.Span(at.off+off, n), func(b []byte) error {
		if !at.pin() {
			return errMoved
		}
		called = true
		return fn(b)
	})
	if !called && errors.Is(err, kv.ErrChanged) {
		var again *value
		if again, err = at.moved(ctx, err); err == nil {
			return again.View(ctx, rng, fn)
		}
	}
	return v.failed(err, called)
}

// failed is an error of reading the file, unless it is of the caller's.
func (v *value) failed(err error, callers bool) error {
	if err == nil || callers {
		return err
	}
	if errors.Is(err, kv.ErrNotFound) {
		err = &refs.MissingError{Place: v.p.place}
	}
	return virtualError(v.src, err)
}

var _ kv.Spreader = (*value)(nil)

// Spread implements [kv.Spreader]: parts of files of servers do. It finds the file
// first, once for all parts.
func (v *value) Spread() kv.Spread {
	at := v.current()
	if at.file != nil {
		return kv.SpreadOf(at.file)
	}
	if v.p.local() {
		return nil
	}
	return func(ctx context.Context, n int, size int64, fn func(ctx context.Context, i int) error) error {
		at, err := v.found(ctx)
		if err != nil {
			return err
		}
		if spread := kv.SpreadOf(at.file); spread != nil {
			return spread(ctx, n, size, fn)
		}
		for i := range n {
			if err := fn(ctx, i); err != nil {
				return err
			}
		}
		return nil
	}
}
