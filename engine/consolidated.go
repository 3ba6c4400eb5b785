package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
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
// Keys that are set by hand, or imported, are stored as they are given: then
// the copy is in the hands of who writes it, as in any other store.

// tracked is a session as arrays and groups write to it.
type tracked struct {
	*txn.Session
	copies *copies
	files  *resolver
}

var (
	_ kv.Store         = tracked{}
	_ kv.PrefixDeleter = tracked{}
)

// Set implements [kv.Writer].
func (t tracked) Set(ctx context.Context, key string, value []byte) error {
	if err := t.copies.key(ctx, key); err != nil {
		return err
	}
	return t.Session.Set(ctx, key, value)
}

// Delete implements [kv.Writer].
func (t tracked) Delete(ctx context.Context, key string) error {
	if err := t.copies.key(ctx, key); err != nil {
		return err
	}
	return t.Session.Delete(ctx, key)
}

// DeletePrefix implements [kv.PrefixDeleter].
func (t tracked) DeletePrefix(ctx context.Context, prefix string) error {
	if err := t.copies.above(ctx, cleanPath(prefix)); err != nil {
		return err
	}
	return t.Session.DeletePrefix(ctx, prefix)
}

// copies knows which groups of a session had consolidated metadata that is to
// be made again.
type copies struct {
	s    *txn.Session
	open *zarr.OpenOptions

	mu    sync.Mutex
	stale map[string]zarr.Version // by path
}

// key notes that a key is about to change.
func (c *copies) key(ctx context.Context, key string) error {
	if !isDocument(key) {
		return nil
	}
	node := parent(key)
	c.mu.Lock()
	err := c.dropDocument(ctx, node) // it has the group's own documents too
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return c.above(ctx, node)
}

// above notes that a node is about to come, change or go, and drops the copies
// of its metadata in the groups above.
func (c *copies) above(ctx context.Context, node string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := node; p != ""; {
		p = parent(p)
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
func (c *copies) dropDocument(ctx context.Context, group string) error {
	key := dir(group) + docV2Metadata
	found, err := kv.Exists(ctx, c.s, key)
	if err != nil || !found {
		return err
	}
	c.note(group, zarr.V2)
	return c.s.Delete(ctx, key)
}

func (c *copies) note(path string, v zarr.Version) {
	if c.stale == nil {
		c.stale = map[string]zarr.Version{}
	}
	c.stale[path] = v
}

// transferred notes that a node was moved or copied with those below it: copies
// that were dropped there are made again at the new place.
func (c *copies) transferred(from, to string, moved bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for path, v := range maps.Clone(c.stale) {
		if path != from && !strings.HasPrefix(path, dir(from)) {
			continue
		}
		c.stale[joinPath(to, relative(path, from))] = v
		if moved {
			delete(c.stale, path)
		}
	}
}

const inlineCopy = "consolidated_metadata"

// dropInline removes the copy that the zarr.json of a group carries.
func (c *copies) dropInline(ctx context.Context, group string) error {
	doc, err := kv.Get(ctx, c.s, dir(group)+docV3)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	copies, rest := policy{}.Copies(docV3, doc)
	if copies == nil {
		return nil
	}
	c.note(group, zarr.V3)
	return c.s.Set(ctx, dir(group)+docV3, rest)
}

// refresh makes dropped copies again, those of inner groups first. Where that
// is not possible, because a node cannot be opened, there is none any more.
func (c *copies) refresh(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(c.stale))) {
		o := *c.open
		o.Version = c.stale[path]
		switch err := zarr.Consolidate(ctx, c.s, path, &o); {
		case err == nil, errors.Is(err, zarr.ErrNotFound), errors.Is(err, zarr.ErrKind), errors.Is(err, zarr.ErrMetadata):
		default:
			return err
		}
		delete(c.stale, path)
	}
	return nil
}
