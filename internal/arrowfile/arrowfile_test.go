package arrowfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/table"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

func le(size int, v ...uint64) (b []byte) {
	for _, x := range v {
		b = append(b, binary.LittleEndian.AppendUint64(nil, x)[:size]...)
	}
	return b
}

func variable(t *testing.T, texts ...string) dtype.Variable {
	t.Helper()
	n, _ := dtype.VariableHeader(len(texts))
	b, at := make([]byte, n), 0
	for i, s := range texts {
		at += len(s)
		binary.LittleEndian.PutUint32(b[4*(i+1):], uint32(at))
		b = append(b, s...)
	}
	v := must.Get(dtype.OpenVariable(b, len(texts)))(t)
	return v
}

func timeType(t *testing.T, span bool, unit string, scale int64) dtype.Type {
	t.Helper()
	f := dtype.NewDatetime
	if span {
		f = dtype.NewTimedelta
	}
	out := must.Get(f(unit, scale))(t)
	return out
}

// columns are three rows of every type, and the values that both formats have.
func columns(t *testing.T) (cols []table.Column, values []table.Values, want []string) {
	add := func(name string, typ dtype.Type, v table.Values, text string) {
		cols = append(cols, table.Column{Name: name, Type: typ})
		values = append(values, v)
		want = append(want, text)
	}
	fixed := func(b []byte) table.Values { return table.Values{Fixed: b} }
	nan64, nan32 := math.Float64bits(math.NaN()), uint64(math.Float32bits(float32(math.NaN())))
	minus := func(n int64) uint64 { return uint64(-n) }
	add("bool", dtype.NewBool(), fixed([]byte{0, 1, 1}), "[false true true]")
	for _, bits := range []int{8, 16, 32, 64} {
		add(fmt.Sprint("int", bits), dtype.NewInt(bits), fixed(le(bits/8, minus(1), 0, 7)), "[-1 0 7]")
		most := uint64(math.MaxUint64) >> (64 - bits)
		add(fmt.Sprint("uint", bits), dtype.NewUint(bits), fixed(le(bits/8, most, 0, 7)), fmt.Sprintf("[%d 0 7]", most))
	}
	add("float64", dtype.NewFloat(64), fixed(le(8, math.Float64bits(1.5), nan64, 0)), "[1.5 NaN 0]")
	add("float16", dtype.NewFloat(16), fixed(le(2, 0x3e00, 0x7e00, 0)), "[1.5 NaN 0]")
	add("decoded", dtype.NewFloat(32), fixed(le(4, uint64(math.Float32bits(1.5)), nan32, 0)), "[1.5 (null) 0]")
	cols[len(cols)-1].NaN = true
	nat := uint64(1 << 63)
	add("days", timeType(t, false, "D", 1), fixed(le(8, 1, nat, 0)), "[86400000 (null) 0]")
	add("us", timeType(t, false, "us", 10), fixed(le(8, 1, nat, 0)), "[10 (null) 0]")
	add("span", timeType(t, true, "ns", 1), fixed(le(8, minus(3), nat, 0)), "[-3 (null) 0]")
	utf32 := must.Get(dtype.NewFixedUTF32(2))(t)
	add("utf32", utf32, fixed(le(4, 'é', 'x', 'y', 0, 0, 0)), "[éx y ]")
	s5 := must.Get(dtype.NewFixedBytes(2))(t)
	add("bytes", s5, fixed([]byte("abc\x00\x00\x00")), "[ab c ]")
	add("text", dtype.NewString(), table.Values{Variable: variable(t, "a", "", "ü")}, "[a  ü]")
	add("words", dtype.Type{}, table.Values{Numbers: []int32{1, 0, 1}}, "[two one two]")
	cols[len(cols)-1].Words = []string{"one", "two"}
	return cols, values, want
}

// written is a file of a table, in several row groups.
func written(t *testing.T, begin table.Format, cols []table.Column, values []table.Values, times int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := must.Get(begin(&b, cols))(t)
	for range times {
		must.Do(t, w.Write(3, values))
		must.Do(t, w.(*writer).flush())
	}
	must.Do(t, w.Close())
	return b.Bytes()
}

