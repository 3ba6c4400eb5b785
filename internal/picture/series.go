package picture

import (
	"context"
	"fmt"
	"math"

	"github.com/zarrdb/zarrdb/zarr"
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
// A row in more chunks than allowed is read at every n-th element.
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
	row.x.limit(chunkLength(a, row.x.Dim), math.MaxInt32)
	for most := r.Chunks; most > 0 && row.x.chunks() > most; {
		row.x.coarser()
	}
	return row, nil
}

// Len is the number of elements that are read, and Skip the number that each stands for.
func (row *Row) Len() int64  { return row.x.count() }
func (row *Row) Skip() int64 { return row.x.skip }

// Dim is the dimension of the row, -1 of one element.
func (row *Row) Dim() int { return row.x.Dim }

// Index is the index of the i-th element in the dimension.
func (row *Row) Index(i int64) int64 { return row.x.Index(i * row.x.skip) }

// bytes reads elements, decoded and in memory layout.
func (row *Row) bytes(ctx context.Context, lo, hi int64) ([]byte, error) {
	if row.x.Dim >= 0 {
		if row.at[row.x.Dim] = row.x.Part(lo, hi); row.x.skip > 1 {
			var list []int64
			for i := lo; i < hi; i++ {
				list = append(list, row.Index(i))
			}
			row.at[row.x.Dim] = zarr.List(list...)
		}
	}
	return row.side.read(ctx, zarr.Orthogonal(row.at...))
}

// Texts calls yield with the JSON of each of the elements lo to hi, less one.
func (row *Row) Texts(ctx context.Context, lo, hi int64, yield func(i int64, text []byte)) error {
	b, err := row.bytes(ctx, lo, hi)
	if err != nil {
		return err
	}
	t, b, err := partOf(row.side.t, b, row.r.Part)
	for i := lo; err == nil && i < hi; i++ {
		var text []byte
		if isTime(t) && row.side.dec != nil {
			text, err = row.side.dec.AppendText(nil, b[:t.Size()])
		} else {
			text, err = t.AppendJSON(nil, b[:t.Size()])
		}
		yield(i, text)
		b = b[t.Size():]
	}
	return err
}

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
	extremes := [2]float64{math.NaN(), math.NaN()}
	for lo := int64(0); lo < n; lo += PieceElements {
		hi := min(lo+PieceElements, n)
		b, err := row.bytes(ctx, lo, hi)
		if err != nil {
			return nil, err
		}
		_, b, _ = partOf(row.side.t, b, r.Part)
		values := AppendFloats(nil, w.Type, b)
		if half == 1 {
			w.Values = append(w.Values, values...)
			w.keepWords(b)
			continue
		}
		for i, v := range values {
			at := lo + int64(i)
			add(&extremes, v)
			if run := at / (2 * half); at == n-1 || at%(2*half) == 2*half-1 && run < runs-1 {
				w.Values = append(w.Values, extremes[0], extremes[1])
				extremes = [2]float64{math.NaN(), math.NaN()}
			}
		}
	}
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

// add puts a value into the least and the greatest of a run, which stand in their order.
func add(e *[2]float64, v float64) {
	switch {
	case v != v:
	case e[0] != e[0]:
		e[0], e[1] = v, v
	case v >= max(e[0], e[1]):
		*e = [2]float64{min(e[0], e[1]), v}
	case v <= min(e[0], e[1]):
		*e = [2]float64{max(e[0], e[1]), v}
	}
}
