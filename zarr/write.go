package zarr

import (
	"context"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/kv"
)

// WriteBytes writes src to the elements of sel: C order, memory layout
// (little-endian scalars). src has exactly the size of the selection, else the
// error is [ErrSelection]; [Fill] writes one value everywhere. Only for fixed-size
// types; see [Array.WriteVar].
//
// Chunks that are covered as a whole are encoded without being read; the rest
// of other chunks keeps its value. A chunk that then holds nothing but the fill
// value is deleted. In shards only the inner chunks that are touched are
// encoded. After an error some of the chunks may have been written. Where a
// selection names an element twice, the later value is stored.
func (a *Array) WriteBytes(ctx context.Context, sel Selection, src []byte) error {
	return a.fail("write", a.writeBytes(ctx, sel, src, false))
}

// writeBytes is WriteBytes; with every, src is one element, to be written
// everywhere.
func (a *Array) writeBytes(ctx context.Context, sel Selection, src []byte, every bool) error {
	j, err := a.begin(ctx, sel, false)
	if err != nil {
		return err
	}
	defer j.end()
	switch {
	case !every || j.st.size == 0:
		if err := j.checkLen(len(src)); err != nil {
			return err
		}
	case len(src) != j.st.size:
		return fmt.Errorf("%w: %d bytes for an element of %d", ErrType, len(src), j.st.size)
	}
	j.pack(src)
	if every {
		clear(j.user.Strides)
	}
	return j.write(ctx)
}

// WriteFrom is [Array.WriteBytes] with elements in memory of any layout, as of [Array.ReadInto]. A stride may be 0.
func (a *Array) WriteFrom(ctx context.Context, sel Selection, src codecs.Src) error {
	return a.fail("write", a.writeFrom(ctx, sel, src))
}

func (a *Array) writeFrom(ctx context.Context, sel Selection, src codecs.Src) error {
	j, err := a.begin(ctx, sel, false)
	if err != nil {
		return err
	}
	defer j.end()
	return j.with(ctx, src, (*job).write)
}

// FillBytes writes one element, in memory layout, to every element of sel: [Fill]
// for a type that is not known when the program is compiled.
func (a *Array) FillBytes(ctx context.Context, sel Selection, elem []byte) error {
	return a.fail("write", a.fillBytes(ctx, sel, elem))
}

func (a *Array) fillBytes(ctx context.Context, sel Selection, elem []byte) error {
	if !a.Type().Variable() {
		return a.writeBytes(ctx, sel, elem, true)
	}
	v, err := variableOf(elem)
	if err != nil {
		return err
	}
	return a.writeVar(ctx, sel, v, true)
}

// WriteFill resets the elements of sel to the fill value. Chunks that are
// covered as a whole are deleted without being read. Where sel is a box of very
// many chunks, only the stored chunks cost anything, if the view is a
// [kv.Lister].
func (a *Array) WriteFill(ctx context.Context, sel Selection) error {
	return a.fail("write", a.writeFill(ctx, sel, !a.opts.WriteEmptyChunks))
}

// writeFill is WriteFill. With stored, only stored chunks have to be written.
func (a *Array) writeFill(ctx context.Context, sel Selection, stored bool) error {
	if a.readOnly != nil {
		return a.readOnly
	}
	if err := a.refresh(ctx); err != nil {
		return err
	}
	st := a.st.Load()
	var p plan
	if err := p.prepare(st, sel, false); err != nil {
		return err
	}
	list, ok := a.view.(kv.Lister)
	if ok && p.straight && p.chunks > tune.few && stored {
		return a.eachListed(ctx, list, st, func(_ string, coords []int64) error {
			return a.writeFillChunk(ctx, st, &p, coords)
		})
	}
	return a.fillBytes(ctx, sel, st.meta.Fill)
}

// writeFillChunk resets the intersection of the plan, a box, with the chunk at
// coords.
func (a *Array) writeFillChunk(ctx context.Context, st *arrayState, p *plan, coords []int64) error {
	grid := st.meta.Grid
	index := make([]Index, len(coords))
	for d, c := range coords {
		lo := max(grid.Start(d, c), p.dims[d].start)
		hi := min(grid.Start(d, c+1), p.dims[d].start+p.dims[d].n)
		if lo >= hi {
			return nil
		}
		index[d] = Slice(lo, hi, 1)
	}
	return a.writeFill(ctx, Sel(index...), true)
}

