package policy

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// Consolidated metadata is a copy of the documents below a group, kept with the group: .zmetadata
// in v2, a member of zarr.json in v3. Readers that use it believe it, so a session that changes an
// array or group through its handle must not leave an old copy behind. The copies above a changed
// node are dropped at once, which is always right, and made again when the session is saved or
// committed, from the text of the dropped copy and the nodes that changed since: a group may have
// very many unchanged nodes. Merges combine the copies of both sides (policy.go), and drop a copy
// that one side made if the other side changed something below.
//
// Keys that are set directly, or imported, are stored unchanged: the writer is
// then responsible for the copy, as in any other store.

// Copies knows which groups of a session had consolidated metadata that is to
// be made again. Safe for concurrent use.
type Copies struct {
	s    kv.Store
	open *zarr.OpenOptions

	mu    ctxlock.Lock          // held while copies are read and removed
	stale map[string]*staleCopy // by path of the group
	// untracked says that documents changed, or may change, without a call of Key.
	untracked bool
}

// staleCopy is consolidated metadata that was dropped.
type staleCopy struct {
	version zarr.Version
	earlier []byte // as it was; nil: make it from all nodes
	// changed are the paths, relative to the group, of the nodes that may differ from it
	// now, and whether everything below them may.
	changed map[string]bool
}

// maxChanged bounds the changed paths that a copy remembers. Beyond it, opening all
// nodes is not much slower.
const maxChanged = 1000

func (c *staleCopy) note(at string, below bool) {
	if c.earlier == nil {
		return // all nodes are read
	}
	if len(c.changed) == maxChanged {
		c.earlier, c.changed = nil, nil
		return
	}
	c.changed[at] = c.changed[at] || below
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
	if err := c.mu.Lock(ctx); err != nil {
		return err
	}
	err := c.dropDocument(ctx, node) // it has the group's own documents too
	if copy := c.stale[node]; copy != nil {
		copy.note("", false)
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return c.Above(ctx, node)
}

// Above notes that a node is about to come, change or go, and drops the copies
// of its metadata in the groups above.
func (c *Copies) Above(ctx context.Context, node string) error {
	if err := c.mu.Lock(ctx); err != nil {
		return err
	}
	defer c.mu.Unlock()
	groups := []string{} // with a copy: each is part of the copies above it
	for p := node; p != ""; {
		p = names.Parent(p)
		if err := c.dropDocument(ctx, p); err != nil {
			return err
		}
		if err := c.dropInline(ctx, p); err != nil {
			return err
		}
		copy := c.stale[p]
		if copy == nil {
			continue
		}
		copy.note(names.Relative(node, p), true)
		for _, group := range groups {
			copy.note(names.Relative(group, p), false)
		}
		groups = append(groups, p)
	}
	return nil
}

// dropDocument removes the copy that lies beside the .zgroup of a group.
func (c *Copies) dropDocument(ctx context.Context, group string) error {
	key := names.Dir(group) + names.V2Metadata
	doc, err := kv.Get(ctx, c.s, key)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	c.note(group, zarr.V2, doc)
	return c.s.Delete(ctx, key)
}

func (c *Copies) note(path string, v zarr.Version, earlier []byte) {
	if c.stale == nil {
		c.stale = map[string]*staleCopy{}
	}
	copy := &staleCopy{version: v}
	if !c.untracked {
		copy.earlier, copy.changed = slices.Clone(earlier), map[string]bool{}
	}
	c.stale[path] = copy
}

// Untracked notes that documents may change without a call of [Copies.Key]: a caller writes
// single keys, or another program writes. From now on copies are made again from all nodes.
func (c *Copies) Untracked() {
	c.mu.WaitLock()
	defer c.mu.Unlock()
	c.untracked = true
	for _, copy := range c.stale {
		copy.earlier, copy.changed = nil, nil
	}
}

// Gone notes that a node is removed with everything below it. Copies that were dropped below
// the node are not made again: a new group of the same name is not consolidated. The caller
// calls [Copies.Above] too.
func (c *Copies) Gone(node string) {
	c.mu.WaitLock()
	defer c.mu.Unlock()
	for path := range c.stale {
		if path == node || strings.HasPrefix(path, names.Dir(node)) {
			delete(c.stale, path)
		}
	}
}

// Transferred notes that a node was moved or copied with the nodes below it:
// copies that were dropped there are made again at the new place.
func (c *Copies) Transferred(from, to string, moved bool) {
	c.mu.WaitLock()
	defer c.mu.Unlock()
	for path, v := range maps.Clone(c.stale) {
		if path != from && !strings.HasPrefix(path, names.Dir(from)) {
			continue
		}
		c.stale[names.Join(to, names.Relative(path, from))] = &staleCopy{v.version, v.earlier, maps.Clone(v.changed)}
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
	// Every node that is made asks for the groups above it. A name with escapes has a backslash.
	if !bytes.Contains(doc, []byte(InlineCopy)) && !bytes.ContainsRune(doc, '\\') {
		return nil
	}
	copies, rest := Policy{}.Copies(names.V3, doc)
	if copies == nil {
		return nil
	}
	c.note(group, zarr.V3, copies)
	return c.s.Set(ctx, names.Dir(group)+names.V3, rest)
}

// Refresh makes dropped copies again, inner groups first. If a node cannot be opened,
// the copy is left out. A copy that was stored since it was dropped stays.
func (c *Copies) Refresh(ctx context.Context) error {
	if err := c.mu.Lock(ctx); err != nil {
		return err
	}
	defer c.mu.Unlock()
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(c.stale))) {
		if err := c.refresh(ctx, path, c.stale[path]); err != nil && !noCopy(err) {
			return err
		}
		delete(c.stale, path)
	}
	return nil
}

func (c *Copies) refresh(ctx context.Context, path string, copy *staleCopy) error {
	o := *c.open
	o.Version = copy.version
	if copy.earlier == nil {
		return zarr.Consolidate(ctx, c.s, path, &o)
	}
	group, err := zarr.OpenGroup(ctx, c.s, path, &o)
	if err != nil {
		return err
	}
	stored := group.Meta().CarriesNodes()
	if copy.version == zarr.V2 {
		stored, err = kv.Exists(ctx, c.s, names.Dir(path)+names.V2Metadata)
	}
	if err != nil || stored {
		return err
	}
	err = zarr.UpdateConsolidated(ctx, c.s, path, copy.earlier, copy.changed, &o)
	if errors.Is(err, zarr.ErrMetadata) { // of the earlier copy, or of a node
		err = zarr.Consolidate(ctx, c.s, path, &o)
	}
	return err
}