func TestIPC(t *testing.T) {
	cols, values, want := columns(t)
	r := must.Get(ipc.NewFileReader(bytes.NewReader(written(t, IPC, cols, values, 2))))(t)
	defer r.Close()
	if r.NumRecords() != 2 {
		t.Fatalf("%d records", r.NumRecords())
	}
	for k := range 2 {
		rec := must.Get(r.Record(k))(t)
		for i, c := range cols {
			if text := shown(rec.Column(i)); text != want[i] {
				t.Errorf("%s is %s, want %s", c.Name, text, want[i])
			}
		}
		if text := rec.Schema().String(); !strings.Contains(text, "days: type=timestamp[ms], nullable") || !strings.Contains(text, "words: type=dictionary<values=utf8, indices=int32, ordered=false>") {
			t.Error(text)
		}
	}
}

// shown prints an array; times and spans as their counts.
func shown(a arrow.Array) string {
	var out []string
	for i := range a.Len() {
		switch b := a.(type) {
		case *array.Timestamp:
			out = append(out, fmt.Sprint(int64(b.Value(i))))
		case *array.Duration:
			out = append(out, fmt.Sprint(int64(b.Value(i))))
		case *array.Binary:
			out = append(out, string(b.Value(i)))
		default:
			out = append(out, a.ValueStr(i))
		}
		if a.IsNull(i) {
			out[i] = "(null)"
		}
	}
	return fmt.Sprint(out)
}

func TestParquet(t *testing.T) {
	cols, values, want := columns(t)
	r := must.Get(file.NewParquetReader(bytes.NewReader(written(t, Parquet, cols, values, 2))))(t)
	defer r.Close()
	if r.NumRowGroups() != 2 || r.NumRows() != 6 {
		t.Fatalf("%d row groups, %d rows", r.NumRowGroups(), r.NumRows())
	}
	for k := range 2 {
		for i, c := range cols {
			col := must.Get(r.RowGroup(k).Column(i))(t)
			text := batch(t, col)
			if unsigned := map[string]string{"uint32": "[-1 0 7]", "uint64": "[-1 0 7]"}[c.Name]; text == unsigned {
				continue // the physical type has a sign
			}
			if text != want[i] {
				t.Errorf("%s is %s, want %s", c.Name, text, want[i])
			}
		}
	}
	for name, want := range map[string]string{
		"int8": "Int(bitWidth=8, isSigned=true)", "uint32": "Int(bitWidth=32, isSigned=false)", "int32": "None", "text": "String", "words": "String", "bytes": "None",
		"days": "Timestamp(isAdjustedToUTC=false, timeUnit=milliseconds, is_from_converted_type=false, force_set_converted_type=false)",
	} {
		i := r.MetaData().Schema.ColumnIndexByName(name)
		if got := r.MetaData().Schema.Column(i).LogicalType().String(); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if unit := r.MetaData().KeyValueMetadata().FindValue("span.units"); unit == nil || *unit != "ns" {
		t.Errorf("the unit of spans is %v", unit)
	}
}

// batch prints a column chunk.
func batch(t *testing.T, col file.ColumnChunkReader) string {
	t.Helper()
	levels := make([]int16, 3)
	var values []any
	var n int
	var err error
	switch c := col.(type) {
	case *file.BooleanColumnChunkReader:
		v := make([]bool, 3)
		_, n, err = c.ReadBatch(3, v, levels, nil)
		values = anys(v[:n])
	case *file.Int32ColumnChunkReader:
		v := make([]int32, 3)
		_, n, err = c.ReadBatch(3, v, levels, nil)
		values = anys(v[:n])
	case *file.Int64ColumnChunkReader:
		v := make([]int64, 3)
		_, n, err = c.ReadBatch(3, v, levels, nil)
		values = anys(v[:n])
	case *file.Float32ColumnChunkReader:
		v := make([]float32, 3)
		_, n, err = c.ReadBatch(3, v, levels, nil)
		values = anys(v[:n])
	case *file.Float64ColumnChunkReader:
		v := make([]float64, 3)
		_, n, err = c.ReadBatch(3, v, levels, nil)
		values = anys(v[:n])
	case *file.ByteArrayColumnChunkReader:
		v := make([]parquet.ByteArray, 3)
		_, n, err = c.ReadBatch(3, v, levels, nil)
		for _, b := range v[:n] {
			values = append(values, string(b))
		}
	}
	must.Do(t, err)
	if col.Descriptor().MaxDefinitionLevel() == 0 {
		return fmt.Sprint(values)
	}
	var rows []any
	for _, l := range levels {
		if l == 0 {
			rows = append(rows, "(null)")
			continue
		}
		rows, values = append(rows, values[0]), values[1:]
	}
	return strings.ReplaceAll(fmt.Sprint(rows), "\x00", "")
}

func anys[T any](v []T) (out []any) {
	for _, x := range v {
		out = append(out, x)
	}
	return out
}

// Types without a form are refused by name before the file is begun, and times that do not
// fit when they come.
func TestRefuses(t *testing.T) {
	for _, begin := range Formats() {
		for _, typ := range []dtype.Type{dtype.NewComplex(64), timeType(t, false, "M", 1), timeType(t, true, "generic", 1)} {
			var b bytes.Buffer
			_, err := begin(&b, []table.Column{{Name: "x", Type: typ}})
			if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "column x") || b.Len() > 0 {
				t.Errorf("%v: %v", typ, err)
			}
		}
		w := must.Get(begin(io.Discard, []table.Column{{Name: "x", Type: timeType(t, false, "D", 1)}}))(t)
		if err := w.Write(1, []table.Values{{Fixed: le(8, 1<<60)}}); err == nil || !strings.Contains(err.Error(), "column x") {
			t.Errorf("a time that does not fit: %v", err)
		}
	}
}

