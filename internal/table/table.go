// Package table is the form in which arrays are handed to writers of tables, such as
// package arrowfile. It knows no file format.
//
//	array (time 2, lat 2)        table: a row for each element, in C order
//
//	        lat 50  lat 40          time        lat   temp
//	 01-01     1       2            2020-01-01   50      1
//	 01-02     3       4            2020-01-01   40      2
//	                                2020-01-02   50      3
//	                                2020-01-02   40      4
package table

import (
	"errors"
	"fmt"
	"io"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Column describes a column.
type Column struct {
	Name string
	// Type is the type of the elements; see [Check].
	Type dtype.Type
	// Words, if not nil, are all different texts of the column. Its values are their numbers,
	// and Type is not used.
	Words []string
	// Repeats says that values repeat, as labels do.
	Repeats bool
	// NaN says that NaN is a missing value, a null of the table. NaT always is.
	NaN bool
	// Units are the units of the values, from the attribute of that name.
	Units string
}

// Values are rows of a column: one of the fields is set.
type Values struct {
	// Fixed are elements of a fixed size, packed in memory layout.
	Fixed []byte
	// Variable are texts and byte strings.
	Variable dtype.Variable
	// Numbers are the numbers of words of the column.
	Numbers []int32
}

// Writer writes a table. It is not safe for concurrent use.
type Writer interface {
	// Write adds rows: of every column, in order, as many. It keeps no slice. Rows of
	// several calls are kept in memory before they are written, up to a bound.
	Write(rows int, columns []Values) error
	// Close writes the rest. It does not close the file.
	Close() error
}

// Format begins a table in a file. Errors are errors.ErrUnsupported for a column that the
// format has no form for, and name the column.
type Format func(w io.Writer, columns []Column) (Writer, error)

// Formats are formats by the ending of file names, such as ".parquet".
type Formats map[string]Format

// Check returns an error, errors.ErrUnsupported, if elements of a type have no form as a
// value of a table.
func Check(t dtype.Type) error {
	switch t.Kind() {
	case dtype.Bool, dtype.Int, dtype.Uint, dtype.Float, dtype.FixedUTF32, dtype.FixedBytes, dtype.String, dtype.Bytes, dtype.JSON:
		return nil
	case dtype.Datetime, dtype.Timedelta:
		if _, _, ok := Unit(t); ok {
			return nil
		}
	}
	return fmt.Errorf("elements of type %v have no form in a table: %w; use .npy or .jsonl", t, errors.ErrUnsupported)
}

// Unit returns how a count of times or spans is written: in ms, us or ns, each count of the
// type being so many of them. ok is false for months, units below the nanosecond, and
// generic ones.
func Unit(t dtype.Type) (unit string, per int64, ok bool) {
	name, scale := t.Unit()
	switch name {
	case "ms", "us", "ns":
		return name, scale, true
	}
	seconds := map[string]int64{"s": 1, "m": 60, "h": 3600, "D": 86400, "W": 7 * 86400}[name]
	return "ms", 1000 * seconds * scale, seconds > 0 && scale < 1<<31
}
