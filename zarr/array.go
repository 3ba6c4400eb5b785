package zarr

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Array is an array in a view. It is a handle: it holds the metadata of when the
// array was opened, or last changed through this handle, and no chunks. Changes
// start from the stored metadata: see [Array.SetAttributes] and [Array.Resize].
// A write takes over a shape that another handle stored, if both share
// [OpenOptions].Locks, as all handles of a session do.
//
// Reading is safe for concurrent use. Writing is too: writes to different
// chunks do not wait for each other, and two writes to parts of one chunk
// through one Array, or Arrays that share [OpenOptions].Locks, both take
// effect. Writers in other processes are not seen; a session of a database
// turns them into conflicts.
type Array struct {
	view   kv.Reader
	writer kv.Writer
	// replacer is writer if other processes write to the array too, nil otherwise.
	replacer kv.Replacer
	// readOnly is why writer is nil.
	readOnly error
	loc      location
	opts     OpenOptions
	locks    *ChunkLocks
	images   *images
	image    atomic.Pointer[levelOf] // nil until it was looked for

	// change serialises Resize, Append and SetAttributes.
	change ctxlock.Lock
	st     atomic.Pointer[arrayState]
}

// arrayState is derived from the metadata. It is immutable: resizing makes a new
// one.
type arrayState struct {
	meta *Meta
	// size is the bytes of one element in memory, 0 if it varies.
	size int
	// lens and form describe the chunks of a grid whose chunks are all alike;
	// lens is nil for any other.
	lens []int
	form *chunkForm
	// forms holds the forms of chunks of other shapes, by shape.
	forms   formCache
	indexes indexCache
	// shapes is the number of changes of the shape, as counted by the locks,
	// that meta includes.
	shapes int64
}

// newArray returns the array that has the metadata.
func newArray(view kv.Reader, loc location, p *parsed, o OpenOptions) (*Array, error) {
	a := &Array{view: view, loc: loc, opts: o, locks: o.Locks}
	a.writer, a.readOnly = writerOf(view, p.meta.Version)
	a.replacer, _ = a.writer.(kv.Replacer)
	if a.locks == nil {
		a.locks = NewChunkLocks()
	}
	st, err := newState(p, o.MaxChunkBytes)
	if err != nil {
		return nil, err
	}
	a.st.Store(st)
	return a, nil
}

func newState(p *parsed, limit int64) (*arrayState, error) {
	m := p.meta
	st := &arrayState{meta: m, size: m.Type.Size(), lens: p.lens, form: p.form}
	st.forms.limit = limit
	if st.lens != nil {
		return st, nil
	}
	// Any chunk shape shows whether the codecs fit the array.
	for d, n := range m.Shape {
		if m.Grid.Count(d, n) == 0 {
			return st, nil
		}
	}
	shape := m.Grid.ChunkShape(nil, make([]int64, len(m.Shape)))
	_, err := st.forms.get(m, shape)
	return st, err
}

// chunkForm is the common state of all chunks of one shape.
type chunkForm struct {
	bound   *codecs.Bound
	shape   []int
	strides []int // bytes, C order; for variable-length elements counted in elements
	count   int   // elements
	bytes   int   // decoded; 0 for variable-length elements
	inner   []int // shape of the inner chunks of a shard that can be read in part, else nil
	// indexed means that inner chunks can also be replaced one by one.
	indexed bool
	// uncached means that a cache does not help: the encoded bytes are the
	// elements, except for their order.
	uncached bool
	// name returns the codec part of the name of a cache entry. Most arrays of a
	// listing are never read, and it is half of the price of a form.
	name func() [16]byte
}

func newForm(m *Meta, shape []int, limit int64) (*chunkForm, error) {
	wide := make([]int64, len(shape))
	for d, n := range shape {
		wide[d] = int64(n)
	}
	n, ok := elements(wide)
	size := int64(max(m.Type.Size(), 1))
	if !ok || n > limit/size {
		return nil, fmt.Errorf("%w: a chunk of shape %v and %d byte elements is larger than %d bytes", ErrTooLarge, shape, size, limit)
	}
	bound, err := m.Codecs.Bind(codecs.Rep{Type: m.Type, Shape: shape, Fill: m.Fill, Max: limit})
	if err != nil {
		return nil, err
	}
	f := &chunkForm{bound: bound, shape: shape, count: int(n)}
	if bound.Partial() {
		f.inner = bound.InnerShape()
		_, err := bound.ReadIndex(context.Background(), codecs.Bytes(nil))
		f.indexed = f.inner != nil && !errors.Is(err, errors.ErrUnsupported)
	}
	if !m.Type.Variable() {
		f.bytes = int(n) * m.Type.Size()
	}
	f.strides = packed(make([]int, len(shape)), shape, int(size))
	f.uncached = bound.Partial() && f.inner == nil && bound.EncodedSize() == int64(f.bytes)
	f.name = sync.OnceValue(func() [16]byte { return formName(m, shape) })
	return f, nil
}

// packed sets strides to the strides of a C-order array with elements of size bytes.
func packed(strides, shape []int, size int) []int {
	for d := len(shape) - 1; d >= 0; d-- {
		strides[d] = size
		size *= shape[d]
	}
	return strides
}

// formName hashes everything that decoded bytes depend on but the encoded
// ones: codecs, data type, fill value, and the shape of the chunk.
func formName(m *Meta, shape []int) (name [16]byte) {
	h := sha256.Sum256(fmt.Appendf(nil, "%s %v", m.StructureKey(), shape))
	copy(name[:], h[:])
	return name
}

