package away

import (
	"context"
	"errors"
	"slices"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/txn/internal/bucket"
	"github.com/zarrdb/zarrdb/txn/internal/transfer"
)

// Payload is a payload that is wanted.
type Payload struct {
	At  pack.Address
	Sum digest.Sum
}

// FetchAll fetches payloads, which ascend. What cannot be had is found when they are compared.
func (a *Part) FetchAll(ctx context.Context, from *transfer.From, batch []Payload) (fetched int64, err error) {
	var ids []pack.ID
	need := map[pack.ID][]pack.Extent{}
	for _, p := range slices.Compact(slices.Clone(batch)) {
		if p.At.Length == 0 {
			continue
		}
		if need[p.At.Pack] == nil {
			ids = append(ids, p.At.Pack)
		}
		need[p.At.Pack] = append(need[p.At.Pack], pack.Extent{From: p.At.Offset, To: p.At.Offset + p.At.Length})
	}
	got := make([]int64, len(ids))
	err = gather.Each(ctx, 4, len(ids), func(ctx context.Context, i int) error {
		left, err := from.NotHere(ctx, ids[i], need[ids[i]])
		for len(left) > 0 && err == nil {
			n := 1 // some at a time, so that it ends soon if ctx does
			for n < min(len(left), 4096) && left[n].To-left[0].From < 256<<20 {
				n++
			}
			var came pack.Imported
			if came, err = a.carry(a.as(bucket.AskerOf(ctx)), ids[i], left[:n]); err == nil {
				err = ctx.Err()
			}
			got[i], left = got[i]+int64(came.Written), left[n:]
		}
		if err != nil && !errors.Is(err, kv.ErrCorrupt) {
			return a.Failed(ctx, "a part of the payloads", err)
		}
		return nil
	})
	for _, n := range got {
		fetched += n
	}
	return fetched, err
}
