package collect

import (
	"context"
	"maps"
	"math"
	"sort"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// A growing pack is sealed to be reclaimed if this much of it is dead, and a
// tenth.
const (
	sealFrom  = 64 << 10
	sealShare = 10
)

// dropHoles forgets known holes that nothing names any more.
func (g *collector) dropHoles(context.Context) error {
	known, err := catalog.KnownHoles(g.Index)
	if err != nil || len(known) == 0 || g.o.DryRun {
		return err
	}
	live := map[pack.ID][]pack.Extent{}
	maps.DeleteFunc(known, func(a pack.Address, _ digest.Sum) bool {
		list, ok := live[a.Pack]
		if !ok {
			list, _ = g.marks.Live.Of(a.Pack, math.MaxUint64)
			live[a.Pack] = list
		}
		i := sort.Search(len(list), func(i int) bool { return list[i].To > a.Offset })
		return i == len(list) || list[i].From > a.Offset
	})
	return g.PutHoles(known)
}

// reclaim gives the space of payloads back that nothing names any more. The
// deletes are durable by now, and the checkpoint that is made before the first
// change does not reach them either.
func (g *collector) reclaim(ctx context.Context) error {
	p := progress{g: g, phase: "reclaim"}
	for _, info := range g.Packs.Infos() {
		if err := ctx.Err(); err != nil {
			return err
		}
		p.step(1)
		work := reclaimWork{id: info.ID, tail: g.floor(info.ID)}
		var alive uint64
		work.live, alive = g.marks.Live.Of(info.ID, work.tail)
		alive += info.Size - min(info.Size, work.tail)
		g.r.LiveBytes += int64(alive)
		if !info.Sealed && !g.seal(info, alive) {
			continue
		}
		out, err := g.Packs.Reclaimable(ctx, work.id, work.live, work.tail)
		if err != nil {
			return err
		}
		if out.Bytes == 0 && !out.Removed || out.Linked {
			g.hold(out)
			continue
		}
		if g.o.DryRun {
			g.count(out)
			continue
		}
		if !g.renewed {
			if err := g.Checkpoints.ForReclaim(); err != nil {
				return err
			}
			g.renewed = true
		}
		if err := g.reclaimPack(ctx, work); err != nil {
			return err
		}
	}
	return nil
}

// reclaimWork is a pack with the ranges that stay, and where all stays.
type reclaimWork struct {
	id   pack.ID
	live []pack.Extent
	tail uint64
}

// floor is where a pack's bytes begin that may be named by something which the
// collector has not seen: what was appended since it began, or since a session
// was opened that is still open.
func (g *collector) floor(id pack.ID) uint64 {
	floor := g.floors[0].End(id)
	for _, p := range g.floors[1:] {
		floor = min(floor, p.End(id))
	}
	return floor
}

// seal ends the growth of a pack with much in it that is dead, and reports
// whether it may be reclaimed.
func (g *collector) seal(info pack.Info, alive uint64) bool {
	dead := info.Size - min(alive, info.Size)
	switch {
	case dead < sealFrom || dead < info.Size/sealShare:
		if dead >= sealFrom {
			g.r.HeldBytes += int64(dead)
		}
	case g.o.DryRun:
		g.r.FreedBytes += int64(dead)
	default:
		if g.core.SealPack(info.ID) == nil {
			return true
		}
		g.r.HeldBytes += int64(dead)
	}
	return false
}

// reclaimPack gives the space of one pack back.
func (g *collector) reclaimPack(ctx context.Context, w reclaimWork) error {
	if err := g.Relied.Lock(ctx); err != nil {
		return err
	}
	defer g.Relied.Unlock()
	if len(w.live) > 0 {
		out, err := g.Packs.Reclaim(ctx, w.id, w.live, w.tail)
		g.count(out)
		return err
	}
	// The entry in the table goes before the file: a file without an entry is
	// found by the next collection, while an entry without a file would be
	// damage. No commit records the pack in between.
	if err := g.Ends.Lock(ctx); err != nil {
		return err
	}
	defer g.Ends.Unlock()
	if out, err := g.Packs.Reclaimable(ctx, w.id, nil, w.tail); err != nil || !out.Removed {
		return err
	}
	batch := g.Index.NewBatch()
	defer batch.Close()
	catalog.Packs.Delete(batch, w.id)
	if err := batch.Commit(true); err != nil {
		return err
	}
	out, err := g.Packs.Reclaim(ctx, w.id, nil, w.tail)
	g.count(out)
	return err
}

func (g *collector) count(out pack.Reclaimed) {
	r := g.r
	r.FreedBytes += int64(out.Bytes)
	r.HeldBytes += int64(out.Held)
	for n, is := range map[*int]bool{&r.Removed: out.Removed, &r.Punched: out.Punched, &r.Rewritten: out.Rewritten, &r.Linked: out.Linked, &r.Leased: out.Leased} {
		if is {
			*n++
		}
	}
}

// hold counts a pack that is left alone.
func (g *collector) hold(out pack.Reclaimed) {
	g.r.HeldBytes += int64(out.Held + out.Bytes)
	switch {
	case out.Bytes+out.Held == 0:
	case out.Linked:
		g.r.Linked++
	case out.Leased:
		g.r.Leased++
	}
}
