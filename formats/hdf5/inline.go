package hdf5

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// maxInline bounds the values of a set that are no ranges of the file: chunks that are
// encoded anew, and texts; each alone.
const maxInline = 64 << 20

// spend counts bytes of values that were made.
func (f *file) spend(key inlineKey, n int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.spent[key] {
		return nil
	}
	if f.inlined += int64(n); f.inlined > maxInline {
		f.inlined -= int64(n)
		return formats.Unsupported("hdf5: chunks that skip filters of their array have more than %d MiB in this file", maxInline>>20)
	}
	f.spent[key] = true
	return nil
}

// inlineKey is a chunk of a dataset.
type inlineKey struct {
	addr   int64
	number uint64
}

// raw returns the elements of a chunk as they are before its filters.
func (ds *dataset) raw(ctx context.Context, c chunk) ([]byte, error) {
	b, err := kv.ReadValue(ctx, ds.f.value, kv.Span(ds.f.base+c.addr, c.size))
	if err != nil {
		return nil, err
	}
	return ds.filter.decode(b, c.mask, ds.grid.bytes)
}

// inline returns a chunk encoded by the codecs of its array, which leave out the filters
// of mask.
func (ds *dataset) inline(ctx context.Context, at []int64, c chunk, mask uint32) (refs.Reference, error) {
	b, err := ds.raw(ctx, c)
	if err != nil {
		return refs.Reference{}, err
	}
	if ds.short(at) {
		if !ds.clip(b, at) && c.mask == mask {
			return ds.at(c.addr, c.size), nil // what is behind the records is the fill value
		}
	}
	if b, err = ds.filter.encode(b, mask); err != nil {
		return refs.Reference{}, err
	}
	return refs.Reference{Data: b}, ds.f.spend(inlineKey{ds.o.addr, ds.grid.number1(at)}, len(b))
}

// short reports whether a chunk has elements that are in the shape of the array and not in
// that of the dataset, which has fewer records than its dimension.
func (ds *dataset) short(at []int64) bool {
	for d, n := range at {
		end := min((n+1)*ds.grid.chunk[d], ds.shape[d])
		if end > ds.space.dims[d] {
			return true
		}
	}
	return false
}

// clip sets the elements of a chunk outside the dataset to the fill value, and reports
// whether that changed any.
func (ds *dataset) clip(b []byte, at []int64) bool {
	fill := ds.fillRaw
	if fill == nil {
		fill = make([]byte, ds.typ.size)
	}
	changed := false
	for pos := range formats.Coords(ds.grid.chunk) {
		for d, n := range at {
			if n*ds.grid.chunk[d]+pos[d] >= ds.space.dims[d] {
				changed = changed || !bytes.Equal(b[:len(fill)], fill)
				copy(b, fill)
				break
			}
		}
		b = b[len(fill):]
	}
	return changed
}

// textFill returns the fill value of texts.
func (ds *dataset) textFill(ctx context.Context, b []byte) (json.RawMessage, error) {
	s := ""
	if b != nil {
		v := values{f: ds.f, ctx: ctx}
		x, err := v.variable(ds.typ, b)
		if err != nil {
			return nil, err
		}
		s, _ = x.(string)
	}
	return ds.elem.typ.PrintFillV3([]byte(s))
}

// text returns a chunk of texts.
func (ds *dataset) text(ctx context.Context, coords []int64) (refs.Reference, error) {
	all, err := ds.allTexts(ctx)
	if err != nil {
		return refs.Reference{}, err
	}
	b, ok := all[ds.textNumber(coords)]
	if !ok {
		return refs.Reference{}, kv.ErrNotFound
	}
	return refs.Reference{Data: b}, nil
}

// textNumber numbers the chunks of the array in C order.
func (ds *dataset) textNumber(coords []int64) uint64 { return inOrder(ds.counts(), coords) }

// allTexts reads all texts of a dataset, as chunks of the codec vlen-utf8 by their number.
func (ds *dataset) allTexts(ctx context.Context) (map[uint64][]byte, error) {
	return ds.texts.Get(ctx, func() (map[uint64][]byte, error) {
		list, err := ds.textChunks(ctx)
		if err != nil {
			return nil, err
		}
		out, used := map[uint64][]byte{}, int64(0)
		err = inBatches(ctx, ds.f, list, func(t textChunk) part { return part{t.addr, t.size} }, func(t textChunk) error {
			d, err := ds.f.read(ctx, "a chunk", t.addr, t.size)
			if err != nil {
				return err
			}
			b := d.b
			if ds.grid != nil {
				if b, err = ds.filter.decode(b, t.mask, ds.grid.bytes); err != nil {
					return err
				}
			}
			if out[t.number], err = ds.readTexts(ctx, b); err != nil {
				return err
			}
			if used += int64(len(out[t.number])); used > maxInline {
				return errTexts
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		ds.f.mu.Lock()
		defer ds.f.mu.Unlock()
		if ds.f.texted += used; ds.f.texted > maxInline {
			ds.f.texted -= used
			return nil, errTexts
		}
		return out, nil
	})
}

var errTexts = formats.Unsupported("hdf5: texts of variable length have more than %d MiB in this file", maxInline>>20)

// textChunk is a stored chunk of an array of texts.
type textChunk struct {
	chunk
	number uint64
}

// textChunks returns the stored chunks of an array of texts.
func (ds *dataset) textChunks(ctx context.Context) ([]textChunk, error) {
	var list []textChunk
	bytes := int64(0)
	if _, ok := product(ds.counts()...); !ok {
		return nil, unsupported("texts in %v chunks", ds.counts())
	}
	add := func(number uint64, c chunk, n int64) error {
		if bytes += n; bytes > maxInline || len(list) > maxRows {
			return errTexts
		}
		list = append(list, textChunk{c, number})
		return nil
	}
	if ds.grid != nil {
		return list, ds.each(ctx, func(at []int64, c chunk) error { return add(ds.textNumber(at), c, ds.grid.bytes) })
	}
	if ds.layout.addr == undefined {
		return nil, nil
	}
	for at := range formats.Coords(ds.counts()) {
		addr, n := ds.slab(at)
		if err := add(ds.textNumber(at), chunk{addr: addr, size: n}, n); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// readTexts reads the texts that elements point to.
func (ds *dataset) readTexts(ctx context.Context, b []byte) ([]byte, error) {
	heaps := map[int64]bool{}
	var list []pointer
	for size := ds.typ.size; len(b) >= size; b = b[size:] {
		p, err := ds.f.pointer(b)
		if err != nil {
			return nil, err
		}
		if p.n > 0 {
			heaps[p.addr] = true
		}
		list = append(list, p)
	}
	if err := ds.f.collectionsAhead(ctx, heaps); err != nil {
		return nil, err
	}
	// Heap by heap, so that each is read once.
	order := make([]int32, len(list))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(list[a].addr, list[b].addr) })
	texts, size := make([]string, len(list)), 4+4*len(list)
	for _, i := range order {
		p := list[i]
		if p.n == 0 {
			continue
		}
		o, err := ds.f.globalObject(ctx, p.addr, p.index)
		if err != nil {
			return nil, err
		}
		texts[i] = text(o, p.n)
		if size += len(texts[i]); size > maxInline {
			return nil, errTexts
		}
	}
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, size), uint32(len(list)))
	for _, s := range texts {
		out = append(binary.LittleEndian.AppendUint32(out, uint32(len(s))), s...)
	}
	return out, nil
}
