package txn

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/care"
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
	if s.db.away != nil && errors.As(err, new(*pack.CorruptError)) && s.db.away.covers(ctx, a, err) == nil {
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

// rightPayload returns the bytes of a payload if they have a hash. Its header may be damaged.
func (db *DB) rightPayload(ctx context.Context, a pack.Address, sum digest.Sum) (out []byte, err error) {
	take := func(b []byte) error {
		out = append([]byte{}, b...)
		return care.CompareSum(a, b, sum)
	}
	if db.away != nil {
		err = db.viewRight(ctx, a, 0, a.Length, true, sum, take)
	} else {
		err = db.view(ctx, a, 0, a.Length, true, take)
	}
	return out, err
}

// problemsOf finds the keys and versions of payloads that are damaged.
func (db *DB) problemsOf(ctx context.Context, d care.Damages) ([]Problem, error) {
	return asked(ctx, db, "damage", d, db.findDamage)
}

func (db *DB) findDamage(ctx context.Context, d care.Damages) ([]Problem, error) {
	bad := map[pack.Address]error{}
	for _, p := range d.Payloads {
		bad[p.Address] = p.Damage.Err
	}
	c := &care.Checker{Look: func(_ context.Context, v tree.Value) error {
		if p := d.Packs[catalog.AddressOf(v).Pack]; p != nil {
			return p.Err
		}
		return bad[catalog.AddressOf(v)]
	}}
	if err := db.look(ctx, c); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(c.Report.Problems, func(p Problem) bool { return p.Kind != ProblemPayload }), nil
}
