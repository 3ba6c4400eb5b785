package txn

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// decidedConflict is a row of the table in docs/design/conflicts.md. Changes are keys and
// values of the base that x or y, when chosen, leaves; "" is a key that is gone.
type decidedConflict struct {
	row         string
	base        []string
	x, y        func(*Session) error
	kind        ConflictKind
	paths       []string // each decides the conflict
	xWins       []string // changes of the base
	yWins       []string
	sessionOnly bool // x comes first, and y is a session
}

func decidedConflicts() []decidedConflict {
	group := []string{"g/zarr.json", "group", "g/a/zarr.json", "array f=c/:/:1 k=1 g=9", "g/a/c/0", "0", "g/a/c/5", "5", "g/b/zarr.json", "array f=c/:/:1 k=1 g=9", "z/zarr.json", toyArray}
	gone := []string{"g/zarr.json", "", "g/a/zarr.json", "", "g/a/c/0", "", "g/a/c/5", "", "g/b/zarr.json", ""}
	renamed := append(slices.Clone(gone), "h/zarr.json", "group", "h/a/zarr.json", "array f=c/:/:1 k=1 g=9", "h/a/c/0", "0", "h/a/c/5", "5", "h/b/zarr.json", "array f=c/:/:1 k=1 g=9")
	with := func(changes []string, more ...string) []string { return append(slices.Clone(changes), more...) }
	all := func(steps ...func(*Session) error) func(*Session) error {
		return func(s *Session) error {
			for _, step := range steps {
				if err := step(s); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return []decidedConflict{
		{row: "both wrote a chunk", base: group, kind: ConflictChunk, paths: []string{"g/a/c/0"},
			x: setAll("g/a/c/0", "x"), y: setAll("g/a/c/0", "y", "g/a/c/1", "y"),
			xWins: []string{"g/a/c/0", "x", "g/a/c/1", "y"}, yWins: []string{"g/a/c/0", "y", "g/a/c/1", "y"}},
		{row: "x changed codecs, type, chunk shape or fill value; y wrote chunks", base: group, kind: ConflictStructure, paths: []string{"g/a/c/0"},
			x:     setAll("g/a/zarr.json", "array f=c/:/:1 k=2 u=1 g=9", "g/a/c/0", "x", "g/a/c/5", "x"),
			y:     setAll("g/a/zarr.json", "array f=c/:/:1 k=1 v=1 g=9", "g/a/c/0", "y"),
			xWins: []string{"g/a/zarr.json", "array f=c/:/:1 k=2 u=1 v=1 g=9", "g/a/c/0", "x", "g/a/c/5", "x"},
			yWins: []string{"g/a/zarr.json", "array f=c/:/:1 k=1 u=1 v=1 g=9", "g/a/c/0", "y"}},
		{row: "x made the array smaller, y wrote a chunk outside", base: group, kind: ConflictShrink, paths: []string{"g/a/c/7"},
			x:     setAll("g/a/zarr.json", "array f=c/:/:1 k=1 u=1 g=3", "g/a/c/5", "", "g/a/c/1", "x"),
			y:     setAll("g/a/c/7", "y", "g/a/c/2", "y"),
			xWins: []string{"g/a/zarr.json", "array f=c/:/:1 k=1 u=1 g=3", "g/a/c/5", "", "g/a/c/1", "x", "g/a/c/2", "y"},
			yWins: []string{"g/a/zarr.json", "array f=c/:/:1 k=1 g=9 u=1", "g/a/c/7", "y", "g/a/c/1", "x", "g/a/c/2", "y"}},
		{row: "both changed a field of a document", base: group, kind: ConflictDocument, paths: []string{"g/zarr.json", "g"},
			x: setAll("g/zarr.json", "group u=1 v=1"), y: setAll("g/zarr.json", "group u=2"),
			xWins: []string{"g/zarr.json", "group u=1 v=1"}, yWins: []string{"g/zarr.json", "group u=2 v=1"}},
		{row: "both made something at a path", base: group, kind: ConflictCreate, paths: []string{"g/n/zarr.json", "g/n"},
			x: setAll("g/n/zarr.json", toyArray+" k=1", "g/n/c/0", "x"), y: setAll("g/n/zarr.json", toyArray+" k=2", "g/n/c/1", "y", "g/n/note", "y"),
			xWins: []string{"g/n/zarr.json", toyArray + " k=1", "g/n/c/0", "x", "g/n/note", "y"}, yWins: []string{"g/n/zarr.json", toyArray + " k=2", "g/n/c/1", "y", "g/n/note", "y"}},
		{row: "x removed an array, y changed it", base: group, kind: ConflictGone, paths: []string{"g/a"},
			x: removed("g/a/"), y: setAll("g/a/c/0", "y"),
			xWins: []string{"g/a/zarr.json", "", "g/a/c/0", "", "g/a/c/5", ""}, yWins: []string{"g/a/c/0", "y"}},
		{row: "x removed an array, y renamed it", base: group, kind: ConflictGone, paths: []string{"g/a", "t"},
			x: removed("g/a/"), y: all(moved("g/a", "t"), setAll("t/c/0", "y")),
			xWins: []string{"g/a/zarr.json", "", "g/a/c/0", "", "g/a/c/5", ""},
			yWins: []string{"g/a/zarr.json", "", "g/a/c/0", "", "g/a/c/5", "", "t/zarr.json", "array f=c/:/:1 k=1 g=9", "t/c/0", "y", "t/c/5", "5"}},
		{row: "x renamed a group, y changed its attributes", base: group, kind: ConflictGone, paths: []string{"g/zarr.json", "h/zarr.json"},
			x: moved("g", "h"), y: setAll("g/zarr.json", "group u=1"),
			xWins: renamed, yWins: with(renamed, "h/zarr.json", "group u=1")},
		{row: "x and y renamed an array to two paths", base: group, kind: ConflictRename, paths: []string{"g/a", "s", "t"},
			x: all(moved("g/a", "s"), setAll("s/c/0", "x")), y: all(moved("g/a", "t"), setAll("t/c/1", "y")),
			xWins: []string{"g/a/zarr.json", "", "g/a/c/0", "", "g/a/c/5", "", "s/zarr.json", "array f=c/:/:1 k=1 g=9", "s/c/0", "x", "s/c/1", "y", "s/c/5", "5"},
			yWins: []string{"g/a/zarr.json", "", "g/a/c/0", "", "g/a/c/5", "", "t/zarr.json", "array f=c/:/:1 k=1 g=9", "t/c/0", "x", "t/c/1", "y", "t/c/5", "5"}},
		{row: "x renamed an array to a path where y put something", base: group, kind: ConflictRename, paths: []string{"t", "g/a"},
			x: moved("g/a", "t"), y: setAll("t/zarr.json", toyArray+" k=3", "g/a/c/0", "y"),
			xWins: []string{"g/a/zarr.json", "", "g/a/c/0", "", "g/a/c/5", "", "t/zarr.json", "array f=c/:/:1 k=1 g=9", "t/c/0", "y", "t/c/5", "5"},
			yWins: []string{"g/a/c/0", "y", "t/zarr.json", toyArray + " k=3"}},
		{row: "x and y moved two arrays into each other", base: group, kind: ConflictRename, paths: []string{"g/a", "z", "z/a", "g/a/z"},
			x: moved("g/a", "z/a"), y: moved("z", "g/a/z"),
			xWins: []string{"g/a/zarr.json", "", "g/a/c/0", "", "g/a/c/5", "", "z/a/zarr.json", "array f=c/:/:1 k=1 g=9", "z/a/c/0", "0", "z/a/c/5", "5"},
			yWins: []string{"z/zarr.json", "", "g/a/z/zarr.json", toyArray}},
		{row: "x removed a group, y moved an array into it", base: group, kind: ConflictRename, paths: []string{"g/z", "z"},
			x: removed("g/"), y: moved("z", "g/z"),
			xWins: gone, yWins: with(gone, "g/zarr.json", "group", "z/zarr.json", "", "g/z/zarr.json", toyArray)},
		{row: "x renamed a group, y put something into it", base: group, kind: ConflictAncestor, paths: []string{"g/n", "h/n"},
			x: moved("g", "h"), y: setAll("g/n/zarr.json", toyArray, "g/a/c/0", "y"),
			xWins: with(renamed, "h/a/c/0", "y"), yWins: with(renamed, "h/a/c/0", "y", "h/n/zarr.json", toyArray)},
		{row: "x removed a group, y put something into it", base: group, kind: ConflictAncestor, paths: []string{"g/n"},
			x: removed("g/"), y: setAll("g/n/zarr.json", toyArray),
			xWins: gone, yWins: with(gone, "g/zarr.json", "group", "g/n/zarr.json", toyArray)},
		{row: "x made an array of a group, y put something into it", base: []string{"g/zarr.json", "group", "z/zarr.json", toyArray}, kind: ConflictAncestor, paths: []string{"g/n"},
			x: setAll("g/zarr.json", toyArray, "g/c/0", "x"), y: setAll("g/n/zarr.json", toyArray),
			xWins: []string{"g/zarr.json", toyArray, "g/c/0", "x"}, yWins: []string{"g/n/zarr.json", toyArray}},
		{row: "x changed what the session y read", base: group, kind: ConflictGuard, paths: []string{"g/a/c/0", "g/a"}, sessionOnly: true,
			x: setAll("g/a/c/0", "x"), y: func(s *Session) error { return errors.Join(s.Guard(bg, "g/a"), setAll("k", "y")(s)) },
			xWins: []string{"g/a/c/0", "x", "k", "y"}, yWins: []string{"g/a/c/0", "x", "k", "y"}},
	}
}

// TestEveryConflictIsDecided decides each kind of conflict by each path that it names, for
// either side, in a merge, a cherry-pick, a rebase, the commit of a session and its
// refresh. Without a choice it stays a conflict.
func TestEveryConflictIsDecided(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	doc := must.Get(os.ReadFile("../docs/design/conflicts.md"))(t)
	rows := decidedConflicts()
	for _, c := range rows {
		t.Run(c.row, func(t *testing.T) {
			if !strings.Contains(string(doc), fmt.Sprintf("| %v | %s |", c.kind, c.row)) {
				t.Errorf("docs/design/conflicts.md has no row | %v | %s |", c.kind, c.row)
			}
			for _, swapped := range []bool{false, true} {
				if swapped && c.sessionOnly {
					continue
				}
				c.run(t, "", refuse, swapped)
				for _, path := range c.paths {
					c.run(t, path, Ours, swapped)
					c.run(t, path, Theirs, swapped)
				}
			}
			if c.kind != ConflictGuard {
				c.run(t, "/", Ours, false)
				c.run(t, "/", Theirs, false)
			}
		})
	}
	_, table, _ := strings.Cut(string(doc), "y chosen |\n|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if n := strings.Count(table, "\n") + 1; n != len(rows)+1 { // a rewound branch is not asked
		t.Errorf("docs/design/conflicts.md has %d rows, %d are tested", n, len(rows)+1)
	}
}

// run makes the conflict and decides it. Ours is x, or y if swapped.
func (c decidedConflict) run(t *testing.T, path string, choice Choice, swapped bool) {
	t.Helper()
	ours, theirs := c.x, c.y
	if swapped {
		ours, theirs = theirs, ours
	}
	choose := []PathChoice{{Path: strings.Trim(path, "/"), Choice: choice}}
	if choice == refuse {
		choose = nil
	}
	db := openTest(t, nil)
	base := say(t, db, "", "base", setAll(c.base...))
	want := at(t, db, "")
	changes := c.xWins
	if choice == Ours == swapped {
		changes = c.yWins
	}
	for i := 0; i < len(changes); i += 2 {
		if want[changes[i]] = changes[i+1]; changes[i+1] == "" {
			delete(want, changes[i])
		}
	}
	for _, branch := range []string{"theirs", "picked", "session", "refreshed"} {
		must.Do(t, db.CreateBranch(bg, branch, base))
	}
	var sessions []*Session
	for _, branch := range []string{"session", "refreshed"} {
		s := must.Get(db.Begin(bg, branch))(t)
		defer s.Abort()
		must.Do(t, theirs(s))
		sessions = append(sessions, s)
		say(t, db, branch, "ours", ours)
	}
	check := func(door string, got map[string]string, err error) {
		t.Helper()
		var conflict *ConflictError
		switch {
		case choice == refuse:
			if !errors.As(err, &conflict) || !slices.ContainsFunc(conflict.Conflicts, func(k Conflict) bool {
				return k.Kind == c.kind && slices.ContainsFunc(c.paths, func(p string) bool { return p == k.Path })
			}) {
				t.Errorf("%s, swapped %v: error %v, want a conflict of the kind %v", door, swapped, err, c.kind)
			}
		case err != nil:
			t.Errorf("%s, swapped %v, %v for %s: %v", door, swapped, choice, path, err)
		case !maps.Equal(got, want):
			t.Errorf("%s, swapped %v, %v for %s:\n got %v\nwant %v", door, swapped, choice, path, got, want)
		}
	}
	_, err := sessions[0].Commit(bg, CommitOptions{Choices: choose})
	check("commit", at(t, db, "session"), err)
	err = sessions[1].Refresh(bg, choose)
	check("refresh", contents(t, sessions[1]), err)
	if c.sessionOnly {
		return
	}
	say(t, db, "", "ours", ours)
	theirHead := say(t, db, "theirs", "theirs", theirs)
	ourHead, _ := db.Head(bg, "")
	must.Get(db.Reset(bg, "picked", ourHead))(t)
	_, err = db.CherryPick(bg, "picked", theirHead, 0, CommitOptions{Choices: choose})
	check("cherry-pick", at(t, db, "picked"), err)
	_, err = db.Rebase(bg, "theirs", ourHead, RebaseOptions{Choices: choose})
	check("rebase", at(t, db, "theirs"), err)
	_, err = db.Merge(bg, "", theirHead, CommitOptions{Choices: choose})
	check("merge", at(t, db, ""), err)
}
