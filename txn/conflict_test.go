package txn

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// conflictHistory is a history that ends in a conflict: ours is committed
// first, then theirs, which began from base too.
type conflictHistory struct {
	name         string
	base         []string // keys and values
	ours, theirs func(*Session) error
	want         Conflict // Kind, Path, Coords, Field and Same
	oneWay       bool     // the other way round it is no conflict, or another
}

func moved(from, to string) func(*Session) error {
	return func(s *Session) error { return s.Move(bg, from, to) }
}

func removed(prefix string) func(*Session) error {
	return func(s *Session) error { return s.DeletePrefix(bg, prefix) }
}

// conflictHistories has every kind of conflict in every form that there is a
// rule for.
func conflictHistories() []conflictHistory {
	array := []string{"g/zarr.json", "group", "g/a/zarr.json", "array f=c/:/:2 k=1 g=4,4", "g/a/c/0/1", "x", "g/a/c/3/3", "x"}
	meta := func(doc string) func(*Session) error { return setAll("g/a/zarr.json", doc) }
	at := func(kind ConflictKind, path string, coords ...int64) Conflict {
		return Conflict{Kind: kind, Path: path, Coords: coords}
	}
	field := func(path, field string) Conflict {
		return Conflict{Kind: ConflictDocument, Path: path, Field: field}
	}
	both := func(name string, change func(*Session) error, want Conflict) conflictHistory {
		want.Same = true
		return conflictHistory{name: "the same " + name, base: array, ours: change, theirs: change, want: want, oneWay: true}
	}
	return []conflictHistory{
		both("chunk", setAll("g/a/c/0/1", "n"), at(ConflictChunk, "g/a/c/0/1", 0, 1)),
		both("chunk in a pack", setAll("g/a/c/0/1", strings.Repeat("n", 2000)), at(ConflictChunk, "g/a/c/0/1", 0, 1)),
		both("new chunk", setAll("g/a/c/2/2", "n"), at(ConflictChunk, "g/a/c/2/2", 2, 2)),
		both("removed chunk", setAll("g/a/c/0/1", ""), at(ConflictChunk, "g/a/c/0/1", 0, 1)),
		both("removed chunks, of which none is left", setAll("g/a/c/0/1", "", "g/a/c/3/3", ""), at(ConflictChunk, "g/a/c/3/3", 3, 3)),
		both("shape", meta("array f=c/:/:2 k=1 g=5,4"), field("g/a/zarr.json", "g0")),
		both("shape and chunks of each", setAll("g/a/zarr.json", "array f=c/:/:2 k=1 g=5,4", "g/a/c/4/0", "n"), field("g/a/zarr.json", "g0")),
		both("codecs", meta("array f=c/:/:2 k=2 g=4,4"), field("g/a/zarr.json", "k")),
		both("attribute", setAll("g/zarr.json", "group u=1"), field("g/zarr.json", "u")),
		both("document", setAll("d/k", "n"), at(ConflictCreate, "d/k")),
		both("new array", setAll("g/b/zarr.json", toyArray), at(ConflictCreate, "g/b/zarr.json")),
		both("array in place of a group", setAll("g/zarr.json", toyArray), at(ConflictCreate, "g/zarr.json")),
		both("new group with an attribute", setAll("h/zarr.json", "group u=1"), Conflict{Kind: ConflictCreate, Path: "h/zarr.json", Field: "u"}),
		both("metadata in another form", setAll("g/a/.zarray", "array f=:.:2 k=1 g=4,4", "g/a/0.1", "n"), at(ConflictChunk, "g/a/0.1", 0, 1)),
		both("rename", moved("g/a", "b"), at(ConflictRename, "g/a")),
		both("rename of the group above", moved("g", "h"), at(ConflictRename, "g/a")),
		both("copy", func(s *Session) error { return s.Copy(bg, nil, "g/a", "b") }, at(ConflictCreate, "b/zarr.json")),
		{
			name: "the same removed chunk without dimensions", base: []string{"s/zarr.json", "array f=c:/:0", "s/c", "x"},
			ours: setAll("s/c", ""), theirs: setAll("s/c", ""), want: Conflict{Kind: ConflictChunk, Path: "s/c", Same: true, Coords: []int64{}}, oneWay: true,
		},
		{name: "chunk and chunk", base: array, ours: setAll("g/a/c/0/1", "o"), theirs: setAll("g/a/c/0/1", "t"), want: at(ConflictChunk, "g/a/c/0/1", 0, 1)},
		{name: "new chunk and new chunk", base: array, ours: setAll("g/a/c/2/2", "o"), theirs: setAll("g/a/c/2/2", "t"), want: at(ConflictChunk, "g/a/c/2/2", 2, 2)},
		{name: "chunk and no chunk", base: array, ours: setAll("g/a/c/0/1", ""), theirs: setAll("g/a/c/0/1", "t"), want: at(ConflictChunk, "g/a/c/0/1", 0, 1)},
		{name: "chunk and codecs", base: array, ours: meta("array f=c/:/:2 k=2 g=4,4"), theirs: setAll("g/a/c/0/1", "t"), want: at(ConflictStructure, "g/a/c/0/1", 0, 1)},
		{name: "new chunk and codecs", base: array, ours: meta("array f=c/:/:2 k=2 g=4,4"), theirs: setAll("g/a/c/1/1", "t"), want: at(ConflictStructure, "g/a/c/1/1", 1, 1)},
		{name: "chunk and smaller shape", base: array, ours: meta("array f=c/:/:2 k=1 g=4,2"), theirs: setAll("g/a/c/3/3", "t"), want: at(ConflictShrink, "g/a/c/3/3", 3, 3)},
		{name: "new chunk and smaller shape", base: array, ours: meta("array f=c/:/:2 k=1 g=4,2"), theirs: setAll("g/a/c/0/3", "t"), want: at(ConflictShrink, "g/a/c/0/3", 0, 3)},
		{name: "one attribute", base: array, ours: setAll("g/zarr.json", "group u=1"), theirs: setAll("g/zarr.json", "group u=2"), want: field("g/zarr.json", "u")},
		{name: "one axis", base: array, ours: meta("array f=c/:/:2 k=1 g=5,4"), theirs: meta("array f=c/:/:2 k=1 g=6,4"), want: field("g/a/zarr.json", "g0")},
		{name: "one document", base: []string{"d/k", "0"}, ours: setAll("d/k", "o"), theirs: setAll("d/k", "t"), want: at(ConflictDocument, "d/k")},
		{name: "two arrays at a path", base: array, ours: setAll("g/b/zarr.json", toyArray+" k=1"), theirs: setAll("g/b/zarr.json", toyArray+" k=2"), want: at(ConflictCreate, "g/b/zarr.json")},
		{name: "two documents at a path", base: array, ours: setAll("d/k", "o"), theirs: setAll("d/k", "t"), want: at(ConflictCreate, "d/k")},
		{name: "removed and written", base: array, ours: removed("g/a/"), theirs: setAll("g/a/c/0/1", "t"), want: at(ConflictGone, "g/a")},
		{name: "removed and given attributes", base: array, ours: removed("g/a/"), theirs: meta("array f=c/:/:2 k=1 g=4,4 u=1"), want: at(ConflictGone, "g/a/zarr.json")},
		{name: "removed and renamed", base: array, ours: removed("g/a/"), theirs: moved("g/a", "b"), want: at(ConflictGone, "g/a")},
		{name: "renamed to two places", base: array, ours: moved("g/a", "b"), theirs: moved("g/a", "c"), want: at(ConflictRename, "g/a")},
		{name: "renamed to where another is", base: array, ours: moved("g/a", "b"), theirs: setAll("g/a/c/0/1", "t", "b/zarr.json", toyArray+" k=3"), want: at(ConflictRename, "b")},
		{name: "each into the other", base: append(slices.Clone(array), "b/zarr.json", toyArray, "b/c/1", "x"), ours: moved("g/a", "b/a"), theirs: moved("b", "g/a/b"), want: at(ConflictRename, "b")},
		{name: "below what became an array", base: array, ours: setAll("g/zarr.json", toyArray), theirs: setAll("g/b/zarr.json", toyArray), want: at(ConflictAncestor, "g/b")},
		{name: "new below a removed group", base: array, ours: removed("g/"), theirs: setAll("g/new", "t"), want: at(ConflictAncestor, "g/new")},
		{name: "new below a renamed group", base: array, ours: moved("g", "h"), theirs: setAll("g/b/zarr.json", toyArray), want: at(ConflictAncestor, "g/b")},
		{name: "read and written", base: array, ours: setAll("g/a/c/0/1", "o"), theirs: func(s *Session) error { return errors.Join(s.Guard(bg, "g/a"), setAll("d/k", "t")(s)) }, want: at(ConflictGuard, "g/a/c/0/1", 0, 1), oneWay: true},
	}
}