func (j *job) write(ctx context.Context) error {
	if j.a.readOnly != nil {
		return j.a.readOnly
	}
	return j.work(ctx, (*task).write)
}

// maxMerges bounds how often a part of a chunk is written again, because another process wrote
// to the chunk since it was read.
const maxMerges = 1000

// change runs fn, which stores the wanted elements of the chunk in hand. Its lock is held from
// reading to writing.
func (t *task) change(ctx context.Context, fn func() error) error {
	lock := t.j.a.locks.of(t.key)
	if err := lock.Lock(ctx); err != nil {
		return err
	}
	defer lock.Unlock()
	for n := 0; ; n++ {
		t.merging = false
		err := fn()
		if !t.merging || !errors.Is(err, kv.ErrChanged) || n == maxMerges {
			return err
		}
	}
}

// old locates the chunk in hand, which is going to be written only if it is the same then.
func (t *task) old(ctx context.Context) (kv.Value, error) {
	v, err := t.locate(ctx)
	if err != nil || t.j.a.replacer == nil {
		return v, err
	}
	t.merging, t.was = true, kv.ID{}
	if v != nil {
		t.was = v.ID()
		t.merging = t.was != kv.ID{}
	}
	return v, nil
}

// write stores the wanted elements of the chunk in hand.
func (t *task) write(ctx context.Context) error {
	return t.change(ctx, func() error { return t.writeOnce(ctx) })
}

func (t *task) writeOnce(ctx context.Context) error {
	whole, edge := t.covers()
	switch {
	case whole && !edge:
		return t.writeWhole(ctx)
	case t.form.indexed:
		return t.updateShard(ctx, whole)
	case whole:
		buf := t.bufferChunk()
		codecs.FillStrided(buf, t.form.shape, t.j.st.meta.Fill, t.j.st.size)
		t.copyIn(buf.Data, t.origin(), buf.Strides)
		return t.storeBuffer(ctx, buf.Data, true)
	}
	buf := t.bufferChunk()
	there, err := t.readChunk(ctx, buf)
	if err != nil {
		return err
	}
	t.copyIn(buf.Data, t.origin(), buf.Strides)
	return t.storeBuffer(ctx, buf.Data, there)
}

// covers reports whether the wanted elements are all of the chunk that lies in
// the array, and whether the chunk reaches beyond it. There may be elements beyond the edge if the
// array has another shape by now: then the chunk is not covered.
func (t *task) covers() (whole, edge bool) {
	if !t.direct {
		return false, false
	}
	m := t.j.st.meta
	for d := range t.parts {
		p := &t.parts[d]
		inside := int64(t.form.shape[d])
		if rest := m.Shape[d] - m.Grid.Start(d, p.chunk); rest < inside {
			inside, edge = rest, true
		}
		if p.from != 0 || int64(p.n) != inside {
			return false, false
		}
	}
	if edge && (t.j.a.replacer != nil || t.j.a.locks.shapes(t.j.a.loc) != t.j.st.shapes) {
		return false, edge
	}
	return true, edge
}

// writeWhole encodes the chunk straight from the caller's memory.
func (t *task) writeWhole(ctx context.Context) error {
	if !t.j.a.opts.WriteEmptyChunks && isFill(t.form.bound, t.user, t.n, t.j.st.size) {
		return t.delete(ctx)
	}
	var err error
	if t.encoded, err = t.form.bound.EncodeFrom(t.encoded[:0], t.user); err != nil {
		return err
	}
	return t.set(ctx)
}

// isFill reports whether all elements of src are the fill value.
func isFill(b *codecs.Bound, src codecs.Src, n []int, size int) bool {
	// The last dimensions may be contiguous, and then are compared as a single run.
	run, outer := size, len(n)
	for outer > 0 && src.Strides[outer-1] == run {
		outer--
		run *= n[outer]
	}
	return isFillRuns(b, src.Data, src.Offset, src.Strides[:outer], n[:outer], run)
}

func isFillRuns(b *codecs.Bound, data []byte, off int, strides, n []int, run int) bool {
	if len(n) == 0 {
		return b.IsFill(data[off : off+run])
	}
	for i := range n[0] {
		if !isFillRuns(b, data, off+i*strides[0], strides[1:], n[1:], run) {
			return false
		}
		if strides[0] == 0 {
			break
		}
	}
	return true
}

