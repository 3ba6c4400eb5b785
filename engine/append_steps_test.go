package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// Steps go in the place of those with their label, and are counted once. Gaps are jumps that a regular
// coordinate has not always.
func TestAppendSteps(t *testing.T) {
	week := func(first byte) string { return string([]byte{first, first + 1, first + 2, first + 3, first + 4}) }
	for _, test := range []struct {
		name              string
		there             string // what is there, a value for each step
		pieces            []string
		replace, anyOrder bool
		strict            bool
		appended          int64
		replaced          int64
		gaps              int
		want              string // the error
	}{
		{name: "sources that overlap", pieces: []string{"abc", "bcd"}, replace: true, appended: 4},
		{name: "one step replaced twice", there: "abc", pieces: []string{"bcd", "cde"}, replace: true, appended: 2, replaced: 2},
		{name: "a label twice in a source", there: "ab", pieces: []string{"cc"}, replace: true, want: "99 in p0.json is there already, in p0.json"},
		{name: "a label twice in any order", there: "ab", pieces: []string{"cc"}, replace: true, anyOrder: true, appended: 1},
		{name: "a label that the database has twice", there: "aab", pieces: []string{"a"}, replace: true, want: "97 in /time of the database is there already, in /time of the database"},
		{name: "a label twice beside", there: "aab", pieces: []string{"bc"}, replace: true, appended: 1, replaced: 1},
		{name: "a gap", there: "abcd", pieces: []string{"gh"}, appended: 2, gaps: 1},
		{name: "gaps", there: "abcd", pieces: []string{"ghijk", "pqr"}, appended: 8, gaps: 2},
		{name: "strict", there: "abcd", pieces: []string{"gh"}, strict: true, want: "/time: 103 in p0.json follows 100: that is 3 steps"},
		{name: "strict in any order", there: "abcd", pieces: []string{"gh"}, strict: true, anyOrder: true, want: "Strict excludes AnyOrder"},
		{name: "working days", there: week(1) + week(8), pieces: []string{week(15), week(22)}, strict: true, appended: 10},
		{name: "working days at once", pieces: []string{week(1), week(8), week(15)}, strict: true, appended: 15},
	} {
		t.Run(test.name, func(t *testing.T) {
			db := openDB(t, nil)
			if test.there != "" {
				must.Get(appendAll(db, "time", false, ImportOptions{AnyOrder: true}, pieceOf(timeSet(t, "there.json", "|i1", 1, []byte(test.there)), Follow{})))(t)
			}
			var pieces []Piece
			for i, values := range test.pieces {
				pieces = append(pieces, pieceOf(timeSet(t, fmt.Sprintf("p%d.json", i), "|i1", 1, []byte(values)), Follow{}))
			}
			before := head(t, db, "")
			plan := must.Get(PlanAppend(bg, pieces, AppendOptions{Dim: "time", Replace: test.replace}))(t)
			res, err := db.Append(bg, plan, ImportOptions{Strict: test.strict, AnyOrder: test.anyOrder})
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("error %v", err)
				}
				unchanged(t, db, before)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if res.Appended != test.appended || res.Replaced != test.replaced || res.AllGaps != test.gaps {
				t.Errorf("%d appended, %d replaced, gaps %v", res.Appended, res.Replaced, res.Gaps)
			}
		})
	}
}