// fullDisk fails after some bytes.
type fullDisk struct{ left int }

var errFull = errors.New("no space left")

func (f *fullDisk) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// No error of the file is lost, wherever it happens.
func TestErrorsOfTheFile(t *testing.T) {
	cols, values, _ := columns(t)
	for name, begin := range Formats() {
		size := len(written(t, begin, cols, values, 2))
		for left := 0; left < size; left += 1 + size/200 {
			w, err := begin(&fullDisk{left}, cols)
			for range 2 {
				if err == nil {
					err = w.Write(3, values)
				}
				if err == nil {
					err = w.(*writer).flush()
				}
			}
			if err == nil {
				err = w.Close()
			}
			if !errors.Is(err, errFull) {
				t.Fatalf("%s: after %d of %d bytes: %v", name, left, size, err)
			}
		}
	}
}

// A row group ends after so many rows, or so many bytes of texts.
func TestRowGroupsAreBounded(t *testing.T) {
	for _, c := range []struct {
		rows  int
		value table.Values
		typ   dtype.Type
		times int
		want  int // row groups
	}{
		{1 << 17, table.Values{Fixed: make([]byte, 1<<17)}, dtype.NewInt(8), 20, 3},
		{1, table.Values{Variable: variable(t, strings.Repeat("x", 9<<20))}, dtype.NewString(), 10, 3},
	} {
		var b bytes.Buffer
		w := must.Get(Parquet(&b, []table.Column{{Name: "x", Type: c.typ}}))(t)
		for range c.times {
			must.Do(t, w.Write(c.rows, []table.Values{c.value}))
		}
		must.Do(t, w.Close())
		r := must.Get(file.NewParquetReader(bytes.NewReader(b.Bytes())))(t)
		if r.NumRowGroups() != c.want || r.NumRows() != int64(c.rows*c.times) {
			t.Errorf("%d row groups of %d rows, want %d", r.NumRowGroups(), r.NumRows(), c.want)
		}
	}
}
