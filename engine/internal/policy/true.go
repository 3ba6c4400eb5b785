package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path"
	"reflect"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// TrueDocument returns the metadata document stored under a key of a view with correct consolidated
// metadata: if the copy differs from the documents below the group, it is rebuilt. A copy that
// cannot be built, because a node below has invalid metadata, is left out; a .zmetadata is then
// kv.ErrNotFound. Other values are returned unchanged. For a copy, it opens every node below the
// group.
func TrueDocument(ctx context.Context, view kv.Reader, open *zarr.OpenOptions, key string, stored []byte) ([]byte, error) {
	group, version := names.Parent(key), zarr.V2
	var copies, rest json.RawMessage
	switch path.Base(key) {
	case names.V2Metadata:
		copies = stored
	case names.V3:
		if !bytes.Contains(stored, []byte(InlineCopy)) {
			return stored, nil
		}
		if copies, rest = (Policy{}).Copies(names.V3, stored); copies == nil {
			return stored, nil
		}
		version = zarr.V3
	default:
		return stored, nil
	}
	o := *open
	o.Version, o.Consolidated = version, false
	equal, err := copiesAreTrue(ctx, view, group, version, copies, &o)
	if err != nil || equal {
		return stored, err
	}
	list, ok := view.(kv.ReadLister)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	made := &overlay{ReadLister: list, made: kv.NewMem()}
	switch err := zarr.Consolidate(ctx, made, group, &o); {
	case err == nil:
		doc, err := kv.Get(ctx, made.made, key)
		if errors.Is(err, kv.ErrNotFound) {
			return stored, nil // equal in meaning
		}
		return doc, err
	case !noCopy(err):
		return nil, err
	case version == zarr.V3:
		return rest, nil
	}
	return nil, kv.ErrNotFound
}

// noCopy reports that a node cannot be opened, so that there is no true copy.
func noCopy(err error) bool {
	return errors.Is(err, zarr.ErrNotFound) || errors.Is(err, zarr.ErrKind) || errors.Is(err, zarr.ErrMetadata)
}

// copiesAreTrue compares consolidated metadata with the documents below a group.
func copiesAreTrue(ctx context.Context, view kv.Reader, group string, v zarr.Version, copies json.RawMessage, o *zarr.OpenOptions) (bool, error) {
	var list struct {
		Metadata map[string]any `json:"metadata"`
	}
	if DecodeNumbers(copies, &list) != nil {
		return false, nil
	}
	for node, err := range zarr.Walk(ctx, view, group, o) {
		if err != nil {
			if noCopy(err) {
				return false, nil
			}
			return false, err
		}
		if node.Version() != v || v == zarr.V3 && node.Path() == group {
			continue
		}
		for _, name := range names.Documents(v) {
			if name == names.V2Metadata {
				continue
			}
			doc, err := kv.Get(ctx, view, names.Dir(node.Path())+name)
			if errors.Is(err, kv.ErrNotFound) {
				continue
			}
			if err != nil {
				return false, err
			}
			at := names.Relative(node.Path(), group)
			if v == zarr.V2 {
				at = strings.TrimPrefix(names.Dir(node.Path())+name, names.Dir(group))
			}
			var now any
			if DecodeNumbers(doc, &now) != nil || !reflect.DeepEqual(withoutCopy(list.Metadata[at]), withoutCopy(now)) {
				return false, nil
			}
			delete(list.Metadata, at)
		}
	}
	return len(list.Metadata) == 0, nil
}

// DecodeNumbers decodes a JSON document into v with numbers as json.Number, since large
// integers have no float64. A bare NaN or infinity, which Python writes, becomes a string.
func DecodeNumbers(doc []byte, v any) error {
	doc, err := zarr.StrictJSON(doc)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	return d.Decode(v)
}

// withoutCopy leaves out the consolidated metadata of a document.
func withoutCopy(doc any) any {
	if m, ok := doc.(map[string]any); ok {
		delete(m, InlineCopy)
	}
	return doc
}

// overlay holds writes over a view separately.
type overlay struct {
	kv.ReadLister
	made *kv.Mem
}

func (o *overlay) Set(ctx context.Context, key string, value []byte) error {
	return o.made.Set(ctx, key, value)
}

func (o *overlay) Delete(context.Context, string) error { return errors.ErrUnsupported }
