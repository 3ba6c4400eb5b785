package local

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// maxArrays bounds the open arrays of a version.
const maxArrays = 64

// array opens an array. One of a version is kept: its metadata never changes.
func (c *conn) array(ctx context.Context, v *view, path string) (*zarr.Array, error) {
	if v.Commit != nil {
		c.mu.Lock()
		a := v.arrays[path]
		c.mu.Unlock()
		if a != nil {
			return a, nil
		}
	}
	n, err := v.Node(ctx, path)
	if err != nil {
		return nil, err
	}
	a, ok := n.Array()
	if !ok {
		return nil, fmt.Errorf("/%s: %w: it is a group", path, zarr.ErrKind)
	}
	if v.Commit != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		for old := range v.arrays {
			if len(v.arrays) < maxArrays {
				break
			}
			delete(v.arrays, old)
		}
		if v.arrays == nil {
			v.arrays = map[string]*zarr.Array{}
		}
		v.arrays[path] = a
	}
	return a, nil
}

func (c *conn) arrayInfo(ctx context.Context, v *view, in *wire.Array) (*wire.ArrayInfo, error) {
	a, err := c.array(ctx, v, in.Path)
	if err != nil {
		return nil, err
	}
	m := a.Meta()
	out := &wire.ArrayInfo{Format: int(m.Version), Shape: m.Shape, Type: m.Type.Name(), Dimensions: a.DimensionNames()}
	if out.Type == "" {
		out.Type = m.Type.String()
	}
	if !m.Type.Variable() {
		out.ItemSize = m.Type.Size()
	}
	out.NumPy, _ = m.Type.NumPy()
	if m.Type.Kind() == dtype.Ragged {
		elem, _ := m.Type.Elem()
		out.NumPy, _ = elem.NumPy()
	}
	for _, n := range m.Grid.Regular() {
		out.Chunks = append(out.Chunks, int64(n))
	}
	for _, n := range a.InnerChunks() {
		out.Unit = append(out.Unit, int64(n))
	}
	if prefix, separator, ok := a.PlainKeys(); ok && out.ItemSize > 0 {
		out.Plain = &wire.PlainKeys{Prefix: prefix, Separator: separator}
	}
	out.Attributes, err = m.Attributes.MarshalJSON() // a bare NaN becomes a string
	return out, err
}

// elements is an array with a resolved selection.
type elements struct {
	a     *zarr.Array
	sel   zarr.Selection
	shape []int64
	item  int   // 0 for a type of variable length
	bytes int64 // unknown then
}

// elements resolves a selection. The bytes of a type of fixed size fit an int.
func (c *conn) elements(a *zarr.Array, text string) (*elements, error) {
	e := &elements{a: a}
	var err error
	if e.sel, err = zarr.ParseSelection(text, a.DimensionNames()); err != nil {
		return nil, err
	}
	if e.shape, err = a.Resolve(e.sel); err != nil {
		return nil, err
	}
	if a.Type().Variable() {
		return e, nil
	}
	e.item, e.bytes = a.Type().Size(), int64(a.Type().Size())
	for _, n := range e.shape {
		if n > 0 && e.bytes > math.MaxInt/n {
			return nil, fmt.Errorf("%w: a selection of shape %v", kv.ErrTooLarge, e.shape)
		}
		e.bytes *= n
	}
	return e, nil
}

// count is the number of elements of a type of variable length, which fits an int.
func (e *elements) count() (int, error) {
	n := int64(1)
	for _, k := range e.shape {
		if k > 0 && n > math.MaxInt32/k {
			return 0, fmt.Errorf("%w: a selection of shape %v", kv.ErrTooLarge, e.shape)
		}
		n *= k
	}
	return int(n), nil
}

// describe is the meta of the reply.
func (e *elements) describe() ([]byte, error) {
	out := wire.Elements{Shape: e.shape, ItemSize: e.item}
	out.NumPy, _ = e.a.Type().NumPy()
	return json.Marshal(out)
}

// memory is the file that a client passed for elements, nil if it passed none.
func memory(f *wire.Frame) (*os.File, error) {
	switch len(f.Files) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, fmt.Errorf("%w: %d descriptors where one or none is expected", ErrRequest, len(f.Files))
	}
	fi, err := f.Files[0].Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%w: elements go through a file or memory, not through %v", ErrRequest, fi.Mode().Type())
	}
	return f.Files[0], err
}

// tooLong is the error for n bytes of elements at once.
func (c *conn) tooLong(n int64) error {
	return fmt.Errorf("%w: the selection has %d bytes, more than %d; select less at a time", kv.ErrTooLarge, n, c.s.o.MaxBody)
}

// buffer returns memory for n bytes of elements. It is the memory of a block if the
// client named one, else memory of this process, which deliver writes to the file of
// the client: a file that is cut off while it is mapped would end the process.
func (c *conn) buffer(ctx context.Context, to *os.File, d wire.Destination, n int64) (b []byte, deliver func() (body []byte, err error), free func(), err error) {
	if d.Block != 0 {
		k, err := c.blocks.use(d.Block, to)
		if err != nil {
			return nil, nil, nil, err
		}
		if b, err = k.span(d.At, n); err != nil {
			c.blocks.give(k)
			return nil, nil, nil, err
		}
		return b, func() ([]byte, error) { return nil, nil }, func() { c.blocks.give(k) }, nil
	}
	if n > int64(c.s.o.MaxBody) {
		return nil, nil, nil, c.tooLong(n)
	}
	h, err := c.hold(ctx, n)
	if err != nil {
		return nil, nil, nil, err
	}
	b = make([]byte, n)
	return b, func() ([]byte, error) {
		if to == nil {
			return b, nil
		}
		if _, err := to.WriteAt(b, d.At); err != nil {
			return nil, fmt.Errorf("write the elements to the client: %w", err)
		}
		return nil, nil
	}, h.free, nil
}

