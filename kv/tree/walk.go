package tree

import (
	"context"
)

// Walk goes over the pages of a map in order of keys, each before those below
// it, for collecting, checking and copying them.
//
// visit is called with the name, height and stored size of a page before it is
// read; unless it returns true, the page and all below it are skipped. Walk
// descends into child maps as well, at their place. A page that several child
// maps share is offered each time. leaf, if not nil, is called with every entry
// of every leaf that was descended into, before the child map of the entry;
// entries are as those of Scan. Without leaf, leaves that hold no child maps are
// offered to visit but not read.
//
// Pages that it reads are checked against the pages above them.
func (t *Tree) Walk(ctx context.Context, root Root,
	visit func(name Name, height uint8, size int) (descend bool, err error), leaf func(Entry) error) error {
	w := walk{t: t, ctx: ctx, visit: visit, leaf: leaf}
	return w.page(root, nil)
}

type walk struct {
	t     *Tree
	ctx   context.Context
	visit func(Name, uint8, int) (bool, error)
	leaf  func(Entry) error
}

// page walks from a page of a map.
func (w *walk) page(root Root, above []frame) error {
	if root.Empty() {
		return nil
	}
	if err := w.ctx.Err(); err != nil {
		return err
	}
	descend, err := w.visit(root.Name, root.Height, int(root.Size))
	if err != nil || !descend || root.Height == 0 && w.leaf == nil && root.Flags&HasChild == 0 {
		return err
	}
	p, err := w.t.load(w.ctx, &root)
	if err == nil {
		err = checkPlace(above, p)
	}
	if err != nil {
		return err
	}
	if p.isLeaf() {
		return w.entries(p)
	}
	for i := range p.len() {
		if err := w.page(p.childAt(i), append(above, frame{p, i})); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entries(p *page) (err error) {
	p.scan(0, p.len(), func(e Entry, _ error) bool {
		if w.leaf != nil {
			err = w.leaf(e)
		}
		if err == nil && e.Value.Kind == KindChild {
			err = w.page(e.Value.Child, nil)
		}
		return err == nil
	})
	return err
}
