package pack

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/kv"
)

// Sync makes every payload durable whose Append returned before the call. It
// returns the packs whose durable end is not yet known to be recorded, ordered
// by ID: they belong into the index batch that names the payloads, see also
// [Store.Recorded].
//
// An error says that some payload is not durable. With ErrFull it may become
// so in a later Sync. With ErrFailed it will not, and all later calls fail,
// see [Store.Resume].
func (s *Store) Sync(ctx context.Context) ([]Info, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	if s.o.ReadOnly {
		return nil, kv.ErrReadOnly
	}
	s.sync.Lock()
	defer s.sync.Unlock()
	dirty, err := s.dirty()
	if err != nil {
		return nil, err
	}
	// Files are synced side by side; there is rarely more than one.
	errs := make([]error, len(dirty))
	var next atomic.Int64
	work := func() {
		for i := next.Add(1); i <= int64(len(dirty)); i = next.Add(1) {
			errs[i-1] = dirty[i-1].sync()
		}
	}
	var wg sync.WaitGroup
	for range min(len(dirty), syncsAtOnce) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	return s.unrecorded(dirty, errs)
}

// syncsAtOnce bounds the files that are synced side by side: each takes a thread.
const syncsAtOnce = 16

// dirty returns the packs with bytes behind their durable end. Its cost grows with
// the packs that are not sealed, not with all packs.
func (s *Store) dirty() ([]*pack, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return nil, s.failed
	}
	if s.closed.Load() {
		return nil, kv.ErrClosed
	}
	s.unsealed = slices.DeleteFunc(s.unsealed, func(p *pack) bool { return !p.growing() })
	var dirty []*pack
	for _, p := range s.unsealed {
		p.mu.Lock()
		// An empty pack is ignored.
		if p.tail > fileHeaderSize && (p.tail > p.durable || p.full) {
			dirty = append(dirty, p)
		}
		p.mu.Unlock()
	}
	return dirty, nil
}

// sync makes all currently reserved bytes durable.
func (p *pack) sync() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	target, full := p.tail, p.full
	p.detach()
	for p.failure == nil {
		if g := p.waiting(target); g != nil {
			if err := p.write(g); err != nil {
				return err
			}
		} else if p.pending(target) {
			p.cond.Wait()
		} else {
			break
		}
	}
	if p.failure != nil {
		return p.failure
	}
	if p.f == nil && full {
		// Opened to go on growing, found too full before the first write.
		p.sealed = true
		return nil
	}
	end := target
	if p.short {
		fi, err := p.f.Stat()
		if err != nil {
			return p.fail("stat", err)
		}
		end = min(target, uint64(fi.Size()))
	}
	f, named := p.f, p.named
	p.mu.Unlock()
	err := f.SyncData()
	if err == nil && !named {
		err = syncDir(p.s.fs, p.s.dir)
	}
	p.mu.Lock()
	if err != nil {
		return p.fail("sync", err)
	}
	if p.failure != nil {
		return p.failure
	}
	p.named = true
	p.durable = end
	if full {
		// Nothing can have been reserved since.
		p.setTail(end)
		p.sealed = true
		return p.closeFile()
	}
	return nil
}

// waiting returns a filled segment below target that no goroutine writes. p.mu
// is held.
func (p *pack) waiting(target uint64) *segment {
	for _, g := range p.live {
		if g != p.seg && g.base < target && g.filling == 0 && !g.writing {
			return g
		}
	}
	return nil
}

// pending reports whether other segments are still being written below target. p.mu is held.
func (p *pack) pending(target uint64) bool {
	for _, g := range p.live {
		if g != p.seg && g.base < target {
			return true
		}
	}
	return slices.ContainsFunc(p.spans, func(from uint64) bool { return from < target })
}

// unrecorded adds synced packs to the infos for the index, even if other packs
// failed, and returns all infos.
func (s *Store) unrecorded(dirty []*pack, errs []error) ([]Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range dirty {
		if errs[i] == nil {
			s.changed[p.id] = struct{}{}
		}
	}
	for _, err := range append(errs, s.failed) {
		if err != nil {
			return nil, err
		}
	}
	var list []Info
	for id := range s.changed {
		if p := s.lookup(id); p != nil {
			list = append(list, p.info())
		}
	}
	slices.SortFunc(list, func(a, b Info) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return list, nil
}

// Flush writes a payload to its file without a sync, so that it is there after this
// process was killed, and can be read behind the recorded end of the pack.
func (s *Store) Flush(a Address) error {
	p := s.lookup(a.Pack)
	if p == nil || a.Length >= largeFrom {
		return nil // Append has written it
	}
	return p.flush(a.Offset + a.Length)
}

// flush writes the bytes in memory up to end to the file, without a sync.
func (p *pack) flush(end uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seg != nil && p.seg.base < end {
		p.detach()
	}
	for p.failure == nil && p.memFrom.Load() < end {
		if g := p.waiting(end); g != nil {
			if err := p.write(g); err != nil {
				return err
			}
		} else {
			p.cond.Wait()
		}
	}
	return p.lost(end)
}

// closeWriter ends writing, at Close. Bytes in memory are dropped.
func (p *pack) closeWriter() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full = true
	for p.busy.Load() > 0 || len(p.spans) > 0 || slices.ContainsFunc(p.live, func(g *segment) bool { return g.filling > 0 }) {
		p.cond.Wait()
	}
	for len(p.live) > 0 {
		p.removeLive(p.live[0])
	}
	p.seg = nil
	return p.closeFile()
}

// closeFile closes the file for writing and gives back blocks that were
// allocated ahead. p.mu is held.
func (p *pack) closeFile() error {
	f := p.f
	if f == nil {
		return nil
	}
	p.f = nil
	if p.allocated > 0 {
		trim(f)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close %v: %w", p.id, err)
	}
	return nil
}
