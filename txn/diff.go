package txn

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
	"github.com/zarrdb/zarrdb/txn/internal/overlay"
)

// Rename says that an array that was at From is at To.
type Rename struct{ From, To string }

// DiffFollowed is [DB.Diff] with arrays that were renamed compared with what they
// were, under their new paths; the renames that touch prefix are returned too.
// What lay at a new path before is not told.
func (db *DB) DiffFollowed(ctx context.Context, from, to CommitID, prefix string) ([]Rename, iter.Seq2[Change, error], error) {
	older, err := db.version(ctx, from)
	if err != nil {
		return nil, nil, err
	}
	newer, err := db.version(ctx, to)
	if err != nil {
		return nil, nil, err
	}
	moves, err := db.space.Renames(ctx, older.Root, newer.Root)
	if err != nil {
		return nil, nil, err
	}
	s, was := db.space, older.Root
	if len(moves) > 0 { // they are made in the older version, in memory
		s = s.With(overlay.New(db.space.Tree.Pages(), math.MaxInt64))
		if was, err = s.ApplyRenames(ctx, was, moves); err != nil {
			return nil, nil, err
		}
	}
	var list []Rename
	for _, mv := range moves {
		if strings.HasPrefix(namespace.DirPath(mv.From), prefix) || strings.HasPrefix(namespace.DirPath(mv.To), prefix) {
			list = append(list, Rename{mv.From, mv.To})
		}
	}
	return list, func(yield func(Change, error) bool) {
		changes(s.Diff(ctx, was, newer.Root, prefix), yield)
	}, nil
}

// DiffNode compares what is below a path in one version with what is below a path
// in another; keys are relative to both.
func (db *DB) DiffNode(ctx context.Context, from CommitID, path string, to CommitID, newPath string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		var roots [2]tree.Root
		for i, at := range []struct {
			id   CommitID
			path string
		}{{from, path}, {to, newPath}} {
			c, err := db.version(ctx, at.id)
			if err == nil {
				roots[i], _, err = db.space.Dir(ctx, c.Root, namespace.DirPath(strings.Trim(at.path, "/")))
			}
			if err != nil {
				yield(Change{}, err)
				return
			}
		}
		changes(db.space.Diff(ctx, roots[0], roots[1], ""), yield)
	}
}

// Change is one key that differs between two versions.
type Change struct {
	Key string
	// Coords are those of a chunk in its array, whose path is Array; nil for
	// anything else.
	Coords []int64
	Array  string
	// Old and New say where the bytes were and are; nil stands for absent.
	Old, New *KeyValue
}

// Diff yields the keys below prefix that differ between two versions. Equal
// parts are skipped whole, so the cost is that of the changes.
func (db *DB) Diff(ctx context.Context, from, to CommitID, prefix string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		var roots [2]tree.Root
		for i, id := range []CommitID{from, to} {
			s, err := db.Snapshot(ctx, id)
			if err != nil {
				yield(Change{}, fmt.Errorf("diff: %w", err))
				return
			}
			defer s.Close()
			roots[i] = s.commit.Root
		}
		changes(db.space.Diff(ctx, roots[0], roots[1], prefix), yield)
	}
}

func changes(items iter.Seq2[namespace.Change, error], yield func(Change, error) bool) {
	side := func(key string, v *tree.Value) *KeyValue {
		if v == nil {
			return nil
		}
		out := keyValue(key, *v)
		return &out
	}
	for it, err := range items {
		if err != nil {
			yield(Change{}, err)
			return
		}
		if !yield(Change{Key: it.Key, Coords: it.Coords, Array: namespace.NodePath(it.Dir), Old: side(it.Key, it.Old), New: side(it.Key, it.New)}, nil) {
			return
		}
	}
}
