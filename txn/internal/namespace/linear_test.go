package namespace

import (
	"context"
	"github.com/zarrdb/zarrdb/internal/must"
	"testing"
)

// TestRenamesAreMadeAtOnce: making the renames of all arrays of a group in an older
// version writes the pages of the group once, not once for each array.
func TestRenamesAreMadeAtOnce(t *testing.T) {
	ctx := context.Background()
	for _, arrays := range []int{500, 2000} {
		b := newBigSpace(t, 10, arrays)
		to := must.Get(b.space().Move(ctx, b.root, "many", "more"))(t)
		_, writes, _, err := b.cost(func(s toySpace) error {
			moves, err := s.Renames(ctx, b.root, to)
			if err != nil {
				return err
			}
			root, err := s.ApplyRenames(ctx, b.root, moves)
			if err != nil {
				return err
			}
			// Only the document of the group is still where it was.
			n := 0
			for c, err := range s.Diff(ctx, root, to, "") {
				if n++; err != nil || c.Key != "many/zarr.json" && c.Key != "more/zarr.json" {
					t.Errorf("%v differs: %v", c, err)
				}
			}
			if n != 2 {
				t.Errorf("%d differences", n)
			}
			return nil
		})
		must.Do(t, err)
		if writes > int64(arrays/50) {
			t.Errorf("%d arrays: %d pages written", arrays, writes)
		}
	}
}

// TestRenameIndex finds the innermost rename around a path.
func TestRenameIndex(t *testing.T) {
	x := indexRenames([]rename{{From: "a", To: "x"}, {From: "a/b/c", To: "y/z"}})
	for path, want := range map[string]string{"a": "a", "a/b": "x/b", "a/b/c": "x/b/c", "a/b/c/d": "y/z/d", "a/b/cc/d": "x/b/cc/d", "b/a/c": "b/a/c", "": ""} {
		if got := x.along(path); got != want {
			t.Errorf("%q is at %q, want %q", path, got, want)
		}
	}
}
