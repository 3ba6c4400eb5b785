package codecs

import "context"

// A shard on a server costs a request for each run of inner chunks. A source
// that reads several ranges at a time gets all of them in one call, and each run is
// decoded as it comes:
//
//	index ─▶ runs of inner chunks ─▶ RangesSource.ReadRanges ─┬▶ decode
//	                                                          ├▶ decode
//	                                                          └▶ decode

// rangesSource returns src if it reads several ranges at a time.
func rangesSource(src Source) RangesSource {
	if ranges, ok := src.(RangesSource); ok && ranges.ReadsRanges() {
		return ranges
	}
	return nil
}

// readRuns reads inner chunks and calls decode with the bytes of each run, which begin at
// off: from several goroutines at a time where the source reads several ranges at a time.
// inside is asked first for a large inner chunk that would be read alone.
func readRuns(ctx context.Context, src Source, list []wanted, inside func(wanted) (done bool, err error), decode func(off int64, run []wanted, b []byte) error) error {
	ranges := rangesSource(src)
	if len(list) == 1 {
		ranges = nil
	}
	maxGap := gapOf(src)
	var runs [][]wanted
	var extents []Extent
	err := join(list, maxGap, func(off, n int64, run []wanted) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(run) == 1 && n > maxGap {
			if done, err := inside(run[0]); done || err != nil {
				return err
			}
		}
		if ranges != nil {
			runs, extents = append(runs, run), append(extents, Extent{off, n})
			return nil
		}
		return src.ReadRange(ctx, off, n, func(b []byte) error { return decode(off, run, b) })
	})
	if err != nil || len(runs) == 0 {
		return err
	}
	return ranges.ReadRanges(ctx, extents, func(i int, b []byte) error { return decode(extents[i].Off, runs[i], b) })
}
