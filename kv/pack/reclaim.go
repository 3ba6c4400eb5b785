package pack

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/internal/osfs"
)

// Extent is a range of logical offsets of a pack, without To.
type Extent struct{ From, To uint64 }

// Reclaimed is the result of [Store.Reclaim] for one pack.
type Reclaimed struct {
	// Removed, Punched and Rewritten say how space was given back.
	Removed, Punched, Rewritten bool
	// Bytes is the number of dead bytes newly freed.
	Bytes uint64
	// Held are dead bytes that stay: in blocks that hold live bytes too, or in
	// a file with more than one link or a lease.
	Held uint64
	// Linked means that the file has more than one link.
	Linked bool
	// Leased means that another process reads the file, which therefore got no holes.
	Leased bool
}

const (
	// deadGap is the smallest gap between live payloads that is looked at: the
	// header of the record behind it alone takes that much.
	deadGap = 256
	// A pack is rewritten if its dead bytes that cannot be punched are at least
	// rewriteFrom and a rewriteShare of the live ones.
	rewriteFrom  = 64 << 10
	rewriteShare = 10
	// smallHole is the size below which no holes are made in a pack that will be
	// rewritten: file systems take up to a millisecond for a hole of any size.
	smallHole = 64 << 10
)

// Seal ends the growth of packs: the next Sync seals them. Packs that do not
// grow are left alone.
func (s *Store) Seal(ids ...ID) {
	for _, id := range ids {
		p := s.lookup(id)
		if p == nil || !p.growing() {
			continue
		}
		p.mu.Lock()
		p.full = true
		p.mu.Unlock()
		s.retire(p)
	}
}

// Reclaim gives the space of a sealed pack back to the file system, except for two kinds of
// records: those whose payloads overlap live, whose extents ascend and do not overlap, and
// all records behind tail, which is the beginning or end of a record; math.MaxUint64 means
// no such records. The durable index must name only live records. Reclaim waits for earlier
// reads, which succeed; later reads of dead payloads are [CorruptError].
//
// A pack without live payloads is removed. Blocks within dead ranges are punched
// out of the file, also if they were before and a copy of the file has zeros in them. If that is not possible, or if small dead records would be a
// tenth of the rest, the pack is rewritten without them, which needs the space
// of its live bytes meanwhile. A file with more than one link is not changed;
// one that was leased by [Store.File] gets no holes.
//
// ErrInUse is returned for a pack that may grow. A crash at any moment leaves
// every live payload readable, and Reclaim can be called again.
func (s *Store) Reclaim(ctx context.Context, id ID, live []Extent, tail uint64) (Reclaimed, error) {
	if s.o.ReadOnly {
		return Reclaimed{}, kv.ErrReadOnly
	}
	return s.reclaimOne(ctx, id, live, tail, false)
}

// Reclaimable estimates the result of Reclaim, without making holes or reading
// records. It changes nothing.
func (s *Store) Reclaimable(ctx context.Context, id ID, live []Extent, tail uint64) (Reclaimed, error) {
	return s.reclaimOne(ctx, id, live, tail, true)
}

func (s *Store) reclaimOne(ctx context.Context, id ID, live []Extent, tail uint64, dry bool) (Reclaimed, error) {
	if err := s.check(ctx); err != nil {
		return Reclaimed{}, err
	}
	s.reclaim.Lock()
	defer s.reclaim.Unlock()
	p := s.lookup(id)
	switch {
	case p == nil || p.info().Missing && (len(live) > 0 || tail < p.size.Load()):
		return Reclaimed{}, nil
	case p.inUse():
		return Reclaimed{}, fmt.Errorf("pack: reclaim %v: %w", id, errInUse)
	case len(live) == 0 && tail >= p.size.Load():
		out := Reclaimed{Removed: true, Bytes: p.size.Load()}
		if dry {
			return out, nil
		}
		err := s.Remove(id)
		if osfs.InUse(err) { // by another program: the next call removes it
			return Reclaimed{Held: out.Bytes, Leased: true}, nil
		}
		return out, err
	}
	r := reclaimer{ctx: ctx, s: s, p: p, live: live, tail: tail, dry: dry}
	err := r.run()
	if fi, statErr := s.fs.Stat(s.path(id)); statErr == nil && !dry {
		p.onDisk.Store(allocated(fi))
	}
	if err != nil {
		return r.out, fmt.Errorf("pack: reclaim %v: %w", id, err)
	}
	return r.out, nil
}

