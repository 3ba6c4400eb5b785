//go:build cgo

package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/local"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// request is a call of an operation. body is memory of the caller.
type request struct {
	op     int
	handle int64
	ints   []int64
	text   string
	body   []byte
}

// operations have the numbers of _engine.py.
var operations = []func(ctx context.Context, r *request) ([]byte, error){
	open, end, openView, openArray, read, readMany, write, readVariable, writeVariable, selectLabels,
}

// handles are what the interpreter has open, by number.
var handles = struct {
	sync.RWMutex
	open map[int64]any
}{open: map[int64]any{}}

// add opens the handle that the caller has chosen: so the caller can close it also if it never saw the answer.
func (r *request) add(v any) {
	handles.Lock()
	defer handles.Unlock()
	handles.open[r.ints[0]] = v
}

// of returns what a handle stands for.
func of[T any](handle int64) (v T, err error) {
	handles.RLock()
	defer handles.RUnlock()
	v, ok := handles.open[handle].(T)
	if !ok {
		return v, kv.ErrClosed
	}
	return v, nil
}

// open opens the database in the directory that the text names.
func open(ctx context.Context, r *request) ([]byte, error) {
	db, err := local.Attach(ctx, r.text, &local.DialOptions{Share: true}, &engine.Options{}, note)
	if err != nil {
		return nil, err
	}
	r.add(db)
	return nil, nil
}

// end closes what a handle stands for, if it is open. A view is closed without waiting if the integer is 0.
func end(_ context.Context, r *request) ([]byte, error) {
	handles.Lock()
	v := handles.open[r.handle]
	delete(handles.open, r.handle)
	handles.Unlock()
	switch v := v.(type) {
	case *engine.DB:
		return nil, v.Close()
	case *view:
		if len(r.ints) > 0 && r.ints[0] != 0 {
			return nil, v.close()
		}
		go v.close() //nolint:errcheck // nobody waits for it
	}
	return nil, nil
}

// view is a version or a session.
type view struct {
	db       *engine.DB
	snapshot *engine.Snapshot // nil for a session

	mu      sync.RWMutex // held for reading while the session is used
	session *engine.Session
	id      txn.SessionID
}

// openView opens the version or session that the text names.
func openView(ctx context.Context, r *request) ([]byte, error) {
	db, err := of[*engine.DB](r.handle)
	if err != nil {
		return nil, err
	}
	v := &view{db: db}
	id, ok := strings.CutPrefix(r.text, serve.SessionPrefix)
	if !ok {
		v.snapshot, err = db.At(ctx, r.text)
	} else if v.id, err = txn.ParseSessionID(id); err == nil {
		v.session, err = db.Resume(ctx, v.id)
	}
	if err != nil {
		return nil, err
	}
	r.add(v)
	return nil, nil
}

