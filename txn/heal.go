package txn

import (
	"bytes"
	"context"
	"errors"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// A damaged payload is healed by its right bytes, in its place, so that every version
// that names it is healed. docs/design/packs.md has the reasons.
//
//	a write of the bytes that a key has  ─▶ keeps ──────┐
//	[DB.Repair], from the database and its copies ──────┤─▶ pack.Store.Heal
//	a transfer, from its source: known holes, ──────────┘
//	    and what did not arrive

func (s own) keeps(ctx context.Context, v tree.Value, value []byte) (bool, error) {
	packs, a := s.db.packs, catalog.AddressOf(v)
	if v.Kind != tree.KindNative || packs.Pending(a) {
		return true, nil // this process has just written it
	}
	check := func() error {
		return packs.Reread(ctx, a, 0, a.Length, func([]byte) error { return nil })
	}
	err := check()
	if s.db.away != nil && errors.As(err, new(*pack.CorruptError)) && s.db.away.Covers(ctx, a, err) == nil {
		return true, nil // it is away
	}
	s.repeats.Store(err == nil)
	if err == nil || errors.Is(err, pack.ErrFailed) { // the commit says that it is lost
		return true, nil
	}
	if !errors.Is(err, kv.ErrCorrupt) {
		return false, err
	}
	_, n, err := packs.Heal(ctx, a.Pack, []pack.Address{a}, false, func(int) ([]byte, error) { return value, nil })
	if err == nil {
		err = check()
	}
	if err != nil {
		n = 1 // value is stored anew
	}
	s.healed.Add(int64(n)) // 0 if another write healed it meanwhile
	return err == nil, ctx.Err()
}

// repeated reports whether the payload of v has the bytes of value. It looks only if the last
// payload was one that the key had: then to read the payload costs less than to hash value,
// and else it would be in vain.
func (s *Session) repeated(ctx context.Context, v tree.Value, value []byte) (same bool) {
	if !s.repeats.Load() || v.Kind != tree.KindNative || v.Length != uint64(len(value)) {
		return false
	}
	err := s.db.packs.View(ctx, catalog.AddressOf(v), 0, v.Length, func(b []byte) error {
		same = bytes.Equal(b, value)
		return nil
	})
	s.repeats.Store(same && err == nil)
	return same && err == nil
}

// Healed is how many damaged payloads the session has met where a write had the right
// bytes, which were written anew.
func (s *Session) Healed() int64 { return s.healed.Load() }
