package refs

import (
	"bytes"
	"cmp"
	"container/list"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs/parquet"
)

// ParquetOptions say how a parquet set is written. nil and the zero value work.
type ParquetOptions struct {
	// RecordSize is the number of references of a partition, at most 16 Mi.
	// Default 100000, as in kerchunk.
	RecordSize int64

	// MaxMemory bounds the partitions that are being filled, in bytes. A
	// partition takes about 20 bytes for each row, its URLs and its inline
	// values. Default 256 MiB. A partition of less than an eighth of MaxMemory
	// that is being written is not counted.
	MaxMemory int64
}

const maxRecordSize = 1 << 24

func (o *ParquetOptions) withDefaults() (ParquetOptions, error) {
	var out ParquetOptions
	if o != nil {
		out = *o
	}
	if out.RecordSize <= 0 {
		out.RecordSize = 100_000
	}
	if out.RecordSize > maxRecordSize {
		return out, fmt.Errorf("refs: partitions of %d references, at most %d", out.RecordSize, maxRecordSize)
	}
	if out.MaxMemory <= 0 {
		out.MaxMemory = 256 << 20
	}
	return out, nil
}

// WriteParquet writes a parquet set to dest, which must be empty, as fsspec's
// LazyReferenceMapper and kerchunk lay it out (References specification,
// "Parquet references"): ".zmetadata", and for each array partitions that are
// padded to the record size; one in which nothing is set is not written. The
// same entries give the same bytes. ".zmetadata" is written last: without it
// there is no set.
//
// The ".zarray" of an array comes before its chunks. Chunks come in C order, or
// in any order as long as all partitions that are partly filled fit MaxMemory;
// else the error is [ErrLimit]. By default any order works up to some ten
// million references.
//
// A parquet set holds less than a JSON set, and an entry that it cannot hold is
// [ErrInvalid]: values that are neither chunks of a Zarr v2 array nor metadata
// documents, and the chunks of an array at the root, which fsspec does not
// find. An array whose keys have "/" between coordinates is written with ".",
// the only separator that fsspec reads. An entry ".zmetadata", the consolidated
// metadata of a JSON set, is left out.
func WriteParquet(ctx context.Context, dest kv.Writer, entries iter.Seq2[Entry, error], o *ParquetOptions) error {
	opts, err := o.withDefaults()
	if err != nil {
		return err
	}
	if l, ok := dest.(kv.Lister); ok {
		// A partition of another set would become part of this one.
		any, err := kv.Any(ctx, l, "")
		if any {
			err = fmt.Errorf("refs: parquet set: the destination is not empty: %w", fs.ErrExist)
		}
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	w := &parquetWriter{o: opts, arrays: map[string]*writtenArray{}}
	w.files.start(ctx, dest, int(opts.RecordSize))
	defer w.files.finish()
	n := 0
	for e, err := range entries {
		if err != nil {
			return err
		}
		if n++; n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := w.entry(&e); err != nil {
			return err
		}
	}
	return w.finish(ctx, dest)
}

// parquetWriter collects references in partitions. Each is written, by another
// goroutine, when it is full or when memory is needed for another.
type parquetWriter struct {
	o      ParquetOptions
	docs   []doc
	arrays map[string]*writtenArray // by prefix
	last   *writtenArray            // where the chunk before belongs

	open  list.List // of *filling, the last used in front
	bytes int64     // of all of them
	files fileWriter
}

// writtenArray is an array that is being written.
type writtenArray struct {
	array
	parts map[int64]*filling // by number; nil where it was written
	last  *filling           // partition of the chunk before
}

// filling is a partition that is being filled.
type filling struct {
	a      *writtenArray
	number int64
	left   int // rows not set
	table  parquet.Table
	set    []bool           // rows
	known  map[string]int32 // numbers of URLs, empty while each new URL is the greatest
	url    string           // the one used last
	urlAt  int32
	bytes  int64
	place  *list.Element
}

// isDocument reports whether a parquet set holds the value of a key as a
// metadata document: fsspec takes those for ones that no folder holds, and
// those with a name that begins with ".z".
func isDocument(key string) bool {
	return !strings.Contains(key, "/") || strings.HasPrefix(key, ".z") || strings.Contains(key, "/.z")
}

func (w *parquetWriter) entry(e *Entry) error {
	if err := checkKey(e.Key); err != nil {
		return keyError(e.Key, err)
	}
	if e.Key == zmetadataName {
		return nil
	}
	if path.Base(e.Key) == "zarr.json" {
		return keyError(e.Key, invalid("a parquet set holds Zarr v2 only, and this is Zarr v3; a JSON set holds both"))
	}
	if isDocument(e.Key) {
		return keyError(e.Key, w.document(e))
	}
	a, number := w.chunk(e.Key)
	if a == nil {
		return keyError(e.Key, invalid("a parquet set cannot hold it: no .zarray that stands before it says that it is a chunk"))
	}
	if err := e.check(); err != nil {
		return keyError(e.Key, err)
	}
	p, err := w.partition(a, number/a.record)
	if err != nil {
		return keyError(e.Key, err)
	}
	before := p.bytes
	p.put(int(number%a.record), &e.Reference)
	w.bytes += p.bytes - before
	if p.left == 0 {
		return w.write(p)
	}
	return w.shrink(p)
}

// check returns an error for a reference that no set can have.
func (r *Reference) check() error {
	switch {
	case r.Inline():
		return nil
	case r.Offset < 0 || r.Whole() && r.Offset != 0:
		return invalid("offset %d", r.Offset)
	case !utf8.ValidString(r.URL):
		return invalid("URL %s is not UTF-8", quoteURL(r.URL))
	}
	return nil
}

// document keeps a metadata document.
func (w *parquetWriter) document(e *Entry) (err error) {
	if !e.Inline() {
		if !strings.HasPrefix(e.Key, ".z") && !strings.Contains(e.Key, "/.z") {
			return invalid("a parquet set has no chunks at its root")
		}
		return invalid("a parquet set holds its documents, and this one is a reference")
	}
	prefix, isArray := strings.CutSuffix(e.Key, ".zarray")
	isArray = isArray && (prefix == "" || strings.HasSuffix(prefix, "/"))
	c := cursor{b: e.Data, eof: true}
	if x, err := c.peek(); err != nil || x != '{' {
		return invalid("a parquet set cannot hold it: it is not a JSON object")
	}
	d := doc{key: e.Key}
	if d.data, err = dumpDocument(&c, isArray); err != nil {
		return err
	}
	if x, err := c.peek(); err == nil {
		return invalid("unexpected %s behind the object", printByte(x))
	}
	if isArray {
		a, err := newArray(prefix, e.Data, w.o.RecordSize)
		if err != nil {
			return err
		}
		old := w.arrays[prefix]
		if old != nil && (!slices.Equal(old.counts, a.counts) || old.sep != a.sep) {
			return invalid("the array is there twice, with other chunks")
		}
		if old == nil && prefix != "" {
			w.arrays[prefix] = &writtenArray{array: *a, parts: map[int64]*filling{}}
		}
	}
	w.docs = append(w.docs, d)
	return nil
}

// dumpDocument prints an object as Python does. In the document of an array "."
// becomes the separator.
func dumpDocument(c *cursor, array bool) ([]byte, error) {
	out := []byte{'{'}
	separator := false
	err := c.members(true, func(key bool) (err error) {
		if !key {
			if separator {
				out = append(out, `"."`...)
				return c.skip(0)
			}
			out, err = pythonStyle.dump(out, c, 1)
			return err
		}
		if len(out) > 1 {
			out = append(out, pythonStyle.comma...)
		}
		name, err := c.str()
		separator = array && string(name) == "dimension_separator"
		out = append(pythonStyle.appendString(out, name), pythonStyle.colon...)
		return err
	})
	return append(out, '}'), err
}

// chunk finds the array that a key belongs to, and the number of the chunk.
func (w *parquetWriter) chunk(key string) (*writtenArray, int64) {
	if a := w.last; a != nil && strings.HasPrefix(key, a.prefix) {
		if n, ok := a.number(key[len(a.prefix):]); ok {
			return a, n
		}
	}
	for end := len(key); ; {
		i := strings.LastIndexByte(key[:end], '/') + 1
		if i == 0 {
			return nil, 0
		}
		if a := w.arrays[key[:i]]; a != nil {
			if n, ok := a.number(key[i:]); ok {
				w.last = a
				return a, n
			}
		}
		end = i - 1
	}
}

// Memory of an open partition, about.
const (
	fillingBytes = 400
	fillingRow   = 4 + 8 + 8 + 1
	fillingURL   = 64
	fillingRaw   = 24
)

// partition returns a partition to put something into.
func (w *parquetWriter) partition(a *writtenArray, number int64) (*filling, error) {
	p, known := a.last, true
	if p == nil || p.number != number {
		p, known = a.parts[number]
	}
	if p != nil {
		a.last = p
		if w.open.Front() != p.place {
			w.open.MoveToFront(p.place)
		}
		return p, nil
	}
	if known {
		return nil, limit("%s is written already: the chunk is there twice, or chunks are in an order that takes more than %d bytes (MaxMemory)", a.file(number), w.o.MaxMemory)
	}
	rows := int(a.rows(number))
	p = &filling{a: a, number: number, left: rows, set: make([]bool, rows), urlAt: -1}
	p.table = parquet.Table{Path: make([]int32, rows), Offset: make([]int64, rows), Size: make([]int64, rows)}
	for i := range p.table.Path {
		p.table.Path[i] = -1
	}
	p.bytes = fillingBytes + fillingRow*int64(rows)
	w.bytes += p.bytes
	p.place = w.open.PushFront(p)
	a.parts[number], a.last = p, p
	return p, nil
}

// put sets a row. A row that was set before gets another value.
func (p *filling) put(row int, r *Reference) {
	t := &p.table
	if !p.set[row] {
		p.set[row] = true
		p.left--
	}
	t.Path[row], t.Offset[row], t.Size[row] = -1, 0, 0
	if row < len(t.Raw) {
		p.bytes -= int64(len(t.Raw[row]))
		t.Raw[row] = nil
	}
	if r.Inline() || r.Length == 0 {
		// A URL with size 0 is the whole file, so no bytes are bytes of their own.
		if t.Raw == nil {
			t.Raw = make([][]byte, len(t.Path))
			p.bytes += fillingRaw * int64(len(t.Path))
		}
		t.Raw[row] = rawBytes(r.Data)
		p.bytes += int64(len(t.Raw[row]))
		return
	}
	if r.URL != p.url || p.urlAt < 0 {
		p.url, p.urlAt = r.URL, p.path(r.URL)
	}
	t.Path[row] = p.urlAt
	if !r.Whole() {
		t.Offset[row], t.Size[row] = r.Offset, r.Length
	}
}

// path returns the number of a URL, which it adds if it is new. As long as each
// new URL is greater than all before, as in a series of files, nothing has to be
// looked up.
func (p *filling) path(url string) int32 {
	t := &p.table
	n := int32(len(t.Paths))
	ascends := p.known == nil && (n == 0 || url > t.Paths[n-1])
	if !ascends {
		if p.known == nil {
			p.known = make(map[string]int32, n+1)
			for i, url := range t.Paths {
				p.known[url] = int32(i)
			}
		}
		if at, ok := p.known[url]; ok {
			return at
		}
		p.known[url] = n
	}
	t.Paths = append(t.Paths, url)
	p.bytes += fillingURL + int64(len(url))
	return n
}

// rawBytes returns the bytes that readers take for data, never nil.
func rawBytes(data []byte) []byte {
	if bytes.HasPrefix(data, []byte(base64Prefix)) {
		return base64.StdEncoding.AppendEncode([]byte(base64Prefix), data)
	}
	if data == nil {
		return []byte{}
	}
	return data
}

// shrink writes the partitions that were not used for the longest time until
// the rest fits; keep stays.
func (w *parquetWriter) shrink(keep *filling) error {
	for w.bytes > w.o.MaxMemory {
		p := w.open.Back().Value.(*filling)
		if p == keep { // the only partition in memory: keep was used last
			return limit("%s alone takes more than %d bytes (MaxMemory)", p.a.file(p.number), w.o.MaxMemory)
		}
		if err := w.write(p); err != nil {
			return err
		}
	}
	return nil
}

// write gives a partition to the goroutine that writes it.
func (w *parquetWriter) write(p *filling) error {
	w.bytes -= p.bytes
	w.open.Remove(p.place)
	p.a.parts[p.number] = nil
	if p.a.last == p {
		p.a.last = nil
	}
	return w.files.write(p, p.bytes > w.o.MaxMemory/8)
}

// nesting refuses an array among the chunks of another one: a key would be a
// chunk of both. It needs the separators of the keys, which the index lacks.
func (w *parquetWriter) nesting() error {
	var p partitioned
	for _, prefix := range slices.Sorted(maps.Keys(w.arrays)) {
		p.arrays = append(p.arrays, w.arrays[prefix].array)
	}
	return p.checkNesting()
}

// finish writes the remaining partitions and the index.
func (w *parquetWriter) finish(ctx context.Context, dest kv.Writer) error {
	if err := w.nesting(); err != nil {
		return err
	}
	var left []*filling
	for e := w.open.Front(); e != nil; e = e.Next() {
		left = append(left, e.Value.(*filling))
	}
	slices.SortFunc(left, func(a, b *filling) int {
		return cmp.Or(strings.Compare(a.a.prefix, b.a.prefix), cmp.Compare(a.number, b.number))
	})
	for _, p := range left {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.write(p); err != nil {
			return err
		}
	}
	if err := w.files.finish(); err != nil {
		return err
	}
	p := partitioned{recordSize: w.o.RecordSize, docs: w.docs}
	if err := p.findArrays(); err != nil {
		return err
	}
	if err := dest.Set(ctx, zmetadataName, p.append(nil)); err != nil {
		return fmt.Errorf("refs: %s: %w", zmetadataName, err)
	}
	return nil
}

// append prints the index as Python does.
func (p *partitioned) append(b []byte) []byte {
	b = append(b, `{"metadata": {`...)
	for i, d := range p.docs {
		if i > 0 {
			b = append(b, pythonStyle.comma...)
		}
		b = append(pythonStyle.appendString(b, []byte(d.key)), pythonStyle.colon...)
		b = append(b, d.data...)
	}
	return fmt.Appendf(b, `}, "record_size": %d}`, p.recordSize)
}
