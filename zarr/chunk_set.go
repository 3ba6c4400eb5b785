package zarr

import "sort"

// ChunkSet is the chunks that a selection of an array touches, stored or not, numbered in
// C order of the grid. It does no I/O and holds no list of them. It is safe for concurrent
// use.
type ChunkSet struct {
	a  *Array
	st *arrayState
	p  plan
}

// ChunkSet returns the chunks that sel touches.
func (a *Array) ChunkSet(sel Selection) (*ChunkSet, error) {
	c := &ChunkSet{a: a, st: a.st.Load()}
	if err := c.p.prepare(c.st, sel, false); err != nil {
		return nil, a.fail("select", err)
	}
	return c, nil
}

// Len returns how many chunks there are.
func (c *ChunkSet) Len() int64 { return c.p.chunks }

// At returns chunk i. It is the caller's.
func (c *ChunkSet) At(i int64) Chunk {
	coords := make([]int64, len(c.st.meta.Shape))
	c.p.coords(c.st, i, coords)
	return c.a.chunkAt(c.st, coords)
}

// Find returns the number of the chunk at coords. ok is false if the selection does not
// touch it, and for every chunk of a selection of points.
func (c *ChunkSet) Find(coords []int64) (i int64, ok bool) {
	if c.p.points != nil || len(coords) != len(c.p.axes) || c.p.chunks == 0 {
		return 0, false
	}
	for d := range c.p.axes {
		a := &c.p.axes[d]
		k, found := sort.Find(int(a.parts), func(k int) int { return int(max(-1, min(1, coords[d]-a.part(int64(k)).chunk))) })
		if !found {
			return 0, false
		}
		i = i*a.parts + int64(k)
	}
	return i, true
}

// Boxes calls fn for boxes that together are the chunks from, up to and without to, in
// order. Each is described by its first chunk, with the Shape of the whole box, and the
// number of chunks along each dimension. Chunks of a box that the selection skips lie
// between its edges.
func (c *ChunkSet) Boxes(from, to int64, fn func(box Chunk, counts []int64) bool) {
	for from < to {
		stride, count, dim := int64(1), int64(1), len(c.p.axes)
		if c.p.points == nil {
			for d := len(c.p.axes) - 1; d >= 0 && from%stride == 0 && stride <= to-from; d-- {
				parts := c.p.axes[d].parts
				dim, count = d, min((to-from)/stride, parts-from/stride%parts)
				if count < parts {
					break
				}
				if d > 0 {
					stride *= parts
				}
			}
		}
		counts := make([]int64, len(c.st.meta.Shape))
		size := int64(1)
		for d := range counts {
			switch counts[d] = 1; {
			case d == dim:
				counts[d] = count
			case d > dim:
				counts[d] = c.p.axes[d].parts
			}
			size *= counts[d]
		}
		box, last := c.At(from), c.At(from+size-1)
		for d := range box.Shape {
			box.Shape[d] = last.Start[d] + last.Shape[d] - box.Start[d]
		}
		if !fn(box, counts) {
			return
		}
		from += size
	}
}
