package pack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
)

// Append stores payload and returns its address. payload is the caller's again
// when Append returns. The address can be read at once, and is durable after
// the next Sync. Zero length is a value.
//
// Errors are ErrFull and ErrTooLarge, which leave the store as it was, and
// ErrFailed, see [Store.Resume].
func (s *Store) Append(ctx context.Context, owner Owner, payload []byte) (Address, error) {
	if err := s.check(ctx); err != nil {
		return Address{}, err
	}
	switch {
	case s.o.ReadOnly:
		return Address{}, kv.ErrReadOnly
	case len(owner.Key) > maxKeyBytes:
		return Address{}, fmt.Errorf("%w: key of %d bytes", errTooLarge, len(owner.Key))
	case uint64(len(payload)) > MaxPayloadBytes:
		return Address{}, fmt.Errorf("%w: payload of %d bytes", errTooLarge, len(payload))
	}
	for {
		p, err := s.pick(len(payload) >= largeFrom)
		if err != nil {
			return Address{}, err
		}
		a, err := p.append(owner, payload)
		if err == errRolled {
			s.retire(p)
			continue
		}
		if err != nil {
			return Address{}, err
		}
		return a, nil
	}
}

// errRolled means that a pack is sealed.
var errRolled = errors.New("pack: takes no more")

// pick chooses a growing pack: the first that is not busy with the file, so
// that a lone writer uses one pack.
func (s *Store) pick(large bool) (*pack, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return nil, s.failed
	}
	if s.closed.Load() {
		return nil, kv.ErrClosed
	}
	if len(s.active) > 0 && !large {
		return s.active[0], nil
	}
	var best *pack
	for _, p := range s.active {
		if p.busy.Load() == 0 {
			return p, nil
		}
		if best == nil || p.busy.Load() < best.busy.Load() {
			best = p
		}
	}
	if best != nil && len(s.active) >= s.o.Writers {
		return best, nil
	}
	return s.create()
}

// create makes a new pack. Its file is made by its first write. s.mu is held.
func (s *Store) create() (*pack, error) {
	id := newID(s.o.Incarnation, s.counter)
	if s.counter == math.MaxUint64 {
		return nil, fmt.Errorf("%w: no pack numbers are left", ErrFull)
	}
	s.counter++
	p := newPack(s, id, 0)
	p.sealed, p.limit = false, s.packLimit()
	p.mu.Lock()
	p.seg = newSegment(0, segmentBytes)
	p.seg.buf = appendFileHeader(p.seg.buf, id)
	p.live = append(p.live, p.seg)
	p.setTail(fileHeaderSize)
	p.setMemFrom()
	p.mu.Unlock()
	s.setPack(id, p)
	s.active, s.unsealed = append(s.active, p), append(s.unsealed, p)
	return p, nil
}

// retire takes a pack that is full out of the growing ones.
func (s *Store) retire(p *pack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = slices.DeleteFunc(s.active, func(q *pack) bool { return q == p })
}

