package depot

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/gather"
)

var (
	// ErrReplan means that a collection took something from the depot since [Depot.Begin] or
	// [Push.Replan]. Plan again; uploaded segments stay good.
	ErrReplan = errors.New("depot: a collection ran since the push was planned")
	// ErrVoid means that the push, or an earlier push whose segments it uses, began so long ago that a
	// collection may have deleted its objects. Begin anew, and upload anew.
	ErrVoid = errors.New("depot: a collection voided what was uploaded")
	// ErrReadOnly means that a newer version wrote the depot, which this version may only read.
	ErrReadOnly = fault.New("depot: a newer program writes it, this one may only read it", fault.ErrReadOnly)
)

// MovedError means that a ref is not where the push expected it.
type MovedError struct {
	Ref string
	// Want is the commit that the push expected, Have the commit in the depot; zero for a missing ref.
	Want, Have ID
}

func (e *MovedError) Error() string {
	switch {
	case e.Have.IsZero():
		return fmt.Sprintf("depot: %s was deleted meanwhile", e.Ref)
	case e.Want.IsZero():
		return fmt.Sprintf("depot: %s exists meanwhile, at %v", e.Ref, e.Have)
	}
	return fmt.Sprintf("depot: %s moved meanwhile, from %v to %v", e.Ref, e.Want, e.Have)
}

// RefChange moves a ref. A zero Old makes it, a zero New deletes it. If they are equal, the ref must be there.
type RefChange struct {
	Ref      string
	Old, New ID
}

// Change is what a push publishes. The zero value makes a generation with nothing new.
type Change struct {
	// Pages, Commits and Moves are missing in the depot. Publish may go through Pages and Commits more than once. It
	// stores pages in their order. Moves are records of refs that moved, in a form of the caller, newest first.
	Pages   iter.Seq2[Page, error]
	Commits iter.Seq2[Commit, error]
	Moves   [][]byte
	// Segments are the segments of this push. Publish uploads the segments that were not uploaded, 8 at a time.
	Segments []*Segment
	// Stored are extents of segments that an earlier push uploaded and did not publish.
	Stored []Extent
	Refs   []RefChange
	// Uploaded, if not nil, is called after each segment that Publish has uploaded, by several goroutines.
	Uploaded func(*Segment)
}

// Push uploads and publishes one change. Its methods may run side by side, but for Publish.
type Push struct {
	d    *Depot
	base *Manifest // of the plan
	g    uint64    // generation at which it began
	n    Number
	next atomic.Uint32

	tried uint64 // the first generation that it may have made without knowing, or 0
	done  bool
}

// Begin starts a push at the newest manifest that is known. Look up the commits that the push relies on
// after Begin.
func (d *Depot) Begin() *Push {
	m := d.Manifest()
	return &Push{d: d, base: m, g: m.Generation, n: Number(d.o.Rand())}
}

// Number is the number of the push, by which a manifest tells that it was published.
func (p *Push) Number() Number { return p.n }

// Base is the manifest that the push is planned by.
func (p *Push) Base() *Manifest { return p.base }

// Replan reads the manifest and plans by it from now on. Segments that were uploaded stay good.
func (p *Push) Replan(ctx context.Context) error {
	err := p.d.Refresh(ctx)
	if err == nil {
		p.base = p.d.Manifest()
	}
	return err
}

// name returns the next name for an object.
func (p *Push) name() Name {
	return Name{uint32(p.g), uint64(p.n), p.next.Add(1) - 1}
}

// tries bounds the attempts to replace the manifest, and triesOfOne those at one generation.
const (
	tries      = 64
	triesOfOne = 8
)

// maxAlive is the number of bundles above which a push merges first.
const maxAlive = 32

// Publish uploads what is left to upload, and publishes the change: all refs move, or none does. When it
// returns nil, the change is in the depot for good. Other errors:
//
//   - [MovedError]: nothing was published; a ref is elsewhere.
//   - [ErrReplan], [ErrVoid]: nothing was published.
//   - [kv.ErrUnknown]: the change may have been published, or may be published later. Call Publish again
//     with the same change: it finds out, or publishes.
//   - other errors: nothing was published.
func (p *Push) Publish(ctx context.Context, c Change) error {
	if p.done {
		return errors.New("depot: this push was published already")
	}
	err := p.change(ctx, &c)
	if err != nil && p.tried > 0 && !errors.Is(err, kv.ErrUnknown) {
		err = fmt.Errorf("%w: %w", kv.ErrUnknown, err) // an attempt may be done yet
	}
	return err
}

