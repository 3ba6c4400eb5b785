package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
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
	data, err := v.elements(a.Meta(), shape)
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
	if _, err := a.Type().ParseJSON(nil, value); err != nil {
		n, ok := countOf(a.Meta(), value)
		if ok {
			value = n
		} else if quoted, _ := json.Marshal(string(value)); !json.Valid(value) {
			_, ok = countOf(a.Meta(), quoted)
			if _, wrong := a.Type().ParseJSON(nil, quoted); ok || wrong == nil {
				return usagef("write: --value is JSON, in which text and dates have quotes: --value '%s'", quoted)
			}
		}
	}
	return eachLayer(ctx, a, sel, shape, slabBytes, done, func(layer zarr.Selection, _ int64) error {
		return a.WriteValue(ctx, layer, value)
	})
}

// countOf returns the count for a date, given as a JSON string, in an array whose units are those of times.
func countOf(m *zarr.Meta, date json.RawMessage) (json.RawMessage, bool) {
	var text string
	if json.Unmarshal(date, &text) != nil || packed(m) {
		return nil, false
	}
	n, err := cf.CountOf(textAttribute(m, "units"), textAttribute(m, "calendar"), text)
	return strconv.AppendInt(nil, n, 10), err == nil
}

// packed reports whether stored numbers are not those that the units mean.
func packed(m *zarr.Meta) bool {
	_, scaled := m.Attributes.Get("scale_factor")
	_, moved := m.Attributes.Get("add_offset")
	return scaled || moved
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
func (v *values) elements(m *zarr.Meta, shape []int64) ([]byte, error) {
	t := m.Type
	if v.file == nil {
		return v.parsed(m, product(shape))
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
			if !convertible(f.Type, t) {
				return nil, fmt.Errorf("the array holds %v, the file %v", t, f.Type)
			}
			if !v.scalar() && !slices.Equal(shape, f.Shape) {
				return nil, fmt.Errorf("the selection has shape %v, the file %v", shape, f.Shape)
			}
			return v.converted(m)
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

// countsOf describes the counts that elements of a date type are.
func countsOf(t dtype.Type) (*zarr.Meta, error) {
	unit, scale := t.Unit()
	name := map[string]string{"D": "days", "h": "hours", "m": "minutes", "s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}[unit]
	if name == "" || scale != 1 {
		return nil, fmt.Errorf("dates of type %v: %w", t, errors.ErrUnsupported)
	}
	m := &zarr.Meta{Version: zarr.V2, Array: true, NullFill: true, Type: dtype.NewInt(64), Fill: make([]byte, 8)}
	err := m.Attributes.Set("units", name+" since 1970-01-01")
	return m, cmp.Or(err, m.Attributes.Set("calendar", "proleptic_gregorian"))
}

// convertible reports whether numbers or dates of a file may be stored as numbers of another type.
func convertible(from, to dtype.Type) bool {
	number := func(t dtype.Type) bool {
		return t.Kind() == dtype.Int || t.Kind() == dtype.Uint || t.Kind() == dtype.Float
	}
	return number(to) && (number(from) || from.Kind() == dtype.Datetime)
}

// converted makes elements of an array's type of numbers or dates that are convertible.
func (v *values) converted(m *zarr.Meta) ([]byte, error) {
	f, to := v.file, m.Type
	if f.Type.Kind() == dtype.Datetime {
		return recounted(f, m)
	}
	var data, text []byte
	for p, size := f.Data, f.Type.Size(); len(p) > 0; p = p[size:] {
		var err error
		if data, text, err = appendNumber(data, text, to, f.Type, p[:size]); err != nil {
			return nil, fmt.Errorf("element %d: the array holds %v, the file %v: %w", (len(f.Data)-len(p))/size, to, f.Type, err)
		}
	}
	return data, nil
}

// recounted makes counts in the units of an array of the dates of a file.
func recounted(f *npy.File, m *zarr.Meta) ([]byte, error) {
	from, err := countsOf(f.Type)
	if err != nil {
		return nil, err
	}
	if times, _ := cf.SameTimes(from, m); !times || packed(m) {
		return nil, fmt.Errorf("the array holds %v, the file %v: the units of the array (%q, calendar %q) do not count such dates; write numbers in these units",
			m.Type, f.Type, textAttribute(m, "units"), cmp.Or(textAttribute(m, "calendar"), "standard"))
	}
	r, err := cf.NewRecoder(from, m)
	if err != nil || r == nil {
		return f.Data, err
	}
	return r.Append(nil, f.Data)
}

// appendNumber appends a number as an element of another type. Only a fraction is rounded, to the nearest float.
// text is used again by the next call.
func appendNumber(dst, text []byte, to, from dtype.Type, elem []byte) (data, used []byte, err error) {
	var word [8]byte
	if from.Kind() != dtype.Float {
		if text, err = from.AppendJSON(text[:0], elem); err == nil {
			data, err = to.ParseJSON(dst, text)
		}
		if err == nil && to.Kind() == dtype.Float {
			copy(word[:], data[len(dst):])
			value := to.FloatValue(binary.LittleEndian.Uint64(word[:]))
			if want, _ := strconv.ParseFloat(string(text), 64); value != want {
				err = fmt.Errorf("%s is not a %v, the nearest is %v", text, to, value)
			}
		}
		return data, text, err
	}
	copy(word[:], elem)
	v := from.FloatValue(binary.LittleEndian.Uint64(word[:]))
	if to.Kind() == dtype.Float {
		bits, ok := to.RoundFloat(v)
		if !ok {
			return dst, text, fmt.Errorf("%v is outside the range of %v", v, to)
		}
		binary.LittleEndian.PutUint64(word[:], bits)
		return append(dst, word[:to.Size()]...), text, nil
	}
	digits := -1
	if v == math.Trunc(v) {
		digits = 0 // all digits of a whole number
	}
	text = strconv.AppendFloat(text[:0], v, 'f', digits, 64)
	data, err = to.ParseJSON(dst, text)
	return data, text, err
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
func (v *values) parsed(m *zarr.Meta, n int64) ([]byte, error) {
	t := m.Type
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
			var more []byte
			if more, err = t.ParseJSON(data, line); err != nil {
				if count, ok := countOf(m, line); ok {
					more, err = t.ParseJSON(data, count)
				}
			}
			data = more
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
