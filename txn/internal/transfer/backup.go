package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// Mirror makes the destination what the source is: all versions that have not expired, refs and
// reflogs. of is the incarnation of the source, if the destination is a backup of it.
func Mirror(ctx context.Context, from *From, to *To, of *[8]byte, o Options) (*Report, error) {
	return run(ctx, from, to, o, everything, func(ctx context.Context, t *Transfer) error { return t.mirror(ctx, of) })
}

// mayMirror refuses to drop versions that somebody committed to a backup, as a push does: what a
// branch or tag points at that moved there, and that the source does not know.
func (t *Transfer) mayMirror(ctx context.Context) error {
	moved, err := catalog.MovedSinceBackup(t.to.Index)
	if !moved || err != nil || t.o.Force {
		return err
	}
	for _, r := range t.to.Heads() {
		_, err := t.From.Lookup(ctx, r.Commit)
		if errors.Is(err, catalog.ErrNoRef) {
			_, name, _ := strings.Cut(r.Name, "/")
			err = fmt.Errorf("%s: %w; \"zarrdb push %s %s %s:NAME\" keeps them under another name, and a backup with force drops them", refText(r.Name), ErrDiverged, t.to.Dir, t.From.Dir, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// everything plans all commits.
func everything(ctx context.Context, t *Transfer) error {
	if err := t.mayMirror(ctx); err != nil {
		return err
	}
	for rec, err := range catalog.StoredCommits(ctx, t.Kept, nil) {
		if err != nil {
			return err
		}
		c, err := catalog.DecodeCommit(rec.ID, rec.Value)
		if err != nil {
			return err
		}
		has, gone, err := t.known(ctx, c.ID)
		if err != nil {
			return err
		}
		at, expired := t.expired[c.ID]
		if !has || gone && !expired {
			t.add(c, !expired, has, at)
		}
	}
	return nil
}

// mirror publishes refs, reflogs and marks of expiry as they are in the source.
func (t *Transfer) mirror(ctx context.Context, of *[8]byte) error {
	return t.publish(ctx, func(c *LastBatch) error {
		if err := t.mayMirror(ctx); err != nil {
			return err
		}
		if err := t.mirrorSpace(ctx, c.Batch, index.SpaceReflog); err != nil {
			return err
		}
		// Marks that the source has not belong to commits that were copied again,
		// whose marks are gone by now, or to what only the destination knew.
		if err := t.copySpace(ctx, c.Batch, index.SpaceExpired); err != nil {
			return err
		}
		c.Mirrored = true
		for _, r := range t.to.Heads() {
			if _, ok := t.heads[r.Name]; !ok {
				c.Moves = append(c.Moves, catalog.RefMove{Ref: r.Name, Old: r.Commit})
			}
		}
		for _, ref := range slices.Sorted(maps.Keys(t.heads)) {
			if old, _ := t.to.Head(ref); old != t.heads[ref] {
				c.Moves = append(c.Moves, catalog.RefMove{Ref: ref, Old: old, New: t.heads[ref]})
			}
		}
		at, err := catalog.LastCare(t.Kept, catalog.LastErase)
		if err != nil {
			return err
		}
		if had, err := catalog.LastCare(t.to.Index, catalog.LastErase); err != nil {
			return err
		} else if !at.IsZero() && !at.Equal(had) { // the destination may have what was erased
			catalog.PutErased(c.Batch)
			catalog.PutLastCare(c.Batch, catalog.LastErase, at)
		}
		if of != nil {
			moves, err := catalog.MoveCount(t.to.Index)
			if err != nil {
				return err
			}
			catalog.PutBackupOf(c.Batch, *of, moves+uint64(len(c.Moves)))
		}
		return nil
	})
}

// copySpace takes the records of a space from the source.
func (t *Transfer) copySpace(ctx context.Context, batch *index.Batch, s index.Space) error {
	_, err := t.copyRecords(ctx, batch, s)
	return err
}

// copyRecords is copySpace that returns the keys of the records.
func (t *Transfer) copyRecords(ctx context.Context, batch *index.Batch, s index.Space) (keys map[string]struct{}, err error) {
	keys = map[string]struct{}{}
	for rec, err := range t.Kept.Scan(s, nil, nil, false) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		keys[string(rec.Key)] = struct{}{}
		old, err := t.to.Index.Get(s, rec.Key)
		if err != nil && !errors.Is(err, index.ErrNotFound) {
			return nil, err
		}
		if err != nil || !bytes.Equal(old, rec.Value) {
			batch.Set(s, rec.Key, rec.Value)
		}
	}
	return keys, nil
}

// mirrorSpace makes the records of a space those of the source.
func (t *Transfer) mirrorSpace(ctx context.Context, batch *index.Batch, s index.Space) error {
	keys, err := t.copyRecords(ctx, batch, s)
	if err != nil {
		return err
	}
	for rec, err := range t.to.Index.Scan(s, nil, nil, false) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if _, ok := keys[string(rec.Key)]; !ok {
			batch.Delete(s, rec.Key)
		}
	}
	return nil
}