// reclaimer works on one pack.
type reclaimer struct {
	ctx  context.Context
	s    *Store
	p    *pack
	live []Extent
	tail uint64
	f    vfs.File
	lay  *layout
	dry  bool
	out  Reclaimed

	dead   []gap
	hollow []gap    // given back before
	kept   []Extent // whole records, with the bytes between them
}

// gap is a range without live records that is still in the file.
type gap struct {
	Extent
	inner Extent // file offsets of the whole blocks in it, may be empty
	again bool   // it was given back before, and takes space again
}

// holds reports whether a gap has whole blocks, and at least so many bytes of
// them.
func (g *gap) holds(least uint64) bool {
	return g.inner != (Extent{}) && g.inner.To-g.inner.From >= least
}

func (r *reclaimer) run() (err error) {
	if r.dry {
		r.f, err = r.s.fs.Open(r.s.path(r.p.id))
	} else {
		r.f, err = r.s.fs.OpenReadWrite(r.s.path(r.p.id), vfs.WriteCategoryUnspecified)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeFile(r.f)) }()
	if r.lay, err = r.p.checkFile(r.f); err != nil {
		return err
	}
	if err = r.findDead(); err == nil {
		err = r.findFilled()
	}
	if err != nil || len(r.dead) == 0 {
		return err
	}
	var whole, rest uint64
	for _, g := range r.dead {
		inner := g.inner.To - g.inner.From
		whole += inner
		if !g.again {
			rest += g.To - g.From - inner
		}
	}
	if osfs.Links(r.f) > 1 {
		r.out.Linked, r.out.Held = true, whole+rest
		return nil
	}
	var left uint64
	for _, k := range r.kept {
		left += k.To - k.From
	}
	leased := whole > 0 && LockedElsewhere(r.f) // if not, no new lease until the end
	rewrite := r.worthRewriting(rest, left)
	switch {
	case leased && !rewrite:
		r.out.Leased, r.out.Held = true, whole+rest
		return nil
	case r.dry && rewrite:
		r.out.Punched, r.out.Rewritten, r.out.Bytes = whole > 0 && !leased, true, whole+rest
		return nil
	case r.dry:
		r.out.Punched, r.out.Bytes, r.out.Held = whole > 0, whole, rest
		return nil
	}
	r.forbid()
	r.out.Held = whole + rest
	switch {
	case leased: // its readers keep the old file
	case !rewrite:
		if err := r.punch(0); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		if !r.worthRewriting(r.out.Held, left) {
			return nil
		}
	default:
		if err := r.punch(smallHole); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	switch err := r.rewrite(); {
	case isFull(err) && leased, errors.Is(err, errHeldOpen):
		r.out.Leased = true
		return nil
	case isFull(err): // nothing has changed, and holes may help
		if err := r.punch(0); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		return nil
	case err != nil:
		return err
	}
	r.out.Rewritten = true
	r.out.Bytes += r.out.Held
	r.out.Held = 0
	return nil
}

// worthRewriting weighs dead bytes that cannot be punched against live ones.
func (r *reclaimer) worthRewriting(rest, left uint64) bool {
	return rest >= rewriteFrom && rest >= left/rewriteShare
}

// findDead finds the gaps between live records. Where a record begins is only
// in the file: its header is found from its payload.
func (r *reclaimer) findDead() error {
	size := r.p.size.Load()
	at := uint64(fileHeaderSize)
	for _, e := range r.live {
		if e.From >= e.To || e.From < at || e.From >= size {
			if e.From >= size {
				break
			}
			return fmt.Errorf("live range %d to %d is out of order", e.From, e.To)
		}
		start := e.From - min(e.From-at, deadGap) // for an estimate
		if !r.dry || e.From-at >= smallHole {
			var err error
			if start, err = r.begin(at, e.From); err != nil {
				return err
			}
		}
		if err := r.gap(at, start); err != nil {
			return err
		}
		end := roundUp(min(e.To, size), smallAlign)
		r.keep(start, min(end, size))
		at = end
	}
	tail := size
	if r.tail < size {
		tail = roundUp(max(r.tail, at), smallAlign)
	}
	if err := r.gap(at, min(tail, size)); err != nil {
		return err
	}
	r.keep(max(at, tail), size)
	return nil
}

// begin returns the offset of the record with a payload at off, or at if the
// bytes between are too few to matter.
func (r *reclaimer) begin(at, off uint64) (uint64, error) {
	if off-at < deadGap {
		return at, nil
	}
	h, ok, err := r.header(off)
	if err == nil && ok && h.at >= at {
		at = h.at
	}
	return at, err
}

