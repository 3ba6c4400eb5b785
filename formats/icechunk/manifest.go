package icechunk

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// manifest is a file of references: of each array, the chunks in the order of their
// coordinates. It stays as it is stored, and references are read out of it. Safe for
// concurrent use.
type manifest struct {
	body   []byte
	arrays []manifestArray // by node

	dictionary []byte // of compressed URLs, nil without one
	inflating  sync.Mutex
	inflater   *zstd.Decoder
	room       []byte // of the URL that is decompressed
}

// manifestArray says where in the body the references of an array are.
type manifestArray struct {
	node   nodeID
	pos, n int
	dims   int
}

// Fields of a ChunkRef.
const (
	refIndex, refInline, refOffset, refLength, refChunk = 0, 1, 2, 3, 4
	refLocation, refETag, refModified, refCompressed    = 5, 6, 7, 8
)

// maxDims is how many dimensions an array may have.
const maxDims = 255

// parseManifest checks a manifest, all references in it and their order.
func parseManifest(body []byte, want objectID) (*manifest, error) {
	f := &buffer{b: body}
	root := f.root()
	if id := root.id12(0, "the id of the manifest"); f.err == nil && id != want {
		f.fail("it says that it is manifest %v", id)
	}
	m := &manifest{body: body}
	switch root.u8(3, 1) {
	case 0:
	case 1:
		m.dictionary = root.bytes(2)
	default:
		return nil, formats.Unsupported("compression %d of the URLs of an Icechunk manifest", root.u8(3, 1))
	}
	list := root.need(1, 4, "arrays of the manifest")
	m.arrays = make([]manifestArray, 0, list.n)
	total := 0
	for i := range list.n {
		t := list.table(i)
		v := t.need(1, 4, "references of an array")
		a := manifestArray{node: t.id8(0, "the id of an array"), pos: v.pos, n: v.n}
		if len(m.arrays) > 0 && bytes.Compare(m.arrays[len(m.arrays)-1].node[:], a.node[:]) >= 0 {
			f.fail("arrays are not in the order of their ids")
		}
		if total += v.n; total > len(body)/8 {
			f.fail("references are shared by arrays")
		}
		if f.err != nil {
			return nil, f.err
		}
		a.dims = checkOrder(v)
		m.arrays = append(m.arrays, a)
	}
	if f.err != nil {
		return nil, f.err
	}
	return m, nil
}

// checkOrder makes sure that references can be found by their coordinates, and returns
// how many these are.
func checkOrder(v vector) (dims int) {
	var before vector
	for i := range v.n {
		index := v.table(i).vector(refIndex, 4)
		switch {
		case v.f.err != nil:
			return 0
		case index.pos == 0:
			v.f.fail("the coordinates of a chunk are missing")
		case i > 0 && index.n != before.n || index.n > maxDims:
			v.f.fail("a chunk has %d coordinates", index.n)
		case i > 0 && compareIndex(before, index) >= 0:
			v.f.fail("chunks are not in the order of their coordinates")
		}
		before = index
	}
	return before.n
}

func compareIndex(a, b vector) int {
	for d := range min(a.n, b.n) {
		if x, y := a.u32(d), b.u32(d); x != y {
			if x < y {
				return -1
			}
			return 1
		}
	}
	return a.n - b.n
}

// array finds the references of an array.
func (m *manifest) array(node nodeID) (manifestArray, bool) {
	i, ok := slices.BinarySearchFunc(m.arrays, node, func(a manifestArray, node nodeID) int { return bytes.Compare(a.node[:], node[:]) })
	if !ok {
		return manifestArray{}, false
	}
	return m.arrays[i], true
}

// vector returns the references of an array in a buffer of the body.
func (a manifestArray) vector(f *buffer) vector { return vector{f, a.pos, a.n, 4} }

// find returns the reference of a chunk, and whether there is one.
func (m *manifest) find(node nodeID, coords []uint32, urls *containers) (refs.Reference, bool, error) {
	t, ok, err := m.seek(node, coords)
	if !ok || err != nil {
		return refs.Reference{}, false, err
	}
	r, err := m.reference(t, urls)
	return r, err == nil, err
}

// seek finds the table of a chunk.
func (m *manifest) seek(node nodeID, coords []uint32) (table, bool, error) {
	a, ok := m.array(node)
	if !ok || a.dims != len(coords) {
		return table{}, false, nil
	}
	f := &buffer{b: m.body}
	v := a.vector(f)
	compare := func(i int) int {
		index := v.table(i).vector(refIndex, 4)
		for d := range min(index.n, len(coords)) {
			if x := index.u32(d); x != coords[d] {
				if x < coords[d] {
					return -1
				}
				return 1
			}
		}
		return 0
	}
	i := sort.Search(v.n, func(i int) bool { return compare(i) >= 0 })
	if i == v.n || compare(i) != 0 || f.err != nil {
		return table{}, false, f.err
	}
	return v.table(i), true, f.err
}