// open opens the file for writing. p.mu is held.
func (p *pack) open() error {
	if p.f != nil {
		return nil
	}
	f, err := p.s.fs.OpenReadWrite(p.s.path(p.id), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	p.f = f
	p.behind = p.tail
	return nil
}

// append stores one record, or returns errRolled.
func (p *pack) append(owner Owner, payload []byte) (Address, error) {
	p.mu.Lock()
	if err := p.reserveCheck(len(owner.Key), uint64(len(payload))); err != nil {
		p.mu.Unlock()
		return Address{}, err
	}
	h := header{at: roundUp(p.tail, smallAlign), length: uint64(len(payload)), owner: owner}
	h.payload = place(h.at, len(owner.Key), h.length)
	a := Address{Pack: p.id, Offset: h.payload, Length: h.length}
	if len(payload) < largeFrom {
		return a, p.appendSmall(&h, payload)
	}
	return a, p.appendLarge(&h, payload)
}

// reserveCheck finds out whether a record may be reserved at the tail. p.mu is
// held. It may be released meanwhile, but not after the last look.
func (p *pack) reserveCheck(keyLen int, n uint64) error {
	if p.failure != nil {
		return p.failure
	}
	if p.full || p.sealed {
		return errRolled
	}
	at := roundUp(p.tail, smallAlign)
	end := place(at, keyLen, n) + n
	if end > p.limit && p.tail > fileHeaderSize {
		p.full = true
		return errRolled
	}
	// Segments that a full disk kept in memory go first: they bound it.
	for _, g := range p.live {
		if g != p.seg && !g.writing && g.filling == 0 {
			if err := p.write(g); err != nil {
				return err
			}
			return p.reserveCheck(keyLen, n)
		}
	}
	if err := p.open(); err != nil {
		// Nothing was appended since the file was last sound.
		if isFull(err) {
			return p.writeError("create", err)
		}
		return fmt.Errorf("pack: create %v: %w", p.id, err)
	}
	return p.allocate(end)
}

// appendSmall puts a record into the buffer. p.mu is held and released.
func (p *pack) appendSmall(h *header, payload []byte) error {
	end := h.payload + h.length
	var old *segment
	if p.seg == nil || !p.seg.room(end) {
		old = p.detach()
		p.attach(newSegment(p.tail, int(end-p.tail)))
	}
	g := p.seg
	b := g.grow(h.at, end)
	g.begin()
	p.setTail(end)
	p.mu.Unlock()

	split := h.payload - h.at
	putHeader(b[:split], h, p.salt)
	putSums(b[:split], payload, h.payload, p.salt)
	copy(b[split:], payload)

	p.mu.Lock()
	defer p.mu.Unlock()
	g.done()
	p.cond.Broadcast()
	if old != nil {
		if err := p.writeLater(old); err != nil {
			return err
		}
	}
	return p.lost(end)
}

// appendLarge puts the header into the buffer and the payload into the file.
// p.mu is held and released.
func (p *pack) appendLarge(h *header, payload []byte) error {
	end := h.payload + h.length
	var old *segment
	if p.seg == nil || !p.seg.room(h.payload) {
		old = p.detach()
		p.attach(newSegment(p.tail, int(h.payload-p.tail)))
	}
	g := p.detach()
	b := g.grow(h.at, h.payload)
	g.begin()
	p.setTail(end)
	p.spans = append(p.spans, h.payload)
	p.busy.Add(1)
	f := p.f
	p.mu.Unlock()

	putHeader(b, h, p.salt)
	putSums(b, payload, h.payload, p.salt)
	_, err := f.WriteAt(payload, int64(h.payload))
	if err == nil {
		p.writeBehind(f, h.at, end)
	}
	if isFull(err) {
		// A scanner of the file can skip the hole.
		clear(b)
		skip := header{skip: true, at: h.at, length: end - h.at - fixedSize}
		putHeader(b[:fixedSize], &skip, p.salt)
	}

	p.busy.Add(-1)
	p.mu.Lock()
	defer p.mu.Unlock()
	g.done()
	i := slices.Index(p.spans, h.payload)
	p.spans = slices.Delete(p.spans, i, i+1)
	p.cond.Broadcast()
	if err != nil {
		err = p.writeError("write", err)
		if errors.Is(err, ErrFull) {
			p.full, p.short = true, true
			_ = p.writeLater(g)
		}
		return err
	}
	if old != nil {
		if err := p.writeLater(old); err != nil {
			return err
		}
	}
	if err := p.writeLater(g); err != nil {
		return err
	}
	return p.lost(end)
}

// lost reports whether a failure took the bytes before end. p.mu is held.
func (p *pack) lost(end uint64) error {
	if p.failure != nil && end > p.durable {
		return p.failure
	}
	return nil
}

// attach makes g the buffer in use. p.mu is held.
func (p *pack) attach(g *segment) {
	p.seg = g
	p.live = append(p.live, g)
	p.setMemFrom()
}

// detach ends the use of the buffer, if there is one. p.mu is held.
func (p *pack) detach() *segment {
	g := p.seg
	p.seg = nil
	return g
}

// writeLater waits until g is filled and writes it, unless another goroutine
// does. p.mu is held, and released meanwhile.
func (p *pack) writeLater(g *segment) error {
	for p.failure == nil && slices.Contains(p.live, g) {
		if g.filling == 0 && !g.writing {
			return p.write(g)
		}
		p.cond.Wait()
	}
	if p.failure != nil && g.end() > p.durable {
		return p.failure
	}
	return nil
}

// write writes a filled segment. After a full disk it stays in memory. The
// caller holds p.mu; write releases it meanwhile.
func (p *pack) write(g *segment) error {
	g.writing = true
	g.refs.Add(1) // a failure may drop it meanwhile
	defer g.unref()
	f := p.f
	p.busy.Add(1)
	p.mu.Unlock()
	_, err := f.WriteAt(g.buf, int64(g.base))
	if err == nil {
		p.writeBehind(f, g.end(), g.end())
	}
	p.mu.Lock()
	p.busy.Add(-1)
	g.writing = false
	p.cond.Broadcast()
	if err != nil {
		return p.writeError("write", err)
	}
	p.removeLive(g)
	return nil
}

// writeError turns an error of a write into ErrFull or the failure. The caller
// holds p.mu, which fail releases meanwhile.
func (p *pack) writeError(op string, err error) error {
	if isFull(err) {
		return fmt.Errorf("%w: %s %v: %w", ErrFull, op, p.id, err)
	}
	return p.fail(op, err)
}

// fail marks the pack and the store failed. The caller holds p.mu; fail
// releases it while it marks the store.
func (p *pack) fail(op string, err error) error {
	if p.failure == nil {
		p.failure = &FailedError{Pack: p.id, End: p.durable, Op: op, Err: err}
		p.full = true
		p.alive.Store(false)
		for len(p.live) > 0 {
			p.removeLive(p.live[0])
		}
		p.seg = nil
		p.cond.Broadcast()
	}
	failure := p.failure
	p.mu.Unlock()
	p.s.fail(failure)
	p.mu.Lock()
	return failure
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// Steps of allocation: the current size, within these bounds and the bound of
// the pack.
const (
	minAllocate = 1 << 20
	maxAllocate = 64 << 20
)

// allocate reserves blocks of the file up to end, if the file system supports
// it, so that a full disk is noticed before a payload is acknowledged. p.mu is
// held.
func (p *pack) allocate(end uint64) error {
	if p.allocated == math.MaxUint64 || end <= p.allocated {
		return nil
	}
	from := max(p.allocated, p.tail&^(largeAlign-1))
	step := min(max(p.tail, minAllocate), maxAllocate)
	for _, to := range []uint64{max(end, min(end+step, p.limit)), end} {
		err := p.f.Preallocate(int64(from), int64(to-from))
		switch {
		case err == nil:
			p.allocated = to
			return nil
		case !isFull(err):
			// Not every file system supports it. Then the write returns the
			// error.
			p.allocated = math.MaxUint64
			return nil
		case to == end:
			return fmt.Errorf("%w: allocate %v: %w", ErrFull, p.id, err)
		}
	}
	return nil
}

// behindBytes is the number of bytes after which the kernel is asked to start
// writing to disk, so that Sync has little left to do.
const behindBytes = 8 << 20

// writeBehind notes that the file was written up to about end. The next call begins at next,
// where the header of a payload is still to be written. The kernel may wait for the disk: so
// p.mu is not held, and the pack is busy.
func (p *pack) writeBehind(f vfs.File, next, end uint64) {
	p.mu.Lock()
	from := p.behind
	due := end >= from+behindBytes
	if due {
		p.behind = next
	}
	p.mu.Unlock()
	if due {
		startWriting(f, int64(from), int64(end-from))
	}
}
