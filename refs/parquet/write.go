package parquet

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Table is the rows of a file to be written. Rows are numbered; rows that are
// not set are null. The zero Table is empty.
type Table struct {
	// Paths are the different URLs, in the order of their numbers.
	Paths []string
	// Path is the number of each row's URL, or -1.
	Path []int32
	// Offset and Size are in bytes.
	Offset, Size []int64
	// Raw is nil where it is null. The slice may be nil or shorter than the
	// other columns; missing rows are null.
	Raw [][]byte
}

// Row numbers of a page and of a row group. Small pages let readers go through
// a large file with little memory.
const (
	pageRows  = 1 << 16
	createdBy = "zarrdb"
)

// writers pools encoders and buffers of some MiB, because sets of many small
// arrays write many nearly empty files.
var writers = sync.Pool{New: func() any {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err) // options are constant
	}
	return &writer{zstd: e}
}}

// maxPooled is the largest buffer that stays in the pool.
const maxPooled = 4 << 20

// release forgets the file and keeps the buffers.
func (w *writer) release() {
	if cap(w.page) > maxPooled || cap(w.packed) > maxPooled {
		w.page, w.packed = nil, nil
	}
	*w = writer{zstd: w.zstd, page: w.page, packed: w.packed, numbers: w.numbers}
	writers.Put(w)
}

// Append appends a parquet file of t to dst. The same table gives the same
// bytes. The file has one row group, zstd compression and data pages of version
// 1, which every reader of reference sets supports; repeated paths are numbers
// of a dictionary. Its only statistics are null counts, without which
// fastparquet reads integers as floats.
func (t *Table) Append(dst []byte) ([]byte, error) {
	rows := len(t.Path)
	if len(t.Offset) != rows || len(t.Size) != rows || len(t.Raw) > rows {
		return dst, fmt.Errorf("parquet: columns of %d, %d, %d and %d rows", rows, len(t.Offset), len(t.Size), len(t.Raw))
	}
	w := writers.Get().(*writer)
	defer w.release()
	w.dst, w.start = append(dst, magic...), len(dst)
	if err := w.paths(t); err != nil {
		return dst, err
	}
	w.column(colOffset, rows, func(b []byte, from, to int) []byte { return appendInts(b, t.Offset[from:to]) })
	w.column(colSize, rows, func(b []byte, from, to int) []byte { return appendInts(b, t.Size[from:to]) })
	w.column(colRaw, rows, func(b []byte, from, to int) []byte {
		raw := t.Raw[min(from, len(t.Raw)):min(to, len(t.Raw))]
		b = w.appendLevels(b, to-from, func(i int) bool { return i < len(raw) && raw[i] != nil })
		for _, v := range raw {
			if v != nil {
				b = append(binary.LittleEndian.AppendUint32(b, uint32(len(v))), v...)
			}
		}
		return b
	})
	if w.err != nil {
		return dst, w.err
	}
	for i := range rows {
		if t.Path[i] < 0 {
			w.columns[colPath].nulls++
		}
		if i >= len(t.Raw) || t.Raw[i] == nil {
			w.columns[colRaw].nulls++
		}
	}
	w.footer(rows)
	return w.dst, nil
}

func appendInts(b []byte, v []int64) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	return b
}

type writer struct {
	dst     []byte
	start   int // of the file in dst
	zstd    *zstd.Encoder
	page    []byte
	packed  []byte
	numbers []uint32 // levels or numbers of paths of a page
	columns [numCols]written
	err     error
}

// written is a column's part of the footer.
type written struct {
	dictionary, data int64 // where pages begin; dictionary 0 without one
	raw, size        int64 // bytes of all pages with their headers
	nulls            int64
	encoding         int32
}

func (w *writer) at() int64 { return int64(len(w.dst) - w.start) }

// column writes pages whose values fill appends.
func (w *writer) column(col, rows int, fill func(b []byte, from, to int) []byte) {
	w.columns[col].data = w.at()
	for from := 0; from < rows; from += pageRows {
		to := min(from+pageRows, rows)
		w.page = fill(w.page[:0], from, to)
		w.write(col, pageData, to-from, w.columns[col].encoding)
	}
}

// write compresses and writes w.page.
func (w *writer) write(col int, kind int32, values int, encoding int32) {
	if len(w.page) > math.MaxInt32 {
		if w.err == nil {
			w.err = fmt.Errorf("parquet: %d bytes in %d rows of column %q", len(w.page), values, colNames[col])
		}
		return
	}
	w.packed = w.zstd.EncodeAll(w.page, w.packed[:0])
	var e encoder
	e.begin()
	e.i32(1, kind)
	e.i32(2, int32(len(w.page)))
	e.i32(3, int32(len(w.packed)))
	if kind == pageData {
		e.field(5, tStruct)
		e.begin()
		e.i32(1, int32(values))
		e.i32(2, encoding)
		e.i32(3, encRLE)
		e.i32(4, encRLE)
		e.end()
	} else {
		e.field(7, tStruct)
		e.begin()
		e.i32(1, int32(values))
		e.i32(2, encoding)
		e.end()
	}
	e.end()
	c := &w.columns[col]
	c.raw += int64(len(e.b) + len(w.page))
	c.size += int64(len(e.b) + len(w.packed))
	w.dst = append(append(w.dst, e.b...), w.packed...)
}

