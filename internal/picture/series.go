package picture

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Row is a row of elements that is read in pieces.
type Row struct {
	a    *zarr.Array
	r    Request
	x    line
	at   []zarr.Index
	side side
}

// NewRow describes the longest axis of a selection. Other axes are taken at their first index.
// A row of more elements, or in more chunks, than allowed is read at every n-th element; with
// Chunks less than 0 it is read whole.
func NewRow(a *zarr.Array, r Request) (*Row, error) {
	axes, at, err := a.Axes(r.Select)
	if err != nil {
		return nil, err
	}
	row := &Row{a: a, r: r, at: at, side: sideOf(a, r.Decoder), x: line{Axis: zarr.Axis{Dim: -1, Len: 1}}}
	if _, _, err := partOf(row.side.t, nil, r.Part); err != nil {
		return nil, fmt.Errorf("picture of /%s: %w", a.Path(), err)
	}
	for _, x := range axes {
		switch {
		case x.Len == 0:
			return nil, fmt.Errorf("picture of /%s: %w: nothing is selected", a.Path(), zarr.ErrSelection)
		case x.Dim < 0:
			continue
		case x.Len > row.x.Len || row.x.Dim < 0:
			row.x.Axis = x
		}
		at[x.Dim] = zarr.At(x.Index(0))
	}
	elements := cmp.Or(r.Elements, 1<<28)
	if r.Chunks < 0 {
		elements = math.MaxInt64
	}
	row.x.chunk, row.x.skip = chunkLength(a, row.x.Dim), 1
	if row.x.Len > elements { // each of some elements costs more time than each of all
		row.x.skip = (row.x.Len-1)/max(elements/8, 1) + 1
	}
	for most := r.Chunks; most > 0 && row.x.chunks() > most; {
		row.x.coarser()
	}
	return row, nil
}

// Len is the number of elements that are read, and Skip the number that each stands for.
func (row *Row) Len() int64  { return row.x.count() }
func (row *Row) Skip() int64 { return row.x.skip }

// Piece is how many elements take the memory of n numbers.
func (row *Row) Piece(n int64) int64 { return pieceOf(n, row.a.Type().Size()) }

// Dim is the dimension of the row, -1 of one element.
func (row *Row) Dim() int { return row.x.Dim }

// Index is the index of the i-th element in the dimension.
func (row *Row) Index(i int64) int64 { return row.x.Index(i * row.x.skip) }

// stored reads elements as they are stored.
func (row *Row) stored(ctx context.Context, lo, hi int64, buf []byte) ([]byte, error) {
	if row.x.Dim >= 0 {
		switch {
		case row.x.Step() != 0:
			row.at[row.x.Dim] = row.x.part(lo, hi)
		case row.x.skip == 1:
			row.at[row.x.Dim] = row.x.Part(lo, hi)
		default:
			var list []int64
			for i := lo; i < hi; i++ {
				list = append(list, row.Index(i))
			}
			row.at[row.x.Dim] = zarr.List(list...)
		}
	}
	return row.side.stored(ctx, zarr.Orthogonal(row.at...), buf)
}

// Texts calls yield with the JSON of each of the elements lo to hi, less one. Complex numbers are
// their magnitude.
func (row *Row) Texts(ctx context.Context, lo, hi int64, yield func(i int64, text []byte)) error {
	b, err := row.stored(ctx, lo, hi, nil)
	if err == nil {
		b, err = row.side.unpack(b)
	}
	if err != nil {
		return err
	}
	t, b, err := partOf(row.side.t, b, row.r.Part)
	for i := lo; err == nil && i < hi; i++ {
		var text []byte
		switch {
		case isTime(t) && row.side.dec != nil:
			text, err = row.side.dec.AppendText(nil, b[:t.Size()])
		case t.Kind() == dtype.Complex:
			text = strconv.AppendFloat(nil, AppendFloats(nil, t, b[:t.Size()])[0], 'g', -1, min(max(t.Bits()/2, 32), 64))
		default:
			text, err = t.AppendJSON(nil, b[:t.Size()])
		}
		yield(i, text)
		b = b[t.Size():]
	}
	return err
}

