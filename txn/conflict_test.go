package txn

import (
	"errors"
	"slices"
	"testing"
)

// conflictHistory is a history that ends in a conflict: ours is committed
// first, then theirs, which began from base too.
type conflictHistory struct {
	name         string
	base         []string // keys and values
	ours, theirs func(*Session) error
	want         Conflict // Kind, Path, Coords and Field
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
	return []conflictHistory{
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
		{name: "read and written", base: array, ours: setAll("g/a/c/0/1", "o"), theirs: func(s *Session) error { return errors.Join(s.Guard("g/a"), setAll("d/k", "t")(s)) }, want: at(ConflictGuard, "g/a/c/0/1", 0, 1), oneWay: true},
	}
}

// Every kind of conflict has a history, which names it with its path and the
// coordinates of its chunk, whoever comes first. The session and the branch
// stay as they were.
func TestEveryConflictHasAHistory(t *testing.T) {
	seen := map[ConflictKind]bool{ConflictBranchRewound: false}
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
		seen[ConflictBranchRewound] = true
		db := openToy(t)
		first, _ := db.Head("")
		say(t, db, "", "base", setAll("k", "1"))
		s, err := db.Begin(bg, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := setAll("l", "1")(s); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Reset(bg, "", first); err != nil {
			t.Fatal(err)
		}
		mustConflict(t, s, Conflict{Kind: ConflictBranchRewound})
	})
	t.Run("made by both, at two places", func(t *testing.T) {
		db := openToy(t)
		if err := db.CreateBranch(bg, "side", mustHead(t, db)); err != nil {
			t.Fatal(err)
		}
		made := say(t, db, "", "make", setAll("a/zarr.json", toyArray, "a/c/0/0", "1"))
		if _, err := db.CherryPick(bg, "side", made, 0, CommitOptions{}); err != nil {
			t.Fatal(err)
		}
		say(t, db, "side", "move", moved("a", "b"))
		_, err := db.Merge(bg, "", branchHead(t, db, "side"), CommitOptions{})
		var conflict *ConflictError
		if !errors.As(err, &conflict) || len(conflict.Conflicts) != 1 ||
			conflict.Conflicts[0].Kind != ConflictRename || conflict.Conflicts[0].Path != "a" {
			t.Errorf("the array is at two places: %v", err)
		}
	})
	for kind := ConflictKind(1); kind < numConflictKinds; kind++ {
		if !seen[kind] {
			t.Errorf("no history ends in a conflict of the kind %q", kind)
		}
	}
}

// run commits what the session has flushed, or what it still has as single edits.
func (h conflictHistory) run(t *testing.T, flushed bool) {
	t.Helper()
	db := openToy(t)
	say(t, db, "", "base", setAll(h.base...))
	s, err := db.Begin(bg, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.theirs(s); err != nil {
		t.Fatal(err)
	}
	ours := say(t, db, "", "ours", h.ours)
	var before map[string]string
	if flushed {
		before = contents(t, s)
	}
	mustConflict(t, s, h.want)
	if head, _ := db.Head(""); head != ours {
		t.Error("the conflict moved the branch")
	}
	if after := contents(t, s); flushed && len(after) != len(before) {
		t.Errorf("the session now holds %v, not %v", after, before)
	}
	if err := s.Abort(); err != nil {
		t.Fatal(err)
	}
}

func mustConflict(t *testing.T, s *Session, want Conflict) {
	t.Helper()
	_, err := s.Commit(bg, CommitOptions{})
	var conflict *ConflictError
	if !errors.As(err, &conflict) || !errors.Is(err, ErrConflict) {
		t.Fatalf("error %v, want a conflict", err)
	}
	for _, c := range conflict.Conflicts {
		if c.Kind == want.Kind && c.Path == want.Path && slices.Equal(c.Coords, want.Coords) && c.Field == want.Field {
			return
		}
	}
	t.Errorf("conflicts %+v, want %+v", conflict.Conflicts, want)
}
