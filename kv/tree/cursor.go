package tree

import (
	"bytes"
	"context"
	"slices"
)

// cursor stands at a page of one level of a map. It loads the pages above, not
// the page itself.
type cursor struct {
	ctx    context.Context
	t      *Tree
	root   Root
	height uint8 // of the level
	stack  []frame
	at     Root // the page at which the cursor stands
}

// frame is an interior page and the child through which the cursor went.
type frame struct {
	p *page
	i int
}

func (t *Tree) cursor(ctx context.Context, root Root, height uint8) *cursor {
	return &cursor{ctx: ctx, t: t, root: root, height: height, at: root}
}

func (c *cursor) clone() *cursor {
	d := *c
	d.stack = slices.Clone(c.stack)
	return &d
}

// descend goes from c.at down to the level, through the children that pick
// chooses.
func (c *cursor) descend(pick func(p *page) int) error {
	for c.at.Height > c.height {
		p, err := c.load()
		if err != nil {
			return err
		}
		i := pick(p)
		c.stack = append(c.stack, frame{p, i})
		c.at = p.childAt(i)
	}
	return nil
}

func firstChild(*page) int  { return 0 }
func lastChild(p *page) int { return p.len() - 1 }

// seek goes to the page where key is or would be.
func (c *cursor) seek(key []byte) error {
	c.stack, c.at = c.stack[:0], c.root
	var buf scratchKey
	return c.descend(func(p *page) int {
		i, _ := p.find(key, buf[:])
		return min(i, p.len()-1)
	})
}

// seekLast goes to the last page.
func (c *cursor) seekLast() error {
	c.stack, c.at = c.stack[:0], c.root
	return c.descend(lastChild)
}

func (c *cursor) isFirst() bool {
	return !slices.ContainsFunc(c.stack, func(f frame) bool { return f.i > 0 })
}

func (c *cursor) isLast() bool {
	return !slices.ContainsFunc(c.stack, func(f frame) bool { return f.i < f.p.len()-1 })
}

// next goes to the next page, which must exist.
func (c *cursor) next() error { return c.move(1, firstChild) }

// prev goes to the page before, which must exist.
func (c *cursor) prev() error { return c.move(-1, lastChild) }

func (c *cursor) move(by int, pick func(*page) int) error {
	for {
		f := &c.stack[len(c.stack)-1]
		if i := f.i + by; i >= 0 && i < f.p.len() {
			f.i = i
			c.at = f.p.childAt(i)
			return c.descend(pick)
		}
		c.stack = c.stack[:len(c.stack)-1]
	}
}

// load returns the page.
func (c *cursor) load() (*page, error) {
	c.t.readAhead(c.ctx, c.stack)
	p, err := c.t.load(c.ctx, &c.at)
	if err == nil {
		err = checkPlace(c.stack, p)
	}
	return p, err
}

// checkPlace checks the keys of a page against the pages above it: the last key
// is its key there, and the first key is greater than the key before. So the
// keys of the map ascend even if the store lies.
func checkPlace(above []frame, p *page) error {
	if len(above) == 0 {
		return nil
	}
	var one, two scratchKey
	f := above[len(above)-1]
	r := f.p.enterItem(max(f.i-1, 0), one[:])
	first := p.markKey(0)
	if f.i > 0 {
		if bytes.Compare(r.key, first) >= 0 {
			return misplaced(p)
		}
		r.next()
	}
	if !bytes.Equal(r.key, p.keyAt(p.len()-1, two[:])) {
		return corrupt(p.name(), "its last key is not the one in the page above")
	}
	if f.i > 0 {
		return nil
	}
	for _, f := range slices.Backward(above[:len(above)-1]) {
		if f.i > 0 {
			if bytes.Compare(f.p.keyAt(f.i-1, one[:]), first) >= 0 {
				return misplaced(p)
			}
			break
		}
	}
	return nil
}

func misplaced(p *page) error {
	return corrupt(p.name(), "its first key is not greater than the key before it")
}

// key returns the last key of the page, which the caller owns. p is the page if
// it is loaded; only the root page is loaded for it.
func (c *cursor) key() ([]byte, error) {
	if n := len(c.stack); n > 0 {
		f := c.stack[n-1]
		return f.p.keyAt(f.i, nil), nil
	}
	p, err := c.load()
	if err != nil {
		return nil, err
	}
	return p.lastKey(), nil
}

// edge returns the item that stands for the page in the level above.
func (c *cursor) edge() (Entry, error) {
	key, err := c.key()
	return Entry{Key: key, Value: Value{Kind: KindChild, Child: c.at}}, err
}
