package transfer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/reach"
)

// verify proves that the versions which were carried are whole in the destination.
// It trusts neither the list of what was copied nor any page in memory: it goes
// down from their roots through the pages in the destination's index, each compared
// with its name, and reads every payload that they name out of the destination's
// packs, compared with its checksums, header and hash. What versions name that the
// destination had before is skipped.
func (t *Transfer) verify(ctx context.Context) error {
	// What was carried is in the index; of what was there before some may wait.
	w := t.newWalk(tree.New(t.to.Stored, reach.Uncached), tree.New(t.to.Committed, reach.Uncached))
	w.whole = true
	var done int64
	w.report = func() { t.report("verify", w.pageBytes+done, t.Found.pageBytes+t.Found.total) }
	err := w.run(ctx)
	if err == nil {
		err = w.payloads(ctx, &done)
	}
	if len(t.bad) > 0 && (err == nil || errors.Is(err, errDamaged)) {
		err = t.damaged(ctx)
	}
	if err != nil {
		return fmt.Errorf("verify the copy: %w", err)
	}
	return nil
}

// payloads verifies those that the walk found, and counts their bytes.
func (w *Walk) payloads(ctx context.Context, done *int64) error {
	var (
		seen reach.AddressSet
		mu   sync.Mutex // guards done and the report
	)
	return gather.Each(ctx, runtime.GOMAXPROCS(0), len(w.Leaves), func(ctx context.Context, i int) error {
		n, size, err := w.verifyLeaf(ctx, w.Leaves[i], &seen)
		mu.Lock()
		defer mu.Unlock()
		w.T.r.Verified += n
		*done += size
		w.report()
		return err
	})
}

// verifyLeaf verifies the payloads that a page names and which were not seen.
func (w *Walk) verifyLeaf(ctx context.Context, leaf tree.Root, seen *reach.AddressSet) (n, size int64, err error) {
	err = w.from.Open(ctx, leaf.Place(), func(tree.Place) error { return nil }, func(e tree.Entry) error {
		v := e.Value
		if v.Kind != tree.KindNative || !w.needs(catalog.AddressOf(v)) || !seen.Add(catalog.AddressOf(v)) {
			return nil
		}
		n++
		size += int64(v.Length)
		return w.T.verifyPayload(ctx, v)
	})
	return n, size, err
}

// errDamaged ends the verification of a copy at a payload that is damaged in the source.
var errDamaged = errors.New("txn: damaged in the source")

// verifyPayload verifies a payload of the copy. With SkipDamaged, one that did not arrive
// because something near it cannot be read in the source is written now.
func (t *Transfer) verifyPayload(ctx context.Context, v tree.Value) error {
	if t.to.bucket != nil {
		return t.verifyHere(ctx, v)
	}
	a := catalog.AddressOf(v)
	err := t.to.VerifyPayload(ctx, a, v.Sum)
	if !errors.Is(err, kv.ErrCorrupt) {
		return err
	}
	right, source := t.From.RightPayload(ctx, a, v.Sum)
	var damage *pack.CorruptError
	switch {
	case source == nil && (t.o.SkipDamaged || t.From.bucket != nil) && errors.As(err, &damage) && a.Pack.Incarnation() != t.to.Incarnation:
		info, _, err := t.to.Packs.Heal(ctx, a.Pack, []pack.Address{a}, true, func(int) ([]byte, error) { return right, nil })
		if err != nil {
			return err
		}
		t.mu.Lock()
		t.packs = append(t.packs, info)
		t.mu.Unlock()
		return t.to.VerifyPayload(ctx, a, v.Sum)
	case source == nil && a.Pack.Incarnation() == t.to.Incarnation:
		return fmt.Errorf("%w: the destination wrote this payload itself, and has other bytes there: if it is damaged, \"zarrdb fsck --full --repair --from COPY\" heals it", err)
	case source == nil:
		return err
	case !errors.Is(source, kv.ErrCorrupt):
		return source
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bad[a] = badPayload{v.Sum, source}
	if !t.o.SkipDamaged {
		return errDamaged
	}
	return nil
}

// damaged finds out where the payloads are that are damaged in the source, and is the error
// about them unless they are to be skipped.
func (t *Transfer) damaged(ctx context.Context) error {
	var first error
	var d care.Damages
	for a, bad := range t.bad {
		d.Payloads = append(d.Payloads, care.DamagedAt{Address: a, Damage: care.Damage{Err: bad.err}})
		first = bad.err
	}
	problems, err := t.From.Problems(ctx, d)
	if t.o.SkipDamaged && err == nil {
		t.r.Skipped = problems
		t.r.Verified -= int64(len(t.bad))
		return nil
	}
	return errors.Join(&care.DamageError{Problems: problems, Err: first}, err)
}

// fill heals known holes of the destination with what the source has at their places.
func (t *Transfer) fill(ctx context.Context) error {
	known, err := catalog.KnownHoles(t.to.Index)
	if err != nil || len(known) == 0 {
		return err
	}
	healed, err := t.to.Heal(ctx, t.From.RightPayload, known, func(h catalog.Hole) (pack.Address, bool) { return h.Address, true })
	t.r.Filled = int64(healed)
	return err
}

// needs reports whether a payload is among those that the walk found.
func (w *Walk) needs(a pack.Address) bool {
	list := w.Need[a.Pack]
	i, _ := slices.BinarySearchFunc(list, a.Offset, func(e pack.Extent, off uint64) int {
		if e.To < off || e.To == off && e.From < off {
			return -1
		}
		return 1
	})
	return i < len(list) && (list[i].From < a.Offset+a.Length || list[i].From <= a.Offset)
}
