package zarr

import (
	"cmp"
	"slices"
)

// plan is a region cut along the chunk grid: the chunks that it touches, and
// the place of each chunk's elements in the result. It holds no entry per chunk: the i-th
// chunk is computed when asked for, so that a plan costs the same for any
// number of chunks. Plans are pooled and their slices reused.
type plan struct {
	region
	axes []planAxis
	// chunks is the number of chunks touched, the product of axes[d].parts.
	chunks int64
	// straight means that every axis is a slice of step 1, in either direction,
	// and listed that an axis is a list. For points both are false.
	straight, listed bool
	groups           pointGroups
}

// planAxis is one dimension of a plan. Its selected elements are numbered in
// ascending order of place in the array (for lists: by order) and cut into
// parts, one per chunk index.
type planAxis struct {
	span
	cut   cutting
	chunk int64 // chunk length where all have the same
	first int64 // index of the first chunk, for cutChunks
	parts int64
	grid  Grid
	dim   int
	// order sorts list ascending: element order[k] of the list is the k-th.
	// nil if the list already is.
	order []int
	table []part
}

// cutting is how the i-th part of an axis is found.
type cutting uint8

const (
	cutChunks   cutting = iota // every chunk from the first on has a part
	cutElements                // every element is a part of its own: the step is longer than a chunk
	cutTable                   // looked up
)

// part is the wanted elements of an axis in one chunk index.
type part struct {
	chunk int64 // index of the chunk along the dimension
	k     int64 // number of the first wanted element on the axis
	n     int   // number of wanted elements
	from  int   // place of the first wanted element in the chunk
	span  int   // elements from the first to the last wanted one, both included
}

// cut prepares the plan for a resolved region on a grid; lens are the chunk
// lengths of a regular grid, else nil.
func (p *plan) cut(grid Grid, lens []int) {
	p.axes = p.axes[:0]
	p.chunks, p.straight, p.listed = 1, true, false
	if p.total == 0 {
		p.chunks = 0
		return
	}
	for d := range p.dims {
		if len(p.axes) < cap(p.axes) {
			p.axes = p.axes[:d+1]
		} else {
			p.axes = append(p.axes, planAxis{})
		}
		a := &p.axes[d]
		*a = planAxis{span: p.dims[d], grid: grid, dim: d, table: a.table[:0]}
		if lens != nil {
			a.chunk = int64(lens[d])
		}
		a.prepare()
		p.listed = p.listed || a.list != nil
		p.straight = p.straight && a.step == 1 && a.list == nil
		p.chunks *= a.parts // at most total: every part holds an element
	}
}

// prepare decides how the axis, of at least one element, is cut.
func (a *planAxis) prepare() {
	if a.list != nil {
		a.prepareList()
		return
	}
	last := a.start + (a.n-1)*a.step
	switch {
	case a.chunk > 0 && a.step <= a.chunk:
		a.cut = cutChunks
		a.first = a.start / a.chunk
		a.parts = last/a.chunk - a.first + 1
	case a.chunk > 0:
		a.cut = cutElements
		a.parts = a.n
	case a.step == 1:
		a.cut = cutChunks
		first, end := a.grid.Range(a.dim, a.start, last+1)
		a.first, a.parts = first, end-first
	default:
		a.cut = cutTable
		for k := int64(0); k < a.n; {
			e := a.start + k*a.step
			c, lo, hi := a.chunkOf(e)
			n := int64(1)
			if hi > e {
				n = min((hi-1-e)/a.step+1, a.n-k)
			}
			a.table = append(a.table, part{chunk: c, k: k, n: int(n), from: int(e - lo), span: int((n-1)*a.step + 1)})
			k += n
		}
		a.parts = int64(len(a.table))
	}
}

// prepareList sorts the list and cuts it into runs in one chunk. The order is
// stable, so that of repeated elements the last one written wins.
func (a *planAxis) prepareList() {
	a.cut = cutTable
	if !slices.IsSorted(a.list) {
		a.order = make([]int, len(a.list))
		for k := range a.order {
			a.order[k] = k
		}
		slices.SortStableFunc(a.order, func(x, y int) int { return cmp.Compare(a.list[x], a.list[y]) })
	}
	for k := 0; k < len(a.list); {
		e := a.element(k)
		c, lo, hi := a.chunkOf(e)
		end := k + 1
		for end < len(a.list) && (hi < 0 || a.element(end) < hi) {
			end++
		}
		a.table = append(a.table, part{chunk: c, k: int64(k), n: end - k, from: int(e - lo), span: int(a.element(end-1)-e) + 1})
		k = end
	}
	a.parts = int64(len(a.table))
}

// element is the k-th element of a list in ascending order.
func (a *planAxis) element(k int) int64 {
	if a.order != nil {
		k = a.order[k]
	}
	return a.list[k]
}

