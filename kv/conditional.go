package kv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// ErrUnknown means that the answer to a write was lost: the write may have been
// done, may still be done, or not. Read the value to find out.
var ErrUnknown = errors.New("kv: the outcome of the write is unknown")

// Tag names a version of a value in a [Conditional] store, which chooses the text. Other
// bytes have another tag. Equal bytes may have the same tag again.
type Tag string

// NoValue is the tag of a key without a value.
const NoValue Tag = ""

// Tagged is a value with its tag.
type Tagged struct {
	// Value belongs to the caller. It is nil if the caller knows the value by its tag.
	Value []byte
	Tag   Tag
	// Time is the time of the store's clock, zero if it is not known.
	Time time.Time
}

// Conditional is an optional interface of a [Store] that sets a value only if the value
// is still the one that the caller has seen. Of several callers that set one key by the
// same tag, at most one succeeds, in whichever process or machine.
type Conditional interface {
	// GetTagged returns the value of key. Without a value the error is [ErrNotFound]; above
	// limit bytes it is [ErrTooLarge]. If the tag of the value is known, the store does not send the value.
	GetTagged(ctx context.Context, key string, known Tag, limit int64) (Tagged, error)

	// SetTagged sets key if its tag is want, [NoValue] for a key that must have no value, and
	// returns the new tag. The error is [ErrChanged] if the tag is another one, and
	// [ErrUnknown] if the answer was lost. It sends one request, and never repeats it. A
	// proxy may repeat the request: then ErrChanged can be the answer to a write that was
	// done. A caller that never sets the same bytes twice can read the value and compare.
	SetTagged(ctx context.Context, key string, value []byte, want Tag) (Tag, error)
}

type holdKey struct{}

// WithHold returns a context in which a store that sends values to a server calls hold after it has sent the beginning
// of a value of more than 8 KiB, and before the rest. So several writers can meet while the server has all their
// requests and none of them whole.
func WithHold(ctx context.Context, hold func()) context.Context {
	return context.WithValue(ctx, holdKey{}, hold)
}

// Hold returns the function of [WithHold], or nil.
func Hold(ctx context.Context) func() {
	hold, _ := ctx.Value(holdKey{}).(func())
	return hold
}

// ValueWriter is an optional interface of a [Writer] that sets a key to bytes that are not
// in memory, such as a part of a file.
type ValueWriter interface {
	// SetValue is Set with the bytes of v, which is read in pieces, more than once if need be.
	// A value that changes meanwhile is an error, and sets nothing.
	SetValue(ctx context.Context, key string, v Value) error
}

// SetValue sets a key to the bytes of v. The fall-back holds them in memory.
func SetValue(ctx context.Context, w Writer, key string, v Value) error {
	if s, ok := w.(ValueWriter); ok {
		if err := s.SetValue(ctx, key, v); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	return v.View(ctx, All(), func(b []byte) error { return w.Set(ctx, key, b) })
}

// TagOf returns a tag for bytes in a store that has none of its own.
func TagOf(b []byte) Tag {
	sum := sha256.Sum256(b)
	return Tag(hex.EncodeToString(sum[:20]))
}

var _ Conditional = (*Mem)(nil)

// GetTagged implements [Conditional].
func (m *Mem) GetTagged(ctx context.Context, key string, known Tag, limit int64) (Tagged, error) {
	b, err := m.Get(ctx, key, Range{})
	if err != nil {
		return Tagged{}, err
	}
	return NewTagged(b, known, limit)
}

// NewTagged returns the result of [Conditional] for bytes in a store without tags.
func NewTagged(b []byte, known Tag, limit int64) (Tagged, error) {
	if int64(len(b)) > limit {
		return Tagged{}, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, len(b), limit)
	}
	out := Tagged{b, TagOf(b), time.Now()}
	if out.Tag == known {
		out.Value = nil
	}
	return out, nil
}

// SetTagged implements [Conditional].
func (m *Mem) SetTagged(ctx context.Context, key string, value []byte, want Tag) (Tag, error) {
	if err := errors.Join(ctx.Err(), ValidKey(key)); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := NoValue
	if old, ok := m.values[key]; ok {
		now = TagOf(old)
	}
	if now != want {
		return "", fmt.Errorf("%w: set %s", ErrChanged, quoteKey(key))
	}
	m.set(key, value)
	return TagOf(value), nil
}
