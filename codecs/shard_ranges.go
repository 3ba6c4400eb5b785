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

// decodeRanges decodes the inner chunks in list into their places.
func (s *shardStage) decodeRanges(ctx context.Context, c *shardCall, src RangesSource, box Box, dst Dst) error {
	maxGap := gapOf(src)
	var runs rangeRuns
	err := join(c.list, maxGap, func(off, n int64, run []wanted) error {
		if len(run) == 1 && n > maxGap {
			if done, err := s.decodeInside(ctx, &c.parts, src, run[0], dst); done || err != nil {
				return err
			}
		}
		runs.add(off, n, run)
		return nil
	})
	if err != nil || len(runs.list) == 0 {
		return err
	}
	return runs.read(ctx, src, func(off int64, run []wanted, b []byte) error {
		own := shardCalls.Get().(*shardCall)
		defer own.put()
		own.parts.reset(s, box)
		return s.decodeRun(&own.parts, off, run, b, dst)
	})
}

// rangeRuns are runs of inner chunks that are read at a time.
type rangeRuns struct {
	list    [][]wanted
	extents []Extent
}

func (r *rangeRuns) add(off, n int64, run []wanted) {
	r.list, r.extents = append(r.list, run), append(r.extents, Extent{off, n})
}

// read calls fn with the bytes of each run, from several goroutines at a time.
func (r *rangeRuns) read(ctx context.Context, src RangesSource, fn func(off int64, run []wanted, b []byte) error) error {
	return src.ReadRanges(ctx, r.extents, func(i int, b []byte) error {
		return fn(r.extents[i].Off, r.list[i], b)
	})
}