// change is Publish, with errors that say nothing of earlier attempts.
func (p *Push) change(ctx context.Context, c *Change) error {
	if p.tried > 0 {
		if done, err := p.look(ctx); done || err != nil {
			return err
		}
	}
	d := p.d
	if len(d.Manifest().Bundles) > maxAlive {
		if _, err := d.Merge(ctx, nil); err != nil && ctx.Err() != nil {
			return err
		}
	}
	oldest := p.g
	for i := range c.Stored {
		oldest = min(oldest, uint64(c.Stored[i].Segment.Generation))
	}
	for _, s := range c.Segments {
		oldest = min(oldest, uint64(s.Name.Generation))
	}
	check := func(m *Manifest) error {
		switch {
		case len(m.Writes) > 0:
			return fmt.Errorf("%w: %.40q", ErrReadOnly, m.Writes[0])
		case m.Floor > oldest:
			return ErrVoid
		case m.Drops != p.base.Drops:
			return ErrReplan
		}
		for _, r := range c.Refs {
			if have := m.Refs[r.Ref]; have != r.Old && have != r.New {
				return &MovedError{r.Ref, r.Old, have}
			}
		}
		return nil
	}
	for carry := true; ; carry = false {
		s, u := d.snapshot(), &uploads{}
		if done, err := p.may(s.Manifest, check); done || err != nil {
			return err
		}
		err := gather.Each(ctx, 8, 1+len(c.Segments), func(ctx context.Context, i int) error {
			if i > 0 {
				s := c.Segments[i-1]
				sent := s.sent
				err := p.Upload(ctx, s)
				if err == nil && !sent && c.Uploaded != nil {
					c.Uploaded(s)
				}
				return err
			}
			return p.bundles(ctx, s, u, c, carry)
		})
		if err == nil {
			err = p.publish(ctx, u, check, c.Refs)
		}
		if err != errStale {
			return err
		}
	}
}

// uploads are the bundles that a push has uploaded, newest first.
type uploads struct {
	infos   []BundleInfo
	indexes []*index
	gone    []Name // of bundles whose contents they have
}

// splitAt is the size at which a push goes on with another bundle.
const splitAt = maxBundle - maxItem - 1<<20

// bundles uploads the bundles of a change.
func (p *Push) bundles(ctx context.Context, s *snapshot, u *uploads, c *Change, carry bool) error {
	w := newBuilder()
	extents := ascending(c.Stored)
	for _, seg := range c.Segments {
		extents = overlay(ascending(seg.Extents), extents)
	}
	add := func(n int, to func() error) error { // n bytes
		if full := w; full.size()+n >= splitAt {
			w = newBuilder()
			if err := p.put(ctx, u, full); err != nil {
				return err
			}
		}
		return to()
	}
	if err := each(c.Pages, func(page Page) error { return add(len(page.Data), func() error { return w.addPage(page) }) }); err != nil {
		return err
	}
	if err := each(c.Commits, func(c Commit) error { return add(len(c.Record), func() error { return w.addCommit(c) }) }); err != nil {
		return err
	}
	for _, m := range c.Moves {
		if err := add(len(m), func() error { return w.addMove(m) }); err != nil {
			return err
		}
	}
	const part = 256 << 10 // extents, with their segments 15 MiB
	for list := range slices.Chunk(extents, part) {
		if err := add(len(list)*(extentSize+nameSize), func() error { w.extents = append(w.extents, list...); return nil }); err != nil {
			return err
		}
	}
	if w.empty() {
		return nil
	}
	if carry {
		p.carry(ctx, s, u, w)
	}
	return p.put(ctx, u, w)
}

// put uploads a bundle.
func (p *Push) put(ctx context.Context, u *uploads, w *builder) error {
	b, info, err := w.finish()
	if err != nil {
		return err
	}
	info.Name = p.name()
	if err := p.d.store.Set(ctx, info.Name.Bundle(), b.b); err != nil {
		return fmt.Errorf("depot: upload %v: %w", info.Name.Bundle(), err)
	}
	x, err := b.index()
	u.infos, u.indexes = slices.Insert(u.infos, 0, info), slices.Insert(u.indexes, 0, x)
	return err
}

