// Package arrowfile writes tables as Parquet and Arrow IPC files. It is the only importer of
// Arrow, and programs that embed zarrdb do not link it.
//
//	table.Values ─▶ column: elements as Arrow has them ── 2²⁰ rows ─▶ a row group, or a record
package arrowfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/zarrdb/zarrdb/internal/table"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Formats returns the formats of this package: ".parquet" and ".arrow".
func Formats() table.Formats { return table.Formats{".parquet": Parquet, ".arrow": IPC} }

// Rows, and bytes of texts, after which a row group ends.
const (
	groupRows  = 1 << 20
	groupBytes = 32 << 20
)

// sink is a file that is written from the beginning to the end. It keeps the first error
// and takes the rest as if it were written: Arrow passes over some errors, and panics at
// others. The caller checks err after each step.
type sink struct {
	w   io.Writer
	n   int64
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	if s.err == nil {
		_, s.err = s.w.Write(p)
	}
	s.n += int64(len(p))
	return len(p), nil
}

// Seek only says where the file is, which is all that Arrow asks.
func (s *sink) Seek(int64, int) (int64, error) { return s.n, nil }

type writer struct {
	out     *sink
	columns []*column
	rows    int          // in the columns
	write   func() error // writes the columns as a row group
	close   func() error
}

// column collects the rows of a column. Elements lie as in an array of Arrow, but bool and
// valid have a byte for each.
type column struct {
	table.Column
	field   arrow.Field
	convert func(bits uint64) (uint64, error) // nil: elements are copied
	size    int                               // of an element of a fixed size
	data    []byte                            // elements, or the bytes of texts
	ends    []int32                           // of texts in data, after a 0
	valid   []bool                            // nil where no value can be missing
	words   arrow.Array                       // of a dictionary
}

// errNull says that a value is missing.
var errNull = errors.New("arrowfile: null")

// IPC begins an Arrow IPC file (Feather version 2), in which words are dictionaries.
func IPC(w io.Writer, columns []table.Column) (table.Writer, error) {
	out, err := newWriter(w, columns, false)
	if err != nil {
		return nil, err
	}
	var fields []arrow.Field
	for _, c := range out.columns {
		fields = append(fields, c.field)
	}
	s := arrow.NewSchema(fields, nil)
	f, err := ipc.NewFileWriter(out.out, ipc.WithSchema(s))
	if err != nil {
		return nil, err
	}
	out.write = func() error {
		var arrays []arrow.Array
		for _, c := range out.columns {
			arrays = append(arrays, c.array(out.rows))
		}
		return f.Write(array.NewRecord(s, arrays, int64(out.rows)))
	}
	out.close = f.Close
	return out, nil
}

func newWriter(w io.Writer, columns []table.Column, isParquet bool) (*writer, error) {
	out := &writer{out: &sink{w: w}}
	for _, c := range columns {
		col := &column{Column: c}
		if err := col.begin(isParquet); err != nil {
			return nil, fmt.Errorf("column %s: %w", c.Name, err)
		}
		out.columns = append(out.columns, col)
	}
	return out, nil
}

func (w *writer) Write(rows int, columns []table.Values) error {
	full := false
	for i, c := range w.columns {
		if err := c.add(columns[i]); err != nil {
			return fmt.Errorf("column %s: %w", c.Name, err)
		}
		if c.len() != w.rows+rows {
			return fmt.Errorf("column %s: %d values for %d rows", c.Name, c.len()-w.rows, rows)
		}
		full = full || c.ends != nil && len(c.data) >= groupBytes
	}
	if w.rows += rows; full || w.rows >= groupRows {
		return w.flush()
	}
	return nil
}

// flush writes the rows in memory as a row group.
func (w *writer) flush() error {
	if w.rows == 0 {
		return w.out.err
	}
	err := w.write()
	for _, c := range w.columns {
		c.data, c.valid, c.ends = c.data[:0], c.valid[:0], c.ends[:min(len(c.ends), 1)]
	}
	w.rows = 0
	return errors.Join(err, w.out.err)
}