// Every kind of conflict has a history, which names it with its path and the
// coordinates of its chunk, whoever comes first. The session and the branch
// stay as they were.
func TestEveryConflictHasAHistory(t *testing.T) {
	seen := map[ConflictKind]bool{conflictBranchRewound: false}
	for _, h := range conflictHistories() {
		seen[h.want.Kind] = true
		t.Run(h.name, func(t *testing.T) {
			h.run(t, true)
			h.run(t, false)
			if !h.oneWay {
				h.ours, h.theirs = h.theirs, h.ours
				h.run(t, true)
				h.run(t, false)
			}
		})
	}
	t.Run("branch rewound", func(t *testing.T) {
		seen[conflictBranchRewound] = true
		db := openTest(t, nil)
		first, _ := db.Head(bg, "")
		say(t, db, "", "base", setAll("k", "1"))
		s := must.Get(db.Begin(bg, ""))(t)
		must.Do(t, setAll("l", "1")(s))
		must.Get(db.Reset(bg, "", first))(t)
		mustConflict(t, s, Conflict{Kind: conflictBranchRewound})
	})
	t.Run("made by both, at two places", func(t *testing.T) {
		db := openTest(t, nil)
		must.Do(t, db.CreateBranch(bg, "side", mustHead(t, db)))
		made := say(t, db, "", "make", setAll("a/zarr.json", toyArray, "a/c/0/0", "1"))
		must.Get(db.CherryPick(bg, "side", made, 0, CommitOptions{}))(t)
		say(t, db, "side", "move", moved("a", "b"))
		_, err := db.Merge(bg, "", mustResolve(t, db, "side"), CommitOptions{})
		var conflict *ConflictError
		if !errors.As(err, &conflict) || len(conflict.Conflicts) != 1 ||
			conflict.Conflicts[0].Kind != ConflictRename || conflict.Conflicts[0].Path != "a" {
			t.Errorf("the array is at two places: %v", err)
		}
	})
	for kind := ConflictKind(1); !strings.HasPrefix(kind.String(), "ConflictKind("); kind++ {
		if !seen[kind] {
			t.Errorf("no history ends in a conflict of the kind %q", kind)
		}
	}
}