// readElements sends decoded elements, or writes them to memory of the client.
func (c *conn) readElements(ctx context.Context, f *wire.Frame, v *view, in wire.Array) error {
	to, err := memory(f)
	if err != nil {
		return err
	}
	a, err := c.array(ctx, v, in.Path)
	if err != nil {
		return err
	}
	e, err := c.elements(a, in.Select)
	if err != nil {
		return err
	}
	if e.item == 0 {
		if to != nil || in.Block != 0 {
			return fmt.Errorf("%w: elements of type %v have no fixed size and do not go through memory", ErrRequest, a.Type())
		}
		return c.readVariable(ctx, f, e)
	}
	b, deliver, free, err := c.buffer(ctx, to, in.Destination, e.bytes)
	if err != nil {
		return err
	}
	defer free()
	if err := a.ReadBytes(ctx, e.sel, b); err != nil {
		return err
	}
	meta, err := e.describe()
	if err != nil {
		return err
	}
	body, err := deliver()
	if err != nil {
		return err
	}
	return c.send(f, &wire.Frame{Meta: meta, Body: body})
}

// fetch copies elements from a file or block of the client.
func (c *conn) fetch(b []byte, from *os.File, d wire.Destination) error {
	if d.Block == 0 {
		if _, err := from.ReadAt(b, d.At); err != nil {
			return fmt.Errorf("read the elements of the client: %w", err)
		}
		return nil
	}
	k, err := c.blocks.use(d.Block, from)
	if err != nil {
		return err
	}
	defer c.blocks.give(k)
	src, err := k.span(d.At, int64(len(b)))
	copy(b, src)
	return err
}

// readVariable sends elements of variable length.
func (c *conn) readVariable(ctx context.Context, f *wire.Frame, e *elements) error {
	limit := c.s.o.Memory / 16     // their length is known when they are read
	h, err := c.hold(ctx, 2*limit) // they are copied once
	if err != nil {
		return err
	}
	defer h.free()
	got, err := e.a.ReadVarAtMost(ctx, e.sel, limit)
	if err != nil {
		return err
	}
	size := int64(4 * (got.Len() + 1))
	for i := range got.Len() {
		size += int64(len(got.At(i)))
	}
	if size > int64(c.s.o.MaxBody) {
		return c.tooLong(size)
	}
	b, err := dtype.NewBuilder(make([]byte, 0, size), got.Len())
	if err != nil {
		return err
	}
	for i := range got.Len() {
		if err := b.Append(got.At(i)); err != nil {
			return err
		}
	}
	body, err := b.Finish()
	if err != nil {
		return err
	}
	meta, err := e.describe()
	if err != nil {
		return err
	}
	h.set(size)
	return c.send(f, &wire.Frame{Meta: meta, Body: body})
}

// copies has memory for elements of clients, up to maxCopy bytes each.
var copies = sync.Pool{New: func() any { return new([]byte) }}

const maxCopy = 32 << 20

// writeElements writes elements. Unselected elements of a chunk keep their
// values, even under concurrent writes.
func (c *conn) writeElements(ctx context.Context, f *wire.Frame, v *view, in wire.Array) error {
	from, err := memory(f)
	if err != nil {
		return err
	}
	a, err := c.array(ctx, v, in.Path)
	if err != nil {
		return err
	}
	e, err := c.elements(a, in.Select)
	if err != nil {
		return err
	}
	if e.item == 0 {
		n, err := e.count()
		if err != nil {
			return err
		}
		src, err := dtype.OpenVariable(f.Body, n)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrRequest, err)
		}
		if err := a.WriteVar(ctx, e.sel, src); err != nil {
			return err
		}
		return c.send(f, &wire.Frame{})
	}
	b := f.Body
	if from != nil || in.Block != 0 {
		if in.Bytes != 0 && in.Bytes != e.bytes {
			return fmt.Errorf("%w: %d bytes for shape %v with elements of %d bytes; the array has changed", zarr.ErrSelection, in.Bytes, e.shape, e.item)
		}
		if len(f.Body) > 0 {
			return fmt.Errorf("%w: a body beside a file or a block", ErrRequest)
		}
		if in.Block != 0 && c.who.Admin { // this user may write to the files of the database anyway
			k, err := c.blocks.use(in.Block, from)
			if err != nil {
				return err
			}
			defer c.blocks.give(k)
			if b, err = k.span(in.At, e.bytes); err != nil {
				return err
			}
			return c.writeBytes(ctx, f, a, e, b)
		}
		// They are copied: the client may change its memory while they are encoded.
		if e.bytes > int64(c.s.o.MaxBody) {
			return c.tooLong(e.bytes)
		}
		h, err := c.hold(ctx, e.bytes)
		if err != nil {
			return err
		}
		defer h.free()
		own := copies.Get().(*[]byte)
		*own = slices.Grow((*own)[:0], int(e.bytes))
		b = (*own)[:e.bytes]
		if cap(b) <= maxCopy {
			defer copies.Put(own)
		}
		if err := c.fetch(b, from, in.Destination); err != nil {
			return err
		}
	}
	return c.writeBytes(ctx, f, a, e, b)
}

// writeBytes writes elements, and answers.
func (c *conn) writeBytes(ctx context.Context, f *wire.Frame, a *zarr.Array, e *elements, b []byte) error {
	if err := a.WriteBytes(ctx, e.sel, b); err != nil {
		return err
	}
	return c.send(f, &wire.Frame{})
}
