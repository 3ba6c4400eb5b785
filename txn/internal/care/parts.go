package care

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// Directories of a database.
const (
	IndexDir      = "index"
	PackDir       = "packs"
	CheckpointDir = "checkpoints"
)

// Parts are the parts of an open database that care needs.
type Parts struct {
	FS     index.FS
	Dir    string
	Author string
	Now    func() time.Time
	Index  *index.Index
	Packs  *pack.Store
	Pages  tree.Pages // that are committed, some of which may wait to be written
	DB     DB
	// Away and AwayPayload, if not nil, return nil for a page or payload that is missing here because a remote has it, else
	// what is wrong, which is damage if nothing else is.
	Away        func(ctx context.Context, name tree.Name) error
	AwayPayload func(ctx context.Context, a pack.Address, damage error) error

	// Ends is held from the sync of packs to the batch that records it.
	Ends ctxlock.Lock
	// Relied is held shared by code that relies on payloads that only old versions may
	// name, such as a check, and exclusively while payloads are reclaimed.
	Relied ctxlock.Lock

	Failures    Failures
	Checkpoints Checkpoints
}

// DB is what care asks of an open database.
type DB interface {
	// Here is nil while the directory is where it was opened, Usable while the database is open.
	Here() error
	Usable() error
	// WritePending puts into the index what was committed and waits for the disk.
	WritePending(ctx context.Context) error
	Lookup(ctx context.Context, id catalog.CommitID) (*catalog.Commit, error)
	// Expired reports whether a commit was let go, and when.
	Expired(ctx context.Context, id catalog.CommitID) (bool, time.Time, error)
	// Heads are all refs under their stored names, Head one of them.
	Heads() []catalog.Ref
	Head(ref string) (catalog.CommitID, bool)
	// Publish calls fn while no ref moves. What was committed before is in the index.
	Publish(ctx context.Context, fn func() error) error
	// Move points a ref at a commit.
	Move(ref, op string, to catalog.CommitID) error
}

// VerifyPayload reads a payload with its header, and compares it with its hash.
func (p *Parts) VerifyPayload(ctx context.Context, a pack.Address, sum digest.Sum) error {
	return p.Packs.Verify(ctx, a, func(b []byte) error { return CompareSum(a, b, sum) })
}

// CompareSum compares the bytes of a payload with their hash.
func CompareSum(a pack.Address, b []byte, sum digest.Sum) error {
	if got := digest.Of(b); got != sum {
		return catalog.Corrupt("pack %v at %d: payload hashes to %v, not %v", a.Pack, a.Offset, got, sum)
	}
	return nil
}

// Heal heals payloads with the bytes that another database has at other addresses, or
// that this one has elsewhere. It takes those that are sound now out of bad, and removes their
// records as holes. A pack that cannot be read at all is set aside and made anew.
func (p *Parts) Heal(ctx context.Context, right func(ctx context.Context, a pack.Address, sum digest.Sum) ([]byte, error), bad map[pack.Address]digest.Sum, at func(catalog.Hole) (pack.Address, bool)) (healed int, err error) {
	byPack := map[pack.ID][]pack.Address{}
	for a, sum := range bad {
		if _, ok := at(catalog.Hole{Address: a, Sum: sum}); ok {
			byPack[a.Pack] = append(byPack[a.Pack], a)
		}
	}
	batch := p.Index.NewBatch()
	defer batch.Close()
	for _, id := range slices.SortedFunc(maps.Keys(byPack), func(a, b pack.ID) int { return bytes.Compare(a[:], b[:]) }) {
		list := byPack[id]
		slices.SortFunc(list, func(a, b pack.Address) int { return cmp.Compare(a.Offset, b.Offset) })
		found := false
		read := func(i int) ([]byte, error) {
			sum := bad[list[i]]
			from, _ := at(catalog.Hole{Address: list[i], Sum: sum})
			b, err := right(ctx, from, sum)
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
		info, _, err := p.Packs.Heal(ctx, id, list, true, read)
		if pack.Unreadable(err) {
			fs := p.FS
			if _, err = SetAside(fs, p.Dir, fs.PathJoin(p.Dir, PackDir, pack.FileName(id)), p.Now()); err == nil {
				info, _, err = p.Packs.Heal(ctx, id, list, true, read)
			}
		}
		if err != nil && !errors.Is(err, kv.ErrCorrupt) {
			return healed, err
		}
		for _, a := range list {
			err := p.VerifyPayload(ctx, a, bad[a])
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
	p.Ends.WaitLock() // the packs are changed
	defer p.Ends.Unlock()
	return healed, batch.Commit(true)
}

// PutHoles makes the known holes those of bad.
func (p *Parts) PutHoles(bad map[pack.Address]digest.Sum) error {
	known, err := catalog.KnownHoles(p.Index)
	if err != nil {
		return err
	}
	batch := p.Index.NewBatch()
	defer batch.Close()
	for a := range known {
		if _, ok := bad[a]; !ok {
			catalog.Holes.Delete(batch, a)
		}
	}
	for a, sum := range bad {
		if known[a] != sum {
			catalog.Holes.Put(batch, catalog.Hole{Address: a, Sum: sum})
		}
	}
	if batch.Len() == 0 {
		return nil
	}
	return batch.Commit(true)
}
