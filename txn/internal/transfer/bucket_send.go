package transfer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/depot"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/reach"
)

// A push to a bucket plans and walks as one to a database does. It reads what both sides have here, compares
// payloads with their hashes here, and uploads instead of copying:
//
//	plan ─▶ walk ─▶ verify the source ─▶ segments ∥ bundle ─▶ manifest
type Bucket struct {
	Depot *depot.Depot
	Push  *depot.Push
	// Stored returns extents of a pack that were uploaded and not published, and Uploaded notes such extents.
	Stored   func(id pack.ID) []depot.Extent
	Uploaded func([]depot.Extent)
	Segment  int64 // the size of segments; 0 is a good one
}

// ErrOtherBytes means that a bucket has other bytes at the place of a payload.
var ErrOtherBytes = fmt.Errorf("%w: two copies of one directory have written different payloads under one address", catalog.ErrConflict)

// ErrElsewhere means that payloads which are not in the source, nor in the bucket that it is pushed to, are in another bucket.
var ErrElsewhere = errors.New("txn: payloads are in the remote of the clone alone")

// Send pushes to a bucket. Errors of [depot.Push.Publish] pass.
func Send(ctx context.Context, from *From, b *Bucket, author string, now func() time.Time, o Options) (*Report, error) {
	if o.SkipDamaged {
		return &Report{}, fmt.Errorf("push without damaged chunks: %w: a bucket holds whole versions", errors.ErrUnsupported)
	}
	p := &pushing{op: OpPush}
	to := &To{Parts: &care.Parts{Author: author, Now: now}, Tree: from.Tree, DestinationDB: sentTo{from: from, b: b}, bucket: b}
	r, err := run(ctx, from, to, o, p.plan, p.send)
	if err == errPlanned {
		err = nil
	}
	return r, err
}

// sentTo is the destination of a push to a bucket, as of the manifest that the push is planned by.
type sentTo struct {
	DestinationDB // nil: it publishes nothing in an index
	from          *From
	b             *Bucket
}

func (s sentTo) Heads() (out []catalog.Ref) {
	refs := s.b.Push.Base().Refs
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		out = append(out, catalog.Ref{Name: name, Commit: catalog.CommitID(refs[name])})
	}
	return out
}

func (s sentTo) Head(ref string) (catalog.CommitID, bool) {
	id, ok := s.b.Push.Base().Refs[ref]
	return catalog.CommitID(id), ok
}

// Protection is none: a bucket has refs alone.
func (s sentTo) Protection(string) catalog.Protection { return catalog.Unprotected }

func (s sentTo) Lookup(ctx context.Context, id catalog.CommitID) (*catalog.Commit, error) {
	if c, err := s.from.Lookup(ctx, id); !errors.Is(err, catalog.ErrNoRef) {
		return c, err
	}
	return lookup(ctx, s.b.Depot, id)
}

func lookup(ctx context.Context, d *depot.Depot, id catalog.CommitID) (*catalog.Commit, error) {
	b, err := d.Commits(ctx, []depot.ID{depot.ID(id)})
	if errors.Is(err, depot.ErrLeft) {
		err = fmt.Errorf("commit %v: %w", id, catalog.ErrNoRef)
	}
	if err != nil {
		return nil, err
	}
	return catalog.DecodeCommit(id, b[0])
}

// Known implements [knower].
func (s sentTo) Known(ctx context.Context, id catalog.CommitID) (has, gone bool, err error) {
	whole, err := s.b.Depot.HasCommits(ctx, []depot.ID{depot.ID(id)})
	if err != nil || whole[0] {
		return err == nil, false, err
	}
	has, err = s.b.Depot.HasRecord(ctx, depot.ID(id))
	return has, has, err
}

// send uploads and publishes.
func (p *pushing) send(ctx context.Context, t *Transfer) (err error) {
	if len(p.move)+len(t.Records) == 0 {
		return nil
	}
	b := t.to.bucket
	u := upload{t: t, sizes: map[depot.Name]uint64{}}
	defer func() { err = errors.Join(err, u.close()) }()
	if err := u.segments(ctx); err != nil {
		return err
	}
	c := depot.Change{Pages: u.pages(ctx), Commits: u.commits, Segments: u.list, Stored: u.stored, Uploaded: u.uploaded}
	now := t.to.Now().UTC()
	var moves []catalog.RefMove
	for _, ref := range slices.Sorted(maps.Keys(p.move)) {
		m := catalog.RefMove{Ref: ref, Old: p.refs[ref].expect, New: p.move[ref], Time: now, Author: t.to.Author, Op: p.op}
		moves = append(moves, m)
		text, err := json.Marshal(sentMove{ref, m.Old, m.New, now, m.Author, m.Op})
		if err != nil {
			return err
		}
		c.Moves = append(c.Moves, text)
		c.Refs = append(c.Refs, depot.RefChange{Ref: ref, Old: depot.ID(m.Old), New: depot.ID(m.New)})
	}
	if err := b.Push.Publish(ctx, c); err != nil {
		return err
	}
	t.r.Moves = moves
	return nil
}

