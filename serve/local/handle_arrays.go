package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/zarr"
)

// array opens an array. The caller gives the view back.
func (c *conn) array(ctx context.Context, v *view, path string) (*zarr.Array, error) {
	n, err := v.Node(ctx, path)
	if err != nil {
		return nil, err
	}
	a, ok := n.Array()
	if !ok {
		return nil, fmt.Errorf("/%s: %w: it is a group", path, zarr.ErrKind)
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
	if !m.Type.Variable() {
		out.ItemSize = m.Type.Size()
	}
	out.NumPy, _ = m.Type.NumPy()
	for _, n := range m.Grid.Regular() {
		out.Chunks = append(out.Chunks, int64(n))
	}
	attrs := []byte{'{'}
	for name, raw := range m.Attributes.All() {
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		if len(attrs) > 1 {
			attrs = append(attrs, ',')
		}
		attrs = append(append(append(attrs, key...), ':'), raw...)
	}
	out.Attributes = append(attrs, '}')
	return out, nil
}

// elements is an array with what was selected of it.
type elements struct {
	a     *zarr.Array
	sel   zarr.Selection
	shape []int64
	item  int
	bytes int64
}

func (c *conn) elements(ctx context.Context, v *view, in wire.Array) (*elements, error) {
	a, err := c.array(ctx, v, in.Path)
	if err != nil {
		return nil, err
	}
	e := &elements{a: a}
	if e.sel, err = zarr.ParseSelection(in.Select, a.DimensionNames()); err != nil {
		return nil, err
	}
	if a.Type().Variable() {
		return nil, fmt.Errorf("/%s: elements of type %v have no fixed size; read its chunks: %w", in.Path, a.Type(), errors.ErrUnsupported)
	}
	if e.shape, err = a.Resolve(e.sel); err != nil {
		return nil, err
	}
	e.item, e.bytes = a.Type().Size(), int64(a.Type().Size())
	for _, n := range e.shape {
		if n > 0 && e.bytes > int64(c.s.o.MaxBody)/n {
			return nil, fmt.Errorf("%w: a selection of shape %v has more than %d bytes; select less at a time", kv.ErrTooLarge, e.shape, c.s.o.MaxBody)
		}
		e.bytes *= n
	}
	return e, nil
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

// readElements sends decoded elements, or writes them to a file of the client: not
// through a map of it, because a client that cuts the file off would end the process.
func (c *conn) readElements(ctx context.Context, f *wire.Frame, v *view, in wire.Array) error {
	to, err := memory(f)
	if err != nil {
		return err
	}
	e, err := c.elements(ctx, v, in)
	if err != nil {
		return err
	}
	c.bodies.take(e.bytes)
	defer c.bodies.give(e.bytes)
	b := make([]byte, e.bytes)
	if err := e.a.ReadBytes(ctx, e.sel, b); err != nil {
		return err
	}
	meta, err := json.Marshal(wire.Elements{Shape: e.shape, ItemSize: e.item})
	if err != nil {
		return err
	}
	if to != nil {
		if _, err := to.WriteAt(b, in.At); err != nil {
			return fmt.Errorf("write the elements to the client: %w", err)
		}
		b = nil
	}
	return c.send(f, &wire.Frame{Meta: meta, Body: b})
}

// writeElements writes elements. Those of a chunk that are not selected stay, also
// when somebody else writes them at the same time.
func (c *conn) writeElements(ctx context.Context, f *wire.Frame, v *view, in wire.Array) error {
	from, err := memory(f)
	if err != nil {
		return err
	}
	e, err := c.elements(ctx, v, in)
	if err != nil {
		return err
	}
	b := f.Body
	if from != nil {
		c.bodies.take(e.bytes)
		defer c.bodies.give(e.bytes)
		b = make([]byte, e.bytes)
		if _, err := from.ReadAt(b, in.At); err != nil {
			return fmt.Errorf("read the elements of the client: %w", err)
		}
	}
	if err := e.a.WriteBytes(ctx, e.sel, b); err != nil {
		return err
	}
	return c.send(f, &wire.Frame{})
}
