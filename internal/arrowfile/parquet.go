package arrowfile

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/metadata"
	"github.com/apache/arrow/go/v17/parquet/schema"

	"github.com/zarrdb/zarrdb/internal/table"
)

// Parquet begins a Parquet file, with package file of Arrow: package pqarrow makes the program 20
// MB larger, and passes over some errors. The file has snappy compression. Columns that repeat are
// written as numbers of a dictionary. Spans of time, for which Parquet has no type, are int64. The
// units of a column are in the metadata of the file, under its name and ".units".
func Parquet(w io.Writer, columns []table.Column) (table.Writer, error) {
	out, err := newWriter(w, columns, true)
	if err != nil {
		return nil, err
	}
	options := []parquet.WriterProperty{
		parquet.WithCompression(compress.Codecs.Snappy), parquet.WithCreatedBy("zarrdb"), parquet.WithDictionaryDefault(false),
	}
	var nodes schema.FieldList
	units := metadata.NewKeyValueMetadata()
	for _, c := range out.columns {
		n, err := node(c)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.Name, err)
		}
		nodes = append(nodes, n)
		options = append(options, parquet.WithDictionaryFor(c.Name, c.Repeats || c.Words != nil))
		meta := c.field.Metadata.ToMap()
		for _, k := range slices.Sorted(maps.Keys(meta)) {
			if err := units.Append(c.Name+"."+k, meta[k]); err != nil {
				return nil, err
			}
		}
	}
	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, nodes, -1)
	if err != nil {
		return nil, err
	}
	f := file.NewParquetWriter(out.out, root, file.WithWriterProps(parquet.NewWriterProperties(options...)), file.WithWriteMetadata(units))
	out.write = func() error {
		group := f.AppendRowGroup()
		for _, c := range out.columns {
			w, err := group.NextColumn()
			if err == nil {
				err = c.write(w)
			}
			if err == nil {
				err = w.Close()
			}
			if err != nil {
				return fmt.Errorf("column %s: %w", c.Name, err)
			}
		}
		return group.Close()
	}
	out.close = f.Close
	return out, nil
}

// node is the type of a column in Parquet.
func node(c *column) (schema.Node, error) {
	repetition := parquet.Repetitions.Required
	if c.field.Nullable {
		repetition = parquet.Repetitions.Optional
	}
	var logical schema.LogicalType = schema.NoLogicalType{}
	physical := parquet.Types.Int64
	switch t := c.field.Type.(type) {
	case *arrow.BooleanType:
		physical = parquet.Types.Boolean
	case *arrow.Float32Type:
		physical = parquet.Types.Float
	case *arrow.Float64Type:
		physical = parquet.Types.Double
	case *arrow.BinaryType:
		physical = parquet.Types.ByteArray
	case *arrow.StringType:
		physical, logical = parquet.Types.ByteArray, schema.StringLogicalType{}
	case *arrow.TimestampType:
		unit := map[arrow.TimeUnit]schema.TimeUnitType{arrow.Millisecond: schema.TimeUnitMillis, arrow.Microsecond: schema.TimeUnitMicros, arrow.Nanosecond: schema.TimeUnitNanos}[t.Unit]
		logical = schema.NewTimestampLogicalType(false, unit)
	case arrow.FixedWidthDataType:
		id := t.ID()
		signed := id == arrow.INT8 || id == arrow.INT16 || id == arrow.INT32 || id == arrow.INT64
		if t.BitWidth() < 64 {
			physical = parquet.Types.Int32
		}
		if !signed || t.BitWidth() < 32 {
			logical = schema.NewIntLogicalType(int8(t.BitWidth()), signed)
		}
	}
	return schema.NewPrimitiveNodeLogical(c.Name, repetition, logical, physical, 0, -1)
}

// write writes the values of the column that are not missing.
func (c *column) write(w file.ColumnChunkWriter) (err error) {
	var levels []int16 // 1 for a value, 0 for a missing one
	if c.field.Nullable {
		levels = make([]int16, len(c.valid))
		for i, ok := range c.valid {
			if ok {
				levels[i] = 1
			}
		}
	}
	switch w := w.(type) {
	case *file.BooleanColumnChunkWriter:
		_, err = w.WriteBatch(c.bools(), nil, nil)
	case *file.Int32ColumnChunkWriter:
		_, err = w.WriteBatch(there(c, arrow.Int32Traits.CastFromBytes(c.data)), levels, nil)
	case *file.Int64ColumnChunkWriter:
		_, err = w.WriteBatch(there(c, arrow.Int64Traits.CastFromBytes(c.data)), levels, nil)
	case *file.Float32ColumnChunkWriter:
		_, err = w.WriteBatch(there(c, arrow.Float32Traits.CastFromBytes(c.data)), levels, nil)
	case *file.Float64ColumnChunkWriter:
		_, err = w.WriteBatch(there(c, arrow.Float64Traits.CastFromBytes(c.data)), levels, nil)
	case *file.ByteArrayColumnChunkWriter:
		texts := make([]parquet.ByteArray, c.len())
		for i := range texts {
			texts[i] = c.data[c.ends[i]:c.ends[i+1]]
		}
		_, err = w.WriteBatch(texts, nil, nil)
	default:
		err = fmt.Errorf("no form for %v", c.field.Type) // a mistake in node
	}
	return err
}

// there returns the values that are not missing.
func there[T any](c *column, v []T) []T {
	if !c.field.Nullable {
		return v
	}
	out := make([]T, 0, len(v))
	for i, ok := range c.valid {
		if ok {
			out = append(out, v[i])
		}
	}
	return out
}
