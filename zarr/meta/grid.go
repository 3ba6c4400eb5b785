package meta

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"
	"strconv"

	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
)

// MaxRank is the largest number of dimensions that an array may have.
const MaxRank = 32

// Grid divides an array into chunks. Implementations: regular and rectilinear,
// see [RegularGrid] and [RectilinearGrid]. A Grid does not change and is safe
// for concurrent use. Coordinates and dimensions passed to it must exist.
type Grid interface {
	// Rank is the number of dimensions.
	Rank() int
	// ChunkShape returns the encoded shape of the chunk at the given coordinates
	// (edge chunks of a regular grid are whole). dst is appended to.
	ChunkShape(dst []int, coords []int64) []int
	// Range returns the first chunk and one past the last that touch elements
	// lo to hi (exclusive, hi > lo) along dimension dim.
	Range(dim int, lo, hi int64) (first, end int64)
	// Start returns the first element along dim of the chunk with index i,
	// 2^63-1 if it is larger. The index behind the last chunk gives the end of the last chunk.
	Start(dim int, i int64) int64
	// Count returns the number of chunks along dim for an array that is n
	// elements long there.
	Count(dim int, n int64) int64
	// Regular returns the chunk shape if all chunks have the same, else nil.
	// It is not nil for an array without dimensions. It must not be changed.
	Regular() []int
}

var (
	_ Grid = regularGrid(nil)
	_ Grid = (*rectilinearGrid)(nil)
)

// regularGrid is the shape of every chunk.
type regularGrid []int

// RegularGrid returns the grid whose chunks all have the given shape, whose
// lengths are at least 1; otherwise it panics. The slice is copied.
func RegularGrid(shape []int) Grid {
	for _, n := range shape {
		if n < 1 {
			panic(fmt.Sprintf("zarr: chunk shape %v", shape))
		}
	}
	return append(regularGrid{}, shape...)
}

func (g regularGrid) Rank() int { return len(g) }

func (g regularGrid) ChunkShape(dst []int, _ []int64) []int { return append(dst, g...) }

func (g regularGrid) Range(dim int, lo, hi int64) (first, end int64) {
	n := int64(g[dim])
	return lo / n, (hi-1)/n + 1
}

func (g regularGrid) Start(dim int, i int64) int64 { return mulSat(i, int64(g[dim])) }

func (g regularGrid) Count(dim int, n int64) int64 {
	if n <= 0 {
		return 0
	}
	return (n-1)/int64(g[dim]) + 1
}

func (g regularGrid) Regular() []int { return g }