// paths writes the column of URLs: as numbers of a dictionary where most of
// them repeat.
func (w *writer) paths(t *Table) error {
	used := 0
	for _, p := range t.Path {
		if int(p) >= len(t.Paths) {
			return fmt.Errorf("parquet: path %d of %d", p, len(t.Paths))
		}
		if p >= 0 {
			used++
		}
	}
	text := func(b []byte, s string) []byte {
		return append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	there := func(from int) func(int) bool { return func(i int) bool { return t.Path[from+i] >= 0 } }
	c := &w.columns[colPath]
	if used < 2*len(t.Paths) {
		w.column(colPath, len(t.Path), func(b []byte, from, to int) []byte {
			b = w.appendLevels(b, to-from, there(from))
			for _, p := range t.Path[from:to] {
				if p >= 0 {
					b = text(b, t.Paths[p])
				}
			}
			return b
		})
		return w.err
	}
	if len(t.Paths) > 0 {
		w.page = w.page[:0]
		for _, s := range t.Paths {
			w.page = text(w.page, s)
		}
		c.dictionary = w.at()
		w.write(colPath, pageDictionary, len(t.Paths), encPlain)
		c.encoding = encDictionary
	}
	width := max(bits.Len(uint(max(len(t.Paths)-1, 0))), 1) // some readers do not support width 0
	w.column(colPath, len(t.Path), func(b []byte, from, to int) []byte {
		b = w.appendLevels(b, to-from, there(from))
		if c.encoding == encPlain {
			return b
		}
		w.numbers = w.numbers[:0]
		for _, p := range t.Path[from:to] {
			if p >= 0 {
				w.numbers = append(w.numbers, uint32(p))
			}
		}
		return appendHybrid(append(b, byte(width)), w.numbers, width)
	})
	return w.err
}

// appendLevels appends the levels of an optional column with their length.
func (w *writer) appendLevels(b []byte, n int, there func(i int) bool) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	w.numbers = slices.Grow(w.numbers[:0], n)[:n]
	for i := range w.numbers {
		w.numbers[i] = 0
		if there(i) {
			w.numbers[i] = 1
		}
	}
	b = appendHybrid(b, w.numbers, 1)
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// appendHybrid writes runs of 8 or more equal values as runs, and the values
// between them, whose number must be a multiple of 8, as packed bits.
func appendHybrid(b []byte, v []uint32, width int) []byte {
	for i := 0; i < len(v); {
		if n := runLength(v[i:]); n >= 8 {
			b = binary.AppendUvarint(b, uint64(n)<<1)
			for k := range (width + 7) / 8 {
				b = append(b, byte(v[i]>>(8*k)))
			}
			i += n
			continue
		}
		end := i + 8
		for end < len(v) && runLength(v[end:]) < 8 {
			end += 8
		}
		b = appendPacked(b, v[i:min(end, len(v))], width)
		i = end
	}
	return b
}

func runLength(v []uint32) int {
	n := 1
	for n < len(v) && v[n] == v[0] {
		n++
	}
	return n
}

func appendPacked(b []byte, v []uint32, width int) []byte {
	groups := (len(v) + 7) / 8
	b = binary.AppendUvarint(b, uint64(groups)<<1|1)
	var acc uint64
	held := 0
	for i := range groups * 8 {
		if i < len(v) {
			acc |= uint64(v[i]) << held
		}
		for held += width; held >= 8; held -= 8 {
			b = append(b, byte(acc))
			acc >>= 8
		}
	}
	return b
}

func (w *writer) footer(rows int) {
	var e encoder
	e.begin()
	e.i32(1, 1)
	e.list(2, tStruct, 1+numCols)
	e.begin()
	e.binary(4, "schema")
	e.i32(5, numCols)
	e.end()
	optional := [numCols]bool{colPath: true, colRaw: true}
	types := [numCols]int32{typeByteArray, typeInt64, typeInt64, typeByteArray}
	for i, name := range colNames {
		e.begin()
		e.i32(1, types[i])
		if optional[i] {
			e.i32(3, 1)
		} else {
			e.i32(3, 0)
		}
		e.binary(4, name)
		if i == colPath {
			e.i32(6, 0) // UTF8
			e.field(10, tStruct)
			e.begin()
			e.field(1, tStruct) // string
			e.begin()
			e.end()
			e.end()
		}
		e.end()
	}
	e.i64(3, int64(rows))
	e.list(4, tStruct, 1)
	e.begin()
	e.list(1, tStruct, numCols)
	total := int64(0)
	for i, c := range w.columns {
		first := c.data
		if c.dictionary > 0 {
			first = c.dictionary
		}
		total += c.raw
		e.begin()
		e.i64(2, first)
		e.field(3, tStruct)
		e.begin()
		e.i32(1, types[i])
		encodings := []int32{encPlain, encRLE}
		if c.dictionary > 0 {
			encodings = append(encodings, encDictionary)
		}
		e.list(2, tI32, len(encodings))
		for _, x := range encodings {
			e.varint(int64(x))
		}
		e.list(3, tBinary, 1)
		e.text(colNames[i])
		e.i32(4, codecZstd)
		e.i64(5, int64(rows))
		e.i64(6, c.raw)
		e.i64(7, c.size)
		e.i64(9, c.data)
		if c.dictionary > 0 {
			e.i64(11, c.dictionary)
		}
		e.field(12, tStruct)
		e.begin()
		e.i64(3, c.nulls)
		e.end()
		e.end()
		e.end()
	}
	e.i64(2, total)
	e.i64(3, int64(rows))
	e.end()
	e.binary(6, createdBy)
	e.end()
	w.dst = append(w.dst, e.b...)
	w.dst = binary.LittleEndian.AppendUint32(w.dst, uint32(len(e.b)))
	w.dst = append(w.dst, magic...)
}
