package away

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/depot"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/txn/internal/bucket"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/transfer"
)

// View reads a payload of packs/, and fetches it if it is not there, or not the one with the hash sum.
func (a *Part) View(ctx context.Context, at pack.Address, off, n uint64, all bool, sum digest.Sum, fn func([]byte) error) error {
	begun, err := a.viewIn(ctx, a.host.Packs, at, off, n, all, sum, fn)
	if begun || !errors.As(err, new(*pack.CorruptError)) {
		return err
	}
	if err = a.viewAway(ctx, at, off, n, all, sum, err, fn); errors.Is(err, kv.ErrCorrupt) {
		err = cmp.Or(a.host.Here(), err) // it was removed as a whole
	}
	return err
}

// Covers returns nil if the bucket has a payload, and damage if not.
func (a *Part) Covers(ctx context.Context, at pack.Address, damage error) error {
	d, err := a.Depot(ctx)
	for try := 0; err == nil; try++ {
		var list []depot.Extent
		if list, err = d.Extents(ctx, at.Pack, at.Offset, at.Offset+max(at.Length, 1)); err != nil {
			break
		}
		need := []pack.Extent{{From: at.Offset, To: at.Offset + at.Length}}
		for _, e := range list {
			need = pack.Subtract(need, []pack.Extent{{From: e.From, To: e.To}})
		}
		if len(list) > 0 && len(need) == 0 {
			return nil
		}
		if try > 0 {
			return damage
		}
		if err := d.Refresh(ctx); err != nil {
			return a.unasked(ctx, damage, err)
		}
	}
	return a.Failed(ctx, payloadAt(at), err)
}

// viewTries bounds how often a payload is fetched for one read: a collection may remove it before it is read.
const viewTries = 8

// view reads a payload that packs/ does not have sound, because of damage.
func (a *Part) viewAway(ctx context.Context, at pack.Address, off, n uint64, all bool, sum digest.Sum, damage error, fn func([]byte) error) error {
	for try := 0; ; try++ {
		err, begun := damage, false
		for _, s := range a.fetched() {
			if begun, err = a.viewIn(ctx, s, at, off, n, all, sum, fn); begun || !errors.As(err, new(*pack.CorruptError)) {
				return err
			}
		}
		wrong := errors.As(err, &wrongError{})
		if try == viewTries || try > 0 && wrong {
			return a.Failed(ctx, payloadAt(at), err)
		}
		if err := a.bring(ctx, at, damage, wrong); err != nil {
			return err
		}
	}
}

// viewIn reads a payload of one store, whose whole bytes are compared with their hash first, once. begun says that fn was called.
func (a *Part) viewIn(ctx context.Context, s *pack.Store, at pack.Address, off, n uint64, all bool, sum digest.Sum, fn func([]byte) error) (begun bool, err error) {
	view := s.View
	if all {
		view = s.Reread
	}
	if s != a.host.Packs {
		a.use(at.Pack, pack.Extent{From: at.Offset, To: at.Offset + at.Length}, 0)
	}
	compare := func(b []byte) error { return a.Right(s == a.host.Packs, at, b, sum) }
	if n < at.Length && !a.Known(s == a.host.Packs, at, sum) {
		if err := view(ctx, at, 0, at.Length, compare); err != nil {
			return false, err
		}
	}
	err = view(ctx, at, off, n, func(b []byte) error {
		if uint64(len(b)) == at.Length {
			if err := compare(b); err != nil {
				return err
			}
		}
		begun = true
		return fn(b)
	})
	if begun && s != a.host.Packs && ctx.Value(lockedKey{}) == nil {
		a.passed(ctx, at)
	}
	return begun, err
}

func payloadAt(at pack.Address) string {
	return fmt.Sprintf("the payload at %d of pack %v", at.Offset, at.Pack)
}

// carry copies records out of the bucket.
func (a *Part) carry(ctx context.Context, id pack.ID, need []pack.Extent) (pack.Imported, error) {
	return a.bringIn(ctx, id, need, true, func(d *depot.Depot, to *pack.Store) (pack.Imported, error) {
		_, n, err := transfer.ImportFrom(ctx, d, to, id, need, nil)
		return n, err
	})
}

// bringIn makes room for records of a pack, and has them copied. wanted says that the ranges begin where payloads do.
func (a *Part) bringIn(ctx context.Context, id pack.ID, need []pack.Extent, wanted bool, copy func(*depot.Depot, *pack.Store) (pack.Imported, error)) (n pack.Imported, err error) {
	select {
	case a.turns <- struct{}{}:
		defer func() { <-a.turns }()
	case <-ctx.Done():
		return n, ctx.Err()
	}
	to, err := a.scratch()
	if err != nil {
		return n, err
	}
	a.Fetching()
	came, err := a.makeRoom(ctx, id, need, wanted)
	defer came()
	if err != nil {
		return n, err
	}
	d, err := a.Depot(ctx)
	if err == nil {
		n, err = copy(d, to)
	}
	if errors.Is(err, pack.ErrTaken) { // a crash left half of a record
		if err = a.remove(id); err == nil {
			n, err = copy(d, to)
		}
	}
	return n, err
}