// mulSat multiplies two numbers that are not negative, up to 2^63-1.
func mulSat(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// rectilinearGrid has its own chunk lengths along each dimension.
// (zarr-extensions, chunk-grids/rectilinear.)
type rectilinearGrid struct {
	axes    []axis
	regular []int // Regular
}

// axis is one dimension of a rectilinear grid: chunks of one length without end,
// or runs of chunks of the same length. Runs are never expanded: a few bytes of
// metadata may describe 2^60 chunks.
type axis struct {
	step int64 // 0 if there are runs
	runs []run
	end  int64 // one past the last element that the runs cover
}

// run is count chunks of length elements each.
type run struct {
	length, count int64
	chunk, start  int64 // the first of them, and its first element
}

// Edges are the lengths of the chunks along one dimension of a rectilinear
// grid.
type Edges struct {
	// Step, if not 0, is the length of every chunk, without end.
	Step int64
	// Runs are lengths, each with how often it is repeated.
	Runs [][2]int64
}

// RectilinearGrid returns a grid with its own chunk lengths along each
// dimension. It fails if a length or a repetition is less than 1, a length
// does not fit an int, or their sum not an int64.
func RectilinearGrid(dims []Edges) (Grid, error) {
	g := &rectilinearGrid{axes: make([]axis, len(dims))}
	for d, e := range dims {
		a, err := newAxis(e)
		if err != nil {
			return nil, fmt.Errorf("dimension %d: %w", d, err)
		}
		g.axes[d] = a
	}
	g.regular = g.steps()
	return g, nil
}

// EdgesOf returns the lengths of the chunks, in elements, along a dimension of a regular or
// rectilinear grid. The caller owns the result. It panics if the grid has no such dimension.
func EdgesOf(g Grid, dim int) Edges {
	r, ok := g.(*rectilinearGrid)
	if !ok {
		return Edges{Step: int64(g.Regular()[dim])}
	}
	e := Edges{Step: r.axes[dim].step}
	for _, x := range r.axes[dim].runs {
		e.Runs = append(e.Runs, [2]int64{x.length, x.count})
	}
	return e
}

func newAxis(e Edges) (axis, error) {
	if e.Step != 0 {
		return axis{step: e.Step}, CheckLength(e.Step)
	}
	var a axis
	chunk := int64(0)
	for _, r := range e.Runs {
		length, count := r[0], r[1]
		if err := CheckLength(length); err != nil {
			return a, err
		}
		if count < 1 || count > (math.MaxInt64-a.end)/length {
			return a, fmt.Errorf("%d chunks of length %d", count, length)
		}
		if n := len(a.runs); n > 0 && a.runs[n-1].length == length {
			a.runs[n-1].count += count
		} else {
			a.runs = append(a.runs, run{length: length, count: count, chunk: chunk, start: a.end})
		}
		chunk += count
		a.end += length * count
	}
	return a, nil
}

// CheckLength returns an error if a chunk cannot be n elements long.
func CheckLength(n int64) error {
	if n < 1 || n > math.MaxInt {
		return fmt.Errorf("chunk length %d", n)
	}
	return nil
}

// steps returns the chunk shape if every dimension has one length without end.
func (g *rectilinearGrid) steps() []int {
	shape := make([]int, 0, len(g.axes))
	for _, a := range g.axes {
		if a.step == 0 {
			return nil
		}
		shape = append(shape, int(a.step))
	}
	return shape
}

func (g *rectilinearGrid) Rank() int      { return len(g.axes) }
func (g *rectilinearGrid) Regular() []int { return g.regular }

func (g *rectilinearGrid) ChunkShape(dst []int, coords []int64) []int {
	for d, i := range coords {
		a := &g.axes[d]
		n := a.step
		if n == 0 {
			n = a.runOf(i).length
		}
		dst = append(dst, int(n))
	}
	return dst
}

func (g *rectilinearGrid) Range(dim int, lo, hi int64) (first, end int64) {
	a := &g.axes[dim]
	return a.chunkAt(lo), a.chunkAt(hi-1) + 1
}

func (g *rectilinearGrid) Start(dim int, i int64) int64 {
	a := &g.axes[dim]
	if a.step != 0 {
		return mulSat(i, a.step)
	}
	if len(a.runs) == 0 {
		return 0
	}
	r := a.runOf(i)
	return min(r.start+mulSat(min(i-r.chunk, r.count), r.length), a.end)
}

func (g *rectilinearGrid) Count(dim int, n int64) int64 {
	if n <= 0 {
		return 0
	}
	return g.axes[dim].chunkAt(n-1) + 1
}

// runOf returns the run that holds chunk i, the last one for any beyond.
func (a *axis) runOf(i int64) *run {
	n := sort.Search(len(a.runs), func(k int) bool { return a.runs[k].chunk > i })
	return &a.runs[n-1]
}

// chunkAt returns the chunk that holds element e, the last one for any beyond.
func (a *axis) chunkAt(e int64) int64 {
	if a.step != 0 {
		return e / a.step
	}
	n := sort.Search(len(a.runs), func(k int) bool { return a.runs[k].start > e })
	if n == 0 {
		return 0
	}
	r := &a.runs[n-1]
	return r.chunk + min((e-r.start)/r.length, r.count-1)
}

// covers returns an error unless the chunks of g reach the end of shape.
func covers(g Grid, shape []int64) error {
	if g.Rank() != len(shape) {
		return fmt.Errorf("%d dimensions for a shape of %d", g.Rank(), len(shape))
	}
	r, ok := g.(*rectilinearGrid)
	if !ok {
		return nil
	}
	for d, n := range shape {
		if a := &r.axes[d]; a.step == 0 && a.end < n {
			return fmt.Errorf("chunks of dimension %d end at %d of %d", d, a.end, n)
		}
	}
	return nil
}

// sameGrid reports whether two grids cut arrays alike.
func sameGrid(a, b Grid) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if x, y := a.Regular(), b.Regular(); x != nil && y != nil {
		return slices.Equal(x, y)
	}
	return slices.Equal(appendGrid(nil, a), appendGrid(nil, b))
}

// appendGrid appends the v3 form of a grid.
func appendGrid(dst []byte, g Grid) []byte {
	r, ok := g.(*rectilinearGrid)
	if !ok {
		dst = append(dst, `{"name":"regular","configuration":{"chunk_shape":[`...)
		dst = jsontext.AppendInts(dst, g.Regular())
		return append(dst, "]}}"...)
	}
	dst = append(dst, `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[`...)
	for d, a := range r.axes {
		if d > 0 {
			dst = append(dst, ',')
		}
		if a.step != 0 {
			dst = strconv.AppendInt(dst, a.step, 10)
			continue
		}
		dst = append(dst, '[')
		for i, x := range a.runs {
			if i > 0 {
				dst = append(dst, ',')
			}
			if x.count == 1 {
				dst = strconv.AppendInt(dst, x.length, 10)
				continue
			}
			dst = fmt.Appendf(dst, "[%d,%d]", x.length, x.count)
		}
		dst = append(dst, ']')
	}
	return append(dst, "]}}"...)
}

// distinct calls fn with the shapes of chunks that together show every length
// of every dimension at least once, up to a bound. It stops at an error.
func distinct(g Grid, shape []int64, fn func(shape []int) error) error {
	r, ok := g.(*rectilinearGrid)
	if !ok {
		return fn(g.Regular())
	}
	for d := range r.axes {
		if a := &r.axes[d]; a.step == 0 && len(a.runs) == 0 {
			return nil // no chunks at all
		}
	}
	coords := make([]int64, len(shape))
	if err := fn(g.ChunkShape(nil, coords)); err != nil {
		return err
	}
	const most = 64
	for d := range r.axes {
		for _, x := range r.axes[d].runs[:min(len(r.axes[d].runs), most)] {
			coords[d] = x.chunk
			if x.start >= shape[d] {
				break
			}
			if err := fn(g.ChunkShape(nil, coords)); err != nil {
				return err
			}
		}
		coords[d] = 0
	}
	return nil
}

// String returns the v3 form of the grid.
func (g regularGrid) String() string { return string(appendGrid(nil, g)) }

// String returns the v3 form of the grid.
func (g *rectilinearGrid) String() string { return string(appendGrid(nil, g)) }
