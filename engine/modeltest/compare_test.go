package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// compareTree compares every node of a hierarchy with the model: metadata,
// attributes and all values.
func compareTree(ctx context.Context, want tree, nodes iter.Seq2[*zarr.Node, error]) error {
	var found []string
	for n, err := range nodes {
		if err != nil {
			return fmt.Errorf("walk: %w", err)
		}
		found = append(found, n.Path())
		if w := want[n.Path()]; w != nil {
			if err := compareNode(ctx, w, n, true); err != nil {
				return fmt.Errorf("/%s: %w", n.Path(), err)
			}
		}
	}
	if slices.Sort(found); !slices.Equal(found, want.paths()) {
		return fmt.Errorf("nodes %q, want %q", found, want.paths())
	}
	return nil
}

// compareView is compareTree for any store, and compares consolidated metadata.
func compareView(ctx context.Context, want tree, view kv.Reader, nodes iter.Seq2[*zarr.Node, error]) error {
	if err := compareTree(ctx, want, nodes); err != nil {
		return err
	}
	return compareCopies(ctx, want, view)
}

// compareCopies compares what groups with consolidated metadata tell of the nodes
// below them.
func compareCopies(ctx context.Context, want tree, view kv.Reader) error {
	for _, top := range want.groups() {
		n, err := zarr.Open(ctx, view, top, nil)
		if err != nil {
			return err
		}
		v2, err := kv.Exists(ctx, view, joined(top, ".zmetadata"))
		if err != nil {
			return err
		}
		if !n.Meta().CarriesNodes() && !v2 {
			continue
		}
		var found []string
		for n, err := range zarr.Walk(ctx, view, top, &zarr.OpenOptions{Consolidated: true}) {
			if err != nil {
				return fmt.Errorf("consolidated metadata of /%s: %w", top, err)
			}
			found = append(found, n.Path())
			if w := want[n.Path()]; w != nil {
				if err := compareNode(ctx, w, n, false); err != nil {
					return fmt.Errorf("/%s in the consolidated metadata of /%s: %w", n.Path(), top, err)
				}
			}
		}
		due := slices.DeleteFunc(want.paths(), func(p string) bool { return !inside(p, top) })
		if slices.Sort(found); !slices.Equal(found, due) {
			return fmt.Errorf("nodes %q in the consolidated metadata of /%s, want %q", found, top, due)
		}
	}
	return nil
}

func compareNode(ctx context.Context, want *node, n *zarr.Node, values bool) error {
	attrs := map[string]string{}
	for name, v := range n.Attributes().All() {
		attrs[name] = compactJSON(v)
	}
	if !maps.Equal(attrs, want.attrs) {
		return fmt.Errorf("attributes %v, want %v", attrs, want.attrs)
	}
	a, ok := n.Array()
	if ok != (want.array != nil) {
		return fmt.Errorf("is an array: %v, want %v", ok, !ok)
	}
	if !ok {
		return nil
	}
	if !slices.Equal(a.Shape(), want.array.shape) {
		return fmt.Errorf("shape %v, want %v", a.Shape(), want.array.shape)
	}
	if !values {
		return nil
	}
	got, err := want.array.kind.read(ctx, a, zarr.Sel())
	if err != nil {
		return err
	}
	return compareValues(got, want.array.values(), want.array)
}

var errValue = errors.New("wrong value")

func compareValues(got, want []int32, a *array) error {
	if slices.Equal(got, want) {
		return nil
	}
	if len(got) != len(want) {
		return fmt.Errorf("%w: %d elements, want %d", errValue, len(got), len(want))
	}
	first, n := -1, 0
	for i := range got {
		if got[i] != want[i] {
			if n++; first < 0 {
				first = i
			}
		}
	}
	return fmt.Errorf("%w: %d of %d elements of %s%v; element %d is %d, want %d", errValue, n, len(got), a.kind.name, a.shape, first, got[first], want[first])
}

// compareSelected reads a part of an array.
func compareSelected(ctx context.Context, want *array, a *zarr.Array, s selection) error {
	got, err := want.kind.read(ctx, a, s.zarr())
	if err != nil {
		return fmt.Errorf("/%s[%v]: %w", a.Path(), s, err)
	}
	if err := compareValues(got, want.selected(s), want); err != nil {
		return fmt.Errorf("/%s[%v]: %w", a.Path(), s, err)
	}
	return nil
}

func compactJSON(text json.RawMessage) string {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return string(text)
	}
	b, _ := json.Marshal(v)
	return string(b)
}
