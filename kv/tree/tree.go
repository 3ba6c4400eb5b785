package tree

import (
	"context"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/kv/digest"
)

// Pages is a page store, safe for concurrent use.
type Pages interface {
	// GetPage returns the bytes of a page, or an error that is ErrMissing.
	// Neither caller nor store may modify the bytes.
	GetPage(ctx context.Context, name Name) ([]byte, error)
	// PutPage stores a page, which it may keep: the caller never modifies it.
	// Putting a page that is there already is fine.
	PutPage(ctx context.Context, name Name, page []byte) error
}

// PageViewer is an optional interface of [Pages]: it lends a page where GetPage
// copies it.
type PageViewer interface {
	// ViewPage calls fn once with the bytes of a page, which are valid until it
	// returns, and returns its error as it is. Other errors are those of GetPage.
	ViewPage(ctx context.Context, name Name, fn func(page []byte) error) error
}

// ViewPage is [PageViewer].ViewPage of any store: fn gets the bytes that the store lends, or a
// copy.
func ViewPage(ctx context.Context, from Pages, name Name, fn func(page []byte) error) error {
	if v, ok := from.(PageViewer); ok {
		return v.ViewPage(ctx, name, fn)
	}
	page, err := from.GetPage(ctx, name)
	if err != nil {
		return err
	}
	return fn(page)
}

// Options of a Tree. Nil and the zero value work.
type Options struct {
	// CacheBytes bounds the memory of parsed pages. Default 64 MiB; a negative
	// value means no cache.
	CacheBytes int64
	// Cache holds parsed pages in place of a cache of CacheBytes. See [Tree.With] for
	// the effect of a shared cache.
	Cache *Cache

	shape shape // tests use smaller pages
}

func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.CacheBytes == 0 {
		out.CacheBytes = 64 << 20
	}
	if out.shape == (shape{}) {
		out.shape = defaultShape
	}
	return out
}

// Tree reads and makes maps in a page store. It has no state but a cache and is
// safe for concurrent use.
type Tree struct {
	pages Pages
	cache *Cache // nil without one
	shape shape
	held  *heldPages // takes new pages if it is there

	fetcher *fetcher // nil if pages are read one by one
}

// New returns a Tree over a page store.
func New(p Pages, o *Options) *Tree {
	opts := o.withDefaults()
	t := &Tree{pages: p, cache: opts.Cache, shape: opts.shape}
	if t.cache == nil && opts.CacheBytes > 0 {
		t.cache = NewCache(opts.CacheBytes)
	}
	t.fetcher = newFetcher(p, t.cache)
	return t
}

// With returns a Tree over another page store that shares the cache of t. A page
// in the cache is found even if the store does not have it; names are hashes of
// content, so it is the right page. Checks and garbage collection, which must
// know the pages of a store, use a Tree without a cache.
func (t *Tree) With(p Pages) *Tree {
	u := *t
	u.pages, u.fetcher = p, newFetcher(p, t.cache)
	return &u
}

// Pages returns the page store.
func (t *Tree) Pages() Pages { return t.pages }

// load returns the page that r names and checks it against r.
func (t *Tree) load(ctx context.Context, r *Root) (p *page, err error) {
	if t.cache != nil {
		p = t.cache.get(&r.Name)
	}
	if p == nil && t.fetcher != nil && t.fetcher.wait(ctx, &r.Name) {
		p = t.cache.get(&r.Name)
	}
	if p == nil {
		if p, err = t.read(ctx, r); err != nil {
			return nil, err
		}
	}
	if err := p.is(r); err != nil {
		return nil, err
	}
	return p, nil
}

// read gets a page from the store into the cache.
func (t *Tree) read(ctx context.Context, r *Root) (*page, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, err := view(ctx, t.pages, *r)
	if err != nil {
		return nil, err
	}
	if t.cache != nil {
		t.cache.put(p)
	}
	return p, nil
}

func view(ctx context.Context, from Pages, r Root) (p *page, err error) {
	store := ViewPage(ctx, from, r.Name, func(raw []byte) error {
		if err = compare(&r, raw); err == nil {
			p, err = decodePage(r.Name, raw)
		}
		return nil
	})
	if store != nil {
		err = readError(&r, store)
	}
	return p, err
}

// fetch gets the bytes of a page from the store and compares them with its name.
func (t *Tree) fetch(ctx context.Context, r *Root) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	raw, err := t.pages.GetPage(ctx, r.Name)
	if err != nil {
		return nil, readError(r, err)
	}
	return raw, compare(r, raw)
}

func readError(r *Root, err error) error {
	if errors.Is(err, ErrMissing) {
		return fmt.Errorf("%w: %v", ErrMissing, r.Name)
	}
	return fmt.Errorf("tree: read page %v: %w", r.Name, err)
}

func compare(r *Root, raw []byte) error {
	if digest.Of(raw) != r.Name {
		return corrupt(r.Name, "its %d bytes have another hash", len(raw))
	}
	return nil
}

// put stores a page that was just made. If it is to be kept, it goes into the
// cache as well.
func (t *Tree) put(ctx context.Context, raw []byte, r *Root, keep bool) error {
	if t.held != nil {
		t.held.add(r.Name, raw)
	} else if err := t.store(ctx, r.Name, raw); err != nil {
		return err
	}
	if !keep || t.cache == nil {
		return nil
	}
	p, err := decodePage(r.Name, raw)
	if err != nil {
		return fmt.Errorf("tree: bug: a page that was just made: %w", err)
	}
	p.used.Store(true)
	t.cache.put(p)
	return nil
}

func (t *Tree) store(ctx context.Context, name Name, raw []byte) error {
	if err := t.pages.PutPage(ctx, name, raw); err != nil {
		return fmt.Errorf("tree: store page %v: %w", name, err)
	}
	return nil
}

// scratchKey is room for keys of a usual length; longer ones are built on the
// heap.
type scratchKey = [128]byte

// Get returns the value of a key and whether the key exists. If the pages are in
// the cache and keys have at most 128 bytes it allocates nothing but, for a
// virtual value, the text of its source.
func (t *Tree) Get(ctx context.Context, root Root, key []byte) (Value, bool, error) {
	var v Value
	if root.Empty() {
		return v, false, nil
	}
	var buf scratchKey
	t.getPath(ctx, &root, key)
	p, err := t.load(ctx, &root)
	for {
		if err != nil {
			return v, false, err
		}
		i, exact := p.find(key, buf[:])
		if p.isLeaf() {
			if exact {
				p.value(i, &v)
			}
			return v, exact, nil
		}
		if i == p.len() {
			return v, false, nil
		}
		p, err = t.below(ctx, p, i, key)
	}
}

// below returns page i below an interior page, on the way to a key. Cache hits check name and height
// only: each of the other columns of p would cost a miss of the processor's
// cache. Those were checked when the page was read.
func (t *Tree) below(ctx context.Context, p *page, i int, key []byte) (*page, error) {
	if t.cache != nil {
		name := p.child.name(p.raw, i)
		if q := t.cache.get(&name); q != nil && q.self.Height == p.self.Height-1 {
			return q, nil
		}
	}
	at := p.childAt(i)
	t.getPath(ctx, &at, key)
	return t.load(ctx, &at)
}