// bufferChunk returns scratch memory for the chunk.
func (t *task) bufferChunk() codecs.Dst {
	return codecs.Dst{Data: t.buffer(t.form.bytes), Strides: t.form.strides}
}

// readChunk decodes the whole chunk into buf, or fills it if it is not there.
func (t *task) readChunk(ctx context.Context, buf codecs.Dst) (there bool, err error) {
	v, err := t.old(ctx)
	if err != nil {
		return false, err
	}
	form := t.form
	if v == nil {
		codecs.FillStrided(buf, form.shape, t.j.st.meta.Fill, t.j.st.size)
		return false, nil
	}
	t.ints = resize(t.ints, len(form.shape))
	clear(t.ints)
	whole := codecs.Box{Start: t.ints, Count: form.shape}
	return true, v.View(ctx, kv.All(), func(encoded []byte) error {
		return form.bound.DecodeInto(encoded, whole, buf)
	})
}

// copyIn copies the wanted elements from user to memory with the given
// strides in which the first element of the box is at origin.
func (t *task) copyIn(data []byte, origin int, strides []int) {
	size := t.j.st.size
	if t.points != nil {
		for _, at := range t.points {
			off := t.pointInBuffer(at, origin, strides)
			copy(data[off:off+size], t.pointInUser(at))
		}
		return
	}
	t.bindBuffer(data, origin, strides)
	if !t.j.listed {
		codecs.CopyStrided(t.buf, t.user, t.n, size)
		return
	}
	lanes := t.makeLanes()
	for i := range lanes {
		l := &lanes[i]
		l.src, l.dst = l.dst, l.src
		l.srcAt, l.dstAt = l.dstAt, l.srcAt
	}
	move(data, origin, t.user.Data, t.user.Offset, lanes, size)
}

// storeBuffer encodes a whole chunk. there tells that the view may hold the chunk already.
func (t *task) storeBuffer(ctx context.Context, chunk []byte, there bool) error {
	if !t.j.a.opts.WriteEmptyChunks && t.form.bound.IsFill(chunk) {
		if !there {
			return nil
		}
		return t.delete(ctx)
	}
	var err error
	if t.encoded, err = t.form.bound.Encode(t.encoded[:0], chunk); err != nil {
		return err
	}
	return t.set(ctx)
}

// updateShard replaces the box of a shard and copies the other encoded inner
// chunks, or, with whole, leaves them out.
func (t *task) updateShard(ctx context.Context, whole bool) error {
	var old codecs.Source
	if !whole {
		v, err := t.old(ctx)
		if err != nil {
			return err
		}
		if v != nil {
			t.source.value = v
			old = &t.source
		}
	}
	src := t.user
	if !t.direct {
		// Elements between the wanted ones keep their value.
		src = t.bufferBox()
		if old == nil {
			codecs.FillStrided(src, t.box.Count, t.j.st.meta.Fill, t.j.st.size)
		} else if err := t.form.bound.DecodeBox(ctx, old, t.box, src); err != nil {
			return err
		}
		t.copyIn(src.Data, 0, src.Strides)
	}
	var err error
	if t.encoded, err = t.form.bound.EncodePartial(ctx, t.encoded[:0], old, t.box, src); err != nil {
		return err
	}
	if len(t.encoded) > 0 {
		return t.set(ctx)
	}
	if t.j.a.opts.WriteEmptyChunks {
		return t.storeEmpty(ctx)
	}
	if old == nil && !whole {
		return nil
	}
	return t.delete(ctx)
}

// storeEmpty stores a chunk of nothing but the fill value.
func (t *task) storeEmpty(ctx context.Context) error {
	buf := t.bufferChunk()
	codecs.FillStrided(buf, t.form.shape, t.j.st.meta.Fill, t.j.st.size)
	return t.storeBuffer(ctx, buf.Data, true)
}

// set stores t.encoded under the key of the chunk in hand.
func (t *task) set(ctx context.Context) error {
	if t.merging {
		return t.j.a.replacer.Replace(ctx, t.key, t.encoded, t.was)
	}
	return t.j.a.writer.Set(ctx, t.key, t.encoded)
}

func (t *task) delete(ctx context.Context) error {
	if t.merging {
		return t.j.a.replacer.Replace(ctx, t.key, nil, t.was)
	}
	return t.j.a.writer.Delete(ctx, t.key)
}
