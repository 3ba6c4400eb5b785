package zarr

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
)

// This file changes stores in the early v3 draft, whose keys begin at the root
// of the view.

// draftEntryDoc is the entry document of a new store.
const draftEntryDoc = `{
    "extensions": [],
    "metadata_encoding": "` + draftEntry + `",
    "metadata_key_suffix": ".json",
    "zarr_format": "` + draftEntry + `"
}
`

// InitDraft3 makes a view that holds no node a store in the early v3 draft whose
// layout is [DraftRoot], by writing its entry document, zarr.json: what is then
// created at its root or below has that layout. Without one the early draft is
// written as its text has it, in [DraftSuffix]. A store that has the entry stays
// as it is. The view must be a [kv.Writer] and a [kv.Lister]. Where there are
// nodes of another layout or format the error is [ErrExists].
func InitDraft3(ctx context.Context, view kv.Reader) error {
	return failAt("create", "", initDraft(ctx, view))
}

func initDraft(ctx context.Context, view kv.Reader) error {
	w, ok := view.(kv.Writer)
	if !ok {
		return kv.ErrReadOnly
	}
	_, entry, err := draftLayout(ctx, view)
	switch {
	case err == nil && entry:
		return nil
	case errors.Is(err, kv.ErrNotFound):
		return fmt.Errorf("%w: a %s that is no entry document", ErrExists, docV3)
	case err != nil:
		return err
	}
	for _, err := range Walk(ctx, view, "", nil) {
		switch {
		case err == nil:
			return fmt.Errorf("%w: nodes that do not lie below an entry document", ErrExists)
		case !errors.Is(err, ErrNotFound):
			return err
		}
	}
	return w.Set(ctx, docV3, []byte(draftEntryDoc))
}

// draftLayout returns the layout that a store in the early v3 draft has: the
// later one has an entry document, the earlier one is told by its keys. The
// error is kv.ErrNotFound if the root of the view is a node of v3.
func draftLayout(ctx context.Context, view kv.Reader) (l DraftLayout, entry bool, err error) {
	doc, err := kv.Get(ctx, view, docV3)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return DraftSuffix, false, nil
	case err != nil:
		return 0, false, err
	case IsDraft3Entry(doc):
		return DraftRoot, true, nil
	}
	return 0, false, kv.ErrNotFound
}

// Span returns what a node and everything below it occupy in the view: single
// keys, and prefixes that end with a slash. For two paths the lists go in
// parallel. An array of [DraftSuffix], for example, has meta/foo.a/ and
// data/foo.a/. (Early v3 draft, Protocol operations.)
func (l DraftLayout) Span(path string, array bool) (keys, prefixes []string) {
	switch {
	case l == DraftSuffix && array:
		return nil, []string{"meta/" + draftPath(path, "a"), "data/" + draftPath(path, "a")}
	case l == DraftSuffix:
		return nil, []string{"meta/" + draftPath(path, "g"), "data/" + draftPath(path, "g")}
	case array:
		return []string{l.ArrayKey(path)}, []string{l.ChunkPrefix(path)}
	}
	return []string{l.GroupKey(path)}, []string{l.GroupPrefix(path), l.ChunkPrefix(path)}
}

// CheckPath reports whether nodes of the layout may have the path, which may
// begin with a slash. Names consist of a-z, A-Z, 0-9 and the characters ".-_";
// what file systems or the layout take for something else is no name. Errors
// are ErrPath. (Early v3 draft, Store interface.)
func (l DraftLayout) CheckPath(path string) error {
	_, err := cleanDraftPath(l, path)
	return err
}

// checkDraftName is CheckPath for one name.
func checkDraftName(l DraftLayout, name string) error {
	if name == "" {
		return fmt.Errorf("%w: a node name is not empty", ErrPath)
	}
	for _, c := range name {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_", c) {
			return fmt.Errorf("%w: %q contains %q: keys of the early v3 draft consist of a-z, A-Z, 0-9 and ./-_", ErrPath, name, c)
		}
	}
	if name == "." || name == ".." {
		return fmt.Errorf("%w: segment %q", ErrPath, name)
	}
	if l == DraftRoot {
		for _, end := range []string{"." + docArrayDraft, "." + docGroupDraft} {
			if strings.HasSuffix(name, end) {
				return fmt.Errorf("%w: %q ends like the key of a document", ErrPath, name)
			}
		}
	}
	return nil
}

// cleanDraftPath returns a path without the slash that it may begin with. Every
// name must pass checkDraftName.
func cleanDraftPath(l DraftLayout, path string) (string, error) {
	clean := strings.TrimPrefix(path, "/")
	if clean == "" {
		return "", nil
	}
	for name := range strings.SplitSeq(clean, "/") {
		if err := checkDraftName(l, name); err != nil {
			return "", fmt.Errorf("%w in path %q", err, path)
		}
	}
	return clean, nil
}

// delete removes a node and everything below it.
func (l DraftLayout) delete(ctx context.Context, w kv.Writer, path string, array bool) error {
	keys, prefixes := l.Span(path, array)
	if err := kv.DeleteAll(ctx, w, keys); err != nil {
		return err
	}
	for _, p := range prefixes {
		if err := kv.DeletePrefix(ctx, w, p); err != nil {
			return err
		}
	}
	return nil
}

// clearDraft makes sure that nothing is in the way of a node of the draft.
// Groups without a document may get one.
func (c *creator) clearDraft(ctx context.Context, array bool) error {
	n, err := c.find(ctx, c.path)
	switch {
	case err == nil && c.opts.Overwrite:
		return c.overwriteDraft(ctx, n)
	case err == nil && (array || n.array != nil || n.loc.version != Draft3 || n.Meta().src != nil):
		return ErrExists
	case err == nil:
		return nil
	case !errors.Is(err, ErrNotFound) && !c.opts.Overwrite:
		return err
	}
	if c.opts.Overwrite {
		return c.overwriteDraft(ctx, nil)
	}
	list, ok := c.view.(kv.Lister)
	if !ok || !array {
		return nil
	}
	_, prefixes := c.layout.Span(c.path, true)
	for _, p := range prefixes {
		some, err := kv.Any(ctx, list, p)
		if err == nil && some {
			err = fmt.Errorf("%w: keys that would become part of the array", ErrExists)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// overwriteDraft deletes what is at the path, n if it can be opened, and what is
// below.
func (c *creator) overwriteDraft(ctx context.Context, n *Node) error {
	if c.path == "" {
		if err := kv.DeletePrefix(ctx, c.writer, ""); err != nil || c.layout != DraftRoot {
			return err
		}
		return c.writer.Set(ctx, docV3, []byte(draftEntryDoc))
	}
	if n != nil && n.loc.version != Draft3 {
		if err := n.Delete(ctx); err != nil {
			return err
		}
	}
	if err := c.layout.delete(ctx, c.writer, c.path, true); err != nil {
		return err
	}
	return c.layout.delete(ctx, c.writer, c.path, false)
}
