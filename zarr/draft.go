package zarr

import (
	"context"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// ErrDraft3 is returned by every change of a node in the early v3 draft, and
// where a node would be created in a store of that format. It matches
// kv.ErrReadOnly.
var ErrDraft3 = fmt.Errorf("zarr: the early v3 draft can only be read; export the store as Zarr v2 or v3 and change that: %w", kv.ErrReadOnly)

// writerOf returns the view of a node as a writer. The error is ErrDraft3 if the
// format is only read, and kv.ErrReadOnly if the view is.
func writerOf(view kv.Reader, v Version) (kv.Writer, error) {
	if v == Draft3 {
		return nil, ErrDraft3
	}
	w, ok := view.(kv.Writer)
	if !ok {
		return nil, kv.ErrReadOnly
	}
	return w, nil
}

// draftLayout returns the layout of a store in the early v3 draft. The later
// layout has an entry document, the earlier one has none. The error is
// kv.ErrNotFound if the root of the view is a node of v3.
func draftLayout(ctx context.Context, view kv.Reader) (meta.DraftLayout, error) {
	doc, err := getDocument(ctx, view, meta.DocV3, kv.AtMost(jsontext.MaxDocument))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return meta.DraftSuffix, nil
	case err != nil:
		return 0, err
	case meta.IsDraft3Entry(doc):
		return meta.DraftRoot, nil
	}
	return 0, kv.ErrNotFound
}