// run commits what the session has flushed, or what it still has as single edits.
func (h conflictHistory) run(t *testing.T, flushed bool) {
	t.Helper()
	db := openTest(t, nil)
	say(t, db, "", "base", setAll(h.base...))
	s := must.Get(db.Begin(bg, ""))(t)
	must.Do(t, h.theirs(s))
	ours := say(t, db, "", "ours", h.ours)
	var before map[string]string
	if flushed {
		before = contents(t, s)
	}
	mustConflict(t, s, h.want)
	if head, _ := db.Head(bg, ""); head != ours {
		t.Error("the conflict moved the branch")
	}
	if after := contents(t, s); flushed && len(after) != len(before) {
		t.Errorf("the session now holds %v, not %v", after, before)
	}
	must.Do(t, s.Abort())
}

func mustConflict(t *testing.T, s *Session, want Conflict) {
	t.Helper()
	_, err := s.Commit(bg, CommitOptions{})
	var conflict *ConflictError
	if !errors.As(err, &conflict) || !errors.Is(err, ErrConflict) {
		t.Fatalf("error %v, want a conflict", err)
	}
	for _, c := range conflict.Conflicts {
		if c.Kind == want.Kind && c.Path == want.Path && slices.Equal(c.Coords, want.Coords) && c.Field == want.Field && c.Same == want.Same {
			return
		}
	}
	t.Errorf("conflicts %+v, want %+v", conflict.Conflicts, want)
}