// formCache holds the forms of a grid with chunks of several shapes.
type formCache struct {
	limit int64
	mu    sync.Mutex
	forms map[string]*chunkForm
}

// maxForms bounds the cached shapes; binding again is cheap.
const maxForms = 256

// get returns the form of chunks of that shape, which it may keep.
func (c *formCache) get(m *Meta, shape []int) (*chunkForm, error) {
	key := make([]byte, 0, 64)
	for _, n := range shape {
		key = binary.AppendUvarint(key, uint64(n))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.forms[string(key)]; f != nil {
		return f, nil
	}
	f, err := newForm(m, slices.Clone(shape), c.limit)
	if err != nil {
		return nil, err
	}
	if c.forms == nil || len(c.forms) >= maxForms {
		c.forms = make(map[string]*chunkForm)
	}
	c.forms[string(key)] = f
	return f, nil
}

// formOf returns the form of the chunk at coords. shape is scratch.
func (st *arrayState) formOf(coords []int64, shape *[]int) (*chunkForm, error) {
	if st.form != nil {
		return st.form, nil
	}
	*shape = st.meta.Grid.ChunkShape((*shape)[:0], coords)
	return st.forms.get(st.meta, *shape)
}

// Meta returns the metadata, which must not be changed.
func (a *Array) Meta() *Meta { return a.st.Load().meta }

// Path is the path of the array in the view, without slashes around it; ""
// is the root.
func (a *Array) Path() string { return a.loc.path }

// Shape returns the length of each dimension in elements. The caller owns the
// slice.
func (a *Array) Shape() []int64 { return slices.Clone(a.Meta().Shape) }

// Type returns the data type.
func (a *Array) Type() dtype.Type { return a.Meta().Type }

// InnerChunks returns the shape of the inner chunks of a shard that can be read without
// the rest of that shard; nil if a chunk is decoded as a whole, or if chunks have
// different shapes. The caller owns the slice.
func (a *Array) InnerChunks() []int {
	if f := a.st.Load().form; f != nil {
		return slices.Clone(f.inner)
	}
	return nil
}

// DimensionNames returns a name per dimension, "" for one without, as
// [ParseSelection] takes them. An opened array without names of its own has the names of the
// axes of its OME-Zarr image; see [Array.Image]. The caller owns the slice.
func (a *Array) DimensionNames() []string {
	m := a.Meta()
	if l := a.image.Load(); l != nil && l.Level != nil && l.Axes != nil && m.DimensionNames == nil {
		return l.Names()
	}
	names := make([]string, len(m.Shape))
	for d, n := range m.DimensionNames {
		if n != nil && d < len(names) {
			names[d] = *n
		}
	}
	return names
}

// Resolve returns the shape of the result of sel. Errors are [ErrSelection].
func (a *Array) Resolve(sel Selection) ([]int64, error) {
	shape, err := a.resolve(sel)
	return shape, a.fail("select", err)
}

func (a *Array) resolve(sel Selection) ([]int64, error) { return sel.Resolve(a.Meta().Shape) }

// fail names the array in an error.
func (a *Array) fail(op string, err error) error { return failAt(op, a.loc.path, err) }

// ChunkKey returns the key of the chunk at coords, an index into the grid per
// dimension, in the view that the array was opened in.
func (a *Array) ChunkKey(coords []int64) string {
	m := a.Meta()
	return string(m.Keys.Append([]byte(a.loc.chunks), coords))
}

// ChunkPrefix is what the key of every chunk begins with, in the view that the array was opened in. Meta().Keys spells
// the rest.
func (a *Array) ChunkPrefix() string { return a.loc.chunks }

// Chunk is a chunk of the grid.
type Chunk struct {
	// Coords is its place in the grid.
	Coords []int64
	// Key is its key in the view of the array.
	Key string
	// Start and Shape are the part of the array that it holds, in elements:
	// edge chunks are cut.
	Start, Shape []int64
}

// Chunks yields the chunks that sel touches, stored or not, each once and in C
// order of the grid. It does no I/O, and takes constant memory for slices of any
// length. The sequence ends after an error: [ErrSelection], or the error of
// ctx. Each Chunk is the caller's.
func (a *Array) Chunks(ctx context.Context, sel Selection) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		st := a.st.Load()
		var p plan
		if err := p.prepare(st, sel, false); err != nil {
			yield(Chunk{}, a.fail("select", err))
			return
		}
		coords := make([]int64, len(st.meta.Shape))
		for i := int64(0); i < p.chunks; i++ {
			if err := ctx.Err(); err != nil {
				yield(Chunk{}, err)
				return
			}
			p.coords(st, i, coords)
			if !yield(a.chunkAt(st, coords), nil) {
				return
			}
		}
	}
}

// chunkAt describes a chunk.
func (a *Array) chunkAt(st *arrayState, coords []int64) Chunk {
	c := Chunk{Coords: slices.Clone(coords), Key: a.ChunkKey(coords)}
	c.Start = make([]int64, len(coords))
	c.Shape = make([]int64, len(coords))
	shape := st.meta.Grid.ChunkShape(nil, coords)
	for d, i := range coords {
		c.Start[d] = st.meta.Grid.Start(d, i)
		c.Shape[d] = min(int64(shape[d]), st.meta.Shape[d]-c.Start[d])
	}
	return c
}
