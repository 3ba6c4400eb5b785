package overlay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// Overlay is the page store of a session: pages it made are private, in memory
// until they outgrow a bound and then in the index, where nothing names them.
//
// Pages are made bottom-up, so what a spilled page names was spilled before or
// with it: a walk from a root that stops at pages which are not in memory
// finds every page that still has to be written. ([Group] keep that true for
// pages that name those of another overlay.)
type Overlay struct {
	Below tree.Pages
	Bound int64

	// spilling is held while pages go below, which may be a request to another process.
	spilling ctxlock.Lock

	mu    sync.RWMutex // memory alone
	pages map[tree.Name][]byte
	bytes int64
	names []tree.Name // of pages in the order in which they came, if they are logged
	logs  bool
	// spilled are the pages that went, or go, to the index before anything names them.
	// The collector spares them while the session is open.
	spilled map[tree.Name]struct{}
	// uncounted is the size of those that countSpilled has not seen.
	uncounted int64
}

var _ tree.Pages = (*Overlay)(nil)

// Spiller is a page store below an overlay, which takes the pages beyond the bound of the overlay.
type Spiller interface {
	Spill(ctx context.Context, pages map[tree.Name][]byte) error
}

// New returns an overlay of pages below. When the private pages have more than bound bytes, they go into below, which is a [Spiller] then.
func New(below tree.Pages, bound int64) *Overlay {
	return &Overlay{Below: below, Bound: bound, pages: map[tree.Name][]byte{}}
}

// Own returns a page that is in memory, nil if it is not.
func (o *Overlay) Own(name tree.Name) []byte {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.pages[name]
}

// GetPage implements [tree.Pages].
func (o *Overlay) GetPage(ctx context.Context, name tree.Name) ([]byte, error) {
	if b := o.Own(name); b != nil {
		return b, nil
	}
	return o.Below.GetPage(ctx, name)
}

// PutPage implements [tree.Pages].
func (o *Overlay) PutPage(ctx context.Context, name tree.Name, page []byte) error {
	if !o.put(name, page) {
		return nil
	}
	return o.Spill(ctx)
}

// put keeps a page in memory, and reports whether they outgrow the bound.
func (o *Overlay) put(name tree.Name, page []byte) (full bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.pages[name]; !ok {
		o.pages[name] = page
		o.bytes += int64(len(page))
	}
	if o.logs {
		o.names = append(o.names, name)
	}
	return o.bytes > o.Bound
}

// Log begins to note which pages come, and returns how many have.
func (o *Overlay) Log() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.logs = true
	return len(o.names)
}

// Logged returns the pages that came after so many, and ends the notes.
func (o *Overlay) Logged(after int) []tree.Name {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.logs = false
	return o.names[after:len(o.names):len(o.names)]
}

// Spill moves every page to the index without waiting for the disk: the synced
// batch of the savepoint or commit comes later in the same log. Pages are read from
// memory until they are there.
func (o *Overlay) Spill(ctx context.Context) error {
	if err := o.spilling.Lock(ctx); err != nil {
		return err
	}
	defer o.spilling.Unlock()
	pages := o.toSpill()
	if len(pages) == 0 {
		return nil
	}
	if err := o.Below.(Spiller).Spill(ctx, pages); err != nil {
		return fmt.Errorf("txn: spill pages of a session: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, page := range pages {
		o.uncounted += int64(len(page))
		o.remove(name)
	}
	return nil
}

// toSpill returns the pages that are in memory. From now on the collector spares them.
func (o *Overlay) toSpill() map[tree.Name][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spilled == nil {
		o.spilled = map[tree.Name]struct{}{}
	}
	for name := range o.pages {
		o.spilled[name] = struct{}{}
	}
	return maps.Clone(o.pages)
}

// remove forgets a page, if it is still there. The caller holds mu.
func (o *Overlay) remove(name tree.Name) {
	if b, ok := o.pages[name]; ok {
		delete(o.pages, name)
		o.bytes -= int64(len(b))
	}
}

// CountSpilled returns how many bytes went to the index since the last call.
func (o *Overlay) CountSpilled() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.uncounted
	o.uncounted = 0
	return n
}

// EachSpilled calls fn with the names of pages that were spilled.
func (o *Overlay) EachSpilled(fn func(tree.Name)) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	for name := range o.spilled {
		fn(name)
	}
}

// Drop forgets pages that have been written.
func (o *Overlay) Drop(names map[tree.Name]struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name := range names {
		o.remove(name)
	}
}

// Forget drops everything that is in memory.
func (o *Overlay) Forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.pages)
	o.bytes = 0
}

// Size is how many bytes are in memory.
func (o *Overlay) Size() int64 {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.bytes
}

// Empty reports whether no page is in memory.
func (o *Overlay) Empty() bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return len(o.pages) == 0
}

// Group is the page store of a commit group: it sees the private pages of
// every session in the group and puts new ones into the first.
type Group []*Overlay

var _ tree.Pages = Group(nil)

// Own returns a page that one of the sessions has in memory.
func (g Group) Own(name tree.Name) []byte {
	for _, o := range g {
		if b := o.Own(name); b != nil {
			return b
		}
	}
	return nil
}

// GetPage implements [tree.Pages].
func (g Group) GetPage(ctx context.Context, name tree.Name) ([]byte, error) {
	if b := g.Own(name); b != nil {
		return b, nil
	}
	// A page may have gone from memory to the index between the two looks.
	return g[0].GetPage(ctx, name)
}

// PutPage implements [tree.Pages]. A page of the group may name pages of any
// session in it, so those are spilled before it is.
func (g Group) PutPage(ctx context.Context, name tree.Name, page []byte) error {
	first := g[0]
	if !first.put(name, page) {
		return nil
	}
	for _, o := range g[1:] {
		if err := o.Spill(ctx); err != nil {
			return err
		}
	}
	return first.Spill(ctx)
}

// Private yields the pages below root that are in memory only. seen collects
// their names and keeps shared ones from being visited twice.
func (g Group) Private(ctx context.Context, t *tree.Tree, root tree.Root, seen map[tree.Name]struct{}, put func(tree.Name, []byte)) error {
	err := t.Walk(ctx, root, func(name tree.Name, _ uint8, _ int) (bool, error) {
		if _, ok := seen[name]; ok {
			return false, nil
		}
		page := g.Own(name)
		if page == nil {
			return false, nil
		}
		seen[name] = struct{}{}
		put(name, page)
		return true, nil
	})
	if errors.Is(err, tree.ErrMissing) {
		return fmt.Errorf("txn: bug: a new version names a page that was never written: %w", err)
	}
	return err
}