// publish replaces the manifest by one that lists what was uploaded and has refs moved. check says whether a manifest
// may be replaced. The error is errStale if a bundle that was taken along is no longer listed.
func (p *Push) publish(ctx context.Context, u *uploads, check func(*Manifest) error, refs []RefChange) error {
	d := p.d
	if time.Since(d.snapshot().read) > time.Minute { // Manifest.Times has the time of reading
		if err := d.Refresh(ctx); err != nil {
			return err
		}
	}
	for try, same := 0, 0; try < tries; try++ {
		s := d.snapshot()
		if done, err := p.may(s.Manifest, check); err != nil {
			return err
		} else if done {
			p.keep(ctx, u)
			return nil
		}
		for _, name := range u.gone {
			if !slices.ContainsFunc(s.Bundles, func(b BundleInfo) bool { return b.Name == name }) {
				return errStale
			}
		}
		next := s.next(p.n, s.time.Unix())
		next.Bundles = replace(next.Bundles, u.infos, u.gone)
		for _, r := range refs {
			if next.Refs[r.Ref] = r.New; r.New.IsZero() {
				delete(next.Refs, r.Ref)
			}
		}
		b, err := next.encode()
		if err != nil {
			return err
		}
		first := p.tried == 0
		if first {
			p.tried = next.Generation
		}
		tag, err := d.c.SetTagged(ctx, manifestKey, b, s.tag)
		if err == nil {
			p.publishedAs(next.Generation)
			made := &snapshot{next, tag, NameOf(b), s.time, s.read, b}
			d.set(made)
			d.keepManifest(ctx, made)
			p.keep(ctx, u)
			return nil
		}
		// Either may have been answered to a write that was done, or that is done later.
		unknown := errors.Is(err, kv.ErrUnknown)
		if !unknown && !errors.Is(err, kv.ErrChanged) {
			if first {
				p.tried = 0
			}
			return fmt.Errorf("depot: publish: %w", err)
		}
		least := time.Duration(0)
		if unknown {
			least = time.Second // a store that is overloaded answers so too
		}
		if err := d.wait(ctx, try, least); err != nil {
			return fmt.Errorf("depot: publish: %w", err)
		}
		if done, err := p.look(ctx); err != nil {
			return err
		} else if done {
			p.keep(ctx, u)
			return nil
		}
		if same++; d.Manifest().Generation > s.Generation {
			same = 0
		} else if same == triesOfOne {
			return fmt.Errorf("depot: publish: %d tries: %w", same, err)
		}
	}
	return errBusy
}

// look reads the manifest after an attempt whose outcome is not known, and reports whether the push was
// published. If it was not and can no longer be, p.tried is 0.
func (p *Push) look(ctx context.Context) (done bool, err error) {
	if err := p.d.Refresh(ctx); err != nil {
		return false, fmt.Errorf("depot: publish: %w", err)
	}
	return p.settle(p.d.Manifest())
}

// settle looks for the push in a manifest that was read after an attempt.
func (p *Push) settle(m *Manifest) (done bool, err error) {
	switch {
	case p.tried == 0, m.Generation < p.tried: // an attempt may be done yet: only another one settles that
		return false, nil
	case m.Has(p.n):
		p.publishedAs(m.Generation - uint64(slices.Index(m.Pushes, p.n)))
		return true, nil
	case m.Generation >= p.tried+keptPushes:
		return false, fmt.Errorf("depot: publish: the manifest remembers %d pushes, and there were more since", keptPushes)
	}
	p.tried = 0
	return false, nil
}

// may reports whether the push was published, or else may replace a manifest.
func (p *Push) may(m *Manifest, check func(*Manifest) error) (done bool, err error) {
	if done, err = p.settle(m); !done && err == nil {
		err = check(m)
	}
	return done, err
}

func (p *Push) publishedAs(generation uint64) {
	p.done, p.tried = true, 0
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	if generation > p.d.pushed.Pushed {
		p.d.pushed.Push, p.d.pushed.Pushed = p.n, generation
	}
}

// keep keeps the indexes of what was published.
func (p *Push) keep(ctx context.Context, u *uploads) {
	if p.d.loading.Lock(ctx) != nil {
		return
	}
	defer p.d.loading.Unlock()
	for i, info := range u.infos {
		p.d.indexes[info.Name] = u.indexes[i]
		p.d.keep(ctx, info.Name, u.indexes[i])
	}
}
