package zarr

import (
	"context"
	"fmt"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/kv"
)

// ReadBytes reads the elements of sel into dst in C order and memory layout
// (little-endian scalars). dst must have exactly their size. Missing chunks
// read as the fill value. After an error dst may hold anything. Only for
// fixed-size types; see [Array.ReadVar].
func (a *Array) ReadBytes(ctx context.Context, sel Selection, dst []byte) error {
	return a.fail("read", a.readBytes(ctx, sel, dst))
}

func (a *Array) readBytes(ctx context.Context, sel Selection, dst []byte) error {
	j, err := a.begin(ctx, sel, true)
	if err != nil {
		return err
	}
	defer j.end()
	if err := j.checkLen(len(dst)); err != nil {
		return err
	}
	mmap.PreferHuge(dst)
	j.pack(dst)
	return j.read(ctx)
}

// ReadInto reads the elements of sel into memory of any layout: dst has a
// stride per dimension of the result, of either sign; element (0, …, 0) goes
// to dst.Offset. After an error the elements may hold anything. Only for
// fixed-size types.
func (a *Array) ReadInto(ctx context.Context, sel Selection, dst codecs.Dst) error {
	return a.fail("read", a.readInto(ctx, sel, dst))
}

func (a *Array) readInto(ctx context.Context, sel Selection, dst codecs.Dst) error {
	j, err := a.begin(ctx, sel, true)
	if err != nil {
		return err
	}
	defer j.end()
	return j.with(ctx, dst, (*job).read)
}

// with runs fn with memory of the caller, which it checks.
func (j *job) with(ctx context.Context, user codecs.Dst, fn func(j *job, ctx context.Context) error) error {
	if err := j.checkUser(user); err != nil {
		return err
	}
	own := j.user.Strides
	j.user = user
	err := fn(j, ctx)
	j.user.Strides = own
	return err
}

// checkLen checks the length of packed memory for the result.
func (j *job) checkLen(n int) error {
	if j.st.meta.Type.Variable() {
		return fmt.Errorf("%w: elements of type %v have no fixed size", ErrType, j.st.meta.Type)
	}
	size := int64(j.st.size)
	if size > 0 && j.total > int64(n)/size || int64(n) != j.total*size {
		return fmt.Errorf("%w: %d bytes of memory for shape %v of %d byte elements", ErrSelection, n, j.shape, size)
	}
	return nil
}

// checkUser checks that every element of the result lies inside dst.
func (j *job) checkUser(dst codecs.Dst) error {
	if j.st.meta.Type.Variable() {
		return fmt.Errorf("%w: elements of type %v have no fixed size", ErrType, j.st.meta.Type)
	}
	if len(dst.Strides) != len(j.shape) {
		return fmt.Errorf("%w: %d strides for shape %v", ErrSelection, len(dst.Strides), j.shape)
	}
	if j.total == 0 {
		return nil
	}
	room := int64(len(dst.Data))
	lo, hi := int64(dst.Offset), int64(dst.Offset)+int64(j.st.size)
	for d, n := range j.shape {
		s := int64(dst.Strides[d])
		if n > 1 && s != 0 && (n-1) > room/max(s, -s) {
			hi = room + 1
			break
		}
		if reach := (n - 1) * s; reach < 0 {
			lo += reach
		} else {
			hi += reach
		}
	}
	if lo < 0 || hi > room {
		return fmt.Errorf("%w: shape %v with strides %v reaches outside %d bytes of memory", ErrSelection, j.shape, dst.Strides, room)
	}
	return nil
}

// read reads every chunk of the plan into the caller's memory.
func (j *job) read(ctx context.Context) error {
	j.split()
	return j.work(ctx, (*task).read)
}

// read puts the wanted elements of the chunk in hand into the caller's memory.
func (t *task) read(ctx context.Context) error {
	v, err := t.locate(ctx)
	if err != nil {
		return err
	}
	if v == nil {
		t.putFill()
		return nil
	}
	if most := t.form.bound.MaxEncodedSize(); t.form.inner == nil && v.Size() > most {
		return codecs.Corruptf("chunk", "%d bytes where at most %d decode to shape %v", v.Size(), most, t.form.shape)
	}
	if cache := t.j.a.opts.Cache; cache != nil && !t.form.uncached {
		if id := v.ID(); id != (kv.ID{}) {
			return t.readCached(ctx, cache, id, v)
		}
	}
	if t.quick {
		return errNotCached
	}
	return t.readValue(ctx, v)
}

