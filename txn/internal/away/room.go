package away

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/txn/internal/collect"
)

// room keeps [Dir] below a limit: what was used least recently goes first, in ranges of packs. What was fetched before the database was
// opened counts as not used. A file that another process has mapped is not cut: it is removed as a whole, and the process keeps it.
type room struct {
	mu     sync.Mutex
	limit  int64 // 0: a tenth of the free disk, once it is known
	size   int64 // at most so much is on disk; -1 if that is not known
	coming int64 // of that, is on its way
	clock  uint64
	used   map[span]*use

	evicting ctxlock.Lock
}

// span is a part of a pack, by the offsets at which payloads begin.
type span struct {
	pack pack.ID
	at   uint64
}

type use struct {
	pack.Extent        // of payloads
	bytes       int64  // about so much is on disk
	last        uint64 // when it was used
}

const (
	// A range is a part of the limit, within bounds.
	rangeShare, leastRange, mostRange = 64, 64 << 10, 8 << 20
	// freeShare is the part of the free disk that the default limit takes.
	freeShare = 10
	diskBlock = 4 << 10
)

// OnDisk is at least what a range of records takes.
func OnDisk(e pack.Extent) int64 {
	n := int64(e.To - e.From)
	return n + n>>10 + 3*diskBlock // with headers and checksums
}

// rangeOf is the size of ranges below a limit.
func rangeOf(limit int64) uint64 { return uint64(min(max(limit/rangeShare, leastRange), mostRange)) }

// use notes that payloads are read, or that bytes of them are about to come.
func (a *Part) use(id pack.ID, e pack.Extent, bytes int64) {
	r := &a.kept
	r.mu.Lock()
	defer r.mu.Unlock()
	key := span{id, e.From / rangeOf(r.limit)}
	u := r.used[key]
	if u == nil {
		u = &use{Extent: e, bytes: max(OnDisk(e)-bytes, 0)}
		r.used[key] = u
	}
	u.From, u.To = min(u.From, e.From), max(u.To, e.To)
	u.bytes += bytes
	r.clock++
	u.last = r.clock
	if r.size >= 0 {
		r.size += bytes
	}
}

// Most returns the limit.
func (a *Part) Most() int64 {
	r := &a.kept
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit == 0 {
		r.limit = TenthOfDisk(a.dirOfRoom())
	}
	return r.limit
}

// dirOfRoom is where payloads come.
func (a *Part) dirOfRoom() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.temporary != "" {
		return a.temporary
	}
	return a.host.FS.PathJoin(a.host.Dir, Dir)
}

// TenthOfDisk is the limit if nothing else is said.
func TenthOfDisk(dir string) int64 {
	free, err := index.DiskFree(dir)
	if err != nil {
		return math.MaxInt64
	}
	return int64(min(free, math.MaxInt64)) / freeShare
}

// tight reports whether files of packs are not to be given to other processes, because they may have to be cut.
func (a *Part) tight() bool {
	most := a.Most()
	a.kept.mu.Lock()
	defer a.kept.mu.Unlock()
	return a.kept.size > most/2
}

// makeRoom makes room for ranges of a pack that are about to come. The caller calls came when the ranges have come. Wanted ranges begin where
// payloads do, and stay from now on. The caller notes others with use, when it knows their first payload: [pack.Store.Reclaim] frees nothing
// before a range that begins elsewhere.
func (a *Part) makeRoom(ctx context.Context, id pack.ID, need []pack.Extent, wanted bool) (came func(), err error) {
	var n int64
	for _, e := range need {
		n += OnDisk(e)
	}
	most := a.Most()
	r := &a.kept
	r.mu.Lock()
	fits := r.size >= 0 && r.size+n <= most
	r.mu.Unlock()
	if !fits {
		err = a.evict(ctx, most, n)
	}
	for _, e := range need {
		if wanted {
			a.use(id, e, OnDisk(e))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.coming += n
	if !wanted && r.size >= 0 {
		r.size += n
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.coming -= n
	}, err
}

// evict makes room for n bytes below a limit. If not all fits, it frees a tenth more, so that it need not begin again soon.
func (a *Part) evict(ctx context.Context, most, n int64) error {
	r := &a.kept
	if err := r.evicting.Lock(ctx); err != nil {
		return err
	}
	defer r.evicting.Unlock()
	packs, err := a.scratch()
	if err != nil {
		return err
	}
	for round := range evictRounds {
		var use collect.DiskUse
		use.Measure(a.host.FS, a.dirOfRoom())
		size := use.Total()
		goal := most - n
		if round > 0 {
			goal = max(most-most/10-n, 0)
		}
		r.mu.Lock()
		size += r.coming
		r.size = size
		if size <= goal || round > 0 && len(r.used) == 0 {
			r.mu.Unlock()
			return nil
		}
		least := r.victims(round, size-goal)
		r.mu.Unlock()
		for _, i := range packs.Infos() {
			if i.Missing || round > 0 && !least[i.ID] {
				continue
			}
			got, err := packs.Reclaim(ctx, i.ID, r.live(i.ID), math.MaxUint64)
			if err == nil && got.Leased { // by another process, which keeps the file
				err = packs.Remove(i.ID)
			}
			if err != nil && !errors.As(err, new(*pack.CorruptError)) {
				return err
			}
			if err != nil {
				if err := packs.Remove(i.ID); err != nil {
					return err
				}
			}
		}
		a.forget()
	}
	return nil // others keep the files, or fill them again
}

// evictRounds bounds how often one request looks for what to remove.
const evictRounds = 64

// victims forgets the ranges that were used least recently, of about so many bytes, and returns their packs. The first round
// forgets no range, so that payloads that were not used at all go first. The caller holds mu.
func (r *room) victims(round int, bytes int64) map[pack.ID]bool {
	type ranked struct {
		span
		*use
	}
	var all []ranked
	for key, u := range r.used {
		all = append(all, ranked{key, u})
	}
	slices.SortFunc(all, func(a, b ranked) int { return cmp.Compare(a.last, b.last) })
	out := map[pack.ID]bool{}
	for _, u := range all {
		if round == 0 || bytes <= 0 {
			break
		}
		bytes -= u.bytes
		out[u.pack] = true
		delete(r.used, u.span)
	}
	return out
}

// live returns the ranges of a pack that stay.
func (r *room) live(id pack.ID) (out []pack.Extent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, u := range r.used {
		if key.pack == id {
			out = append(out, u.Extent)
		}
	}
	slices.SortFunc(out, func(a, b pack.Extent) int { return cmp.Compare(a.From, b.From) })
	n := 0
	for _, e := range out {
		if n > 0 && e.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, e.To)
			continue
		}
		out[n] = e
		n++
	}
	return out[:n]
}

// SetLimit changes the limit of [Dir], also for later, and returns how much it freed.
func (a *Part) SetLimit(ctx context.Context, limit int64) (int64, error) {
	at := a.At
	at.Size = limit
	if err := at.write(a.host.FS, a.host.Dir); err != nil {
		return 0, fmt.Errorf("away size: %w", err)
	}
	r := &a.kept
	r.mu.Lock()
	r.limit = limit
	was := r.used
	r.used = make(map[span]*use, len(was))
	for key, u := range was {
		r.used[span{key.pack, u.From / rangeOf(limit)}] = u // of two in one range the other one counts as not used
	}
	r.mu.Unlock()
	var before, after collect.DiskUse
	before.Measure(a.host.FS, a.dirOfRoom())
	err := a.evict(ctx, limit, 0)
	after.Measure(a.host.FS, a.dirOfRoom())
	return max(before.Total()-after.Total(), 0), err
}
