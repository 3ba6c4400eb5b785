package namespace

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"unsafe"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// run is a chunk map under construction. As long as chunks come in the order of
// their coordinates, they go straight into a builder; from the first that does
// not, they are collected, sorted and applied in batches.
type run struct {
	b    *Builder
	dir  string
	form Form

	builder *tree.Builder
	latest  []byte    // coordinates that the builder got last
	root    tree.Root // once there is no builder

	items   []runItem
	coords  []byte        // of items
	sources []tree.Source // of virtual items
	values  []tree.Value  // of other items
}

// runItem is a chunk that waits to be sorted, in 40 bytes where its value takes
// 200.
type runItem struct {
	head           uint64 // the first 8 bytes of the coordinates
	offset, length uint64
	at             uint32 // in coords
	what           int32  // index of the source or, if negative, -1 - index of the value
	n              uint16
}

// add adds a chunk, whose key is its coordinates. It is copied.
func (r *run) add(ctx context.Context, e *tree.Entry) error {
	coords, v := e.Key, &e.Value
	if r.builder != nil {
		if len(r.latest) == 0 || bytes.Compare(coords, r.latest) > 0 {
			r.latest = append(r.latest[:0], coords...)
			return r.builder.Add(e)
		}
		if err := r.seal(); err != nil {
			return err
		}
	}
	it := runItem{head: coordHead(coords), at: uint32(len(r.coords)), n: uint16(len(coords)), offset: v.Offset, length: v.Length}
	before := r.bytes()
	if v.Kind == tree.KindVirtual {
		if n := len(r.sources); n == 0 || r.sources[n-1] != v.Source {
			r.sources = append(r.sources, v.Source)
		}
		it.what = int32(len(r.sources) - 1)
	} else {
		r.values = append(r.values, *v)
		it.what = int32(-len(r.values))
	}
	r.coords = append(r.coords, coords...)
	r.items = append(r.items, it)
	r.b.held += r.bytes() - before + int64(len(v.Inline))
	if r.b.held > r.b.Limits.Held {
		return r.b.sortSome(ctx)
	}
	return nil
}

// bytes is the memory that waiting chunks take, without inline bytes.
func (r *run) bytes() int64 {
	return int64(cap(r.items))*int64(unsafe.Sizeof(runItem{})) + int64(cap(r.coords)) +
		int64(cap(r.sources))*int64(unsafe.Sizeof(tree.Source{})) + int64(cap(r.values))*int64(unsafe.Sizeof(tree.Value{}))
}

// seal ends building in order.
func (r *run) seal() (err error) {
	if r.builder == nil {
		return nil
	}
	r.root, err = r.builder.Finish()
	r.builder, r.latest = nil, nil
	r.b.open = slices.DeleteFunc(r.b.open, func(o *run) bool { return o == r })
	return err
}

// sortSome applies the chunks of the largest runs, until half of the bound is
// free.
func (b *Builder) sortSome(ctx context.Context) error {
	waiting := make([]*run, 0, len(b.runs))
	for _, r := range b.runs {
		if len(r.items) > 0 {
			waiting = append(waiting, r)
		}
	}
	slices.SortFunc(waiting, func(x, y *run) int { return cmp.Compare(y.bytes(), x.bytes()) })
	for _, r := range waiting {
		if b.held <= b.Limits.Held/2 {
			break
		}
		if err := r.apply(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) key(i *runItem) []byte { return r.coords[i.at:][:i.n:i.n] }

func (r *run) value(i *runItem) tree.Value {
	if i.what < 0 {
		return r.values[-1-i.what]
	}
	return tree.Value{Kind: tree.KindVirtual, Source: r.sources[i.what], Offset: i.offset, Length: i.length}
}

// apply sorts what was collected into the map.
func (r *run) apply(ctx context.Context) (err error) {
	order := func(x, y runItem) int {
		if x.head != y.head {
			return cmp.Compare(x.head, y.head)
		}
		if c := bytes.Compare(r.key(&x), r.key(&y)); c != 0 {
			return c
		}
		return cmp.Compare(x.at, y.at) // the one that came last stays
	}
	if !slices.IsSortedFunc(r.items, order) {
		slices.SortFunc(r.items, order)
	}
	items := r.items[:0]
	for i, it := range r.items {
		if i+1 < len(r.items) && bytes.Equal(r.key(&it), r.key(&r.items[i+1])) {
			continue
		}
		items = append(items, it)
	}
	r.root, err = r.b.s.writeMap(ctx, r.root, len(items), func(i int) tree.Edit {
		return tree.Edit{Key: r.key(&items[i]), Value: r.value(&items[i])}
	})
	held := r.bytes()
	for i := range r.values {
		held += int64(len(r.values[i].Inline))
	}
	r.b.held -= held
	r.items, r.coords, r.sources, r.values = nil, nil, nil, nil
	return err
}

// finish returns the whole map.
func (r *run) finish(ctx context.Context) (tree.Root, error) {
	if err := r.seal(); err != nil {
		return tree.Root{}, err
	}
	if len(r.items) > 0 {
		if err := r.apply(ctx); err != nil {
			return tree.Root{}, err
		}
	}
	return r.root, nil
}