// each calls fn for the chunks of an array in the order of their coordinates, until it
// returns an error. coords is valid until fn returns.
func (m *manifest) each(node nodeID, fn func(coords []uint32, ref table) error) error {
	a, ok := m.array(node)
	if !ok {
		return nil
	}
	f := &buffer{b: m.body}
	v := a.vector(f)
	coords := make([]uint32, a.dims)
	inline := 0
	for i := range v.n {
		t := v.table(i)
		index := t.vector(refIndex, 4)
		if inline += t.vector(refInline, 1).n; inline > len(m.body) {
			f.fail("chunks share their bytes")
		}
		if f.err != nil {
			return f.err
		}
		for d := range coords {
			coords[d] = index.u32(d)
		}
		if err := fn(coords, t); err != nil {
			return err
		}
	}
	return nil
}

// reference reads where a chunk lies.
func (m *manifest) reference(t table, urls *containers) (r refs.Reference, err error) {
	inline, chunk, url := t.bytes(refInline), t.fixed(refChunk, 12), t.bytes(refLocation)
	if short := t.bytes(refCompressed); short != nil {
		if url != nil {
			t.f.fail("a chunk has two URLs")
		} else if url, err = m.inflate(short); err != nil {
			return r, err
		}
	}
	offset, length := t.u64(refOffset), t.u64(refLength)
	if offset > maxExtent || length > maxExtent {
		t.f.fail("a chunk of %d bytes at %d", length, offset)
	}
	switch {
	case t.f.err != nil:
	case inline != nil && chunk == nil && url == nil:
		return refs.Reference{Data: append([]byte{}, inline...)}, nil
	case inline == nil && chunk != nil && url == nil:
		return refs.Reference{URL: "chunks/" + crockford.EncodeToString(chunk), Offset: int64(offset), Length: int64(length)}, nil
	case inline == nil && chunk == nil && url != nil:
		if !utf8.Valid(url) || !strings.Contains(string(url), "://") {
			return r, formats.Invalid("%q is not a URL of a chunk", url)
		}
		r.Offset, r.Length = int64(offset), int64(length)
		if r.Condition = condition(t); t.f.err != nil {
			return r, t.f.err
		}
		absolute, err := urls.expand(string(url))
		if err == nil {
			r.URL, err = plainLocation(absolute)
		}
		return r, err
	default:
		t.f.fail("a chunk is not one of inline, native and virtual")
	}
	return r, t.f.err
}

// condition is the checksum of a virtual chunk, as a condition of its file.
func condition(t table) string {
	if tag := strings.Trim(string(t.bytes(refETag)), `"`); tag != "" {
		if len(tag) > maxTag || !utf8.ValidString(tag) {
			t.f.fail("an entity tag of %d bytes", len(tag))
		}
		return kv.IfMatch(tag)
	}
	if seconds := t.u32(refModified); seconds > 0 {
		return kv.IfUnmodifiedSince(time.Unix(int64(seconds), 0))
	}
	return ""
}

// maxTag is the longest entity tag.
const maxTag = 512

// maxExtent bounds offsets and lengths in files.
const maxExtent = 1 << 60

// maxLocation is the longest URL that may be compressed.
const maxLocation = 1 << 16

// inflate decompresses a URL.
func (m *manifest) inflate(b []byte) ([]byte, error) {
	m.inflating.Lock()
	defer m.inflating.Unlock()
	if m.inflater == nil {
		options := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(maxLocation)}
		if m.dictionary != nil {
			options = append(options, zstd.WithDecoderDicts(m.dictionary))
		}
		d, err := zstd.NewReader(nil, options...)
		if err != nil {
			return nil, formats.Invalid("the dictionary of URLs: %v", err)
		}
		m.inflater, m.room = d, make([]byte, 0, maxLocation)
	}
	out, err := m.inflater.DecodeAll(b, m.room)
	if err != nil {
		return nil, formats.Invalid("a compressed URL: %v", err)
	}
	return slices.Clone(out), nil
}

// size is about how many bytes it takes in memory.
func (m *manifest) size() int64 { return int64(len(m.body) + 48*len(m.arrays) + 1<<10) }

func manifestKey(id objectID) string { return "manifests/" + id.String() }

// badManifest names the manifest of an error.
func badManifest(id objectID, err error) error {
	return fmt.Errorf("icechunk: %s: %w", manifestKey(id), err)
}
