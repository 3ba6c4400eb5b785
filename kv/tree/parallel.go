package tree

import (
	"bytes"
	"errors"
	"runtime"
	"sort"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/internal/together"
)

// Many splices of a level are made in parts, side by side. A part begins in a page
// of its own:
//
//	pages    |      |      |      |      |      |      |
//	splices    . .     .      .     . .    .      .
//	parts    [0            ]      [1           ] [2
//
// Regions do not depend on those before them, so the parts make the same pages
// as one pass over all of them, unless the last region of a part extends into
// pages of the next part. Then the region includes the splices there, and the
// result of the next part is dropped and made again from the end of the region.
// That is rare and costs one part. The pages of a part are stored only when its
// result is final, so that no page is stored that the map does not have.

const (
	// partSplices are enough for a part: they take longer than to wake a processor.
	partSplices = 32
	// partsPerWorker is more than one, so that all end at about the same time.
	partsPerWorker = 4
	maxWorkers     = 16
)

// spliceList is the splices of a level. Several goroutines may read it at
// different positions.
type spliceList struct {
	n    int
	lo   func(i int) []byte  // first key of splice i
	from func(i int) splices // from i on
}

// part is a pass over some of the splices of a level.
type part struct {
	pass
	from, to int
	taken    int // splices that the pass got
	made     heldPages
}

// heldPages are pages that are not stored yet.
type heldPages struct {
	names []Name
	raw   [][]byte
}

func (h *heldPages) add(name Name, raw []byte) {
	h.names, h.raw = append(h.names, name), append(h.raw, raw)
}

// errAlone says that a part would join an item to a page before, which may be one
// that it made, or the part before.
var errAlone = errors.New("tree: one item is left at the end of a level")

// runList makes the splices of a list.
func (p *pass) runList(list *spliceList) error {
	workers := min(runtime.GOMAXPROCS(0), maxWorkers)
	parts, err := p.cutList(list, min(list.n/partSplices, workers*partsPerWorker))
	if err != nil {
		return err
	}
	if len(parts) > 1 {
		err = p.runParts(list, parts, workers)
		if err == nil || !errors.Is(err, errAlone) {
			return err
		}
	}
	p.in = list.from(0)
	return p.run()
}

// cutList cuts a list into about n parts.
func (p *pass) cutList(list *spliceList, n int) ([]*part, error) {
	var parts []*part
	from := 0
	c := p.t.cursor(p.ctx, p.root, p.height)
	for k := 1; k < n && p.root.Height > p.height; k++ {
		to := max(k*list.n/n, from+1)
		if to >= list.n {
			break
		}
		if err := c.seek(list.lo(to - 1)); err != nil {
			return nil, err
		}
		if c.isLast() {
			break
		}
		last, err := c.key()
		if err != nil {
			return nil, err
		}
		to += sort.Search(list.n-to, func(i int) bool { return bytes.Compare(list.lo(to+i), last) > 0 })
		if to == list.n {
			break
		}
		parts = append(parts, p.newPart(list, from, to))
		from = to
	}
	return append(parts, p.newPart(list, from, list.n)), nil
}

func (p *pass) newPart(list *spliceList, from, to int) *part {
	q := &part{from: from, to: to}
	t := *p.t
	t.held = &q.made
	in := list.from(from)
	q.pass = pass{ctx: p.ctx, t: &t, root: p.root, height: p.height, keep: p.keep, in: func() (*splice, error) {
		s, err := in()
		if s != nil {
			q.taken++
		}
		return s, err
	}}
	if to < list.n {
		q.stop = list.lo(to)
	}
	return q
}

// end is the first splice that the part has not made.
func (q *part) end() int {
	if q.s != nil {
		return q.from + q.taken - 1
	}
	return q.from + q.taken
}

// runParts makes the parts and joins their results.
func (p *pass) runParts(list *spliceList, parts []*part, workers int) error {
	errs := make([]error, len(parts))
	var next atomic.Int64
	work := func() {
		for i := next.Add(1); i <= int64(len(parts)); i = next.Add(1) {
			errs[i-1] = parts[i-1].run()
		}
	}
	var wg together.Group
	defer wg.Wait()
	for range min(workers, len(parts)) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	done := 0
	counted := parts[:0]
	for _, q := range parts {
		if q.to <= done {
			continue
		}
		if q.from < done {
			q = p.newPart(list, done, q.to)
			if err := q.run(); err != nil {
				return err
			}
		}
		done = q.end()
		counted = append(counted, q)
	}
	for _, q := range counted {
		for i, name := range q.made.names {
			if err := p.t.store(p.ctx, name, q.made.raw[i]); err != nil {
				return err
			}
		}
		p.whole, p.top = q.whole, q.top
		p.out = append(p.out, q.out...)
	}
	return nil
}
