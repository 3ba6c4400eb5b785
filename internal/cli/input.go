package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/npy"
)

// values is the input of the write command: a .npy file, or lines with one JSON
// value each.
type values struct {
	file  *npy.File
	lines [][]byte
}

// readInput reads a file, or standard input for "-".
func readInput(cmd *cobra.Command, name string) (*values, error) {
	r := cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = f
	}
	v, err := parseInput(bufio.NewReader(r))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

func parseInput(r *bufio.Reader) (*values, error) {
	first, err := r.Peek(1)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if len(first) == 0 || !bytes.ContainsAny(first, "\"[{-0123456789tfn") {
		f, err := npy.Read(r, maxBytes)
		return &values{file: f}, err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxBytes))
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(bytes.TrimRight(text, "\r\n"), []byte{'\n'})
	return &values{lines: lines}, nil
}

// store writes the values into the part of an array that sel names.
func (v *values) store(ctx context.Context, a *zarr.Array, sel zarr.Selection, done func(engine.Progress)) error {
	shape, err := a.Resolve(sel)
	if err != nil {
		return err
	}
	data, err := v.elements(a.Type(), shape)
	if err != nil {
		return fmt.Errorf("write /%s: %w", a.Path(), err)
	}
	if !a.Type().Variable() {
		if v.scalar() {
			return eachLayer(ctx, a, sel, shape, slabBytes, done, func(layer zarr.Selection, _ int64) error {
				return a.FillBytes(ctx, layer, data)
			})
		}
		size := int64(a.Type().Size())
		return eachLayer(ctx, a, sel, shape, slabBytes, done, func(layer zarr.Selection, n int64) error {
			part := data[:n*size]
			data = data[n*size:]
			return a.WriteBytes(ctx, layer, part)
		})
	}
	elems, err := dtype.OpenVariable(data, v.count())
	if err != nil {
		return err
	}
	return eachLayer(ctx, a, sel, shape, slabBytes, done, func(zarr.Selection, int64) error {
		if v.scalar() {
			return a.FillBytes(ctx, sel, elems.At(0))
		}
		return a.WriteVar(ctx, sel, elems)
	})
}

// storeValue writes one value, given as JSON, to every element of sel.
func storeValue(ctx context.Context, a *zarr.Array, sel zarr.Selection, value json.RawMessage, done func(engine.Progress)) error {
	shape, err := a.Resolve(sel)
	if err != nil {
		return err
	}
	return eachLayer(ctx, a, sel, shape, slabBytes, done, func(layer zarr.Selection, _ int64) error {
		return a.WriteValue(ctx, layer, value)
	})
}

// layerChunks is the least number of chunks of a layer, so that all cores have
// work.
const layerChunks = 32

// eachLayer calls write with the parts of a selection in C order, each with the
// number of its elements, and done after each. Parts have about least bytes, and end
// where chunks do, so that no chunk is encoded twice. A selection that is no box is
// one part, and so are elements of varying length.
func eachLayer(ctx context.Context, a *zarr.Array, sel zarr.Selection, shape []int64, least int64, done func(engine.Progress), write func(layer zarr.Selection, n int64) error) error {
	total, size := product(shape), int64(max(a.Type().Size(), 1))
	axes, at, err := a.Axes(sel)
	axes = slices.DeleteFunc(axes, func(x zarr.Axis) bool { return x.Dim < 0 })
	chunk := a.Meta().Grid.Regular()
	if err != nil || len(axes) == 0 || total == 0 || total == math.MaxInt64 || chunk == nil || axes[0].Step() != 1 || a.Type().Variable() {
		if err := write(sel, total); err != nil {
			return err
		}
		done(engine.Progress{Keys: total, TotalKeys: total, Bytes: total * size})
		return nil
	}
	chunkElements := int64(1)
	for _, n := range chunk {
		chunkElements *= int64(n)
	}
	x := axes[0]
	row, first := total/x.Len, x.Index(0)
	thick := int64(chunk[x.Dim])
	rows := max(least/size, layerChunks*chunkElements) / row
	for lo := int64(0); lo < x.Len; {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := (first+lo+rows)/thick*thick - first // a chunk ends there
		if end <= lo {
			end += thick
		}
		end = min(end, x.Len)
		at[x.Dim] = x.Part(lo, end)
		if err := write(zarr.Orthogonal(at...), (end-lo)*row); err != nil {
			return err
		}
		lo = end
		done(engine.Progress{Keys: lo * row, TotalKeys: total, Bytes: lo * row * size})
	}
	return nil
}