func (v *view) close() error {
	if v.snapshot != nil {
		return v.snapshot.Close()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.session.Close()
}

// array is an array of a view. In a session, it is the path of one, as which it is opened for each call.
type array struct {
	v    *view
	path string
	a    *zarr.Array
	typ  string
}

// info describes an array.
type info struct {
	Format     int             `json:"format"`
	Shape      []int64         `json:"shape"`
	Chunks     []int           `json:"chunks,omitempty"` // nil if their shapes differ
	Unit       []int           `json:"unit,omitempty"`   // the part of a chunk that is decoded at once
	Type       string          `json:"type"`             // the name in Zarr v3, else "json" or "ragged<int32>"
	NumPy      string          `json:"numpy,omitempty"`  // as Python writes it: "'<i4'"; of the parts of a ragged one
	ItemSize   int             `json:"item_size"`        // 0 for a variable length
	Dimensions []string        `json:"dimensions,omitempty"`
	Attributes json.RawMessage `json:"attributes,omitempty"`
}

// openArray opens and describes the array at the path that the text names.
func openArray(ctx context.Context, r *request) ([]byte, error) {
	v, err := of[*view](r.handle)
	if err != nil {
		return nil, err
	}
	var a *zarr.Array
	if v.snapshot != nil {
		a, err = v.snapshot.Array(ctx, r.text)
	} else {
		v.mu.RLock()
		a, err = v.session.Array(ctx, r.text)
		v.mu.RUnlock()
	}
	if err != nil {
		return nil, err
	}
	m := a.Meta()
	out := info{
		Format: int(m.Version), Shape: m.Shape, Type: m.Type.Name(), Dimensions: a.DimensionNames(),
		Chunks: m.Grid.Regular(), Unit: a.InnerChunks(),
	}
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
	if out.Attributes, err = m.Attributes.MarshalJSON(); err != nil { // a bare NaN becomes a string
		return nil, err
	}
	r.add(&array{v: v, path: r.text, a: a, typ: m.Type.String()})
	return json.Marshal(out)
}

// use runs fn with the array of a request, as it is now.
func (r *request) use(ctx context.Context, fn func(h *array, a *zarr.Array) error) error {
	h, err := of[*array](r.handle)
	if err != nil {
		return err
	}
	if h.v.snapshot != nil {
		return fn(h, h.a)
	}
	h.v.mu.RLock()
	defer h.v.mu.RUnlock()
	a, err := h.v.session.Array(ctx, h.path)
	if err != nil {
		return err
	}
	if now := a.Type().String(); now != h.typ {
		return fmt.Errorf("%w: /%s has another type by now, %s; open it again", zarr.ErrSelection, h.path, now)
	}
	return fn(h, a)
}

// selection takes a selection from the integers: the number of dimensions, then for each one the first element,
// how many there are, or -1 for one without a dimension in the result, and the step.
func (r *request) selection(a *zarr.Array, path string) (sel zarr.Selection, shape []int64, err error) {
	if len(r.ints) == 0 || len(r.ints) < 1+3*int(r.ints[0]) {
		return sel, nil, errors.New("zarrdb: the selection is too short")
	}
	n := int(r.ints[0])
	index := make([]zarr.Index, n)
	for i := range n {
		at, count, step := r.ints[1+3*i], r.ints[2+3*i], r.ints[3+3*i]
		if count < 0 {
			index[i] = zarr.At(at)
			continue
		}
		shape = append(shape, count)
		stop := at + count*step
		if count == 0 {
			at, stop, step = 0, 0, 1
		} else if stop < 0 {
			stop = zarr.None
		}
		index[i] = zarr.Slice(at, stop, step)
	}
	r.ints = r.ints[1+3*n:]
	sel = zarr.Sel(index...)
	got, err := a.Resolve(sel)
	if err == nil && !slices.Equal(got, shape) {
		err = fmt.Errorf("%w: /%s has another shape by now: the selection is %v, not %v; refresh or open it again", zarr.ErrSelection, path, got, shape)
	}
	return sel, shape, err
}

// read reads the elements of a selection into memory. The integers that follow the selection are the offset of
// the first element and a stride for each dimension of the result, or nothing for C order.
func read(ctx context.Context, r *request) ([]byte, error) {
	return nil, r.use(ctx, func(h *array, a *zarr.Array) error {
		sel, _, err := r.selection(a, h.path)
		if err != nil {
			return err
		}
		if len(r.ints) == 0 {
			return a.ReadBytes(ctx, sel, r.body)
		}
		d := codecs.Dst{Data: r.body, Offset: int(r.ints[0])}
		for _, s := range r.ints[1:] {
			d.Strides = append(d.Strides, int(s))
		}
		return a.ReadInto(ctx, sel, d)
	})
}

// readMany reads the elements of several selections, one selection after the other.
func readMany(ctx context.Context, r *request) ([]byte, error) {
	return nil, r.use(ctx, func(h *array, a *zarr.Array) error {
		type part struct {
			sel zarr.Selection
			to  []byte
		}
		var parts []part
		left := r.body
		for len(r.ints) > 0 {
			sel, shape, err := r.selection(a, h.path)
			if err != nil {
				return err
			}
			n := a.Type().Size()
			for _, k := range shape {
				n *= int(k)
			}
			if n > len(left) {
				return fmt.Errorf("%w: the memory is too short", zarr.ErrSelection)
			}
			parts, left = append(parts, part{sel, left[:n]}), left[n:]
		}
		return gather.Each(ctx, runtime.GOMAXPROCS(0), len(parts), func(ctx context.Context, i int) error {
			return a.ReadBytes(ctx, parts[i].sel, parts[i].to)
		})
	})
}

// tries bounds how often a write is repeated because another process has written to the same chunk.
const tries = 1000

// writing runs fn, which writes to a part of an array. Writes to parts of a chunk by several processes are all
// kept: the one that is late begins anew, without the values that it has read before.
func (r *request) writing(ctx context.Context, fn func(a *zarr.Array, sel zarr.Selection, shape []int64) error) error {
	h, err := of[*array](r.handle)
	if err != nil {
		return err
	}
	if h.v.snapshot != nil {
		return fmt.Errorf("%w: a version cannot be written", engine.ErrReadOnly)
	}
	ints := r.ints
	for n := 0; ; n++ {
		r.ints = ints
		err := r.use(ctx, func(h *array, a *zarr.Array) error {
			sel, shape, err := r.selection(a, h.path)
			if err != nil {
				return err
			}
			return fn(a, sel, shape)
		})
		var changed *engine.ChangedError
		if !errors.As(err, &changed) || n >= tries || ctx.Err() != nil {
			return err
		}
		if err := h.v.reopen(ctx); err != nil {
			return err
		}
	}
}

// reopen opens the session anew: what was read before is no condition of a write.
func (v *view) reopen(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.session.Close(); err != nil {
		return err
	}
	s, err := v.db.Resume(ctx, v.id)
	if err == nil {
		v.session = s
	}
	return err
}

// write writes the elements in the memory, in C order, to a selection.
func write(ctx context.Context, r *request) ([]byte, error) {
	return nil, r.writing(ctx, func(a *zarr.Array, sel zarr.Selection, _ []int64) error {
		return a.WriteBytes(ctx, sel, r.body)
	})
}

// readVariable returns elements of variable length: 4 bytes for the place of each, and for the end, then the bytes.
func readVariable(ctx context.Context, r *request) ([]byte, error) {
	var out []byte
	err := r.use(ctx, func(h *array, a *zarr.Array) error {
		sel, _, err := r.selection(a, h.path)
		if err != nil {
			return err
		}
		got, err := a.ReadVarAtMost(ctx, sel, 1<<30)
		if err != nil {
			return err
		}
		head := 4 * (got.Len() + 1)
		out = make([]byte, head)
		for i := range got.Len() {
			out = append(out, got.At(i)...)
			binary.LittleEndian.PutUint32(out[4*(i+1):], uint32(len(out)-head))
		}
		return nil
	})
	return out, err
}

// writeVariable writes elements in that form.
func writeVariable(ctx context.Context, r *request) ([]byte, error) {
	return nil, r.writing(ctx, func(a *zarr.Array, sel zarr.Selection, shape []int64) error {
		n := 1
		for _, k := range shape {
			n *= int(k)
		}
		src, err := dtype.OpenVariable(r.body, n)
		if err != nil {
			return err
		}
		return a.WriteVar(ctx, sel, src)
	})
}

// selectLabels turns a selection by labels of coordinates, which the text has, into one by numbers.
func selectLabels(ctx context.Context, r *request) ([]byte, error) {
	var out []byte
	err := r.use(ctx, func(h *array, a *zarr.Array) error {
		beside := func(ctx context.Context, name string) (*zarr.Node, error) {
			if a.Path() == "" || name == "" || strings.Contains(name, "/") {
				return nil, fmt.Errorf("%s: beside /%s: %w", name, a.Path(), zarr.ErrNotFound)
			}
			path := a.Path()[:strings.LastIndexByte(a.Path(), '/')+1] + name
			if h.v.snapshot != nil {
				return h.v.snapshot.Node(ctx, path)
			}
			return h.v.session.Node(ctx, path)
		}
		sel, _, err := cf.ParseSelection(ctx, r.text, a, beside)
		if err == nil {
			out, err = json.Marshal(sel.String())
		}
		return err
	})
	return out, err
}
