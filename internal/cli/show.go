package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/internal/report"
	"github.com/zarrdb/zarrdb/zarr"
)

const (
	// maxPrinted is the number of elements up to which all are printed.
	maxPrinted = 1000
	// edge is the number of elements shown at either end of a long dimension.
	edge = 3
	// maxShown bounds the elements shown of an array of many dimensions, maxRead
	// those read of a selection.
	maxShown = 100_000
	maxRead  = 16 << 20
)

// print shows the values as nested lists for people, the middle of long
// dimensions left out. Of a whole array no more is read than is shown.
func (r *reading) print(ctx context.Context, w io.Writer) error {
	total := product(r.shape)
	ends := make([]int64, len(r.shape)) // number shown along each dimension
	for d, n := range r.shape {
		if ends[d] = n; total > maxPrinted {
			ends[d] = min(n, 2*edge)
		}
	}
	read := *r
	if total > maxPrinted && r.whole {
		read.sel, read.shape = corners(r.shape, ends), ends
	}
	if product(ends) > maxShown || product(read.shape) > maxRead {
		return fmt.Errorf("read /%s: a result of shape %v is too large to print: use --select, or -o FILE", r.a.Path(), r.shape)
	}
	values, err := read.values(ctx)
	if err != nil {
		return err
	}
	text, err := nested(values, read.shape, ends, r.shape, "")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text+"\n")
	return err
}

// product multiplies lengths, up to the largest number that there is.
func product(shape []int64) int64 {
	total := int64(1)
	if slices.Contains(shape, 0) {
		return 0
	}
	for _, n := range shape {
		if total > math.MaxInt64/n {
			return math.MaxInt64
		}
		total *= n
	}
	return total
}

// corners selects the first and last elements along each dimension.
func corners(shape, ends []int64) zarr.Selection {
	var idx []zarr.Index
	for d, n := range shape {
		var list []int64
		for i := range ends[d] {
			list = append(list, place(i, ends[d], n))
		}
		idx = append(idx, zarr.List(list...))
	}
	return zarr.Orthogonal(idx...)
}

// place is where the i-th of some shown elements lies among n.
func place(i, shown, n int64) int64 {
	if i < (shown+1)/2 {
		return i
	}
	return n - shown + i
}

// values reads the selection; the result prints the element at an index.
func (r *reading) values(ctx context.Context) (func(i int64) (string, error), error) {
	t := r.typ()
	text := func(elem []byte) (string, error) {
		b, err := elementText(t, r.dec, nil, elem)
		return report.Escape(string(b), ""), err
	}
	if t.Variable() {
		v, err := r.a.ReadVar(ctx, r.sel)
		return func(i int64) (string, error) { return text(v.At(int(i))) }, err
	}
	b, err := r.bytes(ctx)
	size := int64(t.Size())
	return func(i int64) (string, error) { return text(b[i*size : (i+1)*size]) }, err
}

// nested prints values of the shape have as nested lists: ends of them along
// each dimension of an array of the shape full.
func nested(value func(int64) (string, error), have, ends, full []int64, indent string) (string, error) {
	if len(have) == 0 {
		return value(0)
	}
	step := product(have[1:])
	sep := ", "
	if len(have) > 1 {
		sep = ",\n" + strings.Repeat("\n", len(have)-2) + indent + " "
	}
	var parts []string
	for i := range ends[0] {
		if i == edge && ends[0] < full[0] {
			parts = append(parts, "...")
		}
		first := place(i, ends[0], have[0]) * step
		inner := func(k int64) (string, error) { return value(first + k) }
		text, err := nested(inner, have[1:], ends[1:], full[1:], indent+" ")
		if err != nil {
			return "", err
		}
		parts = append(parts, text)
	}
	return "[" + strings.Join(parts, sep) + "]", nil
}