// Equal changes are no conflict where branches merge, and the caller of Commit
// may decide them.
func TestEqualChangesMeetInBranches(t *testing.T) {
	for _, h := range conflictHistories() {
		if !h.want.Same {
			continue
		}
		t.Run(h.name, func(t *testing.T) {
			db := openTest(t, nil)
			base := say(t, db, "", "base", setAll(h.base...))
			ours := say(t, db, "", "ours", h.ours)
			for _, branch := range []string{"merged", "picked", "rebased"} {
				must.Do(t, db.CreateBranch(bg, branch, base))
				say(t, db, branch, "theirs", h.theirs)
			}
			if _, err := db.Merge(bg, "merged", ours, CommitOptions{}); err != nil {
				t.Error(err)
			}
			if _, err := db.CherryPick(bg, "picked", ours, 0, CommitOptions{}); err != nil {
				t.Error(err)
			}
			if _, err := db.Rebase(bg, "rebased", ours, RebaseOptions{}); err != nil {
				t.Error(err)
			}
			for branch, choice := range map[string]Choice{"ours": Ours, "theirs": Theirs} {
				must.Do(t, db.CreateBranch(bg, branch, base))
				s := must.Get(db.Begin(bg, branch))(t)
				must.Do(t, h.theirs(s))
				say(t, db, branch, "ours", h.ours)
				if _, err := s.Commit(bg, CommitOptions{Choices: always(choice)}); err != nil {
					t.Errorf("%s chosen: %v", branch, err)
				}
				if got, want := at(t, db, branch), at(t, db, ours.String()); !maps.Equal(got, want) {
					t.Errorf("%s chosen: %v, want %v", branch, got, want)
				}
			}
		})
	}
}

