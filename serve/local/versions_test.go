package local

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// Versions are told as they are in the process.
func TestVersions(t *testing.T) {
	h, c := served(t, nil, nil)
	first := put(t, h.db, map[string][]byte{"a": {1}, "b": {1}})
	second := put(t, h.db, map[string][]byte{"a": {2}, "c": random(1, 3000)})
	must.Do(t, errors.Join(h.db.Versions().CreateBranch(bg, "x", second), h.db.Versions().CreateTag(bg, "v1", first)))
	branches, tags, err := c.Refs(bg, "")
	if got, want := fmt.Sprint(branches, tags, err), fmt.Sprint([]txn.Ref{{Name: "main", Commit: second}, {Name: "x", Commit: second}}, []txn.Ref{{Name: "v1", Commit: first}}, nil); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, err := c.Resolve(bg, "", "v1"); err != nil || got.ID != first {
		t.Errorf("%+v, %v", got, err)
	}
	ids := func(path string) (list []txn.CommitID) {
		for commit, err := range c.Log(bg, "", "main", path) {
			must.Do(t, err)
			list = append(list, commit.ID)
		}
		return list
	}
	if all := ids(""); len(all) != 3 || all[0] != second || all[1] != first {
		t.Errorf("%v", all)
	}
	if b := ids("b"); len(b) != 1 || b[0] != first {
		t.Errorf("%v", b)
	}
	changes := ""
	for change, err := range c.Diff(bg, "", first, second, "") {
		must.Do(t, err)
		changes += fmt.Sprint(change.Key, change.Old != nil, change.New.Kind, change.New.Length, " ")
	}
	if changes != "atrueinline1 cfalsenative3000 " {
		t.Errorf("%q", changes)
	}
	s := begin(t, c)
	must.Do(t, s.Set(bg, "d", []byte("d")))
	for change, err := range s.Changes(bg, "") {
		if err != nil || change.Key != "d" || change.Old != nil {
			t.Errorf("%+v, %v", change, err)
		}
	}
	list, err := c.Sessions(bg, "")
	if err != nil || len(list) != 1 || list[0].ID != s.ID() || !list[0].Open {
		t.Errorf("%+v, %v", list, err)
	}
}

// Log yields the version that a revision names and its ancestors, as [txn.DB.Log];
// with a path, those alone that changed something at or below it.
func (c *Client) Log(ctx context.Context, db, rev, path string) iter.Seq2[*txn.Commit, error] {
	return func(yield func(*txn.Commit, error) bool) {
		at := rev
		pages(func(skip int) ([]wire.Commit, bool, error) {
			in := wire.Log{Database: db, Rev: at, Path: path, Skip: skip, Limit: pageKeys}
			out, err := query[wire.Commits](ctx, c, wire.OpLog, &in)
			if skip == 0 && path == "" && len(out.Commits) > 0 {
				at = out.Commits[0].ID // a branch may move before the next page
			}
			return out.Commits, out.More, err
		}, commitIn)(yield)
	}
}

// Diff yields the keys below prefix that differ between two versions, as
// [txn.DB.Diff].
func (c *Client) Diff(ctx context.Context, db string, from, to txn.CommitID, prefix string) iter.Seq2[txn.Change, error] {
	return pages(func(skip int) ([]wire.Change, bool, error) {
		out, err := query[wire.Changes](ctx, c, wire.OpDiff, wire.Diff{
			Database: db, From: from.String(), To: to.String(), Prefix: prefix, Skip: skip, Limit: pageKeys,
		})
		return out.Changes, out.More, err
	}, changeIn)
}

// pages yields elements page by page.
func pages[In, T any](page func(skip int) (list []In, more bool, err error), convert func(*In) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for skip, more := 0, true; more; {
			list, next, err := page(skip)
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			for i := range list {
				if !yield(convert(&list[i]), nil) {
					return
				}
			}
			skip += len(list)
			more = next && len(list) > 0
		}
	}
}

// pageKeys is the number of elements per request.
const pageKeys = 5000

func changeIn(c *wire.Change) txn.Change {
	return txn.Change{Key: c.Key, Array: c.Array, Coords: c.Chunk, Old: bytesIn(c.Key, c.Old), New: bytesIn(c.Key, c.New)}
}

func bytesIn(key string, b *wire.Bytes) *txn.KeyValue {
	if b == nil {
		return nil
	}
	return &txn.KeyValue{Key: key, Kind: b.Kind, Length: b.Length, URL: b.URL, Validator: b.Validator, Offset: b.Offset}
}