// rowBytes is how much of a row is read at once, if a chunk has so much of it.
const rowBytes = 16 << 20

// ReadRow reads a row for a drawing that is Width columns wide. If it has more than two elements
// for each, neighbours share a column: of each run of 2·Skip elements the window has the least
// and the greatest, in their order, so that no value that stands out disappears.
func ReadRow(ctx context.Context, a *zarr.Array, r Request) (*Window, error) {
	row, err := NewRow(a, r)
	if err != nil {
		return nil, err
	}
	n, half := row.Len(), int64(1)
	width := max(int64(r.Width), 1)
	if n > 2*width {
		half = (n-1)/(2*width) + 1
	}
	runs := max(n/(2*half), 1)
	w := &Window{Y: Line{Dim: -1, Len: 1, Skip: 1}, X: Line{Dim: row.x.Dim, Start: row.Index(0), Step: row.x.Step() * row.x.skip * half, Skip: half, Every: row.x.skip}, Chunks: row.x.chunks()}
	w.Type, _, _ = partOf(row.side.t, nil, r.Part)
	none := extreme{v: math.NaN()}
	extremes, sign := [2]extreme{none, none}, uint64(0)
	if w.Type.Kind() == dtype.Int {
		sign = 1 << 63
	}
	var all []uint64
	size, at := int64(a.Type().Size()), int64(-1)
	few := row.Piece(PieceElements)
	piece := max(few, min(row.x.chunk, rowBytes/max(size, 1))) // a chunk of many pieces may be decoded for each
	var stored []byte
	var values []float64
	for lo := int64(0); lo < n; lo += piece {
		if stored, err = row.stored(ctx, lo, min(lo+piece, n), stored); err != nil {
			return nil, err
		}
		for part := range slices.Chunk(stored, int(max(few*size, 1))) {
			b, err := row.side.unpack(part)
			if err != nil {
				return nil, err
			}
			_, b, _ = partOf(row.side.t, b, r.Part)
			var words []uint64
			values, words = AppendFloats(values[:0], w.Type, b), integerWords(w.Type, b)
			if half == 1 {
				w.Values, all = append(w.Values, values...), append(all, words...)
				continue
			}
			for i, v := range values {
				e := extreme{v: v}
				if words != nil {
					e.order = words[i] ^ sign
				}
				add(&extremes, e)
				at++
				if run := at / (2 * half); at == n-1 || at%(2*half) == 2*half-1 && run < runs-1 {
					w.Values = append(w.Values, extremes[0].v, extremes[1].v)
					if words != nil {
						all = append(all, extremes[0].order^sign, extremes[1].order^sign)
					}
					extremes = [2]extreme{none, none}
				}
			}
		}
	}
	w.keepWords(all)
	w.X.Len = len(w.Values)
	if row.x.Dim >= 0 && row.x.Step() == 0 {
		w.X.Step = 0
		for k := range int64(w.X.Len) {
			w.X.list = append(w.X.list, row.Index(min(k*half, n-1)))
		}
	}
	if row.x.Dim >= 0 {
		row.at[row.x.Dim] = zarr.At(row.Index(0))
	}
	w.Select = zarr.Orthogonal(row.at...)
	return w, w.setAt(row.at)
}

// extreme is the least or the greatest value of a run. Of 64-bit integers, of which several are one
// float64, order is the word, so that greater ones have a greater one.
type extreme struct {
	v     float64
	order uint64
}

func (e extreme) less(f extreme) bool { return e.v < f.v || e.v == f.v && e.order < f.order }

// add puts a value into the least and the greatest of a run, which stand in their order.
func add(e *[2]extreme, x extreme) {
	least, most := e[0], e[1]
	if most.less(least) {
		least, most = most, least
	}
	switch {
	case x.v != x.v:
	case least.v != least.v:
		e[0], e[1] = x, x
	case !x.less(most):
		e[0], e[1] = least, x
	case !least.less(x):
		e[0], e[1] = most, x
	}
}
