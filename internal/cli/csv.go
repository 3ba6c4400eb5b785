package cli

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// csv writes comma-separated values. Up to two dimensions are a grid, the first
// down and the second across; more, or on request, are one line per element with
// its coordinates. One dimension of structs is a table with a column per field.
func (r *reading) csv(ctx context.Context, w io.Writer) error {
	switch {
	case r.tidy || len(r.shape) > 2:
		return r.tidyCSV(ctx, w)
	case len(r.shape) < 2 && r.typ().Kind() == dtype.Struct:
		return r.fieldsCSV(ctx, w)
	}
	across := int64(1)
	if len(r.shape) == 2 {
		across = r.shape[1]
	}
	n := int64(0)
	return r.each(ctx, func(v []byte) error {
		sep := byte(',')
		if n++; n%across == 0 {
			sep = '\n'
		}
		field := csvField(v)
		if across == 1 && len(field) == 0 {
			field = []byte(emptyLine)
		}
		_, err := w.Write(append(field, sep))
		return err
	})
}

// fieldsCSV writes a header with the names of the fields and a line per struct.
func (r *reading) fieldsCSV(ctx context.Context, w io.Writer) error {
	t := r.typ()
	line := make([]string, len(t.Fields()))
	for i, f := range t.Fields() {
		line[i] = f.Name
	}
	if err := writeRow(w, line); err != nil {
		return err
	}
	return r.elements(ctx, func(_, elem []byte) ([]byte, error) { return elem, nil }, func(elem []byte) error {
		for i, f := range t.Fields() {
			text, err := elementText(f.Type, nil, nil, elem[f.Offset:][:f.Type.Size()])
			if err != nil {
				return err
			}
			line[i] = plainText(text)
		}
		return writeRow(w, line)
	})
}

// tidyCSV writes a header and a line per element: its label or index along each
// dimension, and its value.
func (r *reading) tidyCSV(ctx context.Context, w io.Writer) error {
	axes, _, err := r.a.Axes(r.sel)
	if err != nil {
		return err
	}
	labels := make([]*cf.Labels, len(axes))
	line := make([]string, len(axes)+1)
	for k, x := range axes {
		line[k] = dimensionName(r.a, x.Dim)
		if x.Dim < 0 || line[k] == arrayName(r.a) {
			continue // it would be its own label
		}
		// Labels that cannot be read are no reason not to give values.
		n, err := r.beside(ctx, line[k])
		if err != nil {
			continue
		}
		if l, err := cf.ReadLabels(ctx, n); err == nil && l.Len() == r.a.Shape()[x.Dim] {
			labels[k] = l
		}
	}
	line[len(axes)] = arrayName(r.a)
	if err := writeRow(w, line); err != nil {
		return err
	}
	at := make([]int64, len(axes))
	return r.each(ctx, func(v []byte) error {
		for k, x := range axes {
			i := x.Index(at[k])
			if line[k] = strconv.FormatInt(i, 10); labels[k] != nil {
				line[k] = labels[k].Text(i)
			}
		}
		line[len(axes)] = plainText(v)
		for k := len(at) - 1; k >= 0; k-- {
			if at[k]++; at[k] < r.shape[k] {
				break
			}
			at[k] = 0
		}
		return writeRow(w, line)
	})
}

// emptyLine is a line of one empty field, which readers would pass over otherwise.
// encoding/csv writes it as an empty line.
const emptyLine = `""`

func writeRow(w io.Writer, fields []string) error {
	var line []byte
	for i, f := range fields {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(line, quoted(f)...)
	}
	if len(line) == 0 {
		line = []byte(emptyLine)
	}
	_, err := w.Write(append(line, '\n'))
	return err
}

// csvField makes a field (RFC 4180) of a JSON value: the contents of a string,
// or the JSON text of other values.
func csvField(v []byte) []byte { return []byte(quoted(plainText(v))) }

// plainText returns the contents of a JSON string, or the text of other values.
func plainText(v []byte) string {
	text := string(v)
	if len(v) > 0 && v[0] == '"' && json.Unmarshal(v, &text) != nil {
		return string(v)
	}
	return text
}

func quoted(text string) string {
	if !strings.ContainsAny(text, "\",\r\n") {
		return text
	}
	return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
}