// sentMove is the record of a move; docs/format-remote.md has it.
type sentMove struct {
	Ref    string           `json:"ref"`
	Old    catalog.CommitID `json:"old"`
	New    catalog.CommitID `json:"new"`
	Time   time.Time        `json:"time"`
	Author string           `json:"author"`
	Op     string           `json:"op"`
}

// upload is what a push uploads.
type upload struct {
	t      *Transfer
	open   []*pack.Whole
	list   []*depot.Segment
	stored []depot.Extent
	sizes  map[depot.Name]uint64 // of segments that an earlier push uploaded

	mu   sync.Mutex
	done int64
}

func (u *upload) close() error {
	var errs []error
	for _, w := range u.open {
		errs = append(errs, w.Close())
	}
	return errors.Join(errs...)
}

// segments lays out the payloads that are missing in the bucket.
func (u *upload) segments(ctx context.Context) error {
	t, b := u.t, u.t.to.bucket
	size := cmp.Or(b.Segment, max(depot.SegmentBytes, min(t.Found.total>>10, 1<<30)))
	var ranges []depot.Range
	n := int64(0)
	cut := func() error {
		if len(ranges) == 0 {
			return nil
		}
		s, err := b.Push.Segment(ranges)
		u.list, ranges, n = append(u.list, s), nil, 0
		return err
	}
	for _, id := range t.needed() {
		w, err := t.From.Packs.Whole(ctx, id, t.Found.Need[id], uint64(size))
		if err != nil {
			return t.damagedPack(ctx, id, err)
		}
		u.open = append(u.open, w)
		if lost := pack.Subtract(t.Found.Need[id], w.Extents); slices.ContainsFunc(lost, func(e pack.Extent) bool { return e.From < e.To }) {
			return t.damagedPack(ctx, id, &pack.CorruptError{Pack: id, Offset: lost[0].From, Length: lost[0].To - lost[0].From, Reason: "no record"})
		}
		left := w.Extents
		for _, e := range b.Stored(id) {
			adds := pack.Subtract(left, pack.Subtract(left, []pack.Extent{{From: e.From, To: e.To}})) // of left, what e has
			if len(adds) == 0 {
				continue
			}
			if ok, err := u.there(ctx, &e); err != nil {
				return err
			} else if !ok {
				continue
			}
			for _, x := range adds { // entries of a bundle may not overlap
				u.stored = append(u.stored, depot.Extent{Pack: e.Pack, From: x.From, To: x.To, Segment: e.Segment, Offset: e.Offset + x.From - e.From})
			}
			left = pack.Subtract(left, adds)
			t.r.PresentBytes += length(adds)
		}
		if left, err = u.absent(ctx, id, w, left); err != nil {
			return err
		}
		for _, e := range left {
			if n > 0 && n+int64(e.To-e.From) > size {
				if err := cut(); err != nil {
					return err
				}
			}
			ranges = append(ranges, depot.Range{Pack: id, From: e.From, To: e.To, Body: io.NewSectionReader(w, int64(e.From), int64(e.To-e.From))})
			n += int64(e.To - e.From)
		}
	}
	return cut()
}

// there reports whether the bucket has the segment of an extent that was uploaded earlier, up to the end of the extent: the bucket
// may have been restored or cleaned since. It asks once for each segment.
func (u *upload) there(ctx context.Context, e *depot.Extent) (bool, error) {
	size, known := u.sizes[e.Segment]
	if !known {
		var err error
		if size, err = u.t.to.bucket.Depot.SegmentSize(ctx, e.Segment); err != nil {
			return false, err
		}
		u.sizes[e.Segment] = size
	}
	return e.Offset+e.To-e.From <= size, nil
}

func length(list []pack.Extent) (n int64) {
	for _, e := range list {
		n += int64(e.To - e.From)
	}
	return n
}

