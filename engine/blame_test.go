package engine

import (
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
)

// Blame of a huge grid costs what is stored and was changed: missing chunks are runs.
func TestBlameOfAHugeGrid(t *testing.T) {
	db := openDB(t, nil)
	change := func(message string, fn func(s *Session) error) CommitID {
		t.Helper()
		s := must.Get(db.Begin(bg, ""))(t)
		must.Do(t, fn(s))
		c := must.Get(s.Commit(bg, CommitOptions{Message: message}))(t)
		return c.ID
	}
	change("make", func(s *Session) error {
		if _, err := s.CreateArray(bg, "line", zarr.Spec{Shape: []int64{1 << 62}, Chunks: []int64{1}, DataType: "int8"}); err != nil {
			return err
		}
		_, err := s.CreateArray(bg, "plane", zarr.Spec{Shape: []int64{1 << 31, 1 << 31}, Chunks: []int64{1, 1}, DataType: "int8"})
		return err
	})
	change("write", func(s *Session) error {
		for key, v := range map[string]string{"line/c/7": "a", "line/c/8": "b", "line/c/1099511627776": "c", "plane/c/5/6": "d"} {
			if err := s.Set(bg, key, []byte(v)); err != nil {
				return err
			}
		}
		return nil
	})
	head := change("remove", func(s *Session) error { return s.Delete(bg, "line/c/8") })
	type box struct {
		message      string
		start, shape []int64
	}
	for path, want := range map[string][]box{
		"line": {
			{"make", []int64{0}, []int64{7}}, {"write", []int64{7}, []int64{1}}, {"remove", []int64{8}, []int64{1}},
			{"make", []int64{9}, []int64{1<<40 - 9}}, {"write", []int64{1 << 40}, []int64{1}}, {"make", []int64{1<<40 + 1}, []int64{1<<62 - 1<<40 - 1}},
		},
		"plane": {
			{"make", []int64{0, 0}, []int64{5, 1 << 31}}, {"make", []int64{5, 0}, []int64{1, 6}}, {"write", []int64{5, 6}, []int64{1, 1}},
			{"make", []int64{5, 7}, []int64{1, 1<<31 - 7}}, {"make", []int64{6, 0}, []int64{1<<31 - 6, 1 << 31}},
		},
	} {
		var got []box
		for c, err := range db.Blame(bg, head, path, zarr.Selection{}) {
			must.Do(t, err)
			got = append(got, box{c.Commit.Message, c.Start, c.Shape})
		}
		if !slices.EqualFunc(got, want, func(a, b box) bool {
			return a.message == b.message && slices.Equal(a.start, b.start) && slices.Equal(a.shape, b.shape)
		}) {
			t.Errorf("%s:\n got %v\nwant %v", path, got, want)
		}
	}
}
