package engine

import (
	"context"
	"iter"

	"github.com/zarrdb/zarrdb/engine/internal/compare"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// NodeChange is the difference at one node between two versions.
type NodeChange = compare.NodeChange

// ValueChange is the difference of values within one part of an array.
type ValueChange = compare.ValueChange

// NodeChanges returns the differences between two versions at and below a path,
// by node and sorted by path. Renamed arrays are compared with their old paths,
// and groups if all their members moved along. Consolidated metadata, which
// copies other documents, is left out. The cost grows with the changes.
func (db *DB) NodeChanges(ctx context.Context, from, to txn.CommitID, at string) ([]NodeChange, error) {
	older, err := db.Snapshot(ctx, from)
	if err != nil {
		return nil, err
	}
	defer older.Close()
	newer, err := db.Snapshot(ctx, to)
	if err != nil {
		return nil, err
	}
	defer newer.Close()
	renames, keys, err := db.store.DiffFollowed(ctx, from, to, names.Dir(names.Clean(at)))
	if err != nil {
		return nil, err
	}
	return compare.Nodes(ctx, older, newer, compare.Changes{Renames: renames, Keys: keys})
}

// ValueChanges compares the values of an array that NodeChanges found changed or
// renamed, where both versions have elements, and yields the parts that differ,
// each within one chunk. Only chunks that changed are decoded, one after the
// other, unless the chunking or the encoding changed: then all are. A value that
// was encoded anew to the same is no difference. Nodes that are no arrays in both
// versions yield nothing.
func (db *DB) ValueChanges(ctx context.Context, from, to txn.CommitID, c NodeChange) iter.Seq2[ValueChange, error] {
	return func(yield func(ValueChange, error) bool) {
		if err := db.valueChanges(ctx, from, to, c, yield); err != nil {
			yield(ValueChange{}, err)
		}
	}
}

// valueChanges is ValueChanges with the error as its result.
func (db *DB) valueChanges(ctx context.Context, from, to txn.CommitID, c NodeChange, yield func(ValueChange, error) bool) error {
	return db.bothArrays(ctx, from, to, c, func(old, new *zarr.Array, keys iter.Seq2[txn.Change, error]) error {
		compare.Values(ctx, c.Path, old, new, keys)(yield)
		return nil
	})
}

// ChangedParts calls fn with both states of an array that NodeChanges found changed or
// renamed, and with the parts that ValueChanges compares: each is within one chunk, and
// outside of all parts the stored values are equal. The arrays are valid until fn returns.
// fn is not called for a node that is not an array in both versions. The error comes from
// fn or from opening the arrays.
func (db *DB) ChangedParts(ctx context.Context, from, to txn.CommitID, c NodeChange, fn func(older, newer *zarr.Array, parts iter.Seq2[zarr.Chunk, error]) error) error {
	return db.bothArrays(ctx, from, to, c, func(old, new *zarr.Array, keys iter.Seq2[txn.Change, error]) error {
		return fn(old, new, compare.Parts(ctx, old, new, keys))
	})
}

// bothArrays calls fn with both states of an array and the changes of its keys.
func (db *DB) bothArrays(ctx context.Context, from, to txn.CommitID, c NodeChange, fn func(old, new *zarr.Array, keys iter.Seq2[txn.Change, error]) error) error {
	if c.Kind != "changed" && c.Kind != "renamed" {
		return nil
	}
	paths := [2]string{c.Path, c.Path}
	if c.From != "" {
		paths[0] = c.From
	}
	var arrays [2]*zarr.Array
	for i, id := range []txn.CommitID{from, to} {
		s, err := db.Snapshot(ctx, id)
		if err != nil {
			return err
		}
		defer s.Close()
		n, err := s.Node(ctx, paths[i])
		if err != nil {
			return err
		}
		var ok bool
		if arrays[i], ok = n.Array(); !ok {
			return nil
		}
	}
	return fn(arrays[0], arrays[1], db.store.DiffNode(ctx, from, paths[0], to, paths[1]))
}
