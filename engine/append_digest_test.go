package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn"
)

// Whatever decides what an append does makes another append of it, which does
// not go on where this one was stopped.
func TestAppendDigest(t *testing.T) {
	urls := []string{dailySet(0).write(t, "f0.json"), dailySet(1).write(t, "f1.json")}
	other := dailySet(1)
	other.attrs("t")["history"] = "another"
	urls = append(urls, other.write(t, "f1.json"))
	digest := func(dim string, link bool, o ImportOptions, names ...int) string {
		t.Helper()
		var list []Piece
		for _, i := range names {
			list = append(list, pieceOf(urls[i], Follow{}))
		}
		p := must.Get(PlanAppend(bg, list, AppendOptions{Dim: dim, Link: link}))(t)
		d := p.digest(o)
		return d
	}
	seen := map[string]string{}
	for name, d := range map[string]string{
		"linked":        digest("time", true, ImportOptions{}, 0, 1),
		"along x":       digest("x", true, ImportOptions{}, 0, 1),
		"copied":        digest("time", false, ImportOptions{}, 0, 1),
		"overwrite":     digest("time", true, ImportOptions{Overwrite: true}, 0, 1),
		"any order":     digest("time", true, ImportOptions{AnyOrder: true}, 0, 1),
		"validate all":  digest("time", true, ImportOptions{Validate: ValidateAll}, 0, 1),
		"validate none": digest("time", true, ImportOptions{Validate: ValidateNone}, 0, 1),
		"fewer":         digest("time", true, ImportOptions{}, 0),
		"more":          digest("time", true, ImportOptions{}, 0, 1, 1),
		"turned":        digest("time", true, ImportOptions{}, 1, 0),
		"metadata":      digest("time", true, ImportOptions{}, 0, 2),
	} {
		if seen[d] != "" {
			t.Errorf("%s is taken for %s", name, seen[d])
		}
		seen[d] = name
	}
	if digest("time", true, ImportOptions{Message: "m", Resume: true}, 0, 1) != digest("time", true, ImportOptions{}, 0, 1) {
		t.Error("what does not matter does")
	}
	if names := slices.Sorted(maps.Values(seen)); len(names) != 11 {
		t.Errorf("%q", names)
	}

	j := &joiner{label: "append", plan: &AppendPlan{pieces: make([]*appendPiece, 3)}}
	for label, want := range map[string]int{
		"append: 1 done": 1, "append: 2 done": 2, "append: 3 done": 0, "append: 0 done": 0, "append: -1 done": 0, "append: x done": 0, "append": 0, "another: 1 done": 0, "": 0,
	} {
		if got := j.doneIn(label); got != want {
			t.Errorf("%q: %d done", label, got)
		}
	}
}

// An append goes on only if it is asked to, on its own branch, and as often as it
// is stopped; the last piece that was complete counts for the order of the next.
func TestAppendResumedAgain(t *testing.T) {
	carefully(t)
	list := pieces(t, dailySet(0), dailySet(1), dailySet(2))
	config, path := t.TempDir(), t.TempDir()+"/t.zdb"
	openAndClose(t, path, config)
	o := ImportOptions{To: "g"}
	appendStopped(t, path, config, "failed", o, true, list, 2)
	o.Resume = true
	appendStopped(t, path, config, "failed", o, true, list, 2) // at the same place

	db := openAt(t, path, linkOptions(t, config))
	must.Do(t, db.store.CreateBranch(bg, "other", head(t, db, "")))
	begins := func(o ImportOptions) {
		t.Helper()
		c := &counted{}
		must.Get(appendAll(db, "time", true, o, c.pieces(list)...))(t)
		if !slices.Equal(c.opens, []int{2, 2, 2}) {
			t.Errorf("%+v: pieces were opened %v times", o, c.opens)
		}
		if left, err := db.Sessions(bg); err != nil || len(left) != 1 || !strings.HasSuffix(left[0].Label, ": 2 done") {
			t.Errorf("%+v: sessions %v, %v", o, left, err)
		}
	}
	begins(ImportOptions{To: "g", Branch: "other", Resume: true})
	begins(ImportOptions{To: "h", Resume: true})
	begins(ImportOptions{To: "i"})
	closeChecked(t, db)

	// A piece that was complete, and comes again as the next one.
	config, path = t.TempDir(), t.TempDir()+"/t.zdb"
	openAndClose(t, path, config)
	list = append(list[:2:2], list[1], list[2])
	o = ImportOptions{To: "g"}
	appendStopped(t, path, config, "failed", o, true, list, 2)
	db = openAt(t, path, linkOptions(t, config))
	before := head(t, db, "")
	o.Resume = true
	var order *OrderError
	if _, err := appendAll(db, "time", true, o, list...); !errors.As(err, &order) || order.Value != "2" || order.From != "f1.json" {
		t.Errorf("the piece before again: %v", err)
	}
	unchanged(t, db, before)
}

// An append into a stored session takes up no other.
func TestAppendResumesNoOther(t *testing.T) {
	carefully(t)
	list := pieces(t, dailySet(0), dailySet(1), dailySet(2))
	config, path := t.TempDir(), t.TempDir()+"/t.zdb"
	openAndClose(t, path, config)
	appendStopped(t, path, config, "failed", ImportOptions{To: "n"}, true, list, 1)
	db := openAt(t, path, linkOptions(t, config))
	s := must.Get(db.Begin(bg, ""))(t)
	id := s.ID()
	must.Do(t, errors.Join(s.Set(bg, "note", []byte("mine")), s.Detach(bg)))
	must.Get(appendAll(db, "time", true, ImportOptions{Session: &id, Resume: true, To: "n"}, list...))(t)
	s = must.Get(db.Resume(bg, id))(t)
	must.Get(s.Commit(bg, txn.CommitOptions{}))(t)
	keys := contents(t, at(t, db, ""))
	if keys["note"] != "mine" || textOf(t, array(t, at(t, db, ""), "n/time")) != "\x00\x01\x02\x03\x04\x05" {
		t.Error(fmt.Sprint(slices.Sorted(maps.Keys(keys))))
	}
}