// count is the number of values.
func (v *values) count() int {
	if v.file == nil {
		return len(v.lines)
	}
	return len(v.file.Data) / v.file.Type.Size()
}

// scalar reports whether the values are an array of no dimensions, which is
// written everywhere.
func (v *values) scalar() bool { return v.file != nil && len(v.file.Shape) == 0 }

// elements returns the values as elements of a type, as many as fit a shape or a
// scalar.
func (v *values) elements(t dtype.Type, shape []int64) ([]byte, error) {
	if v.file == nil {
		return v.parsed(t, product(shape))
	}
	f := v.file
	var convert func(dst, elem []byte) []byte
	switch {
	case t.Kind() == dtype.String && f.Type.Kind() == dtype.FixedUTF32:
		convert = appendText
	case t.Kind() == dtype.Bytes && f.Type.Kind() == dtype.FixedBytes:
		convert = func(dst, elem []byte) []byte { return append(dst, bytes.TrimRight(elem, "\x00")...) }
	default:
		have, _ := f.Type.NumPy()
		if want, ok := t.NumPy(); !ok || have != want {
			return nil, fmt.Errorf("the array holds %v, the file %v", t, f.Type)
		}
	}
	if !v.scalar() && !slices.Equal(shape, f.Shape) {
		return nil, fmt.Errorf("the selection has shape %v, the file %v", shape, f.Shape)
	}
	if convert == nil {
		return f.Data, nil
	}
	return variable(f, v.count(), convert)
}

// variable makes elements of varying length of those of a file.
func variable(f *npy.File, n int, convert func(dst, elem []byte) []byte) ([]byte, error) {
	b, err := dtype.NewBuilder(nil, n)
	if err != nil {
		return nil, err
	}
	var elem []byte
	for p, size := f.Data, f.Type.Size(); len(p) > 0; p = p[size:] {
		elem = convert(elem[:0], p[:size])
		if err := b.Append(elem); err != nil {
			return nil, err
		}
	}
	return b.Finish()
}

// appendText appends an element of a fixed number of code points as UTF-8.
func appendText(dst, elem []byte) []byte {
	for elem = bytes.TrimRight(elem, "\x00"); len(elem) > 0; elem = elem[min(4, len(elem)):] {
		var c [4]byte
		copy(c[:], elem)
		dst = utf8.AppendRune(dst, rune(uint32(c[0])|uint32(c[1])<<8|uint32(c[2])<<16|uint32(c[3])<<24))
	}
	return dst
}

// parsed makes n elements of the lines.
func (v *values) parsed(t dtype.Type, n int64) ([]byte, error) {
	if int64(len(v.lines)) != n {
		return nil, fmt.Errorf("the selection has %d elements, the input %d lines", n, len(v.lines))
	}
	build, err := dtype.NewBuilder(nil, 0)
	if t.Variable() {
		build, err = dtype.NewBuilder(nil, len(v.lines))
	}
	if err != nil {
		return nil, err
	}
	var data, elem []byte
	for i, line := range v.lines {
		switch {
		case !t.Variable():
			data, err = t.ParseJSON(data, line)
		default:
			if elem, err = t.ParseJSON(elem[:0], line); err == nil {
				err = build.Append(elem)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if t.Variable() {
		return build.Finish()
	}
	return data, nil
}