// What two sessions may do alike: each is committed, from one base, and nothing
// of either is lost.
func TestSessionsDoTheSame(t *testing.T) {
	base := []string{"g/zarr.json", "group u=1 v=1", "g/a/zarr.json", "array f=c/:/:2 k=1 g=4,4", "g/a/c/0/1", "x", "g/a/c/3/3", "x", "d/k", "0", ".zmetadata", "u=1"}
	for _, c := range []struct {
		name         string
		ours, theirs func(*Session) error
		want         []string // changes of the base that come of it, "" removes
	}{
		{"remove a document", setAll("d/k", ""), setAll("d/k", "", "d/l", "t"), []string{"d/k", "", "d/l", "t"}},
		{"remove an array", removed("g/a/"), removed("g/a/"), []string{"g/a/zarr.json", "", "g/a/c/0/1", "", "g/a/c/3/3", ""}},
		{"remove an attribute", setAll("g/zarr.json", "group v=1"), setAll("g/zarr.json", "group v=2"), []string{"g/zarr.json", "group v=2"}},
		{"make an empty group", setAll("h/zarr.json", "group", "h/x", "o"), setAll("h/zarr.json", "group", "h/y", "t"), []string{"h/zarr.json", "group", "h/x", "o", "h/y", "t"}},
		{"make an empty group and arrays in it", setAll("h/zarr.json", "group", "h/x/zarr.json", toyArray), setAll("h/zarr.json", "group", "h/y/zarr.json", toyArray),
			[]string{"h/zarr.json", "group", "h/x/zarr.json", toyArray, "h/y/zarr.json", toyArray}},
		{"copy metadata together", setAll(".zmetadata", "u=2", "d/o", "o"), setAll(".zmetadata", "u=2", "d/t", "t"), []string{".zmetadata", "u=2", "d/o", "o", "d/t", "t"}},
		{"grow an array along two axes", setAll("g/a/zarr.json", "array f=c/:/:2 k=1 g=5,4"), setAll("g/a/zarr.json", "array f=c/:/:2 k=1 g=4,5"), []string{"g/a/zarr.json", "array f=c/:/:2 k=1 g=5,5"}},
		{"give different attributes", setAll("g/zarr.json", "group u=2 v=1"), setAll("g/zarr.json", "group u=1 v=2"), []string{"g/zarr.json", "group u=2 v=2"}},
		{"put what is there", setAll("g/a/c/0/1", "o"), func(s *Session) error {
			return errors.Join(setAll("g/a/c/0/1", "t")(s), s.Savepoint(bg), setAll("g/a/c/0/1", "x", "d/k", "t")(s))
		}, []string{"g/a/c/0/1", "o", "d/k", "t"}},
	} {
		for _, flushed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/flushed=%v", c.name, flushed), func(t *testing.T) {
				db := openTest(t, nil)
				say(t, db, "", "base", setAll(base...))
				want := at(t, db, "")
				for i := 0; i < len(c.want); i += 2 {
					if want[c.want[i]] = c.want[i+1]; c.want[i+1] == "" {
						delete(want, c.want[i])
					}
				}
				s, refreshed := begin(t, db), begin(t, db)
				for _, s := range []*Session{s, refreshed} {
					must.Do(t, c.theirs(s))
				}
				say(t, db, "", "ours", c.ours)
				if flushed {
					contents(t, s)
				}
				if err := refreshed.Refresh(bg, nil); err != nil {
					t.Errorf("refresh: %v", err)
				}
				if got := contents(t, refreshed); !maps.Equal(got, want) {
					t.Errorf("refreshed %v, want %v", got, want)
				}
				must.Get(s.Commit(bg, CommitOptions{}))(t)
				if got := at(t, db, ""); !maps.Equal(got, want) {
					t.Errorf("committed %v, want %v", got, want)
				}
			})
		}
	}
}

// Of two sessions in one group that write the same, the first is committed.
func TestEqualChangesInOneGroup(t *testing.T) {
	for _, flushed := range []bool{false, true} {
		db := openTest(t, nil)
		say(t, db, "", "base", setAll("n", "0"))
		var group []*commitRequest
		for range 2 {
			s := begin(t, db)
			set(t, s, map[string]string{"n": "1"})
			if flushed {
				contents(t, s)
			}
			r := &commitRequest{ctx: bg, s: s}
			must.Do(t, r.freeze(bg))
			group = append(group, r)
		}
		db.commit.lock()
		db.commit.plan(nil).addAll(group)
		db.commit.unlock()
		if group[0].err != nil {
			t.Errorf("the first: %v", group[0].err)
		}
		var conflict *ConflictError
		if !errors.As(group[1].err, &conflict) || !conflict.Conflicts[0].Same {
			t.Errorf("the second: %v", group[1].err)
		}
	}
}

// A merge is one of branches still when its branch moves before it is committed.
func TestMergeMeetsAnEqualCommit(t *testing.T) {
	db := openTest(t, nil)
	base := say(t, db, "", "base", setAll("n", "0", "asked", "0"))
	must.Do(t, db.CreateBranch(bg, "side", base))
	side := say(t, db, "side", "side", setAll("n", "1", "asked", "side"))
	say(t, db, "", "main", setAll("asked", "main"))
	asked := 0
	_, err := db.Merge(bg, "", side, CommitOptions{choose: func(Conflict) Choice {
		asked++
		say(t, db, "", "meanwhile", setAll("n", "1"))
		return Theirs
	}})
	if err != nil || asked != 1 {
		t.Fatalf("asked %d times: %v", asked, err)
	}
	if got, want := at(t, db, ""), map[string]string{"n": "1", "asked": "side"}; !maps.Equal(got, want) {
		t.Errorf("merged to %v, want %v", got, want)
	}
}

func always(choice Choice) []PathChoice {
	if choice == refuse {
		return nil
	}
	return []PathChoice{{Choice: choice}}
}