func (w *writer) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	return errors.Join(w.close(), w.out.err)
}

// len is the number of rows in memory.
func (c *column) len() int {
	if c.ends != nil {
		return len(c.ends) - 1
	}
	return len(c.data) / c.size
}

// array makes an array of Arrow of the rows, which uses the memory of the column.
func (c *column) array(rows int) arrow.Array {
	t, buffers, nulls := c.field.Type, []*memory.Buffer{nil, memory.NewBufferBytes(c.data)}, 0
	if c.field.Nullable {
		var bits []byte
		bits, nulls = bitmap(c.valid)
		buffers[0] = memory.NewBufferBytes(bits)
	}
	switch {
	case c.words != nil:
		t = arrow.PrimitiveTypes.Int32
	case c.ends != nil:
		buffers = []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(c.ends)), buffers[1]}
	case t.ID() == arrow.BOOL:
		bits, _ := bitmap(c.bools())
		buffers[1] = memory.NewBufferBytes(bits)
	}
	a := array.MakeFromData(array.NewData(t, rows, buffers, nil, nulls, 0))
	if c.words != nil {
		return array.NewDictionaryArray(c.field.Type, a, c.words)
	}
	return a
}

func (c *column) bools() []bool {
	out := make([]bool, len(c.data))
	for i, b := range c.data {
		out[i] = b != 0
	}
	return out
}

// bitmap makes a bit of each value, and counts the false values.
func bitmap(v []bool) (bits []byte, no int) {
	bits = make([]byte, (len(v)+7)/8)
	for i, x := range v {
		if x {
			bits[i/8] |= 1 << (i % 8)
		} else {
			no++
		}
	}
	return bits, no
}

// add adds values.
func (c *column) add(v table.Values) error {
	switch {
	case c.Words != nil && c.ends == nil:
		c.data = append(c.data, arrow.Int32Traits.CastToBytes(v.Numbers)...)
	case c.ends != nil:
		return c.addTexts(v)
	case c.convert == nil:
		c.data = append(c.data, v.Fixed...)
	default:
		for e := range slices.Chunk(v.Fixed, c.Type.Size()) {
			var word [8]byte
			copy(word[:], e)
			bits, err := c.convert(binary.LittleEndian.Uint64(word[:]))
			if err != nil && err != errNull {
				return err
			}
			binary.LittleEndian.PutUint64(word[:], bits)
			c.data = append(c.data, word[:c.size]...)
			if c.field.Nullable {
				c.valid = append(c.valid, err == nil)
			}
		}
	}
	return nil
}

// addTexts adds texts and byte strings. Zeros that fill up elements of a fixed size are
// left out.
func (c *column) addTexts(v table.Values) error {
	end := func() { c.ends = append(c.ends, int32(len(c.data))) }
	for _, n := range v.Numbers {
		c.data = append(c.data, c.Words[n]...)
		end()
	}
	for i := range v.Variable.Len() {
		text := v.Variable.At(i)
		if len(text) > math.MaxInt32-len(c.data) {
			return fmt.Errorf("texts of more than 2 GiB: %w", errors.ErrUnsupported)
		}
		c.data = append(c.data, text...)
		end()
	}
	for e := range slices.Chunk(v.Fixed, max(c.Type.Size(), 1)) {
		from := len(c.data)
		if c.Type.Kind() == dtype.FixedBytes {
			c.data = append(c.data, e...)
		} else {
			for p := range slices.Chunk(e, 4) {
				c.data = utf8.AppendRune(c.data, rune(binary.LittleEndian.Uint32(p)))
			}
		}
		for len(c.data) > from && c.data[len(c.data)-1] == 0 {
			c.data = c.data[:len(c.data)-1]
		}
		end()
	}
	return nil
}