// absent returns the extents that the bucket does not list. What it lists must be the same there: relied
// on are versions that are whole there, and this is of none.
func (u *upload) absent(ctx context.Context, id pack.ID, w *pack.Whole, list []pack.Extent) ([]pack.Extent, error) {
	d := u.t.to.bucket.Depot
	var equal []pack.Extent
	for _, e := range list {
		listed, err := d.Extents(ctx, id, e.From, e.To)
		if err != nil {
			return nil, err
		}
		for _, x := range listed {
			for from := x.From; from < x.To; {
				to := min(x.To, from+readBytes)
				there, err := d.Payloads(ctx, []depot.Part{{Pack: id, From: from, To: to}})
				if err != nil {
					return nil, err
				}
				here := make([]byte, to-from)
				if _, err := w.ReadAt(here, int64(from)); err != nil {
					return nil, err
				}
				if !bytes.Equal(there[0], here) {
					return nil, fmt.Errorf("pack %v at %d: %w: clone the bucket into a new directory, bring there what only this one has with \"zarrdb import\", and push from there", id, from, ErrOtherBytes)
				}
				from = to
			}
			equal = append(equal, pack.Extent{From: x.From, To: x.To})
			u.t.r.PresentBytes += int64(x.To - x.From)
		}
	}
	return pack.Subtract(list, equal), nil
}

// uploaded notes that a segment is in the bucket.
func (u *upload) uploaded(s *depot.Segment) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.done += s.Size()
	u.t.r.PayloadBytes += s.Size()
	u.t.r.Packs++
	u.t.to.bucket.Uploaded(s.Extents)
	u.t.report("copy", u.done, u.t.Found.total)
}

// pages yields the pages of the newest version first, since most readers want those.
func (u *upload) pages(ctx context.Context) iter.Seq2[depot.Page, error] {
	found := u.t.Found
	return func(yield func(depot.Page, error) bool) {
		end := len(found.Pages)
		for _, from := range slices.Backward(found.starts) {
			for p, err := range u.t.From.Pages(ctx, found.Pages[from:end]) {
				if err == nil && digest.Of(p.Bytes) != p.Name {
					err = catalog.Corrupt("page %v: its bytes hash to %v", p.Name, digest.Of(p.Bytes))
				}
				if !yield(depot.Page{Data: p.Bytes}, err) || err != nil {
					return
				}
			}
			end = from
		}
	}
}

func (u *upload) commits(yield func(depot.Commit, error) bool) {
	for _, r := range slices.Backward(u.t.Records) {
		if !yield(depot.Commit{Record: catalog.EncodeCommit(r.Commit), Bare: !r.content}, nil) {
			return
		}
	}
}

// NotHere returns the ranges of a pack that are not in it.
func (f *From) NotHere(ctx context.Context, id pack.ID, need []pack.Extent) ([]pack.Extent, error) {
	w, err := f.Packs.Whole(ctx, id, need, math.MaxUint64)
	if errors.As(err, new(*pack.CorruptError)) {
		return need, nil
	}
	if err != nil {
		return nil, err
	}
	return pack.Subtract(need, w.Extents), w.Close()
}

// leaveAway takes payloads off the list that are not here, because the bucket has them.
func (t *Transfer) leaveAway(ctx context.Context) error {
	if t.From.Away == nil {
		return nil
	}
	d := t.to.bucket.Depot
	for id, need := range t.Found.Need {
		lost, err := t.From.NotHere(ctx, id, need)
		if err != nil {
			return err
		}
		if len(lost) == 0 {
			continue
		}
		from, err := t.From.Away(ctx)
		if err != nil {
			return err
		}
		var there []pack.Extent
		for _, e := range lost {
			list, err := d.Extents(ctx, id, e.From, e.To)
			if err != nil {
				return err
			}
			if e.From < e.To && d.Manifest().ID != from.Manifest().ID {
				return ErrElsewhere
			}
			for _, x := range list {
				there = append(there, pack.Extent{From: max(x.From, e.From), To: min(x.To, e.To)})
			}
		}
		if len(there) == 0 {
			continue
		}
		left := pack.Subtract(need, there)
		for _, e := range need { // Subtract leaves those without bytes out
			if e.From == e.To {
				left = append(left, e)
			}
		}
		slices.SortFunc(left, reach.CompareExtents)
		if t.Found.Need[id] = left; len(left) == 0 {
			delete(t.Found.Need, id)
		}
	}
	return nil
}

// verifySource compares the payloads that are to be uploaded with their hashes.
func (t *Transfer) verifySource(ctx context.Context) error {
	var done int64
	t.Found.report = func() { t.report("verify", done, t.Found.total) }
	err := t.Found.payloads(ctx, &done)
	if len(t.bad) > 0 && (err == nil || errors.Is(err, errDamaged)) {
		err = t.damaged(ctx)
	}
	return err
}

// verifyHere compares a payload of the source with its hash.
func (t *Transfer) verifyHere(ctx context.Context, v tree.Value) error {
	a := catalog.AddressOf(v)
	err := t.From.Packs.Verify(ctx, a, func(b []byte) error { return care.CompareSum(a, b, v.Sum) })
	if errors.Is(err, kv.ErrCorrupt) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.bad[a] = badPayload{v.Sum, err}
		err = errDamaged
	}
	return err
}
