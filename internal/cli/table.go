package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/table"
	"github.com/zarrdb/zarrdb/serve/web"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

type tablesKey struct{}

// WithTables returns a context in which "zarrdb read -o" writes files of these formats.
func WithTables(ctx context.Context, f table.Formats) context.Context {
	return context.WithValue(ctx, tablesKey{}, f)
}

// tableFormats are the endings of files that hold tables.
var tableFormats = []string{".parquet", ".arrow"}

// tableForm returns the form of a file with a table.
func tableForm(ctx context.Context, ext string) (table.Format, error) {
	formats, _ := ctx.Value(tablesKey{}).(table.Formats)
	if f := formats[ext]; f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("-o FILE%s: this process writes no such files, the program zarrdb does (it has the database open only for a session): use .csv, or commit first: %w", ext, errors.ErrUnsupported)
}

// webTables are the forms of tables that a server sends.
func webTables(ctx context.Context) map[string]web.Table {
	types := map[string]string{".parquet": "application/vnd.apache.parquet", ".arrow": "application/vnd.apache.arrow.file"}
	formats, _ := ctx.Value(tablesKey{}).(table.Formats)
	out := map[string]web.Table{}
	for ext, format := range formats {
		out[strings.TrimPrefix(ext, ".")] = web.Table{Type: types[ext], Write: func(ctx context.Context, w io.Writer, a *zarr.Array, sel zarr.Selection, dec *cf.Decoder, beside cf.Opener) error {
			shape, err := a.Resolve(sel)
			if err != nil {
				return err
			}
			r := &reading{a: a, sel: sel, shape: shape, dec: dec, beside: beside}
			if err = r.table(ctx, w, format); errors.As(err, &usageError{}) {
				err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
			}
			return err
		}}
	}
	return out
}

// alsoRead opens further arrays of the same dimensions, for more columns of a table.
func (r *reading) alsoRead(cmd *cobra.Command, s *engine.Source, names []string, decode bool) error {
	for _, name := range names {
		n, err := s.Sibling(cmd.Context(), name)
		if err != nil {
			return err
		}
		a, ok := n.Array()
		switch {
		case !ok:
			return fmt.Errorf("read --also %s: it is a group, not an array", name)
		case !slices.Equal(a.Shape(), r.a.Shape()) || !slices.Equal(a.DimensionNames(), r.a.DimensionNames()):
			return fmt.Errorf("read --also %s: it has the shape %v of %q, and /%s has %v of %q: columns of one table have the same dimensions", name, a.Shape(), a.DimensionNames(), r.a.Path(), r.a.Shape(), r.a.DimensionNames())
		}
		other := &reading{a: a, shape: r.shape}
		if decode {
			if other.dec, err = cf.NewDecoderBeside(cmd.Context(), a, s.Sibling); err != nil {
				return fmt.Errorf("read /%s: %w", a.Path(), err)
			}
		}
		r.also = append(r.also, other)
	}
	return nil
}

// pieceRows is the most rows that are handed on at a time.
const pieceRows = 1 << 17

// table writes a row for each element, behind its coordinates.
func (r *reading) table(ctx context.Context, w io.Writer, format table.Format) error {
	axes, _, err := r.a.Axes(r.sel)
	if err != nil {
		return err
	}
	arrays := append([]*reading{r}, r.also...)
	var labels []*tableLabels
	var columns []table.Column
	row := int64(1) // elements for each index along the axis
	for k := len(axes) - 1; k >= 0; k-- {
		l := &tableLabels{axis: axes[k], each: row}
		row *= axes[k].Len
		if name := dimensionName(r.a, axes[k].Dim); name != arrayName(r.a) { // else it is its own label
			if err := l.read(ctx, r, name); err != nil {
				return err
			}
			labels = append(labels, l)
		}
	}
	slices.Reverse(labels)
	for _, l := range labels {
		columns = append(columns, l.column)
	}
	variable, widest := false, 1
	for _, a := range arrays {
		c := table.Column{Name: arrayName(a.a), Type: a.typ(), NaN: a.dec != nil, Units: textAttribute(a.a.Meta(), "units")}
		if k := c.Type.Kind(); k == dtype.Datetime || k == dtype.Timedelta {
			c.Units = ""
		}
		if err := table.Check(c.Type); err != nil {
			return fmt.Errorf("read /%s: %w", a.a.Path(), err)
		}
		columns = append(columns, c)
		variable, widest = variable || c.Type.Variable(), max(widest, a.a.Type().Size())
	}
	names := map[string]bool{}
	for _, c := range columns {
		if names[c.Name] {
			return usagef("read: two columns of the table would be called %s", c.Name)
		}
		names[c.Name] = true
	}
	out, err := format(w, columns)
	if err != nil {
		return err
	}
	r.slab = 32 << 20 / int64(len(arrays)) * int64(max(r.a.Type().Size(), 1)) / int64(widest)
	if variable { // their blocks are not cut
		r.slab = pieceRows / 8 * int64(max(r.a.Type().Size(), 1))
		if r.a.Type().Variable() {
			r.slab = 0
		}
	}
	n := int64(0)
	err = r.blocks(ctx, func(block *reading) error {
		values, err := readColumns(ctx, arrays, block)
		if err != nil {
			return err
		}
		total := product(block.shape)
		step := int64(pieceRows)
		if variable {
			step = max(total, 1)
		}
		for lo := int64(0); lo < total; lo += step {
			if err := ctx.Err(); err != nil {
				return err
			}
			hi := min(lo+step, total)
			var row []table.Values
			for _, l := range labels {
				row = append(row, l.values(n+lo, n+hi))
			}
			for i, a := range arrays {
				v, err := a.rows(values[i], lo, hi)
				if err != nil {
					return err
				}
				row = append(row, v)
			}
			if err := out.Write(int(hi-lo), row); err != nil {
				return fmt.Errorf("read /%s: %w", r.a.Path(), err)
			}
			r.report(n + hi)
		}
		n += total
		return nil
	})
	if err != nil {
		return err
	}
	return out.Close()
}

