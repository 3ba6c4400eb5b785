package refs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/internal/chunklist"
	"github.com/zarrdb/zarrdb/kv"
)

// zmetadataName is the index of a parquet set: the Zarr v2 documents of all
// nodes, and how many references a partition has.
const zmetadataName = ".zmetadata"

// doc is a metadata document.
type doc struct {
	key  string
	data []byte
}

// partitioned is the index of a parquet set in memory.
//
//	.zmetadata            {"metadata": {"a/.zarray": …}, "record_size": 4}
//	a/refs.0.parq         references 0 to 3 of array a, in C order of its chunks
//	a/refs.1.parq         references 4 to 7, …
type partitioned struct {
	recordSize int64
	docs       []doc   // by key
	arrays     []array // by prefix

	skipped func(key string) // see [ReadOptions.Skipped]
}

// array is where the chunks of an array are.
type array struct {
	prefix string  // of keys and of partition files: the path and a slash
	counts []int64 // chunks along each dimension; one of 1 for rank 0
	total  int64   // chunks
	sep    byte    // between coordinates in a key
	record int64   // references in a partition
}

// partitions is how many partitions hold all chunks.
func (a *array) partitions() int64 {
	if a.total == 0 {
		return 0
	}
	return (a.total-1)/a.record + 1
}

// rows returns the number of references of a partition that are chunks; the rest fills it up.
func (a *array) rows(partition int64) int64 {
	return min(a.record, a.total-partition*a.record)
}

func (a *array) file(partition int64) string {
	return a.prefix + "refs." + strconv.FormatInt(partition, 10) + ".parq"
}

// readZmetadata reads the index of the set in dir.
func readZmetadata(ctx context.Context, dir kv.Reader, o ReadOptions) (*partitioned, error) {
	v, err := kv.Locate(ctx, dir, zmetadataName)
	if err != nil {
		return nil, err
	}
	if v.Size() > int64(o.MaxValue) {
		return nil, limit("%s has %d bytes (MaxValue)", zmetadataName, v.Size())
	}
	text, err := kv.ReadValue(ctx, v, kv.All())
	if err != nil {
		return nil, err
	}
	p := &partitioned{skipped: o.Skipped}
	if err := p.parse(text); err != nil {
		var syn *syntaxError
		if errors.As(err, &syn) {
			err = &syntaxError{text: syn.text, at: syn.at, placed: true}
		}
		return nil, fmt.Errorf("refs: %s: %w", zmetadataName, err)
	}
	return p, nil
}

func (p *partitioned) parse(text []byte) error {
	c := cursor{b: text, eof: true}
	name, metadata := "", false
	p.recordSize = -1
	err := c.members(true, func(key bool) error {
		if key {
			s, err := c.str()
			name = string(s)
			return err
		}
		switch name {
		case "record_size":
			n, err := c.integer()
			if err == errNoInteger || err == nil && n < 1 {
				return invalid("record_size must be a positive integer")
			}
			p.recordSize = n
			return err
		case "metadata":
			metadata = true
			p.docs = nil
			return p.parseDocs(&c)
		}
		return c.skip(0)
	})
	if err != nil {
		return err
	}
	if x, err := c.peek(); err == nil {
		return c.fail("unexpected " + printByte(x) + " behind the object")
	}
	if p.recordSize < 0 {
		return invalid("record_size is missing")
	}
	if !metadata {
		return invalid("metadata is missing")
	}
	return p.findArrays()
}

// parseDocs reads the object of documents: each an object, or its text.
func (p *partitioned) parseDocs(c *cursor) error {
	key := ""
	return c.members(true, func(isKey bool) (err error) {
		if isKey {
			s, err := c.str()
			key = string(s)
			return err
		}
		if hasNUL(key) {
			p.skipped(key)
			return c.skip(0)
		}
		if err := checkKey(key); err != nil {
			return keyError(key, err)
		}
		d := doc{key: key}
		switch x, err := c.peek(); {
		case err != nil:
			return err
		case x == '"':
			s, err := c.str()
			if err != nil {
				return err
			}
			d.data = slices.Clone(s)
		case x == '{':
			if d.data, err = pythonStyle.dump(nil, c, 0); err != nil {
				return err
			}
		default:
			return keyError(key, invalid("a document is an object or a string"))
		}
		p.docs = append(p.docs, d)
		return nil
	})
}

// findArrays sorts the documents, of which the last of each key counts, and
// takes the geometry of arrays out of them.
func (p *partitioned) findArrays() error {
	slices.SortStableFunc(p.docs, func(a, b doc) int { return strings.Compare(a.key, b.key) })
	out := p.docs[:0]
	for i, d := range p.docs {
		if i+1 == len(p.docs) || p.docs[i+1].key != d.key {
			out = append(out, d)
		}
	}
	p.docs = out
	for _, d := range p.docs {
		prefix, ok := strings.CutSuffix(d.key, ".zarray")
		if !ok || prefix != "" && prefix[len(prefix)-1] != '/' {
			continue
		}
		a, err := newArray(prefix, d.data, p.recordSize)
		if err != nil {
			return keyError(d.key, err)
		}
		p.arrays = append(p.arrays, *a)
	}
	slices.SortFunc(p.arrays, func(a, b array) int { return strings.Compare(a.prefix, b.prefix) })
	return p.checkNesting()
}

