package local

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
)

// selectLabels turns a selection by labels of coordinates into one by numbers.
func (c *conn) selectLabels(ctx context.Context, v *view, in *wire.Array) (*wire.Selected, error) {
	a, err := c.array(ctx, v, in.Path)
	if err != nil {
		return nil, err
	}
	beside := func(ctx context.Context, name string) (*zarr.Node, error) {
		if a.Path() == "" || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("%s: beside /%s: %w", name, a.Path(), zarr.ErrNotFound)
		}
		return v.Node(ctx, a.Path()[:strings.LastIndexByte(a.Path(), '/')+1]+name)
	}
	sel, empty, err := cf.ParseSelection(ctx, in.Select, a, beside)
	if err != nil {
		return nil, err
	}
	shape, err := a.Resolve(sel)
	if err != nil {
		return nil, err
	}
	return &wire.Selected{Select: sel.String(), Shape: shape, Empty: empty}, nil
}

// readMany sends the elements of several selections of an array, one after the other.
func (c *conn) readMany(ctx context.Context, f *wire.Frame, v *view, in wire.ArrayMany) error {
	to, err := memory(f)
	if err != nil {
		return err
	}
	a, err := c.array(ctx, v, in.Path)
	if err != nil {
		return err
	}
	if a.Type().Variable() {
		return fmt.Errorf("%w: elements of type %v have no fixed size and are read one selection at a time", ErrRequest, a.Type())
	}
	out := wire.ElementsMany{Shapes: make([][]int64, len(in.Selects)), ItemSize: a.Type().Size()}
	out.NumPy, _ = a.Type().NumPy()
	parts, offs, n := make([]*elements, len(in.Selects)), make([]int64, len(in.Selects)), int64(0)
	for i, text := range in.Selects {
		if parts[i], err = c.elements(a, text); err != nil {
			return err
		}
		if parts[i].bytes > math.MaxInt-n {
			return fmt.Errorf("%w: %d selections", kv.ErrTooLarge, len(in.Selects))
		}
		out.Shapes[i], offs[i] = parts[i].shape, n
		n += parts[i].bytes
	}
	b, deliver, free, err := c.buffer(ctx, to, in.Destination, n)
	if err != nil {
		return err
	}
	defer free()
	err = gather.Each(ctx, runtime.GOMAXPROCS(0), len(parts), func(ctx context.Context, i int) (err error) {
		defer recovered(f.Op, &err)
		return a.ReadBytes(ctx, parts[i].sel, b[offs[i]:][:parts[i].bytes])
	})
	if err != nil {
		return err
	}
	meta, err := json.Marshal(out)
	if err != nil {
		return err
	}
	body, err := deliver()
	if err != nil {
		return err
	}
	return c.send(f, &wire.Frame{Meta: meta, Body: body})
}
