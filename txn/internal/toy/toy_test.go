package toy_test

import (
	"testing"

	"github.com/zarrdb/zarrdb/txn/internal/toy"
)

type form = struct {
	Prefix string
	Sep    byte
	Rank   int
}

type structure = struct {
	Key  []byte
	Grid []int64
}

type conflict = struct {
	Field              string
	Base, Ours, Theirs string
	Same               bool
}

var policy toy.Policy[form, structure, conflict]

// Documents are arrays with a structure, forms of chunk keys and a grid.
func TestRead(t *testing.T) {
	doc := []byte("array f=c/:.:2 k=x g=4,5 u=K")
	if f := policy.Forms(".zarray", doc); len(f) != 1 || f[0] != (form{"c/", '.', 2}) {
		t.Errorf("forms %v", f)
	}
	s, ok := policy.Structure(".zarray", doc)
	if !ok || string(s.Key) != "x" || len(s.Grid) != 2 || s.Grid[1] != 5 {
		t.Errorf("structure %v, %v", s, ok)
	}
	if _, ok := policy.Structure("c/0", doc); ok || policy.Array("c/0", doc) || len(policy.Forms("c/0", doc)) > 0 {
		t.Error("a chunk is an array")
	}
}

// Fields that one side changed merge; those that both changed differently conflict.
func TestMerge(t *testing.T) {
	for _, c := range []struct {
		base, ours, theirs, want string
		conflicts                int
		strict                   bool
	}{
		{"array a=1 b=1", "array a=2 b=1", "array a=1 b=2", "a=2 array b=2", 0, false},
		{"array a=1 g=4,5", "array a=1 g=6,5", "array g=4,7", "array g=6,7", 0, false},
		{"array a=1", "array a=2", "array a=3", "a=2 array", 1, false},
		{"array a=1", "array a=2", "array a=2", "a=2 array", 0, false},
		{"array a=1", "array a=2", "array a=2", "a=2 array", 1, true},
	} {
		got, conflicts, err := policy.MergeDocument(".zarray", []byte(c.base), []byte(c.ours), []byte(c.theirs), c.strict)
		if err != nil || string(got) != c.want || len(conflicts) != c.conflicts {
			t.Errorf("%q, %q: %q, %v, %v; want %q", c.ours, c.theirs, got, conflicts, err, c.want)
		}
	}
}
