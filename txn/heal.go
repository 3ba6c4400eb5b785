package txn

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
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
	packs, a := s.db.packs, addressOf(v)
	if v.Kind != tree.KindNative || packs.Pending(a) {
		return true, nil // this process has just written it
	}
	check := func() error {
		return packs.Reread(ctx, a, 0, a.Length, func([]byte) error { return nil })
	}
	err := check()
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
	err := s.db.packs.View(ctx, addressOf(v), 0, v.Length, func(b []byte) error {
		same = bytes.Equal(b, value)
		return nil
	})
	s.repeats.Store(same && err == nil)
	return same && err == nil
}

// Healed is how many damaged payloads the session has met where a write had the right
// bytes, which were written anew.
func (s *Session) Healed() int64 { return s.healed.Load() }

// verifyPayload reads a payload with its header, and compares it with its hash.
func (db *DB) verifyPayload(ctx context.Context, a pack.Address, sum digest.Sum) error {
	return db.packs.Verify(ctx, a, func(b []byte) error { return compareSum(a, b, sum) })
}

// rightPayload returns the bytes of a payload if they have a hash. Its header may be damaged.
func (db *DB) rightPayload(ctx context.Context, a pack.Address, sum digest.Sum) (out []byte, err error) {
	err = db.view(ctx, a, 0, a.Length, true, func(b []byte) error {
		out = append([]byte{}, b...)
		return compareSum(a, b, sum)
	})
	return out, err
}

func compareSum(a pack.Address, b []byte, sum digest.Sum) error {
	if got := digest.Of(b); got != sum {
		return corrupt("pack %v at %d: payload hashes to %v, not %v", a.Pack, a.Offset, got, sum)
	}
	return nil
}

// hole is a payload that is known to be damaged.
type hole = catalog.Hole

// holes reads the known holes.
func holes(in catalog.Scanner) (map[pack.Address]digest.Sum, error) {
	out := map[pack.Address]digest.Sum{}
	for h, err := range catalog.Holes.All(in) {
		if err != nil {
			return nil, err
		}
		out[h.Address] = h.Sum
	}
	return out, nil
}

// healFrom heals payloads with the bytes that another database has at other addresses, or
// that this one has elsewhere. It takes those that are sound now out of bad, and removes their
// records as holes. A pack that cannot be read at all is set aside and made anew.
func (db *DB) healFrom(ctx context.Context, src *DB, bad map[pack.Address]digest.Sum, at func(hole) (pack.Address, bool)) (healed int, err error) {
	byPack := map[pack.ID][]pack.Address{}
	for a, sum := range bad {
		if _, ok := at(hole{Address: a, Sum: sum}); ok {
			byPack[a.Pack] = append(byPack[a.Pack], a)
		}
	}
	batch := db.idx.NewBatch()
	defer batch.Close()
	for _, id := range slices.SortedFunc(maps.Keys(byPack), func(a, b pack.ID) int { return bytes.Compare(a[:], b[:]) }) {
		list := byPack[id]
		slices.SortFunc(list, func(a, b pack.Address) int { return cmp.Compare(a.Offset, b.Offset) })
		found := false
		read := func(i int) ([]byte, error) {
			sum := bad[list[i]]
			from, _ := at(hole{Address: list[i], Sum: sum})
			b, err := src.rightPayload(ctx, from, sum)
			if errors.Is(err, kv.ErrCorrupt) {
				return nil, nil
			}
			found = found || err == nil
			return b, err
		}
		for i := 0; i < len(list) && !found; i++ {
			if _, err := read(i); err != nil {
				return healed, err
			}
		}
		if !found {
			continue
		}
		info, _, err := db.packs.Heal(ctx, id, list, true, read)
		if pack.Unreadable(err) {
			fs := db.opts.FS
			if _, err = setAside(fs, db.dir, fs.PathJoin(db.dir, packDir, pack.FileName(id)), db.opts.Now()); err == nil {
				info, _, err = db.packs.Heal(ctx, id, list, true, read)
			}
		}
		if err != nil && !errors.Is(err, kv.ErrCorrupt) {
			return healed, err
		}
		for _, a := range list {
			err := db.verifyPayload(ctx, a, bad[a])
			if err == nil {
				healed++
				delete(bad, a)
				catalog.Holes.Delete(batch, a)
			} else if !errors.Is(err, kv.ErrCorrupt) {
				return healed, err
			}
		}
		if info.Sealed {
			catalog.Packs.Put(batch, info)
		}
	}
	if healed == 0 {
		return 0, nil
	}
	db.ends.Lock()
	defer db.ends.Unlock()
	return healed, batch.Commit(true)
}

// putHoles makes the known holes those of bad.
func (db *DB) putHoles(bad map[pack.Address]digest.Sum) error {
	known, err := holes(db.idx)
	if err != nil {
		return err
	}
	batch := db.idx.NewBatch()
	defer batch.Close()
	for a := range known {
		if _, ok := bad[a]; !ok {
			catalog.Holes.Delete(batch, a)
		}
	}
	for a, sum := range bad {
		if known[a] != sum {
			catalog.Holes.Put(batch, hole{Address: a, Sum: sum})
		}
	}
	if batch.Len() == 0 {
		return nil
	}
	return batch.Commit(true)
}

// DamageError says that payloads are damaged, and where they are. It is kv.ErrCorrupt.
type DamageError struct {
	// Problems has an entry for each key whose payload is damaged, with the versions
	// that have the key.
	Problems []Problem
	Err      error
}

// Error implements error.
func (e *DamageError) Error() string {
	if len(e.Problems) == 0 {
		return e.Err.Error()
	}
	more := ""
	if n := len(e.Problems) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return e.Problems[0].Error() + more +
		"; with --skip-damaged, the copy has all but damaged chunks; \"zarrdb fsck --full --repair --from COPY\" heals them from a copy that has them"
}

// Unwrap returns what is wrong with the first of them.
func (e *DamageError) Unwrap() error { return e.Err }

// damages are payloads and packs that cannot be read.
type damages struct {
	Payloads []damagedAt
	Packs    map[pack.ID]*damage
}

type damagedAt struct {
	Address pack.Address
	Damage  damage
}

// problemsOf finds the keys and versions of payloads that are damaged.
func (db *DB) problemsOf(ctx context.Context, d damages) ([]Problem, error) {
	return asked(ctx, db, "damage", d, db.findDamage)
}

func (db *DB) findDamage(ctx context.Context, d damages) ([]Problem, error) {
	bad := map[pack.Address]error{}
	for _, p := range d.Payloads {
		bad[p.Address] = p.Damage.error
	}
	c, err := db.checked(ctx, CheckOptions{payload: func(_ context.Context, v tree.Value) error {
		if p := d.Packs[addressOf(v).Pack]; p != nil {
			return p.error
		}
		return bad[addressOf(v)]
	}})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(c.r.Problems, func(p Problem) bool { return p.Kind != ProblemPayload }), nil
}