// remove removes what was fetched of a pack.
func (a *Part) remove(id pack.ID) error {
	defer a.forget()
	to, err := a.scratch()
	if err != nil {
		return err
	}
	return to.Remove(id)
}

type wanted struct {
	at    pack.Address
	by    bucket.Asker
	wrong bool // other bytes were fetched before
	done  chan struct{}
	err   error
}

func (w *wanted) extent() pack.Extent {
	return pack.Extent{From: w.at.Offset, To: w.at.Offset + w.at.Length}
}

// bring fetches a payload into [Dir]. The wants of all readers that wait are fetched together.
func (a *Part) bring(ctx context.Context, at pack.Address, damage error, wrong bool) error {
	if ctx.Value(lockedKey{}) != nil {
		return ErrLocked
	}
	if err := a.Covers(ctx, at, damage); err != nil {
		return err
	}
	w := &wanted{at: at, by: bucket.AskerOf(ctx), wrong: wrong, done: make(chan struct{})}
	most := a.window()
	a.mu.Lock()
	f := a.fetching(at.Pack)
	f.wants = append(f.wants, w)
	f.pass(w.extent(), w.by, most, true)
	a.start(at.Pack, f)
	closed := a.closed
	a.mu.Unlock()
	if closed {
		return catalog.ErrClosed
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if w.err != nil {
		return a.Failed(ctx, payloadAt(at), w.err)
	}
	return nil
}

// serve fetches what is wanted of a pack, and its row, until nothing is left to do.
func (a *Part) serve(id pack.ID, f *fetching) {
	r := row{id: id}
	defer r.close()
	for {
		most := a.Most()
		a.mu.Lock()
		list := f.take(uint64(most) / (2 * atOnce))
		if len(list) == 0 && !f.open() {
			f.busy = false
			a.mu.Unlock()
			return
		}
		now := *f
		a.mu.Unlock()
		if len(list) > 0 {
			a.fetchWanted(id, list)
		} else {
			end, goal := a.step(&r, &now)
			a.went(f, &now, end, goal)
		}
	}
}

// fetchWanted fetches payloads that one asker waits for.
func (a *Part) fetchWanted(id pack.ID, list []*wanted) {
	var err error
	if slices.ContainsFunc(list, func(w *wanted) bool { return w.wrong }) {
		err = a.remove(id)
	}
	ctx := a.as(list[0].by)
	if err == nil {
		_, err = a.carry(ctx, id, extents(list))
	}
	// What the remote has lost or damaged of one is no error of the others.
	alone := len(list) > 1 && (errors.Is(err, kv.ErrCorrupt) || errors.Is(err, depot.ErrLeft))
	for _, w := range list {
		if w.err = err; alone {
			_, w.err = a.carry(ctx, id, []pack.Extent{w.extent()})
		}
		close(w.done)
	}
}

// take returns the next wants of one asker that do not come with the row, of so many bytes together, or one.
func (f *fetching) take(most uint64) (list []*wanted) {
	bytes := uint64(0)
	f.wants = slices.DeleteFunc(f.wants, func(w *wanted) bool {
		if f.brings(w) || len(list) > 0 && (bytes+w.at.Length > most || w.by != list[0].by) {
			return false
		}
		bytes += w.at.Length
		list = append(list, w)
		return true
	})
	return list
}

// extents returns the ranges of wants.
func extents(list []*wanted) (need []pack.Extent) {
	slices.SortFunc(list, func(a, b *wanted) int { return cmp.Compare(a.at.Offset, b.at.Offset) })
	for _, w := range list {
		e := w.extent()
		if last := len(need) - 1; last >= 0 && e.From < need[last].To {
			need[last].To = max(need[last].To, e.To)
			continue
		}
		need = append(need, e)
	}
	return need
}

// wrongError is the error of a payload that is sound by its checksums, and is not the one with a hash.
type wrongError struct{ *pack.CorruptError }

func (e wrongError) Unwrap() error { return e.CorruptError }

// Lend opens the file of the pack with a payload for a peer.
func (a *Part) Lend(ctx context.Context, at pack.Address) (*pack.File, error) {
	own := a.host.Packs
	look := func([]byte) error { return nil }
	err := own.View(ctx, at, 0, at.Length, look)
	if err == nil {
		return own.File(at)
	}
	if !errors.As(err, new(*pack.CorruptError)) {
		return nil, err
	}
	if err = a.viewAway(ctx, at, 0, at.Length, false, digest.Sum{}, err, look); err != nil {
		return nil, err
	}
	// A peer has one file of a pack: if one is in packs/ too, it gets bytes.
	if a.tight() || slices.ContainsFunc(own.Infos(), func(i pack.Info) bool { return i.ID == at.Pack && !i.Missing }) {
		return nil, errors.ErrUnsupported
	}
	for _, s := range a.fetched() {
		var f *pack.File
		if f, err = s.File(at); err == nil {
			return f, nil
		}
	}
	return nil, err
}
