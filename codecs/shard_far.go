package codecs

import "context"

// A shard on a server costs a request for each run of inner chunks. A source
// that reads several ranges at a time is told of all of them, and each run is
// decoded as it comes:
//
//	index ─▶ runs of inner chunks ─▶ RangesSource.ReadRanges ─┬▶ decode
//	                                                          ├▶ decode
//	                                                          └▶ decode

// farSource returns src if it reads several ranges at a time.
func farSource(src Source) RangesSource {
	if far, ok := src.(RangesSource); ok && far.ReadsRanges() {
		return far
	}
	return nil
}

// decodeFar decodes the inner chunks in list into their places.
func (s *shardStage) decodeFar(ctx context.Context, c *shardCall, src RangesSource, box Box, dst Dst) error {
	maxGap := gapOf(src)
	var runs farRuns
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

// farRuns are runs of inner chunks that are read at a time.
type farRuns struct {
	list    [][]wanted
	extents []Extent
}

func (r *farRuns) add(off, n int64, run []wanted) {
	r.list, r.extents = append(r.list, run), append(r.extents, Extent{off, n})
}

// read calls fn with the bytes of each run, from several goroutines at a time.
func (r *farRuns) read(ctx context.Context, src RangesSource, fn func(off int64, run []wanted, b []byte) error) error {
	return src.ReadRanges(ctx, r.extents, func(i int, b []byte) error {
		return fn(r.extents[i].Off, r.list[i], b)
	})
}
