package tree

import "context"

// Walk goes over the pages of a map in order of keys, each before the pages
// below it, for collecting and copying them.
//
// visit is called with the name, height and stored size of a page before it is
// read; unless it returns true, the page and all below it are skipped. Leaves that
// hold no child maps are not read. Walk descends into child maps as well, at their
// place. A page that several child maps share is offered each time. Pages that it
// reads are checked against the pages above them.
func (t *Tree) Walk(ctx context.Context, root Root, visit func(name Name, height uint8, size int) (descend bool, err error)) error {
	return t.walk(ctx, root, nil, visit)
}

// walk walks from a page of a map.
func (t *Tree) walk(ctx context.Context, root Root, above []frame, visit func(Name, uint8, int) (bool, error)) error {
	if root.Empty() {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	descend, err := visit(root.Name, root.Height, int(root.Size))
	if err != nil || !descend || root.Height == 0 && root.Flags&HasChild == 0 {
		return err
	}
	p, err := t.load(ctx, &root)
	if err == nil {
		err = checkPlace(above, p)
	}
	if err != nil {
		return err
	}
	for i := range p.len() {
		if !p.isLeaf() {
			err = t.walk(ctx, p.childAt(i), append(above, frame{p, i}), visit)
		} else if kind, o := p.ordinal(i); kind == KindChild {
			err = t.walk(ctx, p.childAt(o), nil, visit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
