package engine

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

func setInts(path string, sel zarr.Selection, v int32) func(*Session) error {
	return func(s *Session) error {
		a, err := s.Array(bg, path)
		if err != nil {
			return err
		}
		return zarr.Fill(bg, a, sel, v)
	}
}

func unsure(orExpired bool) string {
	if orExpired {
		return "?"
	}
	return ""
}

func valueLog(t *testing.T, db *DB, at txn.CommitID, path string, sel zarr.Selection) (list []string) {
	t.Helper()
	for c, err := range db.ValueLog(bg, at, path, sel) {
		must.Do(t, err)
		list = append(list, fmt.Sprintf("%s %s %v+%v %d%s", c.Commit.Message, c.Path, c.Start, c.Shape, c.Count, unsure(c.OrExpired)))
	}
	return list
}

func valueBlame(t *testing.T, db *DB, at txn.CommitID, path string, sel zarr.Selection) (list []string) {
	t.Helper()
	for c, err := range db.ValueBlame(bg, at, path, sel) {
		must.Do(t, err)
		list = append(list, fmt.Sprintf("%s %v+%v%s", c.Commit.Message, c.Start, c.Shape, unsure(c.OrExpired)))
	}
	return list
}

// The history of values passes over commits that wrote their chunks and not them, and goes
// through renames, merges, growth and another fill value.
func TestValueHistory(t *testing.T) {
	db := openDB(t, nil)
	plane := zarr.Spec{Shape: []int64{4, 6}, Chunks: []int64{4, 6}, DataType: "int32"}
	commit(t, db, "", "make", func(s *Session) error { return create(s, "a", plane) })
	commit(t, db, "", "row", setInts("a", zarr.Sel(zarr.At(1)), 70))
	commit(t, db, "", "same", setInts("a", zarr.Sel(zarr.At(1)), 70))
	commit(t, db, "", "pixel", setInts("a", zarr.Sel(zarr.At(1), zarr.At(2)), 80))
	commit(t, db, "", "move", func(s *Session) error { return s.Rename(bg, "a", "b") })
	must.Do(t, db.Versions().CreateBranch(bg, "side", head(t, db, "")))
	commit(t, db, "side", "side", setInts("b", zarr.Sel(zarr.At(0)), -1))
	commit(t, db, "", "grow", func(s *Session) error {
		a, err := s.Array(bg, "b")
		if err != nil {
			return err
		}
		return a.Resize(bg, []int64{5, 6}, zarr.ResizeOptions{})
	})
	must.Get(db.Versions().Merge(bg, "", head(t, db, "side"), CommitOptions{Message: "merge"}))(t)
	commit(t, db, "", "fill", func(s *Session) error {
		doc := must.Get(s.Get(bg, "b/zarr.json", kv.Range{}))(t)
		return s.Set(bg, "b/zarr.json", bytes.Replace(doc, []byte(`"fill_value": 0`), []byte(`"fill_value": 9`), 1))
	})
	now := head(t, db, "")
	before := must.Get(db.Resolve(bg, "main~1"))(t)
	for _, c := range []struct {
		name string
		got  []string
		want []string
	}{
		{"pixel", valueLog(t, db, before, "b", zarr.Sel(zarr.At(1), zarr.At(2))), []string{"pixel a [1 2]+[1 1] 1", "row a [1 2]+[1 1] 1", "make a [1 2]+[1 1] 1"}},
		{"side", valueLog(t, db, before, "b", zarr.Sel(zarr.At(0), zarr.Slice(0, 3, 2))), []string{"side b [0 0]+[1 3] 2", "make a [0 0]+[1 3] 2"}},
		{"grown", valueLog(t, db, before, "b", zarr.Sel(zarr.Slice(3, 5, 1), zarr.At(0))), []string{"grow b [4 0]+[1 1] 1", "make a [3 0]+[1 1] 1"}},
		{"blame", valueBlame(t, db, before, "b", zarr.Sel()), []string{
			"side [0 0]+[1 6]", "row [1 0]+[1 2]", "pixel [1 2]+[1 1]", "row [1 3]+[1 3]", "make [2 0]+[2 6]", "grow [4 0]+[1 6]",
		}},
		{"list", valueBlame(t, db, before, "b", zarr.Sel(zarr.List(4, 1), zarr.At(-1))), []string{"row [1 5]+[1 1]", "grow [4 5]+[1 1]"}},
		{"fill", valueBlame(t, db, now, "b", zarr.Sel(zarr.Slice(3, 5, 1))), []string{"make [3 0]+[1 6]", "fill [4 0]+[1 6]"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, c.got, c.want)
		}
	}
}

// Chunks that cannot be read in an earlier version, and versions that have expired, leave it open which commit
// made a change.
func TestValueHistoryUnsure(t *testing.T) {
	db := openDB(t, nil)
	commit(t, db, "", "make", func(s *Session) error { return create(s, "a", line(4, 2)) })
	commit(t, db, "", "one", setInts("a", zarr.Sel(zarr.At(3)), 1))
	commit(t, db, "", "bad", func(s *Session) error { return s.Set(bg, "a/c/0", []byte("no chunk")) })
	bad := head(t, db, "")
	commit(t, db, "", "good", func(s *Session) error {
		if err := s.Delete(bg, "a/c/0"); err != nil {
			return err
		}
		return setInts("a", zarr.Sel(zarr.Slice(0, 2, 1)), 5)(s)
	})
	now := head(t, db, "")
	first := zarr.Sel(zarr.At(0))
	got := append(valueLog(t, db, now, "a", first), valueBlame(t, db, now, "a", zarr.Sel())...)
	for _, err := range db.ValueBlame(bg, bad, "a", first) {
		if err == nil {
			t.Error("values that cannot be read have a commit")
		}
	}
	must.Get(db.Expire(bg, txn.ExpireOptions{Keep: 1}))(t)
	got = append(got, valueBlame(t, db, now, "a", first)...)
	want := []string{
		"good a [0]+[1] 1?", "bad a [0]+[1] 1?", "make a [0]+[1] 1", "good [0]+[2]?", "make [2]+[1]", "one [3]+[1]", "good [0]+[1]?",
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}