// place is where the k-th element goes along the result's axis.
func (a *planAxis) place(k int64) int64 {
	switch {
	case a.order != nil:
		return int64(a.order[k])
	case a.flip:
		return a.n - 1 - k
	}
	return k
}

// chunkOf returns the index of the chunk that holds element e, its first
// element and the one after its last; hi is negative if that is past 2^63.
func (a *planAxis) chunkOf(e int64) (c, lo, hi int64) {
	if a.chunk > 0 {
		c = e / a.chunk
		lo = c * a.chunk
		return c, lo, lo + a.chunk
	}
	c, _ = a.grid.Range(a.dim, e, e+1)
	lo = a.grid.Start(a.dim, c)
	return c, lo, a.grid.Start(a.dim, c+1)
}

// part returns the i-th part of the axis.
func (a *planAxis) part(i int64) part {
	switch a.cut {
	case cutElements:
		e := a.start + i*a.step
		c := e / a.chunk
		return part{chunk: c, k: i, n: 1, from: int(e - c*a.chunk), span: 1}
	case cutTable:
		return a.table[i]
	}
	c := a.first + i
	var lo int64
	if a.chunk > 0 {
		lo = c * a.chunk
	} else {
		lo = a.grid.Start(a.dim, c)
	}
	k := int64(0)
	if lo > a.start {
		k = (lo-a.start-1)/a.step + 1
	}
	end := a.n // one past the last wanted in this chunk
	if i < a.parts-1 {
		if a.chunk > 0 {
			end = (lo-a.start+a.chunk-1)/a.step + 1
		} else {
			end = a.grid.Start(a.dim, c+1) - a.start
		}
	}
	n := int(end - k)
	return part{chunk: c, k: k, n: n, from: int(a.start + k*a.step - lo), span: int(int64(n-1)*a.step + 1)}
}

// pointGroups sorts the points of a selection by chunk, or by inner chunk: the
// members of group g are points order[starts[g]:starts[g+1]].
type pointGroups struct {
	order  []int
	starts []int
}

// groupPoints fills the groups of a plan for a resolved point selection. lens
// are the lengths of the boxes by which points are grouped, nil for the chunks
// of grid.
func (p *plan) groupPoints(grid Grid, lens []int) {
	n := int(p.total)
	g := &p.groups
	g.order, g.starts = g.order[:0], g.starts[:0]
	for i := range n {
		g.order = append(g.order, i)
	}
	// One column of chunk indices per dimension, compared in order: a product
	// of grid sizes might not fit a number.
	columns := make([][]int64, len(p.points))
	for d, coords := range p.points {
		columns[d] = make([]int64, n)
		for i, e := range coords {
			columns[d][i] = chunkIndex(grid, lens, d, e)
		}
	}
	compare := func(x, y int) int {
		for _, col := range columns {
			if c := cmp.Compare(col[x], col[y]); c != 0 {
				return c
			}
		}
		return 0
	}
	if !slices.IsSortedFunc(g.order, compare) {
		slices.SortStableFunc(g.order, compare)
	}
	for i := range n {
		if i == 0 || compare(g.order[i-1], g.order[i]) != 0 {
			g.starts = append(g.starts, i)
		}
	}
	p.chunks = int64(len(g.starts))
	g.starts = append(g.starts, n)
}

// group returns the points of the i-th touched chunk.
func (g *pointGroups) group(i int64) []int { return g.order[g.starts[i]:g.starts[i+1]] }

// prepare resolves sel for an array and cuts it along its grid. fine groups
// points by inner chunk in shards, so that a chunk may come up several times.
func (p *plan) prepare(st *arrayState, sel Selection, fine bool) error {
	if err := p.resolve(sel, st.meta.Shape); err != nil {
		return err
	}
	if p.points != nil {
		p.straight, p.listed = false, false
		lens := st.lens
		if fine && st.form != nil && st.form.inner != nil {
			lens = st.form.inner
		}
		p.groupPoints(st.meta.Grid, lens)
		return nil
	}
	p.cut(st.meta.Grid, st.lens)
	return nil
}

// coords sets coords to the grid coordinates of the i-th chunk.
func (p *plan) coords(st *arrayState, i int64, coords []int64) {
	if p.points != nil {
		at := p.groups.group(i)[0]
		for d := range coords {
			coords[d] = chunkIndex(st.meta.Grid, st.lens, d, p.points[d][at])
		}
		return
	}
	for d := len(coords) - 1; d >= 0; d-- {
		a := &p.axes[d]
		coords[d] = a.part(i % a.parts).chunk
		i /= a.parts
	}
}

// chunkIndex returns the index of the chunk that holds element e along d.
func chunkIndex(grid Grid, lens []int, d int, e int64) int64 {
	if lens != nil {
		return e / int64(lens[d])
	}
	c, _ := grid.Range(d, e, e+1)
	return c
}
