package parquet_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	arrow "github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/schema"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs/parquet"
)

// row is a row of a file; nil pointers are nulls.
type row struct {
	path         *string
	offset, size int64
	raw          []byte
}

func (r row) String() string {
	path := "null"
	if r.path != nil {
		path = *r.path
	}
	return fmt.Sprintf("{%s %d %d %q %v}", path, r.offset, r.size, r.raw, r.raw == nil)
}

func same(a, b row) bool {
	return (a.path == nil) == (b.path == nil) && (a.path == nil || *a.path == *b.path) && a.offset == b.offset && a.size == b.size &&
		(a.raw == nil) == (b.raw == nil) && bytes.Equal(a.raw, b.raw)
}

func compare(t *testing.T, got, want []row) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i := range got {
		if !same(got[i], want[i]) {
			t.Fatalf("row %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// read reads a file with the package.
func read(t testing.TB, v kv.Value, o *parquet.Options) ([]row, error) {
	var r parquet.Reader
	return readWith(t, &r, v, o)
}

func readWith(t testing.TB, r *parquet.Reader, v kv.Value, o *parquet.Options) (rows []row, err error) {
	if err := r.Open(t.Context(), v, o); err != nil {
		return nil, err
	}
	var b parquet.Batch
	for {
		if err := r.Next(&b); err == io.EOF {
			break
		} else if err != nil {
			return rows, err
		}
		if b.Len() == 0 {
			t.Fatal("an empty batch")
		}
		for i, p := range b.Path {
			x := row{offset: b.Offset[i], size: b.Size[i], raw: bytes.Clone(b.Raw[i])}
			if p != "" {
				x.path = &p
			}
			rows = append(rows, x)
		}
	}
	if int64(len(rows)) != r.Rows() {
		t.Errorf("%d rows of %d", len(rows), r.Rows())
	}
	return rows, nil
}

// random makes rows of a kind: few or many paths, with or without nulls.
func random(rnd *rand.Rand, n int) []row {
	rows := make([]row, n)
	paths := 1 + rnd.IntN(1+rnd.IntN(300))
	inline, missing, runs := rnd.Float64()*rnd.Float64(), rnd.Float64()*rnd.Float64(), 1+rnd.IntN(40)
	for i := range rows {
		r := &rows[i]
		switch x := rnd.Float64(); {
		case i > 0 && rnd.IntN(runs) > 0 && rows[i-1].path != nil:
			r.path = rows[i-1].path
			r.offset, r.size = rows[i-1].offset+rows[i-1].size, rnd.Int64N(1<<30)
		case x < missing:
		case x < missing+inline:
			r.raw = make([]byte, rnd.IntN(20))
			for k := range r.raw {
				r.raw[k] = byte(rnd.Uint32())
			}
		default:
			p := fmt.Sprintf("s3://bucket/some/folder/file_%05d.nc", rnd.IntN(paths))
			r.path = &p
			r.offset, r.size = rnd.Int64()-rnd.Int64(), rnd.Int64N(1<<40)
		}
	}
	return rows
}

// layout is how Arrow writes a file.
type layout struct {
	v2, dictionary, small bool   // small offsets: 32 bit integers
	delta                 string // the column that is written as differences
	groups                int
	pageSize              int64
	codec                 compress.Compression
	extra                 bool // a column of another name, and a group
	required              bool // path and raw cannot be null; rows must have both
	noRaw                 bool
}

// arrowWrite writes rows with Arrow.
func arrowWrite(t testing.TB, rows []row, l layout) []byte {
	t.Helper()
	ints := schema.NewInt64Node
	if l.small {
		ints = schema.NewInt32Node
	}
	optional := arrow.Repetitions.Optional
	if l.required {
		optional = arrow.Repetitions.Required
	}
	nodes := schema.FieldList{
		schema.MustPrimitive(schema.NewPrimitiveNodeConverted("path", optional, arrow.Types.ByteArray, schema.ConvertedTypes.UTF8, -1, 0, 0, -1)),
		ints("offset", arrow.Repetitions.Required, -1),
		ints("size", arrow.Repetitions.Optional, -1),
	}
	if l.extra {
		nodes = append(nodes, schema.MustGroup(schema.NewGroupNode("nested", arrow.Repetitions.Required, schema.FieldList{
			schema.NewInt64Node("path", arrow.Repetitions.Required, -1),
		}, -1)))
	}
	if !l.noRaw {
		nodes = append(nodes, schema.NewByteArrayNode("raw", optional, -1))
	}
	root := schema.MustGroup(schema.NewGroupNode("schema", arrow.Repetitions.Required, nodes, -1))
	props := []arrow.WriterProperty{arrow.WithCompression(l.codec), arrow.WithDictionaryDefault(l.dictionary), arrow.WithDataPageSize(l.pageSize), arrow.WithBatchSize(64)}
	if l.v2 {
		props = append(props, arrow.WithDataPageVersion(arrow.DataPageV2), arrow.WithVersion(arrow.V2_LATEST))
	}
	switch l.delta {
	case "path":
		props = append(props, arrow.WithEncodingFor("path", arrow.Encodings.DeltaByteArray))
	case "offset":
		props = append(props, arrow.WithEncodingFor("offset", arrow.Encodings.DeltaBinaryPacked))
	}
	var buf bytes.Buffer
	w := file.NewParquetWriter(&buf, root, file.WithWriterProps(arrow.NewWriterProperties(props...)))
	for g := range l.groups {
		part := rows[len(rows)*g/l.groups : len(rows)*(g+1)/l.groups]
		rg := w.AppendRowGroup()
		for c := range root.NumFields() {
			arrowColumn(t, rg, root.Field(c).Name(), part, l)
		}
		must.Do(t, rg.Close())
	}
	must.Do(t, w.Close())
	return buf.Bytes()
}

func arrowColumn(t testing.TB, rg file.SerialRowGroupWriter, name string, rows []row, l layout) {
	t.Helper()
	cw, err := rg.NextColumn()
	must.Do(t, err)
	var def []int16
	var bs []arrow.ByteArray
	var i64 []int64
	var i32 []int32
	for _, r := range rows {
		var b []byte
		if r.path != nil {
			b = []byte(*r.path)
		}
		if name == "raw" {
			b = r.raw
		}
		if b != nil {
			bs, def = append(bs, b), append(def, 1)
		} else {
			def = append(def, 0)
		}
		v := r.offset
		if name == "size" {
			v = r.size
		}
		i64, i32 = append(i64, v), append(i32, int32(v))
	}
	if name == "offset" || name == "nested" || l.required && (name == "path" || name == "raw") {
		def = nil
	} else if name == "size" {
		for i := range def {
			def[i] = 1
		}
	}
	switch cw := cw.(type) {
	case *file.ByteArrayColumnChunkWriter:
		_, err = cw.WriteBatch(bs, def, nil)
	case *file.Int64ColumnChunkWriter:
		_, err = cw.WriteBatch(i64, def, nil)
	case *file.Int32ColumnChunkWriter:
		_, err = cw.WriteBatch(i32, def, nil)
	}
	must.Do(t, err)
	must.Do(t, cw.Close())
}

// arrowRead reads a file with Arrow, which may panic.
func arrowRead(b []byte) (rows []row, err error) {
	r, err := file.NewParquetReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	for g := range r.NumRowGroups() {
		rg := r.RowGroup(g)
		part := make([]row, rg.NumRows())
		for c := range rg.NumColumns() {
			name := rg.MetaData().Schema.Column(c).Name()
			col, err := rg.Column(c)
			if err != nil {
				return nil, err
			}
			def := make([]int16, len(part))
			for at := 0; at < len(part) && col.HasNext(); {
				var n int64
				var values []any
				switch col := col.(type) {
				case *file.ByteArrayColumnChunkReader:
					v := make([]arrow.ByteArray, len(part))
					var k int
					n, k, err = col.ReadBatch(int64(len(part)-at), v, def[at:], nil)
					for _, x := range v[:k] {
						values = append(values, append([]byte{}, x...))
					}
				case *file.Int64ColumnChunkReader:
					v := make([]int64, len(part))
					n, _, err = col.ReadBatch(int64(len(part)-at), v, def[at:], nil)
					for i, x := range v[:n] {
						values, def[at+i] = append(values, x), 1
					}
				}
				if err != nil {
					return nil, err
				}
				for i := at; i < at+int(n); i++ {
					if def[i] == 0 {
						continue
					}
					switch v := values[0]; name {
					case "path":
						s := string(v.([]byte))
						part[i].path = &s
					case "raw":
						part[i].raw = v.([]byte)
					case "offset":
						part[i].offset = v.(int64)
					case "size":
						part[i].size = v.(int64)
					}
					values = values[1:]
				}
				at += int(n)
			}
		}
		rows = append(rows, part...)
	}
	return rows, r.Close()
}
