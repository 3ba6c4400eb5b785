package tree

import "context"

// Place is a page of a map together with the pages above it, so that a map can
// be walked page by page, in any order and by several goroutines at once.
// Places are immutable.
type Place struct {
	root  Root
	above []frame
}

// Place returns the place of the root page, where a walk begins.
func (r Root) Place() Place { return Place{root: r} }

// Page returns the page at the place: its name, height, size and a summary of
// the pages below. It is empty for the empty map, which has no page.
func (p Place) Page() Root { return p.root }

// Open reads the page at a place and calls child for each page below it, in
// order, or, if it is a leaf, entry with each entry; child maps are entries.
// Entries are as Scan yields them. The page is compared with its name and with
// the pages above, before the first call. An error of a callback ends it and
// is returned as it is.
func (t *Tree) Open(ctx context.Context, at Place, child func(Place) error, entry func(Entry) error) error {
	if at.root.Empty() {
		return nil
	}
	p, err := t.load(ctx, &at.root)
	if err == nil {
		err = checkPlace(at.above, p)
	}
	if err != nil {
		return err
	}
	if p.isLeaf() {
		p.scan(0, p.len(), func(e Entry, _ error) bool {
			err = entry(e)
			return err == nil
		})
		return err
	}
	for i := range p.len() {
		above := append(at.above[:len(at.above):len(at.above)], frame{p, i})
		if err := child(Place{p.childAt(i), above}); err != nil {
			return err
		}
	}
	return nil
}
