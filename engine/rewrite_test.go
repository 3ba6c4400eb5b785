package engine

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// Amend and Rebase with Squash make commits again. A protected branch goes forward only.
func TestRewrite(t *testing.T) {
	db := openDB(t, nil)
	commit(t, db, "", "make", func(s *Session) error { return create(s, "a", line(4, 2)) })
	base := head(t, db, "")
	for i, m := range []string{"one", "two", "three"} {
		commit(t, db, "", m, setInts("a", zarr.Sel(zarr.At(int64(i))), int32(10+i)))
	}
	last := must.Get(db.Versions().Lookup(bg, head(t, db, "")))(t)
	then := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	c := must.Get(db.Amend(bg, "", CommitOptions{Message: "drei", Time: then}))(t)
	if c.Message != "drei" || !c.Time.Equal(then) || c.Author != last.Author || c.Root != last.Root || head(t, db, "") != c.ID {
		t.Errorf("amended: %+v", c)
	}
	c = must.Get(db.Versions().Rebase(bg, "", base, txn.RebaseOptions{Squash: true}))(t)
	if c.Message != "one\n\ntwo\n\ndrei" || len(c.Parents) != 1 || c.Parents[0] != base || c.Root != last.Root {
		t.Errorf("squashed: %+v", c)
	}
	wantInts(t, at(t, db, "main"), "a", 10, 11, 12, 3)
	o := txn.RebaseOptions{Squash: true, Message: c.Message}
	moves := func() (n int) {
		for _, err := range db.Versions().Reflog(bg, "") {
			must.Do(t, err)
			n++
		}
		return n
	}
	before := moves()
	again := must.Get(db.Versions().Rebase(bg, "", base, o))(t)
	if n := moves(); again.ID != c.ID || n != before {
		t.Errorf("squashed again: %v became %v, with %d moves after %d", c.ID, again.ID, n, before)
	}
	must.Do(t, db.Versions().CreateTag(bg, "base", base))
	commit(t, db, "", "last", setInts("a", zarr.Sel(zarr.At(0)), 10))
	commit(t, db, "", "last", setInts("a", zarr.Sel(zarr.At(0)), 9))
	must.Get(db.Expire(bg, txn.ExpireOptions{Keep: 1}))(t)
	c = must.Get(db.Versions().Rebase(bg, "", base, txn.RebaseOptions{Squash: true}))(t)
	if c.Message != "last" || c.Parents[0] != base {
		t.Errorf("squashed with expired commits: %+v", c)
	}

	must.Do(t, db.Protect(bg, "", false, txn.Protected))
	commit(t, db, "", "four", setInts("a", zarr.Sel(zarr.At(3)), 13))
	for what, do := range map[string]func() error{
		"reset":  func() error { _, err := db.Versions().Reset(bg, "", base); return err },
		"undo":   func() error { _, err := db.UndoBranch(bg, ""); return err },
		"amend":  func() error { _, err := db.Amend(bg, "", CommitOptions{Message: "x"}); return err },
		"delete": func() error { return db.Versions().DeleteBranch(bg, "main") },
		"squash": func() error {
			_, err := db.Versions().Rebase(bg, "", base, txn.RebaseOptions{Squash: true})
			return err
		},
		"dry squash": func() error {
			_, err := db.Versions().Rebase(bg, "", base, txn.RebaseOptions{Squash: true, DryRun: true})
			return err
		},
		"dry amend": func() error { _, err := db.Amend(bg, "", CommitOptions{Message: "x", DryRun: true}); return err },
	} {
		if err := do(); !errors.Is(err, txn.ErrProtected) || !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must.Do(t, db.Protect(bg, "", false, txn.Frozen))
	if _, err := db.Update(bg, "", "five", setInts("a", zarr.Sel(), 0)); !errors.Is(err, txn.ErrProtected) {
		t.Errorf("commit: %v", err)
	}
	branches, tags, err := db.Protections(bg)
	if err != nil || len(branches) != 1 || branches["main"] != txn.Frozen || len(tags) > 0 {
		t.Errorf("%v %v %v", branches, tags, err)
	}
	must.Do(t, db.Protect(bg, "", false, txn.Unprotected))
	must.Get(db.Versions().Reset(bg, "", base))(t)
}

// A policy keeps the newest version of each period.
func TestExpirePolicy(t *testing.T) {
	o := memOptions()
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	o.Now = func() time.Time { return now }
	db := openDB(t, o)
	commit(t, db, "", "make", func(s *Session) error { return create(s, "a", line(4, 2)) })
	var days []txn.CommitID
	for i := range 60 { // two a day
		now = now.Add(12 * time.Hour)
		id := commit(t, db, "", now.Format(time.DateOnly), setInts("a", zarr.Sel(), int32(i)))
		days = append(days, id)
	}
	p := must.Get(txn.ParseKeepPolicy("keep 3 daily 2 weekly and 2 monthly, tags"))(t)
	must.Do(t, db.Versions().CreateTag(bg, "v1", days[5]))
	r := must.Get(db.Expire(bg, txn.ExpireOptions{Policy: p}))(t)
	var kept []string
	for c, err := range db.Versions().Log(bg, head(t, db, "")) {
		must.Do(t, err)
		if gone := must.Get(db.Versions().Expired(bg, c.ID))(t); !gone {
			kept = append(kept, c.Message)
		}
	}
	// The days 31, 30 and 29 of March, with the week of the 30th; the 29th ends the week before; the tag.
	if want := []string{"2026-03-31", "2026-03-30", "2026-03-29", "2026-03-04"}; !slices.Equal(kept, want) || r.Expired != 58 {
		t.Errorf("kept %q, want %q: %+v", kept, want, r)
	}
	// Commits of a branch that was merged come later in history and have earlier times.
	start := head(t, db, "")
	var want []txn.CommitID
	for i := range 3 {
		now = now.Add(24 * time.Hour)
		want = append(want, commit(t, db, "", "day", setInts("a", zarr.Sel(), int32(100+i))))
	}
	days3 := now
	must.Do(t, db.Versions().CreateBranch(bg, "side", start))
	for i := range 5 {
		now = time.Date(2026, 3, 5+i, 1, 0, 0, 0, time.UTC)
		commit(t, db, "side", "side", func(s *Session) error { return create(s, fmt.Sprint("s", i), line(1, 1)) })
	}
	now = days3.Add(time.Hour)
	must.Get(db.Versions().Merge(bg, "", head(t, db, "side"), CommitOptions{}))(t)
	must.Do(t, db.Versions().DeleteBranch(bg, "side"))
	must.Get(db.Expire(bg, txn.ExpireOptions{Policy: txn.KeepPolicy{Daily: 3}}))(t)
	for i, id := range want[:2] { // the merge is the newest of the third
		if must.Get(db.Versions().Expired(bg, id))(t) {
			t.Errorf("day %d has expired", i)
		}
	}
	for _, bad := range []string{"", "tags", "7", "7 nightly", "0 daily", "1 daily 2 daily", "daily 7"} {
		if p, err := txn.ParseKeepPolicy(bad); err == nil {
			t.Errorf("%q is %+v", bad, p)
		}
	}
}