// keep adds a range, which begins behind all ranges before.
func (r *reclaimer) keep(from, to uint64) {
	if n := len(r.kept); n > 0 && r.kept[n-1].To == from {
		r.kept[n-1].To = to
	} else if from < to {
		r.kept = append(r.kept, Extent{from, to})
	}
}

// header reads the header of the record with a payload at off. ok is false
// without a valid header: the pack is damaged and must not be changed.
func (r *reclaimer) header(off uint64) (h header, ok bool, err error) {
	at, ok := r.lay.find(off-backSize, backSize)
	if !ok {
		return h, false, nil
	}
	c := scanner{ctx: r.ctx, p: r.p, f: r.f, size: r.p.size.Load(), shift: at - (off - backSize), step: headerBytes}
	back, err := c.read(off-backSize, backSize)
	if err != nil || len(back) < backSize {
		return h, false, err
	}
	distance := uint64(binary.LittleEndian.Uint32(back))
	if distance < fixedSize || distance > off-fileHeaderSize {
		return h, false, nil
	}
	if _, ok := r.lay.find(off-distance, distance); !ok {
		return h, false, nil
	}
	h, ok, err = parseHeader(c.read, off-distance, c.size, r.p.salt)
	return h, ok && !h.skip && h.payload == off, err
}

// gap notes the parts of a dead range that are in the file and were not given
// back before.
func (r *reclaimer) gap(from, to uint64) error {
	if from >= to {
		return nil
	}
	for _, e := range r.lay.after(from, math.MaxUint64) {
		lo, hi := max(from, e.from), min(to, e.from+e.n)
		if lo >= hi {
			break
		}
		g := gap{Extent: Extent{lo, hi}}
		shift := e.at - e.from
		first, last := roundUp(lo+shift+fixedSize, largeAlign), (hi+shift)&^(largeAlign-1)
		if first < last && lo%smallAlign == 0 {
			g.inner = Extent{first, last}
			if done, err := r.punched(&g, shift); err != nil {
				return err
			} else if done {
				r.hollow = append(r.hollow, g)
				continue
			}
		}
		r.dead = append(r.dead, g)
	}
	return nil
}

// findFilled finds the gaps that were punched before and take space again: programs that copy files write zeros
// for holes. It looks only if the file has more blocks than its holes leave.
func (r *reclaimer) findFilled() error {
	fi, err := r.f.Stat()
	if err != nil || len(r.hollow) == 0 {
		return err
	}
	var holes uint64
	for _, g := range r.hollow {
		holes += g.inner.To - g.inner.From
	}
	if allocated(fi)+holes < uint64(fi.Size())+smallHole {
		return nil
	}
	for _, g := range r.hollow {
		to := g.inner.To
		if r.dry { // where the record behind begins is an estimate
			to -= min(to-g.inner.From, maxKeyBytes+largeAlign)
		}
		if g.again = hasData(r.f, g.inner.From, to); g.again {
			r.dead = append(r.dead, g)
		}
	}
	return nil
}

// punched reports whether a gap was punched before: it then begins with a skip
// that covers it.
func (r *reclaimer) punched(g *gap, shift uint64) (bool, error) {
	c := scanner{ctx: r.ctx, p: r.p, f: r.f, size: r.p.size.Load(), shift: shift, step: fixedSize}
	h, ok, err := parseHeader(c.read, g.From, c.size, r.p.salt)
	to := g.To
	if r.dry { // where the record behind begins is an estimate
		to -= min(to-g.From, largeAlign)
	}
	return ok && h.skip && h.next() >= to, err
}

// forbid keeps later reads away from the dead ranges.
func (r *reclaimer) forbid() {
	var gone []Extent
	if old := r.p.gone.Load(); old != nil {
		gone = append(gone, *old...)
	}
	for _, g := range r.dead {
		gone = append(gone, g.Extent)
	}
	slices.SortFunc(gone, func(a, b Extent) int { return cmp.Compare(a.From, b.From) })
	out := gone[:0]
	for _, e := range gone {
		if n := len(out); n > 0 && e.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, e.To)
		} else {
			out = append(out, e)
		}
	}
	r.p.gone.Store(&out)
}

