package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// draftTransfer renames or copies nodes of the early v3 draft, which occupy one
// place below meta/ and another below data/.
type draftTransfer struct {
	s       *Session
	src     nodes
	version *txn.Snapshot // of src, nil for the session itself
	move    bool
}

// run transfers the node n, which is at from, to another path.
func (t draftTransfer) run(ctx context.Context, n *zarr.Node, from, to string) error {
	op := "copy"
	if t.move {
		op = "rename"
	}
	layout, _ := n.DraftLayout()
	_, array := n.Array()
	err := t.place(ctx, layout, from, to)
	if err == nil {
		err = t.transfer(ctx, layout, array, from, to)
	}
	if err != nil {
		return fmt.Errorf("%s /%s to /%s: %w", op, from, to, err)
	}
	return nil
}

// place makes sure that to can take the node.
func (t draftTransfer) place(ctx context.Context, l zarr.DraftLayout, from, to string) error {
	switch {
	case to == "":
		return errReplaceRoot
	case t.src == t.s.nodes && (to == from || strings.HasPrefix(to, dir(from))):
		return errInside
	}
	if err := l.CheckPath(to); err != nil {
		return err
	}
	if _, err := t.s.Node(ctx, to); !errors.Is(err, zarr.ErrNotFound) {
		if err == nil {
			err = zarr.ErrExists
		}
		return err
	}
	for _, array := range []bool{true, false} {
		_, prefixes := l.Span(to, array)
		for _, p := range prefixes {
			found, err := kv.Any(ctx, t.s, p)
			if err == nil && found {
				err = fmt.Errorf("%w: keys below %s", zarr.ErrExists, p)
			}
			if err != nil {
				return err
			}
		}
	}
	return t.above(ctx, l, to)
}

// above makes sure that the nearest group above to is one of the same layout. In
// a session without nodes the store begins here.
func (t draftTransfer) above(ctx context.Context, l zarr.DraftLayout, to string) error {
	for p := to; p != ""; {
		p = parent(p)
		n, err := t.s.Node(ctx, p)
		if errors.Is(err, zarr.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if _, ok := n.Array(); ok {
			return fmt.Errorf("%w: /%s is an array", zarr.ErrKind, p)
		}
		if own, ok := n.DraftLayout(); !ok || own != l {
			return fmt.Errorf("%w: /%s has another format or layout", zarr.ErrKind, p)
		}
		return nil
	}
	if l == zarr.DraftRoot {
		return zarr.InitDraft3(ctx, t.s)
	}
	found, err := kv.Exists(ctx, t.s, docV3)
	if err == nil && found {
		err = fmt.Errorf("%w: the store has the layout with an entry document", zarr.ErrKind)
	}
	return err
}

// transfer moves or copies what the node occupies. A group that has no document
// or no chunks has less.
func (t draftTransfer) transfer(ctx context.Context, l zarr.DraftLayout, array bool, from, to string) error {
	keys, prefixes := l.Span(from, array)
	toKeys, toPrefixes := l.Span(to, array)
	list, ok := t.src.view.(kv.Lister)
	if !ok {
		return errors.ErrUnsupported
	}
	for i, p := range prefixes {
		found, err := kv.Any(ctx, list, p)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		a, b := strings.TrimSuffix(p, "/"), strings.TrimSuffix(toPrefixes[i], "/")
		if t.move {
			err = t.s.Move(ctx, a, b)
		} else {
			err = t.s.Copy(ctx, t.version, a, b)
		}
		if err != nil {
			return err
		}
	}
	for i, key := range keys {
		doc, err := kv.Get(ctx, t.src.view, key)
		if errors.Is(err, kv.ErrNotFound) {
			continue
		}
		if err == nil {
			err = t.s.Set(ctx, toKeys[i], doc)
		}
		if err == nil && t.move {
			err = t.s.Delete(ctx, key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
