package formats

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/ctxlock"
)

// Lazy is a value that is made when it is first asked for. The zero value is ready. Safe for
// concurrent use.
type Lazy[T any] struct {
	turn ctxlock.Lock
	made atomic.Pointer[made[T]]
}

type made[T any] struct {
	v   T
	err error
}

// Get returns the value, and calls build for it if no call before has made it. One call of
// build runs at a time; other calls wait for it until ctx ends. The value is kept, and so is an
// error that [IsKnown].
func (l *Lazy[T]) Get(ctx context.Context, build func() (T, error)) (T, error) {
	if m := l.made.Load(); m != nil {
		return m.v, m.err
	}
	var none T
	if err := l.turn.Lock(ctx); err != nil {
		return none, err
	}
	defer l.turn.Unlock()
	if m := l.made.Load(); m != nil {
		return m.v, m.err
	}
	v, err := build()
	if err == nil || IsKnown(err) {
		l.made.Store(&made[T]{v, err})
	}
	return v, err
}

// IsDamage reports whether an error says that a file is damaged.
func IsDamage(err error) bool { return errors.Is(err, ErrFormat) || errors.Is(err, codecs.ErrCorrupt) }

// IsKnown reports whether an error is about the content of a file, so that reading the same
// file again gives it again: the file is damaged or not supported.
func IsKnown(err error) bool { return IsDamage(err) || errors.Is(err, ErrUnsupported) }