// punch makes holes of whole blocks in gaps that have at least so many bytes of
// them, then covers each by a skip, so that a scan finds its way. The skips come
// after the holes are durable: a gap that begins with one is not looked at
// again. Gaps that were dealt with are taken off the list.
func (r *reclaimer) punch(least uint64) error {
	if !slices.ContainsFunc(r.dead, func(g gap) bool { return g.holds(least) }) {
		return nil
	}
	if err := r.s.files.drain(r.ctx, r.p); err != nil {
		return err
	}
	punch := r.s.o.punch
	if punch == nil {
		punch = punchHole
	}
	var done uint64
	for _, g := range r.dead {
		if !g.holds(least) {
			continue
		}
		if err := r.ctx.Err(); err != nil {
			return err
		}
		n := g.inner.To - g.inner.From
		if err := punch(r.f, int64(g.inner.From), int64(n)); err != nil {
			return err
		}
		done += n
	}
	if err := r.f.SyncData(); err != nil {
		return err
	}
	r.out.Punched = true
	r.out.Bytes += done
	r.out.Held -= done
	skip := make([]byte, fixedSize)
	for _, g := range r.dead {
		if !g.holds(least) {
			continue
		}
		at, ok := r.lay.find(g.From, fixedSize)
		if !ok {
			continue
		}
		clear(skip)
		putHeader(skip, &header{skip: true, at: g.From, length: g.To - g.From - fixedSize}, r.p.salt)
		if _, err := r.f.WriteAt(skip, int64(at)); err != nil {
			return err
		}
	}
	r.dead = slices.DeleteFunc(r.dead, func(g gap) bool { return g.holds(least) })
	return nil
}

// errHeldOpen is the error of a rewritten file that cannot take its place, because another
// program has the old one open.
var errHeldOpen = errors.New("the old file is open elsewhere")

// rewrite makes a new file of the live ranges and replaces the old one. Readers
// of the old file keep reading it.
func (r *reclaimer) rewrite() (err error) {
	fs, path := r.s.fs, r.s.path(r.p.id)
	extents, table, at := placeExtents(r.kept)
	tmp := path + rewriteSuffix
	f, err := fs.Create(tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	head := appendExtentHeader(nil, r.p.id, r.p.salt, table, at, r.p.size.Load())
	err = r.copyLive(f, head, extents, table, at)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		if err = r.s.replace(r.ctx, r.p, r.p.id, r.f, tmp); osfs.InUse(err) {
			err = fmt.Errorf("%w: %w", errHeldOpen, err)
		}
	}
	if err != nil {
		return errors.Join(err, removeIfThere(fs, tmp))
	}
	r.p.drop()
	return syncDir(fs, r.s.dir)
}

// copyLive writes a whole file, from the beginning to the end.
func (r *reclaimer) copyLive(f io.Writer, head []byte, extents []extent, table []byte, end uint64) error {
	buf := make([]byte, 1<<20)
	pos := uint64(0)
	write := func(b []byte) error {
		_, err := f.Write(b)
		pos += uint64(len(b))
		return err
	}
	pad := func(to uint64) error { return write(make([]byte, to-pos)) }
	if err := write(head); err != nil {
		return err
	}
	for _, e := range extents {
		if err := pad(e.at); err != nil {
			return err
		}
		for off := uint64(0); off < e.n; {
			if err := r.ctx.Err(); err != nil {
				return err
			}
			b, err := r.read(buf, e.from+off, e.n-off)
			if err == nil {
				err = write(b)
			}
			if err != nil {
				return err
			}
			off += uint64(len(b))
		}
	}
	if err := pad(end); err != nil {
		return err
	}
	return write(table)
}

// read reads up to n bytes of the old file at a logical offset. Ranges that an
// earlier rewrite left out read as zeros.
func (r *reclaimer) read(buf []byte, off, n uint64) ([]byte, error) {
	b := buf[:min(uint64(len(buf)), n)]
	after := r.lay.after(off, math.MaxUint64)
	if len(after) > 0 && off >= after[0].from {
		e := after[0]
		b = b[:min(uint64(len(b)), e.from+e.n-off)]
		_, err := readAt(r.f, b, off+e.at-e.from)
		return b, err
	}
	if len(after) > 0 {
		b = b[:min(uint64(len(b)), after[0].from-off)]
	}
	clear(b)
	return b, nil
}

// replace renames the file at tmp over the file of a pack. Where an open file cannot
// be replaced, it closes f, which is the pack's, and waits for reads that began before.
// p is nil if nothing reads the pack.
func (s *Store) replace(ctx context.Context, p *pack, id ID, f vfs.File, tmp string) error {
	rename := func() error { return s.fs.Rename(tmp, s.path(id)) }
	err := rename()
	if !osfs.InUse(err) {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if p == nil {
		return rename()
	}
	return s.files.alone(ctx, p, rename)
}

// closeFile closes a file that replace may have closed.
func closeFile(f vfs.File) error {
	if err := f.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

func removeIfThere(fs vfs.FS, path string) error {
	if _, err := fs.Stat(path); err != nil {
		return nil
	}
	return fs.Remove(path)
}