// checkNesting refuses an array among the chunks of another one, such as
// "a/0" in "a" where keys of chunks are "a/0/0".
func (p *partitioned) checkNesting() error {
	for i := range p.arrays {
		a := &p.arrays[i]
		if a.sep != '/' {
			continue
		}
		for j := i + 1; j < len(p.arrays) && strings.HasPrefix(p.arrays[j].prefix, a.prefix); j++ {
			if x := p.arrays[j].prefix[len(a.prefix)]; x >= '0' && x <= '9' {
				return invalid("array %s lies among the chunks of %s", quote(p.arrays[j].prefix), quote(a.prefix))
			}
		}
	}
	return nil
}

// maxRank bounds the dimensions of an array; NumPy has as many.
const maxRank = 64

// newArray takes shape, chunks and separator out of a ".zarray" document.
func newArray(prefix string, data []byte, record int64) (*array, error) {
	var shape, chunks []int64
	var haveShape, haveChunks bool
	a := &array{prefix: prefix, sep: '.', total: 1, record: record}
	name := ""
	c := cursor{b: data, eof: true}
	err := c.members(true, func(key bool) (err error) {
		if key {
			s, err := c.str()
			name = string(s)
			return err
		}
		switch name {
		case "shape":
			haveShape = true
			shape, err = integers(&c)
		case "chunks":
			haveChunks = true
			chunks, err = integers(&c)
		case "dimension_separator":
			var x byte
			if x, err = c.peek(); err != nil || x != '"' {
				return c.skip(0) // null is the default
			}
			var s []byte
			if s, err = c.str(); err == nil && string(s) != "." && string(s) != "/" {
				return invalid("dimension_separator %s", quote(string(s)))
			} else if err == nil {
				a.sep = s[0]
			}
		default:
			return c.skip(0)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if !haveShape || !haveChunks || len(shape) != len(chunks) {
		return nil, invalid("shape and chunks are missing or of different rank")
	}
	if len(shape) > maxRank {
		return nil, limit("%d dimensions, at most %d", len(shape), maxRank)
	}
	for d, n := range shape {
		if n < 0 || chunks[d] < 0 || chunks[d] == 0 && n > 0 {
			return nil, invalid("shape %d in chunks of %d", n, chunks[d])
		}
		count := int64(0)
		if n > 0 {
			count = (n-1)/chunks[d] + 1
		}
		a.counts = append(a.counts, count)
		if count > 0 && a.total > math.MaxInt64/count {
			return nil, invalid("more than 2^63 chunks")
		}
		a.total *= count
	}
	if len(shape) == 0 {
		a.counts = []int64{1}
	}
	return a, nil
}

// integers reads a list of integers.
func integers(c *cursor) (out []int64, err error) {
	out = []int64{}
	err = c.members(false, func(bool) error {
		v, err := c.integer()
		if err == errNoInteger {
			return invalid("shape or chunks: %v", err)
		}
		out = append(out, v)
		return err
	})
	return out, err
}

// doc returns the document of a key.
func (p *partitioned) doc(key string) ([]byte, bool) {
	i := sort.Search(len(p.docs), func(i int) bool { return p.docs[i].key >= key })
	if i < len(p.docs) && p.docs[i].key == key {
		return p.docs[i].data, true
	}
	return nil, false
}

// array returns the array with a prefix.
func (p *partitioned) array(prefix string) *array {
	i := sort.Search(len(p.arrays), func(i int) bool { return p.arrays[i].prefix >= prefix })
	if i < len(p.arrays) && p.arrays[i].prefix == prefix {
		return &p.arrays[i]
	}
	return nil
}

// chunk finds the array that a key belongs to, and the number of the chunk.
func (p *partitioned) chunk(key string) (a *array, number int64) {
	end := len(key)
	for {
		i := strings.LastIndexByte(key[:end], '/') + 1
		if a := p.array(key[:i]); a != nil {
			if n, ok := a.number(key[i:]); ok {
				return a, n
			}
		}
		// With "/" between coordinates the array is further up.
		if i == 0 || key[i-1:i] != "/" || i == end || !digit(key[i]) {
			return nil, 0
		}
		end = i - 1
	}
}

func digit(x byte) bool { return x >= '0' && x <= '9' }

// number returns the number of a chunk in C order.
func (a *array) number(coords string) (n int64, ok bool) {
	for d, count := range a.counts {
		word := coords
		if d < len(a.counts)-1 {
			i := strings.IndexByte(coords, a.sep)
			if i < 0 {
				return 0, false
			}
			word, coords = coords[:i], coords[i+1:]
		}
		v, ok := chunklist.ParseNumber(word)
		if !ok || v >= count {
			return 0, false
		}
		n = n*count + v
	}
	return n, true
}