// begin sets the type of the column in the file, and how elements are converted to it.
func (c *column) begin(isParquet bool) error {
	meta := map[string]string{}
	if c.Units != "" {
		meta["units"] = c.Units
	}
	c.field = arrow.Field{Name: c.Name}
	kind, width := c.Type.Kind(), 8*c.Type.Size()
	c.size = width / 8
	switch {
	case c.Words != nil && isParquet:
		c.field.Type, c.ends = arrow.BinaryTypes.String, []int32{0}
	case c.Words != nil:
		b := array.NewStringBuilder(memory.DefaultAllocator)
		b.AppendStringValues(c.Words, nil)
		c.words, c.size = b.NewArray(), 4
		c.field.Type = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	case table.Check(c.Type) != nil:
		return table.Check(c.Type)
	case kind == dtype.Bool:
		c.field.Type = arrow.FixedWidthTypes.Boolean
	case kind == dtype.Int || kind == dtype.Uint:
		c.integers(kind == dtype.Int, width, isParquet)
	case kind == dtype.Float:
		c.floats()
	case kind == dtype.Datetime || kind == dtype.Timedelta:
		c.times(isParquet, meta)
	case kind == dtype.Bytes || kind == dtype.FixedBytes:
		c.field.Type, c.ends = arrow.BinaryTypes.Binary, []int32{0}
	default:
		c.field.Type, c.ends = arrow.BinaryTypes.String, []int32{0}
	}
	c.field.Metadata = arrow.MetadataFrom(meta)
	return nil
}

func (c *column) integers(signed bool, width int, isParquet bool) {
	p := &arrow.PrimitiveTypes
	c.field.Type = map[int]arrow.DataType{8: p.Uint8, 16: p.Uint16, 32: p.Uint32, 64: p.Uint64}[width]
	if signed {
		c.field.Type = map[int]arrow.DataType{8: p.Int8, 16: p.Int16, 32: p.Int32, 64: p.Int64}[width]
	}
	if isParquet && width < 32 { // it stores them as int32
		c.size = 4
		c.convert = func(bits uint64) (uint64, error) {
			if signed {
				return uint64(int64(bits<<(64-width)) >> (64 - width)), nil
			}
			return bits, nil
		}
	}
}

// floats converts floats of fewer than 32 bits to float32, which has all of them, and NaN to
// null where the column says so.
func (c *column) floats() {
	c.field.Type, c.field.Nullable = arrow.PrimitiveTypes.Float64, c.NaN
	if c.Type.Bits() < 64 {
		c.field.Type, c.size = arrow.PrimitiveTypes.Float32, 4
	}
	if c.Type.Bits() >= 32 && !c.NaN {
		return
	}
	c.convert = func(bits uint64) (uint64, error) {
		f := c.Type.FloatValue(bits)
		if f != f && c.NaN {
			return bits, errNull
		}
		if c.size == 4 && c.Type.Bits() < 32 {
			bits = uint64(math.Float32bits(float32(f)))
		}
		return bits, nil
	}
}

// times adds times and spans of time; NaT is null.
func (c *column) times(isParquet bool, meta map[string]string) {
	name, per, _ := table.Unit(c.Type) // begin has checked it
	unit := map[string]arrow.TimeUnit{"ms": arrow.Millisecond, "us": arrow.Microsecond, "ns": arrow.Nanosecond}[name]
	c.field.Nullable = true
	switch {
	case c.Type.Kind() == dtype.Datetime:
		c.field.Type = &arrow.TimestampType{Unit: unit}
	case isParquet:
		c.field.Type, meta["units"] = arrow.PrimitiveTypes.Int64, name
	default:
		c.field.Type = &arrow.DurationType{Unit: unit}
	}
	c.convert = func(bits uint64) (uint64, error) {
		n := int64(bits)
		switch {
		case n == math.MinInt64:
			return 0, errNull
		case n*per/per != n:
			return 0, fmt.Errorf("%d %v is beyond the times that a table holds", n, c.Type)
		}
		return uint64(n * per), nil
	}
}
