package policy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// Consolidated metadata is a copy of the documents below a group, kept with the
// group: .zmetadata in v2, a member of zarr.json in v3. Readers that use it
// believe it, so a session that changes an array or group through its handle
// must not leave an old copy behind. The copies above a changed node are dropped
// at once, which is always right, and made again when the session is saved or
// committed. Merges combine the copies of both sides (policy.go), and drop those
// that one side made where the other changed something below.
//
// Keys that are set directly, or imported, are stored unchanged: the writer is
// then responsible for the copy, as in any other store.

// Copies knows which groups of a session had consolidated metadata that is to
// be made again. Safe for concurrent use.
type Copies struct {
	s    kv.Store
	open *zarr.OpenOptions

	mu    sync.Mutex
	stale map[string]zarr.Version // by path
}

// NewCopies returns the copies of a session. Nodes are opened with open when
// copies are made again.
func NewCopies(s kv.Store, open *zarr.OpenOptions) *Copies { return &Copies{s: s, open: open} }

// Key notes that a key is about to change.
func (c *Copies) Key(ctx context.Context, key string) error {
	if !names.IsDocument(key) {
		return nil
	}
	node := names.Parent(key)
	c.mu.Lock()
	err := c.dropDocument(ctx, node) // it has the group's own documents too
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return c.Above(ctx, node)
}

// Above notes that a node is about to come, change or go, and drops the copies
// of its metadata in the groups above.
func (c *Copies) Above(ctx context.Context, node string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := node; p != ""; {
		p = names.Parent(p)
		if err := c.dropDocument(ctx, p); err != nil {
			return err
		}
		if err := c.dropInline(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// dropDocument removes the copy that lies beside the .zgroup of a group.
func (c *Copies) dropDocument(ctx context.Context, group string) error {
	key := names.Dir(group) + names.V2Metadata
	found, err := kv.Exists(ctx, c.s, key)
	if err != nil || !found {
		return err
	}
	c.note(group, zarr.V2)
	return c.s.Delete(ctx, key)
}

func (c *Copies) note(path string, v zarr.Version) {
	if c.stale == nil {
		c.stale = map[string]zarr.Version{}
	}
	c.stale[path] = v
}

// Transferred notes that a node was moved or copied with those below it: copies
// that were dropped there are made again at the new place.
func (c *Copies) Transferred(from, to string, moved bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for path, v := range maps.Clone(c.stale) {
		if path != from && !strings.HasPrefix(path, names.Dir(from)) {
			continue
		}
		c.stale[names.Join(to, names.Relative(path, from))] = v
		if moved {
			delete(c.stale, path)
		}
	}
}

// InlineCopy is the member of a group's zarr.json that copies the documents below.
const InlineCopy = "consolidated_metadata"

// dropInline removes the copy that the zarr.json of a group carries.
func (c *Copies) dropInline(ctx context.Context, group string) error {
	doc, err := kv.Get(ctx, c.s, names.Dir(group)+names.V3)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	copies, rest := Policy{}.Copies(names.V3, doc)
	if copies == nil {
		return nil
	}
	c.note(group, zarr.V3)
	return c.s.Set(ctx, names.Dir(group)+names.V3, rest)
}

// Refresh makes dropped copies again, those of inner groups first. If a node
// cannot be opened, the copy is left out.
func (c *Copies) Refresh(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(c.stale))) {
		o := *c.open
		o.Version = c.stale[path]
		if err := zarr.Consolidate(ctx, c.s, path, &o); err != nil && !noCopy(err) {
			return err
		}
		delete(c.stale, path)
	}
	return nil
}
