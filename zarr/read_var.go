package zarr

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// ReadVar reads the elements of sel of an array of variable-length type, in C
// order of the result. The caller owns the result. Missing chunks read as the
// fill value. A result over [OpenOptions].MaxResultBytes, or over the 4 GiB of
// the offsets, is [ErrTooLarge].
func (a *Array) ReadVar(ctx context.Context, sel Selection) (dtype.Variable, error) {
	return a.ReadVarAtMost(ctx, sel, a.opts.MaxResultBytes)
}

// ReadVarAtMost is ReadVar with a limit on the bytes of this result, offsets included, in
// place of MaxResultBytes.
func (a *Array) ReadVarAtMost(ctx context.Context, sel Selection, limit int64) (dtype.Variable, error) {
	v, err := a.readVar(ctx, sel, limit)
	return v, a.fail("read", err)
}

func (a *Array) readVar(ctx context.Context, sel Selection, limit int64) (dtype.Variable, error) {
	j, err := a.begin(ctx, sel, true)
	if err != nil {
		return dtype.Variable{}, err
	}
	defer j.end()
	if !j.st.meta.Type.Variable() {
		return dtype.Variable{}, fmt.Errorf("%w: elements of type %v have a fixed size", ErrType, j.st.meta.Type)
	}
	c := collector{limit: limit}
	if err := c.reset(j.total); err != nil {
		return dtype.Variable{}, err
	}
	j.pack(nil)
	err = j.work(ctx, func(t *task, ctx context.Context) error { return t.collect(ctx, &c) })
	if err != nil {
		return dtype.Variable{}, err
	}
	return c.finish()
}

// collector gathers elements of variable length that arrive in any order.
type collector struct {
	limit int64
	mu    sync.Mutex
	// buf begins with room for the offsets of the result, which is all that is
	// left to fill in when the elements arrived in order.
	buf  []byte
	head int
	// at holds for each element of the result where it lies behind head.
	at []extent
}

type extent struct{ off, n uint32 }

// reset makes room for n elements.
func (c *collector) reset(n int64) error {
	if n > math.MaxInt32 || 12*n > c.limit {
		return fmt.Errorf("%w: %d elements of variable length", ErrTooLarge, n)
	}
	head, ok := dtype.VariableHeader(int(n))
	if !ok {
		return fmt.Errorf("%w: %d elements of variable length", ErrTooLarge, n)
	}
	c.head = head
	c.buf = make([]byte, head)
	c.at = make([]extent, n)
	return nil
}

// add takes the bytes of element i of the result.
func (c *collector) add(i int, elem []byte) error {
	off := len(c.buf) - c.head
	if int64(len(c.buf))+int64(len(elem)) > c.limit || int64(off)+int64(len(elem)) > math.MaxUint32 {
		return fmt.Errorf("%w: more than %d bytes of variable length", ErrTooLarge, off)
	}
	c.buf = append(c.buf, elem...)
	c.at[i] = extent{uint32(off), uint32(len(elem))}
	return nil
}

func (c *collector) finish() (dtype.Variable, error) {
	end := uint32(0)
	for _, x := range c.at {
		if x.off != end && x.n != 0 {
			return c.reorder()
		}
		end += x.n
	}
	end = 0
	for i, x := range c.at {
		end += x.n
		binary.LittleEndian.PutUint32(c.buf[4*(i+1):], end)
	}
	return dtype.OpenVariable(c.buf, len(c.at))
}

func (c *collector) reorder() (dtype.Variable, error) {
	b, err := dtype.NewBuilder(make([]byte, 0, len(c.buf)), len(c.at))
	if err != nil {
		return dtype.Variable{}, err
	}
	for _, x := range c.at {
		if err := b.Append(c.buf[c.head+int(x.off):][:x.n]); err != nil {
			return dtype.Variable{}, err
		}
	}
	buf, err := b.Finish()
	if err != nil {
		return dtype.Variable{}, err
	}
	return dtype.OpenVariable(buf, len(c.at))
}

// collect decodes the chunk in hand and adds its wanted elements.
func (t *task) collect(ctx context.Context, c *collector) error {
	v, err := t.locate(ctx)
	if err != nil {
		return err
	}
	var block dtype.Variable
	origin, strides := 0, t.form.strides
	if v != nil {
		if block, origin, strides, err = t.readBlock(ctx, v); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	fill := t.j.st.meta.Fill
	t.pairs(origin, strides, func(buf, user int) {
		if err != nil {
			return
		}
		elem := fill
		if v != nil {
			elem = block.At(buf)
		}
		err = c.add(user, elem)
	})
	return err
}

// readBlock decodes the box, or the chunk, of variable-length elements. origin
// is the index of the box's first element in the result.
func (t *task) readBlock(ctx context.Context, v kv.Value) (block dtype.Variable, origin int, strides []int, err error) {
	form := t.form
	if cache, id := t.j.a.opts.Cache, v.ID(); cache != nil && id != (kv.ID{}) && form.inner == nil && !form.uncached {
		chunk, ok := cache.Get(id, form.name())
		if !ok {
			if chunk, err = t.loadChunk(ctx, cache, id, v); err != nil {
				return block, 0, nil, err
			}
		}
		block, err = openBlock(chunk, form.count)
		return block, t.origin(), form.strides, err
	}
	t.source.value = v
	if t.scratch, err = form.bound.AppendBox(ctx, t.scratch[:0], &t.source, t.box); err != nil {
		return block, 0, nil, err
	}
	n := 1
	for _, c := range t.box.Count {
		n *= c
	}
	block, err = openBlock(t.scratch, n)
	t.ints = resize(t.ints, len(t.box.Count))
	return block, 0, packed(t.ints, t.box.Count, 1), err
}

// openBlock opens the output of a codec.
func openBlock(b []byte, n int) (dtype.Variable, error) {
	v, err := dtype.OpenVariable(b, n)
	if err != nil {
		return v, errors.Join(codecs.ErrCorrupt, err)
	}
	return v, nil
}

// pairs calls fn for every wanted element with its numbers in memory that has
// the given strides (in elements, the box's first element at origin) and in
// the result.
func (t *task) pairs(origin int, strides []int, fn func(buf, user int)) {
	if t.points != nil {
		for _, at := range t.points {
			fn(t.pointInBuffer(at, origin, strides), t.j.user.Offset+at*t.j.user.Strides[0])
		}
		return
	}
	t.bindBuffer(nil, origin, strides)
	eachPair(t.makeLanes(), origin, t.user.Offset, fn)
}
