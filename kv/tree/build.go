package tree

import (
	"context"
	"fmt"
	"sync"
)

// pageWriter cuts the items of one level into pages and stores them.
type pageWriter struct {
	ctx    context.Context
	t      *Tree
	height uint8
	enc    *pageEncoder
	weight uint64

	// An interior page that ends waits until two items for the next are there:
	// one alone would be joined to it.
	full bool
	held *Entry // the first item after a full page
	only *Entry // the first item in enc, above the leaves

	keep  bool    // pages go into the cache
	known []Entry // pages that are stored already and need not be put again
	edges func(Entry) error
}

var encoderPool = sync.Pool{New: func() any { return new(pageEncoder) }}

// newPageWriter returns a writer that calls edges with the items of the level
// above. The caller closes it.
func (t *Tree) newPageWriter(ctx context.Context, height uint8, edges func(Entry) error) *pageWriter {
	w := &pageWriter{ctx: ctx, t: t, height: height, edges: edges, enc: encoderPool.Get().(*pageEncoder)}
	w.start()
	return w
}

// close releases the buffers of w. An unfinished page is dropped.
func (w *pageWriter) close() {
	if w.enc != nil {
		w.enc.release()
		w.enc = nil
	}
}

// start makes w ready for the first item of a page.
func (w *pageWriter) start() {
	w.enc.reset(w.height)
	w.weight, w.full = 0, false
}

// add appends an item, which is copied.
func (w *pageWriter) add(e *Entry) error {
	if w.full {
		if w.held == nil {
			w.held = cloneEdge(e)
			return nil
		}
		if err := w.flush(); err != nil {
			return err
		}
		held := w.held
		w.held = nil
		if err := w.append(held); err != nil {
			return err
		}
	}
	return w.append(e)
}

// cloneEdge copies an item of an interior page.
func cloneEdge(e *Entry) *Entry {
	return &Entry{Key: append([]byte{}, e.Key...), Value: e.Value}
}

func (w *pageWriter) append(e *Entry) error {
	if !w.enc.add(e) {
		return fmt.Errorf("%w: %s after %s", errOrder, quoteKey(e.Key), quoteKey(w.enc.keys.last))
	}
	if w.height > 0 && w.enc.n == 1 {
		w.only = cloneEdge(e)
	}
	before := w.weight
	w.weight += weight(w.height, e)
	if w.height > 0 && w.enc.n < 2 || !w.t.shape.cuts(w.height, e.Key, before, w.weight) {
		return nil
	}
	if w.height > 0 {
		w.full = true
		return nil
	}
	return w.flush()
}

// clean reports whether the next item begins a page, unless it is the last of
// its level.
func (w *pageWriter) clean() bool { return w.enc.n == 0 || w.full && w.held == nil }

// finish stores the last page at the end of the level, or before an item that is
// known to begin a page.
func (w *pageWriter) finish() error {
	if w.held != nil {
		held := w.held
		w.held = nil
		w.full = false
		if !w.enc.add(held) {
			return fmt.Errorf("%w: %s", errOrder, quoteKey(held.Key))
		}
	}
	if w.enc.n == 0 {
		return nil
	}
	return w.flush()
}

// flush stores the page.
func (w *pageWriter) flush() error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	raw, root := w.enc.finish()
	edge := Entry{Key: append([]byte{}, w.enc.keys.last...), Value: Value{Kind: KindChild, Child: root}}
	if !w.stored(root.Name) {
		if err := w.t.put(w.ctx, raw, &root, w.keep); err != nil {
			return err
		}
	}
	w.start()
	return w.edges(edge)
}

// stored reports whether the page is one of the last known ones.
func (w *pageWriter) stored(name Name) bool {
	for i := len(w.known) - 1; i >= max(0, len(w.known)-4); i-- {
		if w.known[i].Value.Child.Name == name {
			return true
		}
	}
	return false
}

// Builder makes a map of entries that come in order. It holds one page per
// level. Not safe for concurrent use.
type Builder struct {
	ctx    context.Context
	t      *Tree
	levels []*builderLevel
	err    error
}

// builderLevel is a level under construction. Its first edge waits: if it stays
// the only one, it is the root and the level above does not exist.
type builderLevel struct {
	w     *pageWriter
	first *Entry
}

// NewBuilder returns a Builder that stores its pages in the store of t.
func (t *Tree) NewBuilder(ctx context.Context) *Builder {
	b := &Builder{ctx: ctx, t: t}
	b.level(0)
	return b
}

// level returns a level, which it adds if it is the next.
func (b *Builder) level(n int) *builderLevel {
	if n == len(b.levels) {
		w := b.t.newPageWriter(b.ctx, uint8(n), func(e Entry) error { return b.edge(n, e) })
		b.levels = append(b.levels, &builderLevel{w: w})
	}
	return b.levels[n]
}

// edge adds a finished page of level n to the level above.
func (b *Builder) edge(n int, e Entry) error {
	l := b.levels[n]
	if len(b.levels) == n+1 {
		if l.first == nil {
			l.first = &e
			return nil
		}
		first := l.first
		if err := b.level(n + 1).w.add(first); err != nil {
			return err
		}
	}
	return b.level(n + 1).w.add(&e)
}

// Add appends an entry, whose key must be greater than the one before. The
// entry is copied. After an error the Builder only returns that error.
func (b *Builder) Add(e *Entry) error {
	if b.err == nil {
		b.err = e.check()
	}
	if b.err == nil {
		b.err = b.levels[0].w.add(e)
	}
	return b.err
}

// Finish stores the last pages and returns the map. The Builder cannot be used
// any more.
func (b *Builder) Finish() (Root, error) {
	if b.err != nil {
		return Root{}, b.err
	}
	b.err = fmt.Errorf("%w: builder is finished", errInvalid)
	for n := 0; n < len(b.levels); n++ {
		if err := b.levels[n].w.finish(); err != nil {
			return Root{}, err
		}
		b.levels[n].w.close()
	}
	if top := b.levels[len(b.levels)-1]; top.first != nil {
		return top.first.Value.Child, nil
	}
	return Root{}, nil
}