// readColumns reads a part of each array, as it is stored.
func readColumns(ctx context.Context, arrays []*reading, part *reading) (out []table.Values, err error) {
	for _, a := range arrays {
		var v table.Values
		if a.a.Type().Variable() {
			v.Variable, err = a.a.ReadVar(ctx, part.sel)
		} else {
			v.Fixed, err = (&reading{a: a.a, sel: part.sel, shape: part.shape}).bytes(ctx)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// rows returns elements of a column, decoded.
func (r *reading) rows(v table.Values, lo, hi int64) (table.Values, error) {
	if r.a.Type().Variable() {
		return v, nil
	}
	size := int64(r.a.Type().Size())
	b := v.Fixed[lo*size : hi*size]
	if r.dec != nil {
		var err error
		if b, err = r.dec.Append(nil, b); err != nil {
			return v, fmt.Errorf("read /%s: %w", r.a.Path(), err)
		}
	}
	return table.Values{Fixed: b}, r.inNumpy(b)
}

// tableLabels are a column with the coordinates along an axis.
type tableLabels struct {
	axis   zarr.Axis
	each   int64 // rows in which a label follows itself
	column table.Column
	elems  []byte  // of the whole dimension; nil for indices
	words  []int32 // of the whole dimension
}

// read reads the coordinate of an axis: decoded numbers, times and spans, or texts. Without
// one that fits, the column has indices.
func (l *tableLabels) read(ctx context.Context, r *reading, name string) error {
	l.column = table.Column{Name: name, Type: dtype.NewInt(64), Repeats: true}
	if l.axis.Dim < 0 || r.beside == nil {
		return nil
	}
	n, err := r.beside(ctx, name)
	if err != nil {
		return ctx.Err() // labels that cannot be read are no reason not to give values
	}
	labels, err := cf.ReadLabels(ctx, n)
	if err != nil || labels.Len() != r.a.Shape()[l.axis.Dim] {
		return ctx.Err()
	}
	a, _ := n.Array() // ReadLabels has looked
	c := &reading{a: a, shape: a.Shape()}
	if c.dec, err = cf.NewDecoder(a.Meta()); err != nil {
		return err
	}
	l.column.Units = textAttribute(a.Meta(), "units")
	if k := c.typ().Kind(); k == dtype.Datetime || k == dtype.Timedelta {
		l.column.Units = ""
	}
	switch k := c.typ().Kind(); {
	case k != dtype.String && k != dtype.FixedUTF32 && k != dtype.FixedBytes && table.Check(c.typ()) == nil:
		b, err := c.bytes(ctx)
		if err != nil {
			return err
		}
		if c.inNumpy(b) == nil {
			l.column.Type, l.column.NaN, l.elems = c.typ(), true, b
			return nil
		}
	}
	// Texts, and times of a calendar that tables do not have.
	numbers := map[string]int32{}
	l.column.Words, l.words = []string{}, make([]int32, 0, labels.Len())
	for i := range labels.Len() {
		text := labels.Text(i)
		k, ok := numbers[text]
		if !ok {
			k = int32(len(numbers))
			numbers[text] = k
			l.column.Words = append(l.column.Words, text)
		}
		l.words = append(l.words, k)
	}
	return nil
}

// values returns the labels of rows.
func (l *tableLabels) values(from, to int64) (v table.Values) {
	size := int64(l.column.Type.Size())
	for row := from; row < to; {
		run := min(l.each-row%l.each, to-row)
		i := l.axis.Index(row / l.each % l.axis.Len)
		row += run
		switch {
		case l.words != nil:
			v.Numbers = append(v.Numbers, slices.Repeat(l.words[i:i+1], int(run))...)
		case l.elems != nil:
			elem := l.elems[i*size : (i+1)*size]
			for range run {
				v.Fixed = append(v.Fixed, elem...)
			}
		default:
			for range run {
				v.Fixed = append(v.Fixed, byte(i), byte(i>>8), byte(i>>16), byte(i>>24), byte(i>>32), byte(i>>40), byte(i>>48), byte(i>>56))
			}
		}
	}
	return v
}

// arrayName is what the values of an array are called in a table.
func arrayName(a *zarr.Array) string {
	if name := a.Path()[strings.LastIndexByte(a.Path(), '/')+1:]; name != "" {
		return name
	}
	return "value"
}

// textAttribute is an attribute of an array that is text, "" without one.
func textAttribute(m *zarr.Meta, name string) string {
	raw, _ := m.Attributes.Get(name)
	return strings.TrimSpace(plainText(raw))
}
