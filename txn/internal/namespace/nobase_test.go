package namespace

import (
	"context"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// Without a common version, every difference is a conflict, and each is decided by
// the path that it names.
func TestMergeWithoutBase(t *testing.T) {
	ctx := context.Background()
	h := &mergeHistory{toySpace: newToySpace(2), t: t, ids: map[[16]byte]string{}}
	array := func(path, more string) string {
		return "put " + path + "/zarr.json array f=c/:/:2 g=9,9 " + more + "\n"
	}
	same := h.change(tree.Root{}, "put zarr.json group\n"+array("a", "")+"put a/c/0/0 old\nput a/c/1/1 old\n"+array("gone", "")+array("moved", ""))
	ours := h.change(same, "put a/c/0/0 mine\nput g/zarr.json group\nput g/doc mine\n"+array("both", "k=ours")+"put both/c/0/0 mine\ndelprefix gone/\nmove moved g/moved")
	theirs := h.change(same, "del a/c/0/0\nput doc theirs\nput g/zarr.json group\nput g/doc theirs\n"+array("both", "k=theirs")+"put both/c/1/1 theirs\n"+array("new", "")+"put new/c/2/2 theirs")
	_, conflicts, err := h.MergeWithoutBase(ctx, ours, theirs, MergeOptions{})
	must.Do(t, err)
	var paths []string
	for _, c := range conflicts {
		paths = append(paths, c.Path)
	}
	// An array that is at two paths is a conflict too.
	if got, want := strings.Join(paths, " "), "a/c/0/0 both doc g/doc g/moved gone moved new"; got != want {
		t.Errorf("conflicts at %s, want %s", got, want)
	}
	merged := func(rules ...PathChoice) (string, []Conflict) {
		t.Helper()
		root, conflicts, err := h.MergeWithoutBase(ctx, ours, theirs, MergeOptions{Choose: ChooseByPath(rules...)})
		if err == nil && conflicts == nil {
			err = h.Verify(ctx, root)
		}
		must.Do(t, err)
		return h.print(root), conflicts
	}
	if got, _ := merged(PathChoice{"", Ours}); got != h.print(ours) {
		t.Errorf("ours: %s", got)
	}
	if got, _ := merged(PathChoice{"", Theirs}); got != h.print(theirs) {
		t.Errorf("theirs: %s", got)
	}
	got, conflicts := merged(PathChoice{"", Ours}, PathChoice{"new", Theirs}, PathChoice{"a", Theirs}, PathChoice{"both", Theirs}, PathChoice{"gone", Theirs})
	if len(conflicts) > 0 || strings.Contains(got, "a/c/0/0") || strings.Contains(got, "both/c/0/0") || !strings.Contains(got, "both/c/1/1 = theirs") ||
		!strings.Contains(got, "new/c/2/2 = theirs") || !strings.Contains(got, "gone/zarr.json") || !strings.Contains(got, "g/doc = mine") || strings.Contains(got, "\ndoc") {
		t.Errorf("%s\nconflicts %v", got, conflicts)
	}
	if _, conflicts := merged(PathChoice{"", Ours}, PathChoice{"moved", Theirs}); len(conflicts) != 1 || conflicts[0].Kind != ConflictRename {
		t.Errorf("an array at two paths: %v", conflicts)
	}
	if root, conflicts, err := h.MergeWithoutBase(ctx, ours, ours, MergeOptions{}); err != nil || conflicts != nil || root != ours {
		t.Errorf("equal sides: %v, %v", conflicts, err)
	}
}
