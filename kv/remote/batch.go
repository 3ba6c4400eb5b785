package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
)

// GetMany implements [kv.BatchReader]. Ranges of one key that lie close are read
// as one; requests run in parallel. If two answers have different versions of a
// key, the batch fails with kv.ErrChanged.
func (o *Objects) GetMany(ctx context.Context, reqs []kv.Request) ([][]byte, error) {
	b := batch{o: o, reqs: reqs, out: make([][]byte, len(reqs))}
	jobs := b.plan()
	if err := o.c.Each(ctx, len(jobs), func(ctx context.Context, i int) error {
		if err := b.run(ctx, jobs[i]); err != nil {
			return fmt.Errorf("get %q: %w", jobs[i].key, err)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return b.out, nil
}

// batch is one call of GetMany.
type batch struct {
	o    *Objects
	reqs []kv.Request
	out  [][]byte

	mu   sync.Mutex
	seen map[string]sighting
}

// sighting is the size and version of a key in its first answer.
type sighting struct {
	version Version
	missing bool
}

// job is one request to the server: the requests of the batch that it answers.
type job struct {
	key     string
	off, n  int64 // the range, if there are several members
	members []int // indices, ordered by offset
}

// plan makes jobs of requests. Only ranges with a beginning and a length are
// joined: the position of others depends on the size of the value.
func (b *batch) plan() []job {
	var jobs []job
	var spans []int
	for i, q := range b.reqs {
		if off, n, ok := q.Range.Bounds(); ok && off >= 0 && n > 0 {
			spans = append(spans, i)
		} else {
			jobs = append(jobs, job{key: q.Key, members: []int{i}})
		}
	}
	slices.SortStableFunc(spans, func(i, j int) int {
		a, _, _ := b.reqs[i].Range.Bounds()
		c, _, _ := b.reqs[j].Range.Bounds()
		return cmp.Or(cmp.Compare(b.reqs[i].Key, b.reqs[j].Key), cmp.Compare(a, c))
	})
	for _, i := range spans {
		off, n, _ := b.reqs[i].Range.Bounds()
		if k := len(jobs) - 1; k >= 0 && jobs[k].n > 0 && jobs[k].key == b.reqs[i].Key && b.joins(&jobs[k], off, n) {
			jobs[k].members = append(jobs[k].members, i)
			continue
		}
		jobs = append(jobs, job{key: b.reqs[i].Key, off: off, n: n, members: []int{i}})
	}
	return jobs
}

// joins extends j to a range that begins no earlier, unless the gap is too wide
// or the sum too long.
func (b *batch) joins(j *job, off, n int64) bool {
	end := j.off + j.n // no overflow: Bounds says that ranges end within int64
	if off > end && off-end > b.o.c.o.Gap {
		return false
	}
	longer := max(end, off+n) - j.off
	if longer > j.n && longer > b.o.c.o.MaxMerged {
		return false
	}
	j.n = longer
	return true
}

func (b *batch) run(ctx context.Context, j job) error {
	if len(j.members) == 1 {
		return b.single(ctx, j)
	}
	got, err := b.o.fetch(ctx, j.key, ask{off: j.off, n: j.n, size: -1, cut: true}, nil)
	if err == nil || errors.Is(err, kv.ErrNotFound) {
		if serr := b.saw(j.key, got.version, err != nil); serr != nil {
			return serr
		}
	}
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil
	case errors.Is(err, errNoSize):
		// The first range begins beyond the end, or the server is odd.
		for _, i := range j.members {
			if err := b.single(ctx, job{key: j.key, members: []int{i}}); err != nil {
				return err
			}
		}
		return nil
	case err != nil:
		return err
	}
	for _, i := range j.members {
		off, n, _ := b.reqs[i].Range.Bounds()
		if off -= j.off; off+n > int64(len(got.bytes)) {
			return fmt.Errorf("%w: %v of %d bytes", kv.ErrRange, b.reqs[i].Range, j.off+int64(len(got.bytes)))
		}
		b.out[i] = bytes.Clone(got.bytes[off : off+n]) // a copy without spare bytes, which the caller owns
	}
	return nil
}

// single answers a request that stands alone.
func (b *batch) single(ctx context.Context, j job) error {
	i := j.members[0]
	off, n, ok := b.reqs[i].Range.Bounds()
	if _, limited := b.reqs[i].Range.Limit(); limited || !ok || n == 0 {
		got, err := b.o.Get(ctx, j.key, b.reqs[i].Range)
		b.out[i] = got
		if errors.Is(err, kv.ErrNotFound) {
			return b.saw(j.key, "", true)
		}
		return err
	}
	got, err := b.o.fetch(ctx, j.key, ask{off: off, n: n, size: -1}, nil)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return b.saw(j.key, "", true)
	case errors.Is(err, errNoSize):
		b.out[i], err = b.o.getAtEnd(ctx, j.key, b.reqs[i].Range)
		return err
	case err != nil:
		return err
	}
	b.out[i] = got.bytes
	return b.saw(j.key, got.version, false)
}

// saw compares the size and version in an answer with those of earlier answers
// for the key.
func (b *batch) saw(key string, v Version, missing bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := sighting{v, missing}
	if b.seen == nil {
		b.seen = map[string]sighting{}
	}
	first, ok := b.seen[key]
	if !ok {
		b.seen[key] = now
	}
	if ok && first != now {
		return fmt.Errorf("%w while it was read in parts", kv.ErrChanged)
	}
	return nil
}