// readValue decodes the chunk v, as little of it as it can.
func (t *task) readValue(ctx context.Context, v kv.Value) error {
	t.source.value = v
	if d := t.sparseAxis(); d >= 0 && t.thin(d) {
		return t.eachLayer(d, func() error {
			return t.decodeBox(ctx, t.box, t.user)
		})
	}
	if t.strips() {
		if err := t.readStrips(ctx); err == nil || ctx.Err() != nil || t.form.inner != nil {
			return err
		} // else the whole tells what is wrong
	}
	if !t.partly(v.Size()) {
		return v.View(ctx, kv.All(), t.onValue)
	}
	if t.direct {
		return t.decodeBox(ctx, t.box, t.user)
	}
	if t.points != nil && t.form.uncached && len(t.points) <= t.boxBytes()/tune.point {
		return t.decodePoints(ctx)
	}
	buf := t.bufferBox()
	if err := t.decodeBox(ctx, t.box, buf); err != nil {
		return err
	}
	t.copyOut(buf.Data, 0, buf.Strides)
	return nil
}

// partly decides whether to decode from parts of a value of that size.
func (t *task) partly(size int64) bool {
	switch {
	case !t.form.bound.Partial():
		return false
	case t.form.inner == nil:
		return t.boxBytes() <= t.form.bytes/2
	}
	// A shard may hold any amount of bytes that its index does not name.
	return !t.wholeBox() || size > t.form.bound.MaxEncodedSize()
}

// decodeValue decodes the bytes of a whole chunk.
func (t *task) decodeValue(encoded []byte) error {
	if t.direct {
		return t.form.bound.DecodeInto(encoded, t.box, t.user)
	}
	if d := t.sparseAxis(); d >= 0 && t.form.inner == nil {
		return t.eachLayer(d, func() error {
			return t.form.bound.DecodeInto(encoded, t.box, t.user)
		})
	}
	buf := t.bufferBox()
	if err := t.form.bound.DecodeInto(encoded, t.box, buf); err != nil {
		return err
	}
	t.copyOut(buf.Data, 0, buf.Strides)
	return nil
}

// bufferBox returns scratch memory for the box.
func (t *task) bufferBox() codecs.Dst {
	t.ints = resize(t.ints, len(t.box.Count))
	return codecs.Dst{Data: t.buffer(t.boxBytes()), Strides: packed(t.ints, t.box.Count, t.j.st.size)}
}

// copyOut copies the wanted elements to far from memory with the given strides
// in which the first element of the box is at origin.
func (t *task) copyOut(data []byte, origin int, strides []int) {
	if t.points != nil {
		t.putPoints(data, origin, strides)
		return
	}
	if t.direct {
		buf := codecs.Src{Data: data, Offset: origin, Strides: strides}
		codecs.CopyStrided(t.user, buf, t.box.Count, t.j.st.size)
		return
	}
	t.bindBuffer(data, origin, strides)
	if !t.j.listed {
		codecs.CopyStrided(t.user, t.buf, t.n, t.j.st.size)
		return
	}
	move(t.user.Data, t.user.Offset, data, origin, t.makeLanes(), t.j.st.size)
}

// putFill sets the wanted elements to the fill value.
func (t *task) putFill() {
	size, fill := t.j.st.size, t.j.st.meta.Fill
	switch {
	case t.points != nil:
		for _, at := range t.points {
			copy(t.pointInUser(at), fill)
		}
	case !t.j.listed:
		codecs.FillStrided(t.user, t.n, fill, size)
	default:
		t.buf = codecs.Src{Data: fill, Strides: resize(t.buf.Strides, len(t.parts))}
		clear(t.buf.Strides)
		move(t.user.Data, t.user.Offset, fill, 0, t.makeLanes(), size)
	}
}
